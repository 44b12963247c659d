"""Sensor volumes of a scene: they touch nothing, and report who is inside."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.columns import Columns
from .tables import SENSOR_LAYOUT

IN_WORLD = -(2**31)
"""In place of the body that a sensor is on: it stays where it is."""


class SensorTable(Columns):
    """The sensors of a scene, numbered from zero, and their names."""

    def __init__(self) -> None:
        super().__init__(SENSOR_LAYOUT)
        self.names: dict[int, str] = {}

    def title(self, number: int) -> str:
        """How messages call a sensor."""
        name = self.names.get(number)
        return f"sensor {number} ({name!r})" if name else f"sensor {number}"

    def describe(self, description: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Add them to what a scene is, if there are any."""
        if len(self):
            arrays |= {f"sensors/{name}": column for name, column in self.to_arrays().items()}
            description["sensor_names"] = {str(number): name for number, name in self.names.items()}

    def restore(self, description: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what `describe` described. KeyError where a column is missing or does not fit."""
        if "sensor_names" in description:
            self.adopt({name: arrays[f"sensors/{name}"] for name in self})
            self.names = {int(number): name for number, name in description["sensor_names"].items()}

    def share(self, other: Columns) -> None:
        super().share(other)
        assert isinstance(other, SensorTable)
        self.names = dict(other.names)

    @property
    def moving(self) -> NDArray[np.int32]:
        """Those that are on a body, or on a kinematic one."""
        return np.flatnonzero(self.body != IN_WORLD).astype(np.int32)
