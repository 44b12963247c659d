"""Scenes and recordings as USD: what usd-core reads in them, and what comes back."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from exported_scenes import assert_same_scene, every_joint, every_shape
from film_support import record_changing
from lapjoint import Box, Plane, Recording, RecordingWriter, Rotation, Scene, Simulation, scenes
from lapjoint.files.read import read_with_notes
from lapjoint.view.draw.colors import to_linear, worker_colors
from lapjoint.view.export.frames import frames_of_recording, frames_of_scene

pytest.importorskip("pxr")

from pxr import Usd, UsdGeom, UsdPhysics

from lapjoint.view.export.usd import write_usd


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record_changing(tmp_path_factory.mktemp("usd") / "run")


def opened(recording: Recording, path: Path, every: int = 1) -> Usd.Stage:
    write_usd(frames_of_recording(recording, every), path)
    return Usd.Stage.Open(str(path))


def bodies_of(stage: Usd.Stage) -> list[Usd.Prim]:
    return list(stage.GetPrimAtPath("/World/Bodies").GetChildren())


def pose_at(prim: Usd.Prim, code: float) -> np.ndarray:
    return np.array(UsdGeom.XformCache(Usd.TimeCode(code)).GetLocalToWorldTransform(prim))


def matrix_of(state: np.ndarray) -> np.ndarray:
    """As USD has it: rows are axes."""
    w, x, y, z = state[3:7]
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y), 0],
        [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x), 0],
        [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y), 0],
        [*state[:3], 1],
    ]
    return np.array(rows)


# ---- recordings ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".usda", ".usdc", ".usd"])
def test_bodies_are_where_they_were_in_every_frame(changing: Recording, ending: str, tmp_path: Path) -> None:
    stage = opened(changing, tmp_path / f"run{ending}")
    last = changing.frame_count - 1
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (0, last)
    assert stage.GetTimeCodesPerSecond() == pytest.approx(1 / (changing.every * changing.timestep))
    assert (UsdGeom.GetStageUpAxis(stage), UsdGeom.GetStageMetersPerUnit(stage)) == ("Z", 1.0)
    assert UsdPhysics.GetStageKilogramsPerUnit(stage) == 1.0
    prims = bodies_of(stage)
    assert len(prims) == changing.body_count
    for number in (0, last // 2, last):
        states, there = changing.frame(number).states, changing.alive(number)
        for body, prim in enumerate(prims):
            seen = UsdGeom.Imageable(prim).ComputeVisibility(number) != "invisible"
            assert seen == there[body]
            if seen:
                np.testing.assert_allclose(pose_at(prim, number), matrix_of(states[body]), atol=2e-6)


def test_between_frames_bodies_go_in_lines(changing: Recording, tmp_path: Path) -> None:
    """What is left out of the samples is on the lines between the others."""
    stage = opened(changing, tmp_path / "run.usdc")
    for body in (2, 3):
        prim = bodies_of(stage)[body]
        for number in range(changing.frame_count):
            wanted = changing.frame(number).states[body]
            np.testing.assert_allclose(pose_at(prim, number)[3, :3], wanted[:3], atol=2e-6)


def test_one_of_many_frames(changing: Recording, tmp_path: Path) -> None:
    stage = opened(changing, tmp_path / "run.usda", every=4)
    assert stage.GetEndTimeCode() == 2
    assert stage.GetTimeCodesPerSecond() == pytest.approx(0.25 / (changing.every * changing.timestep))
    prim = bodies_of(stage)[3]
    np.testing.assert_allclose(pose_at(prim, 2)[3, :3], changing.frame(8).states[3, :3], atol=2e-6)


def test_colours_are_those_of_the_workers_and_change_with_them(changing: Recording, tmp_path: Path) -> None:
    frames, palette = frames_of_recording(changing), to_linear(worker_colors(2))
    owners = np.array([changing.weights(number).argmax(axis=1) for number in range(changing.frame_count)])
    np.testing.assert_allclose(frames.colors[frames.shown], palette[owners[frames.shown]], atol=1e-6)
    # As if body 3 had migrated with frame 5.
    frames.colors[5:, 3] = palette[1 - owners[0, 3]]
    path = tmp_path / "run.usda"
    write_usd(frames, path)
    stage = Usd.Stage.Open(str(path))
    prims = bodies_of(stage)
    for body, number in ((2, 0), (2, 9), (3, 0), (3, 4), (3, 5), (3, 11)):
        color = UsdGeom.PrimvarsAPI(prims[body]).GetPrimvar("displayColor")
        assert color.GetInterpolation() == "constant"
        np.testing.assert_allclose(color.Get(number)[0], frames.colors[number, body], atol=1e-6)
    assert [len(prims[k].GetAttribute("primvars:displayColor").GetTimeSamples()) for k in (2, 3)] == [0, 3]


def test_who_comes_later_is_seen_and_is_no_physics(changing: Recording, tmp_path: Path) -> None:
    path = tmp_path / "run.usda"
    opened(changing, path)
    scene, notes = read_with_notes(path)
    began = changing.began_with[0]
    assert scene.body_count == began == 6 < changing.body_count
    assert scene.static_count == changing.scene.static_count
    np.testing.assert_allclose(scene.states, changing.scene.states[:began], atol=1e-6)
    assert notes.lines() == []


@pytest.mark.slow
def test_kinematic_bodies_move(tmp_path: Path) -> None:
    scene = Scene("turning")
    scene.add_static(Plane())
    scene.add_kinematic(Box((1.0, 0.2, 0.2)), (0.0, 0.0, 1.0), motion=Rotation((0.0, 0.0, 1.0), 3.0))
    scene.add_body(Box((0.2, 0.2, 0.2)), (0.0, 0.0, 2.0))
    with Simulation(scene) as simulation, RecordingWriter(tmp_path / "run", simulation, every=5) as writer:
        for _ in range(20):
            simulation.step()
            writer.add(simulation)
    recording = Recording(tmp_path / "run")
    stage = opened(recording, tmp_path / "run.usda")
    prim = stage.GetPrimAtPath("/World/Statics").GetChildren()[1]
    last = recording.frame_count - 1
    for number in (0, last):
        np.testing.assert_allclose(pose_at(prim, number), matrix_of(recording.static_poses(number)[1]), atol=2e-6)
    assert np.abs(pose_at(prim, 0) - pose_at(prim, last)).max() > 0.05


# ---- scenes ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".usda", ".usdc"])
@pytest.mark.parametrize("make", [every_shape, every_joint])
def test_a_scene_comes_back(make: object, ending: str, tmp_path: Path) -> None:
    scene = make()  # type: ignore[operator]
    path = tmp_path / f"scene{ending}"
    write_usd(frames_of_scene(scene), path)
    read, notes = read_with_notes(path)
    assert notes.lines() == []
    assert_same_scene(scene, read)
    again = tmp_path / f"again{ending}"
    write_usd(frames_of_scene(read), again)
    assert_same_scene(read, read_with_notes(again)[0], 2e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", scenes.names())
def test_every_scene_of_the_library_comes_back(name: str, tmp_path: Path) -> None:
    scene = scenes.build(name, {"pyramid": 4, "joint-grid": 4, "chain-net": 10}.get(name, 80))
    path = tmp_path / "scene.usdc"
    write_usd(frames_of_scene(scene), path)
    assert_same_scene(scene, read_with_notes(path)[0])


def test_usd_finds_all_of_it_to_be_physics(tmp_path: Path) -> None:
    """usd-core's own reading: kinds of joints, limits, drives, masses, groups, and that meshes are written once."""
    scene = every_joint()
    path = tmp_path / "joints.usda"
    write_usd(frames_of_scene(scene), path)
    stage = Usd.Stage.Open(str(path))
    kinds = [prim.GetTypeName() for prim in stage.GetPrimAtPath("/World/Joints").GetChildren()]
    assert kinds == [
        *["PhysicsSphericalJoint"] * 2,
        *["PhysicsRevoluteJoint"] * 3,
        *["PhysicsPrismaticJoint"] * 2,
        *["PhysicsFixedJoint"] * 2,
        *["PhysicsJoint"] * 2,
        *["PhysicsDistanceJoint"] * 3,
        "PhysicsJoint",
    ]
    hinge = stage.GetPrimAtPath("/World/Joints/joint_03")
    drive = UsdPhysics.DriveAPI(hinge, "angular")
    assert drive.GetTargetPositionAttr().Get() == pytest.approx(np.degrees(0.5))
    assert drive.GetStiffnessAttr().Get() == pytest.approx(20 * np.pi / 180)
    assert drive.GetMaxForceAttr().Get() == pytest.approx(7)
    assert UsdPhysics.RevoluteJoint(hinge).GetUpperLimitAttr().Get() == pytest.approx(np.degrees(4.0))
    motor = stage.GetPrimAtPath("/World/Joints/joint_04")
    assert UsdPhysics.DriveAPI(motor, "angular").GetTargetVelocityAttr().Get() == pytest.approx(np.degrees(2.0))
    assert UsdPhysics.Joint(motor).GetBreakForceAttr().Get() == 100
    assert len(stage.GetPrototypes()) == 1
    for body, prim in enumerate(bodies_of(stage)):
        assert prim.IsInstance()
        found = UsdPhysics.RigidBodyAPI(prim).ComputeMassProperties(lambda _: UsdPhysics.RigidBodyAPI.MassInformation())
        assert found[0] == pytest.approx(scene.bodies.mass[body], rel=1e-6)


def test_groups_and_pairs_are_those_of_the_standard(tmp_path: Path) -> None:
    scene = every_shape()
    path = tmp_path / "shapes.usda"
    write_usd(frames_of_scene(scene), path)
    stage = Usd.Stage.Open(str(path))
    table = UsdPhysics.CollisionGroup.ComputeCollisionGroupTable(stage)
    groups = stage.GetPrimAtPath("/World/Groups").GetChildren()
    assert len(groups) == 4
    bits = [(prim.GetAttribute("lapjoint:group").Get(), prim.GetAttribute("lapjoint:mask").Get()) for prim in groups]
    for one, (group, mask) in zip(groups, bits, strict=True):
        for other, (theirs, their_mask) in zip(groups, bits, strict=True):
            wanted = bool(group & their_mask) and bool(theirs & mask)
            assert table.IsCollisionEnabled(str(one.GetPath()), str(other.GetPath())) == wanted
    pairs = UsdPhysics.FilteredPairsAPI(bodies_of(stage)[0]).GetFilteredPairsRel().GetTargets()
    assert [str(path) for path in pairs] == [str(bodies_of(stage)[1].GetPath())]


def test_a_file_stays_as_it_was_where_it_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "scene.usda"
    path.write_text("before")
    monkeypatch.setattr(sys.modules["lapjoint.view.export.usd.write"], "add_joints", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_usd(frames_of_scene(every_joint()), path)
    assert [one.name for one in tmp_path.iterdir()] == ["scene.usda"]
    assert path.read_text() == "before"
