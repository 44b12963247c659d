"""Errors at interfaces beside those inside workers."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lapjoint import Contacts, Params, Simulation, scenes
from lapjoint.measures.interfaces import EVERY, InterfaceErrors, excess
from lapjoint.run import run
from tight_runs import pids


def step(at: list[int], pairs: list[tuple[int, int]], depth: list[float], steps: int = 1) -> Any:
    """What a step of four bodies, or several at once, leaves: bodies at interfaces, and contacts."""
    contacts = Contacts(np.array(pairs, np.int32).reshape(-1, 2), np.ones(len(pairs), np.int32), np.array(depth))
    scene = SimpleNamespace(body_count=4, joint_alive=np.zeros(0, bool), joints=None)
    none = np.empty(0, np.int32)
    profile = SimpleNamespace(steps=steps)
    workers = SimpleNamespace(overlap=np.array(at, np.int32), interface=none)
    pairs_now = SimpleNamespace(pairs=lambda: contacts)
    return SimpleNamespace(scene=scene, workers=workers, contacts=pairs_now, profile=profile)


def test_a_contact_is_at_an_interface_with_either_body() -> None:
    errors = InterfaceErrors()
    errors.after_step(step([1], [(0, 1), (1, 2), (2, 3), (3, -1), (1, -2)], [1.0, 3.0, 0.5, 2.0, -1.0]))
    assert errors.values() == {
        "penetration_interface": pytest.approx(((1.0 + 9.0 + 0.0) / 3) ** 0.5),
        "penetration_interior": pytest.approx(((0.25 + 4.0) / 2) ** 0.5),
        "joint_gap_interface": None,
        "joint_gap_interior": None,
    }


def test_some_steps_count_and_means_are_taken() -> None:
    errors = InterfaceErrors()
    for number in range(2 * EVERY):
        depth = float(number // EVERY + 1) if number % EVERY == 0 else 100.0
        errors.after_step(step([0], [(0, 1), (2, 3)], [2 * depth, depth]))
    assert errors.values()["penetration_interface"] == 3.0
    assert errors.values()["penetration_interior"] == 1.5


def test_looks_are_at_the_same_steps_where_several_are_taken_at_once() -> None:
    errors = InterfaceErrors()
    for depth in (1.0, 2.0):
        assert errors.most_steps == (1 if depth == 1 else EVERY)
        errors.after_step(step([0], [(0, 1), (2, 3)], [2 * depth, depth], errors.most_steps))
    errors.after_step(step([0], [(0, 1), (2, 3)], [100.0, 100.0], EVERY - 1))
    assert errors.values()["penetration_interface"] == 3.0
    assert errors.most_steps == 1


@pytest.mark.parametrize("at", [[], [0, 1, 2, 3]])
def test_nothing_is_compared_where_one_side_is_missing(at: list[int]) -> None:
    errors = InterfaceErrors()
    errors.after_step(step(at, [(0, 1), (2, 3)], [1.0, 1.0]))
    assert set(errors.values().values()) == {None}


def test_what_is_worth_a_word() -> None:
    found = excess("penetration", 6e-3, 1e-3, 0.5)
    assert found is not None
    assert found.times == pytest.approx(6)
    assert excess("penetration", 2e-3, 1e-3, 0.5) is None, "twice as much is nothing to speak of"
    assert excess("penetration", 4e-4, 1e-5, 0.5) is None, "nor is less than a thousandth of a body"
    assert excess("penetration", None, None, 0.5) is None
    deep = excess("penetration", 1.0, 0.0, 0.5)
    assert deep is not None
    assert deep.times == np.inf


def test_a_run_has_them_with_several_workers_and_not_with_one() -> None:
    for workers in (1, 2):
        with Simulation(scenes.build("chain"), Params(workers=workers, runtime="inline")) as simulation:
            summary = run(simulation, 3)
        assert (summary.joint_gap_interface is None) == (workers == 1)
        assert (summary.joint_gap_interior is None) == (workers == 1)


@pytest.mark.slow
def test_a_building_that_sinks_at_its_interfaces_is_reported_and_one_that_does_not_is_not() -> None:
    """Blended with the sequential solver it has several times the penetration of one engine. In substeps it is 0.4 mm
    in place of 2.5, too little to be reported."""
    found = {}
    for coupling, solver in (("blend", "sequential"), ("tight", "substeps")):
        params = Params(workers=2, runtime="inline", coupling=coupling, solver=solver)
        with Simulation(scenes.build("building", 300), params) as building:
            summary = run(building, 100)
        pair = summary.penetration_interface, summary.penetration_interior
        found[coupling] = excess("penetration", *pair, summary.length_unit)
    assert found["tight"] is None
    assert found["blend"] is not None
    assert found["blend"].times > 4


def test_a_worker_that_is_gone_when_it_is_asked_does_not_end_the_run() -> None:
    """A run ended with an error where a worker was killed between a step and the look at its contacts."""
    with Simulation(scenes.build("bowl", 60), Params(workers=2, coupling="tight")) as simulation:
        simulation.step(2)
        assert len(simulation.workers.interface)
        assert not all(reply.has_contacts for reply in simulation.profile.replies)
        os.kill(pids(simulation)[1], signal.SIGKILL)
        InterfaceErrors().after_step(simulation)
        simulation.step()
        assert [(incident.kind, incident.worker) for incident in simulation.incidents] == [("gone", 1)]
