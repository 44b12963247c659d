"""Whether what a worker answers can be the answer: compiled code of the server reads these arrays in place."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines import STEP_MEASURES
from ..scene import Scene
from .messages import AnswerPart, Reply, StatePart, StepReply, WorkerFailure

_TOGETHER = (
    ("contact_bodies", "contact_point_count", "contact_depth"),
    ("broke_step", "broke_joint", "broke_load"),
    ("turned", "half_turns"),
    ("hit_step", "hit_bodies", "hit_impulse", "hit_point", "hit_normal"),
    ("touch_step", "touch_bodies", "touch_kind", "touch_speed"),
    ("sensed_step", "sensed_pair", "sensed_kind"),
    ("surge_step", "surge_body", "surge_island", "surge_energy", "surge_limit"),
)
"""Arrays of a reply with as many rows each."""
_ARRAYS = attrgetter(*chain(*_TOGETHER), "ghosts")
_COUNTS = [
    k
    for k, name in enumerate(STEP_MEASURES)
    if name.endswith("_count") or name in ("substeps", "exchanges", "sent_bytes")
]
MOST_COUNT = 1 << 40
_TIMES = ("own_s", "cpu_s", "prepare_cpu_s", "waited_s", "reset_s")
_BODIES = ("contact_bodies", "hit_bodies", "touch_bodies")
"""Bodies, and static ones: -1 - s for number s."""


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
    if not all(abs(getattr(reply, name)) < MOST_COUNT for name in _TIMES):  # a difference of clocks may be below 0
        raise ValueError(f"{', '.join(_TIMES)} have a time that is none")
    if not any(map(len, _ARRAYS(reply))):
        return  # as in most steps
    for names in _TOGETHER:
        if len({len(getattr(reply, name)) for name in names}) > 1:
            raise ValueError(f"{', '.join(names)} have different numbers of rows")
    statics = len(scene.statics)
    for name in _BODIES:
        _check_range(name, getattr(reply, name), -statics, scene.body_count)
    for name in ("ghosts", "surge_body", "surge_island"):
        _check_range(name, getattr(reply, name), 0, scene.body_count)
    _check_range("broke_joint", reply.broke_joint, 0, scene.joint_count)
    _check_range("turned", reply.turned, 0, scene.joint_count)
    _check_range("contact_point_count", reply.contact_point_count, 0, 1 << 20)


def _check_range(name: str, numbers: NDArray[Any], low: int, high: int) -> None:
    if numbers.size and (int(np.min(numbers)) < low or int(np.max(numbers)) >= high):
        raise ValueError(f"{name} has {np.min(numbers)} to {np.max(numbers)}, expected {low} to {high - 1}")
