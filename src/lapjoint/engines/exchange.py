"""Links: how the server and the workers send to each other within a tight step, and how much (docs/coupling.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ..algorithms.exchange import CONTRIBUTION

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

HEAD_ROOM = 1024
"""Numbers beside the contributions and masses, at most, in each direction."""
HEADS = 47
"""Numbers beside contributions and masses in a worker's round, there and back: `exchange_heads` of the native module,
and how many masses there are."""
MASS = 38
"""Numbers of an interface mass: which two bodies, and a block of 6 by 6."""
MOST_MASSES = 20_000
"""A worker with more of them sends none."""


class Signal(IntEnum):
    """What the server asks of a worker: another round, to finish the step, or to leave it as it was."""

    ROUND = 0
    FINISH = 1
    ABANDON = 2


@dataclass
class Links:
    """Links to all workers within a step: memory that both sides see, and sockets or calls that signal a message in it.

    Every worker reads `downs`, its own array, and replies in `ups`.
    """

    downs: Sequence[Array]
    ups: Sequence[Array]
    sockets: Sequence[int] = ()
    """One per worker, or none: then calls are used."""
    limit_s: float = 0.0
    """What a reply by socket may take."""
    carries: Sequence[bool] = ()
    """For each socket, whether it carries the messages themselves: where the two sides share no memory."""
    signal: Callable[[], object] = lambda: None
    """Signal the workers that their messages are written; waits for nobody."""
    exchange: Callable[[], bool] = lambda: True
    """Signal them, and wait for the replies. False, if one does not reply; all others have replied even then."""
    give_up: Callable[[int], object] = lambda worker: None
    """Give up a worker that has not replied in time."""
    worker_cpu_s: Callable[[], float] = lambda: 0.0
    """CPU time of the workers since the links were made, as far as it is the calling thread's [s]."""
    rows: Sequence[Ids] = field(default_factory=list)
    """Of each worker's interface bodies, their places among all interface bodies."""


def round_bytes(worker_count: int, interface_count: int, rounds: int) -> int:
    """Bytes that server and workers exchange in the rounds of a step: heads, and contributions there and back, the
    server's last ones included. Masses, once a step, are not."""
    return 8 * (HEADS * worker_count * rounds + CONTRIBUTION * interface_count * (2 * rounds + 1))


def exchange_room(body_count: int) -> int:
    """Numbers that one direction of a worker's exchange can have."""
    return HEAD_ROOM + CONTRIBUTION * body_count + MASS * min(body_count * (body_count + 1) // 2, MOST_MASSES)
