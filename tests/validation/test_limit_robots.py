"""Arms, ragdolls and robots with limits that flew apart before these were solved with their structure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from arm_support import GHOST, X, Y, Z, arm_of, every_choice, every_precision, every_timestep, moved, params_of, pitch
from lapjoint import WORLD, Ball, Box, Drive, Hinge, Motor, Scene, Simulation, Slider
from substep_support import G, energy


@pytest.mark.parametrize("timestep", [1 / 60, 1 / 240], ids=["60 Hz", "240 Hz"])
@pytest.mark.parametrize("count", [6, 12, 30])
@pytest.mark.parametrize("which", ["first", "all"])
def test_limits_that_are_violated_at_the_start_do_not_overshoot(which: str, count: int, timestep: float) -> None:
    """By half a degree, in an arm of hinges about changing axes that hangs or, limited in all of them, lies level. It
    gains what lifts it to where it is held."""
    scene, beyond, lift = Scene(timestep=timestep), 0.0087, 0.0
    scene.add_bodies(Box((0.3, 0.1, 0.1)), [(0.2 + 0.4 * k, 0, 0) for k in range(count)], mass=1.0, **GHOST)
    for k in range(count):
        lower, axis = beyond if which == "all" or k == 0 else -0.5, (Y, X, Y)[k % 3]
        limits = (-0.5, -lower) if axis == Y else (lower, 0.5)
        scene.add_joint(Hinge(axis, limits), k, k - 1 if k else WORLD, (0.4 * k, 0, 0))
        lift += lower * G * 0.2 * (count - k) ** 2 if lower > 0 and axis == Y else 0
    joints, farthest, start = np.arange(count), 0.0, energy(scene, scene.states)
    with Simulation(scene, params_of(1, count, "direct", "float32")) as simulation:
        for _ in range(round(0.5 / timestep)):
            simulation.step()
            angle = simulation.joints.positions(joints, 3)
            outside = np.maximum(scene.joints.lower[:, 3] - angle, angle - scene.joints.upper[:, 3])
            farthest = max(farthest, float(outside.max()))
            assert energy(scene, simulation.states) < start + 1.001 * lift
    assert farthest < 1.5 * beyond


@every_timestep
@every_precision
@every_choice
def test_strong_motors_that_hold_two_links_do_not_spin(joints: str, timestep: float, precision: str) -> None:
    states = moved(arm_of(timestep, Hinge(Y, motor=Motor(0.0, 1e5)), [1.0, 1.0]), 1.0, joints, precision)
    assert np.abs(states[:, :, 10:]).max() < 0.1
    assert np.abs(pitch(states)).max() < 0.02


def ragdoll(timestep: float, friction: float = 0.0) -> Scene:
    """Eleven bodies of 83 kg, on balls with cones and hinges with limits, that hang by one hand."""
    scene = Scene(timestep=timestep)

    def body(size: Any, place: Any, mass: float) -> int:
        return scene.add_body(Box(size), place, mass=mass, **GHOST)

    def ball(child: int, parent: int, place: Any, swing: float) -> None:
        scene.add_joint(Ball(swing=swing, twist=(-0.5, 0.5), axis=Z, friction=friction), child, parent, place)

    def knee(child: int, parent: int, place: Any) -> None:
        scene.add_joint(Hinge(Y, (-0.1, 2.2), friction=friction), child, parent, place)

    torso = body((0.3, 0.2, 0.55), (0.0, 0.0, 0.0), 35.0)
    pelvis = body((0.28, 0.18, 0.18), (0.0, 0.0, -0.37), 12.0)
    head = body((0.16, 0.18, 0.22), (0.0, 0.0, 0.39), 5.0)
    ball(pelvis, torso, (0.0, 0.0, -0.28), 0.6)
    ball(head, torso, (0.0, 0.0, 0.28), 0.7)
    for side in (-1, 1):
        upper = body((0.1, 0.1, 0.3), (0.2 * side, 0.0, 0.1), 2.2)
        hand = body((0.08, 0.08, 0.3), (0.2 * side, 0.0, -0.2), 1.5)
        ball(upper, torso, (0.2 * side, 0.0, 0.25), 1.2)
        knee(hand, upper, (0.2 * side, 0.0, -0.05))
        thigh = body((0.14, 0.14, 0.42), (0.1 * side, 0.0, -0.67), 8.0)
        shin = body((0.1, 0.1, 0.42), (0.1 * side, 0.0, -1.09), 4.0)
        ball(thigh, pelvis, (0.1 * side, 0.0, -0.46), 1.0)
        knee(shin, thigh, (0.1 * side, 0.0, -0.88))
    scene.add_joint(Ball(friction=friction), hand, WORLD, (0.2, 0.0, -0.35))
    return scene


@pytest.mark.slow
@every_choice
def test_a_ragdoll_that_hangs_by_a_hand_calms_down(joints: str) -> None:
    """It falls by a metre, swings, and gains nothing; with two timesteps it does about the same."""
    ends = []
    for rate, most_gap in ((60, 0.1), (240, 0.015)):
        scene = ragdoll(1 / rate, friction=20.0)
        energies, spins, gaps = [energy(scene, scene.states)], [], []
        with Simulation(scene, params_of(1, scene.body_count, joints, "float32")) as simulation:
            for _ in range(6 * rate):
                simulation.step()
                energies.append(energy(scene, simulation.states))
                spins.append(np.abs(simulation.states[:, 10:]).max())
                gaps.append(float(simulation.joints.gaps().max()))
        assert max(energies) < energies[0] + 0.01
        assert max(spins) < 40
        assert max(gaps) < (3e-3 if joints == "direct" else most_gap)
        ends.append(max(spins[-rate:]))
    assert max(ends) < 0.75
    if joints == "direct":
        assert ends[0] == pytest.approx(ends[1], rel=0.02)


ROBOT = ("limits", "motors", "motors that slip", "friction", "drives")


def robot(timestep: float, kind: str, load: float) -> Scene:
    """An arm of six axes with a load at its end, on a base of 60 kg that a motor of 3 kN drives to and fro."""
    scene, masses = Scene(timestep=timestep), [30.0, 20.0, 12.0, 6.0, 3.0, load]
    scene.add_body(Box((0.5, 0.5, 0.2)), mass=60.0, **GHOST)
    scene.add_joint(Slider(X, (-0.5, 0.5), motor=Motor(1.0, 3e3), friction=20.0), 0, WORLD, (0.0, 0.0, 0.0))
    for k, axis in enumerate((Z, Y, Y, X, Y, X)):
        torque, wide = G * sum(masses[k:]) * 0.5, (-1.0, 1.0)
        joint = {
            "limits": Hinge(axis, (-0.5, 0.5)),
            "motors": Hinge(axis, wide, motor=Motor(0.0, 2 * torque)),
            "motors that slip": Hinge(axis, wide, motor=Motor(0.0, 0.2 * torque)),
            "friction": Hinge(axis, wide, friction=0.3 * torque),
            "drives": Hinge(
                axis,
                wide,
                drive=Drive(stiffness=40 * torque, damping=4 * torque, max_force=3 * torque),
                friction=0.05 * torque,
            ),
        }[kind]
        scene.add_body(Box((0.36, 0.12, 0.12)), (0.4 * (k + 0.5), 0.0, 0.2), mass=masses[k], **GHOST)
        scene.add_joint(joint, k + 1, k, (0.4 * k, 0.0, 0.2))
    return scene


def driven(scene: Scene, joints: str, precision: str, seconds: float = 3.0) -> tuple[float, float, float]:
    """The most energy that it had more than the motor of the base can have given [J], the fastest spin [rad/s] and the
    largest gap [m]; the base turns back every half second."""
    start, work, steps = energy(scene, scene.states), 0.0, round(0.5 / scene.timestep)
    gained, spin, gap, x = -np.inf, 0.0, 0.0, 0.0
    with Simulation(scene, params_of(1, scene.body_count, joints, precision)) as simulation:
        for half in range(round(seconds / 0.5)):
            simulation.joints.set_targets([0], velocities=[1.0 - 2.0 * (half % 2)])
            for _ in range(steps):
                simulation.step()
                states, before = simulation.states, x
                x = float(states[0, 0])
                work += 3e3 * abs(x - before)
                gained = max(gained, energy(scene, states) - start - work)
                spin, gap = (
                    max(spin, float(np.abs(states[:, 10:]).max())),
                    max(gap, float(simulation.joints.gaps().max())),
                )
    return gained, spin, gap


@pytest.mark.parametrize("kind", ROBOT)
@pytest.mark.parametrize(("load", "joints"), [(1.0, "direct"), (1000.0, "direct"), (1.0, "swept"), (30.0, "swept")])
def test_an_arm_on_a_base_that_is_driven_to_and_fro_stays_calm(load: float, joints: str, kind: str) -> None:
    gained, spin, gap = driven(robot(1 / 60, kind, load), joints, "float32")
    assert gained < 1.0
    assert spin < 20
    assert gap < (2e-3 if joints == "direct" else 0.02)
