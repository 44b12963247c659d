"""EngineState: what an engine's next step depends on to the last bit, so that another engine can take it over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    passed_bodies: Ids = field(default_factory=lambda: np.empty((0, 2), np.int32))
    """(p, 2) the bodies of each contact that was in the last step and has no point in the cache any more: should it
    have one again in the next step, its impulses go on."""
    passed_numbers: Ids = field(default_factory=lambda: np.empty((0, 4), np.int32))
    """(p, 4) two parts of the bodies, which part of the points, and how many points it had."""
    passed_impulses: NDArray[np.floating] = field(default_factory=lambda: np.empty((0, 7)))
    """(p, 7) of a single point, and of friction."""
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

        def is_among(ends: Ids) -> Mask:
            return np.asarray((has_body[np.maximum(ends, 0)] | (ends < 0)).all(axis=1))

        return self.taken(has_body[self.body_ids], is_among)

    def about(self, bodies: Mask) -> EngineState:
        """What is about these bodies, and about all contacts and joints that they have, for an engine that knows what
        all engines know."""

        def has_any(ends: Ids) -> Mask:
            return np.asarray((bodies[np.maximum(ends, 0)] & (ends >= 0)).any(axis=1))

        own = self.taken(bodies[self.body_ids], has_any)
        return replace(own, **{name: getattr(self, name)[:0] for name in OF_ALL})

    def of_precision(self, precision: str) -> EngineState:
        """The same for an engine that computes in this precision."""
        columns = ("bodies", "points", "joint_impulses", "passed_impulses")
        return replace(self, **{name: getattr(self, name).astype(precision, copy=False) for name in columns})

    def taken(self, bodies: Mask, is_wanted: Callable[[Ids], Mask]) -> EngineState:
        """Only these bodies, and what is about wanted pairs of bodies; nothing is prepared."""
        points, joints = is_wanted(self.point_bodies), is_wanted(self.joint_bodies)
        passed = is_wanted(self.passed_bodies)
        islands, still_steps = (rows[bodies] if len(rows) else rows for rows in (self.islands, self.still_steps))
        return replace(
            self,
            body_ids=self.body_ids[bodies],
            bodies=self.bodies[bodies],
            prepared=np.zeros(int(bodies.sum()), bool),
            point_bodies=self.point_bodies[points],
            point_numbers=self.point_numbers[points],
            points=self.points[points],
            joint_ids=self.joint_ids[joints],
            joint_bodies=self.joint_bodies[joints],
            joint_impulses=self.joint_impulses[joints],
            islands=islands,
            still_steps=still_steps,
            passed_bodies=self.passed_bodies[passed],
            passed_numbers=self.passed_numbers[passed],
            passed_impulses=self.passed_impulses[passed],
        )


def join_states(states: Sequence[EngineState]) -> EngineState:
    """All of them one after the other, bodies in ascending order. No body, contact or joint may be in two of them."""
    names = [f.name for f in fields(EngineState) if f.name not in OF_ALL]
    columns = {name: _joined([getattr(state, name) for state in states]) for name in names}
    order = np.argsort(columns["body_ids"])
    for name in ("body_ids", "bodies", "prepared", "islands", "still_steps"):
        columns[name] = columns[name][order] if len(columns[name]) else columns[name]
    return EngineState(**columns, **{name: getattr(states[0], name) for name in OF_ALL})


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One after the other; those that have nothing have no say in the type."""
    return np.concatenate([part for part in parts if len(part)] or parts[:1])
