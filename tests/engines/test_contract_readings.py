"""What engines promise about what can be read of a step (`lapjoint/engines/readings.py`), if they declare it; those
that do not, refuse to be asked."""

from __future__ import annotations

import numpy as np
import pytest

from engine_support import Kind, Make, params_of, reported, supports_of
from lapjoint import WORLD, Ball, LapjointError, Plane, Scene, Sphere, make_engine
from lapjoint.engines import ReadingEngine
from lapjoint.step_tables.touches import BEGIN, END, TouchReports

GRAVITY, MASS = 9.81, 2.0


def resting(**options: object) -> Scene:
    """A ball on the ground, and one that hangs from the world."""
    scene = Scene("resting", timestep=1 / 240)
    scene.add_static(Plane())
    scene.add_bodies(Sphere(0.5), [(0, 0, 0.5), (3, 0, 2.0)], mass=MASS, **options)
    scene.add_joint(Ball(), 1, WORLD, (3, 0, 2.6))
    return scene


def test_a_joint_holds_what_hangs_from_it(start: Make) -> None:
    start.needs("joint forces")
    engine = start(resting(), keep_forces=True)
    assert isinstance(engine, ReadingEngine)
    engine.step(100)
    forces = engine.joint_forces([0, 0])
    assert forces == pytest.approx(np.tile([0, 0, MASS * GRAVITY, 0, 0, 0], (2, 1)), rel=1e-3, abs=1e-4)
    assert engine.joint_forces([]).shape == (0, 6)
    engine.deactivate([1])
    engine.step(1)
    assert not engine.joint_forces([0]).any()


def test_the_ground_holds_what_lies_on_it(start: Make) -> None:
    start.needs("contact impulses")
    scene = resting()
    engine = start(scene, keep_forces=True)
    assert isinstance(engine, ReadingEngine)
    engine.step(100)
    points = engine.contact_points()
    assert points.bodies.tolist() == [[0, -1]]
    assert points.normal == pytest.approx(np.array([[0, 0, 1.0]]), abs=1e-6)
    assert points.point == pytest.approx(np.zeros((1, 3)), abs=1e-2)
    assert points.depth == pytest.approx([0.0], abs=1e-2)
    assert points.normal_impulse == pytest.approx([MASS * GRAVITY * scene.timestep], rel=1e-3)
    assert np.abs(points.friction_impulse).max() < 1e-6
    assert points.impulse[0, 2] == pytest.approx(points.normal_impulse[0])


def test_touches_begin_and_end(start: Make) -> None:
    """A ball is put on the ground and into the air: in every call all that touches first, then what changes."""
    start.needs("touches")
    engine = start(resting(touch_events=True))
    engine.step(5)
    found = reported(engine, TouchReports)
    assert (found.step.tolist(), found.bodies.tolist(), found.kind.tolist()) == ([0], [[0, -1]], [BEGIN])
    engine.step(5)
    assert reported(engine, TouchReports).kind.tolist() == [BEGIN]
    engine.set_states([0], [[0, 0, 0.5, 1, 0, 0, 0, 0, 0, 9.0, 0, 0, 0]])
    engine.step(5)
    assert reported(engine, TouchReports).kind.tolist()[-1:] == [END]
    engine.step(5)
    assert len(reported(engine, TouchReports)) == 0


def test_engines_without_them_refuse(kind: Kind) -> None:
    features = supports_of(kind[0]).features
    is_bullet = len(kind) > 2
    lacks = is_bullet and kind[2] != "substeps"
    if lacks or "joint forces" not in features or "contact impulses" not in features:
        with pytest.raises(LapjointError, match=r"keep_forces is on, (and the engine|which only the solver)"):
            make_engine(_ball(), params_of(kind, keep_forces=True))
    if lacks or "touches" not in features:
        with pytest.raises(LapjointError, match="body 0 has touch_events, which"):
            make_engine(_ball(touch_events=True), params_of(kind))


def _ball(**options: object) -> Scene:
    scene = Scene("ball")
    scene.add_body(Sphere(0.5), **options)
    return scene
