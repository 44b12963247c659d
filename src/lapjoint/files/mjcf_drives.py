"""Actuators of MJCF files as drives: forces that are a stiffness and a damping towards where their controls are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import LapjointError
from ..scene import Drive
from .model import Array
from .notes import Notes


def read_drives(
    mujoco: Any, model: Any, notes: Notes, where: Callable[[str, int], str], keyframe: int | None
) -> dict[int, Drive]:
    """Drives by the joint that they act on, in the joints' own positions. Controls are those of the keyframe, or zero,
    or as near to zero as may be. What is zero until something controls it is left out."""
    found: dict[int, Drive] = {}
    controls = _controls(model, keyframe)
    of_joints = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
    one_axis = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
    for number in range(model.nu):
        place, joint = where("actuator", number), int(model.actuator_trnid[number, 0])
        if int(model.actuator_trntype[number]) not in of_joints:
            notes.leave_out(place, "an actuator that acts on no joint; its force is zero at the start")
            continue
        if int(model.jnt_type[joint]) not in one_axis or not _is_known(mujoco, model, number, notes, place):
            notes.leave_out(place, "an actuator of a kind that lapjoint has no drive for")
            continue
        try:
            drive = _drive(mujoco, model, number, notes, place, controls[number])
        except LapjointError as error:
            raise notes.refuse(place, str(error)) if str(notes.path) not in str(error) else error from None
        if drive is None:
            notes.leave_out(place, "a force that is zero until something controls it: simulation.bodies.add_forces")
            continue
        if joint in found:
            raise notes.refuse(place, "a second drive of one joint, expected one")
        found[joint] = drive
        notes.count("drives")
    return found


def _controls(model: Any, keyframe: int | None) -> Array:
    wanted = np.zeros(model.nu) if keyframe is None else np.array(model.key_ctrl[keyframe], float)
    low, high = model.actuator_ctrlrange.T
    return np.where(model.actuator_ctrllimited.astype(bool), np.clip(wanted, low, high), wanted)


def _is_known(mujoco: Any, model: Any, number: int, notes: Notes, place: str) -> bool:
    """Whether an actuator's force follows from its control; one that follows slowly is there in the end."""
    kind, kinds = int(model.actuator_dyntype[number]), mujoco.mjtDyn
    if kind in (kinds.mjDYN_FILTER, kinds.mjDYN_FILTEREXACT, kinds.mjDYN_INTEGRATOR):
        notes.approximate(place, "its control is where it would be in the end, without its own dynamics")
        return True
    return bool(kind == kinds.mjDYN_NONE)


def _drive(mujoco: Any, model: Any, number: int, notes: Notes, place: str, control: float) -> Drive | None:
    """The drive that an actuator is: its force is `gain * control + bias`, which falls with position and velocity."""
    gear = float(model.actuator_gear[number, 0])
    gain, (still, of_length, of_speed) = float(model.actuator_gainprm[number, 0]), model.actuator_biasprm[number, :3]
    stiffness, damping = -float(of_length) * gear**2, -float(of_speed) * gear**2
    if int(model.actuator_biastype[number]) != mujoco.mjtBias.mjBIAS_AFFINE or (stiffness <= 0 and damping <= 0):
        if control and gain:
            raise notes.refuse(place, f"a force from the start, by a control of {control:g}: expected a drive")
        return None
    if stiffness < 0 or damping < 0:
        raise notes.refuse(place, "a drive with a negative gain, expected zero or more")
    if control and int(model.actuator_gaintype[number]) != mujoco.mjtGain.mjGAIN_FIXED:
        raise notes.refuse(place, "a drive with a gain that changes with its position, expected a fixed one")
    # An integral has no end to reach: it starts at zero.
    integrates = int(model.actuator_dyntype[number]) == mujoco.mjtDyn.mjDYN_INTEGRATOR
    push = ((0.0 if integrates else gain * control) + float(still)) * gear
    return Drive(
        position=push / stiffness if stiffness else 0.0,
        velocity=0.0 if stiffness else push / damping,
        stiffness=stiffness,
        damping=damping,
        max_force=_limit(model, number, notes, place),
    )


def _limit(model: Any, number: int, notes: Notes, place: str) -> float:
    """The largest force of an actuator, by its own range and by that of its joint."""
    joint, gear = int(model.actuator_trnid[number, 0]), abs(float(model.actuator_gear[number, 0]))
    ranges = []
    if model.actuator_forcelimited[number]:
        ranges.append(gear * model.actuator_forcerange[number])
    if model.jnt_actfrclimited[joint]:
        ranges.append(model.jnt_actfrcrange[joint])
    if any(one.sum() for one in ranges):
        notes.approximate(place, "the smaller end of its force range is its largest force both ways")
    return min((float(np.abs(one).min()) for one in ranges), default=np.inf)
