"""Fracture: a shape cut into pieces, and the bonds between them that break.

    pieces = fracture.cut(Box((2, 0.02, 2)), fracture.seeds_around(Box((2, 0.02, 2)), (0, 0, 0), 150))
    bodies, bonds = fracture.add_pieces(scene, pieces, strength=3e5, position=(0, 0, 1))

A piece is the Voronoi cell of a seed: all of the shape that is nearer to it than to any other. Pieces that share a face
are held together by a bond over it: a fixed joint as stiff and as strong as the face. docs/breaking.md
"""

from __future__ import annotations

from ..scene.glue import Glued
from .bonds import add_bonds, add_pieces
from .cut import cut
from .glue import add_glued
from .pieces import Pieces
from .sections import Sections, rectangles
from .seeds import seeds_around, seeds_uniform

__all__ = [
    "Glued",
    "Pieces",
    "Sections",
    "add_bonds",
    "add_glued",
    "add_pieces",
    "cut",
    "rectangles",
    "seeds_around",
    "seeds_uniform",
]
