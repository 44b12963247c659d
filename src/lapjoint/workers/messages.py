"""What server and workers send each other: one dataclass per message, named fields, no transport.

A field is an array of a declared type, empty unless given; or a number, a text, another message, or step tables.
`codec.py` turns any of them into bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..engines import STEP_MEASURES, Contacts
from ..scene.motions import POSE_SIZE
from ..step_tables import StepTable

Ids = NDArray[np.int32]
Array = NDArray[np.float64]
Bytes = NDArray[np.uint8]
Table = TypeVar("Table", bound=StepTable)


def _array(dtype: Any, *shape: int, narrow: bool = False) -> Any:
    """A field holding rows of `shape`; empty unless given. A narrow one travels as float32 where that loses nothing."""
    metadata = {"dtype": np.dtype(dtype), "shape": shape, "narrow": narrow}
    return field(default_factory=lambda: np.empty((0, *shape), dtype), metadata=metadata)


@dataclass
class Motions:
    """How kinematic bodies move, as arrays: see scene.motions.MOTION_ARRAYS."""

    ids: Ids = _array(np.int32)
    kinds: Ids = _array(np.int32)
    starts: NDArray[np.int64] = _array(np.int64)
    bases: Array = _array(np.float64, POSE_SIZE)
    counts: Ids = _array(np.int32)
    values: Array = _array(np.float64)


@dataclass
class JointTargets:
    """What drives are to do, and half turns that counted angles are next to."""

    axes: Ids = _array(np.int32)
    """Six times the joint's number, and the axis."""
    targets: Array = _array(np.float64, 2)
    """Position and velocity of each."""
    turned: Ids = _array(np.int32)
    """Joints whose angles are counted."""
    half_turns: Ids = _array(np.int32)


# ---- a step --------------------------------------------------------------------------------------------------------


@dataclass
class StepCommand:
    """Server to worker: change the active bodies, then take a step.

    States do not travel in the message: the worker reads the rows of bodies it activates or resets from the table of
    states, and writes its results where the server reads them.
    """

    deactivate: Ids = _array(np.int32)
    """Bodies to take out first."""
    activate: Ids = _array(np.int32)
    """Bodies to put in, with their states in the table."""
    reset: Ids = _array(np.int32)
    """Active bodies to set back to their states in the table: those that were blended after the last step."""
    overlap: Ids = _array(np.int32)
    """Active bodies that other workers have too: their new states go into `slot` of the worker states."""
    slot: Ids = _array(np.int32)
    force_ids: Ids = _array(np.int32)
    """Active bodies with an external force and torque in this step."""
    forces: Array = _array(np.float64, 6)
    iterations: int | None = None
    """Sweeps per step from this step on; None: as before."""
    number: int = 0
    """Of this command among those to all workers; the worker notes it before it writes results (see Kept)."""
    steps: int = 1
    """How many to take, one after the other."""
    forgets: bool = False
    """Whether to start without the impulses of before: they are those of later steps, from which all go back."""
    added: Bytes = _array(np.uint8)
    """What the scene has more since the last command (`added_since`); a worker that has it already leaves it."""
    released: Ids = _array(np.int32, 2)
    """Runs of bodies, first and end, that are gone: their memory is not needed any more."""
    broken: Ids = _array(np.int32)
    """Joints that have broken since the last command; or all that are broken, and no others, if `sets_broken`."""
    sets_broken: bool = False
    breaks: bool = True
    """Whether joints that a step was too much for break at once. If not, the server is told, and decides."""
    first_step: int = 0
    """How many steps were taken before: kinematic bodies are where they are then."""
    motions: Motions | None = None
    """Of kinematic bodies that move otherwise than the scene has it; None: as before."""
    senses: bool = False
    """Whether to find who enters sensors and leaves them."""
    inside: Ids = _array(np.int32, 2)
    """Who is inside then: sensors and bodies, ascending; also those of other workers."""
    joint_targets: JointTargets | None = None
    """Of drives and counted angles that are others than before; None: none."""
    contacts: bool = True
    """Whether the reply lists contacts. If not, the worker keeps them until its next step, for who asks."""


@dataclass
class NeighbourCommand(StepCommand):
    """Server to worker: take the steps together with all other workers."""

    attempt: int = 0
    """Number of this try at the first step; those of the others follow. A number is never used again."""
    turns: Ids = _array(np.int32)
    """For each worker, when this one sweeps the constraints between the two: of pairs of the same turn, no two have a
    worker in common."""
    whole: Ids = _array(np.int32)
    """Structures across workers, by their lowest bodies, that are narrow enough between workers to be solved at
    once."""
    mail_room: int = 0
    """Bytes that a message to another worker can have from now on; 0: as before."""
    choose: bool = False
    """Whether workers choose anew who has which ghosts before the first step: bodies have come, gone or been set."""

    @property
    def last_attempt(self) -> int:
        return self.attempt + self.steps - 1


@dataclass
class StepTimes:
    """What the steps of a command took [s]."""

    own_s: float = 0.0
    """Wall time, without what the worker waited for others."""
    cpu_s: float = 0.0
    """CPU time."""
    prepare_cpu_s: float = 0.0
    """CPU time of what was prepared for them, while the worker waited for the command."""
    waited_s: float = 0.0
    """Wall time that was waited for other workers; in none of the others."""
    reset_s: float = 0.0
    """Of the first step, what setting bodies back to their blended states took."""
    between_meetings_s: Array = _array(np.float64)
    """CPU time from one place within a step where all workers wait for each other to the next, of all steps."""


@dataclass
class StepReply:
    """Worker to server: the steps are done. What is not a time is of the last one. Of a step that was abandoned:
    empty."""

    listed: Contacts | None = field(default_factory=Contacts.none)
    """Contacts of the step; None where they are not listed."""
    times: StepTimes = field(default_factory=StepTimes)
    residual: float = 0.0
    """m/s"""
    body_count: int = 0
    """Active bodies."""
    sleeping_count: int = 0
    """Of these, bodies that sleep."""
    step_measures: Array = _array(np.float64, len(STEP_MEASURES))
    """A row for each step, where the engine measures them."""
    tables: tuple[StepTable, ...] = ()
    """What is reported of single steps: of each kind one table, where it has rows."""
    fallback_count: int = 0
    """Groups of bodies that a direct solver left to sweeps."""
    substeps: int = 0
    """Substeps that the step took; 0 with a solver that has none."""
    has_ghosts: bool = False
    """Whether `ghosts` are listed: they are others than when they were last reported."""
    ghosts: Ids = _array(np.int32)
    """Bodies of other workers that this one has too, ascending."""

    @property
    def has_contacts(self) -> bool:
        return self.listed is not None

    @property
    def contacts(self) -> Contacts:
        """Those that are listed."""
        return Contacts.none() if self.listed is None else self.listed

    def table(self, kind: type[Table]) -> Table:
        """Its rows of a kind."""
        return next((one for one in self.tables if isinstance(one, kind)), kind.none())

    def with_contacts(self, kept: NDArray[np.bool_]) -> StepReply:
        """The same with these of its contacts alone."""
        return replace(self, listed=Contacts(*(column[kept] for column in vars(self.contacts).values())))


# ---- an engine's state, between two steps --------------------------------------------------------------------------


@dataclass
class ReadState:
    """Server to worker: return bytes `start` to `stop` of the engine's state. The state is taken when `start` is 0."""

    bodies: Ids = _array(np.int32)
    """Only these bodies, and all contacts and joints that they have; empty: all."""
    start: int = 0
    stop: int = 0


@dataclass
class StatePart:
    """Worker to server: a part of the engine's state, and the bytes of the whole. Also the answer, empty, to what
    writes one."""

    data: Bytes = _array(np.uint8)
    size: int = 0


@dataclass
class WriteState:
    """Server to worker: a part of an engine's state; with its last part, become that engine."""

    activate: Ids = _array(np.int32)
    """With the first part: bodies that are active then."""
    data: Bytes = _array(np.uint8)
    start: int = 0
    size: int = 0

    @property
    def is_last(self) -> bool:
        return self.start + len(self.data) >= self.size


@dataclass
class Migrate:
    """Server to worker: a part of the contact cache of bodies that change owners; with its last part, bodies leave and
    enter, and the cache is merged."""

    deactivate: Ids = _array(np.int32)
    activate: Ids = _array(np.int32)
    data: Bytes = _array(np.uint8)
    start: int = 0
    size: int = 0

    @property
    def is_last(self) -> bool:
        return self.start + len(self.data) >= self.size


# ---- questions, between two steps ----------------------------------------------------------------------------------


@dataclass
class Ask:
    """Server to worker: a part of a question; with its last part it is answered. Without data: another part of the
    answer. Nothing of the next step depends on a question."""

    what: str = ""
    """Which question: see questions.ANSWERS."""
    reset: Ids = _array(np.int32)
    """With the last part: active bodies to set back to their states in the table first, those that were blended after
    the last step."""
    activate: Ids = _array(np.int32)
    """With the last part: bodies that are activated for the answer alone, with their states in the table."""
    data: Bytes = _array(np.uint8)
    start: int = 0
    size: int = 0
    answer_start: int = 0
    answer_stop: int = 0

    @property
    def is_last(self) -> bool:
        return self.start + len(self.data) >= self.size


@dataclass
class AnswerPart:
    """Worker to server: a part of the answer, and the bytes of the whole; empty while the question is incomplete."""

    data: Bytes = _array(np.uint8)
    size: int = 0


# ---- failure -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WorkerFailure:
    """In place of a reply: why a worker did not take its step."""

    worker: int
    kind: str
    """gone (its process ended, its node is lost), hung (no answer in time), failed (an exception), or not finite."""
    text: str
    """What happened: how it ended, how long it was waited for, or the worker's traceback."""
    body_ids: tuple[int, ...] = ()
    """Bodies that are known to be the cause: those with states that are not finite."""

    @property
    def title(self) -> str:
        """All of it, the worker named."""
        if self.kind == "not finite":
            return f"worker {self.worker}: {self.text}"
        verb = {"gone": "is gone: ", "hung": "hangs: "}.get(self.kind, "failed:\n")
        return f"worker {self.worker} {verb}{self.text}"

    @property
    def summary(self) -> str:
        """The title on one line: of a traceback, its end."""
        return replace(self, text=self.text.splitlines()[-1] if self.text else "").title.replace("\n", " ")


# ---- workers on other machines -------------------------------------------------------------------------------------


@dataclass
class RemoteCommand:
    """Server to a worker that may be on another machine: a command, and what it needs for it without the server's
    memory."""

    wants: str = ""
    """Which states come back: none, border (those of watched and moved bodies), or all (those of own bodies)."""
    command: StepCommand | NeighbourCommand | ReadState | WriteState | Migrate | Ask | None = None
    """None: only states are asked for."""
    activated: Array = _array(np.float64, 13, narrow=True)
    """States of the bodies to activate, and to reset."""
    reset: Array = _array(np.float64, 13, narrow=True)
    watched: Ids = _array(np.int32)
    """Bodies to watch from now on (watch.py), if `watches_anew`."""
    watches_anew: bool = False


@dataclass
class RemoteReply:
    """Such a worker to the server."""

    reply: StepReply | StatePart | AnswerPart | None = None
    overlap: Array = _array(np.float64, 13, narrow=True)
    """States of overlap bodies, as the command lists them."""
    bodies: Ids = _array(np.int32)
    """With all states: own bodies, if they are others than before (`has_bodies`); with border states: moved ones."""
    has_bodies: bool = False
    states: Array = _array(np.float64, 13, narrow=True)
    """With all states: of own bodies; with border states: of watched bodies, then of moved ones."""


@dataclass
class OwnStates:
    """Worker to hosts, which keep it: the states of its own bodies after the command to step of this number."""

    worker: int = 0
    number: int = 0
    bodies: Ids = _array(np.int32)
    states: Array = _array(np.float64, 13, narrow=True)


Command = StepCommand | NeighbourCommand | ReadState | WriteState | Migrate | Ask
"""What a worker executes."""
Reply = StepReply | StatePart | AnswerPart
"""What it answers."""
Message = Command | Reply | WorkerFailure | RemoteCommand | RemoteReply | OwnStates | Motions | JointTargets | StepTimes


def steps_of(commands: Iterable[Command | None]) -> int:
    """How many steps workers take that have these commands."""
    return max((command.steps for command in commands if isinstance(command, StepCommand)), default=1)


MESSAGES: tuple[type[Any], ...] = (
    Motions,
    JointTargets,
    StepCommand,
    NeighbourCommand,
    StepTimes,
    StepReply,
    ReadState,
    StatePart,
    WriteState,
    Migrate,
    Ask,
    AnswerPart,
    WorkerFailure,
    RemoteCommand,
    RemoteReply,
    OwnStates,
)
