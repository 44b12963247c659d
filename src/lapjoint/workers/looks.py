"""What a worker answers about its bodies: what rays meet, what a shape overlaps, what is nearest to a point.

The server asks it to look where its bodies are, then what it wants to know of them, until something moves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..queries import BodyTree
from ..queries.shapes import unpack_shape
from ..scene import Scene
from .questions import Arrays

Mask = NDArray[np.bool_]
Array = NDArray[np.float64]

RAY_ANSWER = ("body", "distance", "normal")
HIT_ANSWER = ("ray", *RAY_ANSWER)
POINT_ANSWER = ("body", "distance", "point", "normal")


def group_mask(mask: int) -> NDArray[np.uint32]:
    """Groups to look for, as they travel."""
    return np.array([mask], np.uint32)


class LookAnswers:
    """The worker's side. `place` returns which bodies are active, and the table of states: for active bodies it has
    what the server shows, once those are reset that the server has changed."""

    def __init__(self, scene: Scene, place: Callable[[], tuple[Mask, Array]]) -> None:
        self._scene, self._place = scene, place
        self._made: BodyTree | None = None
        self.by_name: Mapping[str, Callable[[Arrays], Arrays]] = {
            "look": self.look,
            "rays": self.rays,
            "all hits": self.all_hits,
            "overlaps": self.overlaps,
            "nearest": self.nearest,
        }

    @property
    def _tree(self) -> BodyTree:
        self._made = self._made or BodyTree(self._scene)
        return self._made

    def look(self, asked: Arrays) -> Arrays:
        """Look where active bodies are, but for those that somebody else answers for. Returns their bounds."""
        active, states = self._place()
        mine = active.copy()
        mine[asked["without"]] = False
        self._tree.set_bodies(np.flatnonzero(mine).astype(np.int32), states)
        return {"bounds": self._tree.bounds}

    def rays(self, asked: Arrays) -> Arrays:
        return _named(RAY_ANSWER, self._tree.cast_closest(*_rays(asked)))

    def all_hits(self, asked: Arrays) -> Arrays:
        return _named(HIT_ANSWER, self._tree.cast_all(*_rays(asked)))

    def overlaps(self, asked: Arrays) -> Arrays:
        shape: Any = unpack_shape(asked)
        return {"pairs": self._tree.overlapping(shape, asked["places"], int(asked["mask"][0]))}

    def nearest(self, asked: Arrays) -> Arrays:
        return _named(POINT_ANSWER, self._tree.nearest_bodies(asked["points"], asked["reach"], int(asked["mask"][0])))


def _rays(asked: Arrays) -> tuple[Array, Array, Array, int]:
    return asked["origins"], asked["directions"], asked["reach"], int(asked["mask"][0])


def _named(names: tuple[str, ...], arrays: tuple[NDArray[Any], ...]) -> Arrays:
    return dict(zip(names, arrays, strict=True))
