"""Balls: a few bodies in reserve, for a live view to throw. They are no bodies of the scene.

A scene is fixed once its simulation runs. So a live view simulates a copy of the scene with some balls more at the end
of its list of bodies: parked far above everything, frozen, drawn and counted nowhere until they are thrown.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from ...params import Params
from ...scene import Scene, Sphere
from ...server.partition import make_partition
from ...simulation import Simulation

MASS = 10.0
"""Of a ball, in masses of the scene's median body."""
RADIUS = 1.5
"""Of a ball, in bounding radii of the scene's median body."""


def with_balls(scene: Scene, count: int) -> Scene:
    """A copy of the scene with so many parked balls at the end of its list of bodies."""
    if count == 0 or scene.body_count == 0:
        return scene
    copy = Scene.from_bytes(scene.to_bytes(), scene.name)
    radius = RADIUS * float(np.median(scene.bounding_radii()))
    places = scene.bodies.position
    extent = max(float(np.ptp(places, axis=0).max()), 10 * radius)
    top = places.max(axis=0) + [0.0, 0.0, 30 * extent]
    parked = top + 3 * radius * np.arange(count)[:, None] * [0.0, 0.0, 1.0]
    label = int(scene.bodies.label.max()) + 1
    copy.add_bodies(Sphere(radius), parked, mass=MASS * float(np.median(scene.bodies.mass)), labels=label)
    return copy


@contextmanager
def simulation_with_balls(scene: Scene, params: Params, count: int) -> Iterator[Simulation]:
    """A simulation of the scene with parked balls.

    What a scene decides (units, depths, the first partition) is decided by the scene alone, so that its bodies move bit
    for bit as without the balls until one is thrown, or until the scene is repartitioned: there the balls count a
    little."""
    whole = with_balls(scene, count)
    if whole is scene:
        with Simulation(scene, params) as simulation:
            yield simulation
        return
    resolved = params.resolved(scene)
    partition = make_partition(scene, params.workers, params.partition)
    # The balls are the worker's with the fewest bodies; they cost nothing before they touch something.
    least = int(np.argmin(np.bincount(partition, minlength=params.workers)))
    both = np.concatenate([partition, np.full(whole.body_count - scene.body_count, least, np.int32)])
    with Simulation(whole, replace(resolved, partition=both)) as simulation:
        park_balls(simulation, whole.body_count - scene.body_count)
        yield simulation


def park_balls(simulation: Simulation, count: int) -> None:
    """Freeze the balls, the last `count` bodies of the scene, where they are."""
    total = simulation.scene.body_count
    if count:
        simulation.freeze(np.arange(total - count, total))
