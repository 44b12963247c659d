"""Ellipsoids, cones and height fields: their mass, their bounds, their files; parts with something of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint import (
    Box,
    Compound,
    Cone,
    ConvexHull,
    Ellipsoid,
    HeightField,
    LapjointError,
    Material,
    Part,
    Plane,
    Scene,
    Sphere,
    fracture,
)
from lapjoint.scene.materials import COMBINE_RULES
from lapjoint.scene.part_filters import widest_filters
from lapjoint.scene.serialize import added_since, describe_scene, extend_scene
from lapjoint.scene.shapes import bounding_box, bounding_radius, mass_properties

lengths = st.floats(0.05, 20.0)
ellipsoids = st.builds(Ellipsoid, st.tuples(lengths, lengths, lengths))
cones = st.builds(Cone, lengths, lengths)


def surface(shape: Ellipsoid | Cone, count: int = 4000) -> np.ndarray:
    """Points of the surface, spread evenly enough that their hull is nearly the shape."""
    if isinstance(shape, Cone):
        return shape.corners(count // 10)
    k = np.arange(count) + 0.5
    z, turn = 1 - 2 * k / count, np.pi * (1 + 5**0.5) * k
    across = np.sqrt(1 - z**2)
    return np.stack([across * np.cos(turn), across * np.sin(turn), z], axis=1) * shape.radii


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.one_of(ellipsoids, cones))
def test_mass_is_that_of_a_hull_with_many_corners(shape: Any) -> None:
    hull = ConvexHull(surface(shape))
    (volume, inertia), (other, expected) = mass_properties(shape), mass_properties(hull)
    np.testing.assert_allclose(volume, other, rtol=5e-3)
    np.testing.assert_allclose(np.diag(inertia), np.diag(expected), rtol=1e-2)
    np.testing.assert_allclose(hull.centre, 0.0, atol=2e-3 * bounding_radius(shape))


@given(st.one_of(ellipsoids, cones))
def test_bounds_hold_the_shape_and_are_no_larger(shape: Any) -> None:
    points = surface(shape)
    centre, half = bounding_box(shape)
    low, high = points.min(axis=0), points.max(axis=0)
    assert (low >= centre - half - 1e-9).all()
    assert (high <= centre + half + 1e-9).all()
    np.testing.assert_allclose(high - low, 2 * half, rtol=5e-3)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1).max(), bounding_radius(shape), rtol=1e-3)


@pytest.mark.parametrize("shape", [Ellipsoid((0.5, 0.3, 0.2)), Cone(0.4, 0.9)])
def test_pieces_of_a_round_shape_have_its_volume(shape: Any) -> None:
    pieces = fracture.cut(shape, fracture.seeds_uniform(shape, 12))
    np.testing.assert_allclose(sum(pieces.volumes), mass_properties(shape)[0], rtol=1e-6)


# ---- height fields -----------------------------------------------------------------------------------------------

fields = st.tuples(st.integers(2, 6), st.integers(2, 6), st.integers(0, 99)).map(
    lambda n: HeightField(np.random.default_rng(n[2]).normal(size=n[:2]), (0.5, 1.5))
)


@given(fields)
def test_heights_are_read_back_at_the_points_of_the_grid(field: HeightField) -> None:
    x, y, z = field.vertices.T
    np.testing.assert_allclose(field.height_at(x * (1 - 1e-12), y * (1 - 1e-12)), z, atol=1e-9)
    np.testing.assert_array_equal(z.reshape(field.heights.shape), field.heights)
    assert x[1] - x[0] == 0.5  # columns are along x
    assert np.isnan(field.height_at([x.max() + 0.1], [0.0])).all()


@given(fields, st.integers(0, 99))
def test_heights_between_are_those_of_the_triangles(field: HeightField, seed: int) -> None:
    rng = np.random.default_rng(seed)
    corners = field.vertices[field.triangles[rng.integers(len(field.triangles))]]
    share = rng.dirichlet(np.ones(3))
    x, y, z = share @ corners
    np.testing.assert_allclose(field.height_at(x, y), z, atol=1e-9)


def test_triangles_look_up_and_cover_the_grid() -> None:
    field = HeightField(np.random.default_rng(0).random((4, 6)), 0.5)
    a, b, c = (field.vertices[field.triangles[:, k]] for k in range(3))
    twice = np.cross(b - a, c - a)
    assert (twice[:, 2] > 0).all()
    np.testing.assert_allclose(twice[:, 2].sum() / 2, 2.5 * 1.5)


MISTAKES = {
    "HeightField: heights has shape (3,), expected (n, m)": lambda: HeightField([1.0, 2.0, 3.0], 1.0),
    "expected two rows and columns or more": lambda: HeightField([[1.0, 2.0, 3.0]], 1.0),
    "HeightField: heights contains a value that is not finite": lambda: HeightField([[0.0, np.nan], [0.0, 0.0]], 1.0),
    "HeightField: spacing is 0": lambda: HeightField(np.zeros((2, 2)), 0.0),
    "HeightField: spacing is (1, 2, 3), expected two lengths": lambda: HeightField(np.zeros((2, 2)), (1, 2, 3)),
    "Ellipsoid: radii is (1, 2), expected three lengths": lambda: Ellipsoid((1, 2)),
    "Ellipsoid: radii is -1": lambda: Ellipsoid((1, 2, -1)),
    "Cone: length is 0": lambda: Cone(1.0, 0.0),
    "body 0: a HeightField can only be static": lambda: Scene().add_body(HeightField(np.zeros((2, 2)), 1.0)),
    "a part is a HeightField, expected a convex shape": lambda: Part(HeightField(np.zeros((2, 2)), 1.0)),
    "a part's material is 'ice', expected a Material": lambda: Part(Sphere(1.0), material="ice"),
    "has damping, which only a body": lambda: Part(Sphere(1.0), material=Material(linear_damping=0.5)),
    "a part's relative density is 0": lambda: Part(Sphere(1.0), relative_density=0),
    "Material: friction_combine is 'mean', expected one of geometric, average": lambda: Material(
        friction_combine="mean"
    ),
    "Compound: a part: group is 4294967296, which has more than 32 bits": lambda: Part(Sphere(1.0), group=1 << 32),
    "Compound: a part: mask is -1, expected a whole number from 0": lambda: Part(Sphere(1.0), mask=-1),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_is_refused_when_it_is_made(message: str) -> None:
    with pytest.raises(LapjointError) as caught:
        MISTAKES[message]()
    assert message in str(caught.value)


@pytest.mark.parametrize("bits", [1 << 32, 1 << 40, 1 << 2000, [1, 1 << 33]])
@pytest.mark.parametrize("name", ["group", "mask"])
def test_more_classes_than_bits_are_refused_with_the_way_out(name: str, bits: Any) -> None:
    scene = Scene()
    places = [(0.0, 0.0, 0.0), (3.0, 0.0, 0.0)]
    for call in (scene.add_bodies, scene.add_statics):
        with pytest.raises(LapjointError, match=rf"{name} is \d+.*more than 32 bits.*Scene.ignore"):
            call(Sphere(1.0), places, **{name: bits})
    assert scene.body_count == scene.static_count == 0


# ---- files -------------------------------------------------------------------------------------------------------


def all_of_them() -> Scene:
    scene = Scene()
    scene.add_static(HeightField(np.arange(12.0).reshape(3, 4), (1.0, 2.0)), material=Material(restitution=0.5))
    scene.add_static(Plane(), material=Material(friction_combine="maximum"))
    scene.add_bodies([Ellipsoid((1, 2, 3)), Cone(1.0, 2.0)], [(0, 0, 5), (9, 0, 5)])
    ice = Material(friction=0.01, friction_combine="minimum")
    parts = (
        Part(Sphere(1.0), material=ice, group=4),
        Part(Cone(1.0, 1.0), (3.0, 0.0, 0.0), mask=6, relative_density=3.0),
        Part(Ellipsoid((1, 1, 2)), (0.0, 3.0, 0.0)),
    )
    scene.add_body(Compound(parts), (0, 9, 9), material=Material(restitution_combine="multiply"))
    return scene


def test_a_file_keeps_all_of_it(tmp_path: Path) -> None:
    scene = all_of_them()
    again = Scene.load(scene.save(tmp_path / "scene.npz"))
    assert again == scene
    assert again.shapes == scene.shapes
    assert again.bodies.restitution_combine.tolist() == [0, 0, COMBINE_RULES.index("multiply")]
    assert again.statics.friction_combine.tolist() == [0, COMBINE_RULES.index("maximum")]


def test_files_of_scenes_without_any_of_it_have_nothing_more() -> None:
    scene = Scene()
    scene.add_static(Plane())
    scene.add_body(Compound((Part(Sphere(1.0)), Part(Box((1, 1, 1)), (1, 0, 0)))))
    description, arrays = describe_scene(scene)
    assert not any("combine" in name for name in arrays)
    assert set(description["shapes"][1]["parts"][0]) == {"shape", "position", "quaternion"}
    assert b"combine" not in added_since(scene, (0, 0, 0)).tobytes()


def test_what_was_added_can_be_told() -> None:
    scene, other = all_of_them(), Scene()
    extend_scene(other, added_since(scene, (0, 0, 0)))
    assert other.shapes == scene.shapes
    for name in scene.bodies:
        np.testing.assert_array_equal(getattr(other.bodies, name), getattr(scene.bodies, name))


# ---- parts -------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(lengths, st.floats(0.1, 10.0)), min_size=2, max_size=5))
def test_a_denser_part_counts_for_more(sizes: list[tuple[float, float]]) -> None:
    """As bodies of their own with their own densities."""
    parts = [Part(Sphere(r), (5.0 * k, float(k**2), 0.0), relative_density=d) for k, (r, d) in enumerate(sizes)]
    compound = Compound(tuple(parts))
    masses = np.array([d * mass_properties(Sphere(r))[0] for r, d in sizes])
    places = np.array([part.position for part in parts])
    np.testing.assert_allclose(mass_properties(compound)[0], masses.sum())
    np.testing.assert_allclose(compound.centre, masses @ places / masses.sum(), atol=1e-9)
    away = places - compound.centre
    expected = sum(
        m * (0.4 * r**2 * np.eye(3) + (p @ p) * np.eye(3) - np.outer(p, p))
        for m, p, (r, _) in zip(masses, away, sizes, strict=True)
    )
    np.testing.assert_allclose(mass_properties(compound)[1], expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())


def test_moving_parts_to_their_centre_keeps_what_they_have() -> None:
    part = Part(Sphere(1.0), (4.0, 0.0, 0.0), material=Material(friction=0.1), group=2, mask=3, relative_density=2.0)
    (moved,) = Compound((part,)).parts
    assert moved == replace(part, position=(0.0, 0.0, 0.0))


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 15), st.none() | st.integers(0, 15)), min_size=1, max_size=3),
    st.integers(0, 15),
    st.integers(0, 15),
    st.integers(0, 15),
    st.integers(0, 15),
)
def test_bodies_kept_apart_as_a_whole_have_no_parts_that_may_touch(
    bits: list[tuple[int | None, int | None]], group: int, mask: int, other_group: int, other_mask: int
) -> None:
    scene = Scene()
    parts = tuple(Part(Sphere(1.0), (k, 0, 0), group=g, mask=m) for k, (g, m) in enumerate(bits))
    scene.add_body(Compound(parts), group=group, mask=mask)
    scene.add_body(Sphere(1.0), group=other_group, mask=other_mask)
    groups, masks = widest_filters(scene.bodies, scene.shapes)
    as_a_whole = bool(groups[0] & masks[1]) and bool(groups[1] & masks[0])
    own = [(group if g is None else g, mask if m is None else m) for g, m in bits]
    by_parts = any((g & other_mask) and (other_group & m) for g, m in own)
    assert as_a_whole or not by_parts
    assert scene.bodies.group.tolist() == [group, other_group]
