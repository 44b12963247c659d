"""What stands still with the substep solver, and bodies that spin freely. Measured at 2 ms and four substeps."""

from __future__ import annotations

import numpy as np
import pytest

from lapjoint import (
    WORLD,
    Box,
    ConvexHull,
    Fixed,
    Material,
    Plane,
    Scene,
    Simulation,
    Sphere,
    make_engine,
    scenes,
)
from lapjoint.arrays import rotation as rot
from lapjoint.measures import angular_momentum, kinetic_energy
from lapjoint.params import Params, Substeps
from substep_support import PRECISIONS, WEIGHTLESS, started, top_speed

every_precision = pytest.mark.parametrize("precision", PRECISIONS)
H = 0.002


def stack(count: int, mass: list[float] | None = None) -> Scene:
    scene = Scene(timestep=H, iterations=50)
    scene.add_static(Plane())
    places = [(0.0, 0.0, 0.5 + k) for k in range(count)]
    scene.add_bodies(Box((1.0, 1.0, 1.0)), places, **({} if mass is None else {"mass": mass}))
    return scene


def wall(length: int = 30, courses: int = 12) -> Scene:
    """Bricks of 40 x 20 x 20 cm; every other course is moved by three eighths of one."""
    scene = Scene(timestep=H, iterations=50)
    scene.add_static(Plane())
    places = [(0.4 * k + 0.15 * (row % 2), 0.0, 0.1 + 0.2 * row) for row in range(courses) for k in range(length)]
    scene.add_bodies(Box((0.398, 0.2, 0.2)), places)
    return scene


def arch(stones: int = 15, radius: float = 2.0, thickness: float = 0.4) -> Scene:
    """Half a ring of wedges that nothing but friction holds."""
    rough = Material(friction=0.8)
    scene = Scene(timestep=H, iterations=50)
    scene.add_static(Plane(), material=rough)
    for k in range(stones):
        angles = np.pi * np.array([k, k + 1]) / stones
        corners = [
            (r * np.cos(angle), y, r * np.sin(angle))
            for angle in angles
            for r in (radius - thickness / 2, radius + thickness / 2)
            for y in (-0.25, 0.25)
        ]
        stone = ConvexHull(np.array(corners))
        scene.add_body(stone, stone.centre, material=rough)
    return scene


def card_house(levels: int = 3) -> Scene:
    """Cards of 20 x 12 cm, 4 mm thick, that lean against each other at 20 degrees; friction 0.6."""
    length, width, thickness, lean = 0.2, 0.12, 0.004, np.radians(20.0)
    card = Material(friction=0.6)
    scene = Scene(timestep=H, iterations=50)
    scene.add_static(Plane(), material=card)
    height = length * np.cos(lean) + thickness * np.sin(lean)
    base = 2 * (length * np.sin(lean) + thickness * np.cos(lean))
    for level in range(levels):
        bottom, tents = level * (height + thickness), levels - level
        for k in range(tents):
            for side in (-1.0, 1.0):
                out = side * (length * np.sin(lean) + thickness * np.cos(lean)) / 2
                place = ((k - (tents - 1) / 2) * base + out, 0.0, bottom + height / 2)
                turn = rot.from_axis_angle((0.0, 1.0, 0.0), -side * lean)
                scene.add_body(Box((thickness, width, length)), place, turn, material=card)
        for k in range(tents - 1):
            place = ((k - (tents - 2) / 2) * base, 0.0, bottom + height + thickness / 2)
            scene.add_body(Box((base, width, thickness)), place, material=card)
    return scene


def moved(scene: Scene, states: np.ndarray) -> float:
    """How far the farthest body is from where it started [m]."""
    return float(np.linalg.norm(states[:, :3] - scene.states[:, :3], axis=1).max())


# ---- stacks, walls, arches ---------------------------------------------------------------------------------------


@every_precision
@pytest.mark.parametrize(
    ("count", "most", "speed"),
    [pytest.param(10, 5e-4, 2e-3, id="10"), pytest.param(50, 5e-3, 0.02, id="50", marks=pytest.mark.slow)],
)
def test_a_stack_stands(count: int, most: float, speed: float, precision: str) -> None:
    scene = stack(count)
    engine = started(scene, precision)
    engine.step(2500)
    assert moved(scene, engine.get_states()) < most
    assert top_speed(engine) < speed
    assert engine.contacts().penetration < 3e-6 * count


def test_penetration_falls_by_four_with_twice_the_substeps() -> None:
    """At rest it is load / stiffness, and the stiffness grows with the square of the substeps' number. Balls that start
    in each other: of two points that just touch, either may carry."""
    scene, depths = Scene(timestep=H), []
    scene.add_static(Plane())
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 0.5 + k - 1e-4 * (k + 1)) for k in range(5)])
    for substeps in (1, 2, 4, 8):
        engine = started(scene, substeps=substeps)
        engine.step(500)
        engine.contacts(now=True)
        depths.append(engine.contacts().depth.sum())
    np.testing.assert_allclose(np.divide(depths[:-1], depths[1:]), 4.0, rtol=3e-3)


@every_precision
@pytest.mark.slow
def test_a_wall_stands(precision: str) -> None:
    """After 3 s: 5e-5 J and 4.3 mm of penetration in all (float32: 9e-4 J); 50 sweeps have 2e-2 J and 49 mm."""
    scene = wall()
    engine = started(scene, precision)
    engine.step(1500)
    assert moved(scene, engine.get_states()) < 1e-3
    assert kinetic_energy(scene, engine.get_states()) < 5e-3
    assert engine.contacts().depth.clip(0).sum() < 0.01


@every_precision
@pytest.mark.slow
def test_an_arch_without_mortar_stands(precision: str) -> None:
    scene = arch()
    engine = started(scene, precision)
    engine.step(1500)
    assert moved(scene, engine.get_states()) < 3e-3
    assert top_speed(engine) < 2e-3


@every_precision
def test_a_card_house_stands(precision: str) -> None:
    scene = card_house(2)
    engine = started(scene, precision)
    engine.step(1000)
    assert moved(scene, engine.get_states()) < 2e-4
    assert top_speed(engine) < 1e-4


@pytest.mark.slow
def test_a_card_house_of_three_levels_stands() -> None:
    scene = card_house(3)
    engine = started(scene)
    engine.step(2500)
    assert moved(scene, engine.get_states()) < 3e-4
    assert top_speed(engine) < 1e-9


MASSES = {
    "heavy on light": ([1.0, 1000.0], 4e-3, 0.05),
    "light on heavy": ([1000.0, 1.0], 1e-5, 1e-4),
    "in turn": ([1.0, 1000.0, 1.0, 1000.0, 1.0], 8e-3, 0.05),
}


@every_precision
@pytest.mark.parametrize("order", MASSES)
def test_masses_of_one_to_a_thousand_stand(order: str, precision: str) -> None:
    mass, depth, speed = MASSES[order]
    scene = stack(len(mass), mass)
    engine, deepest = started(scene, precision), 0.0
    for _ in range(100):
        engine.step(10)
        deepest = max(deepest, engine.contacts().penetration)
    assert deepest < depth
    assert top_speed(engine) < speed
    assert moved(scene, engine.get_states()) < 2 * depth


@every_precision
@pytest.mark.slow
def test_the_building_stands_while_no_ball_hits_it(precision: str) -> None:
    """687 bodies of 85 t: 1 J after half a second, 5e-4 J after two; float32 stays between 0.1 and 3 J."""
    scene = scenes.build("building", 800)
    ids = np.arange(scene.body_count - 2)
    engine = make_engine(scene, Params(solver="substeps", precision=precision))
    engine.activate(ids, scene.states[ids])
    engine.step(1000)
    states = engine.get_states()
    speeds = np.linalg.norm(states[:, 7:10], axis=1)
    assert 0.5 * scene.bodies.mass[ids] @ speeds**2 < (0.01 if precision == "float64" else 10.0)
    assert np.abs(states[:, 2] - scene.states[ids, 2]).max() < 5e-4
    assert engine.contacts().penetration < 2e-4


# ---- free rotation -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("timestep", [0.002, 0.01])
@pytest.mark.parametrize("spin", [5.0, 20.0])
@every_precision
def test_a_body_that_turns_over_keeps_energy_and_angular_momentum(precision: str, spin: float, timestep: float) -> None:
    """About its middle axis, 20 s: it turns over several times."""
    scene = Scene(timestep=timestep, gravity=WEIGHTLESS)
    scene.add_body(Box((1.0, 0.6, 0.3)), angular_velocity=(0.01, spin, 0.01))
    engine, about_middle = started(scene, precision), []
    start, momentum = kinetic_energy(scene, scene.states), angular_momentum(scene, scene.states)
    for _ in range(200):
        engine.step(round(0.1 / timestep))
        states = engine.get_states()
        about_middle.append(rot.rotate(rot.conjugate(states[0, 3:7]), states[0, 10:])[1])
    assert min(about_middle) < -0.8 * spin
    assert max(about_middle[50:]) > 0.8 * spin
    assert kinetic_energy(scene, states) == pytest.approx(start, rel=2e-11 if precision == "float64" else 2e-5)
    astray = np.linalg.norm(angular_momentum(scene, states) - momentum) / np.linalg.norm(momentum)
    # float32: an error of the timestep grows each time that it turns over.
    assert astray < (1e-5 if precision == "float64" else 2e-3 if (spin, timestep) == (20.0, 0.01) else 5e-5)


@pytest.mark.parametrize("rate", [60, 240])
@pytest.mark.parametrize("mass", [1.0, 10.0, 100.0])
@pytest.mark.parametrize(("parts", "workers"), [(1, 1), (4, 1), (4, 2)])
def test_a_shelf_of_a_kilogram_a_part_that_is_welded_to_the_world_bears_a_tower(
    parts: int, workers: int, mass: float, rate: int
) -> None:
    scene = Scene("shelf", timestep=1 / rate)
    for k in range(parts):
        scene.add_body(Box((0.5, 1.0, 0.2)), (0.5 * k, 0, 1), mass=1.0)
        scene.add_joint(Fixed(), k, k - 1 if k else WORLD, (0.5 * k - 0.25, 0, 1))
    boxes = [scene.add_body(Box((0.4, 0.5, 0.5)), (0.5 * (parts - 1), 0, 1.35 + 0.5 * k), mass=mass) for k in range(4)]
    with Simulation(scene, Params(workers=workers, runtime="inline", substeps=Substeps(joints="direct"))) as simulation:
        simulation.step(2 * rate)
        for _ in range(10):
            simulation.step(rate // 10)
            assert np.abs(simulation.states[boxes, 7:]).max() < 1e-2
        assert simulation.states[boxes, 2] == pytest.approx([1.35, 1.85, 2.35, 2.85], abs=0.004)
