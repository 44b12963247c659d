"""Two cannon balls bring a building of loose bricks down. Bodies migrate from worker to worker as the load moves, and
the scene is repartitioned when the workers have become uneven. `05_building.py 2408` is the paper's building."""

import sys

import lapjoint

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 150

scene = lapjoint.scenes.build("building", SIZE)
top = scene.states[:, 2].max()
with lapjoint.Simulation(scene, lapjoint.Params(workers=4)) as simulation:
    print("time [s], bodies of each worker, contacts, penetration [mm]")
    for frame in simulation.frames(steps=900, every=150):
        counts = [int(simulation.workers.membership.column(worker).sum()) for worker in range(4)]
        profile = simulation.profile
        print(f"{frame.time:5.2f} {counts} {profile.contact_count:6} {1e3 * profile.penetration:8.3f}")
        assert sum(counts) == scene.body_count, "tight coupling: every body has one worker"
    lowest = frame.states[:, 2].min()
    assert lowest > -0.05, "nothing fell through the ground"
    moved = (abs(frame.states[:, :3] - scene.states[:, :3]).max(axis=1) > 0.5).sum()
    print(f"{moved} of {scene.body_count} bodies have moved by more than half a metre")
    assert moved > 10
