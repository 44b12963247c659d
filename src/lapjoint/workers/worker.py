"""Worker: one engine simulating its active bodies. A command comes in, a reply goes out; it knows no transport."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..engines import DirectEngine, EngineState, RoundEngine, make_engine
from ..errors import NotFiniteError, WorkerError
from ..params import Params
from ..scene import Scene
from .messages import StepCommand, StepReply, WorkerFailure
from .worker_memory import MemoryParts

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

UNKNOWN = np.array([-1], np.int32)
"""An overlap that no command can have: at the next step, a worker looks anew which bodies it has alone."""


class Worker:
    """Worker number `index`. `states` is the table of all bodies' states, `worker_states` that of overlap bodies.

    A row of `states` is written by the worker that alone has the body, after its step, and by nobody else until the
    next command; rows of overlap bodies are written by the server alone. So workers share the table without locks.
    """

    def __init__(self, index: int, scene: Scene, params: Params, states: Array, worker_states: Array) -> None:
        self.index = index
        self._engine = make_engine(scene, params, index)
        self._direct = self._engine if isinstance(self._engine, DirectEngine) else None
        self._states = states
        self._worker_states = worker_states
        self._active = np.zeros(scene.body_count, bool)
        self._active_count = 0
        self._overlap = self._own = np.empty(0, np.int32)
        self._prepare_s = 0.0
        self._memory_parts = MemoryParts()
        self._stepped = False
        self._command = StepCommand()
        self._begin_s = self._spent_s = 0.0
        self.down: Array = np.zeros(0)
        self.up: Array = np.zeros(0)

    def set_exchange(self, exchange: Array) -> None:
        """Where messages within a step lie: (2, room), the server's in the first row, this worker's in the second."""
        self.down, self.up = exchange

    @property
    def rounds(self) -> RoundEngine:
        """The engine, if it takes steps in rounds."""
        if not isinstance(self._engine, RoundEngine):
            raise WorkerError(f"worker {self.index}: its engine takes no steps in rounds")
        return self._engine

    @property
    def own_ids(self) -> Ids:
        """Active bodies that no other worker had in the last step."""
        return self._own

    def set_worker_states(self, worker_states: Array) -> None:
        """The table of overlap bodies is another one from now on: there are more workers."""
        self._worker_states = worker_states

    def step(self, command: StepCommand, serve: Callable[[], bool] | None = None) -> StepReply:
        """Do what is told. `serve` has the rounds of a step in rounds taken; false: it is to be abandoned."""
        self._stepped = len(command.memory_part) == 0
        if not self._stepped:
            return self._exchange_memory(command)
        self.begin(command)
        completed = serve() if len(command.in_rounds) and serve is not None else True
        return self.finish(completed)

    def begin(self, command: StepCommand) -> None:
        """The first half of a step, up to the rounds where there are any."""
        start = time.thread_time()
        self._command, self._stepped = command, True
        self._change_members(command)
        if len(command.force_ids):
            self._engine.add_forces(command.force_ids, command.forces[:, :3], command.forces[:, 3:])
        if len(command.iterations):
            self._engine.set_iterations(int(command.iterations[0]))
        if len(command.rounds):
            self.rounds.set_rounds(int(command.rounds[0]))
        if len(command.in_rounds):
            self.rounds.begin_step(command.interface, command.held)
        self._begin_s = self._spent_s = time.thread_time() - start

    def serve(self) -> int:
        """Do what the server asks for in `down`; see RoundEngine.serve."""
        start = time.thread_time()
        signal = self.rounds.serve(self.down, self.up)
        self._spent_s += time.thread_time() - start
        return signal

    def serve_by_socket(self, socket: int, carries: bool = False) -> bool:
        """Do all that the server asks for on a socket. False: the step is to be abandoned."""
        start = time.thread_time()
        completed = self.rounds.serve_by_socket(socket, self.down, self.up, carries)
        self._spent_s += time.thread_time() - start
        return completed

    def finish(self, completed: bool) -> StepReply:
        """The second half. Where the step is abandoned, nothing is written and nothing told."""
        start = time.thread_time()
        engine, command = self._engine, self._command
        if len(command.in_rounds) and not completed:
            self.rounds.abandon_step()
            self._stepped = False
            self._overlap = UNKNOWN  # bodies may have come and gone with the command
            return StepReply()
        if len(command.in_rounds):
            self.rounds.finish_step()
        else:
            engine.step()
        own = self._own_bodies(command)
        engine.get_states(own, out=self._states, rows=own)
        engine.get_states(command.overlap, out=self._worker_states, rows=command.slot)
        contacts = engine.contacts()
        fallbacks = self._direct.fallback_count() if self._direct else 0
        spent = self._spent_s + time.thread_time() - start
        rounds = self.rounds.round_count() if len(command.rounds) else 0
        residual = math.nan if len(command.in_rounds) else engine.residual()  # in rounds, all have one together
        counts = self._active_count, self._prepare_s, fallbacks, rounds, self._begin_s
        measures = np.array([spent, residual, *counts])
        return StepReply(contacts.bodies, contacts.point_count, contacts.depth, measures)

    def _change_members(self, command: StepCommand) -> None:
        engine, states = self._engine, self._states
        if len(command.deactivate):
            engine.deactivate(command.deactivate)
            self._active_count -= len(command.deactivate)
            self._active[command.deactivate] = False
        if len(command.reset):
            engine.set_states(command.reset, states[command.reset])
        if len(command.activate):
            engine.activate(command.activate, states[command.activate])
            self._active[command.activate] = True
            self._active_count += len(command.activate)

    def prepare(self) -> None:
        """While the others still step and the server works: what the next step can do already. Of this worker's
        bodies, only those in the overlap are reset before it."""
        if not self._stepped:
            return
        start = time.thread_time()
        self._engine.prepare(self._overlap)
        self._prepare_s = time.thread_time() - start

    def _exchange_memory(self, command: StepCommand) -> StepReply:
        """Tell a part of what this worker's next step depends on, or take over what another's depended on."""
        if len(command.memory) == 0:
            return self._memory_parts.tell(command.memory_part, lambda: self._recalled(command.recall))
        memory = self._memory_parts.take(command.memory_part, command.memory)
        if memory is not None and len(command.recall):
            self._change_members(command)
            self.rounds.merge_cache(memory)
            self._overlap = UNKNOWN
        elif memory is not None:
            self._engine.restore(memory)
            self._active[:] = False
            self._active[memory.body_ids] = True
            self._active_count = len(memory.body_ids)
            self._overlap = UNKNOWN
        return StepReply()

    def _recalled(self, bodies: Ids) -> EngineState:
        memory = self._engine.state()
        if len(bodies) == 0:
            return memory
        wanted = np.zeros(len(self._active), bool)
        wanted[bodies] = True
        return memory.about(wanted)

    def _own_bodies(self, command: StepCommand) -> Ids:
        """Active bodies that no other worker has."""
        changed = len(command.activate) or len(command.deactivate)
        if changed or not np.array_equal(command.overlap, self._overlap):
            self._overlap = command.overlap
            alone = self._active.copy()
            alone[command.overlap] = False
            self._own = np.flatnonzero(alone).astype(np.int32)
        return self._own


def failure_of(index: int, error: BaseException) -> WorkerFailure:
    """What the server is told of an exception in worker number `index`."""
    if isinstance(error, NotFiniteError):
        return WorkerFailure(index, "not finite", str(error), error.body_ids)
    return WorkerFailure(index, "failed", "".join(traceback.format_exception(error)).rstrip())
