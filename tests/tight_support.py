"""Scenes and steps that tests of tight coupling share."""

from __future__ import annotations

from typing import Any

import numpy as np

from lapjoint import Ball, Box, Hinge, Params, Plane, Scene, Simulation


def wall(rows: int = 5, columns: int = 5, workers: int = 4, seed: int | None = None) -> Scene:
    """Bricks in bond, with closers at every other end so that it stands; owners from left to right, or at random."""
    scene = Scene("wall")
    scene.add_static(Plane())
    shapes, places, labels = [], [], []
    rng = np.random.default_rng(seed)
    for row in range(rows):
        sizes = [0.5] * columns if row % 2 == 0 else [0.25, *[0.5] * (columns - 1), 0.25]
        for end, size in zip(np.cumsum(sizes), sizes, strict=True):
            x = float(end - size / 2)
            shapes.append(Box((size - 0.01, 0.25, 0.25)))
            places.append((x, 0.0, 0.125 + 0.25 * row))
            ordered = min(workers - 1, int(x / (0.5 * columns) * workers))
            labels.append(ordered if seed is None else int(rng.integers(workers)))
    labels[:workers] = range(workers)  # nobody is left without
    scene.add_bodies(shapes, places, labels=labels, density=1000.0)
    return scene


def free_chain(workers: int = 3, limits: tuple[float, float] = (-np.pi, np.pi), count: int = 12) -> Scene:
    """Links with random velocities and no gravity: ball joints and, every third, a hinge. A closed scene."""
    scene = Scene("free chain", gravity=(0.0, 0.0, 0.0))
    velocities = np.random.default_rng(1).normal(size=(count, 3))
    places = [(0.25 * i, 0.0, 0.0) for i in range(count)]
    labels = [i * workers // count for i in range(count)]
    ids = scene.add_bodies(Box((0.2, 0.1, 0.1)), places, mass=1.0, linear_velocities=velocities, labels=labels)
    for i in range(1, count):
        joint = Hinge((0, 1, 0), limits) if i % 3 == 0 else Ball()
        scene.add_joint(joint, ids[i], ids[i - 1], (0.25 * i - 0.125, 0, 0))
    return scene


def colliding(workers: int = 3, seed: int = 3) -> Scene:
    """Boxes without gravity that fly at each other, owners at random. A closed scene."""
    scene = Scene("colliding", gravity=(0.0, 0.0, 0.0))
    rng = np.random.default_rng(seed)
    places = np.stack(np.meshgrid(*[np.arange(3) * 0.53] * 3), axis=-1).reshape(-1, 3)
    labels = rng.permutation(np.arange(len(places)) % workers)
    velocities = -2.0 * (places - places.mean(axis=0)) + 0.3 * rng.normal(size=places.shape)
    scene.add_bodies(Box((0.5, 0.5, 0.5)), places, linear_velocities=velocities, labels=labels, density=500.0)
    return scene


def start_from(scene: Scene, states: np.ndarray) -> None:
    """The scene begins with these states from now on."""
    bodies = scene.bodies
    parts = bodies.position, bodies.quaternion, bodies.linear_velocity, bodies.angular_velocity
    for part, columns in zip(parts, np.split(states, [3, 7, 10], axis=1), strict=True):
        part[:] = columns
    assert np.array_equal(scene.states, states)


def simulate(scene: Scene, steps: int, **params: Any) -> np.ndarray:
    """States after some steps, tightly coupled in float64 in this process unless told otherwise."""
    given: dict[str, Any] = {
        "coupling": "tight",
        "runtime": "inline",
        "precision": "float64",
        "validate": True,
        "solver": "substeps",
    }
    with Simulation(scene, Params.from_options(**(given | params))) as simulation:
        simulation.step(steps)
        return simulation.states
