"""Glued bodies of a simulation: which of them have come apart, and into which pieces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays.state import PartState
from ..errors import LapjointError
from ..scene import Scene
from ..scene.glue import Glued
from ..step_tables.hits import Hits

WHOLE = -1


class GluedBodies:
    """What became of a scene's glued bodies."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._number = {one.body: i for i, one in enumerate(scene.glued)}
        self._first: NDArray[np.int32] = np.full(len(scene.glued), WHOLE, np.int32)  # pieces
        self._struck: list[int] = []

    @property
    def is_used(self) -> bool:
        """Whether the scene has any."""
        return bool(self._number)

    @property
    def is_any_whole(self) -> bool:
        """Whether a hit may take one apart: then it is looked after every step."""
        return any(self._scene.alive[body] for body in self._number)

    def note_hits(self, hits: Hits) -> None:
        """Note whom these hits take apart."""
        for body, number in self._number.items():
            of_body = hits.impulse[(hits.bodies == body).any(axis=1)]
            if len(of_body) and of_body.max() >= self._scene.glued[number].impulse:
                self._struck.append(body)

    def taken_struck(self) -> list[int]:
        """Bodies that are to come apart now, each once."""
        struck, self._struck = self._struck, []
        return [body for body in struck if self._scene.alive[body]]

    def known(self, body: int, what: str) -> Glued:
        """What is known of a body; one that is not glued raises a LapjointError that begins with `what`."""
        if body not in self._number:
            raise LapjointError(f"{what}: {self._scene.body_title(body)} is not glued")
        return self._scene.glued[self._number[body]]

    def note_apart(self, body: int, first: int) -> None:
        """It has become pieces, from this number on."""
        self._first[self._number[body]] = first

    def pieces_of(self, body: int) -> range | None:
        """Numbers of the pieces that a body has become; None while it is whole."""
        count = len(self.known(body, "pieces_of"))
        first = int(self._first[self._number[body]])
        return None if first == WHOLE else range(first, first + count)

    def state(self) -> PartState:
        return PartState({"first": self._first.copy()})

    def restore(self, state: PartState) -> None:
        self._first = state.array("first")
