"""A scene laid out as bytes in shared memory, so that many processes read one copy of it (arrays/packing.py).

Only for memory that this lapjoint wrote itself: nothing is checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.packing import pack_arrays, unpack_arrays
from .field_functions import reference_of
from .scene import Scene
from .serialize import describe_scene, restore_scene


class SceneLayout:
    """A scene as bytes, ready to be written to a block of memory of `size` bytes."""

    def __init__(self, scene: Scene) -> None:
        description, arrays = describe_scene(scene)
        functions = [one.field.function for one in scene.fields if one.field is not None]
        if functions:  # whoever reads it imports them
            description["field_references"] = [reference_of(function, "field") for function in functions]
        self._parts = list(pack_arrays(arrays, description))
        self.size = sum(len(part) for part in self._parts)

    def write(self, block: Any) -> None:
        """Lay the scene out in a writable buffer."""
        memory, place = np.frombuffer(block, np.uint8), 0
        for part in self._parts:
            memory[place : place + len(part)] = np.frombuffer(part, np.uint8)
            place += len(part)


def read_scene(block: Any) -> Scene:
    """The scene in a buffer. Its tables are the buffer's memory, and can only be read."""
    arrays, description = unpack_arrays(memoryview(block).toreadonly())
    return restore_scene(Scene, description, arrays, trusted=True)
