"""Bodies that entered sensors and left them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..params import Params
from ..scene import Scene
from .base import Combine, Ids, StepTable, check_range, column

SENSOR_KINDS = ("enter", "leave")


@dataclass(frozen=True)
class SensorEvents(StepTable):
    """Bodies that came into sensors and left them, in the order of steps, sensors and bodies."""

    name: ClassVar[str] = "sensor_events"
    row_name: ClassVar[str] = "sensor_event"
    combine: ClassVar[Combine] = Combine.ALL

    pair: Ids = column(np.int32, 2)
    """(n, 2) a sensor and a body."""
    kind: NDArray[np.uint8] = column(np.uint8, of=len(SENSOR_KINDS))
    """(n,) its place in SENSOR_KINDS: the body enters, or leaves."""

    @property
    def sensor(self) -> Ids:
        return self.pair[:, 0]

    @property
    def body(self) -> Ids:
        return self.pair[:, 1]

    @classmethod
    def asked_by(cls, scene: Scene, params: Params, first_body: int = 0, first_joint: int = 0) -> str | None:
        return f"scene {scene.name!r} has sensors" if len(scene.sensors) and first_body == 0 else None

    def check(self, scene: Scene, steps: int) -> None:
        super().check(scene, steps)
        check_range(f"{self.name}: sensor", self.sensor, 0, len(scene.sensors))
        check_range(f"{self.name}: body", self.body, 0, scene.body_count)
