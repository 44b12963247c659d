"""Pyramid and joint grid, on which solvers are compared: exact counts, sizes by their sides, and that they hold."""

from __future__ import annotations

import numpy as np
import pytest

from engine_support import gaps_of
from lapjoint import LapjointError, Params, Scene, Sequential, make_engine, scenes
from lapjoint.engines import Engine
from lapjoint.scene import WORLD
from lapjoint.scenes import pyramid

NAMES = ("pyramid", "joint-grid")
COUNTS = {"pyramid": (5050, 0), "joint-grid": (9900, 19701)}
LEAST = {"pyramid": 1, "joint-grid": 2}


def started(scene: Scene, precision: str = "float32") -> Engine:
    engine = make_engine(scene, Params(sequential=Sequential(iterations=50), precision=precision))
    engine.activate(np.arange(scene.body_count), scene.states)
    return engine


# ---- as built ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_counts(name: str) -> None:
    scene = scenes.build(name)
    assert (scene.body_count, scene.joint_count) == COUNTS[name]
    assert (scene.name, scene.timestep, scene.search_depth) == (name, 0.002, 4)


def test_size_is_a_side() -> None:
    for side in (2, 5, 30):
        assert scenes.build("pyramid", side).body_count == side * (side + 1) // 2
        grid = scenes.build("joint-grid", side)
        assert grid.body_count == side * (side - 1)
        assert grid.joint_count == (side - 1) ** 2 + side * (side - 2) + side
    assert scenes.build("pyramid", 1).body_count == 1
    with pytest.raises(LapjointError, match="joint-grid: size is 1, expected at least 2 columns"):
        scenes.build("joint-grid", 1)
    with pytest.raises(LapjointError, match="pyramid: size is 0, expected at least 1 cube"):
        pyramid.build(0)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_random(name: str) -> None:
    assert scenes.build(name, 9) == scenes.build(name, 9, seed=7)


@pytest.mark.parametrize("name", NAMES)
def test_labels_are_columns_from_left_to_right(name: str) -> None:
    scene = scenes.build(name, 20)
    labels = scene.bodies.label
    assert set(np.diff(labels)) <= {0, 1}
    assert (labels[0], labels[-1]) == (0, 19)
    middles = [scene.bodies.position[labels == label, 0].mean() for label in range(20)]
    assert (np.diff(middles) > 0).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", ["least", "small", "full"])
def test_nothing_overlaps_at_first(name: str, size: str) -> None:
    scene = scenes.build(name, {"least": LEAST[name], "small": 8, "full": None}[size])
    engine = started(scene, "float64")
    engine.contacts(now=True)
    assert engine.contacts().penetration < 1e-9
    assert gaps_of(engine)[1].max(initial=0.0) < 1e-9


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [8, None])
def test_the_camera_has_everything_in_the_picture(name: str, size: int | None) -> None:
    scene = scenes.build(name, size)
    assert scene.camera is not None
    eye, target = map(np.array, scene.camera)
    ahead = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    offset = scene.bodies.position - eye
    half_height = offset @ ahead * np.tan(np.radians(22.5))
    across = offset @ right / (half_height * 16 / 9)
    up = offset @ np.cross(right, ahead) / half_height
    assert max(np.abs(across).max(), np.abs(up).max()) < 0.97
    assert max(np.ptp(across) / 2, np.ptp(up) / 2) > 0.35


def test_a_grid_hangs_from_its_upper_edge_and_joined_neighbours_do_not_collide() -> None:
    scene = scenes.build("joint-grid", 6)
    joints = scene.joints
    held = joints.body_a[joints.body_b == WORLD]
    assert (len(held), len(scene.ignored_pairs)) == (6, scene.joint_count - 6)
    np.testing.assert_allclose(scene.bodies.position[held, 2], scene.bodies.position[:, 2].max())


# ---- in motion --------------------------------------------------------------------------------------------------


def test_a_pyramid_stands() -> None:
    scene = scenes.build("pyramid", 6)
    engine = started(scene)
    engine.step(100)
    states = engine.get_states()
    np.testing.assert_allclose(states[:, :3], scene.states[:, :3], atol=0.005)
    assert engine.contacts().penetration < 0.005


def test_a_grid_swings_and_holds() -> None:
    scene = scenes.build("joint-grid", 8)
    engine = started(scene)
    engine.step(200)
    states = engine.get_states()
    assert states[:, 1].max() < 0.7 * scene.states[:, 1].max(), "it swings back"
    assert gaps_of(engine)[1].max() < 0.002
