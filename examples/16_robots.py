"""A crowd of limp people falls into a heap. One robot file, humanoid.xml, is attached to one world as often as wanted
by MuJoCo's MjSpec, and lapjoint runs that world on two workers, which may share a person, joints included.

    python examples/16_robots.py [PEOPLE] [FILE.xml]   FILE.xml keeps the world, for lapjoint run FILE.xml --workers 4
"""

import sys
import tempfile
from pathlib import Path

import mujoco
import numpy as np

import lapjoint
from lapjoint.files.read import read_scene

PEOPLE, SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 6, 3.0
STEP, LAYERS, SPACING = 1 / 200, 5, (0.75, 0.75, 2.0)  # [s], how many are above each other, and how far apart [m]


def crowd() -> mujoco.MjSpec:
    """People in columns above a floor, turned and tilted at random."""
    robot, world = mujoco.MjSpec.from_file(str(Path(__file__).with_name("humanoid.xml"))), mujoco.MjSpec()
    world.modelname, world.option.timestep, world.copy_during_attach = "crowd", STEP, True
    world.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], friction=[0.8, 0, 0])
    rng, side = np.random.default_rng(1), max(2, int(np.ceil((PEOPLE / LAYERS) ** 0.5)))
    for i in range(PEOPLE):
        place = (
            np.multiply([i % side, i // side % side, i // side**2], SPACING) + [0, 0, 0.2] + rng.uniform(-0.04, 0.04, 3)
        )
        angle, (x, y) = rng.uniform(0, np.pi), rng.uniform(-0.05, 0.05, 2)
        frame = world.worldbody.add_frame(pos=place, quat=[np.cos(angle), x, y, np.sin(angle)])
        frame.attach_body(robot.body("torso"), f"{i}-", "")
    return world


with tempfile.TemporaryDirectory() as folder:
    path = Path(sys.argv[2] if len(sys.argv) > 2 else f"{folder}/crowd.xml")
    path.write_text(crowd().to_xml())
    scene = read_scene(path)
reach = SPACING[0] * max(2.0, np.ceil((PEOPLE / LAYERS) ** 0.5))
scene.camera = ((2.4 * reach, -2.4 * reach, 1.8 * reach), (reach / 3, reach / 3, 0.4))
print(f"{PEOPLE} people: {scene.body_count} bodies, {scene.joint_count} joints")
with lapjoint.Simulation(scene, lapjoint.Params(workers=2)) as simulation:
    print("time [s], highest [m], fastest [m/s], largest joint gap [mm], deepest penetration [mm]")
    for frame in simulation.frames(steps=round(SECONDS / STEP), every=100):
        highest, fastest = frame.states[:, 2].max(), np.linalg.norm(frame.states[:, 7:10], axis=1).max()
        gap, depth = 1e3 * simulation.joints.gaps().max(), 1e3 * simulation.profile.penetration
        print(f"{frame.time:5.1f} {highest:8.2f} {fastest:8.2f} {gap:8.4f} {depth:8.2f}")
        assert gap < 1, "people are in one piece"
    assert frame.states[:, 2].min() > 0, "nobody is below the floor"
    assert highest < scene.states[:, 2].max() / 2, "they have fallen"
