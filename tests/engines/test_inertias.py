"""Inertias that are too small for an engine's numbers are refused, with the body's name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lapjoint import Box, Capsule, LapjointError, Params, Plane, Scene, Simulation, Sphere

TURN = np.array([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])


def scene_of(inertia: Any, mass: float = 1.0) -> Scene:
    scene = Scene("spinning", timestep=0.004)
    scene.add_static(Plane())
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 2.0), (3.0, 0.0, 2.0)])
    scene.add_body(Box((1.0, 0.6, 0.2)), (6.0, 0.0, 2.0), mass=mass, inertia=inertia, name="top")
    return scene


@pytest.mark.parametrize(
    ("inertia", "mass"),
    [
        ((1e-30, 1e-30, 1e-30), 1.0),
        ((1e-300, 1e-300, 1e-300), 1.0),
        ((1e-12, 0.1, 0.1), 1.0),
        (TURN @ np.diag([1e-12, 0.1, 0.1]) @ TURN.T, 1.0),
        ((0.03, 0.03, 0.03), 1e12),
    ],
)
def test_an_inertia_that_is_too_small_is_refused_before_anything_starts(inertia: Any, mass: float) -> None:
    with pytest.raises(LapjointError, match=r"body 2 \('top'\): its inertia .* at least 1e-09 with float32"):
        Simulation(scene_of(inertia, mass), Params(workers=2, runtime="inline"))


def test_the_precision_decides() -> None:
    scene = scene_of((1e-12, 1e-12, 1e-12))
    with Simulation(scene, Params(runtime="inline", precision="float64")) as simulation:
        simulation.step()
    with pytest.raises(LapjointError, match="with float32"):
        Simulation(scene, Params(workers=2, coupling="blend", engine="bullet:float64,1=bullet:float32"))
    with pytest.raises(LapjointError, match="at least 1e-18 with float64"):
        Simulation(scene_of((1e-20, 1e-20, 1e-20)), Params(runtime="inline", precision="float64"))


@pytest.mark.parametrize("radius", [1e-3, 1e-6])
def test_thin_bodies_are_as_good_as_others(radius: float) -> None:
    scene = Scene("wire", timestep=0.004)
    scene.add_body(Capsule(radius, 1.0))
    scene.add_body(Box((1e-5, 1.0, 1.0)), (3.0, 0.0, 0.0), mass=100.0)
    with Simulation(scene, Params(runtime="inline")) as simulation:
        simulation.step()


def test_a_body_that_is_added_is_refused_and_nothing_changes() -> None:
    with Simulation(scene_of(None), Params(runtime="inline")) as simulation:
        simulation.step()
        with pytest.raises(LapjointError, match="body 3: its inertia about some axis is"):
            simulation.bodies.add_one(Sphere(0.5), (9.0, 0.0, 2.0), inertia=(1e-30, 1e-30, 1e-30))
        assert simulation.scene.body_count == 3
        simulation.bodies.remove([1])
        simulation.bodies.add_one(Sphere(0.5), (9.0, 0.0, 2.0))
        simulation.step()


def test_a_body_that_spins_beyond_all_measure_meets_only_what_is_near() -> None:
    """It once looked at every body of the scene, at four thousand places each."""
    scene = Scene("spinning", timestep=0.004)
    scene.add_static(Plane())
    spins = [body % 10 == 0 for body in range(60)]
    scene.add_bodies(
        Box((0.4, 0.3, 0.2)),
        [(2.0 * (body % 8), 2.0 * (body // 8), 1.0) for body in range(60)],
        angular_velocities=[(0.0, 0.0, 1e8 * spin) for spin in spins],
    )
    with Simulation(scene, Params(runtime="inline")) as simulation:
        simulation.step(20)
        states = simulation.states
    assert np.isfinite(states).all()
    assert np.allclose(states[:, 2], states[0, 2]), "all fall alike"
