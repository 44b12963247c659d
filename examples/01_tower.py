"""A ball flies into a tower of boxes; two workers share the scene."""

import lapjoint

scene = lapjoint.Scene("tower")
scene.add_static(lapjoint.Plane())
for level in range(40):
    scene.add_body(lapjoint.Box((1.0, 1.0, 0.5)), position=(0, 0, 0.25 + 0.5 * level), label=level)
ball = scene.add_body(lapjoint.Sphere(0.6), (-8, 0, 6), linear_velocity=(20, 0, 4), mass=2000)

with lapjoint.Simulation(scene, lapjoint.Params(workers=2)) as simulation:
    for frame in simulation.frames(steps=500, every=100):
        print(f"{frame.time:.1f} s: the ball is at {frame.states[ball, :3].round(2)}")
    assert frame.states[ball, 0] > 0, "the ball should have gone through the tower"
