"""Profile: where the time of each step went, and what was counted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..engines import STEP_MEASURES, Contacts
from ..workers.messages import StepCommand, StepReply
from .commands import count_bytes
from .detect import merge_contacts
from .series import StepSeries

EXCHANGE_MS = 0.001
"""What an exchange between workers within a step takes beyond their CPU times [ms]: until a message that is written is
seen by who looks for it. benchmarks/mailboxes.py measures it, with two workers on two cores. Over a network it is
more."""

CONTACT_COUNT = STEP_MEASURES.index("contact_count")
PHASES = ("reset", "detect", "balance", "weigh", "step", "blend")
"""All phases of all couplings, as in files. `reset` is the slowest worker's, measured there: what setting bodies back
to the blend took of its step."""


@dataclass
class StepProfile:
    """Times and counters of one step."""

    steps: int = 1
    """How many the workers took by themselves, one after the other. Times are the means of these; all else is of the
    last one, or was done once for all of them. `series` has what was measured of each."""
    phases_ms: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    server_ms: float = 0.0
    """The server's own CPU time while the workers wait for it. CPU time, for with more workers than cores the server
    may itself have to wait."""
    residual: float = 0.0
    """Largest of all workers [m/s]."""
    substeps: int = 0
    """Substeps that the step took, most of all workers; 0 with a solver that has none."""
    exchanges: int = 0
    """With tight coupling: messages that two workers sent each other in the step, one after the other, at most."""
    interface_count: int = 0
    """With tight coupling: bodies at the interface."""
    cut_share: float = 0.0
    """With tight coupling: share of joints and contacts that are between workers."""
    fallback_count: int = 0
    """Groups of bodies that direct solvers left to sweeps, of all workers."""
    sleeping_count: int = 0
    """Bodies that sleep, after the last step."""
    overlap_count: int = 0
    """Bodies with more than one worker."""
    activation_count: int = 0
    deactivation_count: int = 0
    divided: bool = False
    """Whether the scene was repartitioned."""
    uncovered_count: int = 0
    """Joints and contacts without a worker; counted for `balance printed`, impossible otherwise."""
    exchange_bytes: int = 0
    """What workers sent each other within the steps."""
    worker_body_count: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    worker_contact_count: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    worker_cpu_ms: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """CPU time of each worker, what it prepared while it waited for the step included."""
    worker_prepare_ms: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """Of that, what it prepared while it waited."""
    sweep_wait_ms: float = 0.0
    """With tight coupling: how much longer than the slowest worker takes by itself a step takes because another one is
    the slowest in each half sweep, with a core for every worker."""

    series: StepSeries | None = field(default=None, repr=False)
    """What workers measured of every step; None where they do not."""
    commands: Sequence[StepCommand] = field(default=(), repr=False)
    """What was sent to the workers, and what they replied."""
    replies: Sequence[StepReply] = field(default=(), repr=False)
    sent_bytes: int | None = None
    """What the runtime sent and received over a network, the exchange within the step apart."""
    bits: NDArray[np.uint64] = field(default_factory=lambda: np.zeros((0, 1), np.uint64), repr=False)
    """The membership that the workers acted on, and how many bodies have a worker in it."""
    body_count: int = 0

    fetch_contacts: Callable[[Sequence[StepReply]], None] | None = field(default=None, repr=False)
    """Completes the replies with contacts that workers have not sent, until the next step."""

    def count_workers(
        self, commands: Sequence[StepCommand], replies: Sequence[StepReply], bits: NDArray[np.uint64], body_count: int
    ) -> None:
        """Take over what the workers measured."""
        self.commands, self.replies, self.bits, self.body_count = commands, replies, bits, body_count
        self.residual = max((reply.residual for reply in replies if not math.isnan(reply.residual)), default=math.nan)
        self.substeps = max((reply.substeps for reply in replies), default=0)
        self.series = StepSeries.of(commands, replies)
        self.fallback_count = sum(reply.fallback_count for reply in replies)
        self.sleeping_count = sum(reply.sleeping_count for reply in replies)
        self.worker_body_count = np.array([reply.body_count for reply in replies])
        self.worker_contact_count = np.array([_contact_count(reply) for reply in replies], np.int64)
        self.worker_prepare_ms = 1e3 * np.array([reply.times.prepare_cpu_s for reply in replies])
        self.worker_cpu_ms = 1e3 * np.array([reply.times.cpu_s for reply in replies]) + self.worker_prepare_ms
        self.sweep_wait_ms = 1e3 * _waits_for_the_slowest([reply.times.between_meetings_s for reply in replies])
        reset_ms = 1e3 * max((reply.times.reset_s for reply in replies), default=0.0)
        self.phases_ms["reset"] += reset_ms
        self.phases_ms["step"] -= reset_ms

    def divide_times(self) -> None:
        """Make means of the times, which are of all steps."""
        self.phases_ms = {name: ms / self.steps for name, ms in self.phases_ms.items()}
        self.server_ms /= self.steps
        self.sweep_wait_ms /= self.steps
        self.worker_cpu_ms = self.worker_cpu_ms / self.steps
        self.worker_prepare_ms = self.worker_prepare_ms / self.steps

    @cached_property
    def contacts(self) -> Contacts:
        """All contacts of the step, as it began. Until the next one workers are asked for them, if they have not sent
        them."""
        if self.fetch_contacts is not None:
            self.fetch_contacts(self.replies)
        lists = [reply.contacts for reply in self.replies]
        return merge_contacts(lists, self.bits) if lists else Contacts.none()

    @cached_property
    def byte_count(self) -> int:
        """Bytes of commands, replies and states that server and workers exchanged in all steps: those that went over
        the network, or, where memory is shared, those that the messages stand for."""
        sent = count_bytes(self.commands, self.replies) if self.sent_bytes is None else self.sent_bytes
        return sent + self.exchange_bytes

    @property
    def contact_count(self) -> int:
        """Touching pairs at the start of the step, static bodies included."""
        return len(self.contacts) if self.series is None else int(self.series.contact_count[-1])

    @property
    def contact_point_count(self) -> int:
        return int(self.contacts.point_count.sum() if self.series is None else self.series.contact_point_count[-1])

    @property
    def penetration(self) -> float:
        """Deepest, at the start of the step [m]."""
        return self.contacts.penetration if self.series is None else float(self.series.penetration_max[-1])

    @property
    def step_ms(self) -> float:
        """The whole step, server and workers [ms]."""
        return sum(self.phases_ms.values())

    @property
    def projected_ms(self) -> float:
        """What the step would take with a core for every worker and the server [ms]: the server's part, and after it
        the slowest worker's own CPU time. What workers prepare while the server works counts only beyond that. With
        tight coupling all wait for the slowest in every half sweep, and every exchange takes EXCHANGE_MS besides."""
        late = np.maximum(self.worker_prepare_ms - self.server_ms, 0.0)
        slowest = float((self.worker_cpu_ms - self.worker_prepare_ms + late).max(initial=0.0))
        return self.server_ms + slowest + self.sweep_wait_ms + EXCHANGE_MS * self.exchanges

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time what happens inside into the phase of that name."""
        start = time.perf_counter()
        yield
        self.phases_ms[name] += 1e3 * (time.perf_counter() - start)


def _contact_count(reply: StepReply) -> int:
    """As measured, where it is."""
    return int(reply.step_measures[-1, CONTACT_COUNT]) if len(reply.step_measures) else len(reply.contacts)


def _waits_for_the_slowest(times: Sequence[NDArray[np.float64]]) -> float:
    """How much longer it takes if all wait for each other after each of their times, than the one takes whose times add
    up to most."""
    if not times or len({len(own) for own in times}) > 1:
        return 0.0  # one worker, or a step that was abandoned by some
    table = np.stack(times)
    return float(table.max(axis=0).sum() - table.sum(axis=1).max()) if table.size else 0.0
