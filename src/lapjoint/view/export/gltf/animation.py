"""Frames as animations: poses in lines, and scales in steps for who comes, goes or changes hands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..frames import Frames
from .document import Document

XYZW = (1, 2, 3, 0)
"""Quaternions as glTF has them."""


class Animation:
    """The one animation of a document. All samplers share the frames' times, or a few of them."""

    def __init__(self, document: Document, frames: Frames) -> None:
        self._buffer = document.buffer
        self._times = frames.times.astype(np.float32)
        self._channels: list[dict[str, Any]] = []
        self._samplers: list[dict[str, Any]] = []
        self._inputs: dict[bytes, int] = {}

    def add_poses(self, nodes: Sequence[int], positions: NDArray[np.float32], quaternions: NDArray[np.float32]) -> None:
        """Poses of nodes, (frames, nodes, 3) and (frames, nodes, 4). Those that rest have none."""
        unit = quaternions / np.maximum(np.linalg.norm(quaternions, axis=2, keepdims=True), 1e-12)
        for path, table in (("translation", positions), ("rotation", unit[:, :, XYZW])):
            moves = np.flatnonzero((table != table[:1]).any(axis=(0, 2)))
            if len(moves):
                outputs = self._buffer.add_rows(table[:, moves].transpose(1, 0, 2))
                for node, output in zip(moves.tolist(), outputs, strict=True):
                    self._add(nodes[node], path, self._input(np.ones(len(self._times), bool)), output, "LINEAR")

    def add_shown(self, node: int, shown: NDArray[np.bool_], scale: NDArray[Any]) -> None:
        """A node that is there in some frames and in others not: of no size then."""
        needed = np.concatenate([[True], shown[1:] != shown[:-1]])
        output = self._buffer.add(shown[needed, None] * scale)
        self._add(node, "scale", self._input(needed), output, "STEP")

    def _input(self, needed: NDArray[np.bool_]) -> int:
        key = needed.tobytes()
        if key not in self._inputs:
            self._inputs[key] = self._buffer.add(self._times[needed], bounds=True)
        return self._inputs[key]

    def _add(self, node: int, path: str, times: int, output: int, how: str) -> None:
        self._channels.append({"sampler": len(self._samplers), "target": {"node": node, "path": path}})
        self._samplers.append({"input": times, "output": output, "interpolation": how})

    def to_list(self) -> list[dict[str, Any]]:
        """As a document has it: nothing where nothing moves."""
        if not self._channels:
            return []
        return [{"name": "recording", "channels": self._channels, "samplers": self._samplers}]
