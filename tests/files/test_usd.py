"""USD files: usd-core's own reading as the oracle, rules of the standard, and files that are wrong."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from lapjoint import Box, Capsule, Compound, LapjointError, Scene, TriangleMesh
from lapjoint.files.read import read_scene, read_with_notes
from lapjoint.scene import Cone

pxr = pytest.importorskip("pxr")
DATA = Path(__file__).parents[1] / "data" / "files"


def prim(kind: str, name: str, apis: str = "", body: str = "") -> str:
    """A prim in words."""
    schemas = ", ".join(f'"{api}"' for api in apis.split())
    head = f"(prepend apiSchemas = [{schemas}])" if schemas else ""
    return f'def {kind} "{name}" {head}\n{{\n{body}\n}}\n'


BODY = "PhysicsRigidBodyAPI PhysicsCollisionAPI"
DRIVE = "PhysicsDriveAPI:angular"
TETRAHEDRON = "point3f[] points = [(0,0,0), (2,0,0), (0,2,0), (0,0,2), (0.2,0.2,0.2)]\n"
FACES = "int[] faceVertexCounts = [3, 3, 3, 3]\nint[] faceVertexIndices = [0,2,1, 0,1,3, 0,3,2, 1,2,3]\n"
FLAT = "point3f[] points = [(0,0,0), (1,0,0), (0,1,0), (1,1,0)]\n"


def place(x: float, y: float = 0.0, z: float = 0.0, more: str = "") -> str:
    order = ', "xformOp:scale"' if more else ""
    return (
        f"double3 xformOp:translate = ({x}, {y}, {z})\n{more}\n"
        f'uniform token[] xformOpOrder = ["xformOp:translate"{order}]\n'
    )


def ball(name: str, x: float = 0.0, apis: str = BODY, body: str = "") -> str:
    return prim("Sphere", name, apis, f"double radius = 0.5\n{place(x)}{body}")


def along(axis: str, radius: float, height: float) -> str:
    return f'uniform token axis = "{axis}"\ndouble radius = {radius}\ndouble height = {height}\n'


def scaled(x: float, y: float, z: float) -> str:
    return f"float3 xformOp:scale = ({x}, {y}, {z})"


def joint(kind: str, name: str, apis: str = "", **values: object) -> str:
    """Of the body /top/a and the world. Names of values have two underscores for a colon."""
    lines = [f"float {key.replace('__', ':')} = {value}" for key, value in values.items()]
    return prim(f"Physics{kind}Joint", name, apis, "\n".join(["rel physics:body1 = </top/a>", *lines]))


def mesh(name: str, how: str, apis: str, points: str = TETRAHEDRON, faces: str = FACES) -> str:
    content = f'{points}{faces}uniform token physics:approximation = "{how}"'
    return prim("Mesh", name, f"{apis} PhysicsMeshCollisionAPI", content)


def material(friction: float = 0.3, still: float = 0.3) -> str:
    values = f"float physics:dynamicFriction = {friction}\nfloat physics:staticFriction = {still}"
    return prim("Material", "m", "PhysicsMaterialAPI", values)


def stage(*prims: str, head: str = "") -> str:
    content = "\n".join(prims)
    return f'#usda 1.0\n(\n    upAxis = "Z"\n    metersPerUnit = 1\n{head}\n)\ndef Xform "top"\n{{\n{content}\n}}\n'


def read(tmp_path: Path, *prims: str) -> Scene:
    path = tmp_path / "scene.usda"
    path.write_text(stage(*prims))
    return read_scene(path)


# ---- as usd-core has it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kinds.usda", "rig.usda"])
def test_poses_and_masses_are_those_of_usd(name: str) -> None:
    from pxr import Usd, UsdGeom, UsdPhysics

    scene, opened = read_scene(DATA / name), Usd.Stage.Open(str(DATA / name))
    unit, grams = UsdGeom.GetStageMetersPerUnit(opened), UsdPhysics.GetStageKilogramsPerUnit(opened)
    up = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]) if UsdGeom.GetStageUpAxis(opened) == "Y" else np.eye(3)
    looked = 0
    for body, path in scene.body_names.items():
        thing = opened.GetPrimAtPath(path)
        explicit = UsdPhysics.MassAPI(thing).GetMassAttr().Get()
        matrix = np.array(UsdGeom.Xformable(thing).ComputeLocalToWorldTransform(Usd.TimeCode.Default()))
        centre = UsdPhysics.MassAPI(thing).GetCenterOfMassAttr().Get() if explicit else None
        if centre is not None and np.isfinite(centre).all():
            looked += 1
            wanted = unit * up @ (matrix[3, :3] + np.array(centre) @ matrix[:3, :3])
            np.testing.assert_allclose(scene.bodies.position[body], wanted, atol=1e-6)
            assert scene.bodies.mass[body] == pytest.approx(explicit * grams, rel=1e-6)
    assert looked


def test_units_scale_masses_forces_and_inertias(tmp_path: Path) -> None:
    """The same file in metres and in centimetres is another scene: by the powers of lengths."""
    values = {"drive:angular:physics:stiffness": 3, "drive:angular:physics:maxForce": 13}
    values |= {"physics:breakForce": 7, "physics:breakTorque": 11}
    hinge = joint("Revolute", "hinge", DRIVE, **{name.replace(":", "__"): value for name, value in values.items()})
    scenes = []
    for unit in (1, 0.01):
        path = tmp_path / "units.usda"
        path.write_text(stage(ball("a"), hinge).replace("metersPerUnit = 1", f"metersPerUnit = {unit}"))
        scenes.append(read_scene(path))
    metres, small = scenes
    np.testing.assert_allclose(small.bodies.mass, metres.bodies.mass * 1e-6, rtol=1e-5)
    np.testing.assert_allclose(small.bodies.inertia, metres.bodies.inertia * 1e-10, rtol=1e-5, atol=1e-12)
    for column, power in (("drive_stiffness", 2), ("drive_max_force", 2), ("break_force", 1), ("break_torque", 2)):
        mine, theirs = getattr(small.joints, column), getattr(metres.joints, column)
        np.testing.assert_allclose(mine, theirs * 0.01**power, rtol=1e-6)


# ---- rules -----------------------------------------------------------------------------------------------------------


def test_materials_are_inherited_and_damp_nothing(tmp_path: Path) -> None:
    group = (
        'def Scope "all" (prepend apiSchemas = ["MaterialBindingAPI"])\n{\n'
        f"rel material:binding:physics = </top/m>\n{ball('a')}\n}}\n"
    )
    scene = read(tmp_path, material(), group, ball("b", 3))
    assert scene.bodies.friction.tolist() == pytest.approx([0.3, 0.5])
    assert scene.bodies.friction_combine[0] != scene.bodies.friction_combine[1], "the average, and our own"


def test_colliders_of_a_body_have_their_own_materials_and_groups(tmp_path: Path) -> None:
    parts = ball("a", -1, "PhysicsCollisionAPI") + ball(
        "b", 1, "PhysicsCollisionAPI MaterialBindingAPI", "rel material:binding:physics = </top/m>"
    )
    body = prim("Xform", "body", "PhysicsRigidBodyAPI", parts)
    group = prim(
        "PhysicsCollisionGroup",
        "g",
        "CollectionAPI:colliders",
        "rel collection:colliders:includes = </top/body/b>\nrel physics:filteredGroups = </top/g>",
    )
    scene = read(tmp_path, material(), body, group, ball("other", 5))
    shape = scene.shapes[scene.bodies.shape_id[0]]
    assert isinstance(shape, Compound)
    assert [None if part.material is None else part.material.friction for part in shape.parts] == [
        None,
        pytest.approx(0.3),
    ]
    assert shape.parts[0].group is None
    assert shape.parts[1].group is not None
    assert shape.parts[1].group & (shape.parts[1].mask or 0) == 0, "it does not touch its own group"


def test_pairs_of_bodies_and_of_colliders_that_are_filtered(tmp_path: Path) -> None:
    pair = "PhysicsFilteredPairsAPI"
    scene = read(
        tmp_path,
        ball("a", 0, f"{BODY} {pair}", "rel physics:filteredPairs = </top/b>"),
        ball("b", 2),
        prim(
            "Xform",
            "c",
            "PhysicsRigidBodyAPI",
            ball("one", 4, f"PhysicsCollisionAPI {pair}", "rel physics:filteredPairs = </top/a>")
            + ball("two", 5, "PhysicsCollisionAPI"),
        ),
        ball("wall", 9, f"PhysicsCollisionAPI {pair}", "rel physics:filteredPairs = </top/b>"),
    )
    assert scene.ignored_pairs.tolist() == [[0, 1]]
    shape = scene.shapes[scene.bodies.shape_id[2]]
    assert isinstance(shape, Compound)
    group, mask = scene.bodies.group, scene.bodies.mask
    one = (int(group[2]), int(mask[2]))
    two = shape.parts[1]
    other = (one[0] if two.group is None else two.group, one[1] if two.mask is None else two.mask)

    def may_touch(mine: tuple[int, int], theirs: tuple[int, int]) -> bool:
        return bool(mine[0] & theirs[1]) and bool(theirs[0] & mine[1])

    a, b = ((int(group[k]), int(mask[k])) for k in (0, 1))
    wall = (int(scene.statics.group[0]), int(scene.statics.mask[0]))
    assert not may_touch(one, a)
    assert may_touch(other, a)
    assert may_touch(one, b)
    assert not may_touch(wall, b)
    assert may_touch(wall, a)


@pytest.mark.parametrize("how", ["kinematicEnabled = 1", "rigidBodyEnabled = 0"])
def test_a_body_that_does_not_move_is_filtered(how: str, tmp_path: Path) -> None:
    values = f"bool physics:{how}\nrel physics:filteredPairs = </top/a>"
    scene = read(tmp_path, ball("a"), ball("b", 2), ball("k", 4, f"{BODY} PhysicsFilteredPairsAPI", values))
    group, mask = scene.statics.group[0], scene.statics.mask[0]
    assert [bool(group & m and mask & g) for g, m in zip(scene.bodies.group, scene.bodies.mask, strict=True)] == [
        False,
        True,
    ]


def test_places_over_time_are_those_of_the_first_frame(tmp_path: Path) -> None:
    path = tmp_path / "scene.usda"
    path.write_text(stage(ball("a", 3).replace("translate = (3, 0.0, 0.0)", "translate.timeSamples = {1: (3, 4, 5)}")))
    scene, notes = read_with_notes(path)
    assert scene.bodies.position.tolist() == [[3, 4, 5]]
    assert notes.lines() == []


def test_meshes_by_their_approximation(tmp_path: Path) -> None:
    static = "PhysicsCollisionAPI"
    scene = read(
        tmp_path,
        mesh("hull", "convexHull", BODY),
        mesh("cube", "boundingCube", BODY),
        mesh("ball", "boundingSphere", BODY),
        mesh("wall", "none", static),
    )
    hull, cube, sphere = (scene.shapes[k] for k in scene.bodies.shape_id)
    assert len(hull.points) == 4  # type: ignore[union-attr]
    assert cube == Box((2, 2, 2))
    assert sphere.radius == pytest.approx(np.sqrt(3))  # type: ignore[union-attr]
    np.testing.assert_allclose(scene.bodies.position[0], (0.5, 0.5, 0.5), atol=1e-6)
    np.testing.assert_allclose(scene.bodies.position[1], (1, 1, 1), atol=1e-6)
    assert isinstance(scene.shapes[scene.statics.shape_id[0]], TriangleMesh)
    with pytest.warns(match="a mesh that moves is its convex hull"):
        read(tmp_path, mesh("moving", "none", BODY))


def test_scales_and_axes(tmp_path: Path) -> None:
    scene = read(
        tmp_path,
        prim("Capsule", "a", BODY, along("X", 0.5, 2) + place(0, more=scaled(2, 2, 2))),
        prim("Cone", "b", BODY, along("Z", 1, 4) + place(5)),
    )
    shapes = [scene.shapes[k] for k in scene.bodies.shape_id]
    assert shapes == [Capsule(1.0, 4.0), Cone(1.0, 4.0)]
    np.testing.assert_allclose(scene.bodies.position, [(0, 0, 0), (5, 0, -1)], atol=1e-6)


def test_instances_are_bodies_of_one_shape(tmp_path: Path) -> None:
    classes = (
        'class Xform "thing" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])\n{\n'
        + ball("a", 0, "PhysicsCollisionAPI")
        + "}\n"
    )
    uses = "".join(
        f'def "i{k}" (prepend references = </thing>\ninstanceable = true)\n{{\n{place(3 * k)}}}\n' for k in range(3)
    )
    path = tmp_path / "instances.usda"
    path.write_text(f'#usda 1.0\n{classes}\ndef Xform "top"\n{{\n{uses}\n}}\n')
    scene = read_scene(path)
    assert scene.body_count == 3
    assert len(scene.shapes) == 1
    np.testing.assert_allclose(scene.bodies.position[:, 0], [0, 0.03, 0.06], atol=1e-6)  # centimetres are the default


def test_layers_of_the_folder_are_composed(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "ball.usda").write_text(stage(ball("a")).replace('def Xform "top"', 'def Xform "part"'))
    path = tmp_path / "whole.usda"
    path.write_text(stage('def "one" (prepend references = @parts/ball.usda@</part>)\n{\n}\n'))
    assert read_scene(path).body_names == {0: "/top/one/a"}


@pytest.mark.parametrize("inside", [True, False])
def test_layers_of_a_package_are_composed(inside: bool, tmp_path: Path) -> None:
    from pxr import Sdf, UsdUtils

    (tmp_path / "ball.usda").write_text(stage(ball("a")).replace('def Xform "top"', 'def Xform "part"'))
    name = "ball.usda" if inside else "../etc/passwd"
    whole = tmp_path / "whole.usda"
    whole.write_text(stage(f'def "one" (prepend references = @{name}@</part>)\n{{\n}}\n'))
    package = tmp_path / "whole.usdz"
    if inside:
        assert UsdUtils.CreateNewUsdzPackage(Sdf.AssetPath(str(whole)), str(package))
        assert read_scene(package).body_names == {0: "/top/one/a"}
    else:
        with zipfile.ZipFile(package, "w") as archive:
            archive.writestr("whole.usda", whole.read_text())
        with pytest.raises(LapjointError, match="which is outside the package"):
            read_scene(package)


def test_what_is_harmless_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "notes.usda"
    path.write_text(
        stage(
            ball("a", 0, f"{BODY} PhysxRigidBodyAPI", "bool physics:startsAsleep = 1"),
            ball("moved", -3).replace(
                "translate = (-3, 0.0, 0.0)", "translate.timeSamples = {1: (3, 4, 5), 2: (4, 4, 5)}"
            ),
            ball("b", 3, "PhysicsCollisionAPI", "bool physics:collisionEnabled = 0"),
            joint("Fixed", "off").replace("rel ", "bool physics:jointEnabled = 0\nrel "),
            joint("Spherical", "oval", physics__coneAngle0Limit=30, physics__coneAngle1Limit=40),
            material(0.3, 0.4),
            ball("c", 6, f"{BODY} MaterialBindingAPI", "rel material:binding:physics = </top/m>"),
        )
    )
    scene, notes = read_with_notes(path)
    assert scene.joint_count == 1
    assert scene.joints.upper[0, 4] == pytest.approx(np.radians(30))
    text = "\n".join(notes.lines())
    for wanted in (
        "starts asleep",
        "PhysxRigidBodyAPI is for another program",
        "its places over time",
        "collisions are disabled",
        "not enabled",
        "cone is round",
        "one coefficient of friction",
    ):
        assert wanted in text


# ---- files that are wrong --------------------------------------------------------------------------------------------

MASS = f"{BODY} PhysicsMassAPI"
ELSEWHERE = 'def "b" (prepend {} = @{}@)\n{{\n}}'
CLIPS = 'def "b" (clips = {dictionary c = {asset[] assetPaths = [@/etc/passwd@]}})\n{\n}'
OUTSIDE = "outside the folder"
WRONG = {
    "truncated": (stage(ball("a"))[:-30], "cannot be read as USD"),
    "empty": ("", "cannot be read as USD"),
    "another format": ("<mujoco/>", "cannot be read as USD"),
    "a value of another type": (
        stage(mesh("a", "convexHull", BODY, "string points = 'x'\n")),
        "cannot be read as USD: could not convert",
    ),
    "no body": (stage(ball("a", 0, "PhysicsCollisionAPI")), "has no rigid body"),
    "a missing layer": (stage(ELSEWHERE.format("references", "no.usda")), "'no.usda': there is no such file"),
    "a layer elsewhere": (stage(ELSEWHERE.format("references", "../../etc/passwd")), OUTSIDE),
    "an absolute layer": (stage(ELSEWHERE.format("payload", "/etc/passwd")), OUTSIDE),
    "a layer on a server": (stage(ELSEWHERE.format("references", "http://a.b/c.usd")), OUTSIDE),
    "layers of themselves": (stage(ball("a"), head="subLayers = [@scene.usda@]"), "cannot be composed: .*cycles"),
    "references to themselves": (stage(ball("a"), 'def "b" (references = </top>)\n{\n}'), "cannot be composed: Cycle"),
    "a reference to nothing": (
        stage(ball("a"), 'def "b" (references = </none>)\n{\n}'),
        "cannot be composed: Unresolved",
    ),
    "a joint of nothing": (
        stage(ball("a"), joint("Fixed", "j").replace("/a>", "/z>")),
        "/top/j: joins /top/z, which does not",
    ),
    "a driven ball joint": (
        stage(ball("a"), joint("Spherical", "j", "PhysicsDriveAPI:rotX")),
        "/top/j: a drive of a joint",
    ),
    "a point instancer": (
        stage(ball("b"), prim("PointInstancer", "p", "", "rel prototypes = </top/p/a>\n" + ball("a"))),
        "/top/p: a point instancer of bodies",
    ),
    "a velocity that is none": (
        stage(ball("a", 0, BODY, "vector3f physics:velocity = (nan, 0, 0)")),
        "/top/a: its velocity is not finite",
    ),
    "an inertia that is none": (
        stage(ball("a", 0, "PhysicsMassAPI " + BODY, "float3 physics:diagonalInertia = (nan, 1, 1)")),
        "/top/a: its diagonalInertia is",
    ),
    "value clips": (stage(CLIPS), "/top/b: .*clips"),
    "not a number": (stage(ball("a", float("nan"))), "/top/a: its place is not finite"),
    "a radius that is none": (stage(prim("Sphere", "a", BODY, "double radius = nan")), "/top/a: Sphere: radius is nan"),
    "a negative scale": (
        stage(prim("Cube", "a", BODY, place(0, more=scaled(1, -1, 1)))),
        "/top/a: .*scale is negative",
    ),
    "no scale": (stage(prim("Cube", "a", BODY, place(0, more=scaled(1, 0, 1)))), "/top/a: its scale is zero"),
    "a negative mass": (stage(ball("a", 0, MASS, "float physics:mass = -1")), "/top/a: its mass is -1"),
    "a mass that is none": (stage(ball("a", 0, MASS, "float physics:mass = nan")), "/top/a: its mass is nan"),
    "no mass and no shape": (stage(prim("Xform", "a", "PhysicsRigidBodyAPI")), "/top/a: its mass is"),
    "a plane that moves": (stage(prim("Plane", "a", BODY)), "/top/a: a plane on a body that moves"),
    "a joint of the world": (stage(ball("a"), prim("PhysicsFixedJoint", "j")), "/top/j: joins nothing that moves"),
    "a drive of accelerations": (
        stage(ball("a"), joint("Revolute", "j", DRIVE, drive__angular__physics__stiffness=1)).replace(
            "rel ", 'uniform token drive:angular:physics:type = "acceleration"\nrel '
        ),
        "/top/j: a drive of the type acceleration",
    ),
    "a drive that is none": (
        stage(ball("a"), joint("Revolute", "j", DRIVE, drive__angular__physics__stiffness="nan")),
        "/top/j: drive:angular:physics:stiffness is not a number",
    ),
    "a negative drive": (
        stage(ball("a"), joint("Revolute", "j", DRIVE, drive__angular__physics__stiffness=-1)),
        "/top/j: Drive: stiffness is -",
    ),
    "a limit that is none": (
        stage(ball("a"), joint("Revolute", "j", physics__lowerLimit="nan", physics__upperLimit=1)),
        "/top/j: physics:lowerLimit is not a number",
    ),
    "a mesh without points": (stage(mesh("a", "convexHull", BODY, "")), "/top/a: a mesh without points"),
    "a flat mesh": (stage(mesh("a", "convexHull", BODY, FLAT)), "/top/a: ConvexHull: .*no volume"),
    "a mesh with faces of none": (
        stage(ball("b"), mesh("a", "none", "PhysicsCollisionAPI", FLAT, "int[] faceVertexCounts = [4]\n")),
        "/top/a: a mesh whose faces do not add up",
    ),
    "units that are none": (stage(ball("a")).replace("metersPerUnit = 1", "metersPerUnit = 0"), "metersPerUnit is 0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_one_clear_error(case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text, wanted = WRONG[case]
    path = tmp_path / "inner" / "scene.usda"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(LapjointError, match=wanted) as caught:
        read_scene(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert capfd.readouterr() == ("", ""), "usd-core prints nothing besides"


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "scene.usda"
    path.write_bytes(stage(ball("a")).encode().replace(b"radius = 0.5", b"radius = \xff"))
    with pytest.raises(LapjointError, match=r"scene.usda: cannot be read as USD: "):
        read_scene(path)


def test_a_binary_file_that_is_cut_off(tmp_path: Path) -> None:
    from pxr import Sdf

    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.ImportFromString(stage(ball("a")))
    whole = tmp_path / "whole.usdc"
    layer.Export(str(whole))
    assert read_scene(whole).body_count == 1
    content = whole.read_bytes()
    for share in (0.1, 0.5, 0.9):
        path = tmp_path / f"part{share}.usdc"
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(LapjointError, match="cannot be read as USD") as caught:
            read_scene(path)
        assert re.fullmatch(r"[^\n]+", str(caught.value))
