"""Simulation: the server. It holds the whole scene, decides who simulates what, and makes one result of many."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays.pages import trim
from .arrays.state import PartState
from .errors import LapjointError, SimulationStopped
from .facets import (
    SimulationBodies,
    SimulationContacts,
    SimulationEvents,
    SimulationJoints,
    SimulationKinematic,
    SimulationQueries,
    SimulationWorkers,
)
from .forks import belongs_here
from .interrupts import Uninterrupted
from .params import Params
from .scene import Scene
from .scene.content import checked_ids
from .scene.living import Life, LivingScene
from .scene.measures import state_hash
from .scene.serialize import scene_at
from .scene.states import checked_states
from .server.core import Core
from .server.coupling import Decision
from .server.frame import Frame
from .server.incidents import Incident
from .server.migrate import migrate
from .server.profile import StepProfile
from .server.recovery import StepPlan
from .server.reported import keep_reported
from .server.saved_state import parts_of, restore
from .server.scene_changes import note_placed
from .server.start import start
from .server.steps_at_once import most_steps, wants_contacts
from .server.worker_changes import follow_load, follow_placed, set_workers
from .system.shortage import MAY_BE_SHORT, raise_in_words, short_of
from .whole import Use, alone, whole
from .workers.messages import StepReply

Array = NDArray[np.float64]


class Simulation:
    """A scene in motion on one worker or many.

    >>> with Simulation(scene, Params(workers=4)) as simulation:
    ...     for frame in simulation.frames(steps=500, every=10):
    ...         print(frame.time, frame.states[:, 2].min())

    Methods are grouped by what they are about: `bodies`, `joints`, `contacts`, `queries`, `kinematic`, `events` and
    `workers`.
    """

    _prefix = ""

    def __init__(self, scene: Scene, params: Params | None = None, *, life: Life | None = None) -> None:
        """Begin with the scene. `life` is for one that has been in motion already: `restore` follows."""
        if not isinstance(scene, Scene):
            hint = f": scenes.build({scene!r}) makes one" if isinstance(scene, str) else ""
            raise LapjointError(f"Simulation: scene is {scene!r}, expected a Scene{hint}")
        self._core = core = Core(params or Params())
        self.bodies = SimulationBodies(core)
        """Bodies are added, removed, pushed and held."""
        self.joints = SimulationJoints(core)
        """Joints are added, removed, read and driven."""
        self.contacts = SimulationContacts(core)
        """Contacts of the last step."""
        self.queries = SimulationQueries(core)
        """Rays, overlaps, closest points, sensors."""
        self.kinematic = SimulationKinematic(core)
        """Kinematic bodies."""
        self.events = SimulationEvents(core)
        """What has happened so far."""
        self.workers = SimulationWorkers(core)
        """Who simulates what, and how many workers there are."""
        self.incidents: list[Incident] = core.incidents
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
        try:
            with short_of("the simulation cannot be started"):
                start(core, scene, life)
            with Uninterrupted():
                scene.locks.add("a simulation of it is running")
                core.lock(scene.locks.take_back)
        except BaseException:
            if hasattr(core, "runtime"):
                core.runtime.close()
            raise
        belongs_here(self, "the simulation", lambda _: None)

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
        if self._core.stopped is not None:
            raise self._core.stopped
        with Uninterrupted():
            try:
                steps = self._take_steps(most)
            except BaseException as error:
                if self._core.stopped is None:
                    self._core.use.broken_off = "step"
                if isinstance(error, MAY_BE_SHORT):
                    raise_in_words(error, f"step {self._core.now.step_count}")
                raise
            for body in self._core.glued.taken_struck():
                self.bodies.take_apart(body)
            for callback in self._callbacks:
                callback(self)
        return steps

    def _take_steps(self, most: int) -> int:
        """The workers' next command, and what comes before and after it."""
        now, coupling, runtime = self._core.now, self._core.coupling, self._core.runtime
        profile = self._core.new_profile()
        began = time.thread_time()
        if now.membership.worker_count > 1:
            follow_placed(self._core)
            self._carry_out(coupling.decide(now, runtime, profile))  # lines 7 to 15
        if self._core.sensing.is_used:
            self._core.sensing.begin_step()
        with profile.phase("step"):  # lines 16 and 17
            profile.steps = self._step_workers(most_steps(self._core, most, is_watched=bool(self._callbacks)))
        coupling.merge(now, runtime, profile)  # lines 18 to 20
        keep_reported(self._core)
        self._core.frozen.put_back(runtime, now.commands)
        if self._core.sensing.is_used:
            self._core.sensing.end_step(profile.steps)
        self._core.recovery.end_step(now.step_count)
        profile.server_ms += 1e3 * (time.thread_time() - began - runtime.wait_cpu_s)
        profile.divide_times()
        self._core.last_step_ms = profile.step_ms
        now.loads.measure(profile.worker_cpu_ms, profile.steps)
        now.step_count += profile.steps
        if not self._core.has_stepped:
            self._core.has_stepped = True
            trim()  # of the first decision: 120 bytes of a body
        if self._core.elastic.is_time_to_look(now.step_count):
            follow_load(self._core)
        return profile.steps

    def _carry_out(self, decision: Decision) -> None:
        """Have the workers do what was decided on, as far as it does not go with the step's commands."""
        now, profile = self._core.now, self.profile
        if decision.migration is not None:
            with profile.phase("balance"):
                counts = migrate(decision.migration, now.membership, now.commands, self._core.runtime)
                profile.activation_count, profile.deactivation_count = counts
        if decision.worker_count != now.params.workers:
            with profile.phase("balance"):
                set_workers(self._core, decision.worker_count)

    def _step_workers(self, steps: int) -> int:
        """Every worker takes steps, in parallel; the barrier is the runtime's return. Returns how many were taken: one,
        where a worker has failed."""
        now, profile, coupling = self._core.now, self.profile, self._core.coupling
        if now.params.validate:
            now.commands.validate(now.membership)
        commands, weights = coupling.commands(now), coupling.weights
        profile.activation_count += sum(len(command.activate) for command in commands)
        profile.deactivation_count += sum(len(command.deactivate) for command in commands)
        sends_contacts = wants_contacts(self._core, steps, self.contacts_wanted)
        for command in commands:
            command.contacts = sends_contacts
        work = coupling.server_work(now, self._core.runtime)
        iterations = now.params.sequential.iterations or 1
        plan = StepPlan(now.step_count, iterations, now.membership, commands, weights, work, steps)
        try:
            now.replies = self._core.recovery.take_step(plan)
        except SimulationStopped as error:
            self._core.stopped = error
            now.commands.known = np.zeros_like(now.commands.known)  # whoever goes on from here starts from the states
            for hook in self.before_stop:
                try:
                    hook(self)
                except LapjointError as own:
                    error.add_note(str(own))
            raise
        if sends_contacts:
            self._core.fetch_contacts(now.replies)  # where they were too many for a reply
        bits, count = now.commands.known, now.commands.known_count
        if not now.commands.knows(now.membership):  # bodies have left within the step
            bits, count = now.membership.bits.copy(), now.scene.living_count
        profile.count_workers(commands, now.replies, bits, count)
        profile.sent_bytes = self._core.runtime.byte_count
        return plan.steps

    # ---- what it is now --------------------------------------------------------------------------------------------

    @property
    def scene(self) -> LivingScene:
        """The scene with all that was added to it since it began."""
        return self._core.scene

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which bodies are there, by number; a view that cannot be written to."""
        return self.scene.alive

    @property
    def params(self) -> Params:
        """As they are now, with everything filled in that the scene decides."""
        return self._core.params

    @property
    def step_count(self) -> int:
        """Steps so far."""
        return self._core.now.step_count

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
        states = np.array(self._core.states("states"))
        states.flags.writeable = False
        return states

    def states_of(self, body_ids: ArrayLike) -> Array:
        """States of these bodies now, (number of bodies, 13): less to copy than those of all."""
        return np.array(self._core.states("states_of")[checked_ids(self.scene, body_ids, "states_of")])

    @whole
    def set_states(self, body_ids: ArrayLike, states: ArrayLike) -> None:
        """Set positions and velocities of bodies, in all their workers, before the next step. Where many are put
        elsewhere, the scene is repartitioned in it."""
        ids = checked_ids(self.scene, body_ids, "set_states")
        table, after = self._core.runtime.states, checked_states(self.scene, ids, states, "set_states")
        apart = np.linalg.norm(after[:, :3] - table[ids, :3], axis=1)
        table[ids] = after
        self._core.now.commands.set_from_table(ids)
        note_placed(self._core, ids[apart > (self.params.units.length or 1.0)])

    @property
    def state_hash(self) -> str:
        """Sixteen hexadecimal digits that change with any bit of any state."""
        return state_hash(self.states)

    @property
    def is_stopped(self) -> bool:
        """Whether a failure has ended the run; states are those before the step that could not be taken."""
        return self._core.stopped is not None

    @property
    def profile(self) -> StepProfile:
        """Of the last step; where workers took several by themselves, times are the means of these."""
        return self._core.profile

    @property
    def replies(self) -> list[StepReply]:
        """What each worker reported of the last step; contacts only where they were needed, or have been asked for."""
        return list(self._core.now.replies)

    # ---- from start to end -----------------------------------------------------------------------------------------

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

    @whole
    def state(self) -> dict[str, PartState]:
        """All that decides how the simulation goes on, by part, between two steps. Nothing changes."""
        if not self.is_stopped:  # workers that have stopped have contacts of the step that failed, if any
            self._core.fetch_contacts(self._core.now.replies)
        return {name: part.state() for name, part in parts_of(self._core).items()}

    @whole
    def restore(self, parts: Mapping[str, PartState], before: Params) -> None:
        """Go on from the state of a simulation of the same scene that had the parameters `before`. With as many
        workers, bit for bit as that one; with another number the scene is repartitioned."""
        restore(self._core, parts, before)

    @whole
    def restart(self) -> None:
        """Begin again from the scene's start with the parameters given at first, on new workers: bit for bit as a new
        simulation. Callbacks and incidents stay."""
        self._core.runtime.close()
        try:
            start(self._core, scene_at(Scene, self.scene, self.scene.began_with))
        except BaseException:
            self.close()
            raise
        self._core.use.broken_off = self.resumed_from = None

    def close(self) -> None:
        """End the workers. The simulation cannot go on."""
        if not self._core.is_closed:
            self._close()

    @whole
    def _close(self) -> None:
        self._core.is_closed = True
        self._core.unlock_scene()
        for hook in self.at_close:
            hook()
        self._core.runtime.close()

    @property
    def _use(self) -> Use:
        return self._core.use

    def _check_open(self, what: str) -> None:
        self._core.check_open(what)

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
