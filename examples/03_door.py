"""A hinged door, pushed while the simulation runs, and saved to a file that `lapjoint run` takes."""

import tempfile
from pathlib import Path

import numpy as np

import lapjoint

scene = lapjoint.Scene("door")
scene.add_static(lapjoint.Plane(), (0, 0, -0.02))
scene.add_static(lapjoint.Box((1.2, 0.15, 2.3)), (-0.65, 0, 1.13))  # the wall it hangs on
door = scene.add_body(lapjoint.Box((1.0, 0.05, 2.0)), (0.5, 0, 1.0), density=600, name="door")
scene.add_joint(lapjoint.Hinge(axis=(0, 0, 1), limits=(-2.0, 2.0)), door, lapjoint.WORLD, anchor=(0, 0, 1.0))

with lapjoint.Simulation(scene) as simulation:

    def push(simulation: lapjoint.Simulation) -> None:
        if simulation.time < 0.5:
            simulation.bodies.add_forces(door, (0, 150.0, 0))

    simulation.on_step(push)
    simulation.step(500)
    w, _, _, z = simulation.states[door, 3:7]
    angle = 2 * np.arctan2(z, w)
    print(f"after {simulation.time:.1f} s the door stands open by {np.degrees(angle):.0f} degrees")
    assert 1.0 < angle < 2.01

with tempfile.TemporaryDirectory() as folder:
    file = scene.save(Path(folder) / "door.npz")
    assert lapjoint.Scene.load(file) == scene
