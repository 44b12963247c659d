"""Fracture: a shape cut into pieces, and the bonds between them that break.

    pieces = fracture.cut(Box((2, 0.02, 2)), fracture.seeds_around(Box((2, 0.02, 2)), (0, 0, 0), 150))
    bodies, bonds = fracture.add_pieces(scene, pieces, strength=3e5, position=(0, 0, 1))

A piece is the Voronoi cell of a seed: all of the shape that is nearer to it than to any other. Pieces that share a face
are held together by a fixed joint in the middle of it, which bears a strength times the face's area. docs/breaking.md
"""

from __future__ import annotations

from .bonds import add_pieces, bond_strength
from .cut import cut
from .glue import Glue, Glued, add_glued, take_apart
from .pieces import Pieces
from .seeds import seeds_around, seeds_uniform

__all__ = [
    "Glue",
    "Glued",
    "Pieces",
    "add_glued",
    "add_pieces",
    "bond_strength",
    "cut",
    "seeds_around",
    "seeds_uniform",
    "take_apart",
]
