"""What a coupling must offer: how the results of many workers become one.

`Simulation.step` is Algorithm 1 for any coupling. A coupling decides before a step who simulates what, does the
server's work while the workers step, and makes one result of many after it. It owns its state, its phases, its part of
the profile and of a checkpoint. To add one: a class with these methods in a file beside this one, and a line in
`registry.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ...algorithms import Algorithms, ConstraintGraph, Membership
from ...arrays.state import PartState
from ...engines import EngineState
from ...params import Params
from ...scene.living import LivingScene
from ...step_tables import StepTable
from ...workers.messages import StepCommand, StepReply, WorkerFailure
from ...workers.runtimes import Runtime
from ..commands import CommandBuilder
from ..detect import Detection
from ..loads import Loads
from ..profile import StepProfile
from ..repartition import Repartition
from ..weights import OverlapWeights

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


@dataclass
class StepContext:
    """What the server knows before a step: memberships, contacts, loads, and what was requested."""

    scene: LivingScene
    params: Params
    """Resolved; replaced as a whole when one changes."""
    algorithms: Algorithms
    membership: Membership
    detection: Detection
    loads: Loads
    repartition: Repartition
    commands: CommandBuilder
    replies: Sequence[StepReply]
    """Of the last step; before the first, one with the contacts of the scene as it starts."""
    step_count: int = 0

    @property
    def graph(self) -> ConstraintGraph:
        return self.detection.graph


@dataclass(frozen=True)
class Migration:
    """Bodies that change owners, between two steps; their contact caches migrate with them."""

    bodies: Ids
    before: Ids
    """The owner of each until now."""
    after: Ids
    """The owner of each from now on."""


@dataclass(frozen=True)
class Decision:
    """What to carry out before a step, besides activations, which are part of the step's commands."""

    worker_count: int
    """How many workers there should be."""
    migration: Migration | None = None


class ServerWork(Protocol):
    """What the server does while the workers step."""

    repeats_all: bool
    """Whether all workers repeat a step in which one has failed; else only those that failed."""

    def begin(self, commands: Sequence[StepCommand], again: bool) -> Callable[[], None] | None:
        """Complete the commands before they are sent; returns what to do then, without looking at states. `again`: the
        step is repeated."""
        ...

    def failures(self) -> list[WorkerFailure]:
        """What went wrong in it, if no worker reports a failure of its own."""
        ...


@dataclass
class OverlappedWork:
    """Server work that depends on no worker, done once a step."""

    do: Callable[[], None] | None = None
    repeats_all: bool = field(default=False, init=False)

    def begin(self, commands: Sequence[StepCommand], again: bool) -> Callable[[], None] | None:
        return None if again else self.do

    def failures(self) -> list[WorkerFailure]:
        return []


class Coupling(Protocol):
    """How workers' results become one. See the couplings beside this file."""

    name: ClassVar[str]

    @property
    def weights(self) -> OverlapWeights:
        """Blend weights of the bodies that several workers simulate in the last step decided on."""
        ...

    @property
    def interface(self) -> Ids:
        """Bodies that several workers have for the sake of constraints between them that are solved as such, ascending;
        a copy."""
        ...

    def __init__(self, now: StepContext) -> None:
        """Start from the first partition, which `now.membership` has (line 2 of Algorithm 1)."""
        ...

    @staticmethod
    def mail_room(body_count: int, params: Params) -> int:
        """Bytes that a message between two workers within a step can have; 0 without any."""
        ...

    def most_steps(self, now: StepContext) -> int:
        """How many steps workers may take before the next decision, by themselves."""
        ...

    def needs_contacts(self, now: StepContext, step_count: int) -> bool:
        """Whether the decision before the next step, after so many steps, looks at contacts of the last one."""
        ...

    def decide(self, now: StepContext, runtime: Runtime, profile: StepProfile) -> Decision:
        """Lines 7 to 9 and 12 to 15: decide who simulates what in this step, and the blend weights. Changes the
        membership; sends no command."""
        ...

    def graph(self, now: StepContext) -> ConstraintGraph:
        """The constraint graph of the last step, as it began."""
        ...

    def commands(self, now: StepContext) -> list[StepCommand]:
        """The commands of the step, one per worker."""
        ...

    def server_work(self, now: StepContext, runtime: Runtime) -> ServerWork:
        """What the server does while the workers step."""
        ...

    def merge(self, now: StepContext, runtime: Runtime, profile: StepProfile) -> None:
        """Lines 18 to 20: one result of the workers' results. The profile has the workers' counts already."""
        ...

    def tables(self, now: StepContext) -> list[StepTable]:
        """What was reported of the last steps, one table of each kind that has been: every event once."""
        ...

    def add_bodies(self, workers: Ids) -> None:
        """More bodies, at the end of the list, in these workers; `note_changes` follows."""
        ...

    def note_changes(self) -> None:
        """Bodies or joints of the scene have come or gone."""
        ...

    def invalidate(self) -> None:
        """Drop what the next decision would reuse of the last one: something was changed from outside."""
        ...

    def note_repartition(self, now: StepContext) -> None:
        """Set the loads of now as those that later ones are compared with."""
        ...

    # ---- state -------------------------------------------------------------------------------------------------------

    def state(self) -> PartState:
        """See Stateful."""
        ...

    def restore(self, state: PartState, now: StepContext) -> None:
        """See Stateful."""
        ...

    def redistribute(self, now: StepContext) -> None:
        """Start from a partition among other workers, which `now.membership` has."""
        ...

    def redistribute_states(
        self, now: StepContext, saved: Mapping[str, PartState], states: Sequence[EngineState], table: Array
    ) -> EngineState:
        """One engine state of all bodies, from the engine states of another number of workers."""
        ...

    def part_of(self, state: EngineState, has_body: NDArray[np.bool_]) -> EngineState:
        """Of an engine state of all bodies, what the worker starts from that has these."""
        ...
