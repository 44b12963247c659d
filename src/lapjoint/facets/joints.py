"""simulation.joints: joints are added and removed, read and driven."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import LapjointError
from ..scene.joint_motion import JointMotion, of_axis, with_turns
from ..scene.joints import Joint
from ..scene.measures import joint_gaps
from ..server.readings import read_joint_forces
from ..server.scene_changes import adding, break_joints, require_engine
from ..whole import whole
from ..workers.messages import JointTargets
from .base import Facet, require_kept_forces

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


class SimulationJoints(Facet):
    """Joints are added and removed, read and driven, all between two steps."""

    _prefix = "joints."

    # ---- come and go ---------------------------------------------------------------------------------------------

    @whole
    def add(self, joint: Joint, bodies_a: ArrayLike, bodies_b: ArrayLike, anchors: ArrayLike, **options: Any) -> range:
        """Add joints of one kind, with the options of Scene.add_joints, before the next step; bodies are joined as they
        stand now. Returns their numbers, which are higher than any of before."""
        with adding(self._core, "joints.add") as scene:
            return scene.add_joints(joint, bodies_a, bodies_b, anchors, **options)

    @whole
    def add_one(self, joint: Joint, body_a: int, body_b: int, anchor: ArrayLike, **options: Any) -> int:
        """Join two bodies as they stand now, with the options of Scene.add_joint, before the next step. Returns the
        joint's number."""
        with adding(self._core, "joints.add_one") as scene:
            return scene.add_joint(joint, body_a, body_b, anchor, **options)

    @whole
    def remove(self, joint_ids: ArrayLike) -> None:
        """Remove joints, for good, from the next step on: they hold nothing any more, and their bodies may touch. They
        keep their numbers, and are no breaks."""
        ids = self._core.scene.checked_joint_ids(joint_ids, "joints.remove")
        require_engine(self._core, "breaks", "joints.remove: joints stay")
        if len(ids):
            break_joints(self._core, ids, self._core.now.step_count)

    @property
    def broken_ids(self) -> Ids:
        """Joints that have broken or were removed, or have lost a body, ascending; a copy."""
        return self._core.now.commands.broken

    # ---- read ----------------------------------------------------------------------------------------------------

    def positions(self, joint_ids: ArrayLike, axis: int | str | None = None) -> Array:
        """Where joints stand now, body a relative to body b [m, rad]: (n, 6), or (n,) on one axis, by its number or
        "free" for the only one that each of them leaves free. Angles that are counted go on over turns. Not a number
        where a body was removed."""
        core, what = self._core, "joints.positions"
        ids, motion = self._motion(joint_ids, what)
        positions = with_turns(core.scene, motion.positions(), ids, core.now.commands.drives.half_turns(ids))
        return of_axis(core.scene, positions, ids, axis, what)

    def velocities(self, joint_ids: ArrayLike, axis: int | str | None = None) -> Array:
        """How fast they move now [m/s, rad/s]: rates of the positions, in the same shape."""
        ids, motion = self._motion(joint_ids, "joints.velocities")
        return of_axis(self._core.scene, motion.velocities(), ids, axis, "joints.velocities")

    def _motion(self, joint_ids: ArrayLike, what: str) -> tuple[Ids, JointMotion]:
        scene = self._core.scene
        ids = scene.known_joint_ids(joint_ids, what)
        return ids, JointMotion(scene, self._core.states(what), ids)

    @whole
    def forces(self, joint_ids: ArrayLike) -> Array:
        """Force [N] and torque about the anchor [N m] that each joint applied to its body a in the last step, in the
        mean, (n, 6): in the joint's frame on body b, locked axes, limits, motors and springs together. Zeros for one
        that did not hold in it. With Params.keep_forces."""
        core = self._core
        require_kept_forces(core, "joints.forces")
        ids = core.scene.known_joint_ids(joint_ids, "joints.forces")
        return read_joint_forces(core.now, core.coupling.weights, core.runtime.step, ids)

    def gaps(self) -> Array:
        """Gap of every joint now [m]; that of one that holds no more is 0."""
        core, scene = self._core, self._core.scene
        core.check_open("joints.gaps")
        gaps, holds = np.zeros(scene.joint_count), np.flatnonzero(scene.joint_alive)
        if len(holds):
            gaps[holds] = joint_gaps(scene, core.states("joints.gaps"), holds)
        return gaps

    # ---- driven --------------------------------------------------------------------------------------------------

    @whole
    def set_targets(
        self,
        joint_ids: ArrayLike,
        positions: ArrayLike | None = None,
        velocities: ArrayLike | None = None,
        axis: ArrayLike | None = None,
    ) -> None:
        """Have drives go for these positions [m or rad] and velocities [m/s or rad/s], from the next step on, until
        they are set again: one for all joints or one for each. What is not given stays as it was; a Motor has a
        velocity alone. `axis` is needed for joints that are driven on several."""
        require_engine(self._core, "drives", "joints.set_targets: targets stay")
        if self._core.params.solver != "substeps":
            raise LapjointError(f"joints.set_targets: the solver is {self._core.params.solver}, expected substeps")
        self._core.now.commands.drives.set_targets(joint_ids, positions, velocities, axis)

    def targets(self, joint_ids: ArrayLike, axis: ArrayLike | None = None) -> Array:
        """Targets of drives now, (number of joints, 2): positions and velocities."""
        return self._core.now.commands.drives.targets(joint_ids, axis)

    @property
    def all_targets(self) -> JointTargets | None:
        """Targets of drives that were set, and half turns of counted angles now, as they are sent to workers; None if
        there are none."""
        return self._core.now.commands.drives.all_targets()
