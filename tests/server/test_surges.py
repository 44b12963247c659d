"""Energy from nowhere is an incident that names the bodies, and nothing else is."""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint import (
    WORLD,
    Ball,
    Box,
    Capsule,
    ConstantVelocity,
    Drive,
    Hinge,
    Material,
    Motor,
    Params,
    Plane,
    Scene,
    Simulation,
    SimulationStopped,
    SixAxis,
    Sphere,
    Spring,
    scenes,
)
from lapjoint.algorithms.surges import rises
from lapjoint.server.surges import SurgeReports
from lapjoint.step_tables.surges import Surges

pytestmark = pytest.mark.filterwarnings("ignore::lapjoint.AccuracyWarning")
STEPS = int(os.environ.get("LAPJOINT_SURGE_STEPS", "0"))
"""Of every scene of the library, in `make nightly`."""
LINKS, BEGINS = 10, 60
"""Of an arm, and steps within which sweeps have lost it."""


def arm() -> Scene:
    """Links with motors that are stronger than any sweep can hold together."""
    scene = Scene("arm", timestep=1 / 60)
    scene.add_bodies(Box((0.8, 0.1, 0.1)), [(0.5 + k, 0, 0) for k in range(LINKS)], mass=1.0, group=2, mask=0)
    for k in range(LINKS):
        scene.add_joint(Hinge(axis=(0, 1, 0), motor=Motor(1.0, 1e5)), k, k - 1 if k else WORLD, (float(k), 0, 0))
    return scene


def simulation(scene: Scene, **params: object) -> Simulation:
    return Simulation(scene, Params.from_options(**{"runtime": "inline", "joints": "swept", **params}))


def surges(of: Simulation) -> list[str]:
    return [one.text for one in of.incidents if one.kind == "surge"]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_flies_apart_is_one_incident_that_names_bodies_and_what_helps(workers: int) -> None:
    with simulation(arm(), workers=workers, **({"coupling": "tight"} if workers > 1 else {})) as run:
        run.step(2 * BEGINS)
        (found,) = [one for one in run.incidents if one.kind == "surge"]
        assert set(found.body_ids) <= set(range(LINKS))
        assert found.body_ids
        assert found.text.startswith("energy from nowhere: ")
        assert "body" in found.text
        assert "a shorter timestep, more substeps or joints=direct may help" in found.text
        assert not found.is_failure
        assert found.to_dict()["kind"] == "surge"


def test_what_is_reported_is_what_the_readable_account_finds() -> None:
    scene, found = arm(), 0
    touching = list(pairwise(range(LINKS)))
    with simulation(scene) as run:
        for _ in range(BEGINS):
            before = run.states
            run.step()
            energy, limit = rises(scene, before, run.states, touching)[0]
            (reply,) = run._core.now.replies
            surges_now = reply.table(Surges)
            if len(surges_now):
                found += 1
                assert surges_now.limit[0] == pytest.approx(limit, rel=1e-3)
                assert limit < surges_now.energy[0] <= energy * 1.001  # less what motors and gaps may give
    assert found


def test_a_run_stops_before_the_step() -> None:
    with simulation(arm()) as run:
        while not surges(run):
            before, count = run.states, run.step_count
            run.step()
    with simulation(arm(), on_surge="stop") as run:
        with pytest.raises(SimulationStopped, match="energy from nowhere at"):
            run.step(BEGINS)
        assert run.step_count == count
        assert [one.kind for one in run.incidents] == ["surge", "stop"]
        assert np.array_equal(before, run._core.runtime.states)


def test_bodies_are_frozen_where_they_were() -> None:
    with simulation(arm(), on_surge="quarantine") as run:
        while not len(run.bodies.frozen_ids) and run.step_count < BEGINS:
            before = run.states
            run.step()
        frozen = run.bodies.frozen_ids
        assert [one.kind for one in run.incidents] == ["surge", "quarantine"]
        assert run.incidents[1].body_ids == (*frozen.tolist(),)
        assert np.array_equal(run.states[frozen, :7], before[frozen, :7])
        run.step()


def test_states_do_not_depend_on_it() -> None:
    hashes = set()
    for on_surge in ("report", "ignore"):
        with simulation(arm(), on_surge=on_surge) as run:
            run.step(BEGINS)
            hashes.add(run.state_hash)
            assert bool(surges(run)) == (on_surge == "report")
            state = run._core.recovery.state()
            assert bool(state.values["surged"]) == (on_surge == "report")
    assert len(hashes) == 1


def test_a_surge_is_told_once_and_islands_of_two_workers_are_one() -> None:
    with simulation(arm()) as run:
        reports = SurgeReports(run.scene, run.params)
        step, body, island = (np.array(row, np.int32) for row in ([4, 4, 4], [0, 1, 5], [0, 0, 5]))
        found = Surges(step, body, island, np.array([9.0, 9.0, 3.0]), np.ones(3))
        first, second = reports.incidents(found, 10)
        assert (first.step_count, first.body_ids, second.body_ids) == (14, (0, 1), (5,))
        assert not reports.incidents(found, 20)
        body[2] = 1  # of the overlap, in both
        reports.named.clear()
        assert [one.body_ids for one in reports.incidents(found, 10)] == [(0, 1)]


# ---- no false alarms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chain", "plank", "cable", "wrecking", "belt"])
def test_scenes_of_the_library_have_none(name: str) -> None:
    with Simulation(scenes.build(name), Params(runtime="inline")) as run:
        run.step(40)
        assert not surges(run)


@pytest.mark.skipif(not STEPS, reason="make nightly")
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", scenes.names())
def test_no_scene_of_the_library_has_any_for_long(name: str, workers: int) -> None:
    with Simulation(scenes.build(name), Params(workers=workers)) as run:
        run.step(STEPS)
        assert not surges(run)


@st.composite
def falling(draw: st.DrawFn) -> Scene:
    """Bodies that fall on each other and on a floor that may move, and arms with motors, drives and springs."""
    scene = Scene("falling", timestep=draw(st.sampled_from([1 / 60, 1 / 120, 0.004, 0.002])))
    scene.add_static(Plane())
    if draw(st.booleans()):
        speed = draw(st.floats(-2, 2))
        scene.add_kinematic(Box((1, 4, 0.4)), (-2, 0, 0.2), motion=ConstantVelocity((speed, 0, 0)))
    for k in range(draw(st.integers(1, 6))):
        shape = draw(st.sampled_from([Sphere(0.2), Box((0.4, 0.3, 0.3)), Capsule(0.12, 0.3)]))
        velocity = [draw(st.floats(-4, 4)) for _ in range(3)]
        mass = draw(st.sampled_from([0.5, 1.0, 3.0]))
        bounce = draw(st.sampled_from([0.0, 0.5, 1.0]))
        at = (draw(st.floats(-1, 1)), draw(st.floats(-0.3, 0.3)), 0.4 + 0.7 * k)
        scene.add_body(
            shape,
            at,
            linear_velocities=velocity,
            mass=mass,
            material=Material(restitution=bounce),
        )
    links = draw(st.integers(0, 4))
    for k in range(links):
        body = scene.add_body(Box((0.3, 0.1, 0.1)), (3 + 0.32 * k, 0, 2.5), mass=1.0)
        axis = draw(st.sampled_from([(0, 1, 0), (0, 0, 1)]))
        joint = draw(
            st.sampled_from(
                [
                    Ball(),
                    Hinge(axis),
                    Hinge(axis, limits=(-0.3, 0.3)),
                    Hinge(axis, motor=Motor(3.0, 20.0)),
                    Hinge(axis, drive=Drive(stiffness=300.0, damping=10.0, position=0.5)),
                    SixAxis(linear=((0, 0), (0, 0), (-0.2, 0.2)), springs={2: Spring(200.0, 2.0)}),
                ]
            )
        )
        scene.add_joint(joint, body, body - 1 if k else WORLD, (2.84 + 0.32 * k, 0, 2.5))
    return scene


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(falling(), st.integers(1, 2))
def test_what_falls_swings_and_is_driven_has_none(scene: Scene, workers: int) -> None:
    with simulation(scene, workers=min(workers, scene.body_count), joints="auto") as run:
        run.step(60)
        assert not surges(run)
