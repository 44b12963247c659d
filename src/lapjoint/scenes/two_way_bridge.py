"""The same footbridge, 200 m long.

The pattern is that of `bridge`:

    bodies: 198 cells x 9 + 2 ends x 8                  = 1798
    joints: 198 cells x 12 + 199 links x 4 + 2 ends x 4 = 3180
"""

from __future__ import annotations

from ..scene import Scene
from .bridge import cells_for, hang

CELL_COUNT = 198


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The long bridge, or one of about `size` bodies. Nothing in it is random."""
    name = "two-way-bridge"
    return hang(name, CELL_COUNT if size is None else cells_for(name, size))
