"""The contacts of the scene as it starts. Workers find them; the server has no engine of all bodies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Algorithms, Membership
from ..algorithms.ownership import owners
from ..engines import Contacts
from ..params import Params
from ..scene import Scene
from ..workers.engine_states import Send
from ..workers.questions import Question, ask
from ..workers.start_contacts import START_CONTACTS, contacts_in
from .detect import contact_margin, looks_ahead

Array = NDArray[np.float64]


def find_start_contacts(
    scene: Scene,
    params: Params,
    algorithms: Algorithms,
    membership: Membership,
    states: NDArray[np.float64],
    send: Send,
) -> Contacts:
    """Those that one engine with all bodies finds in these states, while every body has one worker. The server looks
    for pairs between workers that may touch; the first body's worker takes the second one in as a guest."""
    pairs, owner = np.empty((0, 2), np.int32), owners(membership)
    if membership.worker_count > 1:
        finder = algorithms.PairFinder(scene, contact_margin(params), looks_ahead(params))
        pairs = finder.find(states, membership)
    questions = []
    for worker in range(membership.worker_count):
        guests = np.unique(pairs[owner[pairs[:, 0]] == worker, 1])
        bodies = np.union1d(membership.active(worker), guests).astype(np.int32)
        questions.append(Question(START_CONTACTS, {"bodies": bodies, "guests": guests}, activate=bodies))
    answers = ask(send, questions, scene.body_count)
    return _in_order([contacts_in(answer) for answer in answers if answer is not None])


def _in_order(lists: Sequence[Contacts]) -> Contacts:
    """Lists of contacts as one, in the order of one engine's: static bodies come after all others."""
    columns = [[one.bodies, one.point_count, one.depth] for one in lists]
    bodies, points, depth = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    a, b = bodies.T.astype(np.int64)
    order = np.argsort(a << 32 | np.where(b >= 0, b, (1 << 31) - b), kind="stable")
    return Contacts(bodies[order], points[order], depth[order])
