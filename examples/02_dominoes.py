"""Dominoes in a spiral fall one after the other, from worker to worker: a push goes through the whole scene as it does
on one worker. `02_dominoes.py 600` sets up more of them."""

import sys

import numpy as np

import lapjoint

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 80

scene = lapjoint.Scene("dominoes", timestep=1 / 240)
scene.add_static(lapjoint.Plane())
angle = np.sqrt(40 + 4.8 * np.arange(COUNT))  # a spiral, with about 0.3 m between two
radius = 0.12 * angle
places = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), np.full(COUNT, 0.3)])
turns = np.column_stack([np.cos(angle / 2), 0 * angle, 0 * angle, np.sin(angle / 2)])
scene.add_bodies(lapjoint.Box((0.25, 0.06, 0.6)), places, turns, density=700.0)
ahead = places[1] - places[0]
push = 2.0 * ahead / np.linalg.norm(ahead)
scene.add_body(lapjoint.Sphere(0.1), places[0] - 0.9 * ahead + [0, 0, 0.2], linear_velocity=push, mass=2.0)

with lapjoint.Simulation(scene, lapjoint.Params(workers=4)) as simulation:
    for frame in simulation.frames(steps=30 * COUNT, every=240):
        fallen = (frame.states[:COUNT, 2] < 0.25).sum()
        print(f"{frame.time:4.1f} s: {fallen} of {COUNT} have fallen")
        if fallen == COUNT:
            break
    assert fallen == COUNT, "the last one falls too"
