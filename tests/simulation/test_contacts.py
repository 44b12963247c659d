"""Contacts of the last step: sent where something is decided by them, and else to who asks before the next step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapjoint import Checkpoint, CheckpointWriter, LapjointError, Params, Simulation, scenes
from lapjoint.engines import Contacts
from lapjoint.server.coupling.tight import DECIDE_EVERY


def building(**given: Any) -> Simulation:
    return Simulation(scenes.build("building", 75), Params.from_options(**{"workers": 3, "runtime": "inline", **given}))


def rows(contacts: Contacts) -> list[list[Any]]:
    return [column.tolist() for column in (contacts.bodies, contacts.point_count, contacts.depth)]


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["inline", "process"])
def test_they_are_the_same_whether_they_are_sent_or_asked_for(runtime: str) -> None:
    with building(runtime=runtime) as asked, building() as sent:
        sent.contacts_wanted.append(lambda step: True)
        asked.step(10)
        sent.step(10)
        for _ in range(DECIDE_EVERY):
            asked.step()
            sent.step()
            assert all(reply.has_contacts for reply in sent.replies)
            assert rows(asked.contacts.pairs()) == rows(sent.contacts.pairs())
            assert (
                len(asked.contacts.pairs())
                == asked.profile.contact_count
                == asked.profile.worker_contact_count.sum()
                > 0
            )
            assert np.array_equal(asked.workers.graph.contacts, sent.workers.graph.contacts)
        assert asked.state_hash == sent.state_hash


@pytest.mark.slow
def test_they_come_with_the_step_before_a_decision_alone() -> None:
    with building() as simulation:
        came = []
        for step in range(1, DECIDE_EVERY + 5):
            simulation.step()
            came += [step] if all(reply.has_contacts for reply in simulation.replies) else []
            assert simulation.profile.contact_count == simulation.profile.worker_contact_count.sum()
        assert came == [1, DECIDE_EVERY]  # the first is not known to be measured


@pytest.mark.slow
def test_after_the_next_step_it_is_too_late() -> None:
    with building() as simulation:
        simulation.step(3)
        early = simulation.profile
        found = rows(early.contacts)
        simulation.step()
        assert rows(early.contacts) == found
        late = simulation.profile
        simulation.step()
        with pytest.raises(LapjointError, match="of a step before the last one, expected to be asked for before"):
            late.contacts  # noqa: B018
        last = simulation.profile
    with pytest.raises(LapjointError, match="of a step before the last one"):
        last.contacts  # noqa: B018


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_decision_that_is_wanted_at_once_asks_for_them(workers: int) -> None:
    """So it is the same as where they were there."""
    hashes = []
    for are_sent in (False, True):
        with building(workers=2) as simulation:
            simulation.step(30)
            if are_sent:
                simulation.contacts.pairs()
            assert all(reply.has_contacts for reply in simulation.replies) == are_sent
            simulation.workers.set_count(workers + 2)
            simulation.step(30)
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]


@pytest.mark.slow
def test_a_checkpoint_has_them(tmp_path: Path) -> None:
    with building() as simulation:
        simulation.step(30)
        checkpoint = Checkpoint(CheckpointWriter(tmp_path, simulation).save(simulation))
        found = rows(simulation.contacts.pairs())
    with checkpoint.resume() as again:
        assert rows(again.contacts.pairs()) == found
