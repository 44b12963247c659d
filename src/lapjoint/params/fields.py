"""What a field of Params has besides its name, type, default and docstring, written into its annotation:

>>> linger: Annotated[int, Count(0, 1000)] = 20

The values it may have and, in Params itself, the group it is listed in; a class in Params is a group. The command
line, the checks and the documentation all read it from there (see options.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..arrays.checks import is_finite
from ..errors import LapjointError, did_you_mean


@dataclass(frozen=True)
class Group:
    """A heading of `lapjoint run --help`."""

    title: str


SIMULATED = Group("What is simulated")
WORKERS = Group("Workers")
COUPLING = Group("Coupling")
BLEND = Group("Blend coupling")
SOLVER = Group("Solver")
SUBSTEPS = Group("Substep solver")
SEQUENTIAL = Group("Sequential solver")
SLEEP = Group("Sleep")
FAILURES = Group("Failures")
OUTPUT = Group("Output")
GROUPS = (SIMULATED, WORKERS, COUPLING, BLEND, SOLVER, SUBSTEPS, SEQUENTIAL, SLEEP, FAILURES, OUTPUT)


@dataclass(frozen=True)
class Named:
    """The name of a field's option, where the field's own would not say enough outside its class."""

    name: str


@dataclass(frozen=True)
class InPythonOnly:
    """Marks a field without an option of its own on the command line."""


@dataclass(frozen=True)
class Unset:
    """What None stands for, in the words of `--help`."""

    text: str


class Rule(Protocol):
    """Values that a field may have. None, where it is the default, is never checked."""

    def check(self, name: str, value: Any) -> None:
        """Raise a LapjointError that names the field, for a value that it may not have."""
        ...


@dataclass(frozen=True)
class Count:
    """A whole number."""

    least: int
    most: int

    def check(self, name: str, value: Any) -> None:
        if not (isinstance(value, int | np.integer) and self.least <= value <= self.most):
            raise LapjointError(f"{name} is {value}, expected {self.least} to {self.most}")


@dataclass(frozen=True, init=False)
class OneOf:
    """One of a few values."""

    values: tuple[Any, ...]

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)

    def check(self, name: str, value: Any) -> None:
        if value in self.values:
            return
        known = [str(one) for one in self.values]
        hint = did_you_mean(value, known)
        raise LapjointError(f"{name} is {value!r}, expected one of {', '.join(known)}{hint}")


@dataclass(frozen=True)
class Positive:
    """A number above zero, and at most so large."""

    most: float | None = None

    def check(self, name: str, value: Any) -> None:
        if not (is_finite(value) and value > 0):
            raise LapjointError(f"{name} is {value}, expected a positive number")
        if self.most is not None and value > self.most:
            raise LapjointError(f"{name} is {value}, expected at most {self.most:g}")


@dataclass(frozen=True)
class Share:
    """A number from 0 to 1."""

    def check(self, name: str, value: Any) -> None:
        if not (is_finite(value) and 0 <= value <= 1):
            raise LapjointError(f"{name} is {value}, expected a number from 0 to 1")


@dataclass(frozen=True)
class NotNegative:
    """A number, zero or above."""

    def check(self, name: str, value: Any) -> None:
        if not (is_finite(value) and value >= 0):
            raise LapjointError(f"{name} is {value}, expected zero or more")


@dataclass(frozen=True)
class ZeroOrAboveOne:
    """Zero, or a number above one."""

    def check(self, name: str, value: Any) -> None:
        if not (is_finite(value) and (value == 0 or value > 1)):
            raise LapjointError(f"{name} is {value}, expected 0 or a number above 1")


RULES = (Count, OneOf, Positive, Share, NotNegative, ZeroOrAboveOne)
