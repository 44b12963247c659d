"""A scene laid out in memory, so that many processes read one copy of it.

An index in JSON, then the arrays, each at a multiple of 64 bytes. Only for memory that this lapjoint wrote itself:
nothing is checked.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .file import describe_scene, restore_scene
from .scene import Scene

ALIGNMENT = 64


def _aligned(place: int) -> int:
    return -(-place // ALIGNMENT) * ALIGNMENT


class SceneMemory:
    """A scene ready to be laid out in a block of `size` bytes."""

    def __init__(self, scene: Scene) -> None:
        description, self._arrays = describe_scene(scene)
        entries, place = [], 0
        for name, array in self._arrays.items():
            entries.append((name, array.dtype.str, array.shape, place))
            place = _aligned(place + array.nbytes)
        self._index = json.dumps({"description": description, "arrays": entries}).encode()
        self._start = _aligned(8 + len(self._index))
        self.size = self._start + place

    def write(self, block: Any) -> None:
        """Lay the scene out in a writable buffer."""
        memory = np.frombuffer(block, np.uint8)
        memory[:8] = np.frombuffer(len(self._index).to_bytes(8, "little"), np.uint8)
        memory[8 : 8 + len(self._index)] = np.frombuffer(self._index, np.uint8)
        place = self._start
        for array in self._arrays.values():
            memory[place : place + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            place = _aligned(place + array.nbytes)


def read_scene(block: Any) -> Scene:
    """The scene in a buffer. Its tables are the buffer's memory, and can only be read."""
    memory = np.frombuffer(block, np.uint8)
    memory.flags.writeable = False
    length = int.from_bytes(memory[:8].tobytes(), "little")
    index = json.loads(memory[8 : 8 + length].tobytes())
    start = _aligned(8 + length)
    arrays: dict[str, NDArray[Any]] = {}
    for name, kind, shape, place in index["arrays"]:
        dtype = np.dtype(kind)
        size = dtype.itemsize * int(np.prod(shape))
        arrays[name] = memory[start + place : start + place + size].view(dtype).reshape(shape)
    return restore_scene(index["description"], arrays)
