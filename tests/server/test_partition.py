"""The first partition: every worker gets bodies, about as many, and what belongs together stays together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint import Ball, LapjointError, Scene, Sphere, scenes
from lapjoint.algorithms import Membership
from lapjoint.scene import WORLD
from lapjoint.server import partition as partition_module
from lapjoint.server.hilbert import cell_keys, hilbert_keys
from lapjoint.server.partition import (
    KINDS,
    make_partition,
    proximity_pairs,
    read_partition,
    repartition,
    write_partition,
)

every_kind = pytest.mark.parametrize("kind", KINDS)


def balls(places: object, labels: object = 0) -> Scene:
    scene = Scene("balls")
    scene.add_bodies(Sphere(0.5), np.asarray(places, float), labels=labels)  # type: ignore[arg-type]
    return scene


def row(count: int, labels: object = 0) -> Scene:
    """Balls beside each other along x."""
    return balls(np.arange(count)[:, None] * [1.05, 0.0, 0.0], labels)


def cut_count(scene: Scene, partition: np.ndarray) -> int:
    """Joints between bodies of different workers."""
    inner = scene.joints.body_b != WORLD
    return int((partition[scene.joints.body_a[inner]] != partition[scene.joints.body_b[inner]]).sum())


# ---- every kind ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@every_kind
@settings(max_examples=60)
@given(data=st.data(), count=st.integers(1, 60))
def test_every_worker_gets_bodies(kind: str, data: st.DataObject, count: int) -> None:
    worker_count = data.draw(st.integers(1, count) | st.just(count))
    labels = data.draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    spread = data.draw(st.sampled_from([0.0, 1.0, 5.0]))  # all in one place, in a heap, or far apart
    places = np.random.default_rng(count).uniform(-spread, spread, (count, 3))
    partition = make_partition(balls(places, labels), worker_count, kind)
    assert partition.dtype == np.int32
    assert partition.shape == (count,)
    assert np.unique(partition).tolist() == list(range(worker_count))


@every_kind
@pytest.mark.parametrize("name", ["bridge", "bowl", "chain", "plank", "building"])
@pytest.mark.parametrize("worker_count", [2, 3, 7])
def test_loads_are_even(kind: str, name: str, worker_count: int) -> None:
    scene = scenes.build(name, {"bowl": 400, "building": 300}.get(name))
    load = np.bincount(make_partition(scene, worker_count, kind), minlength=worker_count)
    # Labels give up some evenness to keep what has one label together: less than half a share on each side.
    allowed = {"labels": 2.0, "metis": 1.25}.get(kind, 1.0)
    share = scene.body_count / worker_count
    assert load.max() <= allowed * share + 1
    assert load.min() >= (2 - allowed) * share - 1


@every_kind
def test_the_same_every_time(kind: str) -> None:
    scene = scenes.build("bowl", 200)
    assert np.array_equal(make_partition(scene, 5, kind), make_partition(scene, 5, kind))


@every_kind
def test_one_worker_has_everything(kind: str) -> None:
    assert make_partition(row(3), 1, kind).tolist() == [0, 0, 0]
    assert make_partition(Scene("empty"), 1, kind).tolist() == []


@every_kind
def test_more_workers_than_bodies(kind: str) -> None:
    with pytest.raises(LapjointError, match="4 workers for 3 bodies: expected at most one per body"):
        make_partition(row(3), 4, kind)


# ---- one by one ------------------------------------------------------------------------------------------------------


def test_equal_divides_the_list() -> None:
    assert make_partition(row(7), 3, "equal").tolist() == [0, 0, 0, 1, 1, 2, 2]


def test_labels_are_kept_together() -> None:
    labels = [3, 3, 1, 1, 1, 0, 0, 2, 2, 2]
    assert make_partition(row(10, labels), 2, "labels").tolist() == [1, 1, 0, 0, 0, 0, 0, 1, 1, 1]
    assert make_partition(row(10, labels), 4, "labels").tolist() == [3, 3, 1, 1, 1, 0, 0, 2, 2, 2]


def test_labels_are_divided_where_there_are_too_few() -> None:
    assert np.bincount(make_partition(row(9, 5), 3, "labels")).tolist() == [3, 3, 3]
    assert np.bincount(make_partition(row(9, [0] * 8 + [1]), 3, "labels")).tolist() == [3, 3, 3]


def test_labels_of_a_bridge_cut_it_across() -> None:
    scene = scenes.build("bridge")
    partition = make_partition(scene, 4, "labels")
    x = scene.bodies.position[:, 0]
    for worker in range(3):
        assert x[partition == worker].mean() < x[partition == worker + 1].mean()
    assert cut_count(scene, partition) == 3 * 4, "an interface cut is four joints (Figure 6)"


def test_boxes_are_compact() -> None:
    places = np.stack(np.meshgrid(np.arange(8), np.arange(4), [0.0], indexing="ij"), axis=-1).reshape(-1, 3)
    partition = make_partition(balls(places), 4, "boxes")
    for worker in range(4):
        own = places[partition == worker]
        assert len(own) == 8
        assert np.ptp(own[:, 0]) == 1, "the long side is cut, and cut again"
        assert np.ptp(own[:, 1]) == 3


def test_metis_cuts_few_joints() -> None:
    scene = scenes.build("chain", 60)
    order = np.random.default_rng(0).permutation(60)
    mixed = Scene("mixed")  # the same chain, its links added in random order
    number = np.argsort(order)
    mixed.add_bodies(Sphere(0.1), scene.bodies.position[order])
    mixed.add_joints(Ball(), number[:-1], number[1:], scene.bodies.position[:-1])
    assert cut_count(mixed, make_partition(mixed, 4, "metis")) == 3
    assert cut_count(mixed, make_partition(mixed, 4, "equal")) > 20


def test_metis_keeps_joints_before_neighbours() -> None:
    # A ladder: rails of touching balls, rungs of joints. Between the rails lies the cheapest cut, but for the rungs.
    places = np.array([[1.05 * i, y, 0.0] for y in (0.0, 5.0) for i in range(10)])
    scene = balls(places)
    assert len(np.unique(make_partition(scene, 2, "metis")[:10])) == 1
    scene.add_joints(Ball(), np.arange(10), np.arange(10, 20), places[:10] + [0.0, 2.5, 0.0])
    assert cut_count(scene, make_partition(scene, 2, "metis")) == 0


def test_proximity_pairs() -> None:
    scene = balls([[0, 0, 0], [1.05, 0, 0], [3, 0, 0], [1.05, 1, 0]])
    pairs = proximity_pairs(scene, scene.bodies.position, np.arange(scene.body_count, dtype=np.int32))
    assert sorted(sorted(pair) for pair in pairs.tolist()) == [[0, 1], [1, 3]]
    single = balls([[0, 0, 0]])
    assert proximity_pairs(single, single.bodies.position, np.zeros(1, np.int32)).shape == (0, 2)


def test_auto_takes_labels_where_there_are_some() -> None:
    plain, labelled = row(12), row(12, np.arange(12)[::-1] // 2)
    assert np.array_equal(make_partition(plain, 3), make_partition(plain, 3, "metis"))
    assert np.array_equal(make_partition(labelled, 3), make_partition(labelled, 3, "labels"))
    assert make_partition(labelled, 3).tolist() == [2] * 4 + [1] * 4 + [0] * 4


# ---- files -----------------------------------------------------------------------------------------------------------


def test_file_round_trip(tmp_path: Path) -> None:
    scene, path = row(6), tmp_path / "mine"
    given_partition = np.array([2, 0, 1, 1, 0, 2], np.int32)
    write_partition(path, given_partition)
    assert path.read_text() == "2\n0\n1\n1\n0\n2\n"
    assert np.array_equal(read_partition(path, scene, 3), given_partition)
    assert np.array_equal(make_partition(scene, 3, str(path)), given_partition)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\n1\n", "2 numbers for 3 bodies, expected one per body"),
        ("", "0 numbers for 3 bodies"),
        ("0\n1\n2\n", "body 2 goes to worker '2', expected 0 to 1"),
        ("0\n-1\n1\n", "body 1 goes to worker '-1', expected 0 to 1"),
        ("0\none\n1\n", "body 1 goes to worker 'one'"),
        ("0\n1.0\n1\n", "body 1 goes to worker '1.0'"),
        ("0\n\u00b2\n1\n", "body 1 goes to worker '\u00b2'"),
        ("0\n99999999999999999999\n1\n", "body 1 goes to worker '99999999999999999999'"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "partition.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(LapjointError, match=f"partition.txt: {message}"):
        make_partition(row(3), 2, str(path))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(LapjointError, match=r"none\.txt: there is no such file"):
        make_partition(row(3), 2, str(tmp_path / "none.txt"))
    with pytest.raises(LapjointError, match="is a directory"):
        make_partition(row(3), 2, str(tmp_path))
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LapjointError, match="binary: "):
        make_partition(row(3), 2, str(binary))


def test_an_unknown_kind() -> None:
    with pytest.raises(
        LapjointError, match="no partition named 'thirds'; known: auto, labels, metis, curve, boxes, equal, or a"
    ):
        make_partition(row(3), 2, "thirds")


def test_a_file_for_another_number_of_workers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "two.txt"
    write_partition(path, np.array([0, 1, 0, 1], np.int32))
    with pytest.raises(LapjointError, match=r"two.txt: is a partition for 2 workers, but workers is 4, expected 2"):
        make_partition(row(4), 4, str(path))
    assert make_partition(row(4), 1, str(path)).tolist() == [0] * 4, "one worker has all bodies, whoever had them"


def test_a_kind_that_is_none_names_the_nearest() -> None:
    with pytest.raises(LapjointError, match=r"no partition named 'label' \(did you mean 'labels'\?\)"):
        make_partition(row(3), 2, "label")


# ---- Hilbert's curve -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_the_curve_goes_from_each_cell_to_one_beside_it(bits: int) -> None:
    cells = np.stack(np.meshgrid(*[np.arange(1 << bits)] * 3, indexing="ij"), axis=-1).reshape(-1, 3).astype(np.uint32)
    keys = cell_keys(cells, bits)
    assert np.array_equal(np.sort(keys), np.arange(len(cells)))
    way = cells[np.argsort(keys)].astype(int)
    assert (np.abs(np.diff(way, axis=0)).sum(axis=1) == 1).all()
    assert way[0].tolist() == [0, 0, 0]


def test_the_curve_is_taken_where_metis_is_not_there_or_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """At first, and when a scene is repartitioned: then by loads, and for slower workers less."""
    scene = balls(np.random.default_rng(0).uniform(0, 10, (300, 3)))
    along = make_partition(scene, 3, "curve")
    assert not np.array_equal(make_partition(scene, 3), along)
    monkeypatch.setattr(partition_module, "MOST_FOR_METIS", 200)
    assert np.array_equal(make_partition(scene, 3), along)
    monkeypatch.undo()
    monkeypatch.setattr(partition_module, "find_spec", lambda name: None)
    assert np.array_equal(make_partition(scene, 3), along)
    with pytest.raises(LapjointError, match="partition metis needs the package pymetis, which is not installed"):
        make_partition(scene, 3, "metis")
    membership = Membership(along, 3)
    membership.set_costs(1 + 9 * (scene.bodies.position[:, 0] > 5), [1, 1, 2])
    again = repartition(scene, scene.states, np.empty((0, 2), np.int32), membership)
    loads = np.bincount(again, membership.cost)
    assert np.allclose(loads / loads.sum(), [0.4, 0.4, 0.2], atol=0.02)
    first = np.argmin(hilbert_keys(scene.bodies.position))
    membership.set_costs(np.where(np.arange(300) == first, 1 << 20, 1))  # more than any share: so they count alike
    assert np.bincount(repartition(scene, scene.states, np.empty((0, 2), np.int32), membership)).tolist() == [100] * 3
