"""A batch: all bodies of one model as one node of a page, with room for more of them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import viser
from numpy.typing import ArrayLike, NDArray

from ...arrays.growing import grown
from ..draw.colors import to_linear
from ..draw.surface import Kind, Surface
from ..draw.tessellate import Model, with_coarser_levels

Array = NDArray[np.float64]
Drag = Callable[[viser.SceneNodeDragEvent[viser.BatchedMeshHandle]], Coroutine[Any, Any, None]]
"""Called with what a mouse does to a body of a batch."""
TRIANGLES = 1_500_000
"""About how many a page draws of one model, all bodies together; beyond that it takes a coarser level."""
FREE = -1
"""In place of a body, where a row has none."""
_HIDDEN = 1e-6
"""The scale of a row without a body."""


class Batch:
    """Bodies of one model, one in each row. A body has the same row for as long as it is drawn, because a browser that
    drags it calls it by its row; after that the row is another's. Room doubles when it runs out: rows without a body
    are too small to be seen."""

    def __init__(self, api: viser.SceneApi, name: str, model: Model) -> None:
        self.name = name
        self._api, self._model = api, model
        self.ids: NDArray[np.int64] = np.empty(0, np.int64)
        """The body of each row, or FREE."""
        self.scales: Array = np.empty((0, 3))
        self.surface = level_of(model, 1)
        self._handle: viser.BatchedMeshHandle | None = None
        self._has_changed = True
        self._drag: Drag | None = None

    # ---- who is in it ------------------------------------------------------------------------------------------------

    def add(self, ids: NDArray[np.intp], scales: Array) -> None:
        """Give rows to bodies that have none."""
        free = np.flatnonzero(self.ids == FREE)
        if len(free) < len(ids):
            before = len(self.ids)
            room = max(before - len(free) + len(ids), 2 * before)
            self.ids, self.scales = grown(self.ids, room, FREE), grown(self.scales, room)
            self.surface = level_of(self._model, room)
            free = np.concatenate([free, np.arange(before, room)])
        rows = free[: len(ids)]
        self.ids[rows], self.scales[rows] = ids, scales
        self._has_changed = True

    def remove(self, gone: NDArray[np.bool_]) -> None:
        """Take the rows of these bodies, one flag for each body there is."""
        rows = np.flatnonzero(self.ids != FREE)
        rows = rows[gone[self.ids[rows]]]
        self.ids[rows] = FREE
        self._has_changed |= len(rows) > 0

    def clear(self) -> None:
        """Take all rows."""
        self.ids[:] = FREE
        self._has_changed = True

    def body_of(self, row: int | None) -> int:
        """The body of a row; -1 if it has none."""
        return int(self.ids[row]) if row is not None and 0 <= row < len(self.ids) else FREE

    # ---- the node ----------------------------------------------------------------------------------------------------

    def update(self, states: Array, colors: Array) -> None:
        """Draw its bodies at these states, in these colours."""
        rows = np.flatnonzero(self.ids != FREE)
        ids = self.ids[rows]
        places, turns = np.zeros((len(self.ids), 3), np.float32), np.zeros((len(self.ids), 4), np.float32)
        shades = np.zeros((len(self.ids), 3), np.uint8)
        places[rows], turns[rows], shades[rows] = states[ids, :3], states[ids, 3:7], light_color(colors[ids])
        scales = None
        if self._has_changed:
            self._has_changed = False
            scales = np.where(self.ids[:, None] != FREE, self.scales, _HIDDEN).astype(np.float32)
        handle = self._handle
        if handle is None:
            self._handle = self._api.add_batched_meshes_simple(
                self.name,
                self.surface.vertices,
                self.surface.triangles,
                turns,
                places,
                batched_scales=scales,
                batched_colors=shades,
                lod="off",
                side="double" if self.surface.kind is Kind.OPEN else "front",
            )
            return
        # A browser makes room for as many instances as there are positions, and so they come first.
        handle.batched_positions, handle.batched_wxyzs, handle.batched_colors = places, turns, shades
        if scales is not None:
            handle.batched_scales = scales
            handle.vertices = self.surface.vertices.astype(np.float32)
            handle.faces = self.surface.triangles.astype(np.uint32)

    def set_opacity(self, opacity: float) -> None:
        if self._handle is not None:
            self._handle.opacity = None if opacity >= 1 else opacity

    def set_drag(self, drag: Drag | None) -> None:
        """Call `drag` when a body is dragged; with None the camera turns."""
        if self._handle is None or drag == self._drag:
            return
        self._drag = drag
        if drag is None:
            self._handle.remove_drag_callback()
        else:
            self._handle.on_drag("left")(drag)


def level_of(model: Model, count: int) -> Surface:
    """The finest level of which a browser can draw so many; never a sphere's disc."""
    if len(model.levels) == 1 and 200 < len(model.levels[0].triangles) < TRIANGLES / count * 50:
        model = with_coarser_levels(model) if len(model.levels[0].triangles) * count > TRIANGLES else model
    solid = [level for level in model.levels if level.kind is not Kind.DISC]
    fits = [level for level in solid if len(level.triangles) * count <= TRIANGLES]
    return fits[-1] if fits else solid[0]


def light_color(colors: ArrayLike) -> NDArray[np.uint8]:
    """Colours as viser takes those of batched meshes: intensities of light, not values of a picture."""
    return np.round(255 * to_linear(colors)).astype(np.uint8)
