"""A scene of one's own as a package (stairs_scene/): things that tumble down a staircase, on three workers. After
`pip install ./examples/stairs_scene`, `lapjoint run stairs` and every other command know it by its name."""

import sys
from pathlib import Path

import lapjoint

sys.path.append(str(Path(__file__).with_name("stairs_scene")))  # this program does without installing it

from stairs_scene import build

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 60

scene = build(SIZE)
with lapjoint.Simulation(scene, lapjoint.Params(workers=3)) as simulation:
    for frame in simulation.frames(steps=720, every=120):
        height, farthest = frame.states[:, 2].mean(), frame.states[:, 0].max()
        print(f"{frame.time:.1f} s: mean height {height:.2f} m, the farthest is {farthest:.2f} m down the stairs")
    assert frame.states[:, 2].min() > 0, "nobody fell through a step"
    assert frame.states[:, 2].mean() < scene.states[:, 2].mean() - 1.0, "they have tumbled"
assert build(SIZE) == scene, "the same scene every time"
