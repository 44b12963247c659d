"""Force fields against formulas, with every solver of Bullet and every other engine that has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from field_functions import STIFFNESS, spring
from lapjoint import (
    Attractor,
    Box,
    BoxRegion,
    Buoyancy,
    Cylinder,
    Drag,
    Field,
    Gravity,
    Material,
    Params,
    Scene,
    Simulation,
    Sphere,
    SphereRegion,
    Wind,
)

TIMESTEP = 0.002
FREE = (0.0, 0.0, 0.0)


def ball(*fields: Any, gravity: Any = FREE, mass: float = 1.0, **options: Any) -> Scene:
    scene = Scene("ball", gravity=gravity, timestep=TIMESTEP)
    scene.add_body(Sphere(0.1), mass=mass, **options)
    for field in fields:
        scene.add_field(field)
    return scene


def states_of(scene: Scene, seconds: float, every: int = 1, **params: Any) -> np.ndarray:
    """States of the first body, step by step."""
    with Simulation(scene, Params.from_options(runtime="inline", precision="float64", **params)) as simulation:
        return np.array([frame.states[0] for frame in simulation.frames(round(seconds / TIMESTEP), every)])


@pytest.mark.slow
@pytest.mark.parametrize("linear", [0.5, 20.0, 1e7])
def test_terminal_velocity(linear: float) -> None:
    """Of linear drag at any coefficient: m g / k, and the way there is its exponential."""
    mass, g = 2.0, 9.81
    velocities = states_of(ball(Drag(linear), gravity=(0, 0, -g), mass=mass), 2.0)[:, 9]
    times = TIMESTEP * np.arange(1, len(velocities) + 1)
    np.testing.assert_allclose(velocities, -mass * g / linear * -np.expm1(-linear * times / mass), rtol=1e-9)


@pytest.mark.slow
def test_terminal_velocity_of_quadratic_drag() -> None:
    velocities = states_of(ball(Drag(quadratic=0.3), gravity=(0, 0, -9.81)), 5.0)[:, 9]
    assert velocities[-1] == pytest.approx(-np.sqrt(9.81 / 0.3), rel=1e-6)
    assert (np.diff(velocities) <= 1e-12).all()


@pytest.mark.parametrize("coefficient", [1.0, 1e3, 1e12])
def test_drag_of_any_strength_stops_and_turns_nothing_back(coefficient: float) -> None:
    drag = Drag(coefficient, quadratic=coefficient, angular=coefficient)
    scene = Scene("box", gravity=FREE, timestep=TIMESTEP)
    scene.add_body(Box((0.3, 0.2, 0.1)), mass=1.0, linear_velocity=(30.0, 0, 0), angular_velocity=(0, 0, 20.0))
    scene.add_field(drag)
    states = states_of(scene, 0.2)
    for column in (7, 12):
        assert (states[:, column] >= -1e-9).all()
        assert (np.diff(states[:, column]) <= 1e-9).all()
    if coefficient > 100:
        assert np.abs(states[-1, 7:13]).max() < 1e-2


def test_a_turn_decays_as_its_exponential() -> None:
    scene = ball(Drag(angular=0.05), angular_velocity=(0, 0, 7.0))
    spin = states_of(scene, 0.5)[:, 12]
    inertia = 0.4 * 0.1**2
    np.testing.assert_allclose(spin, 7.0 * np.exp(-0.05 / inertia * TIMESTEP * np.arange(1, 251)), rtol=1e-8)


@pytest.mark.slow
def test_wind_carries_to_its_velocity() -> None:
    states = states_of(ball(Wind((3.0, -1.0, 0.5), drag=4.0)), 4.0)
    np.testing.assert_allclose(states[-1, 7:10], [3.0, -1.0, 0.5], rtol=1e-6)
    np.testing.assert_allclose(states[99, 7], 3.0 * -np.expm1(-4.0 * 0.2), rtol=1e-9)


def test_gravity_in_a_region_is_a_parabola_inside_it() -> None:
    pull = Gravity((0.0, 0.0, -5.0), BoxRegion((0.0, -1.0, -10.0), (1.0, 1.0, 10.0)))
    states = states_of(ball(pull, position=(-0.5, 0, 0), linear_velocity=(1.0, 0, 0)), 2.0)
    before, after = states[: round(0.498 / TIMESTEP)], states[round(1.51 / TIMESTEP) :]
    assert (before[:, 9] == 0).all()
    np.testing.assert_allclose(after[:, 9], -5.0, rtol=0.005)  # a second inside
    inside = states[round(0.6 / TIMESTEP) : round(1.4 / TIMESTEP)]
    np.testing.assert_allclose(np.diff(inside[:, 9]), -5.0 * TIMESTEP, rtol=1e-9)


def test_scene_gravity_is_cancelled_in_a_sphere() -> None:
    scene = ball(Gravity((0, 0, 9.81), SphereRegion((0, 0, 0), 1.0)), gravity=(0, 0, -9.81))
    assert np.abs(states_of(scene, 0.5)[:, 9]).max() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("shape", [Sphere(0.5), Box((1.0, 1.0, 0.5)), Cylinder(0.6, 0.5)], ids=["ball", "box", "disc"])
def test_what_floats_sinks_in_by_its_density(shape: Any, ratio: float) -> None:
    scene = Scene("float", timestep=TIMESTEP)
    scene.add_body(shape, (0, 0, 0.3), density=1000.0 * ratio)
    scene.add_field(Buoyancy(1000.0, level=0.2, linear_drag=2000.0, angular_drag=500.0))
    height = states_of(scene, 12.0, every=100)[-1, 2] - 0.2
    if isinstance(shape, Sphere):
        depth = 0.5 - height
        assert depth**2 * (1.5 - depth) / (4 * 0.5**3) == pytest.approx(ratio, abs=1e-4)
    else:
        assert 0.25 - height == pytest.approx(0.5 * ratio, abs=1e-3)


def test_a_plank_rights_itself() -> None:
    scene = Scene("plank", timestep=TIMESTEP)
    turn = (np.cos(0.35), np.sin(0.35), 0.0, 0.0)
    scene.add_body(Box((2.0, 1.0, 0.2)), quaternion=turn, density=500.0)
    scene.add_field(Buoyancy(linear_drag=800.0, angular_drag=150.0))
    end = states_of(scene, 12.0, every=200)[-1]
    assert abs(end[4]) < 1e-3
    assert end[2] == pytest.approx(0.0, abs=1e-3)


def test_water_carries_what_floats_in_it() -> None:
    scene = Scene("river", timestep=TIMESTEP)
    scene.add_body(Box((0.5, 0.5, 0.5)), density=500.0)
    scene.add_field(Buoyancy(linear_drag=300.0, velocity=(1.5, 0, 0)))
    assert states_of(scene, 5.0, every=100)[-1, 7] == pytest.approx(1.5, rel=1e-3)


@pytest.mark.slow
def test_an_orbit() -> None:
    """A circle and an ellipse about an attractor: periods of Kepler, energies that stay."""
    mu, radius = 4.0, 2.0
    for share in (1.0, 0.8):
        speed = share * np.sqrt(mu / radius)
        axis = 1 / (2 / radius - speed**2 / mu)
        period = 2 * np.pi * np.sqrt(axis**3 / mu)
        scene = ball(Attractor((1.0, 0, 0), mu), position=(1.0 + radius, 0, 0), linear_velocity=(0, speed, 0))
        states = states_of(scene, period)
        away = states[:, :3] - [1.0, 0, 0]
        energy = (states[:, 7:10] ** 2).sum(axis=1) / 2 - mu / np.linalg.norm(away, axis=1)
        np.testing.assert_allclose(energy, -mu / (2 * axis), rtol=0.01)
        np.testing.assert_allclose(away[-1], [radius, 0, 0], atol=0.03)
        assert np.linalg.norm(away, axis=1).min() == pytest.approx(2 * axis - radius, abs=0.02)


def test_inside_its_core_an_attractor_is_a_spring() -> None:
    scene = ball(Attractor(FREE, strength=9.0, exponent=2.0, core=1.0), position=(0.5, 0, 0))
    states = states_of(scene, 2 * np.pi / 3)
    assert states[-1, 0] == pytest.approx(0.5, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["substeps", "sequential"])
def test_an_oscillation_keeps_its_energy(solver: str) -> None:
    """For long: 200 periods at 15 steps each."""
    scene = ball(Attractor(FREE, strength=200.0**2, core=1.0, exponent=2.0), position=(0.3, 0, 0))
    states = states_of(scene, 6.0, solver=solver)
    energy = states[:, 7] ** 2 / 2 + 200.0**2 * states[:, 0] ** 2 / 2
    assert energy[-200:].max() == pytest.approx(energy[:200].max(), rel=0.02)


@pytest.mark.parametrize("solver", ["substeps", "sequential"])
def test_a_function_makes_an_oscillator(solver: str) -> None:
    scene = ball(Field(spring), mass=2.0, position=(0.3, 0, 0), linear_velocity=(0, 1.0, 0))
    rate = np.sqrt(STIFFNESS / 2.0)
    states = states_of(scene, 1.0, solver=solver)
    times = TIMESTEP * np.arange(1, len(states) + 1)
    np.testing.assert_allclose(states[:, 0], 0.3 * np.cos(rate * times), atol=0.01)
    np.testing.assert_allclose(states[:, 1], np.sin(rate * times) / rate, atol=0.01)


def test_fields_and_contacts_together() -> None:
    """Wind pushes a box along the ground against friction: it starts to slide where the force is as large."""
    for drag, slides in ((2.0, False), (8.0, True)):
        scene = Scene("wind", timestep=TIMESTEP)
        scene.add_static(Box((20, 20, 1)), (0, 0, -0.5), material=Material(friction=0.5))
        scene.add_body(Box((0.4, 0.4, 0.2)), (0, 0, 0.1), mass=1.0, material=Material(friction=0.5))
        scene.add_field(Wind((1.0, 0, 0), drag))
        assert (states_of(scene, 2.0, every=10)[-1, 0] > 0.1) == slides
