"""What an engine may have or lack: a small scene for each shape, kind of joint and feature, and what must come of it.

`tests/engines/test_contract_features.py` runs every case on every engine, and `tools/make-features` makes the table in
docs/engines.md of what it found. A new shape, joint or feature needs a case here, or that test fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine_support import reported
from lapjoint import (
    FREE,
    WORLD,
    Ball,
    Box,
    Breaks,
    Capsule,
    Compound,
    Cone,
    ConstantVelocity,
    ConvexHull,
    Cylinder,
    Distance,
    Drag,
    Drive,
    Ellipsoid,
    Engine,
    Fixed,
    Gear,
    HeightField,
    Hinge,
    Material,
    Motor,
    Part,
    Plane,
    Scene,
    SixAxis,
    Slider,
    Sphere,
    TriangleMesh,
)
from lapjoint.engines import Changes
from lapjoint.engines.support import ALL_JOINTS, ALL_SHAPES, FEATURES
from lapjoint.scene.joints import Spring
from lapjoint.scene.measures import joint_gaps
from lapjoint.step_tables.breaks import JointBreaks
from lapjoint.step_tables.hits import Hits
from lapjoint.step_tables.sensor_events import SensorEvents
from lapjoint.step_tables.slides import Slides
from lapjoint.step_tables.touches import TouchReports

Start = Callable[..., Engine]
"""`start(scene, **params)`: an engine with every body active; an error where the engine refuses the scene."""


@dataclass(frozen=True)
class Case:
    """`run` fails where an engine does not do what it says. `without` is what one does that has the feature not; None
    where it must refuse the scene of `run`."""

    run: Callable[[Start], None]
    without: Callable[[Start], None] | None = None
    solver: str | None = None
    """That it is about, of an engine with several; None for all."""


def ground(**options: Any) -> Scene:
    scene = Scene()
    scene.add_static(Plane(), **options)
    return scene


def balls(count: int = 1, **options: Any) -> Scene:
    """Balls that rest on a plane, apart from each other."""
    scene = ground(material=options.get("material"))
    scene.add_bodies(Sphere(0.5), [(3.0 * k, 0.0, 0.5) for k in range(count)], **options)
    return scene


# ---- shapes ------------------------------------------------------------------------------------------------------

CUBE = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
RESTING: dict[type, tuple[Any, float]] = {
    Sphere: (Sphere(0.5), 0.5),
    Box: (Box((1.0, 1.0, 1.0)), 0.5),
    Capsule: (Capsule(0.3, 0.4), 0.5),
    Cylinder: (Cylinder(0.5, 1.0), 0.5),
    ConvexHull: (ConvexHull(CUBE), 0.5),
    Ellipsoid: (Ellipsoid((0.6, 0.5, 0.3)), 0.3),
    Cone: (Cone(0.5, 1.0), 0.25),
    Compound: (Compound((Part(Sphere(0.5), (-0.5, 0.0, 0.0)), Part(Sphere(0.5), (0.5, 0.0, 0.0)))), 0.5),
}
"""A shape of each kind, and how high its centre is over what it rests on."""
GROUNDS: dict[type, Any] = {
    Plane: Plane(),
    TriangleMesh: TriangleMesh([(-5.0, -5.0, 0.0), (5.0, -5.0, 0.0), (0.0, 5.0, 0.0)], [(0, 1, 2)]),
    HeightField: HeightField(np.zeros((5, 5)), 2.0),
}


def rests(shape: Any, height: float) -> Callable[[Start], None]:
    """A body that is put down a little above a plane ends up on it."""

    def run(start: Start) -> None:
        scene = ground()
        scene.add_body(shape, (0.1, 0.2, height + 0.005))
        engine = start(scene)
        engine.step(200)
        position, speed = engine.get_states()[0, :3], engine.get_states()[0, 7:10]
        np.testing.assert_allclose(position, (0.1, 0.2, height), atol=0.01)
        assert np.abs(speed).max() < 0.05

    return run


def carries(shape: Any) -> Callable[[Start], None]:
    """A ball stays on a static body."""

    def run(start: Start) -> None:
        scene = Scene()
        scene.add_static(shape, (0.0, 0.0, 1.0))
        scene.add_body(Sphere(0.5), (0.1, 0.2, 1.505))
        engine = start(scene)
        engine.step(200)
        np.testing.assert_allclose(engine.get_states()[0, :3], (0.1, 0.2, 1.5), atol=0.01)

    return run


# ---- joints ------------------------------------------------------------------------------------------------------

JOINTS: dict[type, Any] = {
    Ball: Ball(),
    Hinge: Hinge((0.0, 1.0, 0.0)),
    Slider: Slider((1.0, 0.0, 0.0)),
    Fixed: Fixed(),
    SixAxis: SixAxis(linear=(FREE, (0.0, 0.0), (0.0, 0.0))),
}


def hanging(joint: Any, shape: Any = None) -> Scene:
    """A ball that is held a metre beside it."""
    scene = Scene()
    scene.add_body(shape or Sphere(0.25), (1.0, 0.0, 0.0))
    scene.add_joint(joint, 0, WORLD, (0.0, 0.0, 0.0))
    return scene


def holds(joint: Any) -> Callable[[Start], None]:
    def run(start: Start) -> None:
        scene = hanging(joint)
        engine = start(scene)
        engine.step(200)
        assert joint_gaps(scene, engine.get_states(), np.array([0])).max() < 0.02

    return run


def limits(start: Start) -> None:
    engine = start(hanging(Hinge((0.0, 1.0, 0.0), limits=(-0.2, 0.2))))
    engine.step(400)
    assert abs(np.arctan2(engine.get_states()[0, 2], engine.get_states()[0, 0])) < 0.25


def motors(start: Start) -> None:
    scene = hanging(Hinge((0.0, 0.0, 1.0), motor=Motor(2.0, 1e5)))
    engine = start(scene)
    engine.step(200)
    np.testing.assert_allclose(engine.get_states()[0, 10:], (0.0, 0.0, 2.0), atol=0.02)


def springs(start: Start) -> None:
    """At rest its weight stretches it by m g / k."""
    spring = Spring(stiffness=2000.0, damping=300.0)
    scene = Scene()
    scene.add_body(Sphere(0.25), (0.0, 0.0, 0.0), mass=20.0)
    joint = SixAxis(linear=(FREE, (0.0, 0.0), (0.0, 0.0)), springs={0: spring}, axis=(0.0, 0.0, 1.0))
    scene.add_joint(joint, 0, WORLD, (0.0, 0.0, 0.0))
    engine = start(scene)
    engine.step(1000)
    np.testing.assert_allclose(engine.get_states()[0, 2], -20.0 * 9.81 / 2000.0, rtol=0.02)


def breaks(start: Start) -> None:
    engine: Any = start(hanging(Fixed(breaks=Breaks(force=1.0))))
    engine.step(50)
    assert reported(engine, JointBreaks).joint.tolist() == [0]
    assert engine.get_states()[0, 2] < -0.01


def distance(start: Start) -> None:
    """A ball on a rope falls until it is tight, and no farther."""
    scene = Scene()
    scene.add_body(Sphere(0.25), (0.0, 0.0, 0.0))
    scene.add_joint(Distance(upper=1.0), 0, WORLD, (0.0, 0.0, 0.0), anchor_b=(0.0, 0.0, 0.0))
    engine = start(scene)
    engine.step(1000)
    np.testing.assert_allclose(engine.get_states()[0, 2], -1.0, atol=0.01)


def gear(start: Start) -> None:
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    scene.add_bodies(Sphere(0.25), [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)])
    for body, motor in enumerate((Motor(2.0, 1e5), None)):
        scene.add_joint(Hinge((0.0, 1.0, 0.0), motor=motor), body, WORLD, (float(body), 0.0, 0.0))
    scene.add_joint(Gear(-0.5, (0.0, 1.0, 0.0), (0.0, 1.0, 0.0)), 0, 1, (0.0, 0.0, 0.0))
    engine = start(scene)
    engine.step(100)
    np.testing.assert_allclose(engine.get_states()[:, 11], (2.0, -4.0), rtol=0.01)


def drives(start: Start) -> None:
    """It holds a weight at an angle, up to what that takes of its stiffness."""
    engine = start(hanging(Hinge((0.0, 1.0, 0.0), drive=Drive(-0.5, stiffness=1e7, damping=1e6))))
    engine.step(1000)
    np.testing.assert_allclose(np.arctan2(engine.get_states()[0, 2], engine.get_states()[0, 0]), 0.5, atol=0.01)


def joint_friction(start: Start) -> None:
    """It holds what is lighter than it can bear."""
    engine = start(hanging(Hinge((0.0, 1.0, 0.0), friction=1e4)))
    engine.step(100)
    np.testing.assert_allclose(engine.get_states()[0, 2], 0.0, atol=1e-3)


def ball_limits(start: Start) -> None:
    engine = start(hanging(Ball(swing=0.3)))
    engine.step(500)
    assert abs(np.arctan2(engine.get_states()[0, 2], engine.get_states()[0, 0])) < 0.35


def counted_angles(start: Start) -> None:
    """It goes for a whole turn and a half."""
    scene = hanging(Hinge((0.0, 0.0, 1.0), drive=Drive(3 * np.pi, stiffness=1e5, damping=4e4)))
    engine = start(scene)
    turned = 0.0
    for _ in range(2000):
        engine.step()
        turned += scene.timestep * engine.get_states()[0, 12]
    np.testing.assert_allclose(turned, 3 * np.pi, rtol=0.02)


# ---- bodies ------------------------------------------------------------------------------------------------------


def hits(start: Start) -> None:
    scene = ground()
    scene.add_body(Sphere(0.5), (0.0, 0.0, 0.6), hit_impulse=1.0, linear_velocity=(0.0, 0.0, -5.0))
    engine: Any = start(scene)
    engine.step(50)
    assert reported(engine, Hits).bodies.tolist()[0] == [0, -1]


def touches(start: Start) -> None:
    scene = ground()
    scene.add_body(Sphere(0.5), (0.0, 0.0, 0.51), touch_events=True)
    engine: Any = start(scene)
    engine.step(50)
    assert len(reported(engine, TouchReports).bodies)


def slides(start: Start) -> None:
    """A box that is pushed by more than friction holds."""
    scene = ground()
    scene.add_body(Box((1.0, 1.0, 1.0)), (0.0, 0.0, 0.5), mass=1.0)
    engine: Any = start(scene, slide_speed=0.1)
    engine.step(20)
    assert len(reported(engine, Slides)) == 0
    engine.add_forces([0], [(2000.0, 0.0, 0.0)])
    engine.step()
    assert reported(engine, Slides).bodies.tolist() == [[0, -1]]


def joint_forces(start: Start) -> None:
    """A ball that hangs in the air: its joint bears its weight."""
    scene = Scene()
    scene.add_body(Sphere(0.25), (0.0, 0.0, 0.0), mass=2.0)
    scene.add_joint(Ball(), 0, WORLD, (0.0, 0.0, 0.0))
    engine: Any = start(scene, keep_forces=True)
    engine.step(50)
    np.testing.assert_allclose(np.linalg.norm(engine.joint_forces([0])[0, :3]), 2.0 * 9.81, rtol=0.01)


def contact_impulses(start: Start) -> None:
    scene = balls(mass=2.0)
    engine: Any = start(scene, keep_forces=True)
    engine.step(50)
    np.testing.assert_allclose(engine.contact_points().normal_impulse.sum(), 2.0 * 9.81 * scene.timestep, rtol=0.01)


def sensors(start: Start) -> None:
    scene = Scene()
    scene.add_sensor(Box((2.0, 2.0, 0.4)), (0.0, 0.0, -1.0))
    scene.add_body(Sphere(0.2), (0.0, 0.0, 0.0))
    engine: Any = start(scene)
    engine.change(Changes(senses=True))
    engine.step(300)
    assert reported(engine, SensorEvents).pair.tolist()[0] == [0, 0]


def no_sensors(start: Start) -> None:
    """The server looks in its place."""
    engine: Any = start(balls())
    engine.step()
    assert len(reported(engine, SensorEvents)) == 0


def kinematic(start: Start) -> None:
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    scene.add_kinematic(Sphere(0.5), (-1.0, 0.0, 0.0), motion=ConstantVelocity((1.0, 0.0, 0.0)))
    scene.add_body(Sphere(0.5), (0.1, 0.0, 0.0))
    engine = start(scene)
    engine.step(200)
    np.testing.assert_allclose(engine.get_states()[0, 7], 1.0, atol=0.01)


def groups(start: Start) -> None:
    scene = ground(group=1, mask=1)
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 0.5)], group=1, mask=1)
    scene.add_bodies(Sphere(0.5), [(3.0, 0.0, 0.5)], group=2, mask=2)
    engine = start(scene)
    engine.step(100)
    assert abs(engine.get_states()[0, 2] - 0.5) < 0.01
    assert engine.get_states()[1, 2] < 0.4


DUMB_BELL = (-1.0, 0.0, 0.0), (1.0, 0.0, 0.0)


def part_groups(start: Start) -> None:
    """Of two balls in one body the first falls through the ground, the second does not."""
    scene = ground(group=1, mask=1)
    shape = Compound((Part(Sphere(0.4), DUMB_BELL[0], group=2, mask=2), Part(Sphere(0.4), DUMB_BELL[1])))
    scene.add_body(shape, (0.0, 0.0, 0.4), group=1, mask=1)
    engine = start(scene)
    engine.step(150)
    _, tilt, _ = engine.get_states()[0, 10:]
    assert tilt < -0.5
    assert 0.0 < engine.get_states()[0, 2] < 0.39


def part_materials(start: Start) -> None:
    """Sliding, the part that has friction stays behind the one that has none."""
    slick, rough = Material(friction=0.0), Material(friction=1.0)
    scene = ground(material=Material(friction=0.2))
    sides = (0.0, -1.0, 0.0), (0.0, 1.0, 0.0)
    parts = Part(Box((0.5, 0.5, 0.5)), sides[0]), Part(Box((0.5, 0.5, 0.5)), sides[1], material=rough)
    scene.add_body(Compound(parts), (0.0, 0.0, 0.25), material=slick, linear_velocity=(3.0, 0.0, 0.0))
    engine = start(scene)
    engine.step(50)
    assert engine.get_states()[0, 12] > 0.1


def combine_rules(start: Start) -> None:
    """A ball on a slope rolls where the product of two frictions holds it, and slides where the least of them is 0."""
    scene = Scene(gravity=(3.0, 0.0, -9.0))
    scene.add_static(Plane(), material=Material(friction=1.0))
    for k, rule in enumerate(("maximum", "minimum")):
        scene.add_body(Sphere(0.5), (0.0, 3.0 * k, 0.5), material=Material(friction=0.0, friction_combine=rule))
    engine = start(scene)
    engine.step(100)
    held, loose = engine.get_states()
    np.testing.assert_allclose(held[7], 3.0 * 0.2 * 5 / 7, rtol=0.05)
    np.testing.assert_allclose(loose[7], 3.0 * 0.2, rtol=0.05)


def fields(start: Start) -> None:
    """It stops in a medium, however thick that is."""
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 0.0), (3.0, 0.0, 0.0)], linear_velocities=(0.0, 0.0, 1.0), mass=1.0)
    scene.add_field(Drag(linear=1e3), bodies=[1])
    engine = start(scene)
    engine.step(50)
    np.testing.assert_allclose(engine.get_states()[:, 9], (1.0, 0.0), atol=1e-3)


def restitution(start: Start) -> None:
    scene = ground(material=Material(restitution=1.0))
    scene.add_body(Sphere(0.5), (0.0, 0.0, 1.0), material=Material(restitution=1.0))
    engine = start(scene)
    highest = 0.0
    for _ in range(40):
        engine.step(10)
        highest = max(highest, float(engine.get_states()[0, 9]))
    assert highest > 2.8  # 3.13 m/s down


def rolling_friction(start: Start) -> None:
    scene = balls(2)
    scene.bodies.rolling_friction[0] = 0.05
    scene.bodies.linear_velocity[:, 0] = 1.0
    scene.bodies.angular_velocity[:, 1] = 2.0
    engine = start(scene)
    engine.step(400)
    assert engine.get_states()[0, 7] < 0.6
    assert engine.get_states()[1, 7] > 0.9


# ---- the engine --------------------------------------------------------------------------------------------------


def sleep(start: Start) -> None:
    engine = start(balls(), sleep=True, sleep_after=0.1)
    engine.step(1500)
    asleep = engine.get_states()
    assert engine.report().sleeping_count == len(asleep)
    engine.step(10)
    np.testing.assert_array_equal(engine.get_states(), asleep)


def tower(count: int = 6) -> Scene:
    scene = ground()
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 0.5 + 0.99 * k) for k in range(count)])
    return scene


def after(start: Start, **params: Any) -> bytes:
    engine = start(tower(), **params)
    engine.step(3)
    return engine.get_states().tobytes()


def iterations(start: Start) -> None:
    assert after(start, iterations=1) != after(start, iterations=30)


def few_are_enough(start: Start) -> None:
    assert after(start, iterations=200) == after(start, iterations=400)


def residual(start: Start) -> None:
    engine = start(tower())
    engine.step()
    assert engine.report().residual > 0


def no_residual(start: Start) -> None:
    engine = start(tower())
    engine.step()
    assert np.isnan(engine.report().residual)


def warm_start(start: Start) -> None:
    """Contacts that have lost their impulses are solved otherwise."""
    scene = ground()
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 0.5 + k) for k in range(12)], mass=np.geomspace(1.0, 1000.0, 12))
    warm, cold = start(scene), start(scene)
    for engine in (warm, cold):
        engine.step(50)
    cold.change(Changes(forgets_contacts=True))
    for engine in (warm, cold):
        engine.step(2)
    assert warm.get_states().tobytes() != cold.get_states().tobytes()


def nothing_is_kept(start: Start) -> None:
    warm, cold = start(tower()), start(tower())
    for engine in (warm, cold):
        engine.step(50)
    cold.change(Changes(forgets_contacts=True))
    for engine in (warm, cold):
        engine.step()
    np.testing.assert_allclose(warm.get_states(), cold.get_states(), atol=1e-6)


def contact_cache(start: Start) -> None:
    engine, other = start(tower()), start(tower())
    engine.step(20)
    other.restore(engine.state())
    for one in (engine, other):
        one.step(5)
    assert engine.get_states().tobytes() == other.get_states().tobytes()
    assert len(engine.state().points)


def states_alone(start: Start) -> None:
    engine = start(tower())
    engine.step(20)
    assert not len(engine.state().points)


def added_bodies(start: Start) -> None:
    scene = balls()
    engine: Any = start(scene)
    scene.add_body(Sphere(0.5), (3.0, 0.0, 0.5))
    engine.change(Changes(grown=True))
    engine.activate([1], scene.states[[1]])
    engine.step(50)
    np.testing.assert_allclose(engine.get_states()[:, 2], 0.5, atol=0.01)


def does_not_grow(start: Start) -> None:
    assert not hasattr(start(balls()), "grow")


def direct_solvers(start: Start) -> None:
    engine = start(balls(), solver="dantzig")
    engine.step(50)
    np.testing.assert_allclose(engine.get_states()[0, 2], 0.5, atol=0.01)


def cylinder_beside_a_ball() -> tuple[Scene, Any]:
    """They do not touch, though their boxes do."""
    scene = Scene()
    scene.add_bodies([Cylinder(0.5, 1.0), Sphere(0.5)], [(0.0, 0.0, 0.0), (0.75, 0.75, 0.0)])
    return scene, [[0, 1]]


def exact_clearances(start: Start) -> None:
    scene = Scene()
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 0.0), (0.75, 0.75, 0.0)])  # whose boxes overlap
    engine = start(scene)
    gap = 0.75 * np.sqrt(2) - 1.0
    assert 0 < engine.clearances([[0, 1]], scene.states)[0] <= gap


def clearances_by_boxes(start: Start) -> None:
    """0 before there is a contact, by the room that a shape leaves in its box."""
    scene, pairs = cylinder_beside_a_ball()
    engine = start(scene)
    engine.contacts(now=True)
    assert len(engine.contacts()) == 0
    assert engine.clearances(pairs, scene.states)[0] == 0


CASES: dict[str, Case] = {
    **{kind.__name__: Case(rests(*given)) for kind, given in RESTING.items()},
    **{kind.__name__: Case(carries(shape)) for kind, shape in GROUNDS.items()},
    **{kind.__name__: Case(holds(joint)) for kind, joint in JOINTS.items()},
    "limits": Case(limits),
    "motors": Case(motors),
    "springs": Case(springs),
    "Distance": Case(distance),
    "Gear": Case(gear),
    "breaks": Case(breaks),
    "drives": Case(drives),
    "joint friction": Case(joint_friction),
    "ball limits": Case(ball_limits),
    "counted angles": Case(counted_angles),
    "hits": Case(hits),
    "slides": Case(slides),
    "touches": Case(touches),
    "joint forces": Case(joint_forces),
    "contact impulses": Case(contact_impulses),
    "sensors": Case(sensors, no_sensors),
    "groups": Case(groups),
    "part groups": Case(part_groups),
    "part materials": Case(part_materials),
    "combine rules": Case(combine_rules),
    "fields": Case(fields),
    "kinematic bodies": Case(kinematic),
    "restitution": Case(restitution),
    "rolling friction": Case(rolling_friction),
    "sleep": Case(sleep),
    "iterations": Case(iterations, few_are_enough),
    "residual": Case(residual, no_residual),
    "warm start": Case(warm_start, nothing_is_kept),
    "contact cache": Case(contact_cache, states_alone),
    "added bodies": Case(added_bodies, does_not_grow),
    "direct solvers": Case(direct_solvers, solver="sequential"),
    "exact clearances": Case(exact_clearances, clearances_by_boxes),
}
ROWS = tuple(one if isinstance(one, str) else one.__name__ for one in (*ALL_SHAPES, *ALL_JOINTS, *FEATURES))
"""Everything that an engine can declare, in the order of the table."""
