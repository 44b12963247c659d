"""simulation.bodies: bodies are added, removed, pushed and held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..scene.content import checked_ids
from ..scene.joints import Fixed
from ..scene.shapes import MovingShape
from ..server.scene_changes import adding, remove_bodies
from ..whole import whole
from .base import Facet

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


class SimulationBodies(Facet):
    """Bodies are added, removed, pushed and held, all between two steps. Their states are `simulation.states`."""

    _prefix = "bodies."

    # ---- come and go ---------------------------------------------------------------------------------------------

    @whole
    def add(
        self,
        shape: MovingShape | Sequence[MovingShape],
        positions: ArrayLike,
        quaternions: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        **options: Any,
    ) -> range:
        """Add bodies, with the options of Scene.add_bodies, before the next step. Each goes to the worker of the body
        that it is nearest to. Returns their numbers, which are higher than any of before."""
        with adding(self._core, "bodies.add") as scene:
            return scene.add_bodies(shape, positions, quaternions, **options)

    @whole
    def add_one(
        self,
        shape: MovingShape,
        position: ArrayLike = (0.0, 0.0, 0.0),
        quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        **options: Any,
    ) -> int:
        """Add one body, as Scene.add_body does, before the next step. Returns its number."""
        with adding(self._core, "bodies.add_one") as scene:
            return scene.add_body(shape, position, quaternion, **options)

    @whole
    def remove(self, body_ids: ArrayLike) -> None:
        """Remove bodies, and their joints with them, before the next step. Their numbers are not used again; their
        states are zeros."""
        ids = np.unique(checked_ids(self._core.scene, body_ids, "bodies.remove"))
        if len(ids):
            remove_bodies(self._core, ids)

    @whole
    def take_apart(self, body_id: int) -> range:
        """Replace a glued body by its pieces before the next step, as a hit does: each has the velocity that it had as
        a part of it, so mass, momentum and angular momentum stay. Returns their numbers."""
        core = self._core
        body = int(checked_ids(core.scene, [body_id], "bodies.take_apart")[0])
        glued = core.glued.known(body, "bodies.take_apart")
        state = np.array(core.states("bodies.take_apart")[body])
        with adding(core, "bodies.take_apart") as scene:
            pieces = scene.add_bodies(**glued.pieces(state, scene.bodies))
        core.glued.note_apart(body, pieces.start)
        if len(glued.pairs):
            with adding(core, "bodies.take_apart") as scene:
                scene.add_joints(Fixed(), **glued.joints(state, pieces.start))
        remove_bodies(core, np.array([body], np.int32))
        return pieces

    def pieces_of(self, body_id: int) -> range | None:
        """Numbers of the pieces that a glued body has become; None while it is whole."""
        return self._core.glued.pieces_of(int(body_id))

    # ---- forces --------------------------------------------------------------------------------------------------

    @whole
    def add_forces(self, body_ids: ArrayLike, forces: ArrayLike, torques: ArrayLike | None = None) -> None:
        """Add external forces [N] and torques [N m] to bodies, for the next step only, whichever workers have them."""
        self._core.now.commands.add_forces(self._core.scene, body_ids, forces, torques)

    @property
    def forces(self) -> dict[int, Array]:
        """External force and torque that the next step has for each body with any."""
        return dict(self._core.now.commands.forces)

    # ---- held ----------------------------------------------------------------------------------------------------

    @whole
    def freeze(self, body_ids: ArrayLike) -> None:
        """Hold bodies where they are: after every step they are put back there, at rest."""
        core = self._core
        core.frozen.hold(checked_ids(core.scene, body_ids, "bodies.freeze").tolist(), core.runtime.states)
        core.frozen.put_back(core.runtime, core.now.commands)

    @whole
    def release(self, body_ids: ArrayLike) -> None:
        """Let frozen bodies go."""
        self._core.frozen.release(checked_ids(self._core.scene, body_ids, "bodies.release").tolist())

    @property
    def frozen_ids(self) -> Ids:
        """Bodies that are held, ascending."""
        return self._core.frozen.ids
