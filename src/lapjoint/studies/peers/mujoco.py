"""MuJoCo: soft constraints, solved all at once."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ...arrays import rotation
from ...engines.mujoco_mapping import MujocoMapping, check_sides
from ...errors import LapjointError
from ...params import Params
from ...scene import STATE_SIZE, Cone, Scene, TriangleMesh
from ...scene.joints import JointKind
from ...scene.shapes import StaticShape
from .base import (
    Array,
    Setting,
    hinge_note,
    left_out_notes,
    missing_shape,
    refuse_joints,
    refuse_shapes,
    refuse_surfaces,
)

LADDER = (("CG", 10, False), ("CG", 10, True), ("CG", 30, True), ("CG", 100, True))
"""Solver, iterations at most, and whether constraints are stiff: their time constant is then two timesteps, the
shortest that MuJoCo takes for stable, else the default of 20 ms."""
NEWTON = ("Newton", 100, True)
NEWTON_BODIES = 300
"""Newton, the default solver, only for so many: on a pile of 1,000 balls it takes 270 to 650 ms a step, CG 5 to 20."""


class MujocoPeer:
    """Free bodies, with joints as equality constraints between them."""

    name = "mujoco"
    package = "mujoco"
    precision = "float64"
    most_threads = 1

    @staticmethod
    def check(scene: Scene) -> None:
        def reason(shape: StaticShape) -> str | None:
            if isinstance(shape, TriangleMesh):
                return "it would take the convex hull instead"
            return missing_shape(shape, Cone)

        refuse_shapes("mujoco", scene, reason)
        refuse_surfaces("mujoco", scene)
        refuse_joints("mujoco", scene, (JointKind.BALL, JointKind.HINGE, JointKind.FIXED))
        check_sides("the peer mujoco", scene)

    @staticmethod
    def ladder(scene: Scene, params: Params) -> list[Setting]:
        """Solver, iterations and stiffness: penetration comes from the stiffness."""
        return [
            Setting(
                f"{solver} {iterations}" + " stiff" * stiff,
                20 * iterations,
                {"solver": solver, "iterations": iterations, "stiff": stiff},
            )
            for solver, iterations, stiff in (*LADDER, *[NEWTON][: scene.body_count <= NEWTON_BODIES])
        ]

    @staticmethod
    def unfair(scene: Scene) -> list[str]:
        notes = [
            "its constraints are soft by design: penetration and gaps follow their stiffness, not the iterations, and "
            "stiff ones shake more",
            "it is made for few bodies with many joints: all contacts of a pile are one problem for its solver",
            "float64; friction is a pyramid with slip, lapjoint's has none",
            "one thread is all a scene gets; more are for many scenes side by side",
        ]
        if scene.body_count > NEWTON_BODIES:
            notes.append(
                f"Newton, its default solver, is left out above {NEWTON_BODIES} bodies: piles take it too long"
            )
        if scene.joint_count:
            notes.append(
                "joints are equality constraints here; its own joints in a tree, which have no gap, are not used"
            )
        bouncy = int((scene.bodies.restitution > 0).sum())
        if bouncy:
            notes.append(f"restitution of {bouncy} bodies is left out: its contacts have none")
        if len({*scene.bodies.friction, *scene.statics.friction}) > 1:
            notes.append("a contact takes the larger friction of its two bodies, not the geometric mean")
        return [*notes, *hinge_note(scene), *left_out_notes(scene)]

    def __init__(self, scene: Scene, states: Array, params: Params, setting: Setting) -> None:
        mujoco: Any = import_module(self.package)
        params = params.resolved(scene)
        assert params.timestep is not None
        self._mujoco, self._scene = mujoco, scene
        self._model = model = MujocoMapping(mujoco, scene).compile(params.timestep, **setting.values)
        bodies = scene.bodies
        kept = 1 - np.stack([bodies.linear_damping, bodies.angular_damping], axis=1)
        self._kept = np.repeat(kept**params.timestep, 3, axis=1).ravel()
        self._is_damped = bool((self._kept < 1).any())
        self._data = mujoco.MjData(model)
        self._data.qpos[:] = states[:, :7].ravel()
        self._data.qvel[:] = np.concatenate(
            [states[:, 7:10], rotation.rotate(rotation.conjugate(states[:, 3:7]), states[:, 10:13])], axis=1
        ).ravel()

    # ---- time ----------------------------------------------------------------------------------------------------

    def step(self, count: int = 1) -> None:
        step, model, data, warning = self._mujoco.mj_step, self._model, self._data, self._mujoco.mjtWarning
        for _ in range(count):
            if self._is_damped:
                data.qvel *= self._kept
            step(model, data)
        for full in (warning.mjWARN_CONTACTFULL, warning.mjWARN_CNSTRFULL):
            if data.warning[full].number:
                raise LapjointError(f"peer mujoco: no memory for all contacts of scene {self._scene.name!r}")

    def states(self) -> Array:
        places, speeds = self._data.qpos.reshape(-1, 7), self._data.qvel.reshape(-1, 6)
        rows = np.empty((self._scene.body_count, STATE_SIZE))
        rows[:, :7], rows[:, 7:10] = places, speeds[:, :3]
        rows[:, 3:7] /= np.linalg.norm(rows[:, 3:7], axis=1, keepdims=True)
        rows[:, 10:13] = rotation.rotate(rows[:, 3:7], speeds[:, 3:])
        return rows

    def penetration(self) -> float:
        return float(max(0.0, -self._data.contact.dist.min(initial=0.0)))

    def close(self) -> None:
        del self._data, self._model
