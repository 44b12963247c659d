"""The Bullet engine: checks and allocates, then hands arrays to the native world of the chosen precision."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..algorithms.field_forces import BUOYANCY, FieldShapes, ahead_share, function_forces
from ..arrays.checks import as_rows
from ..errors import LapjointError, NotFiniteError
from ..params import Params, Sleep
from ..scene import (
    Box,
    Capsule,
    Compound,
    Cone,
    ConvexHull,
    Cylinder,
    Ellipsoid,
    HeightField,
    Plane,
    Scene,
    Sphere,
    TriangleMesh,
)
from ..scene.content import ignored_explicitly
from ..scene.fields import GivenField, pack_fields
from ..scene.motions import POSE_SIZE, GivenMotion
from ..scene.shapes import STATIC_ONLY, StaticShape
from ..scene.thickness import thickness
from ..scene.titles import body_titles
from ..step_tables import TABLES
from .arguments import as_ids, finite_rows, pairs_and_states, room_for_states, state_rows
from .base import Array, Contacts, Ids, Mail
from .bullet_module import check_built, load_bullet
from .changes import Changes, StepReport
from .readings import ContactPoints
from .springs import check_springs
from .state import EngineState
from .support import (
    ALL_JOINTS,
    Support,
    check_bonds_are_direct,
    check_joints_of_solver,
    check_nothing_moves,
    check_reports,
)

if TYPE_CHECKING:
    from .. import _bullet_float32 as compiled

P = ParamSpec("P")
R = TypeVar("R")

SPINS = 2000
"""How often a worker looks for a message of another before it sleeps, where every worker has a core."""
MOST_STEPS = 2**30
"""As many as are counted: a body that is to sleep after more never does."""

KINDS_IN_ORDER = (
    *(Sphere, Box, Capsule, Cylinder, ConvexHull, Compound, Plane, TriangleMesh),
    *(Ellipsoid, Cone, HeightField),
)
SHAPE_KINDS = {kind: number for number, kind in enumerate(KINDS_IN_ORDER)}


class BulletEngine:
    """Bullet 3.26 with bodies that come and go, in float32 or float64."""

    supports = Support(
        "lapjoint", ("float32", "float64"), joints=ALL_JOINTS, couplings=("blend", "tight"), version="3.26"
    )

    @staticmethod
    def check(scene: Scene, params: Params) -> None:
        """It takes every scene."""
        check_built(params.precision)
        if params.solver == "substeps":
            check_springs(scene, params)
            check_bonds_are_direct(scene, params.substeps.joints)
        else:
            BulletEngine._check_without_substeps(scene, params)
        if params.sleep and params.coupling == "blend" and max(params.workers, params.max_workers or 0) > 1:
            raise LapjointError(
                "sleep is on and coupling is blend, expected tight: no worker has what blended bodies do"
            )
        if params.coupling == "tight" and params.solver != "substeps":
            raise LapjointError(f"coupling is tight and solver is {params.solver}, expected substeps")

    @staticmethod
    def _check_without_substeps(scene: Scene, params: Params) -> None:
        """Refuse what, of its solvers, only that in substeps has."""
        only = f"which only the solver substeps has, and solver is {params.solver}"
        check_nothing_moves(scene, only.removeprefix("which "))
        check_joints_of_solver(scene, params.solver)
        check_reports(scene, params, (), only)
        if params.keep_forces:
            raise LapjointError(f"keep_forces is on, {only}")
        if params.sleep:
            raise LapjointError(f"sleep is on, {only}")

    def __init__(self, scene: Scene, params: Params) -> None:
        params = params.resolved(scene)
        assert params.timestep is not None
        assert params.sequential.iterations is not None
        self.scene = scene
        self.params = params
        self._native = load_bullet(params.precision)
        self._timestep = params.timestep
        self._mailboxes: compiled.Mailboxes | None = None
        self._world = self._native.BulletWorld(self._settings())
        self._shape_count = 0
        self._grow()
        self._world.ignore_pairs(ignored_explicitly(scene))  # jointed ones it knows
        statics = scene.statics
        for s in range(scene.static_count):
            self._world.add_static(
                int(statics.shape_id[s]),
                [*statics.position[s], *statics.quaternion[s]],
                statics.friction[s],
                statics.restitution[s],
                statics.rolling_friction[s],
                int(statics.group[s]),
                int(statics.mask[s]),
                int(statics.friction_combine[s]),
                int(statics.restitution_combine[s]),
            )
        self._set_motions(scene.motions)
        for s in np.flatnonzero(statics.surface_velocity.any(axis=1)).tolist():
            if s not in scene.motions:
                self._set_motions(
                    {s: GivenMotion.at_rest(np.concatenate([statics.position[s], statics.quaternion[s]]))}
                )
            self._world.set_surface_velocity(s, statics.surface_velocity[s].tolist())
        self._fields: Sequence[GivenField] = ()
        self._field_shapes: FieldShapes | None = None
        if scene.fields:
            self._set_fields(scene.fields)
        self._set_step(0)
        sensors = scene.sensors
        for place, shape_id, mask, on in zip(
            np.concatenate([sensors.position, sensors.quaternion], axis=1).tolist(),
            *(column.tolist() for column in (sensors.shape_id, sensors.mask, sensors.body)),
            strict=True,
        ):
            self._world.add_sensor(shape_id, place, mask, on)

    def _grow(self) -> None:
        scene = self.scene
        for shape in scene.shapes[self._shape_count :]:
            self._world.define_shape(self._shape(shape))
        first, self._shape_count = self._shape_count, len(scene.shapes)
        if first and self._field_shapes is not None:
            self._define_field_shapes(first)
        # The native world reads these tables in place; holding them here keeps them alive.
        tables = scene.bodies.views(), scene.joints.views()
        self._world.set_tables(tables[0], scene.body_count, tables[1], scene.joint_count)
        self._tables, self._joint_count = tables, scene.joint_count

    # ---- fields ----------------------------------------------------------------------------------------------------

    def _set_fields(self, fields: Sequence[GivenField]) -> None:
        self._fields = fields
        built_in = [one for one in fields if one.field is None]
        if any(one.kind == BUOYANCY for one in built_in) and self._field_shapes is None:
            self._field_shapes = FieldShapes(self.scene)
            self._define_field_shapes(0)
        self._world.set_fields(**pack_fields(built_in))
        if len(built_in) == len(fields):
            self._world.set_before_step(None)
            return
        call = weakref.WeakMethod(self._add_function_forces)

        def call_functions(step: int) -> None:
            if (function := call()) is not None:
                function(step)

        self._world.set_before_step(call_functions)

    def _define_field_shapes(self, first: int) -> None:
        """Of shapes from this number on, that bodies can have."""
        shapes = self._field_shapes
        assert shapes is not None
        for shape_id in range(first, len(self.scene.shapes)):
            if isinstance(self.scene.shapes[shape_id], STATIC_ONLY):
                continue
            volume, radius = shapes.sizes(shape_id)
            is_sphere = shapes.is_sphere(shape_id)
            triangles = np.empty(0) if is_sphere else np.ascontiguousarray(shapes.triangles(shape_id))
            self._world.set_field_shape(shape_id, is_sphere, volume, radius, triangles)

    def _add_function_forces(self, step: int) -> None:
        """Within a step, before anything moves."""
        ids = self.active_ids
        states = self.get_states(ids)
        if self.params.solver == "substeps":
            states[:, :3] += ahead_share(self.params.substeps.count) * self._timestep * states[:, 7:10]
        found = function_forces(self._fields, ids, states, step * self._timestep)
        if found is not None and len(ids):
            self.add_forces(ids, found[:, :3], found[:, 3:])

    def field_forces(self, body_ids: ArrayLike) -> Array:
        """What the built-in fields do to active bodies at their present states, (n, 6) [N, N m], as if there were no
        other forces but those that were added."""
        ids = as_ids(body_ids)
        out = np.empty((len(ids), 6))
        self._world.field_forces(ids, self._timestep, out)
        return out

    def _settings(self) -> compiled.WorldSettings:
        params, settings = self.params, self._native.WorldSettings()
        assert params.units.length is not None
        assert params.sequential.iterations is not None
        settings.length_unit = params.units.length
        assert params.units.mass is not None
        settings.mass_unit = params.units.mass
        settings.gravity = self.scene.gravity.tolist()
        settings.solver = params.solver
        settings.solver_rows = params.sequential.solver_rows
        settings.substeps = params.substeps.count
        settings.tolerance = params.substeps.tolerance
        settings.max_substeps = params.substeps.max_count
        settings.joints = params.substeps.joints
        settings.iterations = params.sequential.iterations
        settings.joint_erp = params.sequential.joint_erp
        settings.contact_erp = params.sequential.contact_erp
        settings.split_impulse = params.sequential.split_impulse
        if isinstance(params.sleep, Sleep):
            settings.sleep = True
            settings.sleep_speed, settings.sleep_spin = params.sleep.speed, params.sleep.spin
            settings.sleep_steps = round(min(max(1, params.sleep.after / self._timestep), MOST_STEPS))
        settings.exact_shapes = params.solver == "substeps"
        settings.timestep = self._timestep
        settings.keep_forces = params.keep_forces
        settings.finds_surges = params.failures.on_surge != "ignore"
        settings.slide_speed = params.slide_speed or np.inf
        settings.has_neighbours = params.coupling == "tight" and params.solver == "substeps"
        return settings

    def _shape(self, shape: StaticShape) -> compiled.ShapeDefinition:
        definition = self._native.ShapeDefinition()
        definition.kind = SHAPE_KINDS[type(shape)]
        definition.thickness = thickness(shape)
        if isinstance(shape, Sphere):
            definition.size = [shape.radius, 0.0, 0.0]
        elif isinstance(shape, Box):
            definition.size = list(shape.size)
        elif isinstance(shape, Ellipsoid):
            definition.size = list(shape.radii)
        elif isinstance(shape, HeightField):
            definition.size = [*shape.spacing, float(shape.heights.shape[1])]
            definition.points = shape.heights.ravel().tolist()
        elif isinstance(shape, (Capsule, Cylinder, Cone)):
            definition.size = [shape.radius, shape.length, 0.0]
        elif isinstance(shape, ConvexHull):
            definition.points = shape.points.ravel().tolist()
        elif isinstance(shape, TriangleMesh):
            definition.points = shape.vertices.ravel().tolist()
            definition.triangles = shape.triangles.ravel().tolist()
        elif isinstance(shape, Compound):
            parts = []
            for part in shape.parts:
                child = self._shape(part.shape)
                child.place = [*part.position, *part.quaternion]
                if part.material is not None:
                    child.surface = list(part.material.surface().values())
                child.group = -1 if part.group is None else part.group
                child.mask = -1 if part.mask is None else part.mask
                parts.append(child)
            definition.parts = parts
        return definition

    # ---- membership ----------------------------------------------------------------------------------------------

    @property
    def active_ids(self) -> Ids:
        ids = np.empty(self._world.active_count(), np.int32)
        self._world.active_ids(ids)
        return ids

    @property
    def live_joint_ids(self) -> Ids:
        ids = np.empty(self._world.live_joint_count(), np.int32)
        self._world.live_joint_ids(ids)
        return ids

    def activate(self, body_ids: ArrayLike, states: ArrayLike) -> None:
        ids = as_ids(body_ids)
        self._call(self._world.activate, ids, self._checked(ids, states))

    def deactivate(self, body_ids: ArrayLike) -> None:
        self._call(self._world.deactivate, as_ids(body_ids))

    # ---- states --------------------------------------------------------------------------------------------------

    def set_states(self, body_ids: ArrayLike, states: ArrayLike) -> None:
        ids = as_ids(body_ids)
        self._call(self._world.set_states, ids, self._checked(ids, states))

    def get_states(
        self, body_ids: ArrayLike | None = None, out: Array | None = None, rows: ArrayLike | None = None
    ) -> Array:
        ids = self.active_ids if body_ids is None else as_ids(body_ids)
        out, places = room_for_states(ids, out, rows)
        if places is None:
            self._call(self._world.get_states, ids, out)
        else:
            self._call(self._world.get_states_into, ids, out, places)
        return out

    def add_forces(self, body_ids: ArrayLike, forces: ArrayLike, torques: ArrayLike | None = None) -> None:
        ids = as_ids(body_ids)
        rows = [self._rows(name, ids, value, 3) for name, value in (("forces", forces), ("torques", torques))]
        self._call(self._world.add_forces, ids, *rows)

    # ---- time ----------------------------------------------------------------------------------------------------

    def step(self, count: int = 1) -> None:
        if count < 0:
            raise LapjointError(f"count of steps is {count}, expected zero or more")
        self._call(self._world.step, self._timestep, count)

    def change(self, changes: Changes) -> None:
        if changes.grown:
            self._grow()
        if changes.breaks is not None:
            self._world.set_breaks(changes.breaks)
        if changes.broken is not None:
            self._call(self._world.add_broken, as_ids(changes.broken))
        if changes.all_broken is not None:
            self._call(self._world.set_broken, as_ids(changes.all_broken))
        if changes.motions is not None:
            self._set_motions(changes.motions)
        if changes.fields is not None:
            self._set_fields(changes.fields)
        if changes.step_count is not None:
            self._set_step(changes.step_count)
        if changes.senses is not None:
            self._watch_sensors(changes.inside if changes.senses else None)
        if (given := changes.drive_targets) is not None:
            self._set_drive_targets(given.joints, given.axes, given.targets)
        if (turned := changes.half_turns) is not None:
            self._set_half_turns(turned.joints, turned.half_turns)
        if changes.forgets_contacts:
            self._world.clear_contacts()
        if changes.iterations is not None:
            self.params = self.params.with_options(iterations=changes.iterations)  # refuses what is no count
            self._world.set_iterations(changes.iterations)

    def report(self) -> StepReport:
        world, sleeps = self._world, self.params.sleep
        return StepReport(
            world.residual(),
            tuple(TABLES[name].from_rows(rows) for name, rows in world.tables().items()),
            world.step_measures(),
            world.substep_count(),
            world.fallback_count(),
            world.sleeping_count() if sleeps else 0,
            world.take_moved() if sleeps else None,
        )

    def prepare(self, moving: ArrayLike) -> None:
        self._call(self._world.prepare, as_ids(moving))

    def clearances(self, pairs: ArrayLike, states: ArrayLike) -> Array:
        rows, given = pairs_and_states(self.scene, pairs, states)
        clearance = np.empty(len(rows))
        self._world.clearances(rows, given, clearance)
        return clearance

    def contacts(self, now: bool = False) -> Contacts:
        if now:
            self._world.detect()
        count = self._world.contact_count()
        bodies, point_count = np.empty((count, 2), np.int32), np.empty(count, np.int32)
        depth = np.empty(count)
        self._world.read_contacts(bodies, point_count, depth)
        return Contacts(bodies, point_count, depth)

    # ---- state and warm-start data -------------------------------------------------------------------------------

    def state(self) -> EngineState:
        count = self._world.cached_point_count()
        body_columns, number_columns, point_columns = self._native.state_columns
        ids = self.active_ids
        bodies, prepared = np.empty((len(ids), body_columns), self.params.precision), np.empty(len(ids), bool)
        ends, numbers = np.empty((count, 2), np.int32), np.empty((count, number_columns), np.int32)
        points = np.empty((count, point_columns), self.params.precision)
        self._world.read_state(bodies, prepared, ends, numbers, points)
        impulse_count = self._world.joint_impulse_count()
        joint_ids, impulses = np.empty(impulse_count, np.int32), np.empty(impulse_count, self.params.precision)
        self._world.read_joint_impulses(joint_ids, impulses)
        joints = self.scene.joints
        joint_ends = np.stack([joints.body_a[joint_ids], joints.body_b[joint_ids]], axis=1).astype(np.int32)
        poses = np.empty((self._world.kinematic_count(), POSE_SIZE))
        self._world.kinematic_places(poses)
        sleep = np.empty((2, len(ids) if self.params.sleep else 0), np.int32)
        if self.params.sleep:
            self._world.read_sleep(sleep[0], sleep[1])
        target_count = self._world.drive_target_count()
        axes, targets = np.empty(target_count, np.int32), np.empty((target_count, 2))
        self._world.read_drive_targets(axes, targets)
        passed_count = self._world.passed_count()
        passed = np.empty((passed_count, 6), np.int32)
        passed_impulses = np.empty((passed_count, 7), self.params.precision)
        self._world.read_passed(passed, passed_impulses)
        cache = (ends, numbers, points, joint_ids, joint_ends, impulses)
        return EngineState(
            ids,
            bodies,
            prepared,
            *cache,
            passed_bodies=np.ascontiguousarray(passed[:, :2]),
            passed_numbers=np.ascontiguousarray(passed[:, 2:]),
            passed_impulses=passed_impulses,
            islands=sleep[0],
            still_steps=sleep[1],
            kinematic_poses=poses,
            broken_joints=self._world.broken_joints(),
            drive_axes=axes,
            drive_targets=targets,
            joint_count=np.array([self._joint_count], np.int32),
        )

    def restore(self, state: EngineState) -> None:
        count = len(state.body_ids)
        _check_array(state.bodies, (count, self._native.state_columns[0]), self.params.precision)
        _check_array(state.prepared, (count,), "bool")
        self._check_points(state)
        if len(state.kinematic_poses):
            self._call(self._world.set_kinematic_places, np.ascontiguousarray(state.kinematic_poses))
        # First what decides which bodies may touch, and what would wake those that sleep.
        self._call(self._world.set_broken, as_ids(state.broken_joints))
        self._world.forget_drive_targets()
        self._set_drive_targets(state.drive_axes // 6, state.drive_axes % 6, state.drive_targets)
        self._call(
            self._world.restore,
            as_ids(state.body_ids),
            np.ascontiguousarray(state.bodies),
            np.ascontiguousarray(state.prepared),
            np.ascontiguousarray(state.point_bodies),
            np.ascontiguousarray(state.point_numbers),
            np.ascontiguousarray(state.points),
        )
        self._merge_joint_cache(state)
        self._add_passed(state)
        if len(state.islands):
            _check_array(state.islands, (count,), "int32")
            _check_array(state.still_steps, (count,), "int32")
            self._call(
                self._world.restore_sleep,
                as_ids(state.body_ids),
                np.ascontiguousarray(state.islands),
                np.ascontiguousarray(state.still_steps),
            )
        for known in state.joint_count.tolist():
            for joint in range(known, self.scene.joint_count):
                self._world.wake_joint(joint)

    def hand_over(self, body_ids: ArrayLike) -> None:
        self._call(self._world.deactivate, as_ids(body_ids), True)

    def merge_cache(self, state: EngineState) -> None:
        if len(state.still_steps) and self.params.sleep:
            sleep = np.ascontiguousarray(state.islands), np.ascontiguousarray(state.still_steps)
            self._world.merge_sleep(as_ids(state.body_ids), *sleep)
        state = state.of_precision(self.params.precision)
        self._check_points(state)
        self._call(
            self._world.merge_contact_cache,
            np.ascontiguousarray(state.point_bodies),
            np.ascontiguousarray(state.point_numbers),
            np.ascontiguousarray(state.points),
        )
        self._merge_joint_cache(state)
        self._add_passed(state)

    def _add_passed(self, state: EngineState) -> None:
        if len(state.passed_bodies):
            _check_array(state.passed_impulses, (len(state.passed_bodies), 7), self.params.precision)
            numbers = np.concatenate([state.passed_bodies, state.passed_numbers], axis=1).astype(np.int32)
            self._world.add_passed(numbers, np.ascontiguousarray(state.passed_impulses))

    def _check_points(self, state: EngineState) -> None:
        count, (_, numbers, values) = len(state.point_bodies), self._native.state_columns
        _check_array(state.point_bodies, (count, 2), "int32")
        _check_array(state.point_numbers, (count, numbers), "int32")
        _check_array(state.points, (count, values), self.params.precision)

    def _merge_joint_cache(self, state: EngineState) -> None:
        if len(state.joint_ids):
            _check_array(state.joint_impulses, (len(state.joint_ids),), self.params.precision)
            self._call(self._world.merge_joint_cache, as_ids(state.joint_ids), state.joint_impulses)

    # ---- steps with neighbours -------------------------------------------------------------------------------------

    @staticmethod
    def mail_bytes(precision: str) -> int:
        return load_bullet(precision).message_bytes

    @property
    def ghost_ids(self) -> Ids:
        ids = np.empty(self._world.ghost_count(), np.int32)
        self._world.ghost_ids(ids)
        return ids

    def set_turns(self, worker: int, turns: ArrayLike, whole: ArrayLike) -> None:
        self._call(self._world.set_turns, worker, as_ids(turns), as_ids(whole))

    def open_mailboxes(
        self, memory: NDArray[np.uint8], worker_count: int, room: int, worker: int, bell: int = -1
    ) -> None:
        elsewhere = [self._native.Mailboxes.is_elsewhere(memory, other) for other in range(worker_count)]
        # Of this machine: its workers, and who carries to other machines.
        busy = elsewhere.count(False) + any(elsewhere)
        spins = SPINS if busy <= len(os.sched_getaffinity(0)) else 0
        self._mailboxes = self._native.Mailboxes(memory, worker_count, room, worker, spins, bell)

    def step_with_neighbours(self, attempt: int, count: int = 1, choose: bool = True) -> bool:
        assert self._mailboxes is not None
        return self._call(self._world.step_with_neighbours, self._timestep, self._mailboxes, attempt, count, choose)

    def mail(self) -> Mail:
        mail = self._mailboxes
        assert mail is not None
        own = np.array(mail.between_meetings_s)
        return Mail(mail.waited_s, mail.waited_cpu_s, own)

    def _set_motions(self, motions: Mapping[int, GivenMotion]) -> None:
        for number, motion in motions.items():
            self._call(self._world.set_motion, number, motion.kind, motion.start, motion.base.tolist(), motion.values)

    def _set_step(self, step_count: int) -> None:
        self._world.set_step(step_count, self._timestep)

    def _set_drive_targets(self, joint_ids: ArrayLike, axes: ArrayLike, targets: ArrayLike) -> None:
        ids = as_ids(joint_ids)
        if len(ids) and self.params.solver != "substeps":
            raise LapjointError(f"set_drive_targets: the solver is {self.params.solver}, expected substeps")
        rows = as_rows("drive target", np.asarray(targets, float), len(ids), (2,), "set_drive_targets")
        numbers = np.broadcast_to(as_ids(axes), len(ids))
        self._call(self._world.set_drive_targets, ids, np.ascontiguousarray(numbers), np.ascontiguousarray(rows))

    def joint_turns(self, joint_ids: ArrayLike) -> Ids:
        ids = as_ids(joint_ids)
        half_turns = np.zeros(len(ids), np.int32)
        self._world.half_turns(ids, half_turns)
        return half_turns

    def _set_half_turns(self, joint_ids: ArrayLike, half_turns: ArrayLike) -> None:
        ids, numbers = as_ids(joint_ids), as_ids(half_turns)
        if len(ids) != len(numbers):
            raise LapjointError(f"set_half_turns: {len(numbers)} numbers for {len(ids)} joints")
        if len(ids) and self.params.solver != "substeps":
            raise LapjointError(f"joint {ids[0]} counts no turns")
        self._call(self._world.set_half_turns, ids, numbers)

    def contact_points(self) -> ContactPoints:
        rows = self._world.contact_points()
        columns = (rows[:, 2:5], rows[:, 5:8], rows[:, 8], rows[:, 9], rows[:, 10:13], rows[:, 13:])
        return ContactPoints(rows[:, :2].astype(np.int32), *(column.copy() for column in columns))

    def joint_forces(self, joint_ids: ArrayLike) -> Array:
        ids = as_ids(joint_ids)
        forces = np.empty((len(ids), 6))
        self._world.joint_forces(ids, forces)
        return forces

    def _watch_sensors(self, inside: ArrayLike | None) -> None:
        if inside is None:
            self._world.ignore_sensors()
        else:
            self._world.watch_sensors(np.ascontiguousarray(inside, np.int32).reshape(-1, 2))

    def substep_overlap(self) -> float:
        """The deepest overlap of a contact that the last step left in any worker [m]; 0 without a tolerance."""
        return self._world.substep_overlap()

    # ---- checks --------------------------------------------------------------------------------------------------

    def _rows(self, name: str, ids: Ids, value: ArrayLike | None, columns: int) -> Array:
        return finite_rows(self.scene, self.params.precision, name, ids, value, columns)

    def _checked(self, ids: Ids, states: ArrayLike) -> Array:
        return state_rows(self.scene, self.params.precision, ids, states)

    def _not_finite(self, first: int) -> NotFiniteError:
        """Body `first` is too far or too fast to compute with; others may have been drawn along."""
        ids = self.active_ids
        states = self.get_states(ids).astype(self.params.precision)
        with np.errstate(all="ignore"):  # as the native world does: their squares must be numbers
            also = ids[~np.isfinite(np.square(states / self.params.units.length).sum(axis=1))]
        bodies = np.union1d(also, [first, *self._world.lost_bodies()]).astype(int)
        return NotFiniteError(f"{body_titles(self.scene, bodies)}: not finite after the step", bodies)

    def _call(self, function: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
        """Call the native world. Its errors know bodies by number, ours also by name."""
        try:
            return function(*arguments, **named)
        except self._native.NotFiniteError as error:
            raise self._not_finite(error.body_id) from None
        except self._native.BodyError as error:
            raise LapjointError(f"{self.scene.body_title(error.body_id)} {error}") from None
        except (ValueError, RuntimeError) as error:
            raise LapjointError(str(error)) from None


def _check_array(array: Any, shape: tuple[int, ...], kind: str) -> None:
    if array.shape != shape or array.dtype != kind:
        raise LapjointError(
            f"an engine's state has an array of shape {array.shape} and type {array.dtype}, "
            f"expected {shape} and {kind}: it is of another engine or precision"
        )
