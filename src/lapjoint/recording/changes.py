"""Changes: bodies and joints that have come and gone from one frame to the next, for writing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError
from ..scene import Scene
from ..scene.living import LivingScene
from ..scene.serialize import added_since, scene_at

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Changes:
    """A row for each body and joint that came or went, and what the scene has more."""

    step: Ids
    """How many steps had been taken."""
    kind: NDArray[np.uint8]
    """Its place in LIFE_KINDS."""
    number: Ids
    """Of the body, or of the joint."""
    growth: NDArray[np.uint8]
    """Bytes of `added_since`; none where nothing was added."""


class ChangeFinder:
    """Finds what has changed since it looked last, and at first since the scene began."""

    def __init__(self, scene: LivingScene) -> None:
        self._extent = scene.began_with
        self._there = {name: np.ones(count, bool) for name, count in zip(("", "joint_"), self._extent[1:], strict=True)}

    def find(self, scene: LivingScene, broken: Ids) -> Changes | None:
        """What has changed; None where nothing has. Joints that are `broken` are not among those removed."""
        rows: list[tuple[NDArray[np.int64], Ids]] = []
        for prefix, before in self._there.items():
            now = getattr(scene, f"{prefix}alive")
            if len(now) < len(before) or (now[: len(before)] & ~before).any():
                raise LapjointError("the simulation was restarted, and its recording cannot be: expected a new one")
            made = np.arange(len(before), len(now))
            gone = np.flatnonzero(~now & np.concatenate([before, np.ones(len(made), bool)]))
            if prefix:
                gone = np.setdiff1d(gone, broken)
            steps = scene.steps
            rows += [(made, steps[f"{prefix}first_step"][made]), (gone, steps[f"{prefix}last_step"][gone])]
            self._there[prefix] = now.copy()
        counts = [len(numbers) for numbers, _ in rows]
        if not any(counts):
            return None
        before_it, self._extent = self._extent, scene.extent
        return Changes(
            np.concatenate([step for _, step in rows]),
            np.repeat(np.arange(len(rows), dtype=np.uint8), counts),
            np.concatenate([numbers for numbers, _ in rows]).astype(np.int32),
            growth(scene, before_it),
        )


def growth(scene: LivingScene, extent: tuple[int, int, int]) -> NDArray[np.uint8]:
    """What a scene has more than this extent. Of bodies of it that are gone already the memory may have been given
    back."""
    if scene.extent == extent:
        return np.empty(0, np.uint8)
    whole = scene if scene.alive[extent[1] :].all() else scene_at(Scene, scene, scene.extent)
    return added_since(whole, extent)
