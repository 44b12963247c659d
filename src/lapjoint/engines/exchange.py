"""What a tight step is planned as and comes to, and the way to the workers within it (docs/coupling.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ..params import Params

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

CONTRIBUTION = 12
"""Numbers of a contribution: see engines.RoundEngine."""
HEAD_ROOM = 1024
"""Numbers beside the contributions and masses, at most, in each direction."""
HEADS = 47
"""Numbers beside contributions and masses in a worker's round, there and back: `exchange_heads` of the native module,
and how many masses there are."""
MASS = 38
"""Numbers of a mass: which two bodies, and a block of 6 by 6."""
MOST_MASSES = 20_000
"""A worker with more of them sends none."""


class Signal(IntEnum):
    """What the server asks of a worker: another round, to finish the step, or to leave it as it was."""

    ROUND = 0
    FINISH = 1
    ABANDON = 2


@dataclass(frozen=True)
class RoundPlan:
    """How a step is taken in rounds."""

    rounds: int
    """At most."""
    sweeps: int
    """Of a worker in each."""
    server_sweeps: int
    accelerated: bool
    tolerance: float
    """m/s. Rounds end once the residual is not above it."""

    @property
    def is_few(self) -> bool:
        """With so few rounds, extrapolated contacts have no time to settle: stacks at rest would shake."""
        return self.rounds < 40

    @staticmethod
    def of(params: Params) -> RoundPlan:
        """`params` are resolved."""
        assert params.rounds is not None
        assert params.iterations is not None
        sweeps = max(1, params.iterations // params.rounds)
        return RoundPlan(params.rounds, sweeps, sweeps, params.acceleration, params.tolerance)


@dataclass(frozen=True)
class RoundResult:
    """What the rounds of a step came to."""

    rounds: int
    residual: float
    """Largest change of a constraint's velocity in the last round [m/s]."""
    failed: bool = False
    """Whether a worker did not answer, or somebody not with numbers. All were sent the signal to abandon the step."""
    late: tuple[int, ...] = ()
    """Workers that did not answer in time; they are not to be waited for again."""
    not_finite: tuple[int, ...] = ()
    """Workers that answered with anything but numbers. They alone go on to the end of the step, and find out why."""
    lost: tuple[int, ...] = ()
    """Places in the interface of bodies that the server's own engine has no numbers for."""


@dataclass
class Links:
    """The way to all workers within a step: memory that both sides see, and sockets or calls to say that it is written.

    Every worker reads `downs`, its own array, and answers in `ups`.
    """

    downs: Sequence[Array]
    ups: Sequence[Array]
    sockets: Sequence[int] = ()
    """One per worker, or none: then calls are used."""
    limit_s: float = 0.0
    """What an answer by socket may take."""
    carries: Sequence[bool] = ()
    """For each socket, whether messages travel on it: where the two sides see no memory of each other."""
    tell: Callable[[], object] = lambda: None
    """What is written for the workers is there; nobody waits."""
    exchange: Callable[[], bool] = lambda: True
    """The same, and what they answer is there. False, if one does not; all others have answered even then."""
    give_up: Callable[[int], object] = lambda worker: None
    """A worker has not answered in time, and never will."""
    worker_cpu_s: Callable[[], float] = lambda: 0.0
    """CPU time of the workers since the links were made, as far as it is the calling thread's [s]."""
    rows: Sequence[Ids] = field(default_factory=list)
    """Of each worker's interface bodies, their places among all interface bodies."""


def round_bytes(worker_count: int, interface_count: int, rounds: int) -> int:
    """What server and workers exchange in the rounds of a step: heads, and contributions there and back, the server's
    last ones included. Masses, once a step, are not."""
    return 8 * (HEADS * worker_count * rounds + CONTRIBUTION * interface_count * (2 * rounds + 1))


def exchange_room(body_count: int) -> int:
    """Numbers that one direction of a worker's exchange can have."""
    return HEAD_ROOM + CONTRIBUTION * body_count + MASS * min(body_count * (body_count + 1) // 2, MOST_MASSES)
