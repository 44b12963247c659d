"""How a drive, alone on its axis, goes on within a substep: exactly where substeps show it, implicitly where they do
not.

The drive pulls with stiffness * (position - q) + damping * (velocity - dq/dt). `inertia` is by how much an impulse
changes the axis' velocity, with the joint's locked axes held. docs/driving.md says why there are three ways.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

FASTEST = 0.25
"""Frequency, and half the decay rate, times the substep: up to here a drive is followed exactly."""
STIFFEST = 0.5
"""Of a swept drive that is faster: by how much of what it is out it comes back in a substep, at most."""


@dataclass(frozen=True)
class DriveResponse:
    """A drive in substeps of length `h` [s]."""

    stiffness: float
    damping: float
    inertia: float
    h: float

    @property
    def is_exact(self) -> bool:
        return max(self._omega, self._decay) <= FASTEST

    def velocity(self, before: float, free: float, out: float, target: float, direct: bool) -> float:
        """The axis' velocity at the end of a substep, if the drive can do as much as that takes. `before` is the one at
        its begin, `free` what it would be without the drive, `out` how far its position is from the target, `target`
        the velocity it should have. `direct`: its joint is solved with its structure."""
        k, c, h, inertia = self.stiffness, self.damping, self.h, self.inertia
        if not self.is_exact and direct:  # the force for position and velocity at the end of the substep
            return (free - inertia * h * (k * out - c * target)) / (1 + inertia * h * (h * k + c))
        if self.is_exact:  # an oscillator's own motion, and as much of a load as lets it give way as it should
            kept, back = self._motion()
            load_share = back / self._omega**2 if k > 0 else (1 - kept) / (2 * self._decay)
            gain = 2 * self._decay * load_share
        else:  # the force at the end, from half of what others change
            kept = 1 / (1 + 2 * self._decay + self._omega**2)
            load_share = 0.5 * (1 + kept)
            back, gain = min(load_share * self._omega**2, STIFFEST), 2 * self._decay * kept
        return load_share * (free - before) + kept * before - back / h * out + gain * target

    @property
    def _omega(self) -> float:
        """rad in a substep, without damping."""
        return math.sqrt(self.stiffness * self.inertia) * self.h

    @property
    def _decay(self) -> float:
        return 0.5 * self.damping * self.inertia * self.h

    def _motion(self) -> tuple[float, float]:
        """A free oscillator over a substep: share of the velocity that is kept, and share of what it is out that it
        comes back by; with both, its frequency and decay are its own."""
        root = math.sqrt(abs(self._omega**2 - self._decay**2))
        swing = math.cos(root) if self._omega > self._decay else math.cosh(root)
        return math.exp(-2 * self._decay), 1 + math.exp(-2 * self._decay) - 2 * math.exp(-self._decay) * swing
