"""A checked engine can be an open box too: what CheckedEngine asks of a subclass is not in the way of RoundEngine."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

from lapjoint.engines import RoundEngine
from lapjoint.engines.checked import CheckedEngine

DUMMY = """
from collections.abc import Sequence
from numpy.typing import ArrayLike
from lapjoint.engines import Contacts, Engine, EngineState, RoundEngine
from lapjoint.engines.base import Array, Ids
from lapjoint.engines.checked import CheckedEngine
from lapjoint.algorithms.exchange import RoundPlan, RoundResult
from lapjoint.engines.exchange import Links


class Open(CheckedEngine):
    def put_in(self, ids: Ids, states: Array) -> None: ...
    def take_out(self, ids: Ids) -> None: ...
    def write(self, ids: Ids, states: Array) -> None: ...
    def read(self, ids: Ids) -> Array:
        return self.get_states(ids)
    def advance(self, forces: Array | None) -> None: ...
    def find(self) -> None: ...
    def list_contacts(self) -> Contacts:
        return Contacts.none()
    def forget(self) -> None: ...

    def set_rounds(self, rounds: int) -> None: ...
    def round_count(self) -> int:
        return 0
    def set_owners(self, owner: Ids) -> None: ...
    def begin_step(self, interface: ArrayLike, jointed: ArrayLike = ()) -> None: ...
    def interface_masses(self) -> Array:
        return self.get_states()
    def add_interface_masses(self, masses: Array) -> None: ...
    def include(self, others: Array) -> None: ...
    def extrapolate(self, how: int, theta: Array) -> None: ...
    def sweep(self, count: int) -> Array:
        return self.get_states()
    def contributions(self) -> Array:
        return self.get_states()
    def finish_step(self, moves: bool = True) -> None: ...
    def abandon_step(self) -> None: ...
    def serve(self, down: Array, up: Array) -> int:
        return 0
    def serve_by_socket(self, socket: int, down: Array, up: Array, carries: bool) -> bool:
        return True
    def run_rounds(self, plan: RoundPlan, links: Links) -> RoundResult:
        return RoundResult(1, 0.0)
    def merge_cache(self, state: EngineState) -> None: ...


def use(both: Open) -> tuple[Engine, RoundEngine]:
    return both, both
"""


def test_no_name_means_one_thing_to_a_checked_engine_and_another_in_rounds() -> None:
    methods = {name for name in vars(RoundEngine) if not name.startswith("_")}
    assert "extrapolate" in methods
    assert not methods & set(dir(CheckedEngine))


@pytest.mark.slow
def test_a_checked_engine_can_be_coupled_tightly(tmp_path: Path) -> None:
    file = tmp_path / "open_engine.py"
    file.write_text(DUMMY)
    root = Path(__file__).parents[2]
    said, complaint, code = api.run(
        ["--config-file", str(root / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache"), str(file)]
    )
    assert code == 0, said + complaint
