"""Unequal masses in a structure of joints: what cannot be held is said before anything starts, and nothing else."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from lapjoint import WORLD, AccuracyWarning, Ball, Distance, Params, Scene, Simulation, Sphere, Spring, Substeps
from lapjoint.scene.joints import FREE, SixAxis


def rope(masses: list[float], timestep: float = 1 / 60, joint: object = None) -> Scene:
    scene = Scene("rope", timestep=timestep)
    places = np.arange(len(masses))[:, None] * [0.3, 0.0, 0.0]
    bodies = scene.add_bodies(Sphere(0.05), places, mass=masses)
    scene.add_joints(joint or Ball(), bodies, [WORLD, *bodies[:-1]], places - [0.15, 0.0, 0.0])
    return scene


def net(count: int, load: float) -> Scene:
    """Balls on ropes, so many that to solve them at once is much work, and a load."""
    scene = Scene("net", timestep=1 / 60)
    at = np.array([(0.3 * i, 0.3 * j, 2.0) for i in range(count) for j in range(count)])
    balls = np.array(scene.add_bodies(Sphere(0.05), at, mass=[*[0.1] * (count * count - 1), load])).reshape(
        count, count
    )
    for one, other in ((balls[:-1], balls[1:]), (balls[:, :-1], balls[:, 1:])):
        for a, b in zip(one.ravel(), other.ravel(), strict=True):
            scene.add_joint(Distance(upper=0.3), int(a), int(b), at[a], anchor_b=at[b])
    return scene


def said(scene: Scene, **params: object) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", AccuracyWarning)
        Simulation(scene, Params.from_options(**{"runtime": "inline", **params})).close()
    return [str(one.message) for one in found if one.category is AccuracyWarning]


def test_swept_joints_between_unequal_masses_are_warned_of_with_what_holds_them() -> None:
    (text,) = said(rope([0.1, 0.1, 20.0]), joints="swept")
    assert "body 0 of 0.1 kg to body 2 of 20 kg, a mass ratio of 1:200, and are swept" in text
    assert text.endswith("joints=direct holds it")
    assert not said(rope([0.1, 0.1, 20.0]))
    assert said(rope([0.1, 0.1, 10.0]), joints="swept")
    assert not said(rope([0.1, 0.1, 9.0]), joints="swept")


def test_a_structure_that_auto_sweeps_is_warned_of() -> None:
    (text,) = said(net(20, 50.0))
    assert "1:500, and are swept" in text
    assert not said(net(4, 50.0))


def test_direct_joints_are_warned_of_where_substeps_are_long() -> None:
    masses = [1000.0, 1.0, 0.5]
    (text,) = said(rope(masses))
    assert "a mass ratio of 1:2,000, and are solved 240 times a second" in text
    assert not said(rope(masses), substeps=16)
    assert not said(rope(masses, timestep=1 / 240))


def test_bodies_of_different_structures_may_be_as_unequal_as_they_like() -> None:
    scene = rope([1.0, 1.0])
    heavy = scene.add_bodies(Sphere(0.1), [(0.0, 3.0, 0.0), (0.3, 3.0, 0.0)], mass=1e4)
    scene.add_joint(Ball(), int(heavy[0]), int(heavy[1]), (0.15, 3.0, 0.0))
    spring = SixAxis(linear=(FREE,) * 3, angular=(FREE,) * 3, springs={0: Spring(10.0, 0.1)})
    scene.add_joint(spring, int(heavy[0]), 0, (0.0, 1.0, 0.0))
    assert not said(scene, joints="swept")


def test_joints_that_come_later_are_looked_at_too() -> None:
    scene = rope([1.0, 1.0])
    scene.add_body(Sphere(0.1), (1.0, 0.0, 0.0), mass=500.0)
    with Simulation(scene, Params(runtime="inline", substeps=Substeps(joints="swept"))) as simulation:
        simulation.step()
        with pytest.warns(AccuracyWarning, match=r"1:500, and are swept"):
            simulation.joints.add_one(Ball(), 2, 1, (0.6, 0.0, 0.0))
