"""One scene in several formats: equal bodies, joints and masses, whichever is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exported_scenes import assert_same_scene, assert_same_shape
from lapjoint import LapjointError, Scene
from lapjoint.arrays import rotation
from lapjoint.files.read import read_scene, read_with_notes
from lapjoint.scene.joints import WORLD, JointKind

DATA = Path(__file__).parents[1] / "data" / "files"
pytest.importorskip("pxr")


def read(name: str) -> Scene:
    scene, notes = read_with_notes(DATA / name)
    assert notes.lines() == []
    return scene


def world_inertia(scene: Scene, body: int) -> np.ndarray:
    turn = rotation.to_matrix(scene.bodies.quaternion[body])
    return np.asarray(turn @ scene.bodies.inertia[body] @ turn.T)


def joint_frame(scene: Scene, joint: int, side: str) -> tuple[np.ndarray, np.ndarray]:
    """Anchor and axis in the world."""
    body, frame = getattr(scene.joints, f"body_{side}")[joint], getattr(scene.joints, f"frame_{side}")[joint]
    place, turn = np.zeros(3), rotation.IDENTITY
    if body != WORLD:
        place, turn = scene.bodies.position[body], scene.bodies.quaternion[body]
    axis = rotation.rotate(rotation.multiply(turn, frame[3:]), (1.0, 0.0, 0.0))
    return place + rotation.rotate(turn, frame[:3]), axis


@pytest.mark.parametrize("ending", ["xml", "usda", "gltf"])
def test_a_robot_is_the_same_in_all_four(ending: str) -> None:
    pytest.importorskip("mujoco")
    robot, other = read("rig.urdf"), read(f"rig.{ending}")
    assert [name.split("/")[-1] for name in other.body_names.values()] == list(robot.body_names.values())
    np.testing.assert_allclose(other.bodies.mass, robot.bodies.mass, rtol=1e-6)
    np.testing.assert_allclose(other.bodies.position, robot.bodies.position, atol=1e-6)
    for body in range(robot.body_count):
        wanted = world_inertia(robot, body)
        np.testing.assert_allclose(world_inertia(other, body), wanted, atol=1e-6 * np.trace(wanted))
        assert_same_shape(
            robot.shapes[robot.bodies.shape_id[body]], other.shapes[other.bodies.shape_id[body]], 1e-6, f"body {body}"
        )
    assert [JointKind(kind) for kind in robot.joints.kind] == [JointKind.HINGE, JointKind.SLIDER, JointKind.HINGE]
    for column in ("kind", "body_a", "body_b", "lower", "upper", "collide"):
        np.testing.assert_allclose(getattr(other.joints, column), getattr(robot.joints, column), atol=1e-6)
    for joint in range(robot.joint_count):
        for side in ("a", "b"):
            for mine, theirs in zip(joint_frame(robot, joint, side), joint_frame(other, joint, side), strict=True):
                np.testing.assert_allclose(mine, theirs, atol=1e-6)
    assert robot.static_count == other.static_count == 1
    np.testing.assert_allclose(robot.statics.position, other.statics.position, atol=1e-6)


def test_every_kind_of_joint_drive_filter_and_mass_is_the_same_in_usd_and_gltf() -> None:
    usd, gltf = read("kinds.usda"), read("kinds.gltf")
    assert [name.split("/")[-1] for name in usd.body_names.values()] == list(gltf.body_names.values())
    bits = tuple(f"{table}/{column}" for table in ("bodies", "statics") for column in ("group", "mask"))
    assert_same_scene(usd, gltf, without=("body_names", *bits))


def test_who_may_touch_whom_is_the_same_in_usd_and_gltf() -> None:
    usd, gltf = (
        relation(scene, list(range(scene.body_count)), list(range(scene.static_count)))
        for scene in (read("kinds.usda"), read("kinds.gltf"))
    )
    assert np.array_equal(usd, gltf)
    explicit, wall, lift = 0, 6, 7
    assert not usd[explicit, wall]
    assert not usd[wall, lift]
    assert usd[explicit, lift]
    assert usd.sum() == usd.size - 4


def relation(scene: Scene, bodies: list[int], statics: list[int]) -> np.ndarray:
    """Who may touch whom by groups and masks."""
    group, mask = (
        np.concatenate([getattr(scene.bodies, name)[bodies], getattr(scene.statics, name)[statics]])
        for name in ("group", "mask")
    )
    seen = (group[:, None] & mask[None, :]) != 0
    return np.asarray(seen & seen.T)


def test_what_mjcf_has_of_all_kinds_is_the_same_there() -> None:
    """Its joints, drives, filters and rules of mass; materials differ, and it has neither cones nor ropes."""
    pytest.importorskip("mujoco")
    usd, (mjcf, notes) = read("kinds.usda"), read_with_notes(DATA / "kinds.xml", keyframe="start")
    assert [line.partition(": ")[2] for line in notes.lines()] == [
        "the limit of a ball joint is that of its axis, not of its whole turn"
    ]
    names = list(mjcf.body_names.values())
    assert names == [name.split("/")[-1] for name in usd.body_names.values()][:4]
    np.testing.assert_allclose(mjcf.bodies.mass, usd.bodies.mass[:4], rtol=1e-6)
    np.testing.assert_allclose(mjcf.bodies.position, usd.bodies.position[:4], atol=1e-6)
    for body in range(4):
        wanted = world_inertia(usd, body)
        np.testing.assert_allclose(world_inertia(mjcf, body), wanted, atol=1e-6 * np.trace(wanted))
    kinds = [JointKind.HINGE, JointKind.SLIDER, JointKind.BALL, JointKind.FIXED]
    assert [JointKind(kind) for kind in mjcf.joints.kind] == kinds
    drives = [f"drive_{name}" for name in ("position", "velocity", "stiffness", "damping", "max_force")]
    for column in ("kind", "body_a", "body_b", "lower", "upper", *drives):
        mine, theirs = getattr(mjcf.joints, column), getattr(usd.joints, column)[:4]
        if column in ("body_a", "body_b"):  # a weld has no direction
            mine, theirs = mine[:3], theirs[:3]
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9, err_msg=column)
    for joint, kind in enumerate(kinds):
        (mine, axis), (theirs, wanted) = joint_frame(mjcf, joint, "a"), joint_frame(usd, joint, "a")
        np.testing.assert_allclose(mine, theirs, atol=1e-6)
        if kind in (JointKind.HINGE, JointKind.SLIDER):
            np.testing.assert_allclose(axis, wanted, atol=1e-6)
    touching = [relation(scene, [0, 1, 2, 3], [0, 1, 2])[:4] for scene in (mjcf, usd)]  # ground, wall and lift
    assert np.array_equal(*touching)
    assert not touching[0][0, 5]
    assert sorted(map(tuple, mjcf.ignored_pairs.tolist())) == [(0, 1), (1, 2), (2, 3)]


def test_the_kinds_of_kinds() -> None:
    scene = read("kinds.usda")
    kinds = [JointKind(kind).name for kind in scene.joints.kind]
    assert kinds == ["HINGE", "SLIDER", "BALL", "FIXED", "DISTANCE", "SIX_AXIS"]
    joints = scene.joints
    np.testing.assert_allclose(np.degrees((joints.lower[0, 3], joints.upper[0, 3])), (-30, 60), rtol=1e-6)
    np.testing.assert_allclose(joints.drive_stiffness[0, 3], 5.0, rtol=1e-6)
    np.testing.assert_allclose(joints.drive_max_force[0, 3], 10.0, rtol=1e-6)
    np.testing.assert_allclose((joints.drive_velocity[1, 0], joints.drive_damping[1, 0]), (0.5, 4.0), rtol=1e-6)
    np.testing.assert_allclose((joints.lower[4, 0], joints.upper[4, 0]), (0.5, 1.2), rtol=1e-6)
    # Exchanged, because the world is its body 1: limits and targets are of the tip's motion.
    np.testing.assert_allclose((joints.lower[5, 0], joints.upper[5, 0]), (-0.25, 0.5), rtol=1e-6)
    np.testing.assert_allclose(joints.drive_position[5, 0], -0.1, rtol=1e-6)
    # Solids of one density, by the formulas.
    capsule = 1000 * np.pi * 0.05**2 * (0.3 + 4 / 3 * 0.05)
    pair = 500 * 0.2**3 + 2000 * 4 / 3 * np.pi * 0.1**3
    np.testing.assert_allclose(scene.bodies.mass, [2, 3, capsule, pair, 1], rtol=1e-6)
    np.testing.assert_allclose(scene.bodies.inertia[1], 0.4 * 3 * 0.1**2 * np.eye(3), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(scene.bodies.linear_velocity[0], (1, 0, 0), atol=1e-6)
    np.testing.assert_allclose(scene.bodies.angular_velocity[0], (0, -np.pi / 2, 0), atol=1e-6)
    np.testing.assert_allclose(scene.gravity, (0, 0, -9.81), atol=1e-6)
    # A cone's centre of mass is a quarter above its base.
    np.testing.assert_allclose(scene.bodies.position[4], (4, 0, 0.9), atol=1e-6)


def test_a_scene_survives_its_own_file(tmp_path: Path) -> None:
    """Of a body whose mass is elsewhere than its shape: its parts stay where they are."""
    for name in ("kinds.usda", "rig.gltf"):
        scene = read(name)
        assert Scene.load(scene.save(tmp_path / "scene.npz")) == scene


@pytest.mark.parametrize("ending", [".usda", ".gltf", ".npz"])
def test_a_missing_file(ending: str, tmp_path: Path) -> None:
    with pytest.raises(LapjointError, match="there is no such file"):
        read_scene(tmp_path / f"none{ending}")


@pytest.mark.parametrize("ending", [".usda", ".gltf"])
def test_keyframes_are_of_mjcf_files(ending: str) -> None:
    with pytest.raises(LapjointError, match="a keyframe is given, expected an MJCF file"):
        read_scene(DATA / f"rig{ending}", keyframe="home")
