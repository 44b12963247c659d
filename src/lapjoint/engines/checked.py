"""CheckedEngine: what most engines would otherwise write again. It checks what it is called with, knows who is active
and which joints are live, and leaves to a subclass what only that can know, with arguments that are right."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..algorithms.field_forces import FieldShapes, field_forces, function_forces
from ..errors import LapjointError, NotFiniteError
from ..params import Params
from ..scene import STATE_SIZE, WORLD, Scene
from ..scene.fields import GivenField
from ..scene.titles import body_titles
from .arguments import as_ids, finite_rows, pairs_and_states, room_for_states, state_rows
from .base import Array, Contacts, Ids
from .bounds import Bounds
from .changes import Changes, StepReport
from .state import EngineState
from .support import Support


class CheckedEngine(ABC):
    """An engine but for what is abstract here. Changes come in this order: parted joints, bodies out; bodies in, joined
    joints. Ids are int32 and rows float64, both right in size."""

    supports: ClassVar[Support]

    def __init__(self, scene: Scene, params: Params) -> None:
        params = params.resolved(scene)
        assert params.timestep is not None
        assert params.units.length is not None
        self.scene = scene
        self.params = params
        self.timestep, self.length_unit = params.timestep, params.units.length
        self._is_active = np.zeros(scene.body_count, bool)
        self._is_live = np.zeros(scene.joint_count, bool)
        self._active: Ids | None = None
        self._forces: Array | None = None
        self._fields: Sequence[GivenField] = scene.fields
        self._field_shapes = FieldShapes(scene)
        self._step_count = 0
        self._bounds: Bounds | None = None
        self._contacts: Contacts | None = Contacts.none()
        # States as last read, so that nothing is read twice, and nothing is written that is there already.
        self._table = np.zeros((scene.body_count, STATE_SIZE))
        self._is_known = np.zeros(scene.body_count, bool)
        self._is_beyond = np.zeros(scene.body_count, bool)

    @staticmethod  # noqa: B027
    def check(scene: Scene, params: Params) -> None:
        """Refuse nothing beyond what `supports` declares."""

    # ---- for a subclass ------------------------------------------------------------------------------------------

    @abstractmethod
    def put_in(self, ids: Ids, states: Array) -> None:
        """Bodies that were not active, in the order given."""

    @abstractmethod
    def take_out(self, ids: Ids) -> None:
        """Bodies that are active, in the order given."""

    def join(self, joint_ids: Ids) -> None:  # noqa: B027
        """Joints that have become live, ascending."""

    def part(self, joint_ids: Ids) -> None:  # noqa: B027
        """Joints that are live no longer, ascending; their bodies are still there."""

    @abstractmethod
    def write(self, ids: Ids, states: Array) -> None:
        """New states for active bodies."""

    @abstractmethod
    def read(self, ids: Ids) -> Array:
        """States of active bodies."""

    @abstractmethod
    def advance(self, forces: Array | None) -> None:
        """One timestep. Force and torque for every body of the scene, (body_count, 6), or None if there are none."""

    @abstractmethod
    def find(self) -> None:
        """Find the contacts of the present states without stepping."""

    @abstractmethod
    def list_contacts(self) -> Contacts:
        """Those of the last step (as it began) or `find`, in any order. It is asked before bodies come or go."""

    @abstractmethod
    def forget(self) -> None:
        """Drop the warm-start data of earlier contacts."""

    def apply_iterations(self, iterations: int) -> None:  # noqa: B027
        """So many sweeps of the solver from now on."""

    # ---- state ---------------------------------------------------------------------------------------------------

    def state(self) -> EngineState:
        """States alone; an engine that also gives out its contacts declares it (feature "contact cache")."""
        ids, no_points = self.active_ids, np.empty((0, 0), np.int32)
        states = self.get_states(ids)
        prepared = np.zeros(len(ids), bool)
        return EngineState(ids, states, prepared, np.empty((0, 2), np.int32), no_points, no_points.astype(float))

    def restore(self, state: EngineState) -> None:
        shape, kind = (len(state.body_ids), STATE_SIZE), state.bodies.dtype
        if state.bodies.shape != shape or kind != np.float64 or len(state.points):
            raise LapjointError(
                f"an engine's state has bodies of shape {state.bodies.shape} and type {kind}, expected {shape} and "
                "float64: it is of another engine or precision"
            )
        self.deactivate(self.active_ids)
        self.activate(state.body_ids, state.bodies)

    # ---- membership ----------------------------------------------------------------------------------------------

    @property
    def active_ids(self) -> Ids:
        if self._active is None:
            self._active = np.flatnonzero(self._is_active).astype(np.int32)
        return self._active.copy()

    @property
    def live_joint_ids(self) -> Ids:
        return np.flatnonzero(self._is_live).astype(np.int32)

    def activate(self, body_ids: ArrayLike, states: ArrayLike) -> None:
        ids = self._existing(body_ids)
        rows = state_rows(self.scene, self.params.precision, ids, states)
        for body in ids[self._is_active[ids]]:
            raise LapjointError(f"{self.scene.body_title(body)} is already active")
        self._refuse_twice(ids, "activated")
        self.contacts()
        self.put_in(ids, rows)
        self._set_active(ids, True)
        self._is_beyond[ids] = self._beyond(rows)
        live = self._joints_live()
        self.join(np.flatnonzero(live & ~self._is_live).astype(np.int32))
        self._is_live = live

    def deactivate(self, body_ids: ArrayLike) -> None:
        ids = self._present(body_ids)
        self._refuse_twice(ids, "deactivated")
        found = self.contacts()
        self._set_active(ids, False)
        live = self._joints_live()
        self.part(np.flatnonzero(self._is_live & ~live).astype(np.int32))
        self._is_live = live
        self.take_out(ids)
        if self._forces is not None:
            self._forces[ids] = 0.0
        a, b = found.bodies.T
        stay = self._is_active[a] & (self._is_active[np.maximum(b, 0)] | (b < 0))
        self._contacts = Contacts(found.bodies[stay], found.point_count[stay], found.depth[stay])

    def _set_active(self, ids: Ids, active: bool) -> None:
        self._is_active[ids] = active
        self._is_known[ids] = self._is_beyond[ids] = False
        self._active = None

    def _joints_live(self) -> NDArray[np.bool_]:
        joints, active = self.scene.joints, np.append(self._is_active, True)  # the last is the WORLD
        assert WORLD == -1
        return np.asarray(active[joints.body_a] & active[joints.body_b])

    # ---- states --------------------------------------------------------------------------------------------------

    def set_states(self, body_ids: ArrayLike, states: ArrayLike) -> None:
        ids = self._present(body_ids)
        rows = state_rows(self.scene, self.params.precision, ids, states)
        changed = ~(self._is_known[ids] & (self._table[ids] == rows).all(axis=1))
        self.write(ids[changed], rows[changed])
        self._is_known[ids[changed]] = False
        self._is_beyond[ids] = self._beyond(rows)

    def get_states(
        self, body_ids: ArrayLike | None = None, out: Array | None = None, rows: ArrayLike | None = None
    ) -> Array:
        ids = self.active_ids if body_ids is None else self._present(body_ids)
        out, places = room_for_states(ids, out, rows)
        out[slice(None) if places is None else places] = self._read(ids)
        return out

    def _read(self, ids: Ids) -> Array:
        new = ids[~self._is_known[ids]]
        if len(new):
            self._table[new] = self.read(new)
            self._is_known[new] = True
        return np.asarray(self._table[ids])

    def add_forces(self, body_ids: ArrayLike, forces: ArrayLike, torques: ArrayLike | None = None) -> None:
        ids = self._present(body_ids)
        given = [
            finite_rows(self.scene, self.params.precision, name, ids, value, 3)
            for name, value in (("forces", forces), ("torques", torques))
        ]
        if self._forces is None:
            self._forces = np.zeros((self.scene.body_count, 6))
        np.add.at(self._forces, ids, np.concatenate(given, axis=1))

    # ---- time ----------------------------------------------------------------------------------------------------

    def step(self, count: int = 1) -> None:
        if count < 0:
            raise LapjointError(f"count of steps is {count}, expected zero or more")
        for _ in range(count):
            self._refuse_beyond(np.flatnonzero(self._is_beyond))
            forces, self._forces = self._forces, None
            if self._fields:
                forces = self._with_fields(forces)
                self._is_known[:] = False
            self.advance(forces)
            self._step_count += 1
        if count:
            self._contacts = None
            self._is_known[:] = False
            ids = self.active_ids
            self.check_finite(ids, self._read(ids))

    def _with_fields(self, forces: Array | None) -> Array:
        """Forces of the next step, with those of fields."""
        ids = self.active_ids
        states, scene = self._read(ids), self.scene
        forces = np.zeros((scene.body_count, 6)) if forces is None else forces
        found = function_forces(self._fields, ids, states, self._step_count * self.timestep)
        if found is not None:
            forces[ids] += found
        others = forces[ids, :3] + scene.bodies.mass[ids, None] * scene.gravity
        forces[ids] += field_forces(scene, self._field_shapes, self._fields, ids, states, others, self.timestep)
        return forces

    def check_finite(self, ids: Ids, states: Array) -> None:
        """Refuse states that cannot be computed with."""
        self._refuse_beyond(ids[self._beyond(states)])

    def _beyond(self, states: Array) -> NDArray[np.bool_]:
        """Whose states have squares beyond the precision: what is computed from them is not a number."""
        most = np.sqrt(float(np.finfo(self.params.precision).max))
        return np.asarray(~(np.abs(states) < most).all(axis=1))

    def _refuse_beyond(self, ids: NDArray[Any]) -> None:
        if len(ids):
            raise NotFiniteError(f"{body_titles(self.scene, ids)}: not finite after the step", ids.tolist())

    def change(self, changes: Changes) -> None:
        if changes.fields is not None:
            self._fields = changes.fields
        if changes.step_count is not None:
            self._step_count = changes.step_count
        if changes.forgets_contacts:
            self._read(self.active_ids)
            self.forget()
        if changes.iterations is not None:
            self.params = self.params.with_options(iterations=changes.iterations)  # refuses what is no count
            self.apply_iterations(changes.iterations)

    def report(self) -> StepReport:
        return StepReport(residual=float("nan") if self._is_active.any() else 0.0)

    def contacts(self, now: bool = False) -> Contacts:
        if now:
            self.find()
            self._contacts = None
        if self._contacts is None:
            found = self.list_contacts()
            a, b = found.bodies.T
            last = np.where(b >= 0, b, self.scene.body_count - 1 - b)  # static bodies come after all others
            order = np.lexsort((last, a))
            self._contacts = Contacts(found.bodies[order], found.point_count[order], found.depth[order])
        return self._contacts

    def clearances(self, pairs: ArrayLike, states: ArrayLike) -> Array:
        """By the bodies' oriented boxes and bounding spheres: exact for two spheres, too early for others."""
        rows, given = pairs_and_states(self.scene, pairs, states)
        if self._bounds is None:
            self._bounds = Bounds(self.scene, self.length_unit)
        return self._bounds.clearances(rows, given)

    # ---- checks --------------------------------------------------------------------------------------------------

    def _existing(self, body_ids: ArrayLike) -> Ids:
        ids = as_ids(body_ids)
        for missing in ids[(ids < 0) | (ids >= self.scene.body_count)]:
            raise LapjointError(f"body {missing} does not exist, the scene has {self.scene.body_count} bodies")
        return ids

    def _present(self, body_ids: ArrayLike) -> Ids:
        ids = self._existing(body_ids)
        for body in ids[~self._is_active[ids]]:
            raise LapjointError(f"{self.scene.body_title(body)} is not active")
        return ids

    def _refuse_twice(self, ids: Ids, how: str) -> None:
        unique, count = np.unique(ids, return_counts=True)
        for body in unique[count > 1]:
            raise LapjointError(f"{self.scene.body_title(body)} is {how} twice")
