"""The MuJoCo engine: soft constraints, solved all at once, in float64. States go through its arrays.

A model of MuJoCo's is fixed once it is made: no body can come or go. So every worker's model has all bodies of the
scene; those that are not active touch nothing, hold nothing and are put back after every step. A model of the active
bodies alone would have to be rebuilt whenever one comes or goes, which takes longer than hundreds of steps.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ..arrays import rotation
from ..errors import LapjointError
from ..params import Params
from ..scene import STATE_SIZE, Ball, Cone, Fixed, Hinge, Scene, TriangleMesh
from .base import CONTACT_MARGIN, Array, Contacts, Ids
from .checked import CheckedEngine
from .mujoco_mapping import MujocoMapping, check_sides
from .support import ALL_SHAPES, Support

LARGEST = 2000
"""Bodies. A body that is not active takes 0.4 us of every step, which is little; but the time to make a model grows
with the square of the scene, for every worker and for the server: 0.4 s for 1,000 bodies, 1.2 s for 2,000."""


class MujocoEngine(CheckedEngine):
    """Free bodies, with joints as equality constraints between them."""

    supports = Support(
        "mujoco",
        ("float64",),
        shapes=tuple(shape for shape in ALL_SHAPES if shape not in (Cone, TriangleMesh)),
        joints=(Ball, Hinge, Fixed),
        features=("fields", "groups", "part groups", "part materials"),
        extra="mujoco",
    )

    @staticmethod
    def check(scene: Scene, params: Params) -> None:
        check_sides("the engine mujoco", scene)
        if scene.body_count > LARGEST:
            raise LapjointError(
                f"scene {scene.name!r} has {scene.body_count:,} bodies, and the engine mujoco takes at most "
                f"{LARGEST:,}: every worker's model has all of them, for it cannot take bodies out"
            )

    def __init__(self, scene: Scene, params: Params) -> None:
        super().__init__(scene, params)
        self._mujoco: Any = import_module("mujoco")
        mapping = MujocoMapping(self._mujoco, scene, CONTACT_MARGIN * self.length_unit)
        assert params.sequential.iterations is not None
        # Newton is exact in few iterations where joints make a few large problems, and slow on piles.
        solver = "Newton" if scene.joint_count else "CG"
        self._model = mapping.compile(self.timestep, solver, params.sequential.iterations, stiff=True)
        self._data = self._mujoco.MjData(self._model)
        self._owner = np.array(mapping.geom_owner, np.int32)
        self._constraint_joint = np.array(mapping.constraint_joint, np.int32)
        self._geom_filter = self._model.geom_contype.copy(), self._model.geom_conaffinity.copy()
        self._body_filter = self._model.body_contype.copy(), self._model.body_conaffinity.copy()
        bodies = scene.bodies
        kept = 1 - np.stack([bodies.linear_damping, bodies.angular_damping], axis=1)
        self._kept = np.repeat(kept**self.timestep, 3, axis=1)
        self._is_damped = bool((self._kept < 1).any())
        self._places = self._data.qpos.reshape(-1, 7)
        self._speeds = self._data.qvel.reshape(-1, 6)
        self._parked = self._places.copy()
        self._filter()
        self._hold()

    def apply_iterations(self, iterations: int) -> None:
        self._model.opt.iterations = iterations

    # ---- who is in -----------------------------------------------------------------------------------------------

    def put_in(self, ids: Ids, states: Array) -> None:
        self.write(ids, states)
        self._start_cold(ids)
        self._filter(ids)

    def take_out(self, ids: Ids) -> None:
        self._parked[ids] = self._places[ids]
        self._speeds[ids] = 0.0
        self._start_cold(ids)
        self._filter()
        self._hold()

    def join(self, joint_ids: Ids) -> None:
        self._hold(joint_ids)

    def _filter(self, coming: Ids | None = None) -> None:
        """Let active bodies and those that come touch, no others."""
        model, active = self._model, self._is_active.copy()
        if coming is not None:
            active[coming] = True
        of_geom = (self._owner < 0) | active[np.maximum(self._owner, 0)] if len(active) else self._owner < 0
        of_body = np.concatenate([[True], active])
        model.geom_contype[:] = np.where(of_geom, self._geom_filter[0], 0)
        model.geom_conaffinity[:] = np.where(of_geom, self._geom_filter[1], 0)
        model.body_contype[:] = np.where(of_body, self._body_filter[0], 0)
        model.body_conaffinity[:] = np.where(of_body, self._body_filter[1], 0)

    def _hold(self, coming: Ids | None = None) -> None:
        """Let live joints and those that come hold, no others."""
        live = self._is_live.copy()
        if coming is not None:
            live[coming] = True
        self._data.eq_active[:] = live[self._constraint_joint]

    def _start_cold(self, ids: Ids) -> None:
        self._data.qacc_warmstart.reshape(-1, 6)[ids] = 0.0

    # ---- states --------------------------------------------------------------------------------------------------

    def write(self, ids: Ids, states: Array) -> None:
        turns = states[:, 3:7] / np.linalg.norm(states[:, 3:7], axis=1, keepdims=True)
        self._places[ids, :3], self._places[ids, 3:] = states[:, :3], turns
        self._speeds[ids, :3] = states[:, 7:10]
        self._speeds[ids, 3:] = rotation.rotate(rotation.conjugate(turns), states[:, 10:13])

    def read(self, ids: Ids) -> Array:
        rows = np.empty((len(ids), STATE_SIZE))
        rows[:, :7], rows[:, 7:10] = self._places[ids], self._speeds[ids, :3]
        rows[:, 3:7] /= np.linalg.norm(rows[:, 3:7], axis=1, keepdims=True)
        rows[:, 10:13] = rotation.rotate(rows[:, 3:7], self._speeds[ids, 3:])
        return rows

    # ---- time ----------------------------------------------------------------------------------------------------

    def advance(self, forces: Array | None) -> None:
        data, warning, away = self._data, self._mujoco.mjtWarning, ~self._is_active
        if forces is not None:
            data.xfrc_applied[1:] = forces
        if self._is_damped:
            self._speeds *= self._kept
        self._mujoco.mj_step(self._model, data)
        if forces is not None:
            data.xfrc_applied[1:] = 0.0
        self._places[away] = self._parked[away]
        self._speeds[away] = 0.0
        for full in (warning.mjWARN_CONTACTFULL, warning.mjWARN_CNSTRFULL):
            if data.warning[full].number:
                raise LapjointError(f"engine mujoco: no memory for all contacts of scene {self.scene.name!r}")

    def find(self) -> None:
        self._mujoco.mj_fwdPosition(self._model, self._data)

    def list_contacts(self) -> Contacts:
        contact = self._data.contact
        if len(contact.dist) == 0:
            return Contacts.none()
        one, other = self._owner[np.asarray(contact.geom).reshape(-1, 2)].T
        low, high = np.minimum(one, other), np.maximum(one, other)
        pairs = np.stack([np.where(low < 0, high, low), np.where(low < 0, low, high)], axis=1)
        bodies, row, count = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
        depth = np.full(len(bodies), -np.inf)
        np.maximum.at(depth, row.ravel(), -contact.dist)
        return Contacts(bodies.astype(np.int32), count.astype(np.int32), depth)

    def forget(self) -> None:
        self._data.qacc_warmstart[:] = 0.0
