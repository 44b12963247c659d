"""A crane on four workers lifts a crate over a wall and sets it down behind it: drives on a hinge and two sliders, a
rope, and targets that change with time. The jib turns by more than half a turn, which its drive counts."""

import numpy as np

import lapjoint
from lapjoint import WORLD, Box, Distance, Drive, Hinge, Slider

X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
TURN, OUT, UP = 3.6, -1.0, 2.6  # of the jib [rad], the trolley and the hoist [m]

scene = lapjoint.Scene("crane", timestep=1 / 120)
scene.camera = ((11.0, -11.0, 8.0), (0.0, 1.0, 2.6))
scene.add_static(lapjoint.Plane())
scene.add_static(Box((0.6, 0.6, 6.0)), (0.0, 0.0, 3.0))
jib = scene.add_body(Box((8.0, 0.4, 0.4)), (2.5, 0.0, 6.3), mass=400.0)
trolley = scene.add_body(Box((0.6, 0.6, 0.2)), (4.0, 0.0, 5.9), mass=50.0)
block = scene.add_body(Box((0.3, 0.3, 0.3)), (4.0, 0.0, 2.2), mass=20.0)
crate = scene.add_body(Box((1.0, 1.0, 1.0)), (4.0, 0.0, 0.5), mass=200.0)
slew = scene.add_joint(Hinge(Z, drive=Drive(stiffness=4e5, damping=2e5, max_force=5e4)), jib, WORLD, (0.0, 0.0, 6.3))
travel = scene.add_joint(
    Slider(X, limits=(-2.5, 1.5), drive=Drive(stiffness=5e4, damping=1e4), friction=50.0), trolley, jib, (4.0, 0.0, 6.1)
)
hoist = scene.add_joint(
    Slider(Z, limits=(0.0, 3.2), drive=Drive(stiffness=1e5, damping=1e4)), block, trolley, (4.0, 0.0, 2.2)
)
scene.add_joint(Distance(upper=1.2), crate, block, (4.0, 0.0, 1.0), anchor_b=(4.0, 0.0, 2.05))
bricks = [(0.0, 2.5 + 0.62 * i, 0.25 + 0.5 * level) for level in range(4) for i in range(5)]
wall = scene.add_bodies(Box((0.4, 0.6, 0.5)), bricks, density=600.0)


def ramp(time: float, start: float, duration: float) -> tuple[float, float]:
    """A smooth rise from 0 to 1, and its rate."""
    s = np.clip((time - start) / duration, 0.0, 1.0)
    return (s - np.sin(2 * np.pi * s) / (2 * np.pi), (1 - np.cos(2 * np.pi * s)) / duration)


def steer(simulation: lapjoint.Simulation) -> None:
    """Set the targets for this time: up, around and inwards, down."""
    rise, swing, fall = (ramp(simulation.time, *when) for when in ((0.5, 3.0), (3.0, 10.0), (14.0, 4.0)))
    lift = np.multiply(UP, rise) - np.multiply(UP, fall)
    targets = np.array([np.multiply(TURN, swing), np.multiply(OUT, swing), lift])
    simulation.joints.set_targets([slew, travel, hoist], positions=targets[:, 0], velocities=targets[:, 1])


with lapjoint.Simulation(scene, lapjoint.Params(workers=4)) as simulation:
    print("time [s], crate [m], largest joint gap [mm]")
    for frame in simulation.frames(steps=19 * 120, every=6):
        steer(simulation)
        if frame.step_count % 240 == 0:
            x, y, z = frame.states[crate, :3]
            print(f"{frame.time:5.1f} {x:7.2f} {y:5.2f} {z:5.2f} {1e3 * simulation.joints.gaps().max():7.2f}")
    place = simulation.states[crate, :3]
    goal = [(4.0 + OUT) * np.cos(TURN), (4.0 + OUT) * np.sin(TURN), 0.5]
    print(f"the crate is {np.linalg.norm(place - goal):.2f} m from where it should be")
    assert np.linalg.norm(place - goal) < 0.3
    assert np.allclose(simulation.states[wall, :3], bricks, atol=0.02)  # it has touched none
