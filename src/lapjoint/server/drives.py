"""Drives: what driven axes of joints are to do, and how often counted angles have turned. Workers are told changes.

All workers are told all of it, whoever has the joints: of 10,000 targets a worker reads those of joints that it does
not have in 0.1 ms, and whoever gets a joint later knows its targets already.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.checks import as_rows, integer_rows
from ..arrays.growing import grown
from ..arrays.state import Arrays, PartState
from ..errors import LapjointError
from ..scene.joints import counts_turns
from ..scene.living import LivingScene
from ..step_tables.half_turns import HalfTurns
from ..workers.messages import JointTargets

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
AXES = 6


class Drives:
    """Axes go by six times the joint's number and the axis. Joints that are added later are looked at when somebody
    asks."""

    def __init__(self, scene: LivingScene) -> None:
        self._scene = scene
        self._joint_count = 0  # that were looked at
        self._axes = self._counted = np.empty(
            0, np.int32
        )  # driven axes, and joints whose angles are counted; ascending
        self._first_row = np.zeros(1, np.int32)  # of each joint, and one past the last
        self._targets = np.empty((2, 0))  # positions and velocities
        self._can = np.empty((2, 0), bool)  # whether one does anything
        self._is_set = self._is_changed = np.empty(0, bool)  # ever; since workers were told
        self._half_turns = np.empty(0, np.int32)
        self._has_turned = np.empty(0, bool)  # since workers were told
        self._has_news = False  # whether anything has

    def _look(self) -> None:
        joints, first = self._scene.joints, self._joint_count
        if first == len(joints):
            return
        rows = slice(first, len(joints))
        driven = (joints.drive_max_force[rows] > 0) | (joints.motor_max_force[rows] > 0)
        motor = joints.motor_max_force[rows] > 0
        velocity = np.where(motor, joints.motor_velocity[rows], joints.drive_velocity[rows])
        targets = np.stack([joints.drive_position[rows][driven], velocity[driven]])
        axes = np.flatnonzero(driven) + AXES * first
        self._axes = np.concatenate([self._axes, axes]).astype(np.int32)
        self._targets = np.concatenate([self._targets, targets], axis=1)
        can = [joints.drive_stiffness[rows][driven] > 0, (motor | (joints.drive_damping[rows] > 0))[driven]]
        self._can = np.concatenate([self._can, np.stack(can)], axis=1)
        ends = self._first_row[-1] + np.cumsum(driven.sum(axis=1))
        self._first_row = np.concatenate([self._first_row, ends]).astype(np.int32)
        counted = np.flatnonzero(counts_turns(joints, first)) + first
        self._counted = np.concatenate([self._counted, counted]).astype(np.int32)
        self._is_set, self._is_changed = (
            grown(one, len(self._axes), False) for one in (self._is_set, self._is_changed)
        )
        self._half_turns = grown(self._half_turns, len(self._counted))
        self._has_turned = grown(self._has_turned, len(self._counted), False)
        self._joint_count = len(joints)

    # ---- targets -----------------------------------------------------------------------------------------------------

    def set_targets(
        self, joint_ids: ArrayLike, positions: ArrayLike | None, velocities: ArrayLike | None, axis: ArrayLike | None
    ) -> None:
        what = "joints.set_targets"
        if positions is None and velocities is None:
            raise LapjointError(f"{what}: neither positions nor velocities are given")
        ids, rows = self._find(joint_ids, axis, what)
        checked: list[Array | None] = []
        given = (("position", positions, "stiffness"), ("velocity", velocities, "damping"))
        for can, (name, values, factor) in zip(self._can, given, strict=True):
            checked.append(None)
            if values is None:
                continue
            if not (able := can[rows]).all():
                joint = ids[np.argmin(able)]
                raise LapjointError(f"{what}: joint {joint} has no {factor}, so a {name} could do nothing")
            checked[-1] = as_rows(name, values, len(ids), (), lambda row: f"{what}: joint {ids[row]}")
        for column, new in zip(self._targets, checked, strict=True):
            if new is not None:
                before = column[rows]
                column[rows] = new  # the last one, where a joint is named twice
                changed = rows[column[rows] != before]
                self._is_changed[changed] = True
                self._has_news |= len(changed) > 0
        self._is_set[rows] = True

    def targets(self, joint_ids: ArrayLike, axis: ArrayLike | None) -> Array:
        """Positions and velocities, (n, 2)."""
        rows = self._find(joint_ids, axis, "joints.targets")[1]
        return np.ascontiguousarray(self._targets[:, rows].T)

    def _find(self, joint_ids: ArrayLike, axis: ArrayLike | None, what: str) -> tuple[Ids, NDArray[np.integer]]:
        """Joints that hold, and their rows."""
        self._look()
        ids = self._scene.checked_joint_ids(joint_ids, what)
        if axis is None:
            first, last = self._first_row[ids], self._first_row[ids + 1]
            for row in np.flatnonzero(last == first):
                raise LapjointError(f"{what}: joint {ids[row]} has no drive and no motor")
            for row in np.flatnonzero(last > first + 1):
                known = ", ".join(str(one % AXES) for one in self._axes[first[row] : last[row]])
                raise LapjointError(
                    f"{what}: joint {ids[row]} has drives on the axes {known}, expected one with `axis`"
                )
            return ids, first
        axes = integer_rows("axis", axis, len(ids), lambda row: f"{what}: joint {ids[row]}", 0, AXES - 1)
        wanted = AXES * ids + axes.astype(np.int32)
        rows = np.searchsorted(self._axes, wanted)
        for row in np.flatnonzero(np.append(self._axes, -1)[rows] != wanted):
            raise LapjointError(f"{what}: joint {ids[row]} has no drive and no motor on axis {axes[row]}")
        return ids, rows

    # ---- turns -------------------------------------------------------------------------------------------------------

    def half_turns(self, joint_ids: ArrayLike) -> Ids:
        """Half turns that counted angles are next to after the last step; 0 of others. See
        scene.joints.counted_angles."""
        self._look()
        ids = np.asarray(joint_ids)
        rows = np.searchsorted(self._counted, ids)
        found = np.append(self._counted, -1)[rows] == ids
        return np.where(found, np.append(self._half_turns, 0)[rows], 0).astype(np.int32)

    def note_turned(self, found: HalfTurns) -> None:
        """What workers have counted."""
        self._look()
        rows = np.searchsorted(self._counted, found.joint)
        self._half_turns[rows] = found.half_turns
        self._has_turned[rows] = self._has_news = True

    # ---- messages ----------------------------------------------------------------------------------------------------

    def changed_targets(self) -> JointTargets | None:
        """What workers have not been told yet: see `note_told`."""
        if not self._has_news:
            return None
        return self._message(self._is_changed, self._has_turned)

    def all_targets(self) -> JointTargets | None:
        """All that a worker may not know, or know otherwise: from steps that are taken again."""
        self._look()
        if len(self._counted) == 0 and not self._is_set.any():
            return None
        return self._message(self._is_set, np.ones(len(self._counted), bool))

    def _message(self, axes: NDArray[np.bool_], joints: NDArray[np.bool_]) -> JointTargets:
        rows, turned = np.flatnonzero(axes), np.flatnonzero(joints)
        return JointTargets(
            self._axes[rows], self._targets[:, rows].T.copy(), self._counted[turned], self._half_turns[turned]
        )

    def note_told(self) -> None:
        """All workers have been told what has changed."""
        if self._has_news:
            self._is_changed[:] = self._has_turned[:] = self._has_news = False

    # ---- state -------------------------------------------------------------------------------------------------------

    def state(self) -> PartState:
        self._look()
        rows, turned = np.flatnonzero(self._is_set), np.flatnonzero(self._half_turns)
        return PartState(
            {
                "axes": self._axes[rows],
                "targets": self._targets[:, rows].T.copy(),
                "turned": self._counted[turned],
                "half_turns": self._half_turns[turned],
            }
        )

    def restore(self, state: PartState) -> None:
        """Workers are told all of it before the next step, by whoever restores this."""
        self._look()
        for name, known in (("axes", self._axes), ("turned", self._counted)):
            for wrong in np.setdiff1d(state.arrays[name], known):
                raise ValueError(f"drives/{name} has {wrong}, which the scene does not have")
        rows = np.searchsorted(self._axes, state.arrays["axes"])
        self._targets[:, rows], self._is_set[rows] = state.arrays["targets"].T, True
        self._half_turns[np.searchsorted(self._counted, state.arrays["turned"])] = state.arrays["half_turns"]


NOTHING: Arrays = {
    "axes": np.empty(0, np.int32),
    "targets": np.empty((0, 2)),
    "turned": np.empty(0, np.int32),
    "half_turns": np.empty(0, np.int32),
}
"""The state of a scene in which nothing was driven otherwise than it has it."""
