"""Walls of loose bricks beside each other, as a scene file for `lapjoint bench`: 40 of 1,250 bricks by default.

python benchmarks/walls.py out/walls.npz [--walls 40]
lapjoint bench out/walls.npz --coupling tight --workers 1 2 8 --steps 10 --warmup 30
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from lapjoint import Box, Plane, Scene

COLUMNS, COURSES, APART = 50, 25, 2.0
LENGTH, HEIGHT, THICKNESS, JOINT = 0.5, 0.25, 0.25, 0.002  # [m]


def build(walls: int) -> Scene:
    """Every second course is shifted by half a brick."""
    scene = Scene("walls")
    scene.add_static(Plane())
    wall, course, column = np.indices((walls, COURSES, COLUMNS)).reshape(3, -1)
    places = np.stack([(column + 0.5 * (course % 2)) * LENGTH, APART * wall, (course + 0.5) * HEIGHT], axis=1)
    scene.add_bodies(Box((LENGTH - JOINT, THICKNESS, HEIGHT)), places, density=2000.0)
    return scene


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--walls", type=int, default=40)
    options = parser.parse_args()
    print(build(options.walls), "->", build(options.walls).save(options.file))


if __name__ == "__main__":
    main()
