"""Fracture of meshes: cells fill the solid whatever its form, bonds are their common faces, bodies have their mass."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint import Box, Compound, ConvexHull, LapjointError, Params, Plane, Scene, Simulation, TriangleMesh, fracture
from lapjoint.arrays import rotation
from lapjoint.fracture.mesh import MOST_PARTS, NEARLY_CONVEX
from lapjoint.scene.shapes import mass_properties

manifold3d = pytest.importorskip("manifold3d")

SEEDS = st.integers(0, 2**32 - 1)
cube = manifold3d.Manifold.cube


def torus() -> Any:
    circle = manifold3d.CrossSection.circle(0.3, 16).translate((1.0, 0.0))
    return manifold3d.Manifold.revolve(circle, 24)


SOLIDS: dict[str, Callable[[], Any]] = {
    "box": lambda: cube((1.0, 2.0, 0.5)).translate((3.0, 0.0, -1.0)),
    "L": lambda: cube((2.0, 1.0, 1.0)) + cube((1.0, 1.0, 3.0)),
    "U": lambda: cube((3.0, 1.0, 3.0), True) - cube((2.0, 3.0, 2.0), True).translate((0.0, 0.0, 1.0)),
    "torus": torus,
    "shell": lambda: manifold3d.Manifold.sphere(1.0, 16) - manifold3d.Manifold.sphere(0.7, 16),
    "two": lambda: cube((1.0, 1.0, 1.0)) + cube((1.0, 1.0, 1.0)).translate((1.5, 0.0, 0.0)),
}
FLAT = ("box", "L", "U", "two")
"""With these, parts are exactly convex."""


def mesh_of(solid: Any) -> TriangleMesh:
    mesh = solid.to_mesh64()
    return TriangleMesh(mesh.vert_properties[:, :3], mesh.tri_verts.astype(np.int64))


def mesh_moments(mesh: TriangleMesh) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume, centre of mass, and inertia per density about the origin: sums over tetrahedra with a corner there."""
    a, b, c = (mesh.vertices[mesh.triangles[:, k]] for k in range(3))
    six = np.einsum("ij,ij->i", a, np.cross(b, c))
    total = a + b + c
    second = sum(np.einsum("n,ni,nj->ij", six, x, x) for x in (a, b, c, total)) / 120
    return six.sum() / 6, six @ total / 24 / (six.sum() / 6), np.trace(second) * np.eye(3) - second


def moments(pieces: fracture.Pieces) -> tuple[np.ndarray, np.ndarray]:
    """First and second moments of all pieces, as bodies of density 1 have them."""
    first, second = np.zeros(3), np.zeros((3, 3))
    for shape, at, volume in zip(pieces.shapes, pieces.positions, pieces.volumes, strict=True):
        own, inertia = mass_properties(shape)
        first += volume * at
        second += inertia * volume / own + volume * (at @ at * np.eye(3) - np.outer(at, at))
    return first, second


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(SOLIDS)), SEEDS, st.integers(1, 25), st.sampled_from([1e-3, 1.0, 1e3]))
def test_cells_have_the_volume_of_the_solid_and_nearly_its_moments(
    name: str, seed: int, count: int, size: float
) -> None:
    solid = SOLIDS[name]().scale((size, size, size)).rotate((10.0, 20.0, 30.0))
    mesh = mesh_of(solid)
    pieces = fracture.cut(mesh, fracture.seeds_uniform(mesh, count, seed))
    volume, centre, inertia = mesh_moments(mesh)
    assert pieces.volumes.sum() == pytest.approx(volume, rel=1e-9)
    assert set(pieces.seeds.tolist()) == set(range(count))
    of_shapes = np.array([mass_properties(shape)[0] for shape in pieces.shapes])
    assert (of_shapes > pieces.volumes * (1 - 1e-9)).all()
    parts = np.array([len(shape.parts) if isinstance(shape, Compound) else 1 for shape in pieces.shapes])
    assert ((of_shapes <= NEARLY_CONVEX * pieces.volumes * (1 + 1e-9)) | (parts >= MOST_PARTS)).all()
    if (parts < MOST_PARTS).all():
        extent = np.ptp(mesh.vertices)
        first, second = moments(pieces)
        assert first == pytest.approx(volume * centre, abs=(NEARLY_CONVEX - 1) * volume * extent)
        assert second == pytest.approx(inertia, abs=(NEARLY_CONVEX - 1) * np.trace(inertia))


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(FLAT), SEEDS, st.integers(1, 8))
def test_where_parts_are_convex_moments_are_exact(name: str, seed: int, count: int) -> None:
    """By the parallel axis theorem; pieces that are nearly convex count as hulls, and are left out here."""
    mesh = mesh_of(SOLIDS[name]())
    pieces = fracture.cut(mesh, fracture.seeds_uniform(mesh, count, seed))
    volume, centre, inertia = mesh_moments(mesh)
    of_shapes = sum(mass_properties(shape)[0] for shape in pieces.shapes)
    if of_shapes == pytest.approx(volume, rel=1e-9):
        first, second = moments(pieces)
        assert first == pytest.approx(volume * centre, rel=1e-6, abs=1e-9)
        assert second == pytest.approx(inertia, rel=1e-6, abs=1e-6)


def points_in(shape: ConvexHull | Compound, at: np.ndarray, points: np.ndarray, margin: float) -> np.ndarray:
    """Which points are in a shape, by more than a margin."""
    parts = [(part.shape, at + part.position) for part in shape.parts] if isinstance(shape, Compound) else [(shape, at)]
    inside = np.zeros(len(points), bool)
    for hull, place in parts:
        assert isinstance(hull, ConvexHull)
        inside |= fracture.outline.contains(hull, points - place, margin)
    return inside


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.sampled_from(sorted(SOLIDS)), SEEDS, st.integers(2, 15))
def test_pieces_do_not_overlap_and_cover_the_solid(name: str, seed: int, count: int) -> None:
    mesh = mesh_of(SOLIDS[name]())
    seeds = fracture.seeds_uniform(mesh, count, seed)
    pieces = fracture.cut(mesh, seeds)
    points = fracture.seeds_uniform(mesh, 300, seed + 1)
    nearest = np.linalg.norm(points[:, None] - seeds, axis=2).argmin(axis=1)
    holders = np.zeros(len(points), int)
    for shape, at, of in zip(pieces.shapes, pieces.positions, pieces.seeds, strict=True):
        assert not points_in(shape, at, points[nearest != of], 1e-6).any(), "of another cell"
        holders += points_in(shape, at, points, -1e-6)
    assert (holders >= 1).all()


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(SOLIDS)), SEEDS, st.integers(2, 20))
def test_bonds_are_faces_of_both_pieces(name: str, seed: int, count: int) -> None:
    mesh = mesh_of(SOLIDS[name]())
    seeds = fracture.seeds_uniform(mesh, count, seed)
    pieces = fracture.cut(mesh, seeds)
    assert (pieces.bonds[:, 0] < pieces.bonds[:, 1]).all()
    assert len(np.unique(pieces.bonds, axis=0)) == len(pieces.bonds)
    assert (pieces.areas > 0).all()
    a, b = (seeds[pieces.seeds[pieces.bonds[:, k]]] for k in range(2))
    assert np.linalg.norm(pieces.anchors - a, axis=1) == pytest.approx(
        np.linalg.norm(pieces.anchors - b, axis=1), rel=1e-6
    )
    assert (b - a) / np.linalg.norm(b - a, axis=1, keepdims=True) == pytest.approx(pieces.normals, abs=1e-9)
    # Seeds in another order: the same faces, seen from the other side.
    back = fracture.cut(mesh, seeds[::-1])
    assert np.sort(back.areas) == pytest.approx(np.sort(pieces.areas), rel=1e-5)
    # What hangs together before hangs together after.
    group = np.arange(len(pieces))
    for _ in range(len(pieces)):
        for one, other in pieces.bonds:
            group[one] = group[other] = min(group[one], group[other])
    assert len(np.unique(group)) == (2 if name == "two" else 1)


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.integers(1, 20))
def test_a_mesh_of_a_box_is_cut_as_the_box_is(seed: int, count: int) -> None:
    box = Box((1.0, 0.6, 0.3))
    seeds = fracture.seeds_uniform(box, count, seed)
    wanted, found = fracture.cut(box, seeds), fracture.cut(mesh_of(cube(box.size, True)), seeds)
    assert found.volumes == pytest.approx(wanted.volumes, rel=1e-9)
    assert found.positions == pytest.approx(wanted.positions, abs=1e-9)
    kept = wanted.areas > 1e-6
    assert {*map(tuple, wanted.bonds[kept].tolist())} <= {*map(tuple, found.bonds.tolist())}
    where = [found.bonds.tolist().index(pair) for pair in wanted.bonds[kept].tolist()]
    assert found.areas[where] == pytest.approx(wanted.areas[kept], rel=1e-4, abs=1e-9)
    assert found.anchors[where] == pytest.approx(wanted.anchors[kept], abs=1e-5)


def test_a_cell_that_does_not_hang_together_is_two_pieces() -> None:
    """The far end of a U's other arm is nearer to a seed in this arm than to one in the bow."""
    mesh = mesh_of(SOLIDS["U"]())
    pieces = fracture.cut(mesh, [(1.25, 0.0, 0.3), (0.0, 0.0, -1.25)])
    assert pieces.seeds.tolist() == [0, 0, 1]
    assert pieces.bonds.tolist() == [[0, 2], [1, 2]]
    assert sorted(np.sign(pieces.anchors[:, 0])) == [-1, 1], "one in each arm"


def test_a_section_of_a_bar_has_the_area_of_the_bar() -> None:
    mesh = mesh_of(cube((4.0, 0.1, 0.2), True))
    pieces = fracture.cut(mesh, [((k + 0.5) * 0.1 - 2, 0.0, 0.0) for k in range(40)])
    assert pieces.bonds.tolist() == [[k, k + 1] for k in range(39)]
    assert pieces.areas == pytest.approx(np.full(39, 0.02), rel=1e-6)


def test_pieces_of_a_mesh_stand_where_it_was_and_have_its_mass() -> None:
    mesh = mesh_of(SOLIDS["L"]())
    turn = rotation.between([1.0, 0.0, 0.0], [[0.6, 0.8, 0.0]])[0]
    pieces = fracture.cut(mesh, fracture.seeds_around(mesh, (1.0, 0.5, 1.0), 15, seed=2))
    scene = Scene()
    scene.add_static(Plane())
    bodies, bonds = fracture.add_pieces(scene, pieces, strength=1e9, position=(5, 0, 0), quaternion=turn, density=500.0)
    assert scene.bodies.mass.sum() == pytest.approx(500.0 * 4.0, rel=1e-9)
    with Simulation(scene, Params(runtime="inline", workers=2)) as simulation:
        simulation.step(100)
        assert np.abs(simulation.states[:, 7:10]).max() < 0.05, "it stands"
        assert len(simulation.joints.broken_ids) == 0
    assert (len(bodies), len(bonds)) == (len(pieces), len(pieces.bonds))
    assert scene.joints.bond_section[:, 0] == pytest.approx(pieces.areas)


# ---- bad input -------------------------------------------------------------------------------------------------------


def open_mesh() -> TriangleMesh:
    mesh = mesh_of(SOLIDS["L"]())
    return TriangleMesh(mesh.vertices, mesh.triangles[1:])


def inverted_mesh() -> TriangleMesh:
    mesh = mesh_of(SOLIDS["L"]())
    return TriangleMesh(mesh.vertices, mesh.triangles[:, ::-1])


def overlapping_mesh() -> TriangleMesh:
    """Two boxes in one mesh, one in the other."""
    one = mesh_of(cube((1.0, 1.0, 1.0)))
    triangles = np.concatenate([one.triangles, one.triangles + len(one.vertices)])
    return TriangleMesh(np.concatenate([one.vertices, one.vertices + 0.5]), triangles)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: fracture.cut(open_mesh(), [(0.5, 0.5, 0.5)]),
            r"cut: the mesh bounds no solid \(NotManifold\), expected a",
        ),
        (
            lambda: fracture.cut(inverted_mesh(), [(0.5, 0.5, 0.5)]),
            "cut: the mesh has a volume of -4 m.*counterclockwise",
        ),
        (lambda: fracture.cut(overlapping_mesh(), [(0.75, 0.75, 0.75)]), "seed 0 at .* is not inside the shape"),
        (lambda: fracture.cut(mesh_of(torus()), [(0, 0, 0)]), "cut: seed 0 at .* is not inside the shape"),
        (lambda: fracture.cut(mesh_of(torus()), np.empty((0, 3))), "cut: there are no seeds, expected at least one"),
        (lambda: fracture.cut(Box((1, 1, 1)), np.empty((0, 3))), "cut: there are no seeds, expected at least one"),
        (lambda: fracture.cut(mesh_of(torus()), [(1, 0, 0), (1, 0, 0)]), "cut: seeds 0 and 1 are at the same place"),
        (lambda: fracture.seeds_uniform(mesh_of(torus()), 0), "count of seeds is 0, expected a whole number"),
        (
            lambda: fracture.seeds_around(mesh_of(SOLIDS["L"]()), (9, 9, 9), 5, 1e-3),
            "only 0 of 5 seeds fall into the shape",
        ),
    ],
)
def test_wrong_meshes(make: Any, message: str) -> None:
    with pytest.raises(LapjointError, match=message):
        make()


def test_without_manifold3d_an_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "manifold3d", None)
    with pytest.raises(LapjointError, match=r"cutting a mesh needs manifold3d: pip install 'lapjoint\[fracture\]'"):
        fracture.cut(mesh_of(torus()), [(1, 0, 0)])
    assert len(fracture.cut(Box((1, 1, 1)), [(0, 0, 0)])) == 1, "what is convex needs none"


def test_vertices_in_one_place_are_one() -> None:
    mesh = mesh_of(SOLIDS["L"]())
    soup = TriangleMesh(mesh.vertices[mesh.triangles].reshape(-1, 3), np.arange(3 * len(mesh.triangles)).reshape(-1, 3))
    seeds = fracture.seeds_uniform(mesh, 6)
    assert fracture.cut(soup, seeds).volumes == pytest.approx(fracture.cut(mesh, seeds).volumes, rel=1e-9)
