"""Balls and cubes tumble in a drum that turns: the drum is kinematic, it moves as its motion says and nothing stops it.
After 0.8 s it is set to turn twice as fast. `07_drum.py 800` fills it."""

import sys

import numpy as np

import lapjoint

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 80

scene = lapjoint.scenes.build("drum", SIZE)
drum = scene.kinematic_ids
with lapjoint.Simulation(scene, lapjoint.Params(workers=2)) as simulation:
    heights = []
    for frame in simulation.frames(steps=800, every=100):
        heights.append(frame.states[:, 2].mean())
        speed = np.linalg.norm(frame.states[:, 7:10], axis=1).mean()
        print(f"{frame.time:.1f} s: mean height {heights[-1]:.3f} m, mean speed {speed:.2f} m/s")
        if frame.step_count == 400:
            spin = simulation.kinematic.states[0, 10:13]
            simulation.kinematic.set_motion(drum, lapjoint.Rotation(spin, 2 * np.linalg.norm(spin), about=(0, 0, 0)))
    assert np.linalg.norm(simulation.kinematic.states[:, 10:13], axis=1).min() > 2.3, "it turns twice as fast"
    radius = np.linalg.norm(scene.shapes[scene.statics.shape_id[drum[0]]].vertices, axis=1).max()
    assert np.linalg.norm(frame.states[:, :3], axis=1).max() < radius, "nobody has left the drum"
