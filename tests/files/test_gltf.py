"""glTF files: rules of the extensions, and files that are wrong."""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapjoint import Box, Capsule, Cylinder, LapjointError, Scene, Sphere
from lapjoint.arrays import rotation
from lapjoint.files.read import read_scene, read_with_notes
from lapjoint.scene import Cone, Ellipsoid
from lapjoint.scene.joints import JointKind

RIGID, SHAPES = "KHR_physics_rigid_bodies", "KHR_implicit_shapes"
BALL = {"type": "sphere", "sphere": {"radius": 0.5}}
LOCKED = {"min": 0, "max": 0}


def body(shape: int = 0, motion: dict[str, Any] | None = None, **node: Any) -> dict[str, Any]:
    rigid = {"motion": motion or {}, "collider": {"geometry": {"shape": shape}}}
    return {**node, "extensions": {RIGID: rigid}}


def document(*nodes: dict[str, Any], shapes: list[Any] | None = None, **rigid: Any) -> dict[str, Any]:
    """All nodes that are nobody's child are in the scene."""
    below = {child for node in nodes for child in node.get("children", [])}
    return {
        "asset": {"version": "2.0"},
        "extensionsUsed": [RIGID, SHAPES],
        "scenes": [{"nodes": [k for k in range(len(nodes)) if k not in below]}],
        "nodes": list(nodes),
        "extensions": {SHAPES: {"shapes": shapes or [BALL]}, RIGID: rigid},
    }


def read(tmp_path: Path, *nodes: dict[str, Any], **more: Any) -> Scene:
    path = tmp_path / "scene.gltf"
    path.write_text(json.dumps(document(*nodes, **more)))
    return read_scene(path)


def joined(tmp_path: Path, *limits: dict[str, Any], drives: list[Any] | None = None) -> Scene:
    """A ball that hangs on the world."""
    joint = {"extensions": {RIGID: {"joint": {"connectedNode": 0, "joint": 0}}}}
    entry = {"limits": list(limits), **({"drives": drives} if drives else {})}
    return read(tmp_path, body(), joint, physicsJoints=[entry])


# ---- rules -----------------------------------------------------------------------------------------------------------


def test_y_is_up_and_velocities_are_in_the_nodes_frame(tmp_path: Path) -> None:
    turn = rotation.from_axis_angle((0.0, 1.0, 0.0), 0.5)
    xyzw = [*turn[1:].tolist(), turn[0]]
    motion = {"mass": 1, "linearVelocity": [1, 0, 0], "angularVelocity": [0, 2, 0]}
    scene = read(tmp_path, body(motion=motion, translation=[1, 2, 3], rotation=xyzw))
    np.testing.assert_allclose(scene.bodies.position[0], (1, -3, 2), atol=1e-12)
    np.testing.assert_allclose(scene.bodies.linear_velocity[0], (np.cos(0.5), np.sin(0.5), 0), atol=1e-12)
    np.testing.assert_allclose(scene.bodies.angular_velocity[0], (0, 0, 2), atol=1e-12)


@pytest.mark.parametrize(
    ("entry", "scale", "wanted"),
    [
        (BALL, [2, 2, 2], Sphere(1.0)),
        (BALL, [2, 4, 6], Ellipsoid((1.0, 2.0, 3.0))),
        ({"type": "box"}, [1, 2, 3], Box((1, 2, 3))),
        ({"type": "capsule"}, [2, 2, 2], Capsule(0.5, 1.0)),
        ({"type": "cylinder"}, [2, 4, 2], Cylinder(0.5, 2.0)),
        ({"type": "cylinder", "cylinder": {"radiusTop": 0, "radiusBottom": 1, "height": 4}}, [1, 1, 1], Cone(1.0, 4.0)),
        ({"type": "cylinder", "cylinder": {"radiusTop": 1, "radiusBottom": 0, "height": 4}}, [1, 1, 1], Cone(1.0, 4.0)),
    ],
)
def test_shapes_with_scales(entry: dict[str, Any], scale: list[float], wanted: object, tmp_path: Path) -> None:
    scene = read(tmp_path, body(scale=scale), shapes=[entry])
    assert scene.shapes == [wanted]
    if isinstance(wanted, Cone):
        up = -1.0 if entry["cylinder"]["radiusTop"] == 0 else 1.0
        np.testing.assert_allclose(scene.bodies.position[0], (0, 0, up), atol=1e-12)
        tip = rotation.rotate(scene.bodies.quaternion[0], (0.0, 0.0, 1.0))
        np.testing.assert_allclose(tip, (0, 0, -up), atol=1e-12)


def test_what_is_not_given_of_a_mass_follows_from_the_shapes(tmp_path: Path) -> None:
    solid = 1000 * 4 / 3 * np.pi * 0.5**3
    scene = read(
        tmp_path,
        body(motion={}, translation=[0, 0, 0]),
        body(motion={"mass": 2}, translation=[3, 0, 0]),
        body(motion={"mass": 2, "centerOfMass": [0.1, 0, 0]}, translation=[6, 0, 0]),
        body(motion={"centerOfMass": [0.1, 0, 0], "inertiaDiagonal": [1, 2, 2.5]}, translation=[9, 0, 0]),
    )
    np.testing.assert_allclose(scene.bodies.mass, [solid, 2, 2, solid])
    np.testing.assert_allclose(scene.bodies.position[:, 0], [0, 3, 6.1, 9.1])
    sphere = 0.4 * 0.5**2
    np.testing.assert_allclose(np.diag(scene.bodies.inertia[1]), 2 * np.array([sphere, sphere, sphere]))
    moved = 2 * np.array([sphere, sphere + 0.01, sphere + 0.01])
    np.testing.assert_allclose(np.sort(np.diag(scene.bodies.inertia[2])), np.sort(moved))
    np.testing.assert_allclose(np.sort(np.diag(scene.bodies.inertia[3])), [1, 2, 2.5])


def test_nodes_below_a_body_move_with_it_unless_they_have_a_motion(tmp_path: Path) -> None:
    collider = {"extensions": {RIGID: {"collider": {"geometry": {"shape": 0}}}}, "translation": [2, 0, 0]}
    scene = read(tmp_path, body(children=[1, 2]), collider, body(translation=[0, 5, 0]))
    assert scene.body_count == 2
    np.testing.assert_allclose(scene.bodies.position, [(1, 0, 0), (0, 0, 5)], atol=1e-12)


def test_a_node_of_no_size_is_not_there(tmp_path: Path) -> None:
    assert read(tmp_path, body(), body(scale=[0, 0, 0])).body_count == 1


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        ([{"linearAxes": [0, 1, 2], **LOCKED}, {"angularAxes": [0, 1, 2], **LOCKED}], "FIXED"),
        ([{"linearAxes": [0, 1, 2], **LOCKED}], "BALL"),
        ([{"linearAxes": [0, 1, 2], **LOCKED}, {"angularAxes": [1, 2], "min": 0, "max": 0.5}], "BALL"),
        ([{"linearAxes": [0, 1, 2], **LOCKED}, {"angularAxes": [0, 2], **LOCKED}], "HINGE"),
        ([{"linearAxes": [0, 2], **LOCKED}, {"angularAxes": [0, 1, 2], **LOCKED}], "SLIDER"),
        ([{"linearAxes": [0, 1, 2], "max": 2}], "DISTANCE"),
        ([{"linearAxes": [0], "min": -1, "max": 2}], "SIX_AXIS"),
        ([{"linearAxes": [0, 1, 2], **LOCKED}, {"angularAxes": [0], "min": -1, "max": 2}], "SIX_AXIS"),
    ],
)
def test_limits_make_the_joint_that_they_are(limits: list[Any], kind: str, tmp_path: Path) -> None:
    scene = joined(tmp_path, *limits)
    assert JointKind(scene.joints.kind[0]).name == kind


def test_a_cone_and_a_distance(tmp_path: Path) -> None:
    twist = {"angularAxes": [0], "min": -0.2, "max": 0.3}
    cone = {"angularAxes": [1, 2], "min": 0, "max": 0.5}
    scene = joined(tmp_path, {"linearAxes": [0, 1, 2], **LOCKED}, cone, twist)
    np.testing.assert_allclose(scene.joints.lower[0, 3:], (-0.2, -0.5, -0.5))
    np.testing.assert_allclose(scene.joints.upper[0, 3:], (0.3, 0.5, 0.5))
    scene = joined(tmp_path, {"linearAxes": [0, 1, 2], "min": 1, "max": 2})
    np.testing.assert_allclose((scene.joints.lower[0, 0], scene.joints.upper[0, 0]), (1, 2))


def test_filters_are_by_systems(tmp_path: Path) -> None:
    nodes = [body(translation=[3 * k, 0, 0]) for k in range(4)]
    for k, node in enumerate(nodes[:3]):
        node["extensions"][RIGID]["collider"]["collisionFilter"] = k
    filters = [
        {"collisionSystems": ["a"], "collideWithSystems": ["b"]},
        {"collisionSystems": ["b"]},
        {"collisionSystems": ["c"], "notCollideWithSystems": ["b"]},
    ]
    scene = read(tmp_path, *nodes, collisionFilters=filters)
    group, mask = scene.bodies.group, scene.bodies.mask
    seen = (group[:, None] & mask[None, :]) != 0
    wanted = np.array([[0, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1]], bool)
    assert np.array_equal(seen & seen.T, wanted)


def test_triggers_are_sensors(tmp_path: Path) -> None:
    nodes = [body(translation=[3 * k, 0, 0]) for k in range(2)]
    nodes[0]["children"] = [2]
    for k, node in enumerate(nodes):
        node["extensions"][RIGID]["collider"]["collisionFilter"] = k
    on_body = {"trigger": {"geometry": {"shape": 0}, "collisionFilter": 2}}
    alone = {"trigger": {"geometry": {"shape": 0}}}
    scene = read(
        tmp_path,
        *nodes,
        {"name": "front", "translation": [0, 1, 0], "extensions": {RIGID: on_body}},
        {"translation": [0, 5, 0], "extensions": {RIGID: alone}},
        collisionFilters=[
            {"collisionSystems": ["a"], "notCollideWithSystems": ["b"]},
            {"collisionSystems": ["b"]},
            {"collisionSystems": ["c"], "collideWithSystems": ["b"]},
        ],
    )
    assert scene.sensors.names == {0: "front"}
    np.testing.assert_allclose(scene.sensors.position, [(0, 1, 0), (0, 0, 5)], atol=1e-12)
    assert scene.sensors.body[0] == 0
    mask = scene.sensors.mask[0]
    assert [bool(group & mask) for group in scene.bodies.group] == [False, True]


TETRAHEDRON = np.array([[0, 0, 0], [2, 0, 0], [0, 2, 0], [0, 0, 2]], "<f4")
TRIANGLES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], "<u2")


def mesh_document(uri: str | None = None, **geometry: Any) -> dict[str, Any]:
    content = TETRAHEDRON.tobytes() + TRIANGLES.tobytes()
    found = document(
        {"extensions": {RIGID: {"motion": {}, "collider": {"geometry": {"node": 1, **geometry}}}}},
        {"mesh": 0},
    )
    found["scenes"] = [{"nodes": [0]}]
    inside = "data:application/octet-stream;base64," + base64.b64encode(content).decode()
    return found | {
        "buffers": [{"byteLength": len(content), "uri": uri or inside}],
        "bufferViews": [
            {"buffer": 0, "byteLength": TETRAHEDRON.nbytes},
            {"buffer": 0, "byteOffset": TETRAHEDRON.nbytes, "byteLength": TRIANGLES.nbytes},
        ],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3", "min": [0] * 3, "max": [2] * 3},
            {"bufferView": 1, "componentType": 5123, "count": 12, "type": "SCALAR"},
        ],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
    }


def write(path: Path, found: dict[str, Any]) -> Path:
    path.write_text(json.dumps(found))
    return path


def test_a_mesh_of_another_node_as_a_hull(tmp_path: Path) -> None:
    scene, notes = read_with_notes(write(tmp_path / "mesh.gltf", mesh_document(convexHull=True)))
    assert notes.lines() == []
    np.testing.assert_allclose(scene.bodies.mass, 1000 * 8 / 6, rtol=1e-6)
    np.testing.assert_allclose(scene.bodies.position[0], (0.5, -0.5, 0.5), atol=1e-6)
    _, notes = read_with_notes(write(tmp_path / "mesh.gltf", mesh_document()))
    assert "a mesh that moves is its convex hull" in notes.lines()[0]


def test_buffers_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "a part.bin").write_bytes(TETRAHEDRON.tobytes() + TRIANGLES.tobytes())
    found = mesh_document("a%20part.bin", convexHull=True)
    assert read_scene(write(tmp_path / "mesh.gltf", found)).body_count == 1


def test_drafts_of_the_extension_have_shapes_elsewhere(tmp_path: Path) -> None:
    node = body()
    node["extensions"][RIGID]["collider"] = {"shape": 0}
    assert read(tmp_path, node).shapes == [Sphere(0.5)]


# ---- files that are wrong --------------------------------------------------------------------------------------------


def changed(found: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    """A document with another value somewhere."""
    other = inner = copy.deepcopy(found)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return other


ONE, MESH = document(body()), mesh_document(convexHull=True)
HINGED = document(body(), {"extensions": {RIGID: {"joint": {"connectedNode": 0, "joint": 0}}}}, physicsJoints=[{}])
ACCELERATING = {"type": "linear", "axis": 0, "mode": "acceleration"}
MOTION = ("nodes", 0, "extensions", RIGID, "motion")
WRONG: dict[str, tuple[Any, str]] = {
    "no object": ([1, 2], "is no glTF file"),
    "no body": (document({}), "has no body in motion"),
    "a required extension": (ONE | {"extensionsRequired": ["EXT_other"]}, "EXT_other is required"),
    "a node that is its own ancestor": (document(body(children=[1]), {"children": [1]}), "node 1: is below two nodes"),
    "a node that is not there": (document(body(children=[7])), "names node 7, and there are 1"),
    "a shape that is not there": (document(body(3)), "node 0: names 3 of the shapes, and there are 1"),
    "a shape before the first": (document(body(-1)), "node 0: names -1 of the shapes"),
    "a material that is not there": (
        changed(ONE, "nodes", 0, "extensions", RIGID, "collider", "physicsMaterial", to=0),
        "node 0: names 0 of the physicsMaterials, and there are 0",
    ),
    "a filter that is not there": (
        changed(ONE, "nodes", 0, "extensions", RIGID, "collider", "collisionFilter", to=2),
        "node 0: names 2 of the collisionFilters",
    ),
    "a scene that is not there": (ONE | {"scene": 5}, "scene: names 5 of the scenes, and there are 1"),
    "an old version": (ONE | {"asset": {"version": "1.0"}}, "asset: its version is 1.0"),
    "a shape of another kind": (document(body(), shapes=[{"type": "torus"}]), "node 0: a shape of the type 'torus'"),
    "a negative scale": (document(body(scale=[1, -1, 1])), r"node 0: its scale is \[1.0, -1.0, 1.0\]"),
    "one scale of zero": (document(body(scale=[1, 0, 1])), r"node 0: its scale is \[1.0, 0.0, 1.0\]"),
    "a mirroring matrix": (document(body(matrix=[-1, *[0] * 4, 1, *[0] * 4, 1, *[0] * 4, 1])), "shears or mirrors"),
    "a rotation of nothing": (document(body(rotation=[0, 0, 0, 0])), "node 0: its rotation is"),
    "a turned stretched frame": (
        document({"scale": [1, 2, 1], "children": [1]}, body(rotation=[0.6, 0, 0, 0.8])),
        "turned within a frame that is stretched",
    ),
    "a mass of zero": (changed(ONE, *MOTION, to={"mass": 0}), "node 0: its mass is 0, expected a positive one"),
    "a negative mass": (changed(ONE, *MOTION, to={"mass": -2}), "node 0: its mass is -2"),
    "an inertia of zero": (changed(ONE, *MOTION, to={"inertiaDiagonal": [0, 1, 1]}), "node 0: its inertia is"),
    "an inertia turned by nothing": (
        changed(ONE, *MOTION, to={"inertiaDiagonal": [1, 1, 1], "inertiaOrientation": [0, 0, 0, 0]}),
        "node 0: its inertia's orientation is no unit quaternion",
    ),
    "limits that are exchanged": (
        changed(
            HINGED, "extensions", RIGID, "physicsJoints", to=[{"limits": [{"linearAxes": [0], "min": 1, "max": 0}]}]
        ),
        "node 1: a limit from 1 to 0",
    ),
    "a drive of no axis": (
        changed(HINGED, "extensions", RIGID, "physicsJoints", to=[{"drives": [{**ACCELERATING, "axis": 5}]}]),
        "node 1: a drive of axis 5",
    ),
    "another gravity": (changed(ONE, *MOTION, to={"gravityFactor": 0}), "node 0: its gravity factor is 0"),
    "a capsule of two radii": (
        document(body(), shapes=[{"type": "capsule", "capsule": {"radiusTop": 1, "radiusBottom": 2}}]),
        "node 0: a capsule of two radii",
    ),
    "a plane that moves": (document(body(), shapes=[{"type": "plane"}]), "node 0: a plane on a body that moves"),
    "a drive of accelerations": (
        changed(HINGED, "extensions", RIGID, "physicsJoints", to=[{"drives": [ACCELERATING]}]),
        "node 1: a drive in the mode 'acceleration'",
    ),
    "a joint of the world": (
        changed(HINGED, "nodes", 1, "extensions", RIGID, "joint", "connectedNode", to=1),
        "node 1: joins nothing that moves",
    ),
    "a joint with a node elsewhere": (
        changed(HINGED, "nodes", 1, "extensions", RIGID, "joint", "connectedNode", to=9),
        "node 1: is connected to node 9, which is not in the scene",
    ),
    "a buffer elsewhere": (mesh_document("../../etc/passwd"), "buffer 0: names .* outside the folder"),
    "a buffer on a server": (mesh_document("http://a.b/c"), "outside the folder"),
    "a buffer that is not there": (mesh_document("none.bin"), "buffer 0: none.bin: No such file"),
    "a buffer of no base64": (mesh_document("data:;base64,!!!"), "buffer 0: its data is not base64"),
    "an accessor beyond its buffer": (changed(MESH, "accessors", 0, "count", to=9), "accessor 0: reaches beyond"),
    "an accessor before its buffer": (changed(MESH, "accessors", 0, "byteOffset", to=-4), "accessor 0: reaches beyond"),
    "triangles of no points": (changed(MESH, "accessors", 0, "count", to=3), "triangles name points"),
    "lines": (changed(MESH, "meshes", 0, "primitives", 0, "mode", to=1), "not made of triangles"),
    "a friction below zero": (
        changed(
            document(body(), physicsMaterials=[{"dynamicFriction": -1, "staticFriction": -1}]),
            *("nodes", 0, "extensions", RIGID, "collider", "physicsMaterial"),
            to=0,
        ),
        "material 0: Material: friction is -1",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_one_clear_error(case: str, tmp_path: Path) -> None:
    found, wanted = WRONG[case]
    path = tmp_path / "inner" / "scene.gltf"
    path.parent.mkdir()
    with pytest.raises(LapjointError, match=wanted) as caught:
        read_scene(write(path, found))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).count(str(path)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"nodes": [{"translation": [1e999, 0, 0]}]}',
        "[" * 100_000,
        '{"nodes": [{"translation": [NaN, 0, 0]}]}',
        '{"nodes": 3}',
        '{"nodes": [[]]}',
    ],
)
def test_text_that_is_no_gltf(text: str, tmp_path: Path) -> None:
    path = tmp_path / "scene.gltf"
    path.write_text(text)
    with pytest.raises(LapjointError, match="is no glTF file as the standard has it"):
        read_scene(path)


def test_a_binary_file_that_is_cut_off(tmp_path: Path) -> None:
    text = json.dumps(ONE).encode()
    text += b" " * (-len(text) % 4)
    content = np.array([0x46546C67, 2, 20 + len(text), len(text), 0x4E4F534A], "<u4").tobytes() + text
    path = tmp_path / "scene.glb"
    path.write_bytes(content)
    assert read_scene(path).body_count == 1
    for size in (4, 11, 12, 19, 20, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(LapjointError, match="is no glTF file as the standard has it"):
            read_scene(path)
