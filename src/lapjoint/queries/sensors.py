"""SensorSet: the sensors of a scene where they are, and which bodies are inside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import _queries
from ..scene import Scene
from ..scene.sensors import IN_WORLD
from .body_tree import BodyTree
from .shapes import native_shape

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Inside:
    """Who is inside of sensors, in the order of both."""

    sensor: Ids
    body: Ids

    def __len__(self) -> int:
        return len(self.body)


class SensorSet:
    """All sensors of a scene."""

    def __init__(self, scene: Scene) -> None:
        self._scene, self._shapes = scene, BodyTree(scene)
        self._native = _queries.Sensors()
        sensors = scene.sensors
        places = np.concatenate([sensors.position, sensors.quaternion], axis=1)
        for number, shape_id in enumerate(sensors.shape_id.tolist()):
            shape = native_shape(scene.shapes[shape_id])
            self._native.add(shape, places[number], int(sensors.mask[number]), int(sensors.body[number]))
        on = sensors.body
        self._on_bodies = np.flatnonzero(on >= 0).astype(np.int32)
        self._on_statics = np.flatnonzero((on < 0) & (on != IN_WORLD)).astype(np.int32)

    def find(self, alive: NDArray[np.bool_], states: Array, static_poses: Array) -> Ids:
        """Pairs of a sensor and a living body that is inside, (n, 2), ascending. A sensor on a body that is gone is
        gone too."""
        on = self._scene.sensors.body
        bodies, statics = on[self._on_bodies], -1 - on[self._on_statics]
        self._native.move(self._on_bodies, states[bodies, :7], alive[bodies])
        self._native.move(self._on_statics, static_poses[statics], np.ones(len(statics), bool))
        return self._shapes.inside(self._native, np.flatnonzero(alive).astype(np.int32), states)
