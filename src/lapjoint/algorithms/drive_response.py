"""How a drive, alone on its axis, goes on within a substep: exactly where substeps show it, implicitly where they
do not.

The drive pulls with stiffness * (position - q) + damping * (velocity - dq/dt) on what resists with 1 / `inertia`; this
`inertia` is by how much an impulse changes the axis' velocity, with the joint's locked axes held. docs/driving.md says
why there are two ways.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

FASTEST = 0.25
"""Frequency, and half the decay rate, times the substep: up to here a drive is followed exactly."""

MOST_TURN = 0.1
"""rad that an implicit one may turn bodies by in a substep to get where it should be: beyond, what is held at a
distance is not where it was thought to be."""


@dataclass(frozen=True)
class DriveResponse:
    """Coefficients for one substep of length `h` [s]."""

    stiffness: float
    damping: float
    inertia: float
    h: float
    is_angular: bool = False

    @property
    def is_exact(self) -> bool:
        omega, decay = math.sqrt(self.stiffness * self.inertia), 0.5 * self.damping * self.inertia
        return max(omega, decay) * self.h <= FASTEST

    def impulse(self, before: float, free: float, out: float, velocity: float, last: float = 0.0) -> float:
        """What the drive does in the substep, unless that is more than it can. `before` is the axis' velocity at the
        end of the last substep, `free` what it would be at the end of this one without the drive, `out` how far its
        position is from the target as the substep begins, `last` what it did in the last one."""
        h, inertia = self.h, self.inertia
        if not self.is_exact:  # the force at the end of the substep, for the velocity and position then
            softness = h * (h * self.stiffness + self.damping)
            scale = 1 / (1 + softness * inertia)
            back = scale * h * self.stiffness * out
            if self.is_angular:  # no more than bodies may turn by at once, besides what holds a load
                most = MOST_TURN / (h * inertia)
                back = min(max(back, -scale * last - most), -scale * last + most)
            return scale * (h * self.damping * velocity - softness * free) - back
        kept, back = self._motion()
        decay = self.damping * inertia * h
        load_share = back / (self.stiffness * inertia * h) if self.stiffness > 0 else (1 - kept) / decay
        # So much of what others change, that it gives way to a load as far as it should.
        after = load_share * (free - before) + kept * before - back * out + decay * load_share * velocity
        return (after - free) / inertia

    def _motion(self) -> tuple[float, float]:
        """A free oscillator over a substep: share of the velocity that is kept, and velocity [1/s] that being out by
        one gives back; with both, its frequency and decay are its own."""
        omega, decay = math.sqrt(self.stiffness * self.inertia) * self.h, 0.5 * self.damping * self.inertia * self.h
        root = math.sqrt(abs(omega**2 - decay**2))
        swing = math.cos(root) if omega > decay else math.cosh(root)
        return math.exp(-2 * decay), (1 + math.exp(-2 * decay) - 2 * math.exp(-decay) * swing) / self.h
