"""A hanging footbridge on eight workers, with a ball that drops on it. Joints between two workers are solved by both at
once: the bridge has no gaps where it is cut, and swings as it does on one worker."""

import sys

import numpy as np

import lapjoint

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 232

scene = lapjoint.scenes.build("bridge", SIZE)
deck = int(np.argmin(np.linalg.norm(scene.states[:, :2] - scene.states[:, :2].mean(axis=0), axis=1)))
ball = scene.add_body(lapjoint.Sphere(0.4), scene.states[deck, :3] + [0, 0, 3.0], mass=80.0, name="ball")

ends = {}
for workers in (1, 8):
    with lapjoint.Simulation(scene, lapjoint.Params(workers=workers, precision="float64")) as simulation:
        simulation.step(300)
        ends[workers] = simulation.states
        gap, cut = simulation.joints.gaps().max(), len(simulation.workers.interface) if workers > 1 else 0
        print(f"{workers} workers: largest gap {1e6 * gap:.3f} micrometres, {cut} bodies at interfaces")
        assert gap < 1e-4
difference = np.abs(ends[8] - ends[1])[:, :3].max()
print(f"after {300 * scene.timestep:.1f} s eight workers and one differ by {1e3 * difference:.2g} mm at most")
assert difference < 0.01
