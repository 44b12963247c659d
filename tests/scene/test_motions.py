"""Motions of kinematic bodies: native code against its readable twin, files, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint import (
    Box,
    ConstantVelocity,
    Keyframes,
    LapjointError,
    Oscillation,
    Params,
    Plane,
    Rotation,
    Scene,
    make_engine,
)
from lapjoint.arrays import rotation
from lapjoint.engines import Changes
from lapjoint.engines.bullet import BulletEngine
from lapjoint.scene.file import pack_scene
from lapjoint.scene.motions import GivenMotion, Motion, velocity_between
from lapjoint.scene.serialize import describe_scene, scene_from_bytes, scene_to_bytes

TIMESTEP = 0.01
numbers = st.floats(-3, 3).map(lambda value: round(value, 3))
vectors = st.tuples(numbers, numbers, numbers)
directions = vectors.filter(lambda vector: np.linalg.norm(vector) > 0.1)
quaternions = (
    st.tuples(numbers, numbers, numbers, numbers)
    .filter(lambda q: np.linalg.norm(q) > 0.1)
    .map(lambda q: tuple(np.array(q) / np.linalg.norm(q)))
)


@st.composite
def keyframes(draw: st.DrawFn) -> Keyframes:
    count = draw(st.integers(1, 5))
    times = np.cumsum(draw(st.lists(st.floats(0.01, 0.5), min_size=count, max_size=count))) - 0.2
    positions, turns = ([draw(kind) for _ in range(count)] for kind in (vectors, quaternions))
    repeat = draw(st.booleans()) and count > 1
    if repeat:
        positions[-1], turns[-1] = positions[0], turns[0]
    return Keyframes(times, positions, turns, repeat)


motions: st.SearchStrategy[Motion | None] = st.one_of(
    st.none(),
    st.builds(ConstantVelocity, vectors, vectors),
    st.builds(Rotation, directions, numbers, st.none() | vectors),
    st.builds(Oscillation, vectors, numbers, numbers, vectors),
    keyframes(),
)


def same_pose(first: Any, second: Any) -> bool:
    turned = abs(float(np.dot(first[3:], second[3:])))
    return bool(np.allclose(first[:3], second[:3], atol=1e-9)) and turned == pytest.approx(1, abs=1e-9)


def moving(*given: Motion | None, **options: Any) -> Scene:
    scene = Scene("moving", timestep=TIMESTEP)
    for motion in given:
        scene.add_kinematic(Box((1.0, 1.0, 1.0)), motion=motion, **options)
    return scene


# ---- where bodies are ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(motions, min_size=1, max_size=4), vectors, quaternions, st.integers(0, 400), st.integers(0, 5))
def test_engines_have_bodies_where_the_twin_has_them(
    given_motions: list[Motion | None], position: Any, quaternion: Any, step: int, more: int
) -> None:
    scene = moving(*given_motions, position=position, quaternion=quaternion)
    engine = make_engine(scene, Params(precision="float64"))
    assert isinstance(engine, BulletEngine)
    engine.change(Changes(step_count=step))
    engine.step(more)
    for pose, motion in zip(engine.state().kinematic_poses, scene.motions.values(), strict=True):
        assert same_pose(pose, motion.pose(step + more, TIMESTEP))


@given(motions, vectors, quaternions, st.integers(0, 100))
def test_a_velocity_leads_from_a_pose_to_the_next(motion: Any, position: Any, quaternion: Any, step: int) -> None:
    moved = GivenMotion.of(motion, "it", np.array([*position, *quaternion]))
    state, after = moved.state(step, TIMESTEP), moved.pose(step + 1, TIMESTEP)
    turn = state[10:] * TIMESTEP
    angle = float(np.linalg.norm(turn))
    by = rotation.from_axis_angle(turn, angle) if angle > 0 else rotation.IDENTITY
    there = np.concatenate([state[:3] + TIMESTEP * state[7:10], rotation.multiply(by, state[3:7])])
    assert same_pose(there, after)


@given(motions.filter(lambda motion: not isinstance(motion, Keyframes)), vectors, quaternions)
def test_a_motion_begins_where_the_body_is(motion: Any, position: Any, quaternion: Any) -> None:
    base = np.array([*position, *quaternion])
    assert same_pose(GivenMotion.of(motion, "it", base, 7).pose(7, TIMESTEP), base)


def test_each_kind_of_motion() -> None:
    half = np.sqrt(0.5)

    def pose(motion: Motion, time: float, at: Any = (1.0, 0.0, 0.0)) -> Any:
        return GivenMotion.of(motion, "it", np.array([*at, 1.0, 0.0, 0.0, 0.0])).pose(1, time)

    assert pose(ConstantVelocity((1, 2, 3)), 2.0)[:3] == pytest.approx([3, 4, 6])
    quarter = Rotation((0, 0, 2), np.pi / 2)
    assert pose(quarter, 1.0) == pytest.approx([1, 0, 0, half, 0, 0, half])
    about = Rotation((0, 0, 2), np.pi / 2, about=(0, 0, 5))
    assert pose(about, 1.0) == pytest.approx([0, 1, 0, half, 0, 0, half])
    assert pose(Oscillation((0, 0, 0.1), 2.0), 0.125)[:3] == pytest.approx([1, 0, 0.1])
    assert pose(Oscillation((0, 0, 0.1), 2.0, np.pi / 2), 0.25)[:3] == pytest.approx([1, 0, -0.2])
    frames = Keyframes((1, 2, 4), [(0, 0, 0), (1, 0, 0), (0, 0, 0)], [(1, 0, 0, 0), (half, 0, 0, half), (1, 0, 0, 0)])
    for time, x in ((0.0, 0.0), (1.5, 0.5), (3.0, 0.5), (4.0, 0.0), (9.0, 0.0)):
        assert pose(frames, time)[0] == pytest.approx(x)
    assert pose(frames, 1.5)[3:] == pytest.approx([np.cos(np.pi / 8), 0, 0, np.sin(np.pi / 8)])
    again = Keyframes(frames.times, frames.positions, frames.quaternions, repeat=True)
    assert pose(again, 4.5)[0] == pytest.approx(0.5)
    assert pose(again, 0.5)[0] == pytest.approx(0.25), "and before"


def test_a_turn_of_half_a_circle_in_a_step_has_a_velocity() -> None:
    there = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    velocity = velocity_between(np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), there, 0.5)
    assert velocity == pytest.approx([0, 0, 0, 0, 0, 2 * np.pi])


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.lists(motions, max_size=4))
def test_motions_are_part_of_a_scene_s_file(given_motions: list[Motion | None]) -> None:
    scene = moving(*given_motions, surface_velocity=(1.0, 2.0, 3.0))
    again = scene_from_bytes(Scene, scene_to_bytes(scene), "it")
    assert again == scene
    assert again.kinematic_ids.tolist() == scene.kinematic_ids.tolist() == list(range(len(given_motions)))
    for number, motion in scene.motions.items():
        assert np.array_equal(again.motions[number].pose(30, TIMESTEP), motion.pose(30, TIMESTEP))


def test_a_scene_in_which_nothing_moves_has_the_file_it_had(tmp_path: Path) -> None:
    scene = Scene()
    scene.add_static(Plane())
    assert not any("motion" in name or "surface" in name for name in describe_scene(scene)[1])
    again = Scene.load(scene.save(tmp_path / "scene.npz"))
    assert again.statics.surface_velocity.tolist() == [[0.0] * 6]
    assert not again.motions


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("kinds", 9, "a motion of kind 9 with 6 values"),
        ("counts", 5, "other values than they say"),
        ("ids", 7, "kinematic bodies"),
        ("values", np.nan, "a motion of kind 1 with 6 values"),
        ("bases", np.inf, "begins nowhere"),
    ],
)
def test_files_with_motions_that_are_none(name: str, value: float, what: str) -> None:
    scene = moving(ConstantVelocity((1, 0, 0)))
    description, arrays = describe_scene(scene)
    arrays[f"motions/{name}"].ravel()[0] = value
    with pytest.raises(LapjointError, match=f"it: damaged scene file .*{what}"):
        scene_from_bytes(Scene, pack_scene(description, arrays), "it")


# ---- what is refused -------------------------------------------------------------------------------------------------

WRONG: list[tuple[Any, str]] = [
    (Rotation((0, 0, 0), 1.0), "axis is zero, expected a direction"),
    (Rotation((0, 0, 1), np.nan), "rate is nan, expected finite numbers"),
    (Rotation((0, 0, 1), 1.0, (1, 2)), r"about is \(1, 2\), expected 3 numbers"),
    (ConstantVelocity((0, np.inf, 0)), "linear velocity is .*inf.*, expected finite numbers"),
    (ConstantVelocity("fast"), "linear velocity is fast, expected 3 numbers"),
    (Oscillation((0, 0, 1), frequency=np.inf), "frequency is inf, expected finite numbers"),
    (Keyframes((0, 1), [(0, 0, 0)]), "2 keyframe times for 1 positions, expected one each"),
    (Keyframes((0, 1, 1), [(0, 0, 0)] * 3), "keyframe 2 is at 1 s, expected later than the last"),
    (Keyframes((), np.empty((0, 3))), "it has no keyframes, expected one or more"),
    (Keyframes((0, 1), [(0, 0, 0)] * 2, (2, 0, 0, 0)), "keyframe 0: quaternion .* has length 2, expected 1"),
    (Keyframes((0, 1), [(0, 0, 0), (1, 0, 0)], repeat=True), "keyframes repeat and end elsewhere than they begin"),
    ("up", "motion is 'up', expected one of ConstantVelocity, Rotation, Oscillation, Keyframes"),
]


@pytest.mark.parametrize(("motion", "message"), WRONG)
def test_wrong_motions(motion: Any, message: str) -> None:
    scene = moving(None)
    before = scene_to_bytes(scene)
    with pytest.raises(LapjointError, match=f"kinematic body 1: {message}"):
        scene.add_kinematic(Plane(), motion=motion)
    assert scene_to_bytes(scene) == before


@pytest.mark.parametrize("velocity", [(1.0, 2.0), (1.0, 2.0, np.nan), "fast"])
def test_wrong_surface_velocities(velocity: Any) -> None:
    scene = moving(None)
    with pytest.raises(LapjointError, match=r"static body 1: surface velocity is .*, expected"):
        scene.add_static(Plane(), surface_velocity=velocity)
    assert scene.static_count == 1


@pytest.mark.parametrize("params", [{"solver": "sequential"}, {"engine": "rapier"}, {"engine": "mujoco:float64"}])
def test_who_has_no_kinematic_bodies_says_so(params: dict[str, Any]) -> None:
    if "engine" in params:
        pytest.importorskip({"rapier": "rapier3d", "mujoco:float64": "mujoco"}[params["engine"]])
    belt = Scene("belt")
    belt.add_static(Plane())
    belt.add_static(Box((1.0, 1.0, 1.0)), surface_velocity=(1.0, 0.0, 0.0))
    for scene, what in ((moving(None), "0 is kinematic"), (belt, "1 has a surface velocity")):
        with pytest.raises(LapjointError, match=rf"scene '\w+': static body {what}, which (only|the engine)"):
            make_engine(scene, Params.from_options(**params))
