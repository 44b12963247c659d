"""Whether what a worker answers can be the answer: compiled code of the server reads these arrays in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engines import STEP_MEASURES
from ..scene import Scene
from ..step_tables import Of, StepTable, check_range, limits
from .messages import AnswerPart, Reply, StatePart, StepReply, WorkerFailure

_COUNTS = [
    k
    for k, name in enumerate(STEP_MEASURES)
    if name.endswith("_count") or name in ("substeps", "exchanges", "sent_bytes")
]
MOST_COUNT = 1 << 40
_TIMES = ("own_s", "cpu_s", "prepare_cpu_s", "waited_s", "reset_s")


def reply_of(worker: int, read: Callable[[], Any], scene: Scene, steps: int) -> Reply | WorkerFailure:
    """What a worker has answered to a command for so many steps, once `read`; a failure of the worker where that makes
    no sense."""
    try:
        reply = read()
        if not isinstance(reply, StepReply | StatePart | AnswerPart):
            raise ValueError(f"a {type(reply).__name__}")
        if isinstance(reply, StepReply):
            check_step_reply(reply, scene, steps)
    except ValueError as error:
        return WorkerFailure(worker, "failed", f"it has answered with what is no answer: {error}")
    return reply


def check_step_reply(reply: StepReply, scene: Scene, steps: int) -> None:
    """ValueError where it is of bodies or joints that there are not, or lists differ in their lengths."""
    if len(reply.step_measures) not in (0, steps):
        raise ValueError(f"step_measures has {len(reply.step_measures)} rows, expected one for each of {steps} steps")
    counts = reply.step_measures[:, _COUNTS]
    if not ((counts >= 0) & (counts < MOST_COUNT)).all():
        raise ValueError("step_measures has counts that are none")
    if not all(
        abs(getattr(reply.times, name)) < MOST_COUNT for name in _TIMES
    ):  # a difference of clocks may be below 0
        raise ValueError(f"{', '.join(_TIMES)} have a time that is none")
    kinds = [type(table) for table in reply.tables]
    if len(set(kinds)) < len(kinds) or not all(issubclass(kind, StepTable) for kind in kinds):
        raise ValueError(f"tables are {', '.join(kind.__name__ for kind in kinds)}, expected one of a kind")
    for table in reply.tables:
        table.check(scene, steps)
    if (found := reply.listed) is not None and (len(found.bodies) or len(found.point_count) or len(found.depth)):
        if len({len(values) for values in vars(found).values()}) > 1:
            raise ValueError(f"{', '.join(vars(found))} of contacts have different numbers of rows")
        check_range("bodies of contacts", found.bodies, *limits(Of.CONTACT, scene, steps))
        check_range("point_count of contacts", found.point_count, 0, 1 << 20)
    check_range("ghosts", reply.ghosts, 0, scene.body_count)
