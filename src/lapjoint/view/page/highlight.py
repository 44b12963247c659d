"""Highlight: the body that was clicked in another colour, for the browser that clicked it alone."""

from __future__ import annotations

import numpy as np
import viser
from numpy.typing import NDArray

from .batch import light_color
from .bodies import BodyNodes
from .picking import is_camera

Array = NDArray[np.float64]
COLOR = (1.0, 0.15, 0.85)
"""Magenta: no worker, label or tint has it."""
WIDTH = 0.003
"""How far the copy stands out of the body, in heights of the window."""
LEAST, MOST = 0.02, 0.3
"""Bounds of that, in half extents of the body."""


class Highlight:
    """A slightly larger copy of one body, over it. An outline alone would not do: in a wall, or in a heap, neighbours
    cover it."""

    def __init__(self, client: viser.ClientHandle, nodes: BodyNodes) -> None:
        self._client, self._nodes = client, nodes
        self.body: int | None = None
        self.handle: viser.BatchedMeshHandle | None = None

    def update(self, body: int | None, states: Array) -> None:
        """Highlight this body, which is drawn, where it is now; with None nothing."""
        if body != self.body:
            self._remove()
            self.body = body
        if body is None:
            return
        position = states[body, :3]
        scale = self._scale(body, position)
        if self.handle is None:
            surface, _ = self._nodes.surface_of(body)
            self.handle = self._client.scene.add_batched_meshes_simple(
                "/clicked",
                surface.vertices,
                surface.triangles,
                states[body : body + 1, 3:7],
                position[None],
                batched_scales=scale[None],
                batched_colors=light_color(COLOR),
                lod="off",
                side="double",
                cast_shadow=False,
                receive_shadow=False,
            )
            return
        self.handle.batched_positions = position[None].astype(np.float32)
        self.handle.batched_wxyzs = states[body : body + 1, 3:7].astype(np.float32)
        self.handle.batched_scales = scale[None]

    def _scale(self, body: int, position: Array) -> NDArray[np.float32]:
        """Scale of the copy: the body's own, and more by a width that is the same on the screen near and far."""
        surface, scale = self._nodes.surface_of(body)
        half = np.maximum(np.abs(surface.vertices).max(axis=0) * scale, 1e-9)
        camera = self._client.camera
        if not is_camera(camera):
            return np.asarray(scale * (1 + LEAST), np.float32)
        distance = float(np.linalg.norm(camera.position - position))
        width = WIDTH * 2 * np.tan(camera.fov / 2) * distance
        return np.asarray(scale * (1 + np.clip(width / half, LEAST, MOST)), np.float32)

    def _remove(self) -> None:
        if self.handle is not None:
            self.handle.remove()
            self.handle = None
