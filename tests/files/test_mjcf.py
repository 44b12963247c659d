"""MJCF and URDF files: every kind of element, MuJoCo itself as the oracle, and files that are wrong."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from lapjoint import LapjointError, Params, Scene, Simulation
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
    with Simulation(scene, Params(precision="float64", substeps=4, timestep=0.0005)) as simulation:
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


# ---- files that are wrong ------------------------------------------------------------------------------------------

BODY = '<body pos="0 0 1"><freejoint/><geom size="0.1"/></body>'
PLANE = '<body><freejoint/><geom size=".1"/><geom type="plane" size="1 1 1"/></body>'
WRONG = {
    "truncated": ("<mujoco><worldbody><body>", "is no XML"),
    "empty": ("", "is no XML"),
    "not a model": ("<html/>", "Unrecognized|unrecognized|root"),
    "a document type": ('<!DOCTYPE lolz [<!ENTITY a "b">]><mujoco>&a;</mujoco>', "document type"),
    "a missing mesh": ('<mujoco><asset><mesh file="no.obj"/></asset></mujoco>', "line 1: mesh names 'no.obj': there"),
    "a mesh elsewhere": ('<mujoco><asset><mesh file="../../etc/passwd"/></asset></mujoco>', "outside the folder"),
    "an absolute path": ('<mujoco><asset><mesh file="/etc/passwd"/></asset></mujoco>', "relative to the folder"),
    "includes itself": ('<mujoco><include file="model.xml"/></mujoco>', "includes itself"),
    "not a number": (f'<mujoco><option timestep="nan"/><worldbody>{BODY}</worldbody></mujoco>', "."),
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
