"""Simulation: the server. It holds the whole scene, decides who simulates what, and makes one result of many."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .algorithms import ConstraintGraph, Membership, load_algorithms
from .arrays.checks import as_rows, integer_rows
from .arrays.pages import trim
from .arrays.state import PartState, Stateful
from .engines import (
    ContactPoints,
    Contacts,
    check_engines,
    check_inertias,
    make_worker_engine,
    supports,
)
from .errors import LapjointError, SimulationStopped, WorkerError
from .forks import belongs_here
from .interrupts import Uninterrupted
from .params import Params
from .params.engine_choice import EngineChoice
from .params.partition_choice import checked_partition
from .queries import ClosestPoints, Inside, Overlaps, RayHits
from .queries.checks import checked_mask, checked_places, checked_points, checked_rays
from .scene import Scene
from .scene.fields import check_functions
from .scene.filters import ALL_GROUPS
from .scene.joint_motion import JointMotion, of_axis, with_turns
from .scene.joints import Fixed, Joint
from .scene.living import Life, LivingScene
from .scene.measures import joint_gaps, state_hash
from .scene.motions import GivenMotion, Motion
from .scene.shapes import MovingShape
from .scene.states import checked_states
from .server.asking import Asking
from .server.commands import CommandBuilder
from .server.coupling import Decision, Situation, coupling_type, make_coupling
from .server.crowds import check_crowds
from .server.detect import Detection, warn_of_penetration
from .server.elastic import Elastic
from .server.events import Events, find_events
from .server.frame import Frame
from .server.frozen import Frozen
from .server.glued import GluedBodies
from .server.incidents import Incident
from .server.kinematic import KinematicBodies
from .server.last_contacts import fetch_contacts
from .server.loads import Loads
from .server.long_steps import check_timestep
from .server.mass_ratios import check_mass_ratios
from .server.migrate import migrate
from .server.newcomers import nearest_workers
from .server.partition import check_partition, make_partition
from .server.parts import CouplingPart, LastStepPart, LifePart, TablePart, WorkerEnginesPart
from .server.placed import may_touch, suits
from .server.profile import StepProfile
from .server.readings import (
    Groups,
    checked_numbers,
    read_contact_forces,
    read_contact_points,
    read_joint_forces,
)
from .server.recovery import Recovery, StepPlan
from .server.redistribute import redistribute
from .server.repartition import Repartition
from .server.sensing import Sensing
from .server.start_contacts import find_start_contacts
from .server.step_reports import StepReports, Table
from .step_tables import TABLES
from .step_tables.breaks import JointBreaks
from .step_tables.half_turns import HalfTurns
from .step_tables.hits import Hits
from .step_tables.sensor_events import SensorEvents
from .step_tables.touches import Touches
from .system.shortage import MAY_BE_SHORT, raise_in_words, short_of
from .whole import Use, alone, whole
from .workers.messages import JointTargets, StepReply
from .workers.runtimes import make_runtime

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

TOGETHER_MS = 500.0
"""What steps that workers take by themselves may take, about: so long nobody is asked, not by Ctrl-C either."""
OF_RUNTIME = ("address",)
"""Parameters that another runtime has no use for."""
CONTACTS_ARE_GONE = "contacts: of a step before the last one, expected to be asked for before the next"
ELSEWHERE = ("workers", "runtime", *OF_RUNTIME, "keep_forces")
"""Parameters of where bodies are simulated and what is kept of it, not how."""


class Simulation:
    """A scene in motion on one worker or many.

    >>> with Simulation(scene, Params(workers=4)) as simulation:
    ...     for frame in simulation.frames(steps=500, every=10):
    ...         print(frame.time, frame.states[:, 2].min())
    """

    def __init__(self, scene: Scene, params: Params | None = None, *, life: Life | None = None) -> None:
        """Begin with the scene. `life` is for one that has been in motion already: `restore` follows."""
        if not isinstance(scene, Scene):
            hint = f": scenes.build({scene!r}) makes one" if isinstance(scene, str) else ""
            raise LapjointError(f"Simulation: scene is {scene!r}, expected a Scene{hint}")
        self._given = params or Params()
        self.incidents: list[Incident] = []
        """Failures, quarantines and changes of the number of workers so far."""
        self.before_stop: list[Callable[[Simulation], object]] = []
        """Called when a run has to stop, while states are those before the step that could not be taken."""
        self.at_close: list[Callable[[], object]] = []
        """Called when it is closed."""
        self.contacts_wanted: list[Callable[[int], bool]] = []
        """Called with the number of the step to come; if one returns True, workers send the contacts of this step with
        it. Others are asked for, which fails if a worker is gone by then."""
        self.resumed_from: dict[str, str | int] | None = None
        """Checkpoint and step that the simulation goes on from, if it does not start with the scene."""
        self._callbacks: list[Callable[[Simulation], None]] = []
        self._use = Use("the simulation")
        try:
            with short_of("the simulation cannot be started"):
                self._start(scene, life)
            with Uninterrupted():
                scene.lock("a simulation of it is running")
                self._unlock_scene = weakref.finalize(self, scene.unlock)
        except BaseException:
            if hasattr(self, "_runtime"):
                self._runtime.close()
            raise
        belongs_here(self, "the simulation", lambda own: own._unlock_scene())

    def _start(self, began_with: Scene, life: Life | None = None) -> None:
        """Begin with the scene as it is, and start the workers."""
        check_functions(began_with)
        own = weakref.proxy(self)  # so that nothing here keeps the simulation once nobody else does
        scene = LivingScene(began_with, lambda: own._runtime.states, life)
        states = scene.states if life is None else life.states
        params = self._given.resolved(scene)
        partition = make_partition(scene, params.workers, params.partition, params.solver_labels)
        params = params.with_solvers(scene, partition)
        check_engines(scene, params)
        check_inertias(scene, params)
        is_crowded = life is None and check_crowds(scene)
        if life is None:
            check_mass_ratios(scene, params)
            check_timestep(scene, params)
        make_worker_engine(scene, params)  # what is wrong with its shapes is found before anything starts
        algorithms = load_algorithms(params.algorithms)
        detection = Detection(scene, params, algorithms, states)
        membership = Membership(partition, params.workers)
        membership.remove(np.flatnonzero(~scene.alive).astype(np.int32))
        self._now = now = Situation(
            scene,
            params,
            algorithms,
            membership,
            detection,
            Loads(scene, params),
            Repartition(scene, params.workers),
            CommandBuilder(scene, params.workers, algorithms.command_lists),
            [],
        )
        # Workers have no use for the partition, which may be as long as the scene.
        self._runtime = make_runtime(scene, replace(params, partition="auto"), params.workers, self._mail_room())
        self._runtime.states[:] = states
        contacts = Contacts.none()
        if life is None:
            contacts = self._start_contacts()
            if not is_crowded:
                warn_of_penetration(scene, contacts)
        now.replies = [StepReply(contacts)]
        self._coupling = make_coupling(now)
        self._elastic = Elastic(params, scene.body_count)
        self._frozen, self._reports = Frozen(), StepReports({SensorEvents: lambda: own.sensor_events})
        self._glued = GluedBodies(scene)
        self._has_stepped = False
        self._kinematic = KinematicBodies(scene, params)
        self._asking = Asking(now, self._runtime, self._kinematic)
        self._sensing = Sensing(now, self._runtime, self._kinematic, lambda: own._frozen.is_used)
        self._recovery = Recovery(
            scene, params, self._runtime, now.commands, self._frozen, self.incidents, lambda bodies: own._remove(bodies)
        )
        self.profile = StepProfile()
        """Of the last step; where workers took several by themselves, times are the means of these."""
        trim()  # of what was needed to start: 400 to 550 bytes of a body
        self._last_step_ms = 0.0
        self._stopped: SimulationStopped | None = None
        self._closed = False

    def _start_contacts(self) -> Contacts:
        """Contacts of the scene as it starts."""
        now, states = self._now, self._runtime.states
        if now.params.detect == "server":
            return now.detection.all_contacts(states)
        return find_start_contacts(now.scene, now.params, now.algorithms, now.membership, states, self._runtime.step)

    # ---- Algorithm 1 ---------------------------------------------------------------------------------------------

    @alone
    def step(self, count: int = 1) -> None:
        """Go on by `count` timesteps. Ctrl-C takes effect between two of them, and the simulation can go on there."""
        if not isinstance(count, int | np.integer) or count < 0:
            raise LapjointError(f"step: count is {count!r}, expected a whole number of steps, 0 or more")
        done = 0
        while done < count:
            done += self.step_at_once(int(count) - done)

    @alone
    def step_at_once(self, most: int) -> int:
        """Go on by as many timesteps, up to `most`, as the workers take by themselves, and at least by one. Returns how
        many; `profile` is of these."""
        if self._stopped is not None:
            raise self._stopped
        with Uninterrupted():
            try:
                steps = self._take_steps(most)
            except BaseException as error:
                if self._stopped is None:
                    self._use.broken_off = "step"
                if isinstance(error, MAY_BE_SHORT):
                    raise_in_words(error, f"step {self._now.step_count}")
                raise
            for body in self._glued.taken_struck():
                self.take_apart(body)
            for callback in self._callbacks:
                callback(self)
        return steps

    def _take_steps(self, most: int) -> int:
        """The workers' next command, and what comes before and after it."""
        now, coupling, runtime = self._now, self._coupling, self._runtime
        self.profile = profile = StepProfile(fetch_contacts=_fetcher(weakref.ref(self)))
        start = time.thread_time()
        if now.membership.worker_count > 1:
            self._follow_placed()
            self._carry_out(coupling.decide(now, runtime, profile))  # lines 7 to 15
        if self._sensing.is_used:
            self._sensing.begin_step()
        with profile.phase("step"):  # lines 16 and 17
            profile.steps = self._step_workers(self._most_steps(most))
        coupling.merge(now, runtime, profile)  # lines 18 to 20
        self._note_reported()
        self._frozen.put_back(runtime, now.commands)
        if self._sensing.is_used:
            self._sensing.end_step(profile.steps)
        self._recovery.end_step(now.step_count)
        profile.server_ms += 1e3 * (time.thread_time() - start - runtime.wait_cpu_s)
        profile.divide_times()
        self._last_step_ms = profile.step_ms
        now.loads.measure(profile.worker_cpu_ms, profile.steps)
        now.step_count += profile.steps
        if not self._has_stepped:
            self._has_stepped = True
            trim()  # of the first decision: 120 bytes of a body
        if self._elastic.is_time_to_look(now.step_count):
            self._follow_load()
        return profile.steps

    def _most_steps(self, left: int) -> int:
        """How many of the steps that are left the workers take by themselves: as many as nobody looks into, decides
        about or changes anything in. Results do not depend on it."""
        now, one_worker = self._now, self._now.membership.worker_count == 1
        if self._callbacks or now.params.validate or now.commands.forces or self._frozen.is_used:
            return 1
        if self._sensing.one_by_one or self._glued.is_any_whole:
            return 1
        limits = [left, self._recovery.most_steps(now.step_count), self._elastic.most_steps(now.step_count)]
        if not one_worker:
            limits.append(self._coupling.most_steps(now))
        if self._last_step_ms:
            limits.append(int(TOGETHER_MS / self._last_step_ms))
        return max(1, min(limits)) if now.step_count else 1

    def _wants_contacts(self, steps: int) -> bool:
        """Whether workers send the contacts of the last of so many steps. Others are sent to who asks; where workers
        measure nothing, everybody does."""
        now, after = self._now, self._now.step_count + steps
        measured = all(len(reply.step_measures) for reply in now.replies)
        if now.params.validate or not measured or self._elastic.is_time_to_look(after):
            return True
        if any(wanted(after) for wanted in self.contacts_wanted):
            return True
        return now.membership.worker_count > 1 and self._coupling.needs_contacts(now, after)

    def _fetch_contacts(self, replies: Sequence[StepReply]) -> None:
        """Complete the replies of the last step with its contacts."""
        now = self._now
        if all(reply.has_contacts for reply in replies):
            return
        if replies is not now.replies or self._closed or self._stopped is not None:
            raise LapjointError(CONTACTS_ARE_GONE)
        self._ask_for_contacts(replies)

    @whole
    def _ask_for_contacts(self, replies: Sequence[StepReply]) -> None:
        fetch_contacts(replies, self._runtime.step, self._now.params.workers, self.scene.body_count)

    def _note_reported(self) -> None:
        """Keep what was reported of the last steps, and act on it: joints that broke are broken for all workers, and
        for good."""
        now = self._now
        found = self._coupling.tables(now) if any(reply.tables for reply in now.replies) else []
        self._reports.add(found, self.scene.bodies, now.step_count)
        for table in found:
            if isinstance(table, JointBreaks) and len(table):
                self._break_joints(table.joint, table.step + now.step_count)
            if isinstance(table, Hits):
                self._glued.note_hits(table)
            if isinstance(table, HalfTurns):
                now.commands.drives.note_turned(table)

    def _break_joints(self, joint_ids: Ids, step_count: int | Ids) -> None:
        self.scene.remove_joints(joint_ids, step_count)
        self._now.commands.break_joints(joint_ids)
        self._note_changes()

    def _note_changes(self) -> None:
        """Bodies or joints have come or gone."""
        self._now.detection.note_changes()
        self._now.loads.note_changes()
        self._coupling.note_changes()

    def _carry_out(self, decision: Decision) -> None:
        """Have the workers do what was decided on, as far as it does not go with the step's commands."""
        now, profile = self._now, self.profile
        if decision.migration is not None:
            with profile.phase("balance"):
                counts = migrate(decision.migration, now.membership, now.commands, self._runtime)
                profile.activation_count, profile.deactivation_count = counts
        if decision.worker_count != now.params.workers:
            with profile.phase("balance"):
                self._set_workers(decision.worker_count)

    def _step_workers(self, steps: int) -> int:
        """Every worker takes steps, in parallel; the barrier is the runtime's return. Returns how many were taken: one,
        where a worker has failed."""
        now, profile, coupling = self._now, self.profile, self._coupling
        if now.params.validate:
            now.commands.validate(now.membership)
        commands, weights = coupling.commands(now), coupling.weights
        profile.activation_count += sum(len(command.activate) for command in commands)
        profile.deactivation_count += sum(len(command.deactivate) for command in commands)
        wants_contacts = self._wants_contacts(steps)
        for command in commands:
            command.contacts = wants_contacts
        work = coupling.server_work(now, self._runtime)
        iterations = now.params.sequential.iterations or 1
        plan = StepPlan(now.step_count, iterations, now.membership, commands, weights, work, steps)
        try:
            now.replies = self._recovery.take_step(plan)
        except SimulationStopped as error:
            self._stopped = error
            now.commands.known = np.zeros_like(now.commands.known)  # whoever goes on from here starts from the states
            for hook in self.before_stop:
                try:
                    hook(self)
                except LapjointError as own:
                    error.add_note(str(own))
            raise
        if wants_contacts:
            self._fetch_contacts(now.replies)  # where they were too many for a reply
        bits, count = now.commands.known, now.commands.known_count
        if not now.commands.knows(now.membership):  # bodies have left within the step
            bits, count = now.membership.bits.copy(), now.scene.living_count
        profile.count_workers(commands, now.replies, bits, count)
        profile.sent_bytes = self._runtime.byte_count
        return plan.steps

    # ---- what a user reads -----------------------------------------------------------------------------------------

    @property
    def scene(self) -> LivingScene:
        """The scene with all that was added to it since it began."""
        return self._now.scene

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which bodies are there, by number; a view that cannot be written to."""
        return self.scene.alive

    @property
    def params(self) -> Params:
        """As they are now, with everything filled in that the scene decides."""
        return self._now.params

    @property
    def step_count(self) -> int:
        """Steps so far."""
        return self._now.step_count

    @property
    def timestep(self) -> float:
        """s"""
        assert self.params.timestep is not None
        return self.params.timestep

    @property
    def time(self) -> float:
        """Simulated seconds so far."""
        return self.step_count * self.timestep

    @property
    def states(self) -> Array:
        """States of all bodies now, (body_count, 13), zeros for those that were removed; a copy that cannot be written
        to: see set_states."""
        states = np.array(self._states_now("states"))
        states.flags.writeable = False
        return states

    def states_of(self, body_ids: ArrayLike) -> Array:
        """States of these bodies now, (number of bodies, 13): less to copy than those of all."""
        return np.array(self._states_now("states_of")[self.scene.checked_ids(body_ids, "states_of")])

    def _states_now(self, what: str) -> Array:
        """The table of states. One in memory that is shared can be read while another thread takes a step."""
        self._check_open(what)
        return self._runtime.states if self._runtime.byte_count is None else self._fetch_states()

    @whole
    def _fetch_states(self) -> Array:
        return self._runtime.states

    @property
    def kinematic_states(self) -> Array:
        """States of kinematic bodies now, (n, 13), in the order of `scene.kinematic_ids`; velocities are those of the
        step that comes."""
        return self._kinematic.states(self.step_count)

    @property
    def motions(self) -> dict[int, GivenMotion]:
        """How each kinematic body moves now, by its number; a copy."""
        return self._kinematic.motions

    @property
    def joint_targets(self) -> JointTargets | None:
        """Targets of drives that were set, and half turns of counted angles now, as workers are told; None if there are
        none."""
        return self._now.commands.drives.all_targets()

    @property
    def static_poses(self) -> Array:
        """Positions and quaternions of all static bodies now, (static_count, 7); those of kinematic ones change."""
        return self._kinematic.static_poses(self.step_count)

    @property
    def state_hash(self) -> str:
        """Sixteen hexadecimal digits that change with any bit of any state."""
        return state_hash(self.states)

    @property
    def is_stopped(self) -> bool:
        """Whether a failure has ended the run; states are those before the step that could not be taken."""
        return self._stopped is not None

    @property
    def membership(self) -> Membership:
        """Who simulates what."""
        return self._now.membership

    @property
    def graph(self) -> ConstraintGraph:
        """The constraint graph of the last step, as it began."""
        self._fetch_contacts(self._now.replies)
        return self._coupling.graph(self._now)

    @property
    def replies(self) -> list[StepReply]:
        """What each worker reported of the last step; contacts only where they were needed, or have been asked for."""
        return list(self._now.replies)

    def contacts(self) -> Contacts:
        """Contacts of the last step, as it began."""
        return self.profile.contacts

    def joint_gaps(self) -> Array:
        """Gap of every joint now [m]; that of one that holds no more is 0."""
        self._check_open("joint_gaps")
        gaps, holds = np.zeros(self.scene.joint_count), np.flatnonzero(self.scene.joint_alive)
        if len(holds):
            gaps[holds] = joint_gaps(self.scene, self._states_now("joint_gaps"), holds)
        return gaps

    def reported(self, kind: type[Table]) -> Table:
        """All that has been reported of a kind so far, see `lapjoint.step_tables`: in which step (from 0), who or what,
        and what it was."""
        return self._reports.all(kind)

    @property
    def joint_breaks(self) -> JointBreaks:
        """Joints that have broken so far: in which step (from 0), which, and under what force and torque."""
        return self.reported(JointBreaks)

    @property
    def events(self) -> Events:
        """What has happened so far: bodies that were made and removed, joints that broke, contacts that hit."""
        return find_events(self.scene, self.joint_breaks, self.hits)

    @property
    def hits(self) -> Hits:
        """Contacts so far that did as much in a step (from 0) as one of their bodies wants to have reported."""
        return self.reported(Hits)

    @property
    def touches(self) -> Touches:
        """Touches so far of bodies with `touch_events` or a `hit_speed`: in which step (from 0), who, and whether they
        began to touch, ceased to, or hit."""
        return self.reported(Touches)

    @property
    def touching(self) -> Ids:
        """Pairs that touch now, (n, 2), of bodies whose touches are reported; the second is -1 - s where it is the
        static body s."""
        return self._reports.touches.touching

    def joint_positions(self, joint_ids: ArrayLike, axis: int | str | None = None) -> Array:
        """Where joints stand now, body a relative to body b [m, rad]: (n, 6), or (n,) on one axis, by its number or
        "free" for the only one that each of them leaves free. Angles that are counted go on over turns. Not a number
        where a body was removed."""
        ids, motion = self._joint_motion(joint_ids, "joint_positions")
        positions = with_turns(self.scene, motion.positions(), ids, self._now.commands.drives.half_turns(ids))
        return of_axis(self.scene, positions, ids, axis, "joint_positions")

    def joint_velocities(self, joint_ids: ArrayLike, axis: int | str | None = None) -> Array:
        """How fast they move now [m/s, rad/s]: rates of the positions, in the same shape."""
        ids, motion = self._joint_motion(joint_ids, "joint_velocities")
        return of_axis(self.scene, motion.velocities(), ids, axis, "joint_velocities")

    @whole
    def joint_forces(self, joint_ids: ArrayLike) -> Array:
        """Force [N] and torque about the anchor [N m] that each joint applied to its body a in the last step, in the
        mean, (n, 6): in the joint's frame on body b, locked axes, limits, motors and springs together. Zeros for one
        that did not hold in it. With Params.keep_forces."""
        self._require_kept("joint_forces")
        ids = self.scene.known_joint_ids(joint_ids, "joint_forces")
        return read_joint_forces(self._now, self._coupling.weights, self._runtime.step, ids)

    @whole
    def contact_points(self, body_ids: ArrayLike | None = None) -> ContactPoints:
        """Contact points of the last step with their impulses, of all bodies or of these (-1 - s for the static body
        s), in the order of bodies. With Params.keep_forces."""
        self._require_kept("contact_points")
        numbers = None if body_ids is None else checked_numbers(self.scene, body_ids, "contact_points")
        return read_contact_points(self._now, self._coupling.weights, self._runtime.step, numbers)

    @whole
    def contact_forces(
        self,
        bodies_a: ArrayLike | None = None,
        bodies_b: ArrayLike | None = None,
        *,
        between: Groups | None = None,
        about: ArrayLike = (0.0, 0.0, 0.0),
    ) -> tuple[Array, Array]:
        """Force [N] and torque about a point [N m] that bodies a had from all their contacts with bodies b in the last
        step, in the mean: (3,) and (3,). A body is a number, or -1 - s for the static body s; b is all that are not in
        a unless given. `between` has many such pairs in place of one: (n, 3) and (n, 3). With Params.keep_forces."""
        self._require_kept("contact_forces")
        if (between is None) == (bodies_a is None):
            raise LapjointError("contact_forces: expected either bodies_a or between")
        groups: Groups = [(bodies_a, bodies_b)] if bodies_a is not None else list(between or ())
        sums = read_contact_forces(self._now, self._coupling.weights, self._runtime.step, groups)
        forces = sums / self.timestep
        torques = forces[:, 3:] - np.cross(as_rows("about", about, 1, (3,), "contact_forces"), forces[:, :3])
        return (forces[:, :3], torques) if between is not None else (forces[0, :3], torques[0])

    def _joint_motion(self, joint_ids: ArrayLike, what: str) -> tuple[Ids, JointMotion]:
        scene = self.scene
        ids = scene.known_joint_ids(joint_ids, what)
        return ids, JointMotion(scene, self._states_now(what), ids)

    def _require_kept(self, what: str) -> None:
        if not self.params.keep_forces:
            raise LapjointError(f"{what}: forces are not kept, expected Params(keep_forces=True)")
        if not self._has_stepped:
            raise LapjointError(f"{what}: no step has been taken yet, or none since the simulation goes on")

    @property
    def broken_joint_ids(self) -> Ids:
        """Joints that have broken or were removed, or have lost a body, ascending; a copy."""
        return self._now.commands.broken

    @property
    def overlap(self) -> Ids:
        """Bodies with more than one worker, ascending."""
        return self._coupling.weights.bodies

    @property
    def weight_offset(self) -> Ids:
        """Where the workers of each overlap body begin in `weight_worker` and `weight`, and where the last ones end."""
        return self._coupling.weights.offset

    @property
    def weight_worker(self) -> Ids:
        """The workers of the overlap bodies, one body after the other."""
        return self._coupling.weights.worker

    @property
    def weight(self) -> Array:
        """Their blend weights."""
        return self._coupling.weights.weight

    def weights(self) -> Array:
        """Blend weight of each worker in each body, (body_count, workers); rows sum to one."""
        count, weights = self.membership.worker_count, self._coupling.weights
        table = np.stack([self.membership.column(w) for w in range(count)], axis=1).astype(float)
        table[weights.rows, weights.worker] = weights.weight
        return table

    @property
    def worker_states(self) -> Array:
        """States of the overlap bodies in each of their workers after the last step, as `weight_worker` lists them."""
        return np.array(self._runtime.worker_states[: len(self.weight_worker)])

    @property
    def interface(self) -> Ids:
        """Bodies that are near bodies of other workers, or jointed to them, where these are solved within the step; a
        copy. Empty where workers overlap instead."""
        return self._coupling.interface if self.membership.worker_count > 1 else np.empty(0, np.int32)

    @property
    def growth_depth(self) -> int:
        """How far overlap grows."""
        assert self.params.blend.growth_depth is not None
        return self.params.blend.growth_depth

    @property
    def search_depth(self) -> int:
        """How far weights search."""
        assert self.params.blend.search_depth is not None
        return self.params.blend.search_depth

    @property
    def forces(self) -> dict[int, Array]:
        """Force and torque that the next step has for each body with any."""
        return dict(self._now.commands.forces)

    @property
    def frozen_ids(self) -> Ids:
        """Bodies that are held, ascending."""
        return self._frozen.ids

    # ---- what a user asks ------------------------------------------------------------------------------------------

    @whole
    def cast_rays(
        self,
        origins: ArrayLike,
        directions: ArrayLike,
        max_distance: ArrayLike = np.inf,
        *,
        all_hits: bool = False,
        mask: int = ALL_GROUPS,
        statics: bool = True,
    ) -> RayHits:
        """What rays meet, of bodies whose group has a bit in `mask`: the closest of each ray, or with `all_hits` every
        body that it meets, each where it enters it first. Directions may have any length but 0; `max_distance` [m] is
        one for all or one per ray. Without `statics` rays pass through static bodies."""
        rays, groups = checked_rays(origins, directions, max_distance), checked_mask(mask, "cast_rays")
        cast = self._asking.cast_all if all_hits else self._asking.cast_closest
        return cast(*rays, groups, statics)

    @whole
    def overlapping(
        self,
        shape: MovingShape,
        positions: ArrayLike,
        quaternions: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        *,
        mask: int = ALL_GROUPS,
        statics: bool = True,
    ) -> Overlaps:
        """Which bodies overlap a shape at each of these places, of those whose group has a bit in `mask`. Touching is
        overlapping."""
        places, groups = checked_places(shape, positions, quaternions), checked_mask(mask, "overlapping")
        return self._asking.overlapping(shape, places, groups, statics)

    @whole
    def closest_points(
        self, points: ArrayLike, max_distance: ArrayLike = np.inf, *, mask: int = ALL_GROUPS, statics: bool = True
    ) -> ClosestPoints:
        """The surface nearest to each point, of bodies whose group has a bit in `mask`, no farther away than
        `max_distance` [m]. Inside of bodies, that of the body which the point is deepest in."""
        rows, groups = checked_points(points, max_distance), checked_mask(mask, "closest_points")
        return self._asking.closest_points(*rows, groups, statics)

    @whole
    def inside(self, sensor_ids: ArrayLike | None = None) -> Inside:
        """Which bodies are inside of these sensors now, or of all of them."""
        pairs = self._sensing.inside
        if sensor_ids is not None:
            known = len(self.scene.sensors)
            ids = integer_rows("sensor", sensor_ids, np.size(sensor_ids), "inside")
            for sensor in ids[(ids < 0) | (ids >= known)]:
                raise LapjointError(f"inside: sensor {sensor} does not exist, the scene has {known} sensors")
            pairs = pairs[np.isin(pairs[:, 0], ids)]
        return Inside(pairs[:, 0].copy(), pairs[:, 1].copy())

    @property
    @whole
    def sensor_events(self) -> SensorEvents:
        """Bodies that have entered sensors so far and left them: in which step (from 0), which, and which of both.
        Those that were inside from the start have entered in step 0."""
        return self._sensing.events

    # ---- what a user does ------------------------------------------------------------------------------------------

    @whole
    def add_forces(self, body_ids: ArrayLike, forces: ArrayLike, torques: ArrayLike | None = None) -> None:
        """Add external forces [N] and torques [N m] to bodies, for the next step only, whichever workers have them."""
        self._now.commands.add_forces(self.scene, body_ids, forces, torques)

    @whole
    def set_states(self, body_ids: ArrayLike, states: ArrayLike) -> None:
        """Set positions and velocities of bodies, in all their workers, before the next step. Where many are put
        elsewhere, the scene is repartitioned in it."""
        ids = self.scene.checked_ids(body_ids, "set_states")
        table, after = self._runtime.states, checked_states(self.scene, ids, states, "set_states")
        apart = np.linalg.norm(after[:, :3] - table[ids, :3], axis=1)
        table[ids] = after
        self._now.commands.set_from_table(ids)
        self._note_placed(ids[apart > (self.params.units.length or 1.0)])

    @whole
    def freeze(self, body_ids: ArrayLike) -> None:
        """Hold bodies where they are: after every step they are put back there, at rest."""
        self._frozen.hold(self.scene.checked_ids(body_ids, "freeze").tolist(), self._runtime.states)
        self._frozen.put_back(self._runtime, self._now.commands)

    @whole
    def release(self, body_ids: ArrayLike) -> None:
        """Let frozen bodies go."""
        self._frozen.release(self.scene.checked_ids(body_ids, "release").tolist())

    @whole
    def add_body(
        self,
        shape: MovingShape,
        position: ArrayLike = (0.0, 0.0, 0.0),
        quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        **options: Any,
    ) -> int:
        """Add one body, as Scene.add_body does, before the next step. Returns its number."""
        with self._adding("add_body") as scene:
            return scene.add_body(shape, position, quaternion, **options)

    @whole
    def add_bodies(
        self,
        shape: MovingShape | Sequence[MovingShape],
        positions: ArrayLike,
        quaternions: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        **options: Any,
    ) -> range:
        """Add many bodies, with the options of Scene.add_bodies, before the next step. Each goes to the worker of the
        body that it is nearest to. Returns their numbers, which are higher than any of before."""
        with self._adding("add_bodies") as scene:
            return scene.add_bodies(shape, positions, quaternions, **options)

    @whole
    def add_joint(self, joint: Joint, body_a: int, body_b: int, anchor: ArrayLike, **options: Any) -> int:
        """Join two bodies as they stand now, with the options of Scene.add_joint, before the next step. Returns the
        joint's number."""
        with self._adding("add_joint") as scene:
            return scene.add_joint(joint, body_a, body_b, anchor, **options)

    @whole
    def add_joints(
        self, joint: Joint, bodies_a: ArrayLike, bodies_b: ArrayLike, anchors: ArrayLike, **options: Any
    ) -> range:
        """Add many joints of one kind, with the options of Scene.add_joints, before the next step. Returns their
        numbers, which are higher than any of before."""
        with self._adding("add_joints") as scene:
            return scene.add_joints(joint, bodies_a, bodies_b, anchors, **options)

    @whole
    def remove_bodies(self, body_ids: ArrayLike) -> None:
        """Take bodies out, and their joints with them, before the next step. Their numbers are not used again; their
        states are zeros."""
        ids = np.unique(self.scene.checked_ids(body_ids, "remove_bodies"))
        if len(ids):
            self._remove(ids)

    @whole
    def remove_joints(self, joint_ids: ArrayLike) -> None:
        """Let joints go, for good, from the next step on: they hold nothing any more, and their bodies may touch. They
        keep their numbers, and are no breaks."""
        ids = self.scene.checked_joint_ids(joint_ids, "remove_joints")
        self._require_engine("breaks", "remove_joints: joints stay")
        if len(ids):
            self._break_joints(ids, self.step_count)

    @whole
    def take_apart(self, body_id: int) -> range:
        """Replace a glued body by its pieces before the next step, as a hit does: each has the velocity that it had as
        a part of it, so mass, momentum and angular momentum stay. Returns their numbers."""
        body = int(self.scene.checked_ids([body_id], "take_apart")[0])
        glued = self._glued.known(body, "take_apart")
        state = self.states_of([body])[0]
        with self._adding("take_apart") as scene:
            pieces = scene.add_bodies(**glued.pieces(state, scene.bodies))
        self._glued.note_apart(body, pieces.start)
        if len(glued.pairs):
            with self._adding("take_apart") as scene:
                scene.add_joints(Fixed(), **glued.joints(state, pieces.start))
        self._remove(np.array([body], np.int32))
        return pieces

    def pieces_of(self, body_id: int) -> range | None:
        """Numbers of the pieces that a glued body has become; None while it is whole."""
        return self._glued.pieces_of(int(body_id))

    @whole
    def set_motion(self, static_ids: ArrayLike, motion: Motion | None) -> None:
        """Have kinematic bodies move so from the next step on, whatever they did: from where they are, unless it is
        Keyframes, which have poses in the world. Its time counts from now. None: they rest."""
        self._kinematic.set_motion(static_ids, motion, self.step_count)
        self._now.commands.set_motions(self._kinematic.message())

    @whole
    def move_to(self, static_ids: ArrayLike, positions: ArrayLike, quaternions: ArrayLike | None = None) -> None:
        """Have kinematic bodies be at these poses at the end of the next step, and rest there. They move there in the
        step, as fast as that takes. Without quaternions they do not turn."""
        self._kinematic.move_to(static_ids, positions, quaternions, self.step_count)
        self._now.commands.set_motions(self._kinematic.message())

    @whole
    def set_drive_targets(
        self,
        joint_ids: ArrayLike,
        positions: ArrayLike | None = None,
        velocities: ArrayLike | None = None,
        axis: ArrayLike | None = None,
    ) -> None:
        """Have drives go for these positions [m or rad] and velocities [m/s or rad/s], from the next step on, until
        they are set again: one for all joints or one for each. What is not given stays as it was; a Motor has a
        velocity alone. `axis` is needed for joints that are driven on several."""
        self._require_engine("drives", "set_drive_targets: targets stay")
        if self.params.solver != "substeps":
            raise LapjointError(f"set_drive_targets: the solver is {self.params.solver}, expected substeps")
        self._now.commands.drives.set_targets(joint_ids, positions, velocities, axis)

    def drive_targets(self, joint_ids: ArrayLike, axis: ArrayLike | None = None) -> Array:
        """What drives are to do now, (number of joints, 2): positions and velocities."""
        return self._now.commands.drives.targets(joint_ids, axis)

    @whole
    def set_growth_depth(self, growth_depth: int) -> None:
        """Set how far overlap grows, from the next step on: the worker of largest weight keeps a body, and overlap
        grows from there."""
        self._set_params("set_growth_depth", growth_depth=growth_depth)
        if self.membership.worker_count > 1:
            largest = np.argmax(self.weights()[:, : self._now.repartition.wanted_count], axis=1)
            self._request(largest.astype(np.int32))

    @whole
    def set_load(self, load: str) -> None:
        """Set what balancing evens out, from the next step on."""
        self._set_params("set_load", load=load)
        self._now.loads = Loads(self.scene, self.params)
        self.membership.set_costs(1)
        self._coupling.note_repartition(self._now)
        self._coupling.invalidate()

    @whole
    def set_iterations(self, iterations: int) -> None:
        """Set the sweeps of the solver per step, from the next step on. The substep solver has none."""
        if self.params.solver == "substeps":
            raise LapjointError(
                "set_iterations: the solver is substeps, expected sequential: set `substeps` in the Params that a "
                "simulation begins with, or `solver` to sequential"
            )
        self._set_params("set_iterations", iterations=iterations)
        assert self.params.sequential.iterations is not None
        self._now.commands.set_iterations(self.params.sequential.iterations)

    @whole
    def repartition(self, partition: ArrayLike) -> None:
        """Let every body migrate to the worker that `partition` has for it, in the next step. Balancing goes on from
        there: `Params(repartition=0)` keeps the partition."""
        count = self._now.repartition.wanted_count
        wanted = np.array(checked_partition(np.asarray(partition)), np.int64)
        if len(wanted) == self.scene.body_count and ((wanted >= 0) & (wanted < count)).all():
            for empty in np.setdiff1d(np.arange(count), wanted[self.alive]):
                raise LapjointError(f"repartition: worker {empty} gets no body, expected at least one for each worker")
        workers = check_partition("repartition", wanted, self.scene, count)
        if self.membership.worker_count > 1:
            self._request(workers)

    @whole
    def set_worker_count(self, worker_count: int) -> None:
        """Change the number of workers: the scene is repartitioned among them in the next step. No state jumps; workers
        that are not needed end after it."""
        worker_count = self.params.check_worker_count(worker_count)
        if worker_count > max(self.scene.living_count, 1):
            raise LapjointError(f"{worker_count} workers for {self.scene.living_count} bodies: expected one per body")
        self._set_workers(max(worker_count, self.membership.worker_count))
        self._now.repartition.wanted_count = worker_count
        self._coupling.invalidate()

    @whole
    def restart(self) -> None:
        """Begin again from the scene's start with the parameters given at first, on new workers: bit for bit as a new
        simulation. Callbacks and events stay."""
        self._runtime.close()
        try:
            self._start(self.scene.first(self.scene.began_with))
        except BaseException:
            self.close()
            raise
        self._use.broken_off = self.resumed_from = None

    def on_step(self, callback: Callable[[Simulation], None]) -> None:
        """Call `callback(simulation)` after every step. What it raises leaves `step` after a whole step."""
        self._callbacks.append(callback)

    def frames(self, steps: int, every: int = 1) -> Iterator[Frame]:
        """Take `steps` steps and yield a frame after every `every`-th."""
        if steps < 0 or every < 1:
            raise LapjointError(f"frames: steps is {steps} and every is {every}, expected 0 or more and 1 or more")
        for _ in range(steps // every):
            self.step(every)
            yield Frame(self.step_count, self.time, self.states)
        self.step(steps % every)

    @contextmanager
    def _adding(self, what: str) -> Iterator[LivingScene]:
        """Where the scene gets more bodies or joints: it, or nothing changes."""
        self._require_engine("added bodies", f"{what}: scenes stay as they are")
        now, scene = self._now, self.scene
        _, first, first_joint = scene.extent
        with scene.open(self.step_count):
            yield scene
            check_inertias(scene, self.params, first)
            check_crowds(scene, first)
            asked = [kind.asked_by(scene, self.params, first, first_joint) for kind in TABLES.values() if kind.feature]
            if scene.joint_count > first_joint or any(asked):
                check_engines(scene, self.params, warn=False)
        if scene.extent[1:] == (first, first_joint):
            return
        if scene.joint_count > first_joint:
            check_mass_ratios(scene, self.params)
        if scene.body_count > first:
            check_timestep(scene, self.params, first)
        with self._use.to_the_end(what):
            if scene.body_count > first:
                with short_of(f"{scene.body_count:,} bodies"):
                    self._runtime.set_body_count(scene.body_count, self._mail_room())
                states = self._runtime.states
                workers = nearest_workers(scene.states_of(first), states[:first], now.membership, scene.spans)
                states[first:] = scene.states_of(first)
                now.membership.add(workers)
                now.commands.add_bodies()
                now.repartition.add_bodies(now.membership)
                self._coupling.add_bodies(workers)
                self._note_placed(np.arange(first, scene.body_count, dtype=np.int32))
            self._note_changes()

    def _remove(self, body_ids: Ids) -> None:
        now = self._now
        self._frozen.release(body_ids.tolist())
        self._reports.touches.remove(body_ids, self.scene.bodies, self.step_count)
        self._runtime.states[body_ids] = 0.0
        joints = self.scene.remove(body_ids, self.step_count)
        if len(joints):
            now.commands.break_joints(joints)
        now.membership.remove(body_ids)
        now.commands.remove(body_ids)
        blocks = self.scene.release()
        for block in blocks:
            self._runtime.release(block)
            now.commands.release(block)
        if blocks:
            trim()
        self._note_changes()

    def _mail_room(self) -> int:
        """Bytes that a message between two workers can have, for as many bodies as there are."""
        return coupling_type(self.params).mail_room(self.scene.living_count, self.params)

    def _require_engine(self, feature: str, what: str) -> None:
        for name in EngineChoice.parse(self.params.engine).names:
            if feature not in supports(name).features:
                raise LapjointError(f"{what} with the engine {name}, expected bullet")

    def _set_params(self, what: str, **changed: Any) -> None:
        """Other parameters from the next step on; refuses values that are none, and those of another coupling."""
        self.params.check_own(changed, what)
        self._now.params = self.params.with_options(**changed)

    def _request(self, partition: Ids) -> None:
        self._now.repartition.request(partition)
        self._coupling.invalidate()

    def _set_workers(self, worker_count: int) -> None:
        """Start or end workers without bodies."""
        if worker_count != self.params.workers:
            text = f"workers: {worker_count}, before {self.params.workers}"
            with short_of(f"{worker_count} workers"):
                self._runtime.set_worker_count(worker_count)
            self._now.commands.set_worker_count(worker_count)
            if self.params.sequential.iterations is not None:  # new workers know those that the simulation began with
                self._now.commands.set_iterations(self.params.sequential.iterations)
            self._now.params = replace(self.params, workers=worker_count)
            self.incidents.append(Incident(self.step_count, "workers", text))
        if worker_count != self.membership.worker_count:
            self.membership.set_worker_count(worker_count)

    def _note_placed(self, body_ids: Ids) -> None:
        """These bodies are where they were not before."""
        if self.membership.worker_count > 1 and self._now.loads.may_migrate:
            self._now.repartition.placed.add(body_ids)

    def _follow_placed(self) -> None:
        """Have the scene repartitioned in this step, where the partition does not suit bodies that were placed. Those
        have no contact any more where they were before."""
        now, scene = self._now, self.scene
        if now.repartition.is_due(now.membership):
            return
        placed = now.repartition.placed.take_many(scene.living_count)
        if placed is None:
            return
        states, is_new = self._runtime.states, np.asarray(~now.commands.known[placed].any(axis=1))
        if suits(placed, states, now.membership, scene.spans, is_new, lambda: now.loads.are_uneven(now.membership, 0)):
            return
        with suppress(WorkerError):  # without a worker that is gone, by joints and by what is near
            self._fetch_contacts(now.replies)
        radii = scene.bounding_radii()
        now.replies = [reply.with_contacts(may_touch(reply.contacts.bodies, states, radii)) for reply in now.replies]
        now.repartition.request_for(placed)
        self._coupling.invalidate()

    def _follow_load(self) -> None:
        """With `max_workers`, as many workers as the load is worth."""
        now = self._now
        now.loads.estimate(now.membership, now.replies, now.params.sweeps)
        wanted = self._elastic.wanted(now.repartition.wanted_count, now.loads.step_ms(now.membership))
        try:
            self.set_worker_count(wanted)
        except WorkerError as error:
            self._elastic.most = now.repartition.wanted_count
            self.incidents.append(Incident(now.step_count, "workers", f"no more workers can be started: {error}"))

    # ---- state -----------------------------------------------------------------------------------------------------

    @whole
    def state(self) -> dict[str, PartState]:
        """All that decides how the simulation goes on, by part, between two steps. Nothing changes."""
        if self._stopped is None:  # workers that have stopped have contacts of the step that failed, if any
            self._fetch_contacts(self._now.replies)
        return {name: part.state() for name, part in self._parts().items()}

    @whole
    def restore(self, parts: Mapping[str, PartState], before: Params) -> None:
        """Go on from the state of a simulation of the same scene that had the parameters `before`. With as many
        workers, bit for bit as that one; with another number the scene is repartitioned."""
        after = replace(self.params, partition=before.partition)
        self._given = replace(self._given, partition=before.partition)
        # With their old values first, for these are changed by more than a number.
        self._now.params = after.with_options(growth_depth=before.blend.growth_depth, load=before.load)
        if after.workers == before.workers:
            for name, part in self._parts().items():
                part.restore(parts[name])
        else:
            redistribute(parts, before.workers, self._now, self._coupling, self._runtime)
            self._frozen.restore(parts["frozen"])
            for name, part in self._reports.parts().items():
                part.restore(parts[name])
            self._kinematic.restore(parts["kinematic"])
            if self._sensing.is_used:
                self._sensing.restore(parts["sensing"])
            if self._glued.is_used:
                self._glued.restore(parts["glued"])
            self._now.commands.drives.restore(parts["drives"])
            self._recovery.restore_without_workers(parts["recovery"])
        if self._kinematic.changed:
            self._now.commands.set_motions(self._kinematic.message())
        depth = after.blend.growth_depth
        if depth is not None and depth != before.blend.growth_depth:
            self.set_growth_depth(depth)
        if after.load != before.load:
            self.set_load(after.load)
        if after.max_workers != before.max_workers:
            self._elastic = Elastic(after, self.scene.body_count)
        if any(getattr(after, name) != value for name, value in vars(before).items() if name not in ELSEWHERE):
            self._coupling.invalidate()

    def _parts(self) -> dict[str, Stateful]:
        """In the order in which they are restored."""
        now = self._now
        return {
            "last_step": LastStepPart(now),
            "table": TablePart(self._runtime, self._coupling),
            "membership": now.membership,
            "detection": now.detection,
            "commands": now.commands,
            "loads": now.loads,
            "repartition": now.repartition,
            "elastic": self._elastic,
            "frozen": self._frozen,
            "recovery": self._recovery,
            **self._reports.parts(),
            "life": LifePart(now.scene),
            "kinematic": self._kinematic,
            **({"sensing": self._sensing} if self._sensing.is_used else {}),
            **({"glued": self._glued} if self._glued.is_used else {}),
            "drives": now.commands.drives,
            "coupling": CouplingPart(self._coupling, now, self.profile),
            "workers": WorkerEnginesPart(now, self._runtime),
        }

    # ---- the end ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the workers. The simulation cannot go on."""
        if not self._closed:
            self._close()

    @whole
    def _close(self) -> None:
        self._closed = True
        self._unlock_scene()
        for hook in self.at_close:
            hook()
        self._runtime.close()

    def _check_open(self, what: str) -> None:
        if self._closed:
            raise LapjointError("the simulation is closed")
        if self._use.broken_off is not None and what not in ("restart", "close"):
            raise LapjointError(
                f"{what}: the simulation was broken off in the middle of {self._use.broken_off}() and cannot go on, "
                "expected a new one, or restart()"
            )

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _fetcher(of: weakref.ref[Simulation]) -> Callable[[Sequence[StepReply]], None]:
    """Completes replies of the last step with contacts; does not keep the simulation."""

    def fetch(replies: Sequence[StepReply]) -> None:
        simulation = of()
        if simulation is not None:
            simulation._fetch_contacts(replies)
        elif not all(reply.has_contacts for reply in replies):
            raise LapjointError(CONTACTS_ARE_GONE)

    return fetch
