"""InterfaceErrors: penetration and joint gaps at interfaces beside those inside workers, in the same run.

What one engine would have is not known without running it. But inside a worker, away from its interfaces, one engine is
all there is: the largest error there stands for it. On the bowl with 600 balls and 50 iterations that is 1.6 mm with
one, two or four workers; on the bridge 0.77 mm in one engine and 0.81 mm inside two blended workers. At interfaces the
same runs have 2.2 mm and 1.2 mm: hardly more. A blended building has 7.7 mm there and 1.5 mm inside, the plank 2.0 mm
and 0.4 mm: several times as much, and tight coupling takes it away (1.8 mm and 1.1 mm on the building).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..scene.measures import joint_gaps
from ..simulation import Simulation
from .means import Measured

EVERY = 5
"""Steps from one look to the next: a mean over a fifth of the steps is as good, and costs a fifth."""
TIMES = 3.0
"""From so many times the error inside workers on, the one at interfaces is reported. Between runs that look alike
the ratio is 0.3 to 1.6."""
LEAST_SHARE = 1e-3
"""Of the typical body's size: a smaller error is not reported, however many times another it is."""


class InterfaceErrors:
    """Largest penetration and joint gap at interfaces and inside workers: the mean over the steps looked at.

    A contact or a joint is at an interface where one of its bodies is: with blend a body of the overlap, with tight
    coupling one with a constraint to a body of another worker.
    """

    def __init__(self) -> None:
        self._found = Measured()
        self._count = 0

    def after_step(self, simulation: Simulation) -> None:
        """Look at the step just taken, if it is one to look at."""
        self._count += 1
        if (self._count - 1) % EVERY:
            return
        at = np.zeros(simulation.scene.body_count + 1, bool)  # the last row stands for all that is static
        at[simulation.overlap] = at[simulation.interface] = True
        if not at.any():
            return
        contacts, joints = simulation.contacts(), simulation.scene.joints
        is_at = at[contacts.bodies[:, 0]] | at[np.maximum(contacts.bodies[:, 1], -1)]
        self._add("penetration", np.maximum(contacts.depth, 0.0), is_at)
        if simulation.scene.joint_count:
            gaps = joint_gaps(simulation.scene, simulation.states)
            self._add("joint_gap", gaps, at[joints.body_a] | at[joints.body_b])

    def _add(self, name: str, values: NDArray[np.float64], is_at: NDArray[np.bool_]) -> None:
        if is_at.any() and not is_at.all():
            self._found.add({f"{name}_interface": values[is_at].max(), f"{name}_interior": values[~is_at].max()})

    def values(self) -> dict[str, Any]:
        """Means, by the names that a summary has for them; None where there was nothing to compare."""
        names = [f"{what}_{where}" for what in ("penetration", "joint_gap") for where in ("interface", "interior")]
        return {name: self._found.mean(name) for name in names}


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
