"""Loads: estimates of what the workers' shares take, and when they are so uneven that a repartition pays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Membership
from ..arrays.state import PartState
from ..params import Params
from ..scene import WORLD, Scene
from ..workers.messages import StepReply

BODY, CONTACT, POINT_SWEEP, JOINT_SWEEP = 1000, 600, 7, 27
"""What a step takes for a body, for each end of a contact, and for each end of a contact point and of a joint in each
sweep of the solver, in about 1.3 nanoseconds: measured on bowl, building and two-way bridge, rounded."""
UNIT_MS = 1.3e-6
BODY_MS = 5e-3
"""What that is, and roughly what a body takes with its contacts and joints at 25 sweeps, where only bodies count."""
ESTIMATE_EVERY = 10
"""Steps between two counts of contacts, where shares are looked at in every step."""
SMOOTHING = 0.05
"""Of a new measured time: twenty steps or so decide."""
PATIENCE = 200
"""Steps between two repartitions, at least: one costs about a step."""
LOOK_EVERY = 20
"""Steps between two looks at the shares."""
WIDER, WIDER_BY = 1.5, 0.05
"""An overlap is too wide that duplicates so many times what it did after the last repartition, and so much more."""


class Loads:
    """Sets the costs and rates of a membership, by the kind of load that `params.load` names."""

    def __init__(self, scene: Scene, params: Params) -> None:
        self._scene = scene
        self._joint_count: NDArray[np.int64] | None = None  # of each body
        self._kind = params.load
        self._threshold = params.repartition
        self._cpu_ms: NDArray[np.float64] | None = None
        self._last_repartition = 0
        self._duplicated = 0.0

    def note_changes(self) -> None:
        """Bodies or joints of the scene have come or gone."""
        self._joint_count = None

    def _joint_counts(self) -> NDArray[np.int64]:
        if self._joint_count is None:
            joints, holds = self._scene.joints, self._scene.joint_alive
            a, b = joints.body_a[holds], joints.body_b[holds]
            self._joint_count = np.bincount(np.concatenate([a, b[b != WORLD]]), minlength=self._scene.body_count)
        return self._joint_count

    def measure(self, worker_cpu_ms: NDArray[np.float64], steps: int = 1) -> None:
        """Add a step's CPU times to the measured ones, or the means of several."""
        if self._cpu_ms is None or len(self._cpu_ms) != len(worker_cpu_ms):
            self._cpu_ms = worker_cpu_ms.copy()
        self._cpu_ms += (1 - (1 - SMOOTHING) ** steps) * (worker_cpu_ms - self._cpu_ms)

    def estimate(self, membership: Membership, replies: Sequence[StepReply], sweeps: int) -> None:
        """Estimate the membership's loads from the contacts that the workers found in the last step."""
        if self._kind == "bodies":
            return
        contacts, points = (np.zeros(membership.body_count) for _ in range(2))
        for reply in replies:
            for end in reply.contacts.bodies.T:
                body = end[end >= 0]  # the rest are static
                contacts += np.bincount(body, minlength=membership.body_count)
                points += np.bincount(body, reply.contacts.point_count[end >= 0], membership.body_count)
        several = np.maximum(membership.worker_counts(), 1)  # which report the same contacts
        swept = sweeps * (POINT_SWEEP * points / several + JOINT_SWEEP * self._joint_counts())
        membership.set_costs(BODY + CONTACT * contacts / several + swept)
        if self._kind == "time" and self._cpu_ms is not None and len(self._cpu_ms) == membership.worker_count:
            membership.set_costs(membership.cost, np.maximum(1, 1e9 * self._cpu_ms / np.maximum(membership.load, 1)))

    def step_ms(self, membership: Membership) -> float:
        """What the workers' steps take together [ms]: as measured, or, for reproducible results, as
        estimated by their loads, with bodies in the overlap counted once."""
        if self._kind == "time":
            return 0.0 if self._cpu_ms is None else float(self._cpu_ms.sum())
        cost = membership.cost[membership.bits.any(axis=1)].sum()
        return float(cost) * (BODY_MS if self._kind == "bodies" else UNIT_MS)

    def has_waited(self, step_count: int) -> bool:
        """Whether the last repartition is so long ago that there may be another."""
        return bool(self._threshold) and step_count - self._last_repartition >= PATIENCE

    def has_just_begun(self, step_count: int) -> bool:
        """Whether shares are to be compared with those of now: before the first step, and one step after a repartition,
        which may not have known the contacts that there are now."""
        return step_count == 0 or step_count == self._last_repartition + 1

    def next_look(self, step_count: int, wanted: int) -> int:
        """The next step after this one to look at the shares in: the one that is wanted, or earlier, as soon as there
        may be another repartition."""
        soonest = self._last_repartition + PATIENCE
        return min(wanted, soonest) if self._threshold and soonest > step_count else wanted

    def is_time_to_look(self, step_count: int) -> bool:
        """Whether a look at the shares is due, where one is taken every so many steps."""
        return self.has_waited(step_count) and (step_count - self._last_repartition) % LOOK_EVERY == 0

    @property
    def may_migrate(self) -> bool:
        """Whether bodies may change workers at all."""
        return bool(self._threshold)

    def are_uneven(self, membership: Membership, share: float | None = None) -> bool:
        """Whether a repartition pays. `share` is what grows with interfaces: the duplicated share, unless something
        else is given."""
        load = membership.load
        share = self.duplicated_share(membership) if share is None else share
        wide = share > WIDER * self._duplicated + WIDER_BY
        return wide or bool(load.max() > self._threshold * load.mean())

    def note_repartition(self, membership: Membership, step_count: int, share: float | None = None) -> None:
        """Set the shares of now as those that later ones are compared with."""
        self._last_repartition = step_count
        self._duplicated = self.duplicated_share(membership) if share is None else share

    def state(self) -> PartState:
        values = {"last_repartition": int(self._last_repartition), "duplicated": float(self._duplicated)}
        return PartState({} if self._cpu_ms is None else {"cpu_ms": self._cpu_ms}, values)

    def restore(self, state: PartState) -> None:
        self._last_repartition, self._duplicated = (state.values[name] for name in ("last_repartition", "duplicated"))
        self._cpu_ms = state.optional("cpu_ms")

    @staticmethod
    def duplicated_share(membership: Membership) -> float:
        """Active bodies of all workers over the bodies of the scene, minus one."""
        counts = membership.worker_counts()
        return float(counts.sum()) / max(int((counts > 0).sum()), 1) - 1
