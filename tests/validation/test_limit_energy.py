"""Limits, motors, friction, drives and ropes at unequal masses: energy never rises.

`LAPJOINT_LIMIT_CASES=1000 python -m pytest tests/validation/test_limit_energy.py` tries so many random arms;
`make test` a few, the same every time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from arm_support import GHOST, Array, X, Y, Z, params_of
from lapjoint import WORLD, Ball, Box, Distance, Drive, Hinge, Motor, Scene, Simulation, SixAxis, Slider, Sphere
from lapjoint.scene.joints import Joint
from substep_support import PRECISIONS, G, energy

MANY = int(os.environ.get("LAPJOINT_LIMIT_CASES", "0"))
FEW = 2
"""Random arms of each kind."""

AXES = (Y, Y, Z)


def lever(scene: Scene, masses: Array) -> None:
    """Balls on ropes between points that are off their centres, under one that a ball joint holds."""
    places = np.array([(0.3 * k, 0.0, -0.5 * k) for k in range(len(masses))])
    scene.add_bodies(Sphere(0.1), places, mass=masses, **GHOST)
    scene.add_joint(Ball(), 0, WORLD, (0.0, 0.0, 1.0))
    for k in range(1, len(masses)):
        scene.add_joint(
            Distance(upper=1.0), k, k - 1, (0.3 * k, 0, -0.5 * k), anchor_b=(0.3 * (k - 1), 0, -0.5 * (k - 1))
        )


def string(joint: Distance) -> Callable[[Scene, Array], None]:
    """Balls in a row, each on a rope or a rod to the one before."""

    def build(scene: Scene, masses: Array) -> None:
        scene.add_bodies(Sphere(0.1), [(0.4 * (k + 1), 0, 0) for k in range(len(masses))], mass=masses, **GHOST)
        for k in range(len(masses)):
            scene.add_joint(joint, k, k - 1 if k else WORLD, (0.4 * (k + 1), 0, 0), anchor_b=(0.4 * k, 0, 0))

    return build


STRINGS: dict[str, Callable[[Scene, Array], None]] = {
    "ropes": string(Distance(upper=0.5)),
    "rods": string(Distance(length=0.4)),
    "ropes at levers": lever,
}
SLIDES = (X, Z)
# The joint before link k; its load is the torque that the links from there on pull with where they lie level.
ARMS: dict[str, Callable[[int, float], Joint]] = {
    "hinges with limits": lambda k, load: Hinge(Y, (-0.3, 0.3)),
    "hinges with limits in space": lambda k, load: Hinge(AXES[k % 3], (-0.2, 0.4)),
    "motors that hold": lambda k, load: Hinge(Y, motor=Motor(0.0, 1e7)),
    "motors that slip": lambda k, load: Hinge(Y, motor=Motor(1.0, 0.3 * load)),
    "friction that sticks": lambda k, load: Hinge(Y, friction=1e7),
    "friction that slips": lambda k, load: Hinge(Y, friction=0.2 * load),
    "limits and friction": lambda k, load: Hinge(Y, (-0.3, 0.3), friction=0.1 * load),
    "limits and motors": lambda k, load: Hinge(Y, (-0.3, 0.3), motor=Motor(-1.0, 0.5 * load)),
    "sliders": lambda k, load: Slider(SLIDES[k % 2], (-0.1, 0.1)),
    "sliders with friction": lambda k, load: Slider(SLIDES[k % 2], (-0.1, 0.1), friction=0.3 * load),
    "cones": lambda k, load: Ball(swing=0.2, twist=(-0.1, 0.1)),
    "cones with friction": lambda k, load: Ball(swing=0.4, twist=(-0.2, 0.2), friction=0.1 * load),
    "balls with friction": lambda k, load: Ball(friction=0.2 * load),
    "six axes, angles limited": lambda k, load: SixAxis(angular=((-0.1, 0.1),) * 3),
    "six axes, all limited": lambda k, load: SixAxis(((-0.05, 0.05),) * 3, ((-0.1, 0.1),) * 3),
    "six axes with friction": lambda k, load: SixAxis(
        angular=((-0.3, 0.3),) * 3, frictions=dict.fromkeys((3, 4, 5), 0.1 * load)
    ),
    "stiff drives": lambda k, load: Hinge(Y, drive=Drive(stiffness=20 * load, damping=2 * load)),
    "soft drives": lambda k, load: Hinge(Y, drive=Drive(stiffness=2 * load, damping=0.1 * load)),
    "drives and limits": lambda k, load: Hinge(Y, (-0.05, 0.05), drive=Drive(stiffness=2 * load, damping=0.2 * load)),
    "drives, limits and friction": lambda k, load: Hinge(
        Y, (-0.1, 0.2), drive=Drive(stiffness=5 * load, damping=0.5 * load), friction=0.1 * load
    ),
    "of every kind": lambda k, load: (
        Hinge(Y, (-0.3, 0.3), friction=0.1 * load),
        Ball(swing=0.3, twist=(-0.2, 0.2)),
        Slider(Z, (-0.1, 0.1)),
        Hinge(Z, motor=Motor(0.0, 0.5 * load)),
        SixAxis(angular=((-0.1, 0.1), (-0.2, 0.2), (-0.2, 0.2))),
    )[k % 5],
}
PATTERNS: dict[str, Callable[[int, float], Array]] = {
    "rising": lambda n, ratio: ratio ** (np.arange(n) / (n - 1)),
    "falling": lambda n, ratio: ratio ** (np.arange(n)[::-1] / (n - 1)),
    "heavy end": lambda n, ratio: np.where(np.arange(n) == n - 1, ratio, 1.0),
    "heavy base": lambda n, ratio: np.where(np.arange(n) == 0, ratio, 1.0),
    "by turns": lambda n, ratio: np.where(np.arange(n) % 2 == 0, ratio, 1.0),
}


@dataclass(frozen=True)
class Arm:
    """A row of links that begins level, at rest, and falls; how heavy they are, and how it is simulated."""

    kind: str
    links: int
    pattern: str
    ratio: float
    timestep: float
    workers: int
    joints: str
    precision: str

    @property
    def masses(self) -> Array:
        """From 1 kg to the ratio."""
        return PATTERNS[self.pattern](self.links, self.ratio)

    @property
    def is_too_fast_for_gaps(self) -> bool:
        """Links of a kilogram under the weight of a tonne turn too far in a step of 1/60 s."""
        return self.ratio == 1000 and self.timestep == 1 / 60 and self.pattern in ("rising", "heavy end", "by turns")

    def scene(self) -> Scene:
        scene, masses = Scene(timestep=self.timestep), self.masses
        if self.kind in STRINGS:
            STRINGS[self.kind](scene, masses)
            return scene
        scene.add_bodies(Box((0.8, 0.1, 0.1)), [(0.5 + k, 0, 0) for k in range(self.links)], mass=masses, **GHOST)
        for k in range(self.links):
            joint = ARMS[self.kind](k, G * float(masses[k:] @ (np.arange(self.links - k) + 0.5)))
            scene.add_joint(joint, k, k - 1 if k else WORLD, (k, 0, 0))
        return scene

    def outcome(self, seconds: float) -> tuple[float, float]:
        """The most energy that it had more than it can have, in units of what all links weigh times the arm's length,
        and the largest gap [m].

        It can have what it began with and the work of motors: at most their force times the way. Springs of drives
        begin at rest, so that they can only take."""
        scene = self.scene()
        start, scale = energy(scene, scene.states), G * self.masses.sum() * self.links
        motors, force = np.flatnonzero(scene.joints.motor_velocity[:, 3]), scene.joints.motor_max_force[:, 3]
        steps, at_once = round(seconds / self.timestep), max(1, round(1 / 240 / self.timestep))
        most, gap, work, angle, speed = 0.0, 0.0, 0.0, np.zeros(len(motors)), np.zeros(len(motors))
        with Simulation(scene, params_of(self.workers, self.links, self.joints, self.precision)) as simulation:
            for _ in range(steps // at_once):
                simulation.step(at_once)
                if len(motors):
                    before, angle = angle, simulation.joints.positions(motors, 3)
                    way = np.abs(np.angle(np.exp(1j * (angle - before))))
                    work += float(force[motors] @ np.maximum(way, np.abs(speed) * at_once * self.timestep))
                    speed = simulation.joints.velocities(motors, 3)
                most = max(most, energy(scene, simulation.states) - start - work)
                gap = max(gap, float(simulation.joints.gaps().max()))
                if not (np.isfinite(simulation.states).all() and most < 10 * scale):
                    return np.inf, np.inf
        return most / scale, gap


WAYS = [(1, "direct"), (1, "swept"), (2, "auto"), (4, "auto")]


@st.composite
def arms(draw: st.DrawFn, kind: str) -> Arm:
    """The first, which is always tried, is four links from a kilogram to a tonne at 1/60 s."""
    workers, joints = draw(st.sampled_from(WAYS))
    links = draw(st.sampled_from([links for links in (4, 2, 3, 6, 8, 12) if links >= workers]))
    ratios = (50.0, 1.0, 10.0) if joints == "swept" else (1000.0, 1.0, 10.0, 100.0)
    timesteps = (1 / 60, 1 / 120, 1 / 240, 1 / 1000)
    pattern, ratio = draw(st.sampled_from(list(PATTERNS))), draw(st.sampled_from(ratios))
    timestep, precision = draw(st.sampled_from(timesteps)), draw(st.sampled_from(PRECISIONS))
    return Arm(kind, links, pattern, ratio, timestep, workers, joints, precision)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*ARMS, *STRINGS])
def test_an_arm_that_falls_gains_no_energy(kind: str) -> None:
    @settings(
        max_examples=-(-MANY // len([*ARMS, *STRINGS])) or FEW,
        derandomize=not MANY,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, *([Phase.shrink] if MANY else [])],
    )
    @given(arms(kind))
    def attempt(arm: Arm) -> None:
        gained, gap = arm.outcome(2.0 if MANY else 1.0)
        assert gained < 0.01
        if arm.joints == "direct" and not arm.is_too_fast_for_gaps:
            assert gap < 0.01

    attempt()
