"""MJCF and URDF files: every kind of element, MuJoCo itself as the oracle, and files that are wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lapjoint import LapjointError, Params, Scene, Simulation, Substeps
from lapjoint.arrays import rotation
from lapjoint.errors import FileWarning
from lapjoint.files.read import read_scene, read_with_notes
from lapjoint.scene import Box, Compound, ConvexHull, HeightField, Plane
from lapjoint.scene.joints import WORLD, JointKind

mujoco = pytest.importorskip("mujoco")
DATA = Path(__file__).parents[1] / "data" / "files"


def read(name: str, **more: object) -> Scene:
    return read_with_notes(DATA / name, **more)[0]  # type: ignore[arg-type]


def compiled(name: str) -> object:
    """With bodies that have no joints fused into their parents, as the scene has them."""
    spec = mujoco.MjSpec.from_file(str(DATA / name))
    spec.compiler.fusestatic = True
    return spec.compile()


# ---- as MuJoCo has it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["double_pendulum.xml", "four_bar.xml", "arm.xml", "everything.xml", "gripper.urdf"])
def test_masses_and_inertias_are_those_of_mujoco(name: str) -> None:
    scene, model = read(name), compiled(name)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    looked = 0
    for body in range(1, model.nbody):  # type: ignore[attr-defined]
        title = model.body(body).name  # type: ignore[attr-defined]
        if title not in scene.body_names.values():
            continue
        looked += 1
        own = scene.body_id(title)
        assert scene.bodies.mass[own] == pytest.approx(model.body_mass[body], rel=1e-6)  # type: ignore[attr-defined]
        np.testing.assert_allclose(scene.bodies.position[own], data.xipos[body], atol=1e-6)
        turn = rotation.to_matrix(scene.bodies.quaternion[own])
        inertia = turn @ scene.bodies.inertia[own] @ turn.T
        axes = data.ximat[body].reshape(3, 3)
        wanted = axes @ np.diag(model.body_inertia[body]) @ axes.T  # type: ignore[attr-defined]
        np.testing.assert_allclose(inertia, wanted, atol=1e-6 * np.trace(wanted))
    assert looked >= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "keyframe", "tolerance"),
    [
        ("double_pendulum.xml", None, 1e-3),
        ("four_bar.xml", None, 2e-3),
        ("arm.xml", None, 1e-3),
        ("arm.xml", "raised", 1e-3),
    ],
)
def test_free_motion_is_that_of_mujoco(name: str, keyframe: str | None, tolerance: float) -> None:
    """Positions after 0.2 s [m], in steps of half a millisecond."""
    scene = read(name, keyframe=keyframe)
    with Simulation(scene, Params(precision="float64", substeps=Substeps(4), timestep=0.0005)) as simulation:
        simulation.step(400)
        states = simulation.states
    model = mujoco.MjModel.from_xml_path(str(DATA / name))
    model.opt.timestep, model.opt.integrator = 0.0001, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    if keyframe is not None:
        mujoco.mj_resetDataKeyframe(model, data, model.key(keyframe).id)
    for actuator in range(model.nu):
        if model.actuator_ctrllimited[actuator]:
            data.ctrl[actuator] = np.clip(0.0, *model.actuator_ctrlrange[actuator])
    for _ in range(2000):
        mujoco.mj_step(model, data)
    moved = 0.0
    for body, title in scene.body_names.items():
        wanted = data.xipos[model.body(title).id]
        np.testing.assert_allclose(states[body, :3], wanted, atol=tolerance, err_msg=title)
        moved = max(moved, float(np.linalg.norm(wanted - scene.bodies.position[body])))
    assert moved > 0.02


@pytest.mark.slow
def test_a_person_moves_as_in_mujoco(tmp_path: Path) -> None:
    """22 axes, up to three in a joint, each with its own speed: mistaken orders of axes would show. Limits and friction
    of MuJoCo are soft, and off."""
    text = (DATA.parents[2] / "examples" / "humanoid.xml").read_text().replace('frictionloss="0.5"', "")
    text = text.replace("<option", '<option><flag limit="disable" contact="disable"/></option><option', 1)
    model = mujoco.MjModel.from_xml_string(text)
    qpos, qvel = model.qpos0.copy(), 2 * np.sin(np.arange(1.0, 1 + model.nv))
    qpos[7:] = model.jnt_range[1:].mean(axis=1)
    values = (" ".join(map(repr, table.tolist())) for table in (qpos, qvel))
    key = '<keyframe><key name="k" qpos="{}" qvel="{}"/></keyframe></mujoco>'.format(*values)
    path = tmp_path / "person.xml"
    path.write_text(text.replace("</mujoco>", key))
    scene, _ = read_with_notes(path, keyframe="k")
    with Simulation(scene, Params(precision="float64", substeps=Substeps(4), timestep=0.0005)) as simulation:
        simulation.step(200)
        states = simulation.states
    model.opt.timestep, model.opt.integrator = 0.0002, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    for _ in range(500):
        mujoco.mj_step(model, data)
    wanted = np.array([data.xipos[model.body(name).id] for name in scene.body_names.values()])
    assert np.linalg.norm(wanted - scene.states[:, :3], axis=1).max() > 0.2
    np.testing.assert_allclose(states[:, :3], wanted, atol=1e-3)


# ---- what becomes of what ------------------------------------------------------------------------------------------


def test_everything_is_read() -> None:
    scene, notes = read_with_notes(DATA / "everything.xml")
    np.testing.assert_allclose(scene.gravity, (0, 0, -9.5))
    assert scene.timestep == 0.002
    kinds = [JointKind(kind) for kind in scene.joints.kind]
    assert kinds.count(JointKind.BALL) == 1
    assert kinds.count(JointKind.SIX_AXIS) == 3, "sprung, universal, planar"
    assert kinds.count(JointKind.SLIDER) == 1
    assert kinds.count(JointKind.GEAR) == 1
    assert len(scene.kinematic_ids) == 1
    shapes = [scene.shapes[number] for number in scene.statics.shape_id]
    assert [type(shape) for shape in shapes][:2] == [Plane, HeightField]
    assert isinstance(scene.shapes[scene.bodies.shape_id[scene.body_id("free")]], ConvexHull)
    assert isinstance(scene.shapes[scene.bodies.shape_id[scene.body_id("hinge")]], Compound)
    assert notes.read["drives"] == 1
    text = "\n".join(notes.lines())
    for wanted in ("small links", "sensors", "not active", "zero until something controls it"):
        assert wanted in text, wanted
    pair = sorted((scene.body_id("free"), scene.body_id("ball")))
    assert pair in scene.ignored_pairs.tolist()


def test_a_warning_for_what_is_not_exact() -> None:
    with pytest.warns(FileWarning) as caught:
        read_scene(DATA / "everything.xml")
    wanted = r"body 'skew' \(line \d+\): its 2 joints do not meet"
    assert len([one for one in caught if re.search(wanted, str(one.message))]) == 1


def test_limits_are_from_where_the_joint_is_at_zero() -> None:
    scene = read("arm.xml")
    lower, upper = scene.joints.lower[1, 3], scene.joints.upper[1, 3]
    np.testing.assert_allclose((lower, upper), np.radians((-90, 60)))


def test_mimic_is_a_gear() -> None:
    scene = read("gripper.urdf")
    gears = np.flatnonzero(scene.joints.kind == JointKind.GEAR)
    assert scene.joints.gear_ratio[gears].tolist() == [-1.0]


def test_a_body_welded_to_the_world_is_static() -> None:
    scene = read("gripper.urdf")
    assert scene.static_count == 1
    assert isinstance(scene.shapes[scene.statics.shape_id[0]], Box)
    assert (scene.joints.body_b[:2] == WORLD).all()


def test_contype_and_conaffinity(tmp_path: Path) -> None:
    geoms = [(1, 1), (2, 2), (3, 1), (0, 2), (4, 3)]
    bodies = "".join(
        f'<body name="b{i}" pos="{i} 0 0"><freejoint/><geom size="0.1" contype="{t}" conaffinity="{a}"/></body>'
        for i, (t, a) in enumerate(geoms)
    )
    path = tmp_path / "filters.xml"
    path.write_text(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    scene = read_scene(path)
    group, mask = scene.bodies.group, scene.bodies.mask
    for i, (type_i, with_i) in enumerate(geoms):
        for k, (type_k, with_k) in enumerate(geoms):
            wanted = bool(type_i & with_k or type_k & with_i)
            assert (bool(group[i] & mask[k]) and bool(group[k] & mask[i])) == wanted, (i, k)


def body(inner: str, name: str = "a", x: float = 0.0) -> str:
    return f'<body name="{name}" pos="{x} 0 1">{inner}</body>'


def model(inner: str, *, before: str = "", after: str = "") -> str:
    return f"<mujoco>{before}<worldbody>{inner}</worldbody>{after}</mujoco>"


HINGE = '<joint name="{0}" axis="0 1 0" {1}/><geom size="0.1" pos="0.2 0 0"/>'
HINGED, TWO = body(HINGE.format("j", "")), body(HINGE.format("j", "")) + body(HINGE.format("k", ""), "b", 1)
FREE, OTHER = body('<freejoint/><geom name="g" size="0.1"/>'), body('<freejoint/><geom size="0.1"/>', "b", 1)
FLOOR = '<geom name="floor" type="plane" size="0 0 1"/>'


def actuator(text: str, more: str = "") -> str:
    return f"<actuator><{text}/></actuator>{more}"


def drive(scene: Scene) -> list[float]:
    columns = ("position", "stiffness", "damping", "max_force")
    return [float(getattr(scene.joints, f"drive_{name}")[0, 3]) for name in columns]


def touches_the_floor(scene: Scene) -> bool:
    mine, floor = (scene.bodies.group[0], scene.bodies.mask[0]), (scene.statics.group[0], scene.statics.mask[0])
    return bool(mine[0] & floor[1]) and bool(floor[0] & mine[1])


KEY = '<keyframe><key name="home" qpos="0.4" ctrl="0.3"/></keyframe>'
COUNTS: dict[str, tuple[str, Callable[[Scene], object], object]] = {
    "gravity that is off": (
        model(FREE, before='<option><flag gravity="disable"/></option>'),
        lambda scene: scene.gravity.tolist(),
        [0, 0, 0],
    ),
    "limits that are off": (
        model(body(HINGE.format("j", 'range="-1 1"')), before='<option><flag limit="disable"/></option>'),
        lambda scene: scene.joints.upper[0, 3],
        np.inf,
    ),
    "a floor that is excluded": (
        model(FLOOR + FREE, after='<contact><exclude body1="world" body2="a"/></contact>'),
        touches_the_floor,
        False,
    ),
    "a pair of what else touches nothing": (
        model(
            FLOOR + FREE.replace('name="g"', 'name="g" contype="0" conaffinity="0"'),
            after='<contact><pair geom1="g" geom2="floor"/></contact>',
        ),
        touches_the_floor,
        True,
    ),
    "no friction in one dimension": (
        model(FREE.replace('name="g"', 'condim="1"')),
        lambda scene: scene.bodies.friction.tolist(),
        [0],
    ),
    "a weld elsewhere": (
        model(FREE + OTHER, after='<equality><weld body1="a" body2="b" relpose="0.5 0 0 0 0 0 1"/></equality>'),
        lambda scene: [scene.joints.frame_a[0].tolist(), scene.joints.frame_b[0].tolist()],
        [[0.5, 0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 0, 0, 0]],
    ),
    "a connection of two sites": (
        model(
            FREE.replace("<geom", '<site name="s" pos="0.1 0 0"/><geom')
            + OTHER.replace("<geom", '<site name="t" pos="-0.2 0 0"/><geom'),
            after='<equality><connect site1="s" site2="t"/></equality>',
        ),
        lambda scene: [scene.joints.frame_a[0, :3].tolist(), scene.joints.frame_b[0, :3].tolist()],
        [[0.1, 0, 0], [-0.2, 0, 0]],
    ),
    "an actuator that follows slowly": (
        model(HINGED, after=actuator('position joint="j" kp="10" kv="2" timeconst="0.1"')),
        drive,
        [0, 10, 2, np.inf],
    ),
    "a force that is always there": (
        model(HINGED, after=actuator('general joint="j" gainprm="10" biastype="affine" biasprm="5 -10 -1"')),
        drive,
        [0.5, 10, 1, np.inf],
    ),
    "the largest force of a joint": (
        model(
            body(HINGE.format("j", 'actuatorfrcrange="-3 3"')),
            after=actuator('position joint="j" kp="10" kv="1" forcerange="-4 4"'),
        ),
        drive,
        [0, 10, 1, 3],
    ),
    "controls of a keyframe": (
        model(HINGED, after=actuator('position joint="j" kp="10" kv="1"', KEY)),
        drive,
        [0.3, 10, 1, np.inf],
    ),
    "mocap bodies of a keyframe": (
        model(HINGED + '<body mocap="true"><geom size="0.1"/></body>', after=KEY.replace('ctrl="0.3"', 'mpos="1 2 3"')),
        lambda scene: scene.statics.position.tolist(),
        [[1, 2, 3]],
    ),
}


@pytest.mark.parametrize("case", COUNTS)
def test_what_counts(case: str, tmp_path: Path) -> None:
    text, found, wanted = COUNTS[case]
    path = tmp_path / "model.xml"
    path.write_text(text)
    scene, _ = read_with_notes(path, keyframe="home" if "keyframe" in text else None)
    np.testing.assert_allclose(np.array(found(scene), float), np.array(wanted, float), atol=1e-12)


def test_what_is_not_exact_is_noted(tmp_path: Path) -> None:
    rough = FREE.replace('name="g"', 'priority="1" margin="0.1" solref="0.1 1" condim="4"')
    mocap = '<body name="m" mocap="true" pos="3 0 1"><geom size="0.1"/></body>'
    held = '<equality><weld body1="m" body2="a"/></equality>'
    path = tmp_path / "model.xml"
    path.write_text(model(rough + mocap, after=held))
    text = "\n".join(read_with_notes(path)[1].lines())
    for wanted in ("priority", "margin", "solref", "spinning", "does not follow it"):
        assert wanted in text, wanted
    robot = DATA / "gripper.urdf"
    path = tmp_path / "robot.urdf"
    path.write_text(robot.read_text().replace("</robot>", '<transmission name="t"/></robot>'))
    assert any("transmission 't' (line" in line for line in read_with_notes(path)[1].lines())


TETRAHEDRON = "v 0 0 0\nv {0} 0 0\nv 0 {0} 0\nv 0 0 {0}\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
MESH = '<mujoco>{}<asset><mesh name="m" file="x.obj"/></asset>' \
    '<worldbody><body name="r"><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'  # fmt: skip


@pytest.mark.parametrize(("folder", "size"), [("meshes", 2), ("../elsewhere", None), ("/tmp", None)])
def test_a_directory_of_meshes_that_an_included_file_names(folder: str, size: float | None, tmp_path: Path) -> None:
    inside = tmp_path / "inner"
    for place, edge in (("inner", 1), ("inner/meshes", 2), ("elsewhere", 3)):
        (tmp_path / place).mkdir()
        (tmp_path / place / "x.obj").write_text(TETRAHEDRON.format(edge))
    (inside / "options.xml").write_text(f'<mujoco><compiler meshdir="{folder}"/></mujoco>')
    path = inside / "model.xml"
    path.write_text(MESH.format('<include file="options.xml"/>'))
    if size is None:
        with pytest.raises(LapjointError, match=r"has meshes or textures in .*, which is outside"):
            read_scene(path)
    else:
        assert read_scene(path).bodies.mass[0] == pytest.approx(1000 * size**3 / 6)


def test_a_model_that_is_attached_has_its_meshes_beside_it(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.obj").write_text(TETRAHEDRON.format(2))
    (tmp_path / "sub" / "child.xml").write_text(MESH.format(""))
    path, attach = tmp_path / "model.xml", '<frame><attach model="c" body="r" prefix="p"/></frame>'
    path.write_text(model(attach, before='<asset><model name="c" file="sub/child.xml"/></asset>'))
    assert read_scene(path).bodies.mass.tolist() == pytest.approx([8000 / 6])


def test_what_mujoco_warns_of_is_noted_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "child.xml").write_text(model(FREE, before='<option timestep="0.005"/>'))
    path, attach = tmp_path / "model.xml", '<frame><attach model="c" body="a" prefix="{}"/></frame>'
    asset = '<asset><model name="c" file="child.xml"/></asset>'
    path.write_text(model(attach.format("p") + attach.format("q"), before=asset))
    assert [line[:31] for line in read_with_notes(path)[1].lines()] == ["MuJoCo: Attach conflict when at"]
    assert capfd.readouterr() == ("", "")


# ---- files that are wrong ------------------------------------------------------------------------------------------

BODY = '<body pos="0 0 1"><freejoint/><geom size="0.1"/></body>'
PLANE = '<body><freejoint/><geom size=".1"/><geom type="plane" size="1 1 1"/></body>'
EQUAL = '<equality><joint joint1="j" joint2="k" polycoef="0.3 1 0 0 0"/></equality>'
TENDON = '<tendon><fixed frictionloss="1"><joint joint="j" coef="1"/></fixed></tendon>'
APART = '<contact><exclude body1="a" body2="b"/><pair geom1="g" geom2="h"/></contact>'
WRONG = {
    "truncated": ("<mujoco><worldbody><body>", "is no XML"),
    "empty": ("", "is no XML"),
    "not a model": ("<html/>", "Unrecognized|unrecognized|root"),
    "a document type": ('<!DOCTYPE lolz [<!ENTITY a "b">]><mujoco>&a;</mujoco>', "document type"),
    "a missing mesh": ('<mujoco><asset><mesh file="no.obj"/></asset></mujoco>', "line 1: mesh names 'no.obj': there"),
    "a mesh elsewhere": ('<mujoco><asset><mesh file="../../etc/passwd"/></asset></mujoco>', "outside the folder"),
    "an absolute path": ('<mujoco><asset><mesh file="/etc/passwd"/></asset></mujoco>', "relative to the folder"),
    "includes itself": ('<mujoco><include file="model.xml"/></mujoco>', "includes itself"),
    "not a number": (model(BODY, before='<option timestep="nan"/>'), "line 1: option has a NaN"),
    "infinite": (model(FREE.replace('pos="0.0', 'pos="inf')), r"body 'a' \(line 1\): its place is not finite"),
    "no gravity": (model(FREE.replace("name=", 'gravcomp="1" name=', 1)), "gravity is compensated"),
    "an offset": (model(TWO, after=EQUAL), "a relation of two joints that is not a ratio"),
    "no force": (model(HINGED, after=actuator('position joint="j" kp="1" forcerange="0 1"')), "actuator 0: Drive: max"),
    "a tendon": (model(HINGED, after=TENDON), "a tendon that pulls"),
    "a force": (model(HINGED, after=actuator('motor joint="j" ctrlrange="1 2"')), "a force from the start"),
    "a pair apart": (model(FREE + OTHER.replace("<geom", '<geom name="h"'), after=APART), "that are kept apart"),
    "nothing moves": (model(FLOOR), "has no body that moves"),
    "no mass": ('<mujoco><worldbody><body><freejoint/></body></worldbody></mujoco>', "mass"),
    "a moving plane": (f"<mujoco><worldbody>{PLANE}</worldbody></mujoco>", "plane"),
    "a keyframe of none": (f"<mujoco><worldbody>{BODY}</worldbody></mujoco>", "no keyframe 'home'; it has none"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_one_clear_error(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, wanted = WRONG[case]
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "inner" / "model.xml"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(LapjointError, match=wanted) as caught:
        read_scene(path, keyframe="home" if case == "a keyframe of none" else None)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value) or "model.xml" in str(caught.value)
    assert [one.name for one in tmp_path.iterdir()] == ["inner"], "no log of warnings"


def test_no_entity_is_expanded(tmp_path: Path) -> None:
    """A billion laughs."""
    entities = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10 if k else "lol"}">' for k in range(10))
    path = tmp_path / "laughs.urdf"
    path.write_text(f"<!DOCTYPE robot [{entities}]><robot>&l9;</robot>")
    with pytest.raises(LapjointError, match="has a document type"):
        read_scene(path)
