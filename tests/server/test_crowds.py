"""Crowds, bodies in one place: they are warned of with the number of pairs, or refused, before any pair is found."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from lapjoint import Box, Contacts, LapjointError, Params, PenetrationWarning, Scene, Simulation, Sphere
from lapjoint.server.crowds import check_crowds
from lapjoint.workers import worker
from lapjoint.workers.codec import write
from lapjoint.workers.messages import StepReply
from lapjoint.workers.runtimes.child import mailbox_size

SHAPE = Box((0.4, 0.2, 0.3))


def crowd(count: int, **options: object) -> Scene:
    scene = Scene("crowd", timestep=0.004)
    scene.add_body(Sphere(0.1), (5.0, 0.0, 1.0))
    scene.add_bodies(SHAPE, np.tile([0.0, 0.0, 1.0], (count, 1)), **options)
    return scene


def test_a_crowd_is_warned_of_with_its_pairs_and_its_first_body() -> None:
    with pytest.warns(
        PenetrationWarning, match=r"about 319,600 pairs .* 800 bodies where body 1 is: expect 0.8 GB and"
    ):
        assert check_crowds(crowd(800))


def test_a_larger_one_is_refused_before_anything_starts() -> None:
    with pytest.raises(
        LapjointError, match=r"'crowd': about 12,497,500 pairs .* 5,000 bodies where body 1 is, expected"
    ):
        Simulation(crowd(5000), Params(runtime="inline"))


def test_bodies_that_are_added_in_one_place_are_refused() -> None:
    with Simulation(crowd(1), Params(runtime="inline")) as simulation:
        with pytest.raises(LapjointError, match=r"where body 2 is, expected at most 10,000,000 pairs"):
            simulation.bodies.add(SHAPE, np.tile([0.0, 0.0, 3.0], (5000, 1)))
        assert simulation.scene.body_count == 2


def test_no_crowd_is_seen_where_there_is_none() -> None:
    scene = Scene("heap")
    scene.add_bodies(Sphere(0.1), 0.19 * np.indices((20, 20, 20)).reshape(3, -1).T)
    scene.add_bodies(Sphere(50.0), [(0.0, 0.0, 200.0 * k) for k in range(1, 100)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not check_crowds(scene)
        assert not check_crowds(crowd(5000, group=1, mask=2)), "they pass through each other"
        assert not check_crowds(crowd(500))


@pytest.mark.filterwarnings("ignore:scene .crowd")
@pytest.mark.parametrize("coupling", ["tight", "blend"])
def test_more_contacts_than_fit_into_a_reply_are_fetched(coupling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> tuple[str, list[list[int]]]:
        with Simulation(crowd(40), Params(workers=2, coupling=coupling, runtime="inline")) as simulation:
            simulation.step()
            simulation.step()
            return simulation.state_hash, simulation.contacts.pairs().bodies.tolist()

    wanted = found()
    assert len(wanted[1]) == 40 * 39 // 2
    monkeypatch.setattr(worker, "MOST_CONTACTS", 1)
    assert found() == wanted


def test_contacts_of_a_reply_fit_into_it() -> None:
    contacts = worker.MOST_CONTACTS * 1000
    reply = StepReply(Contacts(np.zeros((contacts, 2), np.int32), np.zeros(contacts, np.int32), np.zeros(contacts)))
    assert write(reply, bytearray(mailbox_size(1000) // 2)) > 0
