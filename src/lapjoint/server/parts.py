"""Parts of a simulation that are not classes of their own, as Stateful ones: a checkpoint is the collection of all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays.state import PartState
from ..engines import Contacts
from ..scene.living import LivingScene
from ..workers.engine_states import read_states, write_states
from ..workers.messages import StepReply, StepTimes
from ..workers.runtimes import Runtime
from .coupling import Coupling, StepContext
from .profile import StepProfile

TIMES = ("cpu_s", "prepare_cpu_s")
VALUES = ("residual", "body_count", "fallback_count", "substeps")
"""Of a reply, what the next step may depend on besides contacts."""


@dataclass
class LastStepPart:
    """How many steps were taken, and what the workers reported of the last one."""

    now: StepContext

    def state(self) -> PartState:
        replies = self.now.replies
        arrays = {
            f"{i}/contact_{name}": rows for i, one in enumerate(replies) for name, rows in vars(one.contacts).items()
        }
        values = [
            {name: getattr(one.times, name) for name in TIMES} | {name: getattr(one, name) for name in VALUES}
            for one in replies
        ]
        return PartState(arrays, {"step_count": self.now.step_count, "replies": values})

    def restore(self, state: PartState) -> None:
        self.now.step_count, self.now.replies = state.values["step_count"], replies_of(state)


def replies_of(state: PartState) -> list[StepReply]:
    """The replies of a LastStepPart."""
    replies = []
    for i, values in enumerate(state.values["replies"]):
        contacts = Contacts(*(state.array(f"{i}/contact_{name}") for name in vars(Contacts.none())))
        times = StepTimes(**{name: values[name] for name in TIMES})
        replies.append(StepReply(contacts, times, **{name: values[name] for name in VALUES}))
    return replies


@dataclass
class TablePart:
    """The states of all bodies, and those of overlap bodies in each of their workers."""

    runtime: Runtime
    coupling: Coupling

    def state(self) -> PartState:
        rows = len(self.coupling.weights.worker)
        return PartState(
            {"states": np.array(self.runtime.states), "worker_states": np.array(self.runtime.worker_states[:rows])}
        )

    def restore(self, state: PartState) -> None:
        rows = state.arrays["worker_states"]
        self.runtime.states[:] = state.arrays["states"]
        self.runtime.worker_states[: len(rows)] = rows


@dataclass
class LifePart:
    """When bodies and joints came and went."""

    scene: LivingScene

    def state(self) -> PartState:
        return PartState(dict(self.scene.steps))

    def restore(self, state: PartState) -> None:
        """The scene was made with it."""


@dataclass
class CouplingPart:
    """The coupling, and with it the contacts of the last step."""

    coupling: Coupling
    now: StepContext
    profile: StepProfile

    def state(self) -> PartState:
        return self.coupling.state()

    def restore(self, state: PartState) -> None:
        self.coupling.restore(state, self.now)
        if self.now.step_count:
            self.profile.bits = self.now.membership.bits
            self.profile.replies = self.now.replies


@dataclass
class WorkerEnginesPart:
    """The engine states of all workers; none where these have acted on nothing yet, or have stopped."""

    now: StepContext
    runtime: Runtime

    def state(self) -> PartState:
        if not self.now.commands.known.any():
            return PartState()
        membership = self.now.membership
        states = read_states(self.runtime.step, membership.worker_count, membership.body_count)
        return PartState({str(worker): data for worker, data in enumerate(states)})

    def restore(self, state: PartState) -> None:
        if self.now.commands.known.any():
            membership = self.now.membership
            states = [state.arrays[str(worker)] for worker in range(membership.worker_count)]
            write_states(self.runtime.step, states, membership.body_count)
