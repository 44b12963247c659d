"""EngineState: what an engine's next step depends on to the last bit, so that another engine can take it over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]

OF_ALL = ("kinematic_poses", "broken_joints", "drive_axes", "drive_targets", "joint_count")
"""Columns that all engines of a simulation have alike, whichever bodies they have."""


@dataclass(frozen=True)
class EngineState:
    """What an engine's next step depends on to the last bit: more than the states that it gives out.

    What the columns mean is the engine's business. That rows are of bodies, of contact points and of joints is not: so
    the states of several engines can be joined and distributed to others.
    """

    body_ids: Ids
    """(n,) active bodies, ascending."""
    bodies: NDArray[np.floating]
    """(n, any) what the engine holds of each."""
    prepared: Mask
    """(n,) bodies among which contacts for the next step have been found already."""
    point_bodies: Ids
    """(m, 2) the bodies of each contact point of the contact cache; -1 - s for the static body s."""
    point_numbers: Ids
    """(m, any) whole numbers of each."""
    points: NDArray[np.floating]
    """(m, any) its other numbers."""
    joint_ids: Ids = field(default_factory=lambda: np.empty(0, np.int32))
    """(k,) the joint of each cached joint impulse."""
    joint_bodies: Ids = field(default_factory=lambda: np.empty((0, 2), np.int32))
    """(k, 2) its bodies; -1 for the world."""
    joint_impulses: NDArray[np.floating] = field(default_factory=lambda: np.empty(0))
    islands: Ids = field(default_factory=lambda: np.empty(0, np.int32))
    """(n,) the lowest body of the island that each body sleeps with, -1 if it is awake; none where nobody sleeps."""
    still_steps: Ids = field(default_factory=lambda: np.empty(0, np.int32))
    """(n,) for how many steps each has been still; with `islands`."""
    kinematic_poses: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 7)))
    """(s, 7) where static bodies are that move or whose surfaces do; none where that is not known."""
    broken_joints: Ids = field(default_factory=lambda: np.empty(0, np.int32))
    """(b,) joints that are broken, ascending: bodies that one of them held may touch."""
    drive_axes: Ids = field(default_factory=lambda: np.empty(0, np.int32))
    """(d,) driven axes whose targets were set, each six times its joint and the axis, ascending."""
    drive_targets: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2)))
    """(d, 2) their positions and velocities."""
    joint_count: Ids = field(default_factory=lambda: np.empty(0, np.int32))
    """(1,) joints that the engine knows of: of those that came later, it is still to wake the bodies; or none."""

    def part(self, has_body: Mask) -> EngineState:
        """What is about bodies of a mask over the scene's bodies, and about contacts and joints among these. As others
        may join them, nothing is prepared."""
        own = has_body[self.body_ids]
        points, joints = ((has_body[np.maximum(ends, 0)] | (ends < 0)).all(axis=1) for ends in self._ends)
        return self.taken(own, points, joints)

    def about(self, bodies: Mask) -> EngineState:
        """What is about these bodies, and about all contacts and joints that they have, for an engine that knows what
        all engines know."""
        points, joints = ((bodies[np.maximum(ends, 0)] & (ends >= 0)).any(axis=1) for ends in self._ends)
        nothing = {name: getattr(self, name)[:0] for name in OF_ALL}
        return replace(self.taken(bodies[self.body_ids], points, joints), **nothing)

    def of_precision(self, precision: str) -> EngineState:
        """The same for an engine that computes in this precision."""
        columns = ("bodies", "points", "joint_impulses")
        return replace(self, **{name: getattr(self, name).astype(precision, copy=False) for name in columns})

    @property
    def _ends(self) -> tuple[Any, Any]:
        return self.point_bodies, self.joint_bodies

    def taken(self, bodies: Mask, points: Mask, joints: Mask) -> EngineState:
        """Only these bodies, contact points and joint impulses; nothing is prepared."""
        return EngineState(
            self.body_ids[bodies],
            self.bodies[bodies],
            np.zeros(int(bodies.sum()), bool),
            self.point_bodies[points],
            self.point_numbers[points],
            self.points[points],
            self.joint_ids[joints],
            self.joint_bodies[joints],
            self.joint_impulses[joints],
            *(of_bodies[bodies] if len(of_bodies) else of_bodies for of_bodies in (self.islands, self.still_steps)),
            *(getattr(self, name) for name in OF_ALL),
        )


def join_states(states: Sequence[EngineState]) -> EngineState:
    """All of them one after the other, bodies in ascending order. No body, contact or joint may be in two of them."""
    names = [f.name for f in fields(EngineState) if f.name not in OF_ALL]
    columns = {name: np.concatenate([getattr(state, name) for state in states]) for name in names}
    order = np.argsort(columns["body_ids"])
    for name in ("body_ids", "bodies", "prepared", "islands", "still_steps"):
        columns[name] = columns[name][order] if len(columns[name]) else columns[name]
    return EngineState(**columns, **{name: getattr(states[0], name) for name in OF_ALL})
