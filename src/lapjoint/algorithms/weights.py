"""Algorithm 5: the weights of the workers of an overlap body, by geodesics in the constraint graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .graph import ConstraintGraph
from .membership import Membership

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


def compute_weights(
    search_depth: int, graph: ConstraintGraph, membership: Membership, overlap: ArrayLike
) -> tuple[Ids, Ids, Array]:
    """Algorithm 5, ComputeWeights, for every body of `overlap`.

    Returns offset, worker and weight: the workers of the k-th overlap body are `worker[offset[k]:offset[k + 1]]`,
    ascending, and their convex weights are `weight` at the same places.
    """
    offset, worker, weight = [0], [], []
    for body in np.asarray(overlap).tolist():
        own = sorted(membership.workers(body))
        inverse = inverse_distances(body, search_depth, graph, membership)
        total = 0.0
        for w in own:  # not sum(): from Python 3.12 on it rounds in a way of its own, the native loop does not
            total += inverse[w]
        worker += own
        weight += [inverse[w] / total if total else 1.0 / len(own) for w in own]  # line 14
        offset.append(len(worker))
    return np.array(offset, np.int32), np.array(worker, np.int32), np.array(weight, np.float64)


def depth_weights(
    search_depth: int, graph: ConstraintGraph, membership: Membership, overlap: ArrayLike
) -> tuple[Ids, Ids, Array]:
    """Weights by how deep a body lies in each worker: its geodesic to the nearest body that the worker does not have.

    Between two workers that is Algorithm 5, where both have a body of their own within the search depth: the nearest
    body that worker 1 lacks is the nearest that worker 2 has alone, so w_1 = D_2 / (D_1 + D_2), the same as 1/D_1 over
    1/D_1 + 1/D_2. Among more, or where the overlap has left a worker no body of its own, Algorithm 5 gives a worker
    zero weight in the middle of its own bodies; depth does not. Beyond the search depth all is equally deep. Returns
    what compute_weights returns.
    """
    offset, worker, weight = [0], [], []
    for body in np.asarray(overlap).tolist():
        own = sorted(membership.workers(body))
        depth: dict[int, int] = {}
        for near, geodesic in graph.within(body, search_depth).items():  # nearest first
            for w in own:
                if w not in depth and not membership.has(near, w):
                    depth[w] = geodesic
        depths = [depth.get(w, search_depth + 1) for w in own]
        worker += own
        weight += [d / sum(depths) for d in depths]
        offset.append(len(worker))
    return np.array(offset, np.int32), np.array(worker, np.int32), np.array(weight, np.float64)


def inverse_distances(body: int, search_depth: int, graph: ConstraintGraph, membership: Membership) -> dict[int, float]:
    """1 / D(o, i) of Eq. 16 for each worker i of the body; 0 where no body of i alone is within the search depth."""
    own = membership.workers(body)
    inverse = dict.fromkeys(own, 0.0)  # line 2
    for near, geodesic in graph.within(body, search_depth).items():  # lines 4 to 6, nearest first
        workers = membership.workers(near)
        if len(workers) == 1 and workers <= own:  # line 7
            (worker,) = workers
            if inverse[worker] == 0.0 and geodesic > 0:  # the nearest counts
                inverse[worker] = 1.0 / geodesic  # line 8
    return inverse
