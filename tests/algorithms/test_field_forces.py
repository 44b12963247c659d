"""Forces of fields: the readable twin and the native one, on random bodies, shapes and fields."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint import (
    Attractor,
    Box,
    BoxRegion,
    Buoyancy,
    Capsule,
    Compound,
    ConvexHull,
    Cylinder,
    Drag,
    Gravity,
    Params,
    Part,
    Scene,
    Sphere,
    SphereRegion,
    Wind,
    make_engine,
)
from lapjoint.algorithms.field_forces import FieldShapes, ahead_share, cut_surface, field_forces, submerged
from lapjoint.engines.bullet import BulletEngine
from lapjoint.scene.shapes import mass_properties
from lapjoint.scene.surfaces import surface_triangles, volume_of

SHAPES = [
    Sphere(0.4),
    Box((0.9, 0.5, 0.3)),
    Capsule(0.2, 0.6),
    Cylinder(0.4, 0.3),
    ConvexHull(np.random.default_rng(0).normal(size=(20, 3)) * 0.3),
    Compound((Part(Box((0.6, 0.2, 0.2)), (0.2, 0, 0)), Part(Sphere(0.2), (-0.3, 0.1, 0), (0.8, 0.6, 0, 0)))),
]


def random_scene(seed: int, count: int = 12) -> Scene:
    rng = np.random.default_rng(seed)
    scene = Scene("fields", gravity=rng.normal(size=3) * 5, timestep=0.01)
    turns = rng.normal(size=(count, 4))
    scene.add_bodies(
        [SHAPES[k] for k in rng.integers(len(SHAPES), size=count)],
        rng.normal(size=(count, 3)) * 0.5 + np.arange(count)[:, None] * [20.0, 0, 0],
        turns / np.linalg.norm(turns, axis=1)[:, None],
        mass=rng.uniform(0.5, 3.0, count),
        linear_velocities=rng.normal(size=(count, 3)) * 3,
        angular_velocities=rng.normal(size=(count, 3)) * 3,
    )
    half = BoxRegion((-1e3, -1e3, -1e3), (10.0 * count, 1e3, 1e3))
    for field in (
        Gravity(tuple(rng.normal(size=3)), half),
        Drag(rng.uniform(0, 3), rng.uniform(0, 2), rng.uniform(0, 2), SphereRegion((0, 0, 0), 15.0 * count)),
        Wind(tuple(rng.normal(size=3)), rng.uniform(0, 3), rng.uniform(0, 2)),
        Buoyancy(rng.uniform(1, 20), rng.normal() * 0.2, tuple(rng.normal(size=3)), linear_drag=2.0, angular_drag=0.3),
        Attractor(tuple(rng.normal(size=3) * 30), rng.normal() * 20, rng.uniform(-1, 3), rng.uniform(0, 5)),
    ):
        some = None if rng.random() < 0.5 else np.flatnonzero(rng.random(count) < 0.6)
        scene.add_field(field, some)
    return scene


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_native_forces_are_those_of_the_twin(seed: int) -> None:
    scene = random_scene(seed)
    ids = np.arange(scene.body_count, dtype=np.int32)
    engine = make_engine(scene, Params(precision="float64"))
    assert isinstance(engine, BulletEngine)
    engine.activate(ids, scene.states)
    pushes = np.random.default_rng(seed).normal(size=(len(ids), 3))
    engine.add_forces(ids, pushes)
    states = scene.states.copy()
    states[:, :3] += ahead_share(Params().substeps.count) * 0.01 * states[:, 7:10]
    expected = field_forces(scene, FieldShapes(scene), scene.fields, ids, states, pushes, 0.01)
    np.testing.assert_allclose(engine.field_forces(ids), expected, rtol=1e-9, atol=1e-9)
    assert np.abs(expected).max() > 0.1


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_what_is_below_and_what_is_above_make_the_whole(shape: object) -> None:
    scene = Scene("cut")
    rng = np.random.default_rng(1)
    scene.add_body(shape, density=1.0)
    shapes, volume = FieldShapes(scene), mass_properties(shape)[0]
    for _ in range(40):
        normal = rng.normal(size=3)
        normal /= np.linalg.norm(normal)
        turn = rng.normal(size=4)
        state = np.concatenate([rng.normal(size=3), turn / np.linalg.norm(turn), np.zeros(6)])[None]
        level = float(state[0, :3] @ normal + rng.uniform(-0.5, 0.5))
        ids = np.zeros(1, np.int32)
        (below, low), (above, high) = (submerged(shapes, ids, state, side * normal, side * level) for side in (1, -1))
        assert below[0] + above[0] == pytest.approx(
            volume, rel=0.02 if isinstance(shape, (Capsule, Compound)) else 1e-9
        )
        middle = (below[:, None] * low + above[:, None] * high) / (below + above)[:, None]
        np.testing.assert_allclose(middle, state[:, :3], atol=0.01)


def test_a_box_cut_in_the_middle() -> None:
    corners = surface_triangles(Box((2.0, 4.0, 6.0)))[None]
    volume, middle = cut_surface(corners, corners[..., 2], np.zeros((1, 3)))
    assert volume[0] == pytest.approx(24.0)
    np.testing.assert_allclose(middle, [[0, 0, -1.5]], atol=1e-12)
    assert volume_of(corners[0]) == pytest.approx(48.0)
