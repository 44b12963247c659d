"""Chain, bridges and plank: exact counts, nothing overlapping at first, and structures that hold."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from engine_support import gaps_of
from lapjoint import LapjointError, Scene, scenes
from lapjoint.arrays import rotation
from lapjoint.engines import Engine, make_engine
from lapjoint.params import Params, Sequential
from lapjoint.scene import WORLD
from lapjoint.scenes import bridge, chain, four_way_bridge
from lapjoint.scenes.bridge_cells import RAIL, Cell, add_cells

COUNTS = {
    "chain": (40, 41),
    "bridge": (232, 396),
    "two-way-bridge": (1798, 3180),
    "four-way-bridge": (1691, 3712),
    "plank": (81, 0),
}
LEAST = {"chain": 2, "bridge": 34, "two-way-bridge": 34, "four-way-bridge": 51, "plank": 9}
SMALL = {"chain": 10, "bridge": 52, "two-way-bridge": 61, "four-way-bridge": 51, "plank": 41}
BRIDGES = ["bridge", "two-way-bridge", "four-way-bridge"]
PRECISIONS = ["float32", "float64"]


def started(scene: Scene, iterations: int = 50, precision: str = "float32") -> Engine:
    engine = make_engine(scene, Params(sequential=Sequential(iterations=iterations), precision=precision))
    engine.activate(np.arange(scene.body_count), scene.states)
    return engine


def label_links(scene: Scene) -> dict[tuple[int, int], set[int]]:
    """Bodies at the two ends of the joints between each pair of labels."""
    links: dict[tuple[int, int], set[int]] = {}
    for a, b in zip(scene.joints.body_a, scene.joints.body_b, strict=True):
        if b != WORLD:
            low, high = sorted((int(scene.bodies.label[a]), int(scene.bodies.label[b])))
            if low != high:
                links.setdefault((low, high), set()).update((int(a), int(b)))
    return links


# ---- as built ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_the_papers(name: str) -> None:
    scene = scenes.build(name)
    assert (scene.body_count, scene.joint_count) == COUNTS[name]
    assert scene.name == name
    assert scene.timestep == 0.002
    assert scene.growth_depth == (6 if name in BRIDGES else 0)
    assert scene.search_depth >= 4


@pytest.mark.parametrize("name", COUNTS)
def test_size_is_about_the_body_count(name: str) -> None:
    for size in (LEAST[name], 100, 500, 3000):
        assert scenes.build(name, size).body_count == pytest.approx(size, rel=0.1, abs=20)
    with pytest.raises(LapjointError, match=rf"{name}: size is 1, expected at least {LEAST[name]} "):
        scenes.build(name, 1)


@pytest.mark.parametrize("name", COUNTS)
def test_building_twice_gives_the_same(name: str) -> None:
    assert scenes.build(name, SMALL[name]) == scenes.build(name, SMALL[name], seed=7)


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("small", [True, False])
def test_the_camera_has_everything_in_the_picture(name: str, small: bool) -> None:
    scene = scenes.build(name, SMALL[name] if small else None)
    assert scene.camera is not None
    eye, target = map(np.array, scene.camera)
    ahead = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    offset = scene.bodies.position - eye
    half_height = offset @ ahead * np.tan(np.radians(22.5))
    across = offset @ right / (half_height * 16 / 9)
    up = offset @ np.cross(right, ahead) / half_height
    assert np.abs(across).max() < 0.97
    assert np.abs(up).max() < 0.97
    assert max(np.ptp(across) / 2, np.ptp(up) / 2) > 0.35


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("size", ["least", "small", "full"])
def test_nothing_overlaps_at_first(name: str, size: str) -> None:
    scene = scenes.build(name, {"least": LEAST[name], "small": SMALL[name], "full": None}[size])
    engine = started(scene, precision="float64")
    engine.contacts(now=True)
    assert engine.contacts().penetration < 1e-9
    assert gaps_of(engine)[1].max(initial=0.0) < 1e-9


@pytest.mark.parametrize("name", COUNTS)
def test_masses_are_of_one_order(name: str) -> None:
    masses = scenes.build(name).bodies.mass
    assert masses.max() < 50 * masses.min()


def test_labels_count_pieces_along_the_structure() -> None:
    for name, last in {"chain": 39, "bridge": 25, "two-way-bridge": 199, "four-way-bridge": 172, "plank": 16}.items():
        assert sorted(set(scenes.build(name).bodies.label)) == list(range(last + 1))


@pytest.mark.parametrize("name", ["bridge", "two-way-bridge"])
def test_a_cut_of_a_bridge_touches_four_bodies(name: str) -> None:
    links = label_links(scenes.build(name))
    cell_count = len(links) - 1
    assert sorted(links) == [(k, k + 1) for k in range(cell_count + 1)]
    assert {len(bodies) for bodies in links.values()} == {4}


def test_labels_follow_the_two_crossing_bridges() -> None:
    n = four_way_bridge.CELL_COUNT
    links = label_links(scenes.build("four-way-bridge"))
    joined = [pair for pair in links if pair[1] - pair[0] > 1]
    assert joined == [(n + 1, 3 * n + 3), (n + 1, 3 * n + 4)]  # the platform, and the second bridge's two arms
    assert all(len(links[pair]) == 3 for pair in joined)  # the platform and two stringers


@pytest.mark.parametrize(("cell", "bodies", "joints"), [(bridge.CELL, 9, 12), (four_way_bridge.CELL, 10, 18)])
def test_a_cell_has_its_joints(cell: Cell, bodies: int, joints: int) -> None:
    scene = Scene()
    add_cells(scene, cell, np.zeros((3, 3)), np.zeros(3), labels=[0, 1, 2])
    assert (scene.body_count, scene.joint_count) == (3 * bodies, 3 * joints)
    assert not label_links(scene)


# ---- in motion --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", BRIDGES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_bridge_holds_and_swings(name: str, precision: str) -> None:
    scene = scenes.build(name, SMALL[name])
    engine = started(scene, precision=precision)
    heights = []
    for _ in range(10):
        engine.step(50)
        heights.append(engine.get_states()[:, 2])
        assert gaps_of(engine)[1].max() < 0.005
        assert engine.contacts().penetration < 0.005
    moved = np.array(heights)[:, 3:] - scene.states[3:, 2]  # the first three may be balls
    assert np.abs(moved).max() < 0.5
    assert np.ptp(moved, axis=0).max() > 0.005
    rails = np.array([scene.shapes[i] == RAIL for i in scene.bodies.shape_id])
    upright = rotation.rotate(engine.get_states()[rails, 3:7], [0.0, 0.0, 1.0])[:, 2]
    assert upright.min() > np.cos(np.radians(35.0))


@pytest.mark.slow
def test_more_iterations_make_smaller_gaps() -> None:
    worst = []
    for iterations in (10, 50, 250):
        engine = started(scenes.build("bridge", 61), iterations)
        engine.step(100)
        worst.append(gaps_of(engine)[1].max())
    assert worst[0] > 2 * worst[1] > 4 * worst[2]
    assert worst[2] < 5e-4


@pytest.mark.slow
def test_the_balls_land_on_the_crossing_and_stay() -> None:
    scene = scenes.build("four-way-bridge", 51)
    engine = started(scene)
    engine.step(1000)
    platform, *balls = engine.get_states()[:3, :3]
    contacts = engine.contacts().bodies.tolist()
    for number, ball in enumerate(balls, start=1):
        assert [0, number] in contacts
        assert np.abs(ball[:2]).max() < four_way_bridge.SIDE / 2
        assert 0 < ball[2] - platform[2] < 1.0
    assert platform[2] == pytest.approx(scene.states[0, 2], abs=0.3)


@pytest.mark.slow
def test_the_chain_comes_to_rest_as_a_catenary() -> None:
    scene = scenes.build("chain")
    engine = started(scene, iterations=100)
    engine.step(5000)
    joints = chain.rest_joints()
    assert joints[-1, 0] - joints[0, 0] == pytest.approx(chain.span())
    assert np.linalg.norm(np.diff(joints, axis=0), axis=1) == pytest.approx(chain.LINK_LENGTH)
    found = engine.get_states()[:, :3]
    assert np.abs(found - (joints[1:] + joints[:-1]) / 2).max() < 0.02
    # The smooth catenary of the same span and length is close to the one of 40 rigid links.
    low, height = joints[:, 2].min(), joints[0, 2]
    length, sag = chain.LINK_LENGTH * chain.LINK_COUNT, height - low
    radius = (length**2 / 4 - sag**2) / (2 * sag)
    smooth = low + radius * (np.cosh(found[:, 0] / radius) - 1)
    assert np.abs(found[:, 2] - smooth).max() < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("size", [None, 41])
def test_the_plank_couples_two_standing_walls(size: int | None) -> None:
    scene = scenes.build("plank", size)
    engine = started(scene)
    engine.contacts(now=True)
    assert len(engine.contacts()) == 0
    engine.step(500)
    plank = scene.body_id("plank")
    below = touching(engine, plank)
    walls = np.sign(scene.states[:, 0])
    assert set(walls[below]) == {-1.0, 1.0}
    courses = scene.bodies.label.max() // 2
    assert {min(label, 2 * courses - label) for label in scene.bodies.label[below]} == {courses - 1}
    states = engine.get_states()
    assert np.abs(states[:, :2] - scene.states[:, :2]).max() < 0.02
    assert np.linalg.norm(states[:, 7:10], axis=1).max() < 0.05


def touching(engine: Engine, body: int) -> NDArray[np.int32]:
    pairs = engine.contacts().bodies
    pairs = pairs[(pairs == body).any(axis=1)]
    return pairs[pairs != body]
