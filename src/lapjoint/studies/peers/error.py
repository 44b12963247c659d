"""The error of states, measured by lapjoint in the same way for every engine."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from ...engines.exact import exact_contacts
from ...scene import Scene
from ...scene.measures import joint_gaps
from .base import Array

SUM_ALLOWANCE, MAX_ALLOWANCE = 0.1, 1.0
"""How much larger an error may be and still be called equal, as a share of the other's penetration and gap together. A
chaotic scene is never the same twice, and the largest of thousands of contacts is one of them, by chance. Together, for
where there are gaps of metres, micrometres of penetration do not count."""


@dataclass(frozen=True)
class StateError:
    """How wrong states are [m]. All of it is infinite where a state is not finite."""

    penetration_max: float
    penetration_sum: float
    """Over touching pairs, of the depth of each one's deepest point."""
    joint_gap_max: float
    joint_gap_sum: float

    def is_within(self, other: StateError) -> bool:
        """Whether none of the four is larger than the other's, but for the allowances."""
        sums = SUM_ALLOWANCE * (other.penetration_sum + other.joint_gap_sum)
        largest = MAX_ALLOWANCE * max(other.penetration_max, other.joint_gap_max)
        spare = (largest, sums, largest, sums)
        return all(mine <= theirs + more for mine, theirs, more in zip(self.values, other.values, spare, strict=True))

    @property
    def values(self) -> tuple[float, float, float, float]:
        return self.penetration_max, self.penetration_sum, self.joint_gap_max, self.joint_gap_sum


def state_error(scene: Scene, states: Array) -> StateError:
    """Contacts by exact shapes in float64, whatever the engine took for one, and the gaps of the joints."""
    if not np.isfinite(states).all():
        return StateError(inf, inf, inf, inf)
    depth = np.maximum(exact_contacts(scene, states).depth, 0.0)
    gaps = joint_gaps(scene, states)
    sums = float(depth.sum()), float(gaps.sum())
    return StateError(float(depth.max(initial=0.0)), sums[0], float(gaps.max(initial=0.0)), sums[1])
