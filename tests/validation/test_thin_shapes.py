"""Thin and long shapes come to rest: towers and piles of planks, sticks and plates, at the timestep of a game."""

from __future__ import annotations

import numpy as np
import pytest

from lapjoint import Box, ConvexHull, Cylinder, Params, Plane, Scene, Simulation, TriangleMesh
from lapjoint.arrays import rotation as rot

H = 1 / 60
SECONDS = 20
PLANE = Plane()


def cuboid(*size: float) -> ConvexHull:
    half = np.array(size) / 2
    return ConvexHull(np.array([half * (x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]))


def ground_mesh(half: float = 6.0, count: int = 9) -> TriangleMesh:
    line = np.linspace(-half, half, count)
    squares = (np.arange(count - 1)[:, None] * count + np.arange(count - 1)).ravel()[:, None]
    triangles = np.concatenate([squares + (0, count, count + 1), squares + (0, count + 1, 1)])
    return TriangleMesh(np.array([(x, y, 0.0) for x in line for y in line]), triangles)


def jenga(levels: int, ground: Plane | TriangleMesh = PLANE) -> Scene:
    """Three planks a level, of 75 x 25 x 15 cm, side by side and across those below."""
    scene = Scene("jenga", timestep=H)
    scene.add_static(ground)
    for level in range(levels):
        aside = level % 2
        for k in (-1, 0, 1):
            place = np.array([0, 0.25 * k, 0.075 + 0.15 * level])
            size = (0.25, 0.75, 0.15) if aside else (0.75, 0.25, 0.15)
            scene.add_body(Box(size), place[[1, 0, 2]] if aside else place)
    return scene


def sticks(shape: Box | ConvexHull, seed: int) -> Scene:
    """Sixty that fall on a heap, level and turned as it happens to be."""
    scene, rng = Scene("sticks", timestep=H), np.random.default_rng(seed)
    scene.add_static(Plane())
    for k in range(60):
        turn = rot.from_axis_angle((0.0, 0.0, 1.0), rng.uniform(0, 6))
        scene.add_body(shape, (*rng.uniform(-0.3, 0.3, 2), 0.1 + 0.15 * k), turn)
    return scene


def plates(shape: Box | ConvexHull | Cylinder, thickness: float, count: int) -> Scene:
    scene = Scene("plates", timestep=H)
    scene.add_static(Plane())
    scene.add_bodies(shape, [(0, 0, thickness * (0.5 + k)) for k in range(count)])
    return scene


def after(scene: Scene, seconds: float) -> tuple[float, float]:
    """The sum of squares of speeds [m²/s²], and how far the farthest has gone sideways [m]."""
    with Simulation(scene, Params(runtime="inline")) as simulation:
        for _ in range(round(seconds / H)):
            simulation.step()
        states = simulation.states
    return float((states[:, 7:10] ** 2).sum()), float(np.abs(states[:, :2] - scene.states[:, :2]).max())


def test_a_tower_of_planks_stands_still() -> None:
    speeds, sideways = after(jenga(12), SECONDS)
    assert speeds < 1e-8
    assert sideways < 1e-3


def test_on_a_mesh_it_moves_little() -> None:
    """Not as still as on a plane: of the contacts with all triangles only four are kept, and not always the same."""
    speeds, sideways = after(jenga(12, ground_mesh()), SECONDS)
    assert speeds < 1e-2
    assert sideways < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [Box((1.0, 0.05, 0.05)), cuboid(1.0, 0.05, 0.05)], ids=["box", "hull"])
def test_a_pile_of_sticks_comes_to_rest(shape: Box | ConvexHull, seed: int) -> None:
    speeds, _ = after(sticks(shape, seed), SECONDS)
    assert speeds < 1e-3


@pytest.mark.parametrize("thickness", [0.002, 0.01])
@pytest.mark.parametrize("kind", ["box", "hull", "cylinder"])
def test_plates_thinner_than_their_reach_rest(kind: str, thickness: float) -> None:
    kinds = {"box": Box((1.0, 1.0, thickness)), "hull": cuboid(1, 1, thickness), "cylinder": Cylinder(0.5, thickness)}
    speeds, sideways = after(plates(kinds[kind], thickness, 5), 5)
    assert speeds < 1e-10
    assert sideways < 1e-4
