"""What fuzzing is tried on, and scenes to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fuzz_changes import Change
from lapjoint import (
    FREE,
    LOCKED,
    WORLD,
    Ball,
    Box,
    Breaks,
    Capsule,
    Compound,
    Cone,
    ConstantVelocity,
    ConvexHull,
    Cylinder,
    Distance,
    Drag,
    Drive,
    Ellipsoid,
    Fixed,
    HeightField,
    Hinge,
    Material,
    Motor,
    Params,
    Part,
    Plane,
    Scene,
    Simulation,
    SixAxis,
    Slider,
    Sphere,
    SphereRegion,
    Spring,
    TriangleMesh,
    Wind,
)

DATA = Path(__file__).parent / "data"
Changes = Sequence[Change]
MOST_SWEEPS = 200
"""A scene may ask for a million sweeps of its solver: that is no hang."""


def every_shape() -> Scene:
    rng = np.random.default_rng(1)
    scene = Scene("shapes", iterations=10)
    hull = ConvexHull(rng.random((9, 3)))
    stone = Material(0.7, 0.2, 0.01, 0.1, 0.2)
    shapes = [
        Sphere(0.3),
        Box((0.3, 0.4, 0.5)),
        Capsule(0.2, 0.4),
        Cylinder(0.3, 0.4),
        hull,
        Ellipsoid((0.3, 0.2, 0.4)),
    ]
    shapes += [Cone(0.3, 0.5), Compound((Part(Sphere(0.3)), Part(hull, (0.5, 0.0, 0.1), material=Material(0.4))))]
    scene.add_bodies(shapes, [(0.6 * k, 0.0, 0.4) for k in range(8)], labels=range(8), material=stone, mask=5, group=3)
    scene.add_static(Plane(), material=stone)
    scene.add_static(TriangleMesh(rng.random((4, 3)), [(0, 1, 2), (1, 2, 3)]), (1.0, 2.0, 0.0))
    scene.add_static(HeightField(rng.random((4, 5)), 1.0), (0.0, 5.0, -2.0))
    scene.add_kinematic(Box((1.0, 1.0, 0.1)), (0.0, -3.0, 0.0), motion=ConstantVelocity((0.1, 0.0, 0.0)))
    scene.add_field(Drag(0.1, 0.1))
    scene.add_field(Wind((1.0, 0.0, 0.0), 0.1, region=SphereRegion((0.0, 0.0, 0.0), 2.0)), [1, 2])
    scene.add_sensor(Sphere(1.0), (0.0, 0.0, 0.5), name="gate")
    scene.camera = ((1.0, 2.0, 3.0), (0.0, 0.0, 0.5))
    return scene


def every_joint() -> Scene:
    scene = Scene("joints", iterations=10)
    scene.add_static(Plane())
    scene.add_bodies(Sphere(0.2), [(0.5 * k, 0.0, 1.0) for k in range(9)])
    spring = SixAxis((FREE, LOCKED, (-1.0, 2.0)), springs={0: Spring(3.0, 0.1, 0.2)}, motors={2: Motor(1.0, 2.0)})
    joints = [
        Ball(),
        Hinge((0.0, 1.0, 1.0), (-1.0, 1.0), Motor(1.0, 5.0)),
        Slider(),
        Fixed(Breaks(force=100.0)),
        spring,
    ]
    joints += [Hinge((0.0, 1.0, 0.0), drive=Drive(0.3, stiffness=5.0, damping=1.0)), Distance(lower=0.1, upper=0.6)]
    for k, joint in enumerate(joints):
        end = {"anchor_b": (0.5 * k + 0.5, 0.0, 1.0)} if isinstance(joint, Distance) else {}
        scene.add_joint(joint, k, WORLD if k == 2 else k + 1, (0.5 * k + 0.2, 0.0, 1.0), collide=k == 3, **end)
    scene.ignore([0, 1], [4, 5])
    return scene


def pile(count: int = 6) -> Scene:
    scene = Scene("pile", timestep=0.004, iterations=10)
    scene.add_static(Plane())
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [(0.1 * k, 0.0, 0.5 + k) for k in range(count)])
    scene.add_joint(Ball(), 0, 1, (0.0, 0.0, 1.0))
    return scene


def use(scene: Scene) -> None:
    """Take steps with a scene that was opened, and look at what is there."""
    if scene.iterations > MOST_SWEEPS:
        return
    with Simulation(scene, Params(workers=2, runtime="inline")) as simulation:
        simulation.step(2)
        simulation.queries.cast_rays([(0.0, 0.0, 5.0)], [(0.0, 0.0, -1.0)])


class Target:
    """`attempt` returns, or raises a LapjointError or one of `refusals`; anything else is wrong."""

    refusals: tuple[type[Exception], ...] = ()
    is_shown = True
    """Whether users see the error."""
    seeds: Sequence[Any] = ()

    def close(self) -> None:
        """It is not needed any more."""

    def attempt(self, seed: int, changes: Changes, folder: Path) -> None:
        raise NotImplementedError
