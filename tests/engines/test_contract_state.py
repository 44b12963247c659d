"""What an engine with the feature "contact cache" promises: another engine that is given it goes on bit for bit."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from engine_support import ENGINES, Kind, Make, is_installed, supports_of
from lapjoint import Box, Capsule, Compound, Engine, LapjointError, Part, Plane, Scene, Sphere, scenes
from lapjoint.engines import EngineState

HAVE_IT = [kind for kind in ENGINES if is_installed(kind[0]) and "contact cache" in supports_of(kind[0]).features]


@pytest.fixture(params=HAVE_IT, ids="-".join)
def kind(request: pytest.FixtureRequest) -> Kind:
    kind: Kind = request.param
    return kind


def heap() -> Scene:
    """Bodies of all kinds that fall onto each other, onto a plane and onto a compound; one of them skewed."""
    scene = Scene("heap", iterations=12, timestep=0.005)
    scene.add_static(Plane())
    cross = Compound((Part(Box((1.2, 0.2, 0.2))), Part(Box((0.2, 1.2, 0.2)), (0.1, 0.0, 0.0))))
    scene.add_static(cross, position=(0.0, 0.0, 0.3))
    shapes = [Box((0.5, 0.3, 0.4)), Sphere(0.25), Capsule(0.15, 0.4), cross]
    rng = np.random.default_rng(4)
    for i in range(24):
        position = [*rng.uniform(-0.6, 0.6, 2), 0.7 + 0.35 * i]
        quaternion = rng.normal(size=4)
        scene.add_body(
            shapes[i % 4], position, quaternion / np.linalg.norm(quaternion), angular_velocity=rng.normal(size=3)
        )
    return scene


SCENES = {
    "heap": (heap, 320),
    "young heap": (heap, 190),  # parts of compounds that have just left each other still have contact points
    "bowl": (lambda: scenes.build("bowl", 120), 250),
    "building": (lambda: scenes.build("building", 110), 40),
    "two-way-bridge": (lambda: scenes.build("two-way-bridge", 106), 40),
    "chain-net": (lambda: scenes.build("chain-net", 60), 60),
}


def go_on_alike(one: Engine, other: Engine, steps: int) -> None:
    for _ in range(steps):
        one.step()
        other.step()
        assert np.array_equal(one.get_states(), other.get_states())
    assert np.array_equal(one.contacts().bodies, other.contacts().bodies)
    assert np.array_equal(one.contacts().depth, other.contacts().depth)


@pytest.mark.parametrize(
    ("name", "prepared"),
    [
        ("heap", True),
        ("young heap", False),
        ("bowl", True),
        ("building", False),
        ("two-way-bridge", True),
        pytest.param("chain-net", False, marks=pytest.mark.slow),
    ],
)
def test_an_engine_goes_on_bit_for_bit_from_a_state(make: Make, start: Make, name: str, prepared: bool) -> None:
    build, steps = SCENES[name]
    scene = build()
    engine = start(scene)
    engine.step(steps)
    if prepared:
        engine.prepare(np.arange(0, scene.body_count, 5))
    memory = engine.state()
    before = engine.get_states()
    twin = make(scene)
    twin.restore(memory)
    assert np.array_equal(twin.active_ids, engine.active_ids)
    assert np.array_equal(twin.live_joint_ids, engine.live_joint_ids)
    assert np.array_equal(twin.get_states(), before)
    again = twin.state()
    for field in fields(EngineState):
        assert np.array_equal(getattr(again, field.name), getattr(memory, field.name)), field.name
    assert len(memory.points) > 15
    go_on_alike(engine, twin, 20 if name == "chain-net" else 60)


def test_taking_a_memory_changes_nothing(start: Make) -> None:
    scene = scenes.build("bowl", 120)
    one, other = start(scene), start(scene)
    for _ in range(30):
        one.step()
        other.step()
        one.state()
    assert np.array_equal(one.get_states(), other.get_states())


@pytest.mark.slow
def test_what_an_engine_had_before_is_forgotten(make: Make, start: Make) -> None:
    scene = scenes.build("building", 110)
    some = np.arange(0, scene.body_count - 10, dtype=np.int32)
    engine = make(scene)
    engine.activate(some, scene.states[some])
    engine.step(20)
    busy = start(scene)
    busy.step(50)
    busy.prepare([])
    busy.restore(engine.state())
    assert np.array_equal(busy.active_ids, some)
    go_on_alike(engine, busy, 40)


def test_a_body_can_be_moved_right_after(make: Make, start: Make) -> None:
    scene = heap()
    engine = start(scene)
    engine.step(200)
    engine.prepare([3, 4])
    twin = make(scene)
    twin.restore(engine.state())
    states = engine.get_states([3, 4, 5])
    states[:, 2] += 0.01
    for each in (engine, twin):
        each.set_states([3, 4, 5], states)
        each.deactivate([9])
    go_on_alike(engine, twin, 40)


def test_part_of_a_memory_is_that_of_fewer_bodies(make: Make, start: Make) -> None:
    scene = scenes.build("bowl", 120)
    engine = start(scene)
    engine.step(250)
    has_body = np.arange(scene.body_count) < 70
    part = engine.state().part(has_body)
    twin = make(scene)
    twin.restore(part)
    assert np.array_equal(twin.active_ids, np.flatnonzero(has_body))
    assert 0 < len(part.points) < len(engine.state().points)
    engine.deactivate(np.flatnonzero(~has_body))
    go_on_alike(engine, twin, 30)


def test_a_memory_of_another_kind_is_refused(make: Make, start: Make) -> None:
    scene = scenes.build("bowl", 120)
    engine = start(scene)
    engine.step(250)
    memory = engine.state()
    with pytest.raises(LapjointError, match="of another engine or precision"):
        make(scene).restore(replace(memory, bodies=memory.bodies.astype(np.float16)))
    with pytest.raises(LapjointError, match="of another engine or precision"):
        make(scene).restore(replace(memory, points=memory.points[:, 1:]))
    with pytest.raises(LapjointError, match="not both active"):
        make(scene).restore(
            replace(memory, body_ids=memory.body_ids[:1], bodies=memory.bodies[:1], prepared=memory.prepared[:1])
        )
    for body in (5, -1):
        with pytest.raises(LapjointError, match=f"bodies {body} and {body}, which cannot touch"):
            make(scene).restore(replace(memory, point_bodies=np.full_like(memory.point_bodies, body)))


def test_impulses_of_contacts_that_have_no_point_for_the_moment_go_on(kind: Kind, make: Make, start: Make) -> None:
    """A body that is set elsewhere, where the engine looks, and back has kept what it was carried with."""
    scene = scenes.build("building", 110)
    engine = start(scene)
    engine.step(20)
    lifted = np.arange(0, scene.body_count, 7)
    states = engine.get_states(lifted)
    engine.set_states(lifted, states + np.eye(1, 13, 2) * 50.0)
    engine.contacts(now=True)
    memory = engine.state()
    twin, forgetful = make(scene), make(scene)
    twin.restore(memory)
    forgetful.restore(replace(memory, passed_impulses=np.zeros_like(memory.passed_impulses)))
    for each in (engine, twin, forgetful):
        each.set_states(lifted, states)
        each.step()
    assert np.array_equal(engine.get_states(), twin.get_states())
    kept = bool(len(memory.passed_impulses))
    assert kept == (kind[2] == "substeps"), "other solvers keep impulses in the points"
    assert kept != np.array_equal(engine.get_states(), forgetful.get_states())
