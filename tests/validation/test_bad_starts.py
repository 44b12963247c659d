"""Joints whose bodies start turned away from each other or metres apart: they come together, calmly and the right way.

Bounds are a few times what was measured.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lapjoint import WORLD, Ball, Box, Fixed, Hinge, Params, Scene, Simulation, SixAxis, Slider, Substeps
from lapjoint.arrays import rotation as rot
from lapjoint.scene.joints import Joint
from substep_support import JOINTS, PRECISIONS, WEIGHTLESS, G
from tight_support import start_from

Array = NDArray[np.float64]
X = (1.0, 0.0, 0.0)
GHOST: dict[str, Any] = {"group": 2, "mask": 0}
"""Of bodies that touch nothing."""
TIMESTEPS = (1 / 60, 1 / 240)
MANY = int(os.environ.get("LAPJOINT_LIMIT_CASES", "0")) // 20
A_FEW = settings(max_examples=MANY or 2, derandomize=not MANY, database=None, deadline=None, phases=[Phase.generate])
every_precision = pytest.mark.parametrize("precision", PRECISIONS)
every_choice = pytest.mark.parametrize("joints", JOINTS)
every_timestep = pytest.mark.parametrize("timestep", TIMESTEPS, ids=lambda timestep: f"{round(1 / timestep)} Hz")


def start(
    joint: Joint, turn: Array, away: Any, is_free: bool, timestep: float, gravity: Any, masses: Any = (1.0, 2.0)
) -> Scene:
    """A body that is jointed to another or to the world, half a metre beside its joint, and starts at rest, turned
    about the joint and moved away from it."""
    scene = Scene(timestep=timestep, gravity=gravity)
    scene.add_body(Box((0.8, 0.3, 0.2)), (0.5, 0.0, 0.0), mass=masses[0], **GHOST)
    if is_free:
        scene.add_body(Box((0.8, 0.2, 0.3)), (-0.5, 0.0, 0.0), mass=masses[1], **GHOST)
    scene.add_joint(joint, 0, 1 if is_free else WORLD, (0.0, 0.0, 0.0))
    states = scene.states.copy()
    states[0, :3], states[0, 3:7] = rot.rotate(turn, states[0, :3]) + away, turn
    start_from(scene, states)
    return scene


class Course(NamedTuple):
    """What happened in a run: each after every step."""

    turned: Array  # how far from the way that the joint holds its bodies [rad]
    gap: Array  # m
    speed: Array  # m/s, the fastest
    spin: Array  # rad/s, the fastest

    def time_to(self, angle: float, gap: float, timestep: float) -> float:
        """When both were below for good [s]."""
        late = np.flatnonzero((self.turned > angle) | (self.gap > gap))
        return (late[-1] + 1) * timestep if len(late) else 0.0


def course(scene: Scene, seconds: float, axis: Any, joints: str, precision: str) -> Course:
    """With an axis, what counts is the angle between the two bodies' axes; without one, the whole angle."""
    found, kind = [], Params(runtime="inline", workers=1, substeps=Substeps(joints=joints), precision=precision)
    with Simulation(scene, kind) as simulation:
        for _ in range(round(seconds / scene.timestep)):
            simulation.step()
            states = simulation.states
            a, b = states[0, 3:7], states[1, 3:7] if len(states) == 2 else np.array([1.0, 0, 0, 0])
            if axis is None:
                turned = 2 * np.arccos(min(1.0, abs(float(a @ b))))
            else:
                ends = rot.rotate(a, axis), rot.rotate(b, axis)
                turned = float(np.arctan2(np.linalg.norm(np.cross(*ends)), ends[0] @ ends[1]))
            speed, spin = (float(np.linalg.norm(states[:, k : k + 3], axis=1).max()) for k in (7, 10))
            found.append((turned, float(simulation.joints.gaps().max()), speed, spin))
    return Course(*np.array(found).T)


class Kind(NamedTuple):
    joint: Joint
    axis: Any  # that both bodies share in the end; None: they share all


KINDS = {
    "weld": Kind(Fixed(), None),
    "slider": Kind(Slider(X), None),
    "hinge": Kind(Hinge((0.0, 0.6, 0.8)), (0.0, 0.6, 0.8)),
    "slider with limits": Kind(Slider(X, (-0.1, 0.1)), None),
    "hinge with limits": Kind(Hinge((0.0, 0.6, 0.8), (-0.5, 0.5)), (0.0, 0.6, 0.8)),
    "six-axis weld": Kind(SixAxis(), None),
}
DIRECTIONS = st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda v: np.linalg.norm(v) > 0.1)
ANGLES = st.sampled_from([180.0, 90.0, 179.0, 10.0, 30.0, 60.0, 120.0, 150.0]) | st.floats(10.0, 180.0)


@pytest.mark.slow
@every_choice
@pytest.mark.parametrize("kind", KINDS)
def test_bodies_that_start_turned_away_come_together(kind: str, joints: str) -> None:
    """Without gravity: direct joints within 150 steps and nearly without velocity, swept ones within 280."""

    @A_FEW
    @given(ANGLES, DIRECTIONS, st.booleans(), st.sampled_from(TIMESTEPS), st.sampled_from(PRECISIONS))
    def attempt(degrees: float, direction: Any, is_free: bool, timestep: float, precision: str) -> None:
        turn = rot.from_axis_angle(np.array(direction) / np.linalg.norm(direction), np.radians(degrees))
        scene = start(KINDS[kind].joint, turn, 0.0, is_free, timestep, WEIGHTLESS)
        found = course(scene, 300 * timestep, KINDS[kind].axis, joints, precision)
        is_direct = joints == "direct"
        assert found.speed.max() < (0.1 if is_direct else 10.0)
        assert found.spin.max() < (0.3 if is_direct else 40.0)
        assert found.turned.max() < np.radians(degrees) + 0.01
        assert found.time_to(0.02, 0.01, timestep) < (150 if is_direct else 280) * timestep
        assert found.turned[-1] < 3e-3
        assert found.gap[-1] < 1e-3

    attempt()


@pytest.mark.slow
@every_timestep
@every_precision
@every_choice
@pytest.mark.parametrize("degrees", [90.0, 180.0])
def test_a_weld_to_the_world_holds_the_right_way_under_gravity(
    degrees: float, joints: str, precision: str, timestep: float
) -> None:
    turn = rot.from_axis_angle(np.array([0.48, 0.6, 0.64]), np.radians(degrees))
    found = course(start(Fixed(), turn, 0.0, False, timestep, (0, 0, -G)), 250 * timestep, None, joints, precision)
    assert found.speed.max() < (1e-3 if joints == "direct" else 10.0)
    assert found.turned[-1] < 2e-3
    assert found.gap[-1] < 1e-3


def twisted(timestep: float, count: int, seed: int) -> Scene:
    """Boxes that are welded in a row to the world, each turned about its middle as it happens to be."""
    scene, rng = Scene(timestep=timestep, gravity=WEIGHTLESS), np.random.default_rng(seed)
    scene.add_bodies(Box((0.4, 0.2, 0.2)), [(0.25 + 0.5 * k, 0, 0) for k in range(count)], mass=1.0, **GHOST)
    scene.add_joints(Fixed(), range(count), [WORLD, *range(count - 1)], [(0.5 * k, 0, 0) for k in range(count)])
    states = scene.states.copy()
    for k in range(count):
        axis = rng.normal(size=3)
        states[k, 3:7] = rot.from_axis_angle(axis / np.linalg.norm(axis), rng.uniform(0, np.pi))
    start_from(scene, states)
    return scene


@pytest.mark.slow
@every_precision
@every_timestep
@every_choice
@pytest.mark.parametrize("seed", range(1))
def test_a_row_of_welded_bodies_straightens(seed: int, joints: str, timestep: float, precision: str) -> None:
    scene = twisted(timestep, 6, seed)
    with Simulation(
        scene, Params(runtime="inline", workers=1, substeps=Substeps(joints=joints), precision=precision)
    ) as simulation:
        for _ in range(600):
            simulation.step()
            assert np.abs(simulation.states[:, 7:]).max() < (5.0 if joints == "direct" else 150.0)
        assert simulation.joints.gaps().max() < 1e-3
        assert np.abs(simulation.states[:, 3]).min() > 1 - 1e-4


APART = {"ball": Ball(), "cone": Ball(swing=0.5, twist=(-0.3, 0.3)), "hinge": KINDS["hinge"].joint, "weld": Fixed()}


@pytest.mark.slow
@every_choice
@pytest.mark.parametrize("kind", APART)
def test_anchors_that_start_metres_apart_come_together(kind: str, joints: str, request: pytest.FixtureRequest) -> None:
    """Without gravity: within 150 steps."""
    if joints == "swept":
        reason = "swept joints throw bodies whose anchors start metres apart, at hundreds of metres a second"
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason))

    @A_FEW
    @given(
        st.sampled_from([1.0, 0.5, 2.0, 5.0]),
        DIRECTIONS,
        st.booleans(),
        st.sampled_from(TIMESTEPS),
        st.sampled_from(PRECISIONS),
    )
    def attempt(far: float, direction: Any, is_free: bool, timestep: float, precision: str) -> None:
        away, still = far * np.array(direction) / np.linalg.norm(direction), np.array([1.0, 0, 0, 0])
        scene = start(APART[kind], still, away, is_free, timestep, WEIGHTLESS)
        found = course(scene, 300 * timestep, X, joints, precision)
        assert found.speed.max() < 30
        assert found.gap.max() < far + 0.01
        assert found.time_to(np.inf, 0.01, timestep) < 150 * timestep
        assert found.gap[-1] < 1e-3

    attempt()


@every_timestep
@every_precision
@every_choice
@pytest.mark.parametrize("is_free", [False, True], ids=["to the world", "to another body"])
def test_anchors_that_start_a_hand_apart_come_together(
    is_free: bool, joints: str, precision: str, timestep: float
) -> None:
    scene = start(Ball(), np.array([1.0, 0, 0, 0]), (0.03, 0.04, 0.0), is_free, timestep, WEIGHTLESS)
    found = course(scene, 100 * timestep, X, joints, precision)
    assert found.speed.max() < (0.02 if joints == "direct" else 1.0)
    assert found.gap[-1] < 1e-4
