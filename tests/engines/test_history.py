"""A world is what is in it, not how it came there: after any history it equals one that is built afresh."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine_support import BULLET, Kind, Make, gaps_of, params_of
from lapjoint import (
    WORLD,
    Ball,
    Box,
    Capsule,
    Compound,
    ConvexHull,
    Cylinder,
    Engine,
    Fixed,
    Hinge,
    LapjointError,
    Part,
    Plane,
    Scene,
    Slider,
    Sphere,
    TriangleMesh,
    make_engine,
)
from lapjoint.engines import Changes


@pytest.fixture(params=[BULLET[0], BULLET[3]], ids="-".join)
def kind(request: pytest.FixtureRequest) -> Kind:
    """That results do not depend on the order of arrival is Bullet's promise alone. Each solver and each precision
    once; any short history, below, in all four."""
    kind: Kind = request.param
    return kind


MEGABYTE = 2**20


def heap(columns: int, layers: int) -> Scene:
    """Bodies of every shape over static bodies of every kind, some joined by every kind of joint."""
    rng = np.random.default_rng(1)
    shapes = [
        Sphere(0.2),
        Box((0.4, 0.3, 0.2)),
        Capsule(0.1, 0.2),
        Cylinder(0.2, 0.3),
        ConvexHull(rng.random((20, 3)) * 0.4),
        Compound((Part(Sphere(0.15)), Part(Box((0.3, 0.1, 0.1)), (0.2, 0.1, 0.0)))),
    ]
    grid = np.stack(np.meshgrid(*map(range, (columns, columns, layers)), indexing="ij"), axis=-1).reshape(-1, 3)
    scene = Scene("heap", iterations=10)
    size = 0.42 * columns
    scene.add_static(Plane())
    scene.add_static(Box((0.1, size, 0.5)), (-0.3, size / 2, 0.25))
    slope = [(size, 0.0, 0.0), (2 * size, 0.0, size), (2 * size, size, size), (size, size, 0.0)]
    scene.add_static(TriangleMesh(slope, [(0, 1, 2), (0, 2, 3)]), (-0.3, 0.0, 0.0))
    scene.add_bodies([shapes[k % len(shapes)] for k in range(len(grid))], grid * 0.42 + [0.0, 0.0, 0.3])
    joints = [Ball(), Hinge((0.0, 1.0, 0.0)), Slider((0.0, 0.0, 1.0), (-0.1, 0.1)), Fixed()]
    for k in range(0, scene.body_count - 1, 12):
        middle = scene.bodies.position[k : k + 2].mean(axis=0)
        scene.add_joint(joints[(k // 12) % len(joints)], k, k + 1, middle)
    scene.add_joint(Ball(), 2, WORLD, scene.bodies.position[2])
    scene.ignore([0, 5], [6, 7])
    return scene


def settle(engine: Engine, scene: Scene, steps: int) -> np.ndarray:
    engine.activate(np.arange(scene.body_count), scene.states)
    engine.step(steps)
    return engine.get_states()


def toggle(engine: Engine, states: np.ndarray, count: int, rng: np.random.Generator) -> None:
    """`count` activations and deactivations of random bodies in random batches, with steps in between."""
    while count > 0:
        ids = rng.choice(len(states), min(count, int(rng.integers(1, 20))), replace=False)
        active = np.isin(ids, engine.active_ids)
        engine.deactivate(ids[active])
        engine.activate(ids[~active], states[ids[~active]])
        if rng.random() < 0.05:
            engine.step()
        count -= len(ids)


def contacts_of(engine: Engine) -> tuple[bytes, ...]:
    contacts = engine.contacts()
    return contacts.bodies.tobytes(), contacts.point_count.tobytes(), contacts.depth.tobytes()


@pytest.mark.slow
def test_ten_thousand_comings_and_goings_leave_no_trace(make: Make) -> None:
    scene = heap(5, 12)
    settled = settle(make(scene), scene, 600)
    rng = np.random.default_rng(2)
    engine = make(scene)
    engine.activate(np.arange(scene.body_count), settled)
    toggle(engine, settled, 10_000, rng)
    ids = engine.active_ids
    assert 100 < len(ids) < 200
    engine.set_states(ids, settled[ids])
    engine.change(Changes(forgets_contacts=True))

    fresh = make(scene)
    fresh.activate(ids, settled[ids])
    np.testing.assert_array_equal(engine.live_joint_ids, fresh.live_joint_ids)
    assert len(fresh.live_joint_ids) > 5
    engine.contacts(now=True)
    fresh.contacts(now=True)
    assert contacts_of(engine) == contacts_of(fresh)
    assert len(fresh.contacts()) > 50
    for _ in range(100):
        engine.step()
        fresh.step()
        assert engine.get_states().tobytes() == fresh.get_states().tobytes()
        assert contacts_of(engine) == contacts_of(fresh)


def resident() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def memory_growth(kind: Kind) -> dict[str, int]:
    """Bytes that this process has grown by, after a warm-up, when it should not have grown."""
    params = params_of(kind)
    scene = heap(5, 6)
    engine = make_engine(scene, params)
    settled = settle(engine, scene, 300)
    rng = np.random.default_rng(3)
    growth = {}

    toggle(engine, settled, 10_000, rng)
    before = resident()
    toggle(engine, settled, 20_000, rng)
    growth["comings and goings"] = resident() - before
    engine.deactivate(engine.active_ids)
    growth["all gone"] = resident() - before

    for engine_count in (20, 100):
        before = resident()
        for _ in range(engine_count):
            settle(make_engine(scene, params), scene, 2)
        growth["engines made and forgotten"] = resident() - before
    return growth


@pytest.mark.slow
def test_comings_and_goings_take_no_memory(kind: Kind) -> None:
    """In a fresh process, where no free memory of earlier tests hides a leak: 50 bytes a body would be noticed."""
    code = (
        "import json, sys; sys.path.append('engines'); import test_history; "
        "print(json.dumps(test_history.memory_growth(sys.argv[1:])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *kind], cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True
    )
    growth = json.loads(done.stdout)
    assert len(growth) == 3
    assert {what: size for what, size in growth.items() if size > 0.5 * MEGABYTE} == {}


class Comings(RuleBasedStateMachine):
    """Any sequence of calls, mirrored in Python: who is active, which joints are live, what was set and not stepped."""

    kind = BULLET[0]
    scene = heap(2, 4)
    states = settle(make_engine(scene), scene, 200)
    ids = st.lists(st.integers(0, scene.body_count - 1), max_size=6, unique=True)

    def __init__(self) -> None:
        super().__init__()
        self.engine = self.make()
        self.active: set[int] = set()

    def make(self) -> Engine:
        return make_engine(self.scene, params_of(self.kind))

    @rule(ids=ids)
    def come(self, ids: list[int]) -> None:
        new = [i for i in ids if i not in self.active]
        self.engine.activate(new, self.states[new])
        self.active |= set(new)

    @rule(ids=ids)
    def go(self, ids: list[int]) -> None:
        old = [i for i in ids if i in self.active]
        self.engine.deactivate(old)
        self.active -= set(old)

    @rule(count=st.integers(1, 3))
    def step(self, count: int) -> None:
        self.engine.step(count)

    @rule()
    def detect(self) -> None:
        self.engine.contacts(now=True)
        for a, b in self.engine.contacts().bodies.tolist():
            assert a in self.active
            assert b in self.active or -self.scene.static_count <= b < 0

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def mistake(self, data: Any) -> None:
        """A batch with one wrong body changes nothing, not even for the right ones."""
        active = data.draw(st.sampled_from(sorted(self.active)))
        missing = sorted(set(range(self.scene.body_count)) - self.active)
        with pytest.raises(LapjointError, match=f"body {active} "):
            self.engine.activate([*missing, active], self.states[[*missing, active]])
        if missing:
            with pytest.raises(LapjointError, match=f"body {missing[0]} "):
                self.engine.deactivate([active, missing[0]])

    @precondition(lambda self: self.active)
    @rule()
    def equals_a_fresh_world(self) -> None:
        """With the same states, and contacts forgotten, the next steps are those of a world built in one go."""
        ids = sorted(self.active)
        states = self.engine.get_states()
        self.engine.set_states(ids, states)
        self.engine.change(Changes(forgets_contacts=True))
        fresh = self.make()
        fresh.activate(ids, states)
        for _ in range(2):
            self.engine.step()
            fresh.step()
            assert self.engine.get_states().tobytes() == fresh.get_states().tobytes()
            assert contacts_of(self.engine) == contacts_of(fresh)

    @invariant()
    def active_and_live_are_as_mirrored(self) -> None:
        assert self.engine.active_ids.tolist() == sorted(self.active)
        joints = self.scene.joints
        there = self.active | {WORLD}
        live = [j for j in range(len(joints)) if {joints.body_a[j], joints.body_b[j]} <= there]
        assert self.engine.live_joint_ids.tolist() == live
        assert gaps_of(self.engine)[0].tolist() == live
        assert self.engine.get_states().shape == (len(self.active), 13)


def _state_machine_test(pair: Kind) -> type:
    machine = type("_".join(pair), (Comings,), {"kind": pair})
    case: type = machine.TestCase  # type: ignore[attr-defined]
    case.settings = settings(max_examples=30, stateful_step_count=25)  # type: ignore[attr-defined]
    return case


for _pair in BULLET:
    globals()["TestAnyHistory_" + "_".join(_pair)] = _state_machine_test(_pair)
