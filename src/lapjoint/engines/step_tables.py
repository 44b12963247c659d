"""What is reported of single steps: joints that broke, contacts that hit, bodies that touch, energy that came from
nowhere. One table each, a row for each of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

SENSOR_KINDS = ("enter", "leave")


@dataclass(frozen=True)
class StepTable:
    """Columns of equal length: in which step, who or what, and then what it was."""

    step: Ids
    """(n,) which of the steps that were taken at once, from 0; in a log, how many steps had been taken before it."""

    @classmethod
    def none(cls) -> Self:
        """No rows."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.step)

    def taken(self, rows: Any) -> Self:
        """Some of the rows: a slice, a mask or their numbers."""
        return type(self)(*(column[rows] for column in vars(self).values()))

    def ordered(self) -> Self:
        """The same rows in the order of steps and, within a step, of who or what."""
        who = list(vars(self).values())[1].reshape(len(self), -1)
        return self.taken(np.lexsort((*who.T[::-1], self.step)))

    def later(self, steps: int) -> Self:
        """The same, so many steps later."""
        return replace(self, step=(self.step + steps).astype(np.int32))

    @classmethod
    def joined(cls, tables: Iterable[Self]) -> Self:
        """The rows of all tables, one after the other."""
        columns = zip(*(vars(table).values() for table in (cls.none(), *tables)), strict=True)
        return cls(*map(np.concatenate, columns))

    @classmethod
    def within(cls, source: object, prefix: str) -> Self:
        """The table whose columns are attributes of something else, each with a prefix."""
        return cls(*(getattr(source, f"{prefix}_{field.name}") for field in fields(cls)))

    def named(self, prefix: str) -> dict[str, Any]:
        """Columns by name, each with a prefix."""
        return {f"{prefix}_{name}": column for name, column in vars(self).items()}


@dataclass(frozen=True)
class JointBreaks(StepTable):
    """Joints that broke, in the order of steps and numbers."""

    joint: Ids
    load: Array
    """(n, 2): force [N] and torque [N m] that the joint did in that step, in the mean."""

    @classmethod
    def none(cls) -> JointBreaks:
        return cls(np.empty(0, np.int32), np.empty(0, np.int32), np.empty((0, 2)))


@dataclass(frozen=True)
class SensorEvents(StepTable):
    """Bodies that came into sensors and left them, in the order of steps, sensors and bodies."""

    pair: Ids
    """(n, 2) a sensor and a body."""
    kind: NDArray[np.uint8]
    """(n,) its place in SENSOR_KINDS: the body enters, or leaves."""

    @property
    def sensor(self) -> Ids:
        return self.pair[:, 0]

    @property
    def body(self) -> Ids:
        return self.pair[:, 1]

    @classmethod
    def none(cls) -> SensorEvents:
        return cls(np.empty(0, np.int32), np.empty((0, 2), np.int32), np.empty(0, np.uint8))


@dataclass(frozen=True)
class Hits(StepTable):
    """Contacts that did as much in a step as one of their bodies wants to have reported, in the order of steps and
    bodies."""

    bodies: Ids
    """(n, 2). The second is -1 - s where it is the static body s."""
    impulse: Array
    """(n,) of all contact points along their normals, over the step [N s]."""
    point: Array
    """(n, 3) mean of the contact points as the step began, weighted by their impulses [m]."""
    normal: Array
    """(n, 3) the direction in which the first body is pushed; the mean in the same way."""

    @classmethod
    def none(cls) -> Hits:
        return cls(np.empty(0, np.int32), np.empty((0, 2), np.int32), np.empty(0), np.empty((0, 3)), np.empty((0, 3)))


@dataclass(frozen=True)
class Surges(StepTable):
    """Bodies of islands whose energy rose in a step beyond what anything explains, in the order of steps and bodies:
    those that have gained more than their part."""

    body: Ids
    island: Ids
    """(n,) the lowest body of the island, which contacts and joints connect."""
    energy: Array
    """(n,) what the island has gained that nothing explains [J]."""
    limit: Array
    """(n,) a tenth of gravity times mass times size, of all bodies of the island [J]: most that is no surge."""

    @classmethod
    def none(cls) -> Surges:
        nobody = np.empty(0, np.int32)
        return cls(nobody, nobody, nobody, np.empty(0), np.empty(0))


BEGIN, END, NEAR = range(3)


@dataclass(frozen=True)
class TouchReports(StepTable):
    """Pairs of bodies that touch in the first of some steps, and what changes in the later ones, in the order of steps
    and bodies. Who was touching before the first one is for the reader to know."""

    bodies: Ids
    """(n, 2). The second is -1 - s where it is the static body s."""
    kind: NDArray[np.uint8]
    """BEGIN: they touch, and may not have before. END: they do no more. NEAR, of the first step alone: they do not, but
    are so near that a touch of before goes on."""
    speed: Array
    """(n,) of BEGIN: with which they came nearer along the normal, as the step began [m/s]."""

    @classmethod
    def none(cls) -> TouchReports:
        return cls(np.empty(0, np.int32), np.empty((0, 2), np.int32), np.empty(0, np.uint8), np.empty(0))
