"""The partition of a scene: exactly one worker per body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Membership
from ..errors import LapjointError, did_you_mean
from ..params.partition_choice import PartitionLike, checked_partition
from ..scene import WORLD, Scene
from ..system.files import read_text, write_file
from .hilbert import hilbert_keys

Ids = NDArray[np.int32]
MOST_FOR_METIS = 4_000_000
"""Bodies: METIS takes about 4 microseconds and 400 bytes for each, so a quarter of a minute for these. The curve takes
0.7 microseconds, and as few pairs of neighbours are between its parts in a grid of a million; it knows no joints."""


def make_partition(scene: Scene, worker_count: int, kind: PartitionLike = "auto", own: Sequence[int] = ()) -> Ids:
    """The worker of each body. `kind` is auto, one of KINDS, the path of a partition file, or the partition itself: a
    worker for each body. With auto and labels, each label in `own` has a worker to itself if there are enough."""
    if worker_count > max(scene.body_count, 1):
        raise LapjointError(f"{worker_count} workers for {scene.body_count} bodies: expected at most one per body")
    if worker_count == 1:
        return np.zeros(scene.body_count, np.int32)
    if not isinstance(kind, str):
        return check_partition("partition", np.array(checked_partition(kind), np.int64), scene, worker_count)
    if own and kind in ("auto", "labels"):
        return set_apart(scene, worker_count, own)
    if kind == "auto":
        without = "metis" if has_metis(scene.body_count) else "curve"
        kind = "labels" if len(np.unique(scene.bodies.label)) > 1 else without
    if kind in KINDS:
        return KINDS[kind](scene, worker_count)
    if is_file(kind):
        return read_partition(Path(kind), scene, worker_count)
    hint = did_you_mean(kind, ("auto", *KINDS))
    raise LapjointError(f"no partition named {kind!r}{hint}; known: auto, {', '.join(KINDS)}, or a file")


def equal(scene: Scene, worker_count: int) -> Ids:
    """The list of bodies cut into runs of equal length."""
    return (np.arange(scene.body_count) * worker_count // max(scene.body_count, 1)).astype(np.int32)


def labels(scene: Scene, worker_count: int) -> Ids:
    """Bodies of a label stay together where there are enough labels; consecutive labels share a worker."""
    order = np.argsort(scene.bodies.label, kind="stable")
    sorted_labels = scene.bodies.label[order]
    count = scene.body_count
    cuts = np.arange(1, worker_count) * count / worker_count
    # Move each cut to the nearest change of label, unless that would leave a worker with next to nothing.
    changes = np.flatnonzero(np.diff(sorted_labels)) + 1
    if len(changes):
        nearest = changes[np.argmin(np.abs(changes[:, None] - cuts), axis=0)]
        cuts = np.where(np.abs(nearest - cuts) < count / worker_count / 2, nearest, np.round(cuts))
    partition = np.empty(count, np.int32)
    partition[order] = np.searchsorted(np.sort(cuts), np.arange(count), side="right")
    return partition


def set_apart(scene: Scene, worker_count: int, own: Sequence[int]) -> Ids:
    """One worker for each of these labels, the last ones; the rest is cut into boxes for the others."""
    known = [label for label in sorted(set(own)) if (scene.bodies.label == label).any()]
    partition = np.full(scene.body_count, -1, np.int32)
    for number, label in enumerate(known):
        partition[scene.bodies.label == label] = worker_count - len(known) + number
    rest = np.flatnonzero(partition < 0)
    others = worker_count - len(known)
    if not (1 <= others <= len(rest) or (others == 0 and not len(rest))):
        return labels(scene, worker_count)
    if others:
        partition[rest] = _boxes(scene.bodies.position[rest], others)
    return partition


def boxes(scene: Scene, worker_count: int) -> Ids:
    """Compact boxes of equal body count: the longest side is cut again and again."""
    return _boxes(scene.bodies.position, worker_count)


def _boxes(position: NDArray[np.float64], worker_count: int) -> Ids:
    partition = np.zeros(len(position), np.int32)

    def cut(bodies: NDArray[np.intp], first: int, count: int) -> None:
        if count == 1:
            partition[bodies] = first
            return
        axis = int(np.argmax(np.ptp(position[bodies], axis=0)))
        order = bodies[np.argsort(position[bodies, axis], kind="stable")]
        left = count // 2
        middle = len(bodies) * left // count
        cut(order[:middle], first, left)
        cut(order[middle:], first + left, count - left)

    cut(np.arange(len(position)), 0, worker_count)
    return partition


def curve(scene: Scene, worker_count: int) -> Ids:
    """Runs of equal length along Hilbert's curve through the bodies: compact, and no graph is needed."""
    return _runs(scene.bodies.position, np.ones(scene.body_count), np.full(worker_count, 1 / worker_count))


def _runs(position: NDArray[np.float64], cost: NDArray[Any], shares: NDArray[np.float64]) -> Ids:
    """Runs along the curve whose costs are as these shares, if that leaves a body for each; else as their lengths."""
    order, partition = np.argsort(hilbert_keys(position), kind="stable"), np.empty(len(position), np.int32)
    for own in (cost[order].astype(float), np.ones(len(order))):
        middle, ends = np.cumsum(own) - own / 2, np.cumsum(shares)[:-1] * own.sum()
        partition[order] = np.searchsorted(ends, middle, side="right")
        if len(np.unique(partition)) == len(shares):
            return partition
    partition[order] = np.arange(len(order)) * len(shares) // len(order)
    return partition


def has_metis(body_count: int) -> bool:
    """Whether METIS is there, and so many bodies are not too many for it."""
    return body_count <= MOST_FOR_METIS and find_spec("pymetis") is not None


def metis(scene: Scene, worker_count: int) -> Ids:
    """METIS over joints and proximity: few edges between workers, equal body counts."""
    if find_spec("pymetis") is None:
        raise LapjointError("partition metis needs the package pymetis, which is not installed, expected auto or curve")
    partition = _metis(scene, scene.bodies.position, worker_count)
    # With only a few bodies for each worker, METIS may leave some without any.
    return partition if len(np.unique(partition)) == worker_count else boxes(scene, worker_count)


def repartition(
    scene: Scene, states: NDArray[np.float64], contacts: Ids, membership: Membership, worker_count: int | None = None
) -> Ids:
    """METIS over joints, contacts and proximity as they are now, with equal loads, or runs along a curve where it is
    not there or too slow; a slower worker gets less. Of all ways to hand out the parts to workers of equal speed, the
    one that leaves most bodies where they are. There may be fewer parts than workers: the last ones get none."""

    from scipy.optimize import linear_sum_assignment

    count = membership.worker_count if worker_count is None else worker_count
    speed = 1.0 / membership.rate[:count]
    if count == 1:
        return np.zeros(membership.body_count, np.int32)
    there = np.flatnonzero(membership.bits.any(axis=1)).astype(np.int32)
    cost = membership.cost[there]
    partition = np.zeros(membership.body_count, np.int32)  # also of bodies that were removed, which have none
    if len(there) <= count:
        partition[there] = np.arange(len(there))
        return partition
    if has_metis(len(there)):
        parts = _metis(scene, states[:, :3], count, contacts, cost, speed / speed.sum(), there)
    else:
        parts = _runs(states[there, :3], cost, speed / speed.sum())
    kept = np.zeros((count, count))
    for w in range(count):
        has = membership.column(w)[there]
        kept[:, w] = np.bincount(parts[has], cost[has], minlength=count)
    # A part made for one speed does not fit a worker of another: no number of kept bodies makes up for it.
    unlike = np.abs(np.log(speed[:, None] / speed)) * cost.sum()
    part, worker = linear_sum_assignment(unlike - kept)
    partition[there] = worker[np.argsort(part)][parts]
    return partition


def _metis(
    scene: Scene,
    position: NDArray[np.float64],
    worker_count: int,
    contacts: Ids | None = None,
    cost: NDArray[np.int64] | None = None,
    shares: NDArray[np.float64] | None = None,
    bodies: Ids | None = None,
) -> Ids:
    """The parts of all bodies, or of these, ascending, which are all that are there."""
    import pymetis

    bodies = np.arange(scene.body_count, dtype=np.int32) if bodies is None else bodies
    pairs, count = proximity_pairs(scene, position, bodies), len(bodies)
    joints = scene.joints
    inner = (joints.body_b != WORLD) & scene.joint_alive
    # A joint is always there, a contact only maybe: cutting a joint costs as much as cutting four neighbours.
    jointed = np.stack([joints.body_a[inner], joints.body_b[inner]], axis=1)
    lists = [jointed] * 4 if contacts is None else [*[jointed] * 4, *[contacts] * 2]
    edges = np.concatenate([pairs, *(np.searchsorted(bodies, ends) for ends in lists)])
    ends = np.concatenate([edges, edges[:, ::-1]])
    keys, weight = np.unique(ends[:, 0].astype(np.int64) * count + ends[:, 1], return_counts=True)
    start = np.searchsorted(keys, np.arange(count + 1, dtype=np.int64) * count)
    graph = pymetis.CSRAdjacency(start, keys % count)
    _, parts = pymetis.part_graph(
        worker_count,
        graph,
        vweights=None if cost is None else np.maximum(1, cost * 1000 // max(int(cost.max()), 1)),
        eweights=weight,
        tpwgts=None if shares is None else shares.tolist(),
        recursive=worker_count <= 8,
    )
    return np.asarray(parts, np.int32)


def proximity_pairs(scene: Scene, position: NDArray[np.float64], bodies: Ids) -> Ids:
    """Pairs of these bodies whose bounding spheres nearly touch, (n, 2), by their places in the list."""
    from scipy.spatial import cKDTree

    radii = scene.bounding_radii()[bodies]
    reach = 2.2 * float(np.median(radii)) if len(radii) else 0.0
    pairs = cKDTree(position[bodies]).query_pairs(reach, output_type="ndarray")
    return np.asarray(pairs, np.int32).reshape(-1, 2)


MOST_BYTES = 1 << 30
"""Of a partition in a file: a line of a few bytes for each body."""

KINDS: dict[str, Callable[[Scene, int], Ids]] = {
    "labels": labels,
    "metis": metis,
    "curve": curve,
    "boxes": boxes,
    "equal": equal,
}


def is_file(kind: str) -> bool:
    """Whether a partition is one in a file, by its name."""
    return kind not in ("auto", *KINDS) and bool(Path(kind).suffix or Path(kind).exists())


def worker_count_of_file(path: Path) -> int:
    """For how many workers the partition in a file is made; what is no number is left to `read_partition`."""
    return max((int(text) for text in _read_lines(path) if text.isdecimal()), default=0) + 1


def _read_lines(path: Path) -> list[str]:
    return read_text(path, MOST_BYTES).split()


def read_partition(path: Path, scene: Scene, worker_count: int) -> Ids:
    """A text file with one worker number per line, one line per body."""
    lines = _read_lines(path)
    for row, text in enumerate(lines):
        if not text.isdecimal() or int(text) >= worker_count:
            title = scene.body_title(row) if row < scene.body_count else f"line {row + 1}"
            raise LapjointError(f"{path}: {title} goes to worker {text!r}, expected 0 to {worker_count - 1}")
    return check_partition(str(path), np.array(lines, np.int64), scene, worker_count)


def check_partition(title: str, partition: NDArray[np.integer[Any]], scene: Scene, worker_count: int) -> Ids:
    """The partition, if it has one worker for each body and a body for the last worker: otherwise it was made for
    another scene or another number of workers."""
    if len(partition) != scene.body_count:
        raise LapjointError(f"{title}: {len(partition)} numbers for {scene.body_count} bodies, expected one per body")
    for row in np.flatnonzero((partition < 0) | (partition >= worker_count)):
        body, worker = scene.body_title(int(row)), partition[row]
        raise LapjointError(f"{title}: {body} goes to worker {worker}, expected 0 to {worker_count - 1}")
    made_for = int(partition.max()) + 1
    if made_for != worker_count:
        of = f"{made_for} worker" + "s" * (made_for > 1)
        raise LapjointError(f"{title}: is a partition for {of}, but workers is {worker_count}, expected {made_for}")
    return partition.astype(np.int32)


def write_partition(path: Path, partition: Ids) -> None:
    """Write a file that read_partition takes."""
    write_file(path, "".join(f"{worker}\n" for worker in partition.tolist()))
