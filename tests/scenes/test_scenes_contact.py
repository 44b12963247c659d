"""The scenes that hold by contact alone: bowl, building and chain net. What they are made of, and what they do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lapjoint import Engine, LapjointError, Params, Scene, Sequential, make_engine, scenes
from lapjoint.scene.linking import linking_numbers
from lapjoint.scene.shapes import hull_faces
from lapjoint.scenes import bowl, building, chain_net

Array = NDArray[np.float64]
NAMES = ("bowl", "building", "chain-net")


def started(scene: Scene, bodies: int | None = None) -> Engine:
    """An engine with the scene's first `bodies` bodies (all), at 50 iterations."""
    ids = np.arange(scene.body_count if bodies is None else bodies)
    engine = make_engine(scene, Params(sequential=Sequential(iterations=50)))
    engine.activate(ids, scene.states[ids])
    return engine


def speeds(states: Array) -> Array:
    return np.asarray(np.linalg.norm(states[:, 7:10], axis=1))


# ---- what they are made of -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "bodies"), [("bowl", 5040), ("building", 2408), ("chain-net", 3724)])
def test_the_papers_counts(name: str, bodies: int) -> None:
    scene = scenes.build(name)
    assert (scene.body_count, scene.joint_count, scene.timestep) == (bodies, 0, 0.002)
    assert (scene.growth_depth, scene.search_depth) == (3 if name == "chain-net" else 0, 4)
    assert scene.camera is not None


@pytest.mark.parametrize("name", NAMES)
def test_labels_are_consecutive_and_small(name: str) -> None:
    labels = scenes.build(name).bodies.label
    assert labels[0] == 0
    assert set(np.diff(labels)) <= {0, 1}
    assert np.bincount(labels).max() < 0.06 * len(labels)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_nothing_starts_inside_another(name: str) -> None:
    engine = started(scenes.build(name))
    engine.contacts(now=True)
    assert engine.contacts().penetration < 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_only_the_bowl_is_random(name: str) -> None:
    same = scenes.build(name, 200, seed=1) == scenes.build(name, 200, seed=2)
    assert same == (name != "bowl")
    assert scenes.build(name, 200, seed=1) == scenes.build(name, 200, seed=1)


@pytest.mark.parametrize("size", [1, 2, 100, 4999, 200_000])
def test_bowl_has_any_size(size: int) -> None:
    assert scenes.build("bowl", size).body_count == size


@pytest.mark.parametrize("size", [75, 150, 1000, 2408, 30_000])
def test_building_has_about_any_size(size: int) -> None:
    assert scenes.build("building", size).body_count == pytest.approx(size, rel=0.25)


@pytest.mark.parametrize("size", [4, 25, 96, 1000, 3724, 20_000])
def test_net_has_about_any_size(size: int) -> None:
    assert scenes.build("chain-net", size).body_count == pytest.approx(size, rel=0.1)


@pytest.mark.parametrize(("module", "size"), [(bowl, 0), (building, 74), (chain_net, 3)])
def test_too_small_is_refused(module: object, size: int) -> None:
    with pytest.raises(LapjointError, match=f"size is {size}, expected at least"):
        module.build(size)  # type: ignore[attr-defined]


def test_building_has_six_equal_storeys_of_slabs_columns_and_bricks() -> None:
    scene = scenes.build("building")
    assert building.storey_body_count(5) == 25 + 36 + 340 == 401
    storey = scene.bodies.label[:-2] // 4
    np.testing.assert_array_equal(np.bincount(storey), np.full(6, 401))
    assert scene.body_names == {2406: "cannon ball 1", 2407: "cannon ball 2"}


# ---- the net's rings -------------------------------------------------------------------------------------------------


def test_a_link_has_1151_vertices_all_of_them_corners() -> None:
    parts = chain_net.ring().parts
    given = np.concatenate([part.shape.points + part.position for part in parts])  # type: ignore[union-attr]
    corners = np.concatenate([hull_faces(part.shape.points)[0] + part.position for part in parts])  # type: ignore[union-attr]
    assert len(np.unique(given.round(9), axis=0)) == len(np.unique(corners.round(9), axis=0)) == 1151
    assert np.abs(chain_net.ring().centre).max() < 1e-5


def test_all_links_share_one_shape() -> None:
    assert len(scenes.build("chain-net").shapes) == 1


@pytest.mark.slow
def test_every_link_is_linked_to_four_others_and_to_no_more() -> None:
    scene = scenes.build("chain-net")
    pairs = chain_net.linked_pairs(scene)
    np.testing.assert_array_equal(np.bincount(pairs[pairs >= 0]), np.full(3724, 4))
    assert len(np.unique(pairs[pairs < 0])) == scene.static_count
    assert len(np.unique(pairs, axis=0)) == len(pairs) == 48 * 151 + 400
    np.testing.assert_array_equal(np.abs(chain_net.ring_linking_numbers(scene)), 1)


@pytest.mark.parametrize("size", [4, 25, 96])
def test_every_ring_of_a_small_net_is_linked_to_four_others(size: int) -> None:
    scene = scenes.build("chain-net", size)
    pairs = chain_net.linked_pairs(scene)
    assert set(np.bincount(pairs[pairs >= 0])) == {4}
    np.testing.assert_array_equal(np.abs(chain_net.ring_linking_numbers(scene)), 1)


def test_other_neighbours_are_not_linked() -> None:
    scene = scenes.build("chain-net", 30)
    lines = chain_net.center_lines(scene)
    a, b = np.triu_indices(len(lines), 1)
    found = np.stack([b, a], axis=1)[linking_numbers(lines[a], lines[b]) != 0]
    pairs = chain_net.linked_pairs(scene)
    assert set(map(tuple, found)) == set(map(tuple, pairs[pairs[:, 1] >= 0]))


def test_a_link_that_slips_out_is_noticed() -> None:
    scene = scenes.build("chain-net", 30)
    states = scene.states.copy()
    states[11, 2] += 1.0
    slipped = chain_net.linked_pairs(scene)[chain_net.ring_linking_numbers(scene, states) == 0]
    assert len(slipped) == 4
    assert (slipped == 11).any(axis=1).all()


# ---- what they do ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_balls_come_to_rest_in_the_bowl() -> None:
    scene = scenes.build("bowl", 100)
    engine = started(scene)
    engine.step(2500)
    states = engine.get_states()
    half_floor, height = bowl.bowl_size(bowl.grid_shape(100))
    from_axis = np.abs(states[:, :2]).max(axis=1)
    assert (from_axis < half_floor + states[:, 2] / np.tan(bowl.SLOPE)).all()
    assert states[:, 2].min() > 0.9 * bowl.RADIUS
    assert states[:, 2].max() < 0.6 * height
    assert np.mean(speeds(states) < 0.05) > 0.95


@pytest.mark.slow
def test_building_stands_until_it_is_hit_and_then_comes_down() -> None:
    scene = scenes.build("building", 150)
    first, bodies = scene.states, scene.body_count - 2
    alone = started(scene, bodies)
    alone.step(500)
    assert np.abs(alone.get_states()[:, :3] - first[:-2, :3]).max() < 0.02

    hit = started(scene)
    hit.step(150)
    assert np.abs(hit.get_states()[:-2, :3] - first[:-2, :3]).max() < 0.01  # the balls arrive at 0.4 s
    hit.step(850)
    fallen = first[:-2, 2] - hit.get_states()[:-2, 2]
    upper = first[:-2, 2] > building.HEIGHT
    assert np.mean(fallen[upper] > 0.5) > 0.5


@pytest.mark.slow
def test_net_holds_and_calms_down() -> None:
    scene = scenes.build("chain-net", 24)
    engine = started(scene)
    engine.step(50)
    moving = speeds(engine.get_states()).mean()
    engine.step(950)
    states = engine.get_states()
    assert speeds(states).mean() < 0.02 < moving
    assert engine.contacts().penetration < 0.1 * chain_net.WIRE
    np.testing.assert_array_equal(np.abs(chain_net.ring_linking_numbers(scene, states)), 1)
