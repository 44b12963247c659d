"""Grains enter a hopper at a rate and leave at its bottom, for as long as one likes: `09_hopper.py 100000` passes that
many through. Time and memory depend on the grains that are there, not on all that have passed."""

import resource
import sys
import time

import numpy as np

import lapjoint

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 800
RADIUS, EVERY = 0.05, 5

scene = lapjoint.Scene("hopper", timestep=0.004)
for turn in range(4):  # walls that lean outwards by 40 degrees around an opening of a metre
    angle = turn * np.pi / 2
    lean = np.array([np.cos(np.pi / 9), 0, np.sin(np.pi / 9), 0])  # about y
    about_z = np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
    quaternion = [
        about_z[0] * lean[0],
        -about_z[3] * lean[2],
        about_z[0] * lean[2],
        about_z[3] * lean[0],
    ]
    place = [1.15 * np.cos(angle), 1.15 * np.sin(angle), 0.8]
    scene.add_static(lapjoint.Box((0.1, 4.0, 2.2)), place, quaternion)
grid = (np.indices((5, 5)).reshape(2, -1).T - 2) * 0.25
inlet = np.column_stack([grid, np.full(25, 2.6)])
scene.add_bodies(lapjoint.Sphere(RADIUS), inlet - [0, 0, 0.5], linear_velocities=(0, 0, -1))

with lapjoint.Simulation(scene, lapjoint.Params(workers=2)) as simulation:

    def feed(simulation: lapjoint.Simulation) -> None:
        """Add 25 grains at a time, and remove those that have fallen out."""
        if simulation.step_count % EVERY:
            return
        if simulation.scene.body_count < COUNT:
            shift = 0.02 * np.random.default_rng(simulation.step_count).standard_normal(inlet.shape)
            simulation.bodies.add(lapjoint.Sphere(RADIUS), inlet + shift, linear_velocities=(0, 0, -1))
        there = np.flatnonzero(simulation.alive)
        simulation.bodies.remove(there[simulation.states_of(there)[:, 2] < -1.5])

    simulation.on_step(feed)
    print("grains so far, there now; ms a step, memory of the server [MB]")
    tenth, began = COUNT // 10, time.perf_counter()
    while simulation.alive.any():
        simulation.step(100)
        if simulation.scene.body_count >= tenth or not simulation.alive.any():
            step_ms = 10 * (time.perf_counter() - began)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            print(f"{simulation.scene.body_count:7,} {simulation.alive.sum():7,} {step_ms:7.2f} {memory:7,}")
            tenth += COUNT // 10
        began = time.perf_counter()
    made, removed = (len(simulation.events.all.of(kind)) for kind in ("made", "removed"))
    print(f"{made + 25:,} grains have come, {removed:,} have gone")
    assert removed == made + 25 >= COUNT
