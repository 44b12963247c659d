"""Anderson acceleration of the rounds of a tight step, over the rows of all engines together. Twin of
native/algorithms/extrapolation.cpp.

A round turns impulses x into impulses g, a change of r = g - x. The next round starts from the mixture of the last
rounds' g for which the same mixture of their r is smallest. Every engine has its own rows; the mixture needs only sums
over rows, so engines send their sums and receive the factors.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

COLUMNS = 5
"""Rounds that are kept, at most."""
GROWTH = 4.0
"""A change that grows by more than this, squared, means that the rounds kept are no guide."""
FACTOR = 1e4
"""Factors beyond this come from rounding errors."""
RESTING = 1e-4
"""In contact, a change this small against the impulses, squared, is left alone: resting stacks would shake."""


class Advance(IntEnum):
    """What to do with the impulses between two rounds."""

    KEEP = 0
    EXTRAPOLATE = 1
    FORGET = 2


@dataclass
class Products:
    """Sums over the rows of one engine, or of all. Rows count by their weights: what an impulse needs to change the
    row's velocity by one."""

    columns: Array = field(default_factory=lambda: np.zeros((COLUMNS, COLUMNS)))
    """Of the differences of r between rounds, with each other."""
    change: Array = field(default_factory=lambda: np.zeros(COLUMNS))
    """Of these differences with r."""
    change_squared: float = 0.0
    """r with r."""
    impulse_squared: float = 0.0
    """g with g."""
    contact_rows: float = 0.0
    joint_rows: float = 0.0
    column_count: float = 0.0
    """The same in all engines: no sum."""
    largest_change: float = 0.0
    """Of a row's velocity [length units/s]: the largest of all, no sum."""

    def add(self, other: Products) -> None:
        """Add the sums over the rows of another engine."""
        for name in ("columns", "change", "change_squared", "impulse_squared", "contact_rows", "joint_rows"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.column_count = other.column_count
        self.largest_change = max(self.largest_change, other.largest_change)

    def to_numbers(self) -> Array:
        """As engines send them."""
        return np.concatenate([np.ravel(getattr(self, f.name)) for f in fields(self)])

    @staticmethod
    def from_numbers(numbers: Array) -> Products:
        """From what an engine sent."""
        square = COLUMNS * COLUMNS
        rest = numbers[square + COLUMNS :].tolist()
        return Products(numbers[:square].reshape(COLUMNS, COLUMNS), numbers[square : square + COLUMNS], *rest)


def choose_advance(
    products: Products, last_change: float, regularization: float, few_rounds: bool
) -> tuple[Advance, Array]:
    """What all engines do with their impulses before the next round, and the factors for it. `last_change` is
    change_squared of the round before, negative in the first. With few rounds, contacts that hardly change are left
    alone."""
    count, theta = int(products.column_count), np.zeros(COLUMNS)
    if last_change >= 0 and products.change_squared > GROWTH * last_change:
        return Advance.FORGET, theta
    in_contact = few_rounds and products.contact_rows > products.joint_rows
    if in_contact and products.change_squared < RESTING * products.impulse_squared:
        return Advance.KEEP, theta
    if count == 0 or products.change_squared == 0:
        return Advance.KEEP, theta
    norm = np.sqrt(np.diag(products.columns)[:count])
    scale = np.divide(1.0, norm, out=np.zeros(count), where=norm > 0)
    matrix = products.columns[:count, :count] * np.outer(scale, scale) + regularization * np.eye(count)
    theta[:count] = scale * np.linalg.solve(matrix, scale * products.change[:count])
    return (Advance.EXTRAPOLATE if np.abs(theta).max() < FACTOR else Advance.FORGET), theta


class History:
    """One engine's rounds within a step. Rows of weight 0 are extrapolated with the others, by factors they do not
    affect."""

    def __init__(self, weights: Array) -> None:
        self._weights = weights
        self._last: tuple[Array, Array] | None = None
        self._changes: list[Array] = []
        self._impulses: list[Array] = []

    def add(self, before: Array, after: Array) -> Products:
        """Keep a round that turned impulses `before` into `after`; returns its products."""
        change = after - before
        if self._last is not None:
            self._changes = [*self._changes, change - self._last[0]][-COLUMNS:]
            self._impulses = [*self._impulses, after - self._last[1]][-COLUMNS:]
        self._last = change, after
        count, products = len(self._changes), Products()
        columns = np.array(self._changes).reshape(count, len(change))
        products.columns[:count, :count] = columns * self._weights @ columns.T
        products.change[:count] = columns * self._weights @ change
        products.change_squared = float(change * self._weights @ change)
        products.impulse_squared = float(after * self._weights @ after)
        products.column_count = count
        products.largest_change = float(np.max(np.abs(change) * self._weights, initial=0.0))
        return products

    def forget(self) -> None:
        """Drop the rounds so far."""
        self._changes, self._impulses = [], []

    def extrapolate(self, theta: Array) -> Array:
        """The mixture of the last rounds' impulses with these factors."""
        assert self._last is not None
        mixed = self._last[1].copy()
        for factor, column in zip(theta, self._impulses, strict=False):
            mixed -= factor * column
        return mixed
