"""Algorithm 4: the weighted mean of the workers' states of an overlap body."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def blend(offset: ArrayLike, weight: ArrayLike, worker_states: ArrayLike, bodies: ArrayLike, states: Array) -> None:
    """Blend for every overlap body: rows `offset[k]:offset[k + 1]` of `worker_states` are the states of the body
    `bodies[k]` in its workers, `weight` their convex weights. The result goes into its row of `states`."""
    starts, weights, rows = np.asarray(offset).tolist(), np.asarray(weight), np.asarray(worker_states, float)
    for k, body in enumerate(np.asarray(bodies).tolist()):
        begin, end = starts[k], starts[k + 1]
        first = rows[begin, 3:7]
        blended = np.zeros(13)
        for w, state in zip(weights[begin:end], rows[begin:end], strict=True):  # line 3
            blended[:3] += w * state[:3]  # line 4
            blended[7:10] += w * state[7:10]  # line 5
            blended[10:13] += w * state[10:13]  # line 6
            same_side = state[3:7] @ first >= 0  # line 7: q and -q are one rotation; compared with the first
            blended[3:7] += w * (state[3:7] if same_side else -state[3:7])  # lines 8 to 10
        q = blended[3:7].tolist()
        blended[3:7] /= math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])  # line 12
        states[body] = blended
