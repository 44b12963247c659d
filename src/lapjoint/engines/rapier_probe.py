"""Whether bodies would touch in Rapier at given states: its own detection, in a world of colliders without bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..scene import Scene
from .base import CONTACT_MARGIN, Array, Ids
from .rapier_mapping import RapierMapping


class RapierProbe:
    """Holds a collider for every body that was ever asked about; only those asked about now are moved."""

    def __init__(self, rapier: Any, mapping: RapierMapping, scene: Scene, length_unit: float) -> None:
        self._rapier, self._mapping, self._scene = rapier, mapping, scene
        self._world = rapier.PhysicsWorld()
        self._world.set_num_threads(1)
        options = self._world.integration_parameters
        options.length_unit, options.normalized_prediction_distance = length_unit, CONTACT_MARGIN
        options.contact_recycling = False
        self._handles: dict[int, Any] = {}

    def touch(self, pairs: Ids, states: Array) -> NDArray[np.bool_]:
        """For each pair, whether a step would find a contact."""
        world = self._world
        ids = np.unique(pairs)
        for body, state in zip(ids.tolist(), states[ids, :7].tolist(), strict=True):
            x, y, z, w, i, j, k = state
            if body not in self._handles:
                self._handles[body] = world.add_collider(self._collider(body))
            world.colliders[self._handles[body]].position = (x, y, z), (i, j, k, w)
        world.detect_collisions()
        handles, pair_of = self._handles, world.narrow_phase.contact_pair
        found = (pair_of(handles[a], handles[b]) for a, b in pairs.tolist())
        return np.array([one is not None and one.find_deepest_contact() is not None for one in found], bool)

    def _collider(self, body: int) -> Any:
        shape = self._mapping.shape(int(self._scene.bodies.shape_id[body]))
        every = self._rapier.ActiveCollisionTypes
        return self._rapier.Collider.new(shape).active_collision_types(every.all())
