"""Every block of Python and every command on the pages runs, or says why it does not.

Blocks of a page share their names, as cells of a notebook do, and a folder of their own. They run small: a call of
`Simulation.step` takes 40 steps at most, a range has 100 numbers at most, and workers live in this process. A command
gets a small scene and two steps in place of what the page says. Where a page shows what a command prints, the command
is run as it stands, and prints that.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import lapjoint
from lapjoint.cli import app
from page_blocks import RUN, SHOWN, Block, blocks_of, lines_not_printed

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MOST_STEPS, MOST_NUMBERS = 40, 100
LENGTHS = ("--steps", "--seconds", "--size", "--checkpoint-every", "--record-every", "--runtime")
SMALL = {
    "run": ["--steps", "2", "--runtime", "inline"],
    "resume": ["--steps", "2", "--runtime", "inline"],
    "bench": ["--steps", "1", "--repetitions", "1", "--warmup", "1", "--size", "100"],
}
WITH_SIZE = ("run", "picture", "export")
SIDES = ("pyramid", "joint-grid")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    for block in blocks_of(page.read_text()):
        known = block.language in SHOWN or block.language in RUN
        assert known, f"{page.name}: a block of {block.language!r}, expected one of {RUN} or {SHOWN}:\n{block.code}"
        assert block.why_not is None or len(block.why_not) > 8
        shown = block.language != "text" or block.printed_by or block.why_not
        assert shown, f"{page.name}: expected what prints this, or why it is not run:\n{block.code}"


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page.read_text())], ids=lambda page: page.stem)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_small(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, Any] = {"__name__": page.stem, "range": few_numbers, "lapjoint": lapjoint, "ROOT": ROOT}
    for block in blocks_of(page.read_text()):
        exec(compile(block.given, f"{page.name}, given", "exec"), names)
        if block.why_not is None and block.language in RUN:
            run_block(page, block, names)


PRINTED = [
    pytest.param(page.name, block.printed_by, block.code, id=f"{page.stem}: {block.printed_by}")
    for page in PAGES
    for block in blocks_of(page.read_text())
    if block.printed_by
]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "command", "shown"), PRINTED)
def test_commands_print_what_pages_show(
    page: str, command: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")  # no line is wrapped
    words = shlex.split(command)
    assert words[0] == "lapjoint", f"{page}: {command}, expected a command of lapjoint"
    result = CliRunner().invoke(app, words[1:], catch_exceptions=False)
    missing = lines_not_printed(shown, result.output)
    assert not missing, f"{page}: {command} does not print {missing}, but:\n{result.output}"


def test_lines_that_are_not_printed_are_found() -> None:
    printed = " workers   2, process\n speed     67.2 steps/s, 1,488 ms/step\n state hash  7e18\n"
    assert lines_not_printed("workers 2, process\nspeed 9.1 steps/s, 7 ms/step\nstate hash 7e18", printed) == []
    assert lines_not_printed("state hash 7e19", printed) == ["state hash 7e19"]
    assert lines_not_printed("state hash 7e18\nworkers 2, process", printed) == ["workers 2, process"]
    assert lines_not_printed("speed 9.1 steps/h, 7 ms/step", printed) == ["speed 9.1 steps/h, 7 ms/step"]


def run_small(monkeypatch: pytest.MonkeyPatch) -> None:
    step, init = lapjoint.Simulation.step, lapjoint.Params.__init__

    def few_steps(simulation: lapjoint.Simulation, count: int = 1) -> None:
        step(simulation, min(count, MOST_STEPS))

    def inline(params: lapjoint.Params, *values: Any, **given: Any) -> None:
        init(params, *values, **{"runtime": "inline", **given})

    monkeypatch.setattr(lapjoint.Simulation, "step", few_steps)
    monkeypatch.setattr(lapjoint.Params, "__init__", inline)


def few_numbers(*ends: int) -> range:
    return range(*ends)[:MOST_NUMBERS]


def run_block(page: Path, block: Block, names: dict[str, Any]) -> None:
    if block.language == "python":
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block.code, page.name, "exec"), names)
        return
    for words in block.commands():
        assert words[0] == "lapjoint", f"{page.name}: {words}, expected a command of lapjoint, or why it is not run"
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # a warning is for whoever types the command; a failure is not
            result = CliRunner().invoke(app, small(words[1:]), catch_exceptions=False)
        assert result.exit_code == 0, f"{page.name}: {' '.join(words)}\n{result.output}"


def small(words: list[str]) -> list[str]:
    """A command with a small scene and few steps in place of its own."""
    command, kept = words[0], []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif command in SMALL and word in LENGTHS:
            skip = True
        else:
            kept.append(word)
    if command in WITH_SIZE and kept[1] in lapjoint.scenes.names():
        kept += ["--size", "8" if kept[1] in SIDES else "100"]
    return kept + SMALL.get(command, [])


def test_commands_keep_what_is_not_about_their_size() -> None:
    found = small(["run", "bowl", "--workers", "4", "--steps", "1000", "--record", "run.zarr", "--seconds", "4"])
    assert " ".join(found) == "run bowl --workers 4 --record run.zarr --size 100 --steps 2 --runtime inline"
    assert small(["run", "robot.xml"]) == ["run", "robot.xml", *SMALL["run"]]


def test_blocks_have_what_is_said_before_them() -> None:
    text = "<!-- given\na = 1\n-->\n```python\na\n```\n"
    python, shell = blocks_of(text + "<!-- not run: needs a cluster -->\n```sh\nray start \\\n  --x\n```\n")
    assert (python.language, python.given.strip(), python.code, python.why_not) == ("python", "a = 1", "a\n", None)
    assert (shell.why_not, shell.commands()) == ("needs a cluster", [["ray", "start", "--x"]])
