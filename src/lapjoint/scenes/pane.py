"""A pane of glass that a ball shatters.

Two metres by two, three centimetres thick, cut into Voronoi cells that are small where the ball hits. Bonds hold
them together over their common faces, and those at the edge to the frame, which is the world; they break. Not in the
paper.
"""

from __future__ import annotations

import numpy as np

from .. import fracture
from ..errors import LapjointError
from ..scene import WORLD, Box, ConvexHull, Material, Plane, Scene, Sphere

PIECES = 300
SIDE, THICKNESS = 2.0, 0.03  # [m]
GLASS = Material(friction=0.4)
STRENGTH = 5.0e6  # [N/m^2]
RADIUS, SPEED = 0.12, 14.0  # of the ball [m, m/s]
SILL = 1.0  # [m] height of the lower edge


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The scene, with `size` bodies (301): pieces, and the ball. `seed` decides where the cuts are."""
    count = PIECES if size is None else size - 1
    if count < 4:
        raise LapjointError(f"pane: size is {size}, expected at least 5: four pieces and a ball")
    scene = Scene("pane", growth_depth=0, search_depth=4)
    scene.add_static(Plane(), material=GLASS)
    pane = Box((SIDE, THICKNESS, SIDE))
    hit = (0.15, 0.0, 0.1)
    pieces = fracture.cut(pane, fracture.seeds_around(pane, hit, count, spread=SIDE / 5, seed=seed))
    middle = np.array([0.0, 0.0, SILL + SIDE / 2])
    bodies, _ = fracture.add_pieces(scene, pieces, strength=STRENGTH, position=middle, density=2500.0, material=GLASS)
    _hold_edges(scene, pieces, bodies, middle)
    start = middle + hit + np.array([0.0, -1.0, 0.0])
    scene.add_body(Sphere(RADIUS), start, density=7800.0, linear_velocity=(0.0, SPEED, 0.0))
    scene.camera = ((-2.6, 4.6, 2.9), (0.0, 0.3, 1.5))
    return scene


def _hold_edges(scene: Scene, pieces: fracture.Pieces, bodies: range, middle: np.ndarray) -> None:
    """Bonds between pieces at the edge and the frame."""
    held, middles, outward, lengths, spans = [], [], [], [], []
    for body, shape, position in zip(bodies, pieces.shapes, pieces.positions, strict=True):
        assert isinstance(shape, ConvexHull)
        corners = shape.points + position
        for axis in (0, 2):
            for side in (-1, 1):
                at = corners[np.abs(corners[:, axis] - side * SIDE / 2) < 1e-6]
                length = float(np.ptp(at[:, 2 - axis])) if len(at) else 0.0
                if length > 0.01:
                    held.append(body)
                    middles.append(at.min(axis=0) / 2 + at.max(axis=0) / 2)
                    outward.append(side * np.eye(3)[axis])
                    lengths.append((THICKNESS, length))
                    spans.append(SIDE - 2 * side * position[axis])
    ends = fracture.rectangles(middle + middles, -np.array(outward), [(0, 1, 0)] * len(held), lengths, spans)
    fracture.add_bonds(scene, held, [WORLD] * len(held), ends, strength=STRENGTH)
