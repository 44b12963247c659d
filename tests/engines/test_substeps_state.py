"""What the substep solver's next step depends on: states, contacts with their impulses, joints with theirs."""

from __future__ import annotations

from dataclasses import fields
from hashlib import sha256

import numpy as np
import pytest

from lapjoint import (
    FREE,
    LOCKED,
    Ball,
    Box,
    Engine,
    Fixed,
    Hinge,
    Material,
    Motor,
    Params,
    Plane,
    Scene,
    SixAxis,
    Slider,
    Sphere,
    Spring,
    Substeps,
    make_engine,
    scenes,
)
from lapjoint.engines import EngineState
from substep_support import JOINTS, PRECISIONS, started

pytestmark = [pytest.mark.parametrize("precision", PRECISIONS), pytest.mark.parametrize("joints", JOINTS)]
IMPULSE, KEPT = 26, (30, 31, 32, 33, 34, 27)  # columns of EngineState.points: of a point, of its manifold
COUNT = 32


def heap() -> Scene:
    """Boxes and balls that fall on each other, with every kind of joint, rolling friction and restitution."""
    rng = np.random.default_rng(0)
    surface = Material(rolling_friction=0.01, restitution=0.3)
    scene = Scene(timestep=0.002)
    scene.add_static(Plane(), material=surface)
    places = rng.uniform(-0.6, 0.6, (COUNT, 3)) + [0.0, 0.0, 0.9]
    shapes = [Box((0.3, 0.2, 0.25)) if k % 2 else Sphere(0.12) for k in range(COUNT)]
    bodies = scene.add_bodies(shapes, places, material=surface)
    scene.add_joints(Ball(), bodies[0:20:2], bodies[1:20:2], (places[0:20:2] + places[1:20:2]) / 2)
    spring = SixAxis(angular=((-0.3, 0.3), FREE, LOCKED), springs={4: Spring(3.0, 0.1)})
    kinds = [Hinge((0.0, 1.0, 0.0), (-0.5, 0.5), Motor(1.0, 2.0)), spring, Slider(limits=(-0.1, 0.1)), Fixed()]
    for k, joint in enumerate(kinds):
        scene.add_joint(joint, bodies[20 + 2 * k], bodies[21 + 2 * k], places[20 + 2 * k])
    return scene


def hash_of(engine: Engine) -> str:
    state, found = engine.state(), sha256()
    for column in fields(EngineState):
        found.update(np.ascontiguousarray(getattr(state, column.name)).tobytes())
    return found.hexdigest()


def empty(scene: Scene, precision: str, joints: str) -> Engine:
    return make_engine(scene, Params(solver="substeps", precision=precision, substeps=Substeps(joints=joints)))


def test_the_order_of_arrival_does_not_matter(joints: str, precision: str) -> None:
    scene = heap()
    one, other = started(scene, precision, joints=joints), empty(scene, precision, joints)
    for body in np.random.default_rng(5).permutation(COUNT):
        other.activate([body], scene.states[[body]])
    for engine in (one, other):
        engine.step(250)
    assert len(one.contacts()) > 10
    assert hash_of(one) == hash_of(other)


def test_another_engine_goes_on_bit_for_bit(joints: str, precision: str) -> None:
    scene = heap()
    one, other = started(scene, precision, joints=joints), empty(scene, precision, joints)
    one.step(250)
    state = one.state()
    assert np.abs(state.joint_impulses).max() > 0
    assert np.abs(state.points[:, IMPULSE]).max() > 0
    assert np.abs(state.points[:, KEPT]).max() > 0, "friction is in it"
    other.restore(state)
    assert hash_of(other) == hash_of(one)
    for engine in (one, other):
        engine.step(50)
    assert hash_of(other) == hash_of(one)


@pytest.mark.parametrize("columns", [(IMPULSE,), KEPT], ids=["normal", "friction"])
def test_impulses_of_contacts_are_part_of_the_state(columns: tuple[int, ...], joints: str, precision: str) -> None:
    scene = heap()
    one, other = started(scene, precision, joints=joints), empty(scene, precision, joints)
    one.step(250)
    state = one.state()
    state.points[:, columns] = 0
    other.restore(state)
    for engine in (one, other):
        engine.step()
    assert not np.array_equal(one.get_states(), other.get_states())


def test_bodies_that_leave_and_come_back_leave_no_trace(joints: str, precision: str) -> None:
    scene = heap()
    used, fresh = started(scene, precision, joints=joints), started(scene, precision, joints=joints)
    used.step(150)
    used.deactivate(np.arange(COUNT))
    used.activate(np.arange(COUNT), scene.states)
    for engine in (used, fresh):
        engine.step(100)
    assert hash_of(used) == hash_of(fresh)


def test_reading_a_state_changes_nothing(joints: str, precision: str) -> None:
    scene = heap()
    watched, alone = (started(scene, precision, joints=joints) for _ in range(2))
    for _ in range(150):
        watched.step()
        watched.state()
        watched.contacts()
    alone.step(150)
    assert hash_of(watched) == hash_of(alone)


@pytest.mark.slow
def test_a_state_that_is_read_between_detection_and_step_tells_new_contacts(joints: str, precision: str) -> None:
    """Where most contacts are new a step sweeps more: a restored engine has to know which ones are."""
    scene = scenes.build("bowl", 60)
    engine = started(scene, precision, joints=joints, timestep=0.005)
    for _ in range(70):
        engine.prepare([])
        other = make_engine(scene, engine.params)
        other.restore(engine.state())
        for one in (engine, other):
            one.step()
        assert hash_of(other) == hash_of(engine)
