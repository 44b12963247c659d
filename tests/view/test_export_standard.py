"""What other programs find in exported files: without words of our own, by the standards alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exported_scenes import assert_same_shape, every_joint, every_shape
from lapjoint import Compound, Scene, Sphere
from lapjoint.files.read import read_with_notes
from lapjoint.scene.joints import JointKind
from lapjoint.view.export.frames import frames_of_scene
from lapjoint.view.export.gltf import write_gltf

pytest.importorskip("pxr")
from pxr import Sdf

from lapjoint.view.export.usd import write_usd

OURS = ("label", "linear_damping", "angular_damping", "rolling_friction", "hit_impulse", "hit_speed", "touch_events")
OURS += ("group", "mask", "friction_combine", "restitution_combine")


def strip_usd(path: Path) -> None:
    """Take all attributes of our own out of a file."""
    layer = Sdf.Layer.FindOrOpen(str(path))
    waiting = list(layer.rootPrims)
    while waiting:
        prim = waiting.pop()
        waiting.extend(prim.nameChildren)
        for name in [one.name for one in prim.properties if one.name.startswith("lapjoint:")]:
            prim.RemoveProperty(prim.properties[name])
    layer.Save()


def strip_gltf(path: Path) -> None:
    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(inner) for key, inner in value.items() if key != "extras"}
        return [without(inner) for inner in value] if isinstance(value, list) else value

    path.write_text(json.dumps(without(json.loads(path.read_text()))))


def standard_only(scene: Scene, kind: str, folder: Path) -> Scene:
    """A scene after it was exported, and all but the standard was taken away."""
    if kind == "usd":
        path = folder / "scene.usda"
        write_usd(frames_of_scene(scene), path)
        strip_usd(path)
    else:
        path = folder / "scene.gltf"
        write_gltf(frames_of_scene(scene), path)
        strip_gltf(path)
    return read_with_notes(path)[0]


def touching(scene: Scene) -> np.ndarray:
    """Which bodies may touch, part by part: (parts, parts)."""
    bits = []
    for table in (scene.bodies, scene.statics):
        for group, mask, shape_id in zip(table.group.tolist(), table.mask.tolist(), table.shape_id, strict=True):
            shape = scene.shapes[shape_id]
            for part in shape.parts if isinstance(shape, Compound) else [None]:
                own = part is not None
                bits.append(
                    (
                        part.group if own and part.group is not None else group,
                        part.mask if own and part.mask is not None else mask,
                    )
                )
    groups, masks = (np.array(one, np.uint32) for one in zip(*bits, strict=True))
    seen = (groups[:, None] & masks[None, :]) != 0
    return np.asarray(seen & seen.T)


@pytest.mark.parametrize("kind", ["usd", "gltf"])
def test_bodies_masses_and_shapes_are_in_the_standard(kind: str, tmp_path: Path) -> None:
    scene = every_shape()
    found = standard_only(scene, kind, tmp_path)
    assert found.body_count == scene.body_count
    for column in scene.bodies:
        if column not in (*OURS, "shape_id", "inertia", "quaternion"):
            mine, theirs = getattr(scene.bodies, column), getattr(found.bodies, column)
            np.testing.assert_allclose(theirs, mine, rtol=2e-6, atol=2e-6, err_msg=column)
    np.testing.assert_allclose(found.bodies.friction, scene.bodies.friction, rtol=1e-6)
    same = 0
    for body in range(scene.body_count):
        one, other = (each.shapes[each.bodies.shape_id[body]] for each in (scene, found))
        if type(one) is type(other) and not isinstance(one, Compound) and type(one).__name__ != "ConvexHull":
            assert_same_shape(one, other, 2e-6, f"body {body}")
            same += 1
    assert same >= 7 - (kind == "usd"), "an ellipsoid of USD is a mesh"
    gravity = (0.5, 0.0, -9.0) if kind == "usd" else (0.0, 0.0, -9.81)
    np.testing.assert_allclose(found.gravity, gravity, atol=1e-6)


@pytest.mark.parametrize("kind", ["usd", "gltf"])
def test_joints_are_in_the_standard(kind: str, tmp_path: Path) -> None:
    scene = every_joint()
    found = standard_only(scene, kind, tmp_path)
    assert found.joint_count == scene.joint_count
    order = np.arange(scene.joint_count)
    if kind == "gltf":  # as the nodes have them
        key = {
            tuple(np.round(row, 5)): k
            for k, row in enumerate(np.concatenate([found.joints.frame_a, found.joints.frame_b], 1))
        }
        order = np.array(
            [
                key.get(tuple(np.round(row, 5)), -1)
                for row in np.concatenate([scene.joints.frame_a, scene.joints.frame_b], 1)
            ]
        )
    looked = 0
    for joint, theirs in enumerate(order.tolist()):
        mine = JointKind(scene.joints.kind[joint])
        if theirs < 0 or mine in (JointKind.GEAR, JointKind.DISTANCE) or JointKind(found.joints.kind[theirs]) != mine:
            continue
        looked += 1
        axes = range(6) if mine is not JointKind.BALL else (4, 5)  # USD has no twist
        for column in ("lower", "upper"):
            wanted, given_one = getattr(scene.joints, column)[joint], getattr(found.joints, column)[theirs]
            np.testing.assert_allclose(given_one[list(axes)], wanted[list(axes)], rtol=1e-5, atol=1e-6)
        driven = scene.joints.drive_max_force[joint] > 0
        for column in ("position", "velocity", "stiffness", "damping", "max_force"):
            wanted, given_one = (getattr(each.joints, f"drive_{column}") for each in (scene, found))
            np.testing.assert_allclose(given_one[theirs][driven], wanted[joint][driven], rtol=1e-5, atol=1e-6)
        pushed = (scene.joints.motor_max_force[joint] > 0) | (scene.joints.spring_stiffness[joint] > 0)
        assert (found.joints.drive_max_force[theirs][pushed] > 0).all(), "motors and springs are drives"
    assert looked >= 9


@pytest.mark.parametrize("kind", ["usd", "gltf"])
@settings(max_examples=15, deadline=None)
@given(bits=st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), min_size=2, max_size=7))
def test_who_may_touch_whom_is_in_the_standard(
    kind: str, bits: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    scene = Scene()
    for k, (group, mask) in enumerate(bits):
        scene.add_body(Sphere(0.1), (k, 0.0, 0.0), group=group, mask=mask)
    scene.add_static(Sphere(0.1), (0.0, 5.0, 0.0), group=2, mask=7)
    found = standard_only(scene, kind, tmp_path_factory.mktemp("bits"))
    assert np.array_equal(touching(found), touching(scene))
