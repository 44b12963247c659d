"""Substeps that a step takes until no contact overlaps by more than a tolerance."""

from __future__ import annotations

import numpy as np
import pytest

from lapjoint import LapjointError, Params, Scene, make_engine, scenes
from lapjoint.engines import EngineState
from lapjoint.engines.bullet import BulletEngine
from substep_support import PRECISIONS, started

pytestmark = pytest.mark.parametrize("precision", PRECISIONS)


def engine_of(scene: Scene, precision: str, **params: object) -> BulletEngine:
    engine = started(scene, precision, **params)
    assert isinstance(engine, BulletEngine)
    return engine


def restored(scene: Scene, state: EngineState, precision: str, **params: object) -> BulletEngine:
    engine = make_engine(scene, Params.from_options(solver="substeps", precision=precision, **params))
    engine.restore(state)
    assert isinstance(engine, BulletEngine)
    return engine


def same(a: EngineState, b: EngineState) -> bool:
    """To the last bit: states, contact points and impulses."""
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in ("bodies", "point_bodies", "point_numbers", "points", "joint_impulses")
    )


def test_no_contact_overlaps_by_more(precision: str) -> None:
    scene = scenes.build("bowl", 60)
    engine = engine_of(scene, precision, tolerance=1e-4)
    plain = engine_of(scene, precision)
    counts, deepest = [], []
    for _ in range(150):
        engine.step()
        plain.step()
        assert engine.substep_overlap() <= 1e-4
        counts.append(engine.report().substeps)
        deepest.append(plain.contacts().penetration)
    assert min(counts) == 4 < max(counts) < 64, "some steps need more, some do not"
    assert set(counts) <= {4, 8, 16, 32}
    assert max(deepest) > 1e-4, "without it they do"


def test_what_a_step_leaves_is_what_the_next_one_finds(precision: str) -> None:
    """The overlap is that of contacts as they were found, whose bodies have moved; found again, it is the same."""
    scene = scenes.build("pyramid", 6)
    engine = engine_of(scene, precision, tolerance=3e-6)
    engine.step(30)
    left = engine.substep_overlap()
    engine.contacts(now=True)
    assert engine.contacts().penetration == pytest.approx(left, rel=0.02, abs=2e-7)


@pytest.mark.parametrize("name", ["pyramid", "bridge"])
@pytest.mark.parametrize(("wanted", "tolerance"), [(4, 1.0), (16, 1e-12), (64, 1e-12)])
def test_a_step_is_that_of_as_many_substeps(name: str, wanted: int, tolerance: float, precision: str) -> None:
    """Nothing is left of tries with fewer, and warm starts are right for any number. Damping and gyroscopic motion
    too. Joints are direct: swept ones stay as stiff as with the first number."""
    scene = scenes.build(name, 8) if name == "pyramid" else scenes.build(name, 106)
    scene.bodies.linear_damping[:], scene.bodies.angular_damping[:] = 0.2, 0.3
    scene.bodies.angular_velocity[:, 1] = 0.1
    engine = engine_of(scene, precision)
    engine.step(20)
    state = engine.state()
    tried = restored(scene, state, precision, tolerance=tolerance, max_substeps=wanted)
    plain = restored(scene, state, precision, substeps=wanted)
    for each in (tried, plain):
        each.step()
        assert each.report().substeps == wanted
    assert same(tried.state(), plain.state())
    assert tried.report().residual == plain.report().residual


def test_a_tolerance_that_is_never_exceeded_changes_nothing(precision: str) -> None:
    scene = scenes.build("bridge", 106)
    for joints in ("direct", "swept"):
        loose, plain = (
            engine_of(scene, precision, joints=joints, **more) for more in ({"tolerance": 1.0}, {"substeps": 4})
        )
        loose.step(20)
        plain.step(20)
        assert same(loose.state(), plain.state())


def test_the_limit_need_not_be_a_doubling(precision: str) -> None:
    scene = scenes.build("pyramid", 6)
    engine = engine_of(scene, precision, substeps=3, tolerance=1e-12, max_substeps=20)
    for _ in range(3):
        engine.step()
        assert engine.report().substeps == 20
        assert engine.substep_overlap() > 1e-12


def test_it_depends_on_the_step_alone(precision: str) -> None:
    """An engine that goes on from a state takes the same steps: no number of substeps is remembered."""
    scene = scenes.build("bowl", 60)
    engine = engine_of(scene, precision, tolerance=2e-5)
    counts = set()
    for _ in range(15):
        engine.step(10)
        fresh = restored(scene, engine.state(), precision, tolerance=2e-5)
        engine.step()
        fresh.step()
        assert fresh.report().substeps == engine.report().substeps
        assert same(fresh.state(), engine.state())
        counts.add(engine.report().substeps)
    assert len(counts) > 1


def test_swept_joints_gain_no_energy_where_contacts_need_more_substeps(precision: str) -> None:
    scene = scenes.build("bridge", 106)
    speeds = []
    for more in ({"substeps": 4}, {"tolerance": 5e-7}):
        engine, found = engine_of(scene, precision, joints="swept", **more), 0.0
        for _ in range(100):
            engine.step()
            found += float((engine.get_states()[:, 7:10] ** 2).sum())
        speeds.append(found)
    assert engine.report().substeps > 4
    assert speeds[1] == pytest.approx(speeds[0], rel=0.05)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tolerance": -1e-3}, "tolerance is -0.001, expected"),
        ({"tolerance": 1e-3, "max_substeps": 3}, "max_substeps is 3, expected at least substeps, 4"),
        ({"tolerance": 1e-3, "substeps": 100}, "max_substeps is 64, expected at least substeps, 100"),
        ({"max_substeps": 32}, "max_substeps is 32 and tolerance is 0, expected a tolerance"),
        ({"tolerance": 1e-3, "solver": "sequential"}, "`tolerance` is given, but the solver is sequential"),
        ({"tolerance": 1e-3, "iterations": 7}, "`tolerance` is given, but the solver is sequential"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, object], message: str, precision: str) -> None:
    with pytest.raises(LapjointError, match=message):
        Params.from_options(precision=precision, **given).resolved(Scene())
