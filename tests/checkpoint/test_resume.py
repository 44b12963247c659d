"""A run goes on from after any of its steps as if it had never stopped, to the last bit, and would not without any one
field of its state.

`LAPJOINT_RESUME_SCENES=1000 python -m pytest tests/checkpoint/test_resume.py` resumes so many random scenes after every
step; `make test` a few, some after every step and others after some.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from living_scenes import LivingScene, living_scene
from resume_fields import NOT_MISSED, TABLE, is_missed, run_and_save_some
from resume_support import Readings, Saved, differences, field_names

pytestmark = pytest.mark.filterwarnings("ignore")  # random scenes start as they happen to
MANY = int(os.environ.get("LAPJOINT_RESUME_SCENES", "0"))
FEW = 10
WHOLE = 1
"""Scenes of the few that are resumed after every step."""
OTHERS = 8
"""How many steps apart the others are."""
ONCE_DIFFERENT = {106: 40, 269: 34, 406: 6, 1064: 13, 1109: 32}
"""Scenes, and after which of their steps a run once went on otherwise: a worker ended whose bodies slept on elsewhere;
one that was started later had other sweeps than were set; impacts were shared out with what drives and bonds did in the
step before."""
FIELDS: dict[str, list[int]] = json.loads(TABLE.read_text())
Run = tuple[LivingScene, list[Readings], list[Saved]]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(MANY or FEW))
def test_a_run_goes_on_from_each_step_as_if_it_had_not_stopped(number: int) -> None:
    apart = 1 if MANY or number < WHOLE else OTHERS
    with tempfile.TemporaryDirectory() as folder:
        found = differences(living_scene(number), Path(folder), lambda step: step % apart == number % apart)
        assert not [str(difference) for difference in found]


@pytest.mark.parametrize("number", ONCE_DIFFERENT)
def test_a_run_goes_on_as_it_was_where_it_once_did_not(number: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = differences(living_scene(number), Path(folder), ONCE_DIFFERENT[number].__eq__)
        assert not [str(difference) for difference in found]


@pytest.fixture(scope="module")
def runs() -> Iterator[dict[int, Run]]:
    """Runs with their checkpoints, made when they are first asked for."""
    with tempfile.TemporaryDirectory() as folder:

        class Runs(dict[int, Run]):
            def __missing__(self, number: int) -> Run:
                case, place = living_scene(number), Path(folder) / str(number)
                self[number] = case, *run_and_save_some(case, place)
                return self[number]

        yield Runs()


@pytest.mark.parametrize("field", sorted(FIELDS, key=FIELDS.__getitem__))
def test_a_run_that_goes_on_without_a_field_of_its_state_is_found_out(runs: dict[int, Run], field: str) -> None:
    number, which = FIELDS[field]
    case, expected, saved = runs[number]
    assert is_missed(case, expected, saved[which], field), "python tests/resume_fields.py looks for another place"


def test_of_every_field_it_is_known_where_it_is_missed(runs: dict[int, Run]) -> None:
    names = {name for _, _, saved in runs.values() for one in saved for name in field_names(one.path)}
    assert names == FIELDS.keys() | NOT_MISSED.keys(), "python tests/resume_fields.py looks for places"
