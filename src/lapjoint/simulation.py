"""Simulation: the server. It holds the whole scene, decides who simulates what, and makes one result of many."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .algorithms import Membership, load_algorithms
from .algorithms.graph import Graph
from .algorithms.membership import validate_weights
from .arrays.checks import as_rows
from .engines import Contacts, check_engines
from .errors import LapjointError, SimulationStopped, WorkerError
from .params import Params
from .scene import STATE_SIZE, WORLD, Scene
from .scene.measures import joint_gaps, state_hash
from .server.commands import CommandBuilder, checked_bodies, count_bytes
from .server.coupling.balancing import Balancing
from .server.coupling.ownership import Ownership
from .server.coupling.tight import TightCoupling
from .server.detect import make_detector, merge_contacts, warn_of_penetration
from .server.division import Division
from .server.elastic import Elastic
from .server.events import Event
from .server.frame import Frame
from .server.loads import Loads
from .server.partition import make_partition
from .server.profile import StepProfile
from .server.recovery import Recovery, Turn
from .workers.messages import StepReply
from .workers.runtimes import make_runtime

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


class Simulation:
    """A scene in motion on one worker or many.

    >>> with Simulation(scene, Params(workers=4)) as simulation:
    ...     for frame in simulation.frames(steps=500, every=10):
    ...         print(frame.time, frame.states[:, 2].min())
    """

    def __init__(self, scene: Scene, params: Params | None = None) -> None:
        self.scene, self._given = scene, params
        self.params = params = (params or Params()).resolved(scene)
        assert params.timestep is not None
        assert params.growth_depth is not None
        assert params.search_depth is not None
        self.timestep, self.growth_depth, self.search_depth = params.timestep, params.growth_depth, params.search_depth
        self.step_count = 0
        self.profile = StepProfile()
        """Of the last step."""
        self._algorithms = load_algorithms(params.algorithms)
        self._callbacks: list[Callable[[Simulation], None]] = []
        inner = scene.joints.body_b != WORLD
        self._joint_edges = np.stack([scene.joints.body_a[inner], scene.joints.body_b[inner]], axis=1)
        self._jointed = np.zeros(scene.body_count, bool)
        self._jointed[self._joint_edges] = True
        partition = make_partition(scene, params.workers, params.partition, params.solver_labels)
        self.params = params = params.with_solvers(scene, partition)
        check_engines(scene, params)
        self.membership = Membership(partition, params.workers)
        self.graph: Graph = self._algorithms.Graph(scene.body_count, self._joint_edges)
        self._tight = TightCoupling(scene, params, self.membership) if params.coupling == "tight" else None
        if self._tight is None:
            self._algorithms.assign_overlap(self.growth_depth, self.graph, self.membership)  # Alg. 1 line 2
        self._detector, contacts = make_detector(scene, params, self._algorithms.PairFinder)
        warn_of_penetration(scene, contacts)
        self.replies = [StepReply(contacts.bodies, contacts.point_count, contacts.depth)]
        """What each worker said of the last step."""
        self._commands = CommandBuilder(scene.body_count, params.workers, self._algorithms.command_lists)
        self._loads = Loads(scene, params)
        self._elastic = Elastic(params, scene.body_count)
        self._division = Division(scene, params.workers)
        self._loads.divided(self.membership, 0)
        self._settled = self._same_contacts = False
        self._frozen: dict[int, Array] = {}
        self._weigh()
        self._closed = False
        self.resumed_from: dict[str, str | int] | None = None
        """Checkpoint and step that the simulation goes on from, if it does not start with the scene."""
        self._runtime = make_runtime(scene, params, params.workers)
        self._runtime.states[:] = scene.states
        self._balancing: Balancing | Ownership
        if self._tight is None:
            self._balancing = Balancing(self._algorithms, self._runtime, self._detector, self._division, self._jointed)
        else:
            self._balancing = Ownership(self._tight, self._runtime, self._commands, self._detector, self._division)
        self._recovery = Recovery(scene, params, self._runtime, self._commands, self.freeze)
        self.events: list[Event] = self._recovery.events
        """Failures, quarantines and changes of the number of workers so far."""
        self.before_stop: list[Callable[[Simulation], object]] = []
        """Called when a run has to stop, while states are those before the step that could not be taken."""
        self._stopped: SimulationStopped | None = None

    # ---- Algorithm 1 ---------------------------------------------------------------------------------------------

    def step(self, count: int = 1) -> None:
        """Go on by `count` timesteps."""
        for _ in range(count):
            self._open()
            if self._stopped is not None:
                raise self._stopped
            self.profile = profile = StepProfile()
            start = time.thread_time()
            with profile.phase("reset"):
                self._reset()
            if self.membership.worker_count > 1:
                with profile.phase("detect"):
                    self._detect()
                with profile.phase("balance"):
                    self._balance()
                with profile.phase("weigh"):
                    self._weigh()
            with profile.phase("step"):
                replies = self._step_workers()
            with profile.phase("blend"):
                self._blend()
            self._hold_frozen()
            self._recovery.contain_runaways(self.step_count, self.frozen_ids)
            self._count(replies)
            profile.server_ms += 1e3 * (time.thread_time() - start - self._runtime.wait_cpu_s)
            self.step_count += 1
            self._follow_load()
            for callback in self._callbacks:
                callback(self)

    def _reset(self) -> None:
        """Lines 7 to 9: overlap bodies start from their blended states in every worker."""
        self._commands.reset(self.overlap)

    def _detect(self) -> None:
        """Lines 10 and 11: contacts of the present states, and the constraint graph they make with the joints."""
        runtime = self._runtime
        states = runtime.border_states if self.params.detect == "workers" else runtime.states
        self._set_contacts(self._detector.find(states, self.membership, self.replies))

    def _set_contacts(self, contacts: list[Ids]) -> None:
        graph = self._algorithms.Graph(self.scene.body_count, self._joint_edges, contacts)
        self._same_contacts = np.array_equal(graph.contacts, self.graph.contacts)
        if not self._same_contacts:
            self.graph = graph

    def _balance(self) -> None:
        """Line 12: Algorithms 6 and 7; with tight coupling, owners in place of overlap."""
        # Where the last step changed nothing and contacts are as they were, it would change nothing again.
        self._settled = self._settled and self._same_contacts and not self.membership.must_wait.any()
        self._settled = self._settled and np.array_equal(self.membership.bits, self._commands.known)
        if self._settled and self._tight is None and not self._loads.is_time_to_look(self.step_count):
            return
        self._settled = False
        self._loads.weigh(self.membership, self.replies, self.params.iterations or 1, self.step_count)
        members = self.membership, self.graph, self._loads, self.params, self.profile, self.step_count
        self._set_workers(self._balancing.keep(*members))

    def _weigh(self) -> None:
        """Lines 13 to 15: Algorithm 5."""
        if self._settled:
            return
        self.overlap = self.membership.overlap()
        kind, depth = self.params.weights, self.search_depth
        weigh = self._algorithms.depth_weights if kind == "depth" else self._algorithms.compute_weights
        self.weight_offset, self.weight_worker, self.weight = weigh(
            0 if kind == "equal" else depth, self.graph, self.membership, self.overlap
        )
        if self.params.validate:
            validate_weights(self.weight_offset, self.weight)

    def _step_workers(self) -> list[StepReply]:
        """Lines 16 and 17: every worker takes a step, in parallel; the barrier is the runtime's return."""
        commands = self._commands.build(self.membership, self.overlap, self.weight_offset, self.weight_worker)
        self.profile.activation_count += sum(len(command.activate) for command in commands)
        self.profile.deactivation_count += sum(len(command.deactivate) for command in commands)
        self._settled = self.profile.activation_count + self.profile.deactivation_count == 0
        self._told = commands
        meanwhile = partial(self._detector.prepare, self.membership) if len(commands) > 1 else None
        rounds = None
        if self._tight is not None:
            rounds = self._tight.rounds_of(commands, self.params, self._runtime, meanwhile)
        bodies = np.repeat(self.overlap, np.diff(self.weight_offset))
        parts = self.membership, commands, bodies, self.weight_worker, meanwhile, rounds
        turn = Turn(self.step_count, self.params.iterations or 1, *parts)
        try:
            return self._recovery.take_step(turn)
        except SimulationStopped as error:
            self._stopped = error
            for hook in self.before_stop:
                try:
                    hook(self)
                except LapjointError as own:
                    error.add_note(str(own))
            raise

    def _blend(self) -> None:
        """Lines 18 to 20: Algorithm 4."""
        if len(self.overlap):
            self._algorithms.blend(
                self.weight_offset, self.weight, self._runtime.worker_states, self.overlap, self._runtime.border_states
            )

    def _hold_frozen(self) -> None:
        if self._frozen:
            self.set_states(list(self._frozen), np.array(list(self._frozen.values())))

    def _count(self, replies: list[StepReply]) -> None:
        profile, self.replies = self.profile, replies
        profile.find_contacts = partial(merge_contacts, replies, self._commands.known)
        profile.count_bytes = partial(count_bytes, self._told, replies)
        profile.count_workers(replies)
        profile.overlap_count = len(self.overlap)
        if self._tight is not None:
            self._tight.count(profile, replies, self._commands.known)
        self._loads.measure(profile.worker_cpu_ms)

    # ---- what a user reads and does --------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Simulated seconds so far."""
        return self.step_count * self.timestep

    @property
    def states(self) -> Array:
        """States of all bodies now, (body_count, 13), a copy."""
        self._open()
        return np.array(self._runtime.states)

    @property
    def state_hash(self) -> str:
        """Sixteen hexadecimal digits that change with any bit of any state."""
        return state_hash(self.states)

    @property
    def is_stopped(self) -> bool:
        """Whether a failure has ended the run; states are those before the step that could not be taken."""
        return self._stopped is not None

    def contacts(self) -> Contacts:
        """Contacts of the last step, as it began."""
        return self.profile.contacts

    def joint_gaps(self) -> Array:
        """Gap of every joint now [m]."""
        return joint_gaps(self.scene, self.states)

    def weights(self) -> Array:
        """How much each worker has to say about each body, (body_count, workers); rows sum to one."""
        count = self.membership.worker_count
        table = np.stack([self.membership.column(w) for w in range(count)], axis=1).astype(float)
        rows = np.repeat(self.overlap, np.diff(self.weight_offset))
        table[rows, self.weight_worker] = self.weight
        return table

    @property
    def interface(self) -> Ids:
        """With tight coupling: bodies that have, or lately had, constraints with bodies of other workers; a copy."""
        if self._tight is None or self.membership.worker_count == 1:
            return np.empty(0, np.int32)
        return self._tight.interface.copy()

    def add_forces(self, body_ids: ArrayLike, forces: ArrayLike, torques: ArrayLike | None = None) -> None:
        """External forces [N] and torques [N m] on bodies, for the next step only, whichever workers have them."""
        self._commands.add_forces(self.scene, body_ids, forces, torques)

    @property
    def forces(self) -> dict[int, Array]:
        """Force and torque that the next step has for each body with any."""
        return dict(self._commands.forces)

    @property
    def worker_states(self) -> Array:
        """States of the overlap bodies in each of their workers after the last step, as `weight_worker` lists them."""
        return np.array(self._runtime.worker_states[: len(self.weight_worker)])

    def set_states(self, body_ids: ArrayLike, states: ArrayLike) -> None:
        """Put bodies elsewhere, or give them other velocities, in all their workers, before the next step."""
        self._open()
        ids = checked_bodies(self.scene, body_ids, "set_states")
        self._runtime.states[ids] = as_rows("state", states, len(ids), (STATE_SIZE,), "set_states")
        self._commands.move(ids)

    def freeze(self, body_ids: ArrayLike) -> None:
        """Hold bodies where they are: after every step they are put back there, at rest."""
        for body in checked_bodies(self.scene, body_ids, "freeze").tolist():
            self._frozen[body] = np.concatenate([self._runtime.states[body, :7], np.zeros(6)])
        self._hold_frozen()

    def release(self, body_ids: ArrayLike) -> None:
        """Let frozen bodies go."""
        for body in checked_bodies(self.scene, body_ids, "release").tolist():
            self._frozen.pop(body, None)

    @property
    def frozen_ids(self) -> Ids:
        """Bodies that are held, ascending."""
        return np.array(sorted(self._frozen), np.int32)

    def set_growth_depth(self, growth_depth: int) -> None:
        """How far overlap grows, from the next step on: a body's heaviest worker keeps it, and overlap grows anew."""
        if self._tight is not None:
            raise LapjointError("set_growth_depth: coupling is tight, in which nothing overlaps, expected blend")
        self.params = replace(self.params, growth_depth=growth_depth)  # refuses what is no depth
        self.growth_depth = growth_depth
        if self.membership.worker_count > 1:
            heaviest = np.argmax(self.weights()[:, : self._division.worker_count], axis=1)
            self._division.ask(heaviest.astype(np.int32))
            self._settled = False

    def repartition(self, partition: ArrayLike) -> None:
        """Let every body migrate to the worker that `partition` names for it, in the next step; every worker must have
        a body. Balancing goes on from there: `Params(repartition=0)` keeps the partition."""
        self._open()
        wanted, count = np.asarray(partition), self._division.worker_count
        if wanted.shape != (self.scene.body_count,) or wanted.dtype.kind not in "iu":
            raise LapjointError(
                f"repartition: an array of {wanted.dtype} with shape {wanted.shape}, expected the number of a worker "
                f"for each of {self.scene.body_count} bodies"
            )
        wrong = np.flatnonzero((wanted < 0) | (wanted >= count))
        if len(wrong):
            title, worker = self.scene.body_title(int(wrong[0])), wanted[wrong[0]]
            raise LapjointError(f"repartition: {title} goes to worker {worker}, expected 0 to {count - 1}")
        empty = np.setdiff1d(np.arange(count), wanted)
        if len(empty) and len(wanted):
            raise LapjointError(f"repartition: worker {empty[0]} gets no body, expected at least one for each worker")
        if self.membership.worker_count > 1:
            self._division.ask(wanted.astype(np.int32))
            self._settled = False

    def restart(self) -> None:
        """Begin again from the scene's start with the params given at first, on new workers: states become bit for bit
        those of a new simulation. Callbacks and the list of events stay."""
        self._open()
        callbacks, hooks, events, partition = self._callbacks, self.before_stop, self.events, self.params.partition
        self.close()
        Simulation.__init__(self, self.scene, self._given)
        self.params = replace(self.params, partition=partition)
        self._callbacks, self.before_stop = callbacks, hooks
        self.events[:0] = events

    def set_load(self, load: str) -> None:
        """What balancing evens out, from the next step on."""
        self.params = replace(self.params, load=load)  # refuses what is none
        self._loads = Loads(self.scene, self.params)
        self.membership.set_costs(1)
        share = None if self._tight is None else self._tight.cut_share
        self._loads.divided(self.membership, self.step_count, share)
        self._settled = False

    def set_worker_count(self, worker_count: int) -> None:
        """More or fewer workers: the scene is divided among them in the next step. No state jumps, for bodies are in
        their old workers and in the new ones for that step; workers that are not needed end after it."""
        self._open()
        self.params.check_worker_count(worker_count)
        if worker_count > max(self.scene.body_count, 1):
            raise LapjointError(f"{worker_count} workers for {self.scene.body_count} bodies: expected one per body")
        self._set_workers(max(worker_count, self.membership.worker_count))
        self._division.worker_count = worker_count
        self._settled = False

    def _set_workers(self, worker_count: int) -> None:
        """Start or end workers without bodies."""
        if worker_count != self.params.workers:
            text = f"workers: {worker_count}, before {self.params.workers}"
            self._runtime.set_worker_count(worker_count)
            self._commands.set_worker_count(worker_count)
            self.params = replace(self.params, workers=worker_count)
            self.events.append(Event(self.step_count, "workers", text))
        if worker_count != self.membership.worker_count:
            self.membership.set_worker_count(worker_count)

    def _follow_load(self) -> None:
        """With `max_workers`, as many workers as the load is worth."""
        if self._elastic.is_time_to_look(self.step_count):
            self._loads.weigh(self.membership, self.replies, self.params.iterations or 1, self.step_count)
            wanted = self._elastic.wanted(self._division.worker_count, self._loads.step_ms(self.membership))
            try:
                self.set_worker_count(wanted)
            except WorkerError as error:
                self._elastic.most = self._division.worker_count
                self.events.append(Event(self.step_count, "workers", f"no more workers can be started: {error}"))

    def set_iterations(self, iterations: int) -> None:
        """Sweeps of the solver per step, from the next step on."""
        self.params = replace(self.params, iterations=iterations)  # refuses what is no count
        self._commands.set_iterations(iterations)

    def set_rounds(self, rounds: int) -> None:
        """Rounds of a tight step, at most, from the next step on."""
        if self._tight is None:
            raise LapjointError(f"set_rounds: coupling is {self.params.coupling}, expected tight")
        self.params = replace(self.params, rounds=rounds)  # refuses what is no count

    def on_step(self, callback: Callable[[Simulation], None]) -> None:
        """Call `callback(simulation)` after every step."""
        self._callbacks.append(callback)

    def frames(self, steps: int, every: int = 1) -> Iterator[Frame]:
        """Take `steps` steps and yield a frame after every `every`-th."""
        if steps < 0 or every < 1:
            raise LapjointError(f"frames: steps is {steps} and every is {every}, expected 0 or more and 1 or more")
        for done in range(1, steps + 1):
            self.step()
            if done % every == 0:
                yield Frame(self.step_count, self.time, self.states)

    def close(self) -> None:
        """End the workers. The simulation cannot go on."""
        if not self._closed:
            self._closed = True
            self._runtime.close()

    def _open(self) -> None:
        if self._closed:
            raise LapjointError("the simulation is closed")

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
