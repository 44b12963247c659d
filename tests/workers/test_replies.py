"""What a worker answers is checked before the server uses it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lapjoint import Box, Plane, Scene
from lapjoint.engines import STEP_MEASURES, Contacts
from lapjoint.step_tables.hits import Hits
from lapjoint.workers.messages import Ask, StepReply, WorkerFailure
from lapjoint.workers.replies import reply_of


def two_boxes() -> Scene:
    scene = Scene("boxes")
    scene.add_static(Plane())
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [(0.0, 0.0, 0.5), (0.0, 0.0, 1.5)])
    return scene


def reply(**changed: Any) -> StepReply:
    contacts = {"bodies": [(0, 1), (0, -1)], "depth": np.zeros(2)}
    contacts |= {name: changed.pop(name) for name in contacts.keys() & changed.keys()}
    good = {
        "listed": Contacts(np.array(contacts["bodies"], np.int32), np.array([4, 4], np.int32), contacts["depth"]),
        "step_measures": np.zeros((3, len(STEP_MEASURES))),
    }
    return StepReply(**{**good, **changed})


def hits(step: int = 0, bodies: tuple[int, int] = (0, -1)) -> Hits:
    rows = np.zeros((1, 3))
    return Hits(np.array([step], np.int32), np.array([bodies], np.int32), np.ones(1), rows, rows)


def unreadable() -> Any:
    raise ValueError("no message")


def test_an_answer_that_makes_sense_is_taken() -> None:
    good = reply()
    assert reply_of(0, lambda: good, two_boxes(), 3) is good


@pytest.mark.parametrize(
    ("read", "why"),
    [
        (unreadable, "no message"),
        (Ask, "a Ask"),
        (
            lambda: reply(bodies=[(0, 2), (0, 1)]),
            "bodies of contacts has 0 to 2, expected -1",
        ),
        (lambda: reply(bodies=[(0, -2), (0, 1)]), "bodies of contacts has -2 to 1"),
        (lambda: reply(depth=np.zeros(3)), "different numbers of rows"),
        (lambda: reply(tables=(hits(bodies=(0, 2)),)), "hits: bodies has 0 to 2, expected -1 to 1"),
        (lambda: reply(tables=(hits(step=3),)), "hits: step has 3 to 3, expected 0 to 2"),
        (lambda: reply(tables=(replace(hits(), impulse=np.zeros(2)),)), "columns of hits have 1, 2 rows"),
        (lambda: reply(tables=(hits(), hits())), "tables are Hits, Hits, expected one of a kind"),
        (lambda: reply(tables=(StepReply(),)), "tables are StepReply"),
        (lambda: reply(ghosts=np.array([7], np.int32)), "ghosts has 7 to 7"),
        (lambda: reply(step_measures=np.zeros((2, len(STEP_MEASURES)))), "expected one for each of 3 steps"),
        (lambda: reply(step_measures=np.full((3, len(STEP_MEASURES)), np.nan)), "counts that are none"),
    ],
)
def test_one_that_makes_none_is_a_failure_of_the_worker(read: Callable[[], Any], why: str) -> None:
    found = reply_of(1, read, two_boxes(), 3)
    assert isinstance(found, WorkerFailure)
    assert (found.worker, found.kind) == (1, "failed")
    assert why in found.text
