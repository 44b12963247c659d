"""Recovery: a step that all workers take, though some die, hang, fail or answer with numbers that are not finite.

Such a worker is replaced by a fresh one, which is given all its bodies as they were before the step and takes the step
again, without the lost worker's contact cache. docs/failures.md has what is promised.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Membership
from ..arrays.state import PartState
from ..errors import SimulationStopped, WorkerError
from ..params import Params
from ..scene import STATE_SIZE
from ..scene.living import LivingScene
from ..scene.titles import body_titles
from ..step_tables.surges import Surges
from ..workers.messages import Reply, StepCommand, StepReply, WorkerFailure
from ..workers.runtimes import Runtime
from .commands import CommandBuilder
from .coupling.base import ServerWork
from .frozen import Frozen
from .incidents import Incident
from .surges import SurgeReports
from .weights import OverlapWeights

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

NOBODY = np.empty(0, np.int32)
MOST_IN_STEP = 2
"""A worker that fails so often in one step is given up."""
MOST_QUARANTINED = 10
"""With quarantine, one that does so although bodies were frozen."""
MOST, WITHIN = 3, 100
"""So is one that fails so often within so many steps."""
MOST_STEPS = 100
"""That workers take by themselves: so many are lost if one fails."""


@dataclass
class StepPlan:
    """A step that all workers take."""

    step_count: int
    iterations: int
    membership: Membership
    commands: list[StepCommand]
    weights: OverlapWeights
    """Whose rows are the slots of the worker states."""
    work: ServerWork
    """What the server does meanwhile."""
    steps: int = 1
    """How many the workers take by themselves, one after the other. Where one fails, they go back to the first, and
    take that alone."""


class Action(Enum):
    """What is done about a failure."""

    REPLACE = "replace"
    """A fresh worker takes the step again."""
    QUARANTINE = "quarantine"
    """The same, and the bodies that are the cause are frozen first."""
    STOP = "stop"
    """The run ends."""


@dataclass(frozen=True)
class Verdict:
    action: Action
    bodies: tuple[int, ...] = ()
    """Bodies to freeze."""
    why: str = ""
    """Why the run ends."""


class Recovery:
    """Takes the workers' steps. Bodies in quarantine are held by `frozen`; what happens is added to `incidents`."""

    def __init__(
        self,
        scene: LivingScene,
        params: Params,
        runtime: Runtime,
        builder: CommandBuilder,
        frozen: Frozen,
        incidents: list[Incident],
        remove: Callable[[Ids], None],
    ) -> None:
        """`remove` takes bodies out of the scene for good."""
        self.incidents = incidents
        self._remove = remove
        self._scene, self._params = scene, params
        self._runtime, self._builder, self._frozen = runtime, builder, frozen
        self._number = 0  # of the last commands
        self._plan: StepPlan | None = None  # of the last step, and its overlap
        self._overlap: Ids = NOBODY
        self._overlap_before: Array = np.empty((0, STATE_SIZE))
        self._failed_at: dict[int, deque[int]] = {}
        self._put_back_now: dict[int, Array] = {}  # bodies, and their states before the step
        self._removed_now: Ids = NOBODY
        self._quarantined: set[int] = set()
        self._surges, self._surged_now = SurgeReports(scene, params), NOBODY
        self._one_by_one_until = 0

    def most_steps(self, step_count: int) -> int:
        """How many steps the workers may take by themselves: one at a time where they have failed in several."""
        one_by_one = step_count < self._one_by_one_until or self._freezes or self._params.failures.on_surge == "stop"
        return 1 if one_by_one else MOST_STEPS

    @property
    def _freezes(self) -> bool:
        """Whether bodies may have to be put back to where they were before the step."""
        return self._params.failures.quarantine or self._params.failures.on_surge == "quarantine"

    def take_step(self, plan: StepPlan) -> list[StepReply]:
        """The replies of all workers, or SimulationStopped, with the states as they were before the step."""
        self._put_back_now.clear()
        self._removed_now = self._surged_now = NOBODY
        self._plan, self._overlap = plan, plan.weights.bodies
        if self._freezes:
            self._overlap_before = self._runtime.border_states[self._overlap]
        answers = self._step(plan, plan.commands, again=False)
        failures = self._failures(plan, answers)
        times = dict.fromkeys(range(len(answers)), 0)
        while failures:
            began, incident_count = time.perf_counter(), len(self.incidents)
            # A body that is not finite is judged in the step in which it becomes so: which one that is shows in time.
            judged = [failure for failure in failures if plan.steps == 1 or failure.kind != "not finite"]
            verdicts = []
            for failure in judged:
                times[failure.worker] += 1
                verdicts.append(self._judge(plan, failure, times[failure.worker]))
            self._carry_out(verdicts, plan, judged, failures)
            if plan.steps > 1:
                self._one_by_one_until, plan.steps = plan.step_count + plan.steps, 1
            repeated = self._repeat(plan, failures)
            seconds = time.perf_counter() - began
            self.incidents[incident_count:incident_count] = [_incident(plan, failure, seconds) for failure in judged]
            for worker, answer in enumerate(repeated):
                answers[worker] = answers[worker] if answer is None else answer
            failures = self._failures(plan, answers)
        replies = [answer for answer in answers if isinstance(answer, StepReply)]
        if any(reply.tables for reply in replies):
            found = Surges.joined(reply.table(Surges) for reply in replies)
            if len(found):
                self._judge_surges(plan, found.ordered())
        return replies

    def _judge_surges(self, plan: StepPlan, found: Surges) -> None:
        """What to do about energy that came from nowhere."""
        new = self._surges.incidents(found, plan.step_count)
        self.incidents.extend(new)
        bodies = np.setdiff1d(found.body, self._frozen.ids).astype(np.int32)
        if self._params.failures.on_surge == "quarantine":
            self._surged_now = bodies
        if self._params.failures.on_surge == "stop":
            text = f"stopped in step {plan.step_count + 1}: energy from nowhere at {body_titles(self._scene, bodies)}"
            text += self._put_all_back(plan)
            self._report(plan.step_count, "stop", text, bodies)
            raise SimulationStopped("\n".join([text, *(incident.text for incident in new)]), bodies)

    def _step(
        self, plan: StepPlan, commands: Sequence[StepCommand | None], again: bool
    ) -> list[Reply | WorkerFailure | None]:
        self._number += 1
        for command in commands:
            if command is not None:
                command.number = self._number
                command.steps, command.first_step = plan.steps, plan.step_count
        sent = [command for command in commands if command is not None]
        return self._runtime.step(commands, plan.work.begin(sent, again))

    def end_step(self, step_count: int) -> None:
        """After states are merged."""
        if len(self._removed_now):
            self._runtime.states[self._removed_now] = 0.0  # blended once more, if several workers had them
        self._contain_runaways(step_count)
        surged = np.setdiff1d(self._surged_now, self._frozen.ids).astype(np.int32)
        if len(surged):
            self._put_back(surged)
            text = f"{body_titles(self._scene, surged)} frozen: energy from nowhere"
            self._report(step_count, "quarantine", text, surged)

    def _contain_runaways(self, step_count: int) -> None:
        """Freeze bodies that pass the speed limit where they were before the step."""
        limit = self._params.failures.speed_limit
        if not self._params.failures.quarantine or limit is None:
            return
        velocity = self._runtime.states[:, 7:10]
        speed = np.sqrt(np.einsum("ij,ij->i", velocity, velocity))
        fast = np.setdiff1d(np.flatnonzero(speed > limit), self._frozen.ids).astype(np.int32)
        if len(fast):
            self._put_back(fast)
            why = f"{speed[fast].max():.3g} m/s passes the speed limit, {limit:.3g} m/s"
            self._report(step_count, "quarantine", f"{body_titles(self._scene, fast)} frozen: {why}", fast)

    # ---- the states before the step ----------------------------------------------------------------------------------

    def _own(self, worker: int) -> Ids:
        """Bodies whose rows this worker writes."""
        assert self._plan is not None
        own = self._plan.membership.column(worker)
        own[self._overlap] = False
        return np.flatnonzero(own).astype(np.int32)

    def _before(self, bodies: Ids) -> Array:
        """States of these bodies before the step, which may be over."""
        assert self._plan is not None
        states = self._runtime.border_states[bodies]
        for worker in range(len(self._plan.commands)):
            own = np.flatnonzero(self._plan.membership.column(worker)[bodies])
            if len(own):
                states[own] = self._runtime.states_before(worker, bodies[own])
        if len(self._overlap):
            place = np.minimum(np.searchsorted(self._overlap, bodies), len(self._overlap) - 1)
            shared = self._overlap[place] == bodies
            states[shared] = self._overlap_before[place[shared]]
        return states

    def _go_back(self, workers: Iterable[int]) -> None:
        """Put the rows of these workers' own bodies back."""
        for worker in workers:
            self._runtime.go_back(worker, self._own(worker))

    # ---- who failed ------------------------------------------------------------------------------------------------

    def _failures(self, plan: StepPlan, answers: Sequence[Reply | WorkerFailure | None]) -> list[WorkerFailure]:
        """Workers that have no reply. One whose states are not finite has none."""
        found = {answer.worker: answer for answer in answers if isinstance(answer, WorkerFailure)}
        if not found:
            found = {failure.worker: failure for failure in plan.work.failures()}
        return [found[worker] for worker in sorted(found)]

    def _judge(self, plan: StepPlan, failure: WorkerFailure, times: int) -> Verdict:
        """What to do about a worker that fails for the `times`-th time in this step."""
        failed_at = self._failed_at.setdefault(failure.worker, deque(maxlen=MOST))
        failed_at.append(plan.step_count)
        often = len(failed_at) == MOST and plan.step_count - failed_at[0] < WITHIN
        if self._params.failures.on_failure == "stop":
            return Verdict(Action.STOP)
        if times < MOST_IN_STEP and not often:
            return Verdict(Action.REPLACE)
        fresh = tuple(body for body in failure.body_ids if self._scene.alive[body])
        if self._params.failures.quarantine and fresh and times < MOST_QUARANTINED:
            return Verdict(Action.QUARANTINE, fresh)
        again = f"{times} times in this step" if times >= MOST_IN_STEP else f"{MOST} times within {WITHIN} steps"
        return Verdict(Action.STOP, why=f" {again}")

    # ---- what is done about it -------------------------------------------------------------------------------------

    def _carry_out(
        self,
        verdicts: Sequence[Verdict],
        plan: StepPlan,
        judged: Sequence[WorkerFailure],
        together: Sequence[WorkerFailure],
    ) -> None:
        """Freeze bodies or end the run, where that is the verdict. `together` are all failures of the same moment:
        several workers that have the same body name it at once."""
        for verdict, failure in zip(verdicts, judged, strict=True):
            if verdict.action is Action.STOP:
                self._stop(plan, failure, together, verdict.why)
        bodies = sorted({body for verdict in verdicts for body in verdict.bodies})
        if bodies:
            self._quarantine(plan, np.array(bodies, np.int32))

    def _repeat(self, plan: StepPlan, failures: Sequence[WorkerFailure]) -> Sequence[Reply | WorkerFailure | None]:
        """The step once more, for fresh workers in place of these. Rows that a worker may have half written are put
        back; the others' stay, for they have taken the step, unless all repeat it, from the states before. These forget
        what it has left in their contact caches, which depends on how far each came."""
        commands: list[StepCommand | None] = [None] * len(plan.commands)
        frozen = np.array(sorted(self._put_back_now), np.int32)
        held = self._runtime.border_states[frozen]
        lost = [failure.worker for failure in failures]
        try:
            self._go_back(range(len(commands)) if plan.work.repeats_all else lost)
        except WorkerError:
            self._stop(plan, failures[0], failures, "")
        self._runtime.border_states[frozen] = held
        for failure in failures:
            worker = failure.worker
            try:
                self._runtime.replace(worker)
            except WorkerError as error:
                self._stop(plan, failure, failures, f", and no other can be started ({error})")
            commands[worker] = self._builder.rebuild(plan.membership, plan.commands[worker], worker, plan.iterations)
        if plan.work.repeats_all:
            for worker, command in enumerate(plan.commands):
                if commands[worker] is None:
                    again = self._builder.repeat(plan.membership, command, worker)
                    commands[worker] = replace(again, forgets=True)
        return self._step(plan, commands, again=True)

    def _quarantine(self, plan: StepPlan, bodies: Ids) -> None:
        """Freeze bodies, without forces; those that are frozen already leave the engines."""
        known = np.array([body in self._quarantined for body in bodies.tolist()])
        self._put_back(bodies)
        slot_body = plan.weights.rows
        slots = np.flatnonzero(np.isin(slot_body, bodies))
        self._runtime.worker_states[slots] = self._runtime.states[slot_body[slots]]
        if known.all():
            self._remove(bodies)
            self._removed_now = np.union1d(self._removed_now, bodies)
        for worker, command in enumerate(plan.commands):
            kept = ~np.isin(command.force_ids, bodies)
            plan.commands[worker] = replace(command, force_ids=command.force_ids[kept], forces=command.forces[kept])
        if (~known).any():
            new = bodies[~known]
            self._report(plan.step_count, "quarantine", f"{body_titles(self._scene, new)} frozen: not finite", new)
            return
        text = f"{body_titles(self._scene, bodies)} taken out of all workers: not finite though frozen"
        self._report(plan.step_count, "removed", text, bodies)

    def _put_back(self, bodies: Ids) -> None:
        before = self._before(bodies)
        self._runtime.states[bodies] = before
        self._frozen.hold(bodies.tolist(), self._runtime.states)
        self._frozen.put_back(self._runtime, self._builder)
        self._quarantined.update(bodies.tolist())
        self._put_back_now = dict(zip(bodies.tolist(), before, strict=True)) | self._put_back_now

    def _stop(self, plan: StepPlan, failure: WorkerFailure, together: Sequence[WorkerFailure], why: str) -> None:
        """End the run, with the states and forces before the step, as far as somebody has them. What is not finite may
        have reached several workers in the same step: all such bodies are named."""
        missing = self._put_all_back(plan)
        bodies = plan.membership.active(failure.worker)
        if failure.body_ids:
            bodies = np.unique(np.concatenate([other.body_ids for other in together])).astype(np.int32)
        self.incidents.append(_incident(plan, failure, 0.0))
        text = (
            f"stopped in step {plan.step_count + 1}: worker {failure.worker} failed{why}; "
            f"bodies concerned: {body_titles(self._scene, bodies)}{missing}"
        )
        self._report(plan.step_count, "stop", text, bodies)
        raise SimulationStopped(f"{text}\n{failure.title}", bodies)

    def _put_all_back(self, plan: StepPlan) -> str:
        """States and forces as they were before the step; returns what of them nobody has."""
        missing = ""
        for worker in range(len(plan.commands)):
            try:
                self._go_back([worker])
            except WorkerError as error:
                missing += f"; {error}"
        for body, row in self._put_back_now.items():
            if self._scene.alive[body]:
                self._runtime.border_states[body] = row
        for command in plan.commands:
            self._builder.forces.update(zip(command.force_ids.tolist(), command.forces, strict=True))
        return missing

    def state(self) -> PartState:
        failed_at = [[worker, list(steps)] for worker, steps in self._failed_at.items()]
        bodies = {"quarantined": sorted(self._quarantined), "surged": sorted(self._surges.named)}
        return PartState(values={"failed_at": failed_at, **bodies})

    def restore(self, state: PartState) -> None:
        self.restore_without_workers(state)
        for worker, steps in state.values["failed_at"]:
            self._failed_at[worker] = deque(steps, MOST)

    def restore_without_workers(self, state: PartState) -> None:
        """Restore what does not depend on the number of workers."""
        self._quarantined = set(state.values["quarantined"])
        self._surges.named = set(state.values["surged"])

    def _report(self, step_count: int, kind: str, text: str, bodies: Ids) -> None:
        self.incidents.append(Incident(step_count, kind, text, body_ids=tuple(bodies.tolist())))


def _incident(plan: StepPlan, failure: WorkerFailure, seconds: float) -> Incident:
    fate = "; replaced, the step is repeated" if seconds else ""
    return Incident(plan.step_count, failure.kind, failure.summary + fate, failure.worker, failure.body_ids, seconds)
