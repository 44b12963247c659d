"""Positions and velocities of joints on their axes, against rotations written down and differences over time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapjoint import FREE, LOCKED, WORLD, Hinge, LapjointError, Scene, SixAxis, Slider, Sphere
from lapjoint.arrays import rotation
from lapjoint.scene.joint_motion import JointMotion, of_axis, with_turns

FREE6 = SixAxis(linear=((-9, 9),) * 3, angular=((-3, 3),) * 3)
IDS = np.arange(1, dtype=np.int32)


def random_states(rng: np.random.Generator) -> np.ndarray:
    states = rng.normal(size=(2, 13))
    states[:, 3:7] /= np.linalg.norm(states[:, 3:7], axis=1, keepdims=True)
    return states


def moved(states: np.ndarray, dt: float) -> np.ndarray:
    """The same a moment later, at constant velocities."""
    after = states.copy()
    after[:, :3] += dt * states[:, 7:10]
    speed = np.linalg.norm(states[:, 10:], axis=1)
    turn = rotation.from_axis_angle(states[:, 10:], speed * dt)
    after[:, 3:7] = rotation.multiply(turn, states[:, 3:7])
    return after


@pytest.mark.slow
@pytest.mark.parametrize("to_world", [False, True])
@given(seed=st.integers(0, 2**32 - 1))
def test_positions_put_one_frame_onto_the_other_and_velocities_are_their_rates(to_world: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scene = Scene()
    scene.add_bodies(Sphere(0.1), rng.normal(size=(2, 3)))
    axis = rng.normal(size=3)
    scene.add_joint(SixAxis(**{**vars(FREE6), "axis": tuple(axis)}), 0, WORLD if to_world else 1, rng.normal(size=3))
    assert JointMotion(scene, scene.states, IDS).positions() == pytest.approx(np.zeros((1, 6)), abs=1e-12)
    states = random_states(rng)
    position = JointMotion(scene, states, IDS).positions()[0]
    turns = [rotation.from_axis_angle(np.eye(3)[k], position[3 + k]) for k in range(3)]
    turn = rotation.multiply(turns[2], rotation.multiply(turns[1], turns[0]))
    frames = []
    for body, frame in ((0, scene.joints.frame_a[0]), (WORLD if to_world else 1, scene.joints.frame_b[0])):
        at, by = (np.zeros(3), np.array([1.0, 0, 0, 0])) if body == WORLD else (states[body, :3], states[body, 3:7])
        frames.append((at + rotation.rotate(by, frame[:3]), rotation.multiply(by, frame[3:])))
    (anchor_a, turn_a), (anchor_b, turn_b) = frames
    assert rotation.rotate(turn_b, position[:3]) == pytest.approx(anchor_a - anchor_b, abs=1e-9)
    assert abs(np.dot(rotation.multiply(turn_b, turn), turn_a)) == pytest.approx(1, abs=1e-9)
    if abs(np.cos(position[4])) > 0.2:
        before, after = (JointMotion(scene, moved(states, dt), IDS).positions()[0] for dt in (-1e-6, 1e-6))
        change = after - before
        change[3:] = (change[3:] + np.pi) % (2 * np.pi) - np.pi
        assert JointMotion(scene, states, IDS).velocities()[0] == pytest.approx(change / 2e-6, rel=1e-5, abs=1e-4)


def test_one_axis_or_the_only_free_one() -> None:
    scene = Scene()
    scene.add_bodies(Sphere(0.1), [(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    scene.add_joint(Hinge(axis=(0, 0, 1)), 0, WORLD, (0, 0, 0))
    scene.add_joint(Slider(axis=(0, 1, 0)), 1, 0, (1, 0, 0))
    scene.add_joint(FREE6, 2, WORLD, (2, 0, 0))
    values, ids = np.arange(18.0).reshape(3, 6), np.arange(3, dtype=np.int32)
    assert of_axis(scene, values, ids, None, "x") is values
    assert of_axis(scene, values, ids, 4, "x").tolist() == [4, 10, 16]
    assert of_axis(scene, values[:2], ids[:2], "free", "x").tolist() == [3, 6]
    with pytest.raises(LapjointError, match="x: joint 2 has 6 free axes, expected one"):
        of_axis(scene, values, ids, "free", "x")
    for wrong in (6, -1, 1.0, True, "all"):
        with pytest.raises(LapjointError, match=r"x: axis is .*, expected 0 to 5, 'free' or None"):
            of_axis(scene, values, ids, wrong, "x")  # type: ignore[arg-type]


def test_turns_count_on() -> None:
    """Angles are those next to so many half turns, on the axis that is counted; others stay."""
    scene = Scene()
    scene.add_bodies(Sphere(0.1), [(float(k), 0, 0) for k in range(3)])
    for body, joint in enumerate((Hinge(), SixAxis(angular=(LOCKED, LOCKED, FREE)), Hinge())):
        scene.add_joint(joint, body, WORLD, (float(body), 0, 0))
    found = with_turns(scene, np.full((3, 6), 0.5), np.arange(3, dtype=np.int32), np.array([4, -3, 0], np.int32))
    np.testing.assert_allclose(found[0], (0.5, 0.5, 0.5, 0.5 + 4 * np.pi, 0.5, 0.5))
    np.testing.assert_allclose(found[1], (0.5, 0.5, 0.5, 0.5, 0.5, 0.5 - 4 * np.pi))
    assert (found[2] == 0.5).all()


def test_a_body_that_was_removed_is_nowhere() -> None:
    scene = Scene()
    scene.add_bodies(Sphere(0.1), [(0, 0, 0), (1, 0, 0)])
    scene.add_joint(Hinge(), 0, 1, (0, 0, 0))
    states = scene.states.copy()
    states[1] = 0
    assert np.isnan(JointMotion(scene, states, IDS).positions()).all()
