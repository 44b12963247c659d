"""Frozen bodies: held where they are, at rest, after every step."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..arrays.state import PartState
from ..scene import STATE_SIZE
from ..workers.runtimes import Runtime
from .commands import CommandBuilder

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
POSE = 7


class Frozen:
    """The states that frozen bodies are put back to."""

    def __init__(self) -> None:
        self._states: dict[int, Array] = {}

    @property
    def ids(self) -> Ids:
        """Bodies that are held, ascending."""
        return np.array(sorted(self._states), np.int32)

    @property
    def is_used(self) -> bool:
        """Whether any are held."""
        return bool(self._states)

    def hold(self, bodies: Iterable[int], states: Array) -> None:
        """Hold bodies where the table of states has them, at rest."""
        for body in bodies:
            self._states[body] = np.concatenate([states[body, :POSE], np.zeros(STATE_SIZE - POSE)])

    def release(self, bodies: Iterable[int]) -> None:
        for body in bodies:
            self._states.pop(body, None)

    def rows(self) -> tuple[list[int], Array]:
        """Bodies and the states to put them back to."""
        return list(self._states), np.array(list(self._states.values())).reshape(-1, STATE_SIZE)

    def put_back(self, runtime: Runtime, commands: CommandBuilder) -> None:
        """Put all of them back into the table of states, and have their workers start from there."""
        if self._states:
            ids, rows = self.rows()
            runtime.states[ids] = rows
            commands.set_from_table(np.array(ids, np.int32))

    def state(self) -> PartState:
        ids, rows = self.rows()
        return PartState({"ids": np.array(ids, np.int32), "rows": rows})

    def restore(self, state: PartState) -> None:
        self._states = dict(zip(state.arrays["ids"].tolist(), state.array("rows"), strict=True))
