"""InterfaceErrors: penetration and joint gaps at interfaces beside those inside workers, in the same run.

What one engine would have is not known without running it. But inside a worker, away from its interfaces, one engine is
all there is: the errors there stand for it. They are compared by their root mean squares, for the largest one of all
may be that of the same blow on both sides. Times the error inside, over 500 steps of 2 to 5 ms:

| scene, workers | blend | tight |
|---|---|---|
| building of 2,408 and of 300, 2 | 16, 13 | 2.0, 2.6 |
| bowl of 600, 2 and 4 | 4.4, 4.9 | 0.9 |
| joints of the chain, 2 | 4.4 | 0.3 |
| joints of the bridge, 2 | 0.8 | 0.3 |

In sum, the blended buildings have 7 and 10 times the penetration of the tight ones, the bowl twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import WorkerError
from ..simulation import Simulation
from .means import Measured

EVERY = 25
"""Steps from one look to the next: a mean over few of the steps is as good, and leaves workers to themselves."""
TIMES = 3.0
"""From so many times the error inside workers on, the one at interfaces is reported."""
LEAST_SHARE = 1e-3
"""Of the typical body's size: a smaller error is not reported, however many times another it is."""


class InterfaceErrors:
    """Penetrations and joint gaps at interfaces and inside workers: root mean squares, and of those the mean over the
    steps looked at.

    A contact or a joint is at an interface where one of its bodies is: with blend a body of the overlap, with tight
    coupling one with a constraint to a body of another worker.
    """

    def __init__(self) -> None:
        self._found = Measured()
        self._count = 0

    @property
    def most_steps(self) -> int:
        """How many steps there are up to the next look."""
        return 1 + -self._count % EVERY

    def after_step(self, simulation: Simulation) -> None:
        """Look at the step just taken, if it is one to look at."""
        self._count += simulation.profile.steps
        if (self._count - 1) % EVERY:
            return
        at = np.zeros(simulation.scene.body_count + 1, bool)  # the last row stands for all that is static
        at[simulation.workers.overlap] = at[simulation.workers.interface] = True
        if not at.any():
            return
        try:
            contacts = simulation.contacts.pairs()
        except WorkerError:  # a worker is gone, and its contacts with it: it is replaced in the next step
            return
        joints = simulation.scene.joints
        is_at = at[contacts.bodies[:, 0]] | at[np.maximum(contacts.bodies[:, 1], -1)]
        self._add("penetration", np.maximum(contacts.depth, 0.0), is_at)
        holds = simulation.scene.joint_alive
        if holds.any():
            is_at = at[joints.body_a[holds]] | at[joints.body_b[holds]]
            self._add("joint_gap", simulation.joints.gaps()[holds], is_at)

    def _add(self, name: str, values: NDArray[np.float64], is_at: NDArray[np.bool_]) -> None:
        if is_at.any() and not is_at.all():
            self._found.add({f"{name}_interface": _rms(values[is_at]), f"{name}_interior": _rms(values[~is_at])})

    def values(self) -> dict[str, Any]:
        """Means, by the names that a summary has for them; None where there was nothing to compare."""
        names = [f"{what}_{where}" for what in ("penetration", "joint_gap") for where in ("interface", "interior")]
        return {name: self._found.mean(name) for name in names}


def _rms(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(values**2)))


@dataclass(frozen=True)
class Excess:
    """An error that is many times larger at interfaces than inside workers."""

    what: str
    interface: float
    interior: float

    @property
    def times(self) -> float:
        return self.interface / self.interior if self.interior else float("inf")


def excess(what: str, interface: float | None, interior: float | None, length_unit: float) -> Excess | None:
    """The error at interfaces, where it is many times the one inside workers [m]; else None."""
    if interface is None or interior is None:
        return None
    found = Excess(what, interface, interior)
    return found if interface > LEAST_SHARE * length_unit and found.times >= TIMES else None
