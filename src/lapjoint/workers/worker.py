"""Worker: one engine simulating its active bodies. A command comes in, a reply goes out; it knows no transport."""

from __future__ import annotations

import time
import traceback

import numpy as np
from numpy.typing import NDArray

from ..arrays.growing import grown
from ..arrays.pages import trim
from ..arrays.rows import copy_rows, find_not_finite
from ..engines import (
    Changes,
    Contacts,
    DriveTargets,
    EngineState,
    HalfTurnsSet,
    NeighbourEngine,
    PreparingEngine,
    StepReport,
    make_worker_engine,
)
from ..errors import NotFiniteError, WorkerError
from ..params import Params
from ..scene import Scene
from ..scene.motions import unpack_motions
from ..scene.serialize import extend_scene
from ..scene.titles import body_titles
from .engine_states import StateParts
from .kept import Kept
from .looks import LookAnswers
from .messages import (
    Ask,
    Command,
    Migrate,
    NeighbourCommand,
    ReadState,
    Reply,
    StatePart,
    StepCommand,
    StepReply,
    StepTimes,
    WorkerFailure,
    WriteState,
)
from .questions import Answers
from .readings import CONTACTS
from .start_contacts import START_CONTACTS, start_contacts

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

UNKNOWN = np.array([-1], np.int32)
"""An overlap that no command can have: in the next step, a worker finds again which bodies it alone has."""

MOST_CONTACTS = 100
"""Contacts of a reply for each body of the scene, at most: more would not fit, and are fetched in parts."""


class Worker:
    """Worker number `index`. `states` is the table of all bodies' states, `worker_states` that of overlap bodies.

    A row of `states` is written by the worker that alone has the body, after its step, and by nobody else until the
    next command; rows of overlap bodies are written by the server alone. So workers share the table without locks.
    """

    def __init__(self, index: int, scene: Scene, params: Params, states: Array, worker_states: Array) -> None:
        self.index = index
        self._scene, self._engine = scene, make_worker_engine(scene, params, index)
        self._features = frozenset(self._engine.supports.features)
        self._preparing = self._engine if isinstance(self._engine, PreparingEngine) else None
        self._moved: Ids | None = None  # in the last step; None: it is not known who did
        self._states = states
        self._worker_states = worker_states
        self._kept = Kept.none()
        self._active = np.zeros(scene.body_count, bool)
        self._active_count = 0
        self._overlap = self._own = np.empty(0, np.int32)
        looks = LookAnswers(scene, lambda: (self._active, self._states))
        self._contacts = Contacts.none()
        own_answers = {
            **looks.by_name,
            CONTACTS: lambda _: dict(vars(self._contacts)),
            START_CONTACTS: lambda asked: start_contacts(scene, params, self._states, asked),
        }
        self._parts, self._answers = StateParts(), Answers(self._engine, own_answers)
        self._command = StepCommand()
        self._has_stepped = self._senses = False
        self._prepare_cpu_s = self._spent_cpu_s = self._reset_s = self._waited_s = 0.0
        self._between_meetings_s: Array = np.empty(0)
        self._mail: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self.mail_room = self._mail_count = 0
        self._bell = -1
        self._ghosts = self._own  # that were last reported

    def set_mail(self, memory: NDArray[np.uint8], room: int, bell: int = -1) -> None:
        """Where messages to and from other workers lie within a step, how many bytes one can have, and what wakes who
        carries those to other machines."""
        self._mail, self.mail_room, self._bell, self._mail_count = memory, room, bell, 0

    def set_states(self, states: Array) -> None:
        """Use another table of states from now on: there are more bodies."""
        self._states = states

    def set_kept(self, kept: Kept) -> None:
        """Keep the states of before a step there from now on."""
        self._kept = kept

    def set_worker_states(self, worker_states: Array) -> None:
        """Use another table of overlap bodies from now on: there are more workers, or bodies."""
        self._worker_states = worker_states

    @property
    def own_ids(self) -> Ids:
        """Active bodies that no other worker had in the last step."""
        return self._own

    @property
    def has_stepped(self) -> bool:
        """Whether the last command was one to step, and was not abandoned."""
        return self._has_stepped

    def execute(self, command: Command) -> Reply:
        if isinstance(command, StepCommand):
            start = time.perf_counter()
            self.begin(command)
            waited_s, completed = 0.0, True
            if isinstance(command, NeighbourCommand):
                completed = self.step_with_neighbours()
                waited_s = self._waited_s
            reply = self.finish(completed)
            reply.times.own_s = time.perf_counter() - start - waited_s
            return reply
        self._has_stepped = False
        if isinstance(command, ReadState):
            return self._parts.read(command, lambda: self._state_of(command.bodies))
        if isinstance(command, Ask):
            if len(command.reset):
                self._engine.set_states(command.reset, self._states[command.reset])
            answer = self._answers.part(command)
            if len(command.activate):
                trim()  # an engine of theirs was made and dropped
            return answer
        state = self._parts.write(command)
        if state is not None and isinstance(command, WriteState):
            self._restore(state)
        elif state is not None and isinstance(command, Migrate):
            self._migrate(command, state)
        return StatePart()

    # ---- a step ------------------------------------------------------------------------------------------------------

    def begin(self, command: StepCommand) -> None:
        """What comes before a step: bodies change, forces and the like are set."""
        start = time.thread_time()
        self._command, self._has_stepped = command, True
        self.extend(command.added)
        self._engine.change(self._changes(command))
        self._change_members(command)
        if len(command.released):
            for first, end in command.released.tolist():
                self._scene.bodies.release(first, end)
            trim()
        if len(command.force_ids):
            self._engine.add_forces(command.force_ids, command.forces[:, :3], command.forces[:, 3:])
        self._spent_cpu_s = time.thread_time() - start

    def extend(self, added: NDArray[np.uint8]) -> None:
        """The scene has this more from now on, if it has anything more."""
        if len(added) == 0:
            return
        extend_scene(self._scene, added)
        if "added bodies" not in self._features:
            raise WorkerError(f"worker {self.index}: its engine takes no more bodies")
        self._engine.change(Changes(grown=True))
        self._active = grown(self._active, self._scene.body_count, False)

    def _changes(self, command: StepCommand) -> Changes:
        """What the engine is told before the step, of what it has features for."""
        has = self._features
        changes = Changes(
            step_count=command.first_step, forgets_contacts=command.forgets, iterations=command.iterations
        )
        if "breaks" in has:
            changes.breaks = command.breaks
            if command.sets_broken:
                changes.all_broken = command.broken
            elif len(command.broken):
                changes.broken = command.broken
        if command.motions is not None and "kinematic bodies" in has:
            changes.motions = unpack_motions(vars(command.motions))
        if (command.senses or self._senses) and "sensors" in has:
            changes.senses, changes.inside, self._senses = command.senses, command.inside, command.senses
        if (told := command.joint_targets) is not None and "drives" in has:
            changes.drive_targets = DriveTargets(told.axes // 6, told.axes % 6, told.targets)
            changes.half_turns = HalfTurnsSet(told.turned, told.half_turns)
        return changes

    def step_with_neighbours(self) -> bool:
        """Take the steps together with all other workers. False: one is abandoned."""
        start = time.thread_time()
        engine, command = self._with_neighbours, self._command
        assert isinstance(command, NeighbourCommand)
        if len(command.turns) != self._mail_count:
            self._mail_count = len(command.turns)
            engine.open_mailboxes(self._mail, self._mail_count, self.mail_room, self.index, self._bell)
        engine.set_turns(self.index, command.turns, command.whole)
        completed = engine.step_with_neighbours(command.attempt, command.steps, command.choose)
        mail = engine.mail()
        self._waited_s, waited_cpu_s = mail.waited_s, mail.waited_cpu_s
        self._between_meetings_s = mail.between_meetings_s
        self._spent_cpu_s += time.thread_time() - start - waited_cpu_s
        return completed

    def finish(self, completed: bool) -> StepReply:
        """The second half of a step. Where it is abandoned, nothing is written, and the reply is empty."""
        start = time.thread_time()
        engine, command = self._engine, self._command
        if not completed:
            self._has_stepped = False
            self._overlap = UNKNOWN  # bodies may have come and gone with the command
            return StepReply()
        if not isinstance(command, NeighbourCommand):
            engine.step(command.steps)
        report = engine.report()
        self._write_states(command, report)
        self._contacts = engine.contacts()  # now, for to prepare the next step finds others
        lists_contacts = command.contacts and len(self._contacts) <= MOST_CONTACTS * self._scene.body_count
        has_ghosts = self._take_ghosts() if isinstance(command, NeighbourCommand) else False
        return StepReply(
            listed=self._contacts if lists_contacts else None,
            residual=report.residual,
            body_count=self._active_count,
            has_ghosts=has_ghosts,
            ghosts=self._ghosts if has_ghosts else self._ghosts[:0],
            fallback_count=report.fallback_count,
            sleeping_count=report.sleeping_count,
            substeps=report.substeps,
            tables=report.tables,
            step_measures=report.measures,
            times=StepTimes(
                cpu_s=self._spent_cpu_s + time.thread_time() - start,
                prepare_cpu_s=self._prepare_cpu_s,
                waited_s=self._waited_s,
                reset_s=self._reset_s,
                between_meetings_s=self._between_meetings_s,
            ),
        )

    def _write_states(self, command: StepCommand, report: StepReport) -> None:
        """Write the results where the server reads them, and keep what was there."""
        own, engine = self._own_bodies(command), self._engine
        kept = own
        if report.moved is not None:
            # Rows of bodies that sleep are as they were. Of those that fell asleep in the last step, the row that is
            # kept is of before it.
            own = report.moved
            kept = kept if self._moved is None else np.union1d(own, self._moved[self._active[self._moved]])
            self._moved = own
        if len(self._kept.noted):
            copy_rows(self._states, self._kept.states, kept)
            self._kept.noted[self.index] = command.number
        engine.get_states(own, out=self._states, rows=own)
        engine.get_states(command.overlap, out=self._worker_states, rows=command.slot)
        lost = find_not_finite(self._states, own)
        if len(command.slot):
            is_lost = np.isin(command.slot, find_not_finite(self._worker_states, command.slot))
            lost = np.union1d(lost, command.overlap[is_lost])
        if len(lost):
            raise NotFiniteError(f"{body_titles(self._scene, lost)}: not finite after the step", lost)

    def prepare(self) -> None:
        """Do what the next step can do already, while the others still step and the server works. Of this worker's
        bodies, only those in the overlap are reset before it."""
        if not self._has_stepped or self._preparing is None:
            return
        start = time.thread_time()
        self._preparing.prepare(self._overlap)
        self._prepare_cpu_s = time.thread_time() - start

    @property
    def _with_neighbours(self) -> NeighbourEngine:
        """The engine, if it takes steps together with others."""
        if not isinstance(self._engine, NeighbourEngine):
            raise WorkerError(f"worker {self.index}: its engine takes no steps with neighbours")
        return self._engine

    def _change_members(self, command: StepCommand) -> None:
        if len(command.deactivate):
            self._deactivate(command.deactivate)
        start = time.perf_counter()
        if len(command.reset):
            self._engine.set_states(command.reset, self._states[command.reset])
        self._reset_s = time.perf_counter() - start
        if len(command.activate):
            self._activate(command.activate)

    def _take_ghosts(self) -> bool:
        """Whether ghosts are others than before; they are noted."""
        ghosts = self._with_neighbours.ghost_ids
        changed = not np.array_equal(self._ghosts, ghosts)
        self._ghosts = ghosts
        return changed

    def _deactivate(self, bodies: Ids) -> None:
        self._engine.deactivate(bodies)
        self._note_deactivated(bodies)

    def _note_deactivated(self, bodies: Ids) -> None:
        self._active_count -= len(bodies)
        self._active[bodies] = False

    def _activate(self, bodies: Ids) -> None:
        self._engine.activate(bodies, self._states[bodies])
        self._active[bodies] = True
        self._active_count += len(bodies)

    def _own_bodies(self, command: StepCommand) -> Ids:
        """Active bodies that no other worker has."""
        changed = len(command.activate) or len(command.deactivate)
        if changed or not np.array_equal(command.overlap, self._overlap):
            self._overlap = command.overlap
            alone = self._active.copy()
            alone[command.overlap] = False
            self._own = np.flatnonzero(alone).astype(np.int32)
        return self._own

    # ---- the engine's state ------------------------------------------------------------------------------------------

    def _state_of(self, bodies: Ids) -> EngineState:
        """The engine's state: all of it, or what is about these bodies."""
        state = self._engine.state()
        if len(bodies) == 0:
            return state
        wanted = np.zeros(len(self._active), bool)
        wanted[bodies] = True
        return state.about(wanted)

    def _restore(self, state: EngineState) -> None:
        self._engine.restore(state)
        self._active[:] = False
        self._active[state.body_ids] = True
        self._active_count = len(state.body_ids)
        self._overlap, self._ghosts, self._moved = UNKNOWN, state.body_ids[:0], None

    def _migrate(self, command: Migrate, cache: EngineState) -> None:
        if len(command.deactivate):
            self._with_neighbours.hand_over(command.deactivate)
            self._note_deactivated(command.deactivate)
        if len(command.activate):
            self._activate(command.activate)
        self._with_neighbours.merge_cache(cache)
        self._overlap = UNKNOWN


def failure_of(index: int, error: BaseException) -> WorkerFailure:
    """What the server is sent of an exception in worker number `index`."""
    if isinstance(error, NotFiniteError):
        return WorkerFailure(index, "not finite", str(error), error.body_ids)
    return WorkerFailure(index, "failed", "".join(traceback.format_exception(error)).rstrip())
