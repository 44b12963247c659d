"""A scene with everything that a file can have, and how two scenes are compared."""

from __future__ import annotations

import numpy as np

from lapjoint import (
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
    Drive,
    Ellipsoid,
    Fixed,
    Gear,
    HeightField,
    Hinge,
    Keyframes,
    Material,
    Motor,
    Oscillation,
    Part,
    Plane,
    Rotation,
    Scene,
    SixAxis,
    Slider,
    Sphere,
    Spring,
    TriangleMesh,
)
from lapjoint.arrays import rotation
from lapjoint.scene.bonds import BOND_LAYOUT, with_breaks
from lapjoint.scene.file import describe_shape
from lapjoint.scene.tables import BODY_LAYOUT, JOINT_LAYOUT, SENSOR_LAYOUT, STATIC_LAYOUT

RUBBER = Material(friction=0.9, restitution=0.4, friction_combine="maximum", restitution_combine="average")
ICE = Material(friction=0.02, friction_combine="multiply")
ROLLING = Material(rolling_friction=0.01, linear_damping=0.1, angular_damping=0.2)


def every_shape() -> Scene:
    """Every shape, moving or static; materials, filters, motions, and what else bodies have."""
    rng = np.random.default_rng(3)
    options = {"timestep": 0.005, "iterations": 30, "growth_depth": 1, "search_depth": 3}
    scene = Scene("every shape", gravity=(0.5, 0.0, -9.0), **options)
    scene.camera = ((9.0, -5.0, 4.0), (2.0, 0.0, 1.0))
    hull = ConvexHull(rng.normal(size=(20, 3)) * (0.3, 0.2, 0.1))
    compound = Compound(
        (
            Part(Box((0.4, 0.2, 0.2)), (0.1, 0.0, 0.0)),
            Part(Cylinder(0.1, 0.3), (0.4, 0.1, 0.0), (0.8, 0.6, 0.0, 0.0), material=ICE),
            Part(Cone(0.1, 0.3), (0.0, 0.4, 0.0), group=2, mask=5, relative_density=3.0),
            Part(hull, (0.0, -0.4, 0.2)),
        )
    )
    shapes = [
        Sphere(0.3),
        Box((0.2, 0.4, 0.6)),
        Capsule(0.1, 0.5),
        Cylinder(0.2, 0.3),
        Cone(0.2, 0.5),
        Ellipsoid((0.1, 0.2, 0.3)),
        hull,
        compound,
        Compound((Part(Sphere(0.2)),)),
    ]
    turns = rng.normal(size=(len(shapes), 4))
    for k, shape in enumerate(shapes):
        scene.add_body(
            shape,
            (1.5 * k, 0.1 * k, 2.0),
            turns[k] / np.linalg.norm(turns[k]),
            mass=0.5 + k,
            material=(None, RUBBER, ROLLING)[k % 3],
            label=k // 3,
        )
    scene.add_body(Box((1.0, 0.5, 0.3)), (0.0, 3.0, 1.0), name="a box: it's turned/über", group=4, mask=9)
    scene.add_body(
        Sphere(0.2),
        (0.0, 4.0, 1.0),
        inertia=rotation_of((0.02, 0.03, 0.04)),
        linear_velocity=(1.0, -2.0, 0.5),
        angular_velocity=(0.1, 0.2, -3.0),
        hit_impulse=2.5,
        hit_speed=0.7,
        touch_events=True,
        name="ball",
    )
    scene.ignore([0, 3], [1, 2])
    scene.add_static(Plane(), material=RUBBER)
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.2], [1, 1, 0.5]], float)
    slope = TriangleMesh(corners, [[0, 1, 2], [1, 3, 2]])
    scene.add_static(slope, (5.0, 5.0, 0.0), surface_velocity=(1.0, 0, 0, 0, 0, 2.0))
    scene.add_kinematic(Box((1.0, 1.0, 0.1)), (0.0, 0.0, 0.5), motion=Rotation((0.0, 0.0, 1.0), 2.0))
    scene.add_static(HeightField(rng.normal(size=(4, 3)) * 0.1, (0.5, 0.25)), (7.0, 5.0, 0.0), group=2)
    scene.add_static(compound, (0.0, -3.0, 0.0), (0.0, 1.0, 0.0, 0.0), material=RUBBER)
    scene.add_kinematic(compound, (0.0, -5.0, 0.0), motion=Oscillation((0.0, 0.0, 0.1), 2.0))
    scene.add_kinematic(Sphere(0.1), (3.0, -5.0, 0.0))
    scene.add_kinematic(Cone(0.1, 0.2), (4.0, -5.0, 0.0), motion=ConstantVelocity((0.1, 0.0, 0.0)))
    scene.add_kinematic(Sphere(0.1), motion=Keyframes([0.0, 1.0], [[5.0, -5.0, 0.0], [6.0, -5.0, 0.0]]))
    scene.add_sensor(Cone(0.3, 0.5), (1.0, 2.0, 3.0), (0.6, 0.8, 0.0, 0.0), body=3, name="front", mask=4)
    scene.add_sensor(Box((1.0, 2.0, 3.0)), (8.0, 0.0, 1.0))
    scene.add_sensor(Capsule(0.1, 0.2), (0.0, 0.0, 0.3), body=-1 - 2)
    return scene


def rotation_of(moments: tuple[float, float, float]) -> np.ndarray:
    turn = rotation.to_matrix(rotation.from_axis_angle((1.0, 2.0, 3.0), 0.7))
    return turn @ np.diag(moments) @ turn.T


def every_joint() -> Scene:
    """Every kind of joint, with limits, drives, motors, springs, friction and strengths."""
    scene = Scene("every joint")
    count = 18
    for k in range(count):
        turn = rotation.from_axis_angle((1.0, 1.0, k + 0.5), 0.2 * k)
        scene.add_body(Box((0.4, 0.3, 0.2)), (0.5 * k, 0.0, 3.0), turn)
    low, high = (-0.5, 0.3), (-np.inf, np.inf)
    joints = [
        Ball(),
        Ball(swing=0.8, twist=(-0.3, 0.4), axis=(0.0, 0.0, 1.0), friction=0.2),
        Hinge((0.0, 1.0, 0.0)),
        Hinge((0.0, 1.0, 1.0), limits=(-1.0, 4.0), drive=Drive(0.5, 0.1, 20.0, 3.0, 7.0), friction=0.05),
        Hinge((1.0, 1.0, 0.0), motor=Motor(2.0, 5.0), breaks=Breaks(100.0, 20.0)),
        Slider((0.0, 0.0, 1.0), limits=low, drive=Drive(velocity=0.3, damping=4.0)),
        Slider((1.0, 0.0, 1.0), motor=Motor(-0.2, 3.0), friction=1.5),
        Fixed(breaks=Breaks(force=50.0)),
        Fixed(),
        SixAxis(
            linear=(low, (0.0, 0.0), high),
            angular=((0.0, 0.0), low, high),
            springs={0: Spring(30.0, 2.0, 0.1), 5: Spring(4.0)},
            motors={2: Motor(0.5, 2.0)},
            drives={4: Drive(0.1, 0.0, 5.0, 1.0), 5: Drive(-0.2, 0.0, 7.0, 1.0, 3.0)},
            frictions={5: 0.3},
            axis=(0.0, 1.0, 0.0),
            breaks=Breaks(torque=9.0),
        ),
        SixAxis(linear=((-np.inf, 0.5), (-0.2, np.inf), (0.1, 0.1))),
    ]
    for k, joint in enumerate(joints):
        other = WORLD if k % 4 == 0 else k
        scene.add_joint(joint, k + 1, other, (0.5 * k + 0.2, 0.1, 3.0), collide=k % 3 == 0)
    ends = {"anchors_b": [[6.0, 0.5, 3.0]]}
    scene.add_joints(Distance(0.6), [13], [12], [[6.2, 0.0, 3.1]], **ends)
    scene.add_joints(Distance(upper=2.0), [14], [WORLD], [[6.5, 0.0, 3.0]], **ends)
    scene.add_joints(Distance(lower=0.2), [15], [12], [[7.0, 0.0, 3.0]], **ends)
    scene.add_joint(Gear(-2.5, (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), 16, 17, (8.0, 0.0, 3.0))
    return scene


def assert_same_scene(one: Scene, other: Scene, tolerance: float = 2e-6, *, without: tuple[str, ...] = ()) -> None:
    """Equal but for rounding; shapes may be numbered otherwise, and bits of filters may be others where these are left
    out. Names of columns that are left out are as in `bodies/label`."""
    for name in ("name", "timestep", "iterations", "growth_depth", "search_depth", "camera"):
        if name not in without:
            assert getattr(one, name) == getattr(other, name), name
    np.testing.assert_allclose(one.gravity, other.gravity, rtol=tolerance, atol=tolerance)
    if "body_names" not in without:
        assert one.body_names == other.body_names
    tables = {
        "bodies": (one.bodies, other.bodies, BODY_LAYOUT),
        "statics": (one.statics, other.statics, STATIC_LAYOUT),
        "joints": (one.joints, other.joints, JOINT_LAYOUT),
        "sensors": (one.sensors, other.sensors, SENSOR_LAYOUT),
    }
    for title, (mine, theirs, layout) in tables.items():
        assert len(mine) == len(theirs), title
        for column in layout:
            if f"{title}/{column}" in without or column in BOND_LAYOUT:  # which files of others do not know
                continue
            if column == "shape_id":
                for row, (a, b) in enumerate(zip(mine.shape_id, theirs.shape_id, strict=True)):
                    assert_same_shape(one.shapes[a], other.shapes[b], tolerance, f"{title} {row}")
                continue
            a, b = np.array(getattr(mine, column)), np.array(getattr(theirs, column))
            if column.startswith("break_"):  # of bonds, what would break them alone
                rows = ({name: values[i] for name, values in mine.views().items()} for i in range(len(mine)))
                a = np.array([with_breaks(row)[column] for row in rows])
            if column == "quaternion":
                b = b * np.where((a * b).sum(axis=1) < 0, -1, 1)[:, None]
            if column in ("frame_a", "frame_b"):
                b[:, 3:] *= np.where((a[:, 3:] * b[:, 3:]).sum(axis=1) < 0, -1, 1)[:, None]
            size = 1.0 if column != "inertia" else np.abs(a).max(axis=(1, 2), keepdims=True)
            np.testing.assert_allclose(a / size, b / size, rtol=tolerance, atol=tolerance, err_msg=f"{title}/{column}")
    assert one.sensors.names == other.sensors.names
    assert one.ignored_pairs.tolist() == other.ignored_pairs.tolist()
    assert set(one.motions) == set(other.motions)
    if "motions" not in without:
        for number, motion in one.motions.items():
            theirs_motion = other.motions[number]
            assert (motion.kind, motion.start) == (theirs_motion.kind, theirs_motion.start)
            np.testing.assert_allclose(motion.values, theirs_motion.values, rtol=tolerance)
            np.testing.assert_allclose(motion.base, theirs_motion.base, rtol=tolerance, atol=tolerance)


def assert_same_shape(one: object, other: object, tolerance: float, what: str) -> None:
    """Equal descriptions, but for rounding."""
    mine: dict[str, np.ndarray] = {}
    theirs: dict[str, np.ndarray] = {}
    _assert_same(describe_shape(one, "s", mine), describe_shape(other, "s", theirs), tolerance, what)  # type: ignore[arg-type]
    assert set(mine) == set(theirs), what
    for name, array in mine.items():
        np.testing.assert_allclose(array, theirs[name], rtol=tolerance, atol=tolerance, err_msg=what)


def _assert_same(one: object, other: object, tolerance: float, what: str) -> None:
    if isinstance(one, dict) and isinstance(other, dict):
        assert set(one) == set(other), f"{what}: {one} {other}"
        for key in one:
            theirs = other[key]
            if key == "quaternion" and np.dot(one[key], theirs) < 0:
                theirs = tuple(-np.array(theirs))
            _assert_same(one[key], theirs, tolerance, f"{what}/{key}")
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        assert len(one) == len(other), what
        for a, b in zip(one, other, strict=True):
            _assert_same(a, b, tolerance, what)
    elif isinstance(one, float):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=what)
    else:
        assert one == other, what
