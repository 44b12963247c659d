"""Joints that are driven, limited, or of no frame: what they are made of, and scenes with them in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapjoint import (
    FREE,
    LOCKED,
    WORLD,
    Ball,
    Box,
    Distance,
    Drive,
    Gear,
    Hinge,
    LapjointError,
    Motor,
    Scene,
    SixAxis,
    Slider,
    Sphere,
)
from lapjoint.scene.joints import counted_angles, counts_turns
from lapjoint.scene.measures import joint_gaps
from lapjoint.scene.serialize import added_since, describe_scene, extend_scene
from lapjoint.scene.tables import MAY_BE_MISSING

AT = (0.0, 0.0, 0.0)
NEW = {
    name for name in MAY_BE_MISSING if name.startswith("joints/") and not any(one in name for one in ("break", "bond"))
}


def pair() -> Scene:
    scene = Scene()
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [(0.0, 0.0, 0.0), (2.0, 0.0, 0.0)])
    return scene


WRONG: dict[str, tuple[Any, str]] = {
    "no force": (lambda: Drive(1.0), "Drive: neither stiffness nor damping is given"),
    "stiffness": (lambda: Drive(stiffness=-1.0), "Drive: stiffness is -1.0, expected zero or more"),
    "endless stiffness": (lambda: Drive(stiffness=np.inf), "Drive: stiffness is inf"),
    "damping": (lambda: Drive(damping=np.nan), "Drive: damping is nan"),
    "max_force": (lambda: Drive(damping=1.0, max_force=0.0), "Drive: max_force is 0.0, expected a positive number"),
    "position": (lambda: Drive(np.inf, damping=1.0), "Drive: position is inf, expected a finite number"),
    "a motor without an end": (lambda: Drive(damping=np.inf), "Drive: damping is infinite, as a Motor's"),
    "a motor with a spring": (lambda: Drive(stiffness=1.0, damping=np.inf, max_force=1.0), "expected no stiffness"),
    "drive number": (lambda: Hinge(drive=3.0), "Hinge: axis 3 has 3.0, expected a Drive"),  # type: ignore[arg-type]
    "both": (lambda: Hinge(motor=Motor(1, 1), drive=Drive(damping=1.0)), "axis 3 has both a motor and a drive"),
    "locked": (lambda: SixAxis(drives={2: Drive(damping=1.0)}), "axis 2 is locked, so its Drive could do nothing"),
    "no axis": (lambda: SixAxis(frictions={6: 1.0}), "axis 6 does not exist, expected 0 to 5"),
    "locked friction": (lambda: SixAxis(frictions={1: 1.0}), "axis 1 is locked, so its friction could do nothing"),
    "friction": (lambda: Slider(friction=-1.0), "Slider: axis 0: friction is -1.0, expected zero or more"),
    "ball friction": (lambda: Ball(friction=np.inf), "Ball: friction is inf, expected zero or more"),
    "swing": (lambda: Ball(swing=np.pi), "Ball: swing is 3.14"),
    "twist": (lambda: Ball(twist=(1.0, 0.0)), "Ball: twist: limits are (1.0, 0.0)"),
    "twist of nothing": (lambda: Ball(twist=(0.5, 0.5)), "expected limits apart from each other"),
    "no distance": (lambda: Distance(), "Distance: neither length, lower nor upper is given"),
    "no length": (lambda: Distance(0.0), "Distance: length is 0.0, expected a positive number"),
    "two lengths": (lambda: Distance(1.0, upper=2.0), "both length and lower or upper are given"),
    "upside down": (lambda: Distance(lower=2.0, upper=1.0), "lower is 2.0 and upper is 1.0"),
    "no ratio": (lambda: Gear(0.0), "Gear: ratio is 0.0, expected a number that is not zero"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_refused_by_name(name: str) -> None:
    make, message = WRONG[name]
    scene = pair()

    def add() -> None:
        joint = make()
        options = {"anchor_b": AT} if isinstance(joint, Distance) else {}
        scene.add_joint(joint, 0, 1, AT, **options)

    with pytest.raises(LapjointError) as caught:
        add()
    assert message in str(caught.value)
    assert scene.joint_count == 0


def test_anchors_and_ends_that_do_not_fit_are_refused() -> None:
    scene = pair()
    with pytest.raises(LapjointError, match="joint 0: a Distance needs anchor_b"):
        scene.add_joint(Distance(1.0), 0, 1, AT)
    with pytest.raises(LapjointError, match="joint 0: a Hinge has no anchor_b"):
        scene.add_joint(Hinge(), 0, 1, AT, anchor_b=AT)
    with pytest.raises(LapjointError, match="joint 0: a Gear couples two bodies, not the WORLD"):
        scene.add_joint(Gear(2.0), 0, WORLD, AT)
    with pytest.raises(LapjointError, match="axes are given, and those of a Gear are its own"):
        scene.add_joints(Gear(2.0), [0], [1], [AT], axes=[(1.0, 0.0, 0.0)])


def machine() -> Scene:
    scene = pair()
    scene.add_joint(Hinge(drive=Drive(7.0, 1.0, 2.0, 3.0, 4.0), friction=0.5), 0, WORLD, AT)
    scene.add_joint(SixAxis((FREE, LOCKED, LOCKED), drives={0: Drive(damping=1.0)}, frictions={0: 2.0}), 1, 0, AT)
    scene.add_joint(Ball(swing=0.5, twist=(-1.0, 1.0), axis=(0.0, 1.0, 0.0), friction=1.0), 1, WORLD, AT)
    scene.add_joint(Distance(lower=0.5, upper=2.0), 0, 1, AT, anchor_b=(1.0, 0.0, 0.0))
    scene.add_joint(Gear(-2.0, (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)), 0, 1, AT)
    return scene


def test_a_scene_with_them_is_the_same_from_a_file(tmp_path: Path) -> None:
    scene = machine()
    again = Scene.load(scene.save(tmp_path / "machine.scene"))
    assert again == scene
    for name in scene.joints:
        assert np.array_equal(getattr(again.joints, name), getattr(scene.joints, name)), name


def test_a_scene_without_them_has_none_of_their_columns_in_files_and_messages() -> None:
    scene = pair()
    scene.add_joint(Hinge(motor=Motor(1.0, 2.0)), 0, 1, AT)
    assert not NEW & describe_scene(scene)[1].keys()
    added = added_since(scene, (0, 0, 0)).tobytes()
    assert b"motor_velocity" in added
    assert not any(name.encode() in added for name in NEW)
    assert all(name.encode() in added_since(machine(), (0, 0, 0)).tobytes() for name in NEW)


def test_what_was_added_arrives_with_and_without_their_columns() -> None:
    for full in (pair(), machine()):
        full.add_joint(Hinge(), 0, 1, AT)
        other = Scene()
        extend_scene(other, added_since(full, (0, 0, 0)))
        for name in full.joints:
            assert np.array_equal(getattr(other.joints, name), getattr(full.joints, name)), name


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["hinge", "six", "two", "last", "slider"]),
            st.sampled_from([FREE, (-1.0, 2.0), (-4.0, 1.0), (-10.0, 10.0)]),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_angles_are_counted_where_one_axis_turns_and_somebody_wants_it(
    joints: list[tuple[str, tuple[float, float], bool]],
) -> None:
    scene, wanted = pair(), []
    for kind, limits, driven in joints:
        drives = {3: Drive(damping=1.0)} if driven else {}
        far = max(np.abs(limits)) > np.pi and limits != FREE
        if kind == "hinge":
            joint: Any = Hinge(limits=limits, drive=drives.get(3))
        elif kind == "six":
            joint = SixAxis(angular=(limits, LOCKED, LOCKED), drives=drives)
        elif kind == "last":
            joint = SixAxis(angular=(LOCKED, LOCKED, limits), drives={5: drives[3]} if driven else {})
        elif kind == "two":
            joint = SixAxis(angular=(FREE, (-1.0, 1.0), LOCKED), drives=drives)
        else:
            joint = Slider(limits=limits)
        scene.add_joint(joint, 0, 1, AT)
        wanted.append(kind in ("hinge", "six", "last") and (far or driven))
    assert counts_turns(scene.joints).tolist() == wanted
    assert counts_turns(scene.joints, len(joints) - 1).tolist() == wanted[-1:]


@given(st.floats(-1e4, 1e4), st.floats(-1.5, 1.5))
def test_counted_angles_are_those_near_their_half_turns(angle: float, off: float) -> None:
    half_turns = np.round((angle + off) / np.pi)
    wrapped = np.angle(np.exp(1j * angle))
    assert counted_angles([wrapped], [half_turns])[0] == pytest.approx(angle, abs=1e-9)


def test_the_gap_of_a_distance_is_beyond_its_limits() -> None:
    scene = Scene()
    scene.add_bodies(Sphere(0.1), [(x, 0.0, 0.0) for x in range(4)])
    start = np.array(scene.states)
    scene.add_joints(Distance(lower=0.5, upper=1.5), [1, 2, 3], [0, 0, WORLD], start[1:, :3], anchors_b=[AT] * 3)
    turned = start.copy()
    turned[:, 0] = 0.0, 1.2, 2.0, 0.1
    assert joint_gaps(scene, turned) == pytest.approx([0.0, 0.5, 0.4])
