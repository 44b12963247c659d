"""Balls, boxes and capsules that tumble down a staircase."""

from __future__ import annotations

import numpy as np

from lapjoint import Box, Capsule, Material, Plane, Scene, Sphere

STEPS, DEPTH, HEIGHT, WIDTH = 12, 0.6, 0.3, 4.0  # of the staircase: how many, and of each [m]


def build(size: int | None = None, seed: int = 0) -> Scene:
    """Balls, boxes and capsules that tumble down a staircase."""
    count, rng = size or 120, np.random.default_rng(seed)
    scene = Scene("stairs", timestep=1 / 240)
    scene.add_static(Plane())
    for k in range(STEPS):
        tall = (STEPS - k) * HEIGHT
        scene.add_static(Box((DEPTH, WIDTH, tall)), (k * DEPTH, 0.0, tall / 2))
    scene.add_static(Box((0.2, WIDTH, 6.0)), (-0.5 * DEPTH - 0.1, 0.0, 3.0))  # a wall behind the top
    shapes = [Sphere(0.12), Box((0.2, 0.25, 0.15)), Capsule(0.08, 0.2)]
    rows = np.arange(count)
    places = np.column_stack([rows % 3 * 0.35 - 0.05, (rows // 3 % 10 - 4.5) * 0.36, 4.0 + rows // 30 * 0.4])
    turns = rng.normal(size=(count, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    velocities = np.column_stack([rng.uniform(0.5, 1.5, count), np.zeros((count, 2))])
    scene.add_bodies(
        [shapes[k % 3] for k in rows], places, turns, linear_velocities=velocities, material=Material(friction=0.3)
    )
    scene.camera = ((10.5, -11.5, 7.5), (3.2, 0.0, 2.2))
    return scene
