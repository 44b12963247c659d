"""What a part of a simulation depends on, apart from the part: arrays and plain values. A checkpoint is a collection
of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


@dataclass
class PartState:
    """The state of one part. Values are what JSON has: numbers, texts, lists."""

    arrays: Arrays = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def array(self, name: str) -> NDArray[Any]:
        """A copy of an array, to be changed at will."""
        return np.array(self.arrays[name])

    def optional(self, name: str) -> NDArray[Any] | None:
        """The same, or None where the part had none."""
        return np.array(self.arrays[name]) if name in self.arrays else None

    def under(self, prefix: str) -> Arrays:
        """Arrays whose names begin with `prefix/`, without it."""
        start = f"{prefix}/"
        return {name.removeprefix(start): array for name, array in self.arrays.items() if name.startswith(start)}


class Stateful(Protocol):
    """A part whose next step depends on more than the scene and the parameters."""

    def state(self) -> PartState:
        """All that decides how it goes on."""
        ...

    def restore(self, state: PartState) -> None:
        """Go on from there: `state` is of a part of the same scene, parameters and number of workers."""
        ...


def flatten(parts: Mapping[str, PartState]) -> tuple[Arrays, dict[str, Any]]:
    """All arrays, named part/array, and all values by part."""
    arrays = {f"{name}/{key}": array for name, part in parts.items() for key, array in part.arrays.items()}
    return arrays, {name: part.values for name, part in parts.items()}


def unflatten(arrays: Mapping[str, NDArray[Any]], values: Mapping[str, dict[str, Any]]) -> dict[str, PartState]:
    """The inverse of `flatten`."""
    parts = {name: PartState({}, dict(own)) for name, own in values.items()}
    for key, array in arrays.items():
        name, _, rest = key.partition("/")
        if name in parts:
            parts[name].arrays[rest] = array
    return parts
