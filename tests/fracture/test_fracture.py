"""Fracture: pieces fill the shape they are cut from, bonds are their common faces, and bear what they should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint import WORLD, Box, ConvexHull, LapjointError, Params, Scene, Simulation, Sphere, fracture, scenes
from lapjoint.scene.shapes import mass_properties

SEEDS = st.integers(0, 2**32 - 1)


def random_shape(rng: np.random.Generator) -> Box | ConvexHull:
    if rng.integers(2):
        return Box(tuple(rng.uniform(0.05, 2.0, 3)))
    return ConvexHull(rng.normal(size=(12, 3)))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(1, 40), st.booleans())
def test_pieces_have_the_volume_and_the_mass_of_the_whole(seed: int, count: int, around: bool) -> None:
    rng = np.random.default_rng(seed)
    shape = random_shape(rng)
    make = (lambda: fracture.seeds_around(shape, (0, 0, 0), count, seed=seed)) if around else None
    seeds = make() if make else fracture.seeds_uniform(shape, count, seed)
    pieces = fracture.cut(shape, seeds)
    whole, inertia = mass_properties(shape)
    assert len(pieces) == count
    assert pieces.volumes.sum() == pytest.approx(whole, rel=1e-9)
    assert pieces.volumes @ pieces.positions == pytest.approx(np.zeros(3), abs=1e-9 * whole + 1e-12)
    moments = np.zeros((3, 3))
    for piece, at, volume in zip(pieces.shapes, pieces.positions, pieces.volumes, strict=True):
        moments += mass_properties(piece)[1] + volume * (at @ at * np.eye(3) - np.outer(at, at))
    assert moments == pytest.approx(inertia, rel=1e-6, abs=1e-9)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(2, 30))
def test_bonds_are_faces_halfway_between_seeds(seed: int, count: int) -> None:
    shape = Box((1.0, 0.7, 0.4))
    seeds = fracture.seeds_uniform(shape, count, seed)
    pieces = fracture.cut(shape, seeds)
    assert (pieces.bonds[:, 0] < pieces.bonds[:, 1]).all()
    for (a, b), anchor, normal in zip(pieces.bonds, pieces.anchors, pieces.normals, strict=True):
        assert np.linalg.norm(anchor - seeds[a]) == pytest.approx(np.linalg.norm(anchor - seeds[b]), rel=1e-6)
        assert (seeds[b] - seeds[a]) / np.linalg.norm(seeds[b] - seeds[a]) == pytest.approx(normal, abs=1e-9)
        nearest = np.linalg.norm(seeds - anchor, axis=1).argsort()[:2]
        assert {*nearest.tolist()} == {int(a), int(b)}, "the middle of a face is nearer to no other seed"
    # All pieces hang together, for the box does.
    group = np.arange(count)
    for _ in range(count):
        for a, b in pieces.bonds:
            group[a] = group[b] = min(group[a], group[b])
    assert (group == 0).all()


def test_a_bar_is_cut_across() -> None:
    pieces = fracture.cut(Box((4.0, 0.1, 0.2)), [((k + 0.5) * 0.1 - 2, 0.0, 0.0) for k in range(40)])
    assert pieces.bonds.tolist() == [[k, k + 1] for k in range(39)]
    assert pieces.areas == pytest.approx(np.full(39, 0.02))
    assert pieces.anchors == pytest.approx(np.array([((k + 1) * 0.1 - 2, 0.0, 0.0) for k in range(39)]), abs=1e-9)


def test_seeds_are_dense_where_they_should_be() -> None:
    shape = Box((2.0, 0.02, 2.0))
    seeds = fracture.seeds_around(shape, (0.5, 0.0, 0.5), 400, spread=0.2, seed=1)
    distance = np.linalg.norm(seeds - (0.5, 0.0, 0.5), axis=1)
    assert 0.4 < (distance < 0.2).mean() < 0.7, "some far ones are outside"
    assert (np.abs(seeds) < (1.0, 0.01, 1.0)).all()
    assert np.array_equal(seeds, fracture.seeds_around(shape, (0.5, 0.0, 0.5), 400, spread=0.2, seed=1))
    assert not np.array_equal(seeds, fracture.seeds_around(shape, (0.5, 0.0, 0.5), 400, spread=0.2, seed=2))


@pytest.mark.parametrize("workers", [1, 4])
def test_a_beam_of_cells_breaks_where_its_bending_stress_is_its_strength(workers: int) -> None:
    """Forty cells with a square section, held at one end: the stress at the support is M / W."""
    side, length, density = 0.1, 4.0, 1000.0
    stress = (density * side**2 * 9.81 * length**2 / 2) / (side**3 / 6)
    for share, breaks in ((1.05, False), (0.95, True)):
        scene = Scene("beam")
        bar = Box((length, side, side))
        pieces = fracture.cut(bar, [((k + 0.5) * side - length / 2, 0.0, 0.0) for k in range(40)])
        bodies, _ = fracture.add_pieces(scene, pieces, strength=share * stress, position=(length / 2, 0, 1))
        end = fracture.rectangles([(0, 0, 1)], [(1, 0, 0)], [(0, 1, 0)], [(side, side)], [side])
        (support,) = fracture.add_bonds(scene, [bodies[0]], [WORLD], end, strength=share * stress)
        with Simulation(scene, Params(workers=workers, runtime="inline")) as simulation:
            simulation.step(30)
            assert simulation.joints.broken_ids.tolist() == ([support] if breaks else [])


def test_pieces_are_where_the_shape_was() -> None:
    scene = Scene(gravity=(0, 0, 0))
    shape = Box((1.0, 0.5, 0.25))
    turn = np.array([np.cos(0.4), 0.0, np.sin(0.4), 0.0])
    pieces = fracture.cut(shape, fracture.seeds_uniform(shape, 20))
    bodies, bonds = fracture.add_pieces(
        scene, pieces, strength=1e5, position=(1, 2, 3), quaternion=turn, density=500.0, label=3
    )
    assert scene.bodies.mass.sum() == pytest.approx(500.0 * 0.125)
    assert scene.bodies.mass @ scene.bodies.position / scene.bodies.mass.sum() == pytest.approx((1, 2, 3), abs=1e-9)
    assert (scene.bodies.label == 3).all()
    assert (len(bodies), len(bonds)) == (20, len(pieces.bonds))
    assert scene.joints.bond_section[:, 0] == pytest.approx(pieces.areas)
    assert scene.joints.bond_strength == pytest.approx(np.tile([1e5, 1e5, 1e6], (len(bonds), 1)))
    with Simulation(scene, Params(runtime="inline")) as simulation:
        simulation.step(20)
        assert np.abs(simulation.states[:, 7:]).max() < 1e-3, "at rest, it stays so"
        assert len(simulation.joints.broken_ids) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: fracture.cut(Sphere(1.0), [(0, 0, 0)]),
            "a Sphere cannot be cut, expected a Box, a ConvexHull, a Cone, an Ellipsoid or a TriangleMesh",
        ),  # type: ignore[arg-type]
        (lambda: fracture.cut(Box((1, 1, 1)), [(0, 0, 0), (2, 0, 0)]), "cut: seed 1 at .* is not inside the shape"),
        (lambda: fracture.cut(Box((1, 1, 1)), [(0, 0, 0), (0, 0, 0)]), "cut: seeds 0 and 1 are at the same place"),
        (lambda: fracture.cut(Box((1, 1, 1)), [(0, 0)]), "seed"),
        (lambda: fracture.seeds_uniform(Box((1, 1, 1)), 0), "count of seeds is 0, expected a whole number"),
        (lambda: fracture.seeds_around(Box((1, 1, 1)), (9, 9, 9), 5, 1e-3), "only 0 of 5 seeds fall into the shape"),
        (lambda: fracture.seeds_around(Box((1, 1, 1)), (0, 0, 0), 5, 0.0), "spread is 0.0, expected a positive"),
    ],
)
def test_wrong_cuts(make: Any, message: str) -> None:
    with pytest.raises(LapjointError, match=message):
        make()


def test_a_wrong_strength_changes_nothing() -> None:
    scene, shape = Scene(), Box((1.0, 1.0, 1.0))
    pieces = fracture.cut(shape, fracture.seeds_uniform(shape, 5))
    with pytest.raises(LapjointError, match="add_pieces: strength is 0, expected a positive number"):
        fracture.add_pieces(scene, pieces, strength=0)
    assert scene.body_count == 0


# ---- the scenes that break -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size", "until"), [("pane", 60, 60), ("wrecking", 40, 800)])
def test_scenes_hold_until_they_are_hit_and_lose_nobody(name: str, size: int, until: int) -> None:
    scene = scenes.build(name, size)
    with Simulation(scene, Params(workers=3, runtime="inline")) as simulation:
        simulation.step(20)
        assert len(simulation.joints.broken_ids) == 0
        assert np.abs(simulation.states[:-1, 7:10]).max() < 1e-2, "nothing has moved but the ball"
        simulation.step(until - 20)
        assert len(simulation.joints.broken_ids) > 10
        assert np.isfinite(simulation.states).all()
        assert simulation.states[:, 2].min() > -0.2, "nobody fell through the ground"
        assert simulation.joints.gaps().max() < 0.05
