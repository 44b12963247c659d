"""What an engine with the features "drives", "joint friction", "ball limits" and "counted angles" promises, and those
with distances and gears. Engines that have none refuse them by name (test_engines.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine_support import ENGINES, Kind, Make, gaps_of, is_installed, reported
from lapjoint import WORLD, Ball, Box, Cylinder, Distance, Drive, Gear, Hinge, LapjointError, Motor, Scene, Slider
from lapjoint.engines import Changes, DriveTargets, HalfTurnsSet
from lapjoint.scene.joints import counted_angles
from lapjoint.step_tables.half_turns import HalfTurns

Z = (0.0, 0.0, 1.0)
AT = (0.0, 0.0, 0.0)


@pytest.fixture(params=[kind for kind in ENGINES if is_installed(kind[0])], ids="-".join)
def kind(request: pytest.FixtureRequest) -> Kind:
    kind: Kind = request.param
    return kind


def one(joint: Any, gravity: Any = AT) -> Scene:
    scene = Scene(gravity=gravity, timestep=0.005)
    scene.add_body(Cylinder(0.5, 0.2), mass=2.0)
    scene.add_joint(joint, 0, WORLD, AT)
    return scene


def angle(engine: Any) -> float:
    state = engine.get_states([0])[0]
    return float(2 * np.arctan2(state[6], state[3]))


def test_targets_count_from_the_next_step_on(start: Make) -> None:
    start.needs("drives")
    scene = one(Slider(Z, drive=Drive(0.1, 0.0, 5000.0, 400.0)))
    scene.add_body(Cylinder(0.5, 0.2), (3.0, 0.0, 0.0), mass=2.0)
    scene.add_joint(Slider(Z, motor=Motor(0.0, 100.0)), 1, WORLD, (3.0, 0.0, 0.0))
    engine = start(scene)
    engine.step(300)
    assert engine.get_states([0, 1])[:, 2] == pytest.approx([0.1, 0.0], abs=1e-4)
    engine.change(Changes(drive_targets=DriveTargets([1, 0], [0, 0], [[0.0, 0.3], [-0.2, 0.0]])))
    engine.step(300)
    assert engine.get_states([0])[0, 2] == pytest.approx(-0.2, abs=1e-4)
    assert engine.get_states([1])[0, 9] == pytest.approx(0.3, abs=1e-4)
    with pytest.raises(LapjointError, match="joint 0 has no drive on axis 3"):
        engine.change(Changes(drive_targets=DriveTargets([1, 0], [0, 3], [[0.0, 9.0], [0.0, 9.0]])))
    engine.step(10)
    assert engine.get_states([1])[0, 9] == pytest.approx(0.3, abs=1e-4)


def test_turns_are_counted_and_part_of_the_state(make: Make, start: Make) -> None:
    start.needs("drives", "counted angles", "contact cache")
    scene = one(Hinge(Z, drive=Drive(25.0, 0.0, 40.0, 8.0)))
    engine = start(scene)
    engine.step(80)
    (half_turns,) = engine.joint_turns([0])
    assert half_turns >= 2
    turned = reported(engine, HalfTurns)
    assert (turned.joint.tolist(), turned.half_turns.tolist()) == ([0], [half_turns])
    assert len(reported(engine, HalfTurns)) == 0
    other = make(scene)
    other.restore(engine.state())
    assert other.joint_turns([0]) == [half_turns]
    for both in (engine, other):
        both.step(400)
    assert np.array_equal(engine.get_states(), other.get_states())
    assert counted_angles([angle(engine)], engine.joint_turns([0])) == pytest.approx(25.0, abs=0.01)
    # A body that leaves and comes back has its turns still; they can be set, too.
    engine.deactivate([0])
    engine.activate([0], other.get_states([0]))
    assert engine.joint_turns([0]) == other.joint_turns([0])
    engine.change(Changes(half_turns=HalfTurnsSet([0], [2])))
    engine.step(400)
    assert engine.joint_turns([0]) == [8]


def test_angles_that_need_no_count_have_none(start: Make) -> None:
    start.needs("counted angles")
    engine = start(one(Hinge(Z, motor=Motor(5.0, 100.0))))
    engine.step(400)
    assert engine.joint_turns([0]) == [0]
    with pytest.raises(LapjointError, match="joint 0 counts no turns"):
        engine.change(Changes(half_turns=HalfTurnsSet([0], [1])))


def test_friction_holds(start: Make) -> None:
    start.needs("joint friction")
    engine = start(one(Slider(Z, friction=2.0 * 9.9), gravity=(0.0, 0.0, -9.81)))
    engine.step(100)
    assert abs(engine.get_states([0])[0, 2]) < 1e-3


def test_limits_of_a_ball_joint_hold(start: Make) -> None:
    start.needs("ball limits")
    scene = Scene(timestep=0.005)
    scene.add_body(Box((1.0, 0.1, 0.1)), (0.5, 0.0, 0.0), mass=1.0)
    scene.add_joint(Ball(swing=0.5), 0, WORLD, AT)
    engine = start(scene)
    engine.step(300)
    assert engine.get_states([0])[0, 2] == pytest.approx(-0.5 * np.sin(0.5), abs=2e-3)


def test_a_rope_and_a_gear(start: Make) -> None:
    scene = Scene(timestep=0.005)
    scene.add_bodies(Cylinder(0.2, 0.1), [AT, (1.0, 0.0, 0.0), (2.0, 0.0, 0.0)], mass=1.0)
    scene.add_joint(Hinge(Z, motor=Motor(4.0, 10.0)), 0, WORLD, AT)
    scene.add_joint(Hinge(Z), 1, WORLD, (1.0, 0.0, 0.0))
    scene.add_joint(Gear(-2.0, Z, Z), 0, 1, AT)
    scene.add_joint(Distance(upper=0.5), 2, WORLD, (2.0, 0.0, 0.0), anchor_b=(2.0, 0.0, 0.0))
    engine = start(scene)
    engine.step(300)
    states = engine.get_states()
    assert states[1, 12] == pytest.approx(-2.0, abs=1e-3)
    assert states[2, 2] == pytest.approx(-0.5, abs=1e-3)
    assert gaps_of(engine)[1].max() < 1e-3
