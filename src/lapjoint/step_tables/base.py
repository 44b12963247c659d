"""StepTable: what is reported of single steps, a row for each event. A kind of table is one class in one file of this
folder; all that carries, checks, merges, records and counts tables goes by what the class declares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..params import Params
from ..scene import Scene

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


class Of(Enum):
    """What the numbers of a column are of."""

    BODY = "body"
    CONTACT = "contact"  # rows of a body, and another one or -1 - s for the static body s
    JOINT = "joint"
    STEP = "step"


class Combine(Enum):
    """How rows of several workers become those of one."""

    ALL = "all"
    """Each row is one worker's."""
    FIRST = "first"
    """Of what several workers report, the first one's."""
    HEAVIEST = "heaviest"
    """Of a contact or joint that workers have because they overlap in its bodies, what the worker of the largest blend
    weight reports, and of several such the first; where workers do not overlap, each row is one worker's."""


def column(dtype: Any, *shape: int, of: Of | int | None = None) -> Any:
    """A column with rows of `shape`. Its numbers are those of something in the scene, or places in a list of so many
    (`of`)."""
    return field(metadata={"dtype": np.dtype(dtype), "shape": shape, "of": of, "narrow": False})


@dataclass(frozen=True)
class StepTable:
    """Columns of equal length: in which step, who or what, and then what it was."""

    name: ClassVar[str]
    """In engines, checkpoints, recordings and summaries."""
    row_name: ClassVar[str]
    """Of one row: its columns in a recording begin with it."""
    combine: ClassVar[Combine] = Combine.HEAVIEST
    kept: ClassVar[bool] = True
    """Whether all rows so far are kept for users, in checkpoints and recordings, and counted in summaries."""
    feature: ClassVar[str | None] = None
    """What an engine declares that reports it, where scenes or parameters ask for it."""

    step: Ids = column(np.int32, of=Of.STEP)
    """(n,) which of the steps that were taken at once, from 0; in a log, how many steps had been taken before it."""

    @classmethod
    def asked_by(cls, scene: Scene, params: Params, first_body: int = 0, first_joint: int = 0) -> str | None:
        """What of the scene, among bodies and joints from these numbers on, or of the parameters asks for this to be
        reported, as messages say it; None if nothing does."""
        return None

    # ---- rows --------------------------------------------------------------------------------------------------------

    @classmethod
    def none(cls) -> Self:
        """No rows."""
        return cls(*(np.empty((0, *one.metadata["shape"]), one.metadata["dtype"]) for one in fields(cls)))

    @classmethod
    def from_rows(cls, rows: Array) -> Self:
        """From rows of numbers: those of all columns, one after the other."""
        columns, start = [], 0
        for one in fields(cls):
            dtype, shape = one.metadata["dtype"], one.metadata["shape"]
            width = int(np.prod(shape))
            columns.append(rows[:, start : start + width].reshape(len(rows), *shape).astype(dtype))
            start += width
        return cls(*columns)

    def __len__(self) -> int:
        return len(self.step)

    def taken(self, rows: Any) -> Self:
        """Some of the rows: a slice, a mask or their numbers."""
        return type(self)(*(column[rows] for column in vars(self).values()))

    def ordered(self) -> Self:
        """The same rows in the order of steps and, within a step, of who or what."""
        return self.taken(np.lexsort((*self.who.T[::-1], self.step)))

    def later(self, steps: int) -> Self:
        """The same, so many steps later."""
        return replace(self, step=(self.step + steps).astype(np.int32))

    @classmethod
    def joined(cls, tables: Iterable[Self]) -> Self:
        """The rows of all tables, one after the other."""
        columns = zip(*(vars(table).values() for table in (cls.none(), *tables)), strict=True)
        return cls(*map(np.concatenate, columns))

    @property
    def who(self) -> Ids:
        """(n, numbers) who or what each row is about: the column after the step."""
        values = np.asarray(getattr(self, fields(self)[1].name))
        return values if values.ndim == 2 else values[:, None]

    def bodies_in(self, scene: Scene) -> Ids:
        """(n, 2) bodies of what each row is about; numbers below 0 are of none."""
        of, who = fields(self)[1].metadata["of"], self.who
        if of is Of.JOINT:
            return np.stack([scene.joints.body_a[who[:, 0]], scene.joints.body_b[who[:, 0]]], axis=1)
        return who if who.shape[1] == 2 else np.repeat(who, 2, axis=1)

    # ---- checks ------------------------------------------------------------------------------------------------------

    def check(self, scene: Scene, steps: int) -> None:
        """ValueError where columns differ in length, or have numbers of what is not there: compiled code reads them in
        place."""
        lengths = {len(values) for values in vars(self).values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of {self.name} have {', '.join(map(str, sorted(lengths)))} rows")
        for one in fields(self):
            if one.metadata["of"] is not None:
                low, high = limits(one.metadata["of"], scene, steps)
                check_range(f"{self.name}: {one.name}", getattr(self, one.name), low, high)


def limits(of: Of | int, scene: Scene, steps: int) -> tuple[int, int]:
    """Numbers of a column are from the first up to, and without, the second."""
    if isinstance(of, int):
        return 0, of
    ends = {
        Of.BODY: (0, scene.body_count),
        Of.CONTACT: (-scene.static_count, scene.body_count),
        Of.JOINT: (0, scene.joint_count),
        Of.STEP: (0, steps),
    }
    return ends[of]


def check_range(name: str, numbers: ArrayLike, low: int, high: int) -> None:
    """ValueError where numbers are not from `low` up to, and without, `high`."""
    found = np.asarray(numbers)
    if found.size and (int(found.min()) < low or int(found.max()) >= high):
        raise ValueError(f"{name} has {found.min()} to {found.max()}, expected {low} to {high - 1}")
