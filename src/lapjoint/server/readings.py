"""What the server asks workers about the last step, and makes of their answers. Only what is asked for travels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..algorithms.membership import WORD
from ..arrays.checks import integer_rows
from ..engines import ContactPoints
from ..errors import LapjointError
from ..scene.content import checked_ids
from ..scene.living import LivingScene
from ..workers.questions import Arrays, Question, ask
from ..workers.readings import CONTACT_FORCES, CONTACT_POINTS, JOINT_FORCES
from .coupling import StepContext
from .weights import OverlapWeights

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
Groups = Sequence[tuple[ArrayLike, ArrayLike | None]]
Send = Callable[..., Any]


def read_joint_forces(now: StepContext, weights: OverlapWeights, send: Send, joint_ids: Ids) -> Array:
    """(n, 6); each joint is asked of the worker that answers for it."""
    joints, forces = now.scene.joints, np.zeros((len(joint_ids), 6))
    worker = answering(now, weights, joints.body_a[joint_ids], joints.body_b[joint_ids])
    places = [np.flatnonzero(worker == one) for one in range(now.params.workers)]
    questions = [Question(JOINT_FORCES, {"joints": joint_ids[rows]}) if len(rows) else None for rows in places]
    for rows, answer in zip(places, ask(send, questions, now.scene.body_count), strict=True):
        if answer is not None:
            forces[rows] = answer["forces"]
    return forces


def read_contact_points(
    now: StepContext, weights: OverlapWeights, send: Send, numbers: Ids | None = None
) -> ContactPoints:
    """Of these bodies, or of all."""
    asked = {} if numbers is None else {"numbers": numbers}
    answers = _ask_all(now, weights, send, CONTACT_POINTS, asked)
    return ContactPoints.joined(ContactPoints(**answer) for answer in answers)


def read_contact_forces(now: StepContext, weights: OverlapWeights, send: Send, groups: Groups) -> Array:
    """Impulses that each first group had from its second one, (n, 6): linear, and about the world's origin."""
    what = "contacts.forces"
    first = [checked_numbers(now.scene, one, what) for one, _ in groups]
    second = [None if one is None else checked_numbers(now.scene, one, what) for _, one in groups]
    for one, other in zip(first, second, strict=True):
        for number in one[np.isin(one, other)] if other is not None else ():
            raise LapjointError(f"{what}: {number_title(now.scene, number)} is in both groups, expected one of them")
    asked: Arrays = {
        "group": _pairs(first),
        "others": _pairs([np.empty(0, np.int32) if one is None else one for one in second]),
        "has_others": np.array([one is not None for one in second], bool),
    }
    sums = np.zeros((len(first), 6))
    for answer in _ask_all(now, weights, send, CONTACT_FORCES, asked):
        sums += answer["sums"]
    return sums


def _ask_all(now: StepContext, weights: OverlapWeights, send: Send, what: str, asked: Arrays) -> list[Arrays]:
    """What all workers answer; each is told who reports contacts of the overlap."""
    bodies, count = weights.bodies, now.params.workers
    shared: Arrays = {"overlap": bodies, "weight": weights_in(now, weights, bodies)}
    questions = [Question(what, {**asked, **shared, "worker": np.array([worker])}) for worker in range(count)]
    return [answer for answer in ask(send, questions, now.scene.body_count) if answer is not None]


def answering(now: StepContext, weights: OverlapWeights, bodies_a: Ids, bodies_b: Ids) -> NDArray[np.int64]:
    """Which worker answers for the joint of each pair of bodies, of which b may be the world: of those that have both,
    the one of largest weight, and of several such the first, as for joints that break. Where none has both, they solve
    it together and have the same numbers: the first of them."""
    a = weights_in(now, weights, bodies_a)
    b = np.where((bodies_b >= 0)[:, None], weights_in(now, weights, bodies_b), np.inf)
    both = np.minimum(a, b)
    nobody = both.max(axis=1, initial=-1.0) < 0
    either = (a >= 0) | (np.isfinite(b) & (b >= 0))
    return np.asarray(np.where(nobody, np.argmax(either, axis=1), np.argmax(both, axis=1)))


def weights_in(now: StepContext, weights: OverlapWeights, bodies: Ids) -> Array:
    """The weight of each worker in each of these bodies in the last step, (n, workers), -1 where it did not have it."""
    known = now.commands.known[bodies]
    workers = np.arange(now.params.workers)
    has = np.zeros((len(bodies), len(workers)), bool)
    inside = workers[workers // WORD < known.shape[1]]
    has[:, inside] = (known[:, inside // WORD] >> (inside % WORD).astype(np.uint64)) & np.uint64(1)
    table = np.where(has, 1.0, -1.0)
    if len(weights.bodies):
        place = np.minimum(np.searchsorted(weights.bodies, bodies), len(weights.bodies) - 1)
        rows = np.flatnonzero(weights.bodies[place] == bodies)
        length = np.diff(weights.offset)[place[rows]]
        start = np.repeat(weights.offset[place[rows]] - (np.cumsum(length) - length), length)
        at = start + np.arange(length.sum())
        table[np.repeat(rows, length), weights.worker[at]] = weights.weight[at]
    return table


def checked_numbers(scene: LivingScene, numbers: ArrayLike, what: str) -> Ids:
    """Numbers of bodies, or -1 - s for the static body s, ascending, each once. Any other raises a LapjointError."""
    rows = np.unique(integer_rows("body", numbers, np.size(numbers), what)).astype(np.int32)
    for number in rows[rows < -scene.static_count]:
        raise LapjointError(
            f"{what}: static body {-1 - number} does not exist, the scene has {scene.static_count} static bodies"
        )
    checked_ids(scene, rows[rows >= 0], what)
    return rows


def number_title(scene: LivingScene, number: int) -> str:
    """How messages call a body, or the static body -1 - number."""
    return scene.body_title(number) if number >= 0 else f"static body {-1 - number}"


def _pairs(groups: Sequence[Ids]) -> Ids:
    """Rows of a number and which group it is of."""
    which = np.repeat(np.arange(len(groups), dtype=np.int32), [len(one) for one in groups])
    return np.stack([np.concatenate([np.empty(0, np.int32), *groups]), which], axis=1).astype(np.int32)
