"""What a runtime must offer, and the registry. `tests/workers/test_runtimes.py` checks it on every runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import LapjointError, did_you_mean
from ...params import Params
from ...scene import Scene
from ..messages import Command, Reply, WorkerFailure

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

_RUNTIMES = {"inline": ".inline:InlineRuntime", "process": ".process:ProcessRuntime", "ray": ".ray:RayRuntime"}


class Runtime(Protocol):
    """Workers somewhere, numbered from 0."""

    states: Array
    """The table of states, (body_count, 13): the workers' newest for bodies with one worker, the server's for overlap
    bodies."""
    border_states: Array
    """The same table as it is, for detection and blending: with workers on other machines, rows of bodies that cannot
    be about to touch one of another worker may be of an earlier step. To look at `states` brings these up to date."""
    worker_states: Array
    """States of overlap bodies in each of their workers, by slot: (rows, 13), with body_count times the number of
    workers rows or more. A change of the number of workers may make it another array."""

    def __init__(self, scene: Scene, params: Params, worker_count: int, mail_room: int = 0) -> None:
        """`mail_room` is how many bytes a message between two workers within a step can have."""
        ...

    byte_count: int | None
    """Bytes that the last step sent and received; None where server and workers share memory."""
    wait_cpu_s: float
    """CPU time of the server in the last step while the workers stepped [s]: from the last command to the last reply.
    With workers in the server's own thread, theirs."""

    def step(
        self, commands: Sequence[Command | None], meanwhile: Callable[[], None] | None = None
    ) -> list[Reply | WorkerFailure | None]:
        """Have all workers that have a command execute it, in parallel where the runtime can; returns when the last is
        done or given up. A worker without a command does nothing, and its answer is None.

        While they work, `meanwhile` runs; it may not look at states then. Where the commands are NeighbourCommands (all
        of them or none), workers wait for each other within the step: if one fails, the others abandon it, and their
        replies are empty.

        A worker that fails, dies or does not answer in time (see AnswerLimits) has a WorkerFailure for an answer, then
        and in every later step, until it is replaced. The others are not touched by it. Rows that a failed worker was
        about to write may be half written; `states_before` has what was there. After an interrupt the runtime is
        closed; a step of a closed runtime is a WorkerError.
        """
        ...

    def states_before(self, worker: int, bodies: Ids) -> Array:
        """States that bodies which this worker alone has had before its last command to step, whatever has become of
        the worker, until it is replaced. A WorkerError where nobody has them any more. (Overlap bodies' rows are
        written by the server alone.)"""
        ...

    def go_back(self, worker: int, bodies: Ids) -> None:
        """Write these states into the table."""
        ...

    def replace(self, worker: int) -> None:
        """End what is left of a worker, by force if it hangs, and start a fresh and empty one in its place. The memory
        that it shared with the others stays as it is. A WorkerError, if the fresh one does not start."""
        ...

    def set_body_count(self, body_count: int, mail_room: int) -> None:
        """Have so many rows in `states`, of which the first are as before, and room for messages of so many bytes
        between two workers: there are more bodies, of which workers are told with their next commands. `states` and the
        other tables may be other arrays then."""
        ...

    def release(self, rows: slice) -> None:
        """Give back the memory of states of bodies that are gone, and are zeros."""
        ...

    def set_worker_count(self, worker_count: int) -> None:
        """Start fresh and empty workers, or end workers, at the end of the list. `worker_states` has room for them
        then. A WorkerError, if one does not start: the number is what it was."""
        ...

    def close(self) -> None:
        """End all workers. May be called twice; after it, no process and no memory of the runtime is left but the
        arrays, which can be read."""
        ...


def runtime_names() -> list[str]:
    return list(_RUNTIMES)


def make_runtime(scene: Scene, params: Params, worker_count: int, mail_room: int = 0) -> Runtime:
    """The runtime that `params` names, with its workers started and empty."""
    if params.runtime not in _RUNTIMES:
        hint = did_you_mean(params.runtime, _RUNTIMES)
        raise LapjointError(f"no runtime named {params.runtime!r}{hint}; known runtimes: {', '.join(_RUNTIMES)}")
    module, name = _RUNTIMES[params.runtime].split(":")
    kind: type[Runtime] = getattr(import_module(module, __package__), name)
    return kind(scene, params, worker_count, mail_room)
