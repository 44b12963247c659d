"""Joints as limits and drives between two nodes: the connected one is body a's, which moves relative to the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....files.axes import DRIVEN, OWN_COLUMNS
from ....files.gltf_words import OWN
from ....scene import Scene
from ....scene.bonds import with_breaks
from ....scene.joints import WORLD, JointKind
from ..tables import axis_drive, driven_axes
from .document import Document


def add_joints(document: Document, scene: Scene, bodies: Sequence[int], count: int) -> None:
    """The first `count` joints; bodies are nodes by their numbers."""
    for i in range(count):
        row = with_breaks({name: column[i] for name, column in scene.joints.views().items()})
        frames = []
        for side in ("a", "b"):
            body, frame = int(row[f"body_{side}"]), row[f"frame_{side}"]
            parent = document.root if body == WORLD else bodies[body]
            frames.append(document.add_node(parent, position=frame[:3], quaternion=frame[3:]))
        entry = _entry(row)
        joint = {"connectedNode": frames[0], "joint": document.once("physicsJoints", repr(entry), lambda e=entry: e)}
        if row["collide"]:
            joint["enableCollision"] = True
        document.rigid(frames[1])["joint"] = joint
        document.nodes[frames[1]]["name"] = f"joint {i}"


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    kind, lower, upper = JointKind(int(row["kind"])), row["lower"], row["upper"]
    limits: list[dict[str, Any]] = []
    if kind is JointKind.DISTANCE:
        limits.append({"linearAxes": [0, 1, 2], **_range(max(float(lower[0]), 0.0), float(upper[0]))})
    elif kind is JointKind.BALL:
        limits.append({"linearAxes": [0, 1, 2], "min": 0.0, "max": 0.0})
        if np.isfinite(upper[4]):
            limits.append({"angularAxes": [1, 2], "min": 0.0, "max": float(upper[4])})
        if np.isfinite([lower[3], upper[3]]).any():
            limits.append({"angularAxes": [0], **_range(float(lower[3]), float(upper[3]))})
    elif kind is not JointKind.GEAR:
        for name, first in (("linearAxes", 0), ("angularAxes", 3)):
            locked = [axis - first for axis in range(first, first + 3) if lower[axis] == upper[axis] == 0]
            if locked:
                limits.append({name: locked, "min": 0.0, "max": 0.0})
            for axis in range(first, first + 3):
                if axis - first not in locked and np.isfinite([lower[axis], upper[axis]]).any():
                    limits.append({name: [axis - first], **_range(float(lower[axis]), float(upper[axis]))})
    entry: dict[str, Any] = {"limits": limits} if limits else {}
    drives = [drive for axis in range(6) if (drive := _drive(row, axis))]
    if drives:
        entry["drives"] = drives
    own: dict[str, Any] = {name: row[column].tolist() for column, name in OWN_COLUMNS.items() if np.any(row[column])}
    own["kind"] = kind.name.lower()
    if driven_axes(row):
        own[DRIVEN] = driven_axes(row)
    if kind is JointKind.GEAR:
        own["gearRatio"] = float(row["gear_ratio"])
    for column, name in (("break_force", "breakForce"), ("break_torque", "breakTorque")):
        if np.isfinite(row[column]):
            own[name] = float(row[column])
    return {**entry, "extras": {OWN: own}}


def _range(low: float, high: float) -> dict[str, float]:
    """Ends that are there."""
    return {name: value for name, value in (("min", low), ("max", high)) if np.isfinite(value)}


def _drive(row: dict[str, Any], axis: int) -> dict[str, Any] | None:
    drive = axis_drive(row, axis)
    if drive is None:
        return None
    entry: dict[str, Any] = {
        "type": "angular" if axis >= 3 else "linear",
        "mode": "force",
        "axis": axis % 3,
        "positionTarget": drive.position,
        "velocityTarget": drive.velocity,
        "stiffness": drive.stiffness,
        "damping": drive.damping,
    }
    return {**entry, "maxForce": drive.max_force} if np.isfinite(drive.max_force) else entry
