"""Shared bodies: which bodies workers have besides their own, because they are near or jointed to their own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...algorithms import Membership
from ...algorithms.membership import WORD
from ...scene import WORLD, Scene
from ...workers.messages import Neighbours

Ids = NDArray[np.int32]
Keys = NDArray[np.int64]

MOST_WORKERS = 1024
MOST_WORK = 20_000
"""Products of blocks that it may take to solve for all bodies at the ends of a structure's joints between workers, if
the structure is to be solved at once: about a millisecond and a half. With two workers that is 39 such bodies each."""
MOST_WORK_PER_ROW = {"auto": 40, "direct": 200, "swept": 0}
"""Or so many for every row of the structure, if that is more: then a structure that one worker would solve at once is
no more work for several. A curtain of 20 x 19 balls takes 6.4 ms on one worker, 4.7, 5.4 and 7.1 on 2, 4 and 8; one of
60 x 59 with `joints` direct 250 ms on one, 150 on two. Swept, their gaps are 100 and 200 times as large."""
BLOCK_BYTES = 36 * 8 + 8
"""Of a block in a message, with its place."""
NOBODY = np.empty(0, np.int32)


class SharedBodies:
    """A body is a ghost in a worker that is not its owner and has, or may soon have, a constraint with it. Kept as
    keys: the body's number times MOST_WORKERS, plus the worker's."""

    def __init__(self, scene: Scene, joint_choice: str, room: int) -> None:
        """`joint_choice` is `joints` of Params; `room` is how many bytes a message between two workers can have."""
        joints = np.stack([scene.joints.body_a, scene.joints.body_b], axis=1)
        inner = joints[:, 1] != WORLD
        self._joints = joints[inner]
        row_counts = ((scene.joints.lower == 0) & (scene.joints.upper == 0)).sum(axis=1)
        self._locked = joints[inner & (row_counts > 0)]
        self._label = structure_labels(self._locked, scene.body_count)
        row_counts = np.bincount(self._label[joints[inner, 0]], row_counts[inner], scene.body_count)
        self._most_work = np.maximum(MOST_WORK, MOST_WORK_PER_ROW[joint_choice] * row_counts)  # by structures' labels
        self._room = room
        self.keys: Keys = np.empty(0, np.int64)
        """Ascending."""
        self._lists: tuple[Ids, list[Neighbours]] | None = None  # of the last choice, without these bodies

    def set_keys(self, keys: Keys) -> None:
        self.keys, self._lists = keys, None

    @property
    def bodies(self) -> Ids:
        """Bodies that several workers have, ascending."""
        return np.unique(self.keys // MOST_WORKERS).astype(np.int32)

    def choose(self, owner: Ids, near: Ids, removed: Ids) -> None:
        """Choose the ghosts between these owners: bodies that are jointed, and pairs of bodies that are near, without
        those that are out of all engines."""
        edges = np.concatenate([self._joints, near])
        edges = edges[~np.isin(edges, removed).any(axis=1)] if len(removed) else edges
        a, b = edges[owner[edges[:, 0]] != owner[edges[:, 1]]].astype(np.int64).T
        self.set_keys(np.unique(np.concatenate([a * MOST_WORKERS + owner[b], b * MOST_WORKERS + owner[a]])))

    def present(self, membership: Membership, removed: Ids) -> Membership:
        """Who has which bodies in its engine: owners, and those that have ghosts."""
        found = membership.copy()
        body, worker = self._without(removed)
        bits = np.uint64(1) << (worker % WORD).astype(np.uint64)
        np.bitwise_or.at(found.bits, (body, worker // WORD), bits)
        return found

    def neighbours(self, owner: Ids, worker_count: int, removed: Ids) -> list[Neighbours]:
        """For every worker, whom it shares bodies with, without those that are out of all engines."""
        if self._lists is None or len(self._lists[1]) != worker_count or not np.array_equal(self._lists[0], removed):
            self._lists = removed.copy(), self._make_lists(owner, worker_count, removed)
        return self._lists[1]

    def _make_lists(self, owner: Ids, worker_count: int, removed: Ids) -> list[Neighbours]:
        body, worker = self._without(removed)
        of = owner[body].astype(np.int64)
        order = np.lexsort((body, worker, of))
        links, ids = (of * MOST_WORKERS + worker)[order], body[order].astype(np.int32)

        def sent(sender: int, receiver: int) -> Ids:
            ends = np.searchsorted(links, sender * MOST_WORKERS + receiver + np.arange(2))
            return ids[ends[0] : ends[1]]

        turns, whole = _turns(body, of, worker), self._narrow(owner, removed)
        lists = []
        for w in range(worker_count):
            partners = sorted({sum(pair) - w for pair in turns if w in pair})
            border, ghosts = ([sent(w, p) for p in partners], [sent(p, w) for p in partners])
            lists.append(
                Neighbours(
                    np.array(partners, np.int32),
                    np.array([turns[min(w, p), max(w, p)] for p in partners], np.int32),
                    np.concatenate([NOBODY, *border]),
                    np.array([len(part) for part in border], np.int32),
                    np.concatenate([NOBODY, *ghosts]),
                    np.array([len(part) for part in ghosts], np.int32),
                    whole,
                )
            )
        return lists

    def _narrow(self, owner: Ids, removed: Ids) -> Ids:
        """Structures across workers, by their lowest bodies, with so few bodies at both ends of joints between workers
        that every worker can solve for these by itself, and that its part of all of them fits in a message."""
        across = self._locked[owner[self._locked[:, 0]] != owner[self._locked[:, 1]]]
        across = across[~np.isin(across, removed).any(axis=1)].astype(np.int64)
        if len(across) == 0:
            return NOBODY
        label = self._label[across[:, 0]].astype(np.int64)
        # Every worker of a joint has both its bodies in its part of the structure.
        parts = [np.stack([label, owner[across[:, w]], across[:, end]], axis=1) for w in range(2) for end in range(2)]
        bodies = np.unique(np.concatenate(parts), axis=0)
        pairs, width = np.unique(bodies[:, :2], axis=0, return_counts=True)
        labels, inverse = np.unique(pairs[:, 0], return_inverse=True)
        work = np.bincount(inverse, width**3 / 6)
        is_narrow = work <= self._most_work[labels]
        # A worker's part has blocks for its own of these bodies with each other, and for every joint and ghost.
        part = _places(bodies[:, :2], pairs)
        own = np.bincount(part, owner[bodies[:, 2]] == bodies[:, 1], len(pairs))
        ends = np.concatenate([np.stack([label, owner[across[:, end]]], axis=1) for end in range(2)])
        block_count = own * (own + 1) / 2 + (width - own) + np.bincount(_places(ends, pairs), minlength=len(pairs))
        size = BLOCK_BYTES * block_count + 8 * width
        sent = np.bincount(pairs[:, 1], size * is_narrow[inverse])
        if sent.max() > self._room:
            sent[:] = 0
            for i in np.flatnonzero(is_narrow).tolist():  # as many as there is room for
                mine = inverse == i
                after = sent[pairs[mine, 1]] + size[mine]
                is_narrow[i] = after.max() <= self._room
                if is_narrow[i]:
                    sent[pairs[mine, 1]] = after
        narrow: Ids = labels[is_narrow].astype(np.int32)
        return narrow

    def _without(self, removed: Ids) -> tuple[Keys, Keys]:
        body, worker = np.divmod(self.keys, MOST_WORKERS)
        kept = ~np.isin(body, removed)
        return body[kept], worker[kept]


def _places(pairs: Keys, known: Keys) -> NDArray[np.intp]:
    """Of pairs of a label and a worker, the places among those that are known, which are ascending."""
    return np.searchsorted(known[:, 0] * MOST_WORKERS + known[:, 1], pairs[:, 0] * MOST_WORKERS + pairs[:, 1])


def _turns(body: Keys, owner: Keys, worker: Keys) -> dict[tuple[int, int], int]:
    """A turn for every pair of workers that share bodies, as few as possible in order: pairs of one turn have no body
    in common. Bodies are ascending."""
    pair = np.minimum(owner, worker) * MOST_WORKERS + np.maximum(owner, worker)
    conflicts: set[tuple[int, int]] = set()
    lag = 1
    while lag < len(body) and (same := body[lag:] == body[:-lag]).any():
        found = np.unique(np.stack([pair[:-lag][same], pair[lag:][same]], axis=1), axis=0)
        conflicts |= {(a, b) for a, b in found.tolist()} | {(b, a) for a, b in found.tolist()}
        lag += 1
    turns: dict[int, int] = {}
    for one in np.unique(pair).tolist():
        taken = {turns[other] for a, other in conflicts if a == one and other in turns}
        turns[one] = next(turn for turn in range(len(taken) + 1) if turn not in taken)
    return {(one // MOST_WORKERS, one % MOST_WORKERS): turn for one, turn in turns.items()}


def structure_labels(joints: Ids, body_count: int) -> Ids:
    """The lowest body of the structure that each body is part of: bodies that joints tie together."""
    label = np.arange(body_count, dtype=np.int32)
    while True:
        low = label.copy()
        for one, other in ((0, 1), (1, 0)):
            np.minimum.at(low, joints[:, one], label[joints[:, other]])
        low = low[low]  # follow the labels' own labels
        if np.array_equal(low, label):
            return label
        label = low
