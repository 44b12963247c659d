"""A sheet of chain mail falls over posts: rings of capsules, held by contact alone, on three workers. It has no
joints, and still holds together where it is cut between workers. `06_net.py 5000` is a larger sheet."""

import sys

import numpy as np

import lapjoint

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 60

scene = lapjoint.scenes.build("chain-mail", SIZE)
if SIZE < 200:
    scene.camera = ((-2.2, -4.2, 3.1), (0.0, 0.0, 1.2))  # of pictures and pages [m]: the post is taller than the sheet
with lapjoint.Simulation(scene, lapjoint.Params(workers=3)) as simulation:
    for frame in simulation.frames(steps=240, every=60):
        depth = 1e3 * simulation.profile.penetration
        print(f"{frame.time:.2f} s: lowest ring at {frame.states[:, 2].min():.2f} m, penetration {depth:.3f} mm")
    speed = np.linalg.norm(frame.states[:, 7:10], axis=1).max()
    assert speed < 10.0, "no ring was torn out and shot away"
    assert len(simulation.workers.interface) > 0, "workers share the sheet"
