"""A pane of glass, cut into pieces around a point and held together by joints that break, is shattered by a ball.
Joints between two workers break in the same step in both. `08_pane.py 300` makes finer pieces."""

import sys

import lapjoint
from lapjoint import fracture

PIECES = int(sys.argv[1]) if len(sys.argv) > 1 else 40

scene = lapjoint.Scene("pane", timestep=0.002)
scene.add_static(lapjoint.Plane())
glass = lapjoint.Box((2.0, 0.03, 2.0))
pieces = fracture.cut(glass, fracture.seeds_around(glass, (0.1, 0.0, 0.2), PIECES))
bodies, bonds = fracture.add_pieces(scene, pieces, strength=5e6, position=(0.0, 0.0, 1.0), density=2500.0)
ball = scene.add_body(lapjoint.Sphere(0.15), (0.1, -1.0, 1.2), linear_velocity=(0, 25, 0), density=7800.0)

with lapjoint.Simulation(scene, lapjoint.Params(workers=2)) as simulation:
    simulation.step(15)
    assert len(simulation.joints.broken_ids) == 0, "the ball has not arrived yet"
    for frame in simulation.frames(steps=235, every=47):
        broken = len(simulation.joints.broken_ids)
        print(
            f"{frame.time:.2f} s: {broken} of {len(bonds)} bonds are broken, ball at y = {frame.states[ball, 1]:.2f} m"
        )
    first = simulation.events.joint_breaks
    force, torque = first.load[0]
    print(f"the first broke in step {first.step[0]}, under {force / 1e3:.1f} kN and {torque:.0f} N m")
    assert broken > 0
    assert frame.states[ball, 1] > 0.5, "the ball went through"
