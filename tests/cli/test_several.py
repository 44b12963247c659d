"""Options that take several values: one after the other, with commas, or the option again."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from lapjoint.cli.command import Command

MANY = list[str] | None


def parsed(text: str) -> dict[str, Any]:
    """What a command with such options makes of a line."""
    found: dict[str, Any] = {}
    app = typer.Typer()

    @app.command(cls=Command)
    def command(
        scenes: Annotated[list[str] | None, typer.Argument()] = None,
        workers: Annotated[MANY, typer.Option("--workers", metavar="N")] = None,
        iterations: Annotated[MANY, typer.Option("--iterations", metavar="N")] = None,
        engine: Annotated[MANY, typer.Option("--engine", metavar="NAME")] = None,
        solver: Annotated[MANY, typer.Option("--solver", metavar="NAME")] = None,
        coupling: Annotated[MANY, typer.Option("--coupling", metavar="NAME")] = None,
        peer: Annotated[MANY, typer.Option("--peer", metavar="NAME")] = None,
        steps: Annotated[int | None, typer.Option("--steps", metavar="N")] = None,
    ) -> None:
        found.update({name: value for name, value in locals().items() if value and name != "found"})

    result = CliRunner().invoke(app, text.split())
    found["exit_code"] = result.exit_code
    return found


def ok(**wanted: Any) -> dict[str, Any]:
    return {**wanted, "exit_code": 0}


WORDS: dict[str, dict[str, Any]] = {
    "a b --workers 1 2 4 --steps 20": ok(scenes=["a", "b"], workers=["1", "2", "4"], steps=20),
    "--workers 1 2 a b --steps 3": ok(scenes=["a", "b"], workers=["1", "2"], steps=3),
    "a --workers 2 --iterations 9 10": ok(scenes=["a"], workers=["2"], iterations=["9", "10"]),
    "a --workers=1 2": ok(scenes=["a"], workers=["1", "2"]),
    "a --workers 1 --workers 2": ok(scenes=["a"], workers=["1", "2"]),
    "a --workers 1,2,4": ok(scenes=["a"], workers=["1", "2", "4"]),
    "--workers=1,2 4 a": ok(scenes=["a"], workers=["1", "2", "4"]),
    "a --workers 1 -2 2.5": ok(scenes=["a"], workers=["1", "-2", "2.5"]),
    "a --workers two 3": ok(scenes=["a"], workers=["two", "3"]),
    "a --workers": {"exit_code": 2},
    "a --steps 3 4": ok(scenes=["a", "4"], steps=3),
    "--workers 1 -- 2 --workers 3 4": ok(scenes=["2", "--workers", "3", "4"], workers=["1"]),
    "bowl --peer box3d mujoco bowl --peer rapier --steps 3": ok(
        scenes=["bowl", "bowl"], peer=["box3d", "mujoco", "rapier"], steps=3
    ),
    "bowl --engine 0=bullet 1=rapier bowl --engine rapier warp": ok(
        scenes=["bowl", "bowl", "warp"], engine=["0=bullet", "1=rapier", "rapier"]
    ),
    "--engine bullet,1=rapier a": ok(scenes=["a"], engine=["bullet,1=rapier"]),
    "--solver sequential label:1=dantzig cable": ok(scenes=["cable"], solver=["sequential", "label:1=dantzig"]),
    "--coupling blend tight chain": ok(scenes=["chain"], coupling=["blend", "tight"]),
}


@pytest.mark.parametrize("text", WORDS)
def test_values_after_an_option_belong_to_it(text: str) -> None:
    assert parsed(text) == WORDS[text]
