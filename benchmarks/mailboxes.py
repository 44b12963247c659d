"""What an exchange between two workers takes: each sends the other a message, and goes on once the other's has come.

Two processes with a core each, and messages of a few bodies and of many. The time of a message that is empty, less what
the two calls from Python take, is EXCHANGE_MS of src/lapjoint/server/profile.py: what a step waits for beyond the work
in it.

    python benchmarks/mailboxes.py
"""

from __future__ import annotations

import os
import time

import numpy as np

from lapjoint.engines.bullet_module import load_bullet
from lapjoint.engines.mailboxes import memory_size
from lapjoint.workers.runtimes.shared import SharedMemory

COUNT, REPETITIONS, SPINS = 20_000, 5, 2000
BODY_BYTES = load_bullet("float32").message_bytes


def exchange(memory: np.ndarray, worker: int, room: int, size: int) -> float:
    """Microseconds of an exchange, the best of some repetitions."""
    mailboxes = load_bullet("float32").Mailboxes(memory, 2, room, worker, SPINS)
    message, best = bytes(size), float("inf")
    for attempt in range(1, REPETITIONS + 1):
        mailboxes.begin_step(attempt)
        start = time.perf_counter()
        for _ in range(COUNT):
            mailboxes.send(1 - worker, message)
            mailboxes.receive(1 - worker, size)
        best = min(best, (time.perf_counter() - start) / COUNT)
        mailboxes.finish_step()
    return 1e6 * best


def main() -> None:
    for bodies in (0, 10, 100, 1000):
        room = max(64, bodies * BODY_BYTES)
        block = SharedMemory(memory_size(2, room))
        memory = block.array((-1,), np.uint8)
        child = os.fork()
        if child == 0:
            exchange(memory, 1, room, bodies * BODY_BYTES)
            os._exit(0)
        print(f"{bodies:5d} bodies: {exchange(memory, 0, room, bodies * BODY_BYTES):6.2f} us an exchange", flush=True)
        os.waitpid(child, 0)
        block.close()


if __name__ == "__main__":
    main()
