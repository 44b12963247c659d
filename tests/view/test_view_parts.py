"""What a view decides, without a browser: picking, pulls, partitions by hand, access, colours."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial import ConvexHull as Hull

from lapjoint import (
    Ball,
    Box,
    Capsule,
    Compound,
    ConvexHull,
    Cylinder,
    LapjointError,
    Params,
    Part,
    Plane,
    Scene,
    Simulation,
    Sphere,
    TriangleMesh,
    scenes,
)
from lapjoint.arrays import rotation
from lapjoint.scene.shapes import MovingShape
from lapjoint.server.partition import read_partition
from lapjoint.view.draw.camera import Camera
from lapjoint.view.draw.colors import blend_colors
from lapjoint.view.page.access import COOKIE, Access, Request
from lapjoint.view.page.balls import Balls
from lapjoint.view.page.batch import TRIANGLES
from lapjoint.view.page.bodies import BodyNodes
from lapjoint.view.page.by_hand import Draft, interface_counts
from lapjoint.view.page.controls import Controls
from lapjoint.view.page.describe import body_text
from lapjoint.view.page.escape import escaped
from lapjoint.view.page.foreign_messages import log_in_one_line
from lapjoint.view.page.hands import Pull, Pulls, spring_forces
from lapjoint.view.page.overlays import graph_edges, joint_lines
from lapjoint.view.page.panels import errors_mm, worker_counts
from lapjoint.view.page.picking import Picker, in_rectangle, project
from lapjoint.view.page.snapshot import Snapshot, of_simulation
from lapjoint.view.page.tints import MODE_NAMES, Tints
from tight_runs import pids

Array = NDArray[np.float64]
HULL = np.random.default_rng(5).normal(size=(14, 3)) * [0.5, 0.3, 0.4]
SHAPES: list[MovingShape] = [
    Sphere(0.4),
    Box((0.5, 0.8, 0.3)),
    Cylinder(0.3, 0.9),
    Capsule(0.25, 0.6),
    ConvexHull(HULL),
    Compound((Part(Sphere(0.3), (0.5, 0.0, 0.0)), Part(Box((0.9, 0.2, 0.2)), (0.0, 0.1, 0.0)))),
]


def is_inside(shape: MovingShape, points: Array) -> NDArray[np.bool_]:
    """By another way than the rays take."""
    if isinstance(shape, Sphere):
        return np.linalg.norm(points, axis=1) <= shape.radius
    if isinstance(shape, Box):
        return (np.abs(points) <= np.asarray(shape.size) / 2).all(axis=1)
    if isinstance(shape, Cylinder):
        return (np.hypot(points[:, 0], points[:, 1]) <= shape.radius) & (np.abs(points[:, 2]) <= shape.length / 2)
    if isinstance(shape, Capsule):
        nearest = np.clip(points[:, 2], -shape.length / 2, shape.length / 2)
        return np.linalg.norm(points - nearest[:, None] * [0.0, 0.0, 1.0], axis=1) <= shape.radius
    if isinstance(shape, ConvexHull):
        planes = Hull(shape.points).equations
        return (points @ planes[:, :3].T + planes[:, 3] <= 0.0).all(axis=1)
    parts = [
        is_inside(part.shape, rotation.rotate(rotation.conjugate(part.quaternion), points - part.position))
        for part in shape.parts
    ]
    return np.any(parts, axis=0)


# ---- picking -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_a_ray_meets_a_body_where_its_shape_begins(shape: MovingShape) -> None:
    rng = np.random.default_rng(1)
    place, turn = np.array([1.0, -2.0, 3.0]), rotation.from_axis_angle([1.0, 2.0, 0.5], 0.7)
    scene = Scene("one")
    scene.add_body(shape, place, turn)
    picker, step, hits = Picker(scene), 2e-3, 0
    reach = np.arange(0.0, 4.0, step)
    for _ in range(60):
        eye = place + 2.0 * (direction := rng.normal(size=3)) / np.linalg.norm(direction)
        ahead = place + rng.normal(scale=0.35, size=3) - eye
        ahead /= np.linalg.norm(ahead)
        local = rotation.rotate(rotation.conjugate(turn), eye + reach[:, None] * ahead - place)
        inside = is_inside(shape, local)
        body, distance = picker.pick(scene.states, eye, 3.0 * ahead, alive=scene.alive)
        if inside.sum() > 2:
            assert body == 0
            assert distance == pytest.approx(reach[inside.argmax()], abs=1.5 * step)
            hits += 1
        elif not inside.any():
            assert body == -1 or distance < 4.0  # a graze between two samples
            assert body == -1 or np.abs(inside.sum()) == 0
    assert 10 < hits < 60


def test_the_nearest_of_many_bodies_is_picked_unless_a_static_body_hides_it() -> None:
    scene = Scene("row")
    scene.add_bodies(Sphere(0.2), [[x, 0.0, 1.0] for x in (3.0, 1.0, 2.0)])
    scene.add_static(Plane())

    def picked(start: list[float], ahead: list[float]) -> tuple[int, float]:
        return Picker(scene).pick(scene.states, start, ahead, alive=alive)

    alive = scene.alive
    assert picked([0, 0, 1], [1, 0, 0]) == (1, pytest.approx(0.8))
    assert picked([4, 0, 1], [-1, 0, 0])[0] == 0
    assert picked([1, 0, 3], [0, 0, -1])[0] == 1
    assert picked([1, 0, -3], [0, 0, 1])[0] == -1, "the ground is before it"
    assert picked([0, 0, 1], [-1, 0, 0])[0] == -1, "all are behind"
    alive[1] = False
    assert picked([0, 0, 1], [1, 0, 0])[0] == 2, "one that was removed is in nobody's way"
    assert picked([1, 0, 3], [0, 0, -1])[0] == -1
    alive[1] = True
    wall = np.array([[0.5, -1, 0], [0.5, 1, 0], [0.5, 1, 2], [0.5, -1, 2]])
    scene.add_static(TriangleMesh(wall, np.array([[0, 1, 2], [0, 2, 3]])))
    assert picked([0, 0, 1], [1, 0, 0])[0] == -1
    assert picked([0, 0, 4], [1, 0, -3])[0] == 1, "over the wall"


def test_projection_agrees_with_the_camera_of_pictures() -> None:
    camera = Camera((3.0, -5.0, 2.0), (0.3, 0.1, 0.6), fov=50.0)
    aspect = 1.7
    points = np.random.default_rng(3).normal(size=(40, 3))
    right, up, back = camera.axes()
    turn = rotation.from_matrix(np.stack([right, -up, -back], axis=1))
    screen, depth = project(points, camera.eye, turn, np.radians(camera.fov), aspect)
    homogeneous = np.concatenate([points, np.ones((40, 1))], axis=1)
    clip = homogeneous @ (camera.projection(aspect, 0.1, 100) @ camera.view(np.zeros(3))).T
    expected = clip[:, :2] / clip[:, 3:]
    np.testing.assert_allclose(screen, (expected * [1, -1] + 1) / 2, atol=1e-9)
    np.testing.assert_allclose(depth, clip[:, 3], atol=1e-9)
    low, high = np.array([0.4, 0.3]), np.array([0.6, 0.7])
    inside = ((screen > low) & (screen < high)).all(axis=1)
    assert 0 < inside.sum() < 40
    np.testing.assert_array_equal(in_rectangle(screen, depth, high, low), np.flatnonzero(inside))
    assert len(in_rectangle(screen, -depth, low, high)) == 0, "behind the camera"


# ---- pulls and balls ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_pulled_body_comes_to_the_target_and_rests_there() -> None:
    scene = Scene("free", gravity=(0, 0, 0), timestep=0.005)
    scene.add_body(Box((0.4, 0.2, 0.1)), (0.0, 0.0, 0.0))
    pulls, corner, target = Pulls(), np.array([0.2, 0.1, 0.05]), np.array([0.6, 0.9, 0.4])
    pulls.held = Pull.at(0, scene.states[0], corner)
    pulls.held.target = target
    with Simulation(scene, Params(runtime="inline")) as simulation:
        farthest = 0.0
        for _ in range(800):
            simulation.bodies.add_forces(*pulls.forces(scene, simulation.states, 0.005, 1.0))
            simulation.step()
            state = simulation.states[0]
            held = state[:3] + rotation.rotate(state[3:7], corner)
            farthest = max(farthest, float(np.linalg.norm(held - target)))
        assert np.linalg.norm(held - target) < 0.01
        assert farthest <= np.linalg.norm(corner - target) + 1e-6, "it never swings out farther than it began"


def test_a_pull_is_bounded_and_never_too_stiff_for_the_timestep() -> None:
    state = np.zeros((1, 13))
    state[0, 3] = 1.0
    force, torque = spring_forces(
        state, np.zeros((1, 3)), np.array([[1e9, 0, 0]]), np.array([2.0]), np.eye(3)[None], 0.002
    )
    assert np.linalg.norm(force) == pytest.approx(2.0 * 40 * 9.81)
    assert not torque.any()
    soft, _ = spring_forces(state, np.zeros((1, 3)), np.array([[0.01, 0, 0]]), np.array([2.0]), np.eye(3)[None], 0.5)
    assert 0 < soft[0, 0] < 2.0 * 0.01 / 0.5**2, "one step moves it by less than the whole way"


def test_pulls_stay_when_told_to_and_can_be_removed() -> None:
    pulls = Pulls()
    state = np.array([0.0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    for body in (4, 5, 5):
        pulls.held = Pull.at(body, state, (0, 0, 0))
        pulls.let_go(keep=True)
    pulls.held = Pull.at(6, state, (0, 0, 0))
    pulls.let_go(keep=False)
    assert [pull.body for pull in pulls.all()] == [4, 5, 5]
    assert pulls.remove(5) == 2
    pulls.held = Pull.at(6, state, (0, 0, 0))
    assert pulls.remove() == 2
    assert pulls.all() == []


def test_pulls_on_bodies_that_are_gone_end() -> None:
    pulls, state = Pulls(), np.array([0.0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    for body in (1, 2, 7):
        pulls.held = Pull.at(body, state, (0, 0, 0))
        pulls.let_go(keep=True)
    pulls.held = Pull.at(1, state, (0, 0, 0))
    pulls.keep(np.array([True, False, True]))
    assert [pull.body for pull in pulls.all()] == [2]


def thrown(params: Params) -> list[str]:
    """The hashes of a run in which balls are thrown between steps, two of them there at once."""
    scene = Scene("targets", gravity=(0, 0, 0))
    scene.add_bodies(Box((0.5, 0.5, 0.5)), [[0.0, 0.0, 0.0], [0.0, 5.0, 0.0]], labels=[0, 3])
    hashes = []
    with Simulation(scene, params) as simulation:
        balls = Balls(scene, 2)
        for k in range(4):
            assert balls.throw(simulation, (-3.0, 0.1 * k, 0.0), (2.0, 0.0, 0.0), 8.0) == 2 + k
            simulation.step(60)
            hashes.append(simulation.state_hash)
        assert simulation.alive.tolist() == [True, True, False, False, True, True]
        assert simulation.states[0, 7] > 0.1, "it was hit"
        assert simulation.states[1, 7] == 0.0
        assert simulation.scene.bodies.label[2:].tolist() == [4] * 4
        assert simulation.scene.bodies.mass[2] == pytest.approx(10 * simulation.scene.bodies.mass[0])
    return hashes


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_thrown_balls_are_bodies_and_wherever_workers_are_the_same_ones(workers: int) -> None:
    params = Params(workers=workers, runtime="inline", validate=True)
    hashes = thrown(params)
    assert thrown(replace(params, runtime="process")) == hashes


def test_balls_that_were_removed_by_others_are_not_removed_again() -> None:
    scene = Scene("empty")
    with Simulation(scene, Params(runtime="inline")) as simulation:
        balls = Balls(scene, 1)
        simulation.bodies.remove([balls.throw(simulation, (0, 0, 5), (1, 0, 0), 1.0)])
        balls.throw(simulation, (0, 0, 5), (1, 0, 0), 1.0)
        assert simulation.alive.tolist() == [False, True]
        simulation.restart()
        balls.restart()
        assert balls.throw(simulation, (0, 0, 5), (1, 0, 0), 1.0) == 0
        with pytest.raises(LapjointError, match="--balls is 0"):
            Balls(scene, 0).throw(simulation, (0, 0, 5), (1, 0, 0), 1.0)
        assert simulation.scene.body_count == 1


# ---- partition by hand -------------------------------------------------------------------------------------------


def test_bodies_are_given_taken_back_and_saved(tmp_path: Path) -> None:
    scene = scenes.build("chain")
    draft = Draft(np.zeros(scene.body_count), 3)
    assert draft.give([1, 2, 3], 2) == 3
    assert draft.give([3, 4], 2) == 1, "body 3 has that worker already"
    assert draft.give([2], 1) == 1
    alive = scene.alive
    assert draft.body_counts(alive).tolist() == [scene.body_count - 4, 1, 3]
    chain = np.array([[i, i + 1] for i in range(scene.body_count - 1)])
    assert interface_counts(draft.partition, chain, chain[:2]) == (4, 2)
    path = draft.save(tmp_path, "mine.txt")
    np.testing.assert_array_equal(read_partition(path, scene, 3), draft.partition)
    assert draft.undo()
    assert draft.undo()
    assert draft.body_counts(alive).tolist() == [scene.body_count - 3, 0, 3]
    assert draft.undo()
    assert not draft.undo()
    assert draft.body_counts(alive).tolist() == [scene.body_count, 0, 0]
    with pytest.raises(LapjointError, match="expected 0 to 2"):
        draft.give([0], 3)


def test_a_draft_follows_bodies_that_come_and_go(tmp_path: Path) -> None:
    draft = Draft([0, 0, 1], 2)
    draft.give([2], 0)
    draft.add([1, 0])
    assert draft.give([0, 3, 4], 1) == 2
    assert draft.partition.tolist() == [1, 0, 0, 1, 1]
    assert draft.body_counts(np.array([True, True, False, True, False])).tolist() == [1, 2]
    assert draft.replace([0, 1]) == 2, "what is not known of the others does not change"
    assert draft.save(tmp_path, "a.txt").read_text().split() == ["0", "1", "0"], "those that a run begins with"
    draft.restart()
    assert draft.partition.tolist() == [0, 1, 0]
    draft.add([1])
    for expected in ([1, 0, 0, 1], [0, 0, 0, 1], [0, 0, 1, 1]):
        assert draft.undo()
        assert draft.partition.tolist() == expected
    assert not draft.undo()


@pytest.mark.parametrize("name", ["../up.txt", "/etc/x.txt", "a/b.txt", "a\\b.txt", "x.py", ".txt", "", "a.txt\n"])
def test_only_plain_names_of_text_files_are_saved(tmp_path: Path, name: str) -> None:
    with pytest.raises(LapjointError, match="expected the name of a file"):
        Draft(np.zeros(2), 2).save(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


# ---- access ------------------------------------------------------------------------------------------------------


def request(target: str = "/", **headers: str) -> Request:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    parsed = Request.parse(f"GET {target} HTTP/1.1\r\n{lines}\r\n".encode())
    assert parsed is not None
    return parsed


def test_on_this_machine_no_token_is_needed_but_other_sites_are_refused() -> None:
    access = Access.of("localhost")
    assert access.token is None
    assert access.address(8080) == "http://localhost:8080"
    assert Access.of("127.0.0.1").token is None
    for host in ("localhost:8080", "127.0.0.1:9000", "[::1]:8080"):
        assert access.refusal(request(Host=host)) is None
        assert access.refusal(request(Host=host, Upgrade="websocket", Origin=f"http://{host}")) is None
    evil = request(Host="localhost:8080", Upgrade="websocket", Origin="http://evil.example")
    assert "another site" in str(access.refusal(evil))
    assert "this machine only" in str(access.refusal(request(Host="evil.example:8080")))


def test_beyond_this_machine_every_request_needs_the_token() -> None:
    access = Access.of("0.0.0.0")
    assert access.token is not None
    assert len(access.token) >= 30
    assert access.token in access.address(80)
    assert Access.of("0.0.0.0").token != access.token
    fine = {"Host": "box:80", "Origin": "http://box:80"}
    for given in ("", "wrong", access.token[:-1], "ä"):
        assert "token" in str(access.refusal(request(f"/?token={given}", **fine)))
        assert "token" in str(access.refusal(request("/", Cookie=f"{COOKIE}={given}", Upgrade="websocket", **fine)))
    assert access.refusal(request(f"/?token={access.token}", **fine)) is None
    with_cookie = {"Cookie": f"other=1; {COOKIE}={access.token}", "Upgrade": "websocket"}
    assert access.refusal(request("/", **with_cookie, **fine)) is None
    crossing = request("/", **with_cookie, Host="box:80", Origin="http://evil.example")
    assert "another site" in str(access.refusal(crossing))


def test_what_is_no_request_is_none() -> None:
    for head in (
        b"\x16\x03\x01hello",
        b"GET /\r\n\r\n",
        b"GET / SPDY/3\r\n\r\n",
        b"GET / HTTP/1.1\r\nnonsense\r\n\r\n",
    ):
        assert Request.parse(head) is None


def test_the_first_browser_holds_the_controls_and_the_next_one_inherits_them() -> None:
    controls = Controls()
    assert controls.join(0)
    assert not controls.join(1)
    assert not controls.join(2)
    assert controls.has(0)
    assert not controls.has(1)
    assert controls.watcher_count == 2
    assert controls.leave(1) is None, "it had none to leave"
    assert controls.leave(0) == 2
    assert controls.has(2)
    assert controls.leave(2) is None
    assert not controls.has(2)
    assert controls.join(7)


# ---- colours -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def moment() -> Snapshot:
    with Simulation(
        scenes.build("two-way-bridge", 200), Params(workers=3, runtime="inline", coupling="blend")
    ) as simulation:
        simulation.step(5)
        snapshot = of_simulation(simulation)
        np.testing.assert_allclose(np.maximum(snapshot.weights, 0), simulation.workers.weights(), atol=1e-12)
    return snapshot


def test_every_way_to_colour_gives_each_body_a_colour(moment: Snapshot) -> None:
    count = len(moment.states)
    tints = Tints(3)
    draft = (np.arange(count) * 3 // count).astype(np.int32)
    kinds = {}
    for mode in MODE_NAMES:
        colors = tints.colors(mode, moment, draft)
        assert colors.shape == (count, 3)
        assert ((colors >= 0) & (colors <= 1)).all()
        kinds[mode] = len(np.unique(colors, axis=0))
        legend = tints.legend(mode)
        assert legend.entries or legend.scale is not None
    assert kinds["label"] == len(np.unique(moment.scene.bodies.label))
    assert kinds["partition by hand"] == 3
    assert kinds["overlap"] >= 2
    assert min(kinds.values()) >= 2


def test_overlap_bodies_have_their_workers_colours_mixed_by_weight(moment: Snapshot) -> None:
    tints = Tints(3)
    colors = tints.colors("worker", moment, np.empty(0, np.int32))
    exact = blend_colors(np.maximum(moment.weights, 0))
    mixed = moment.is_member.sum(axis=1) > 1
    assert 0 < mixed.sum() < len(mixed)
    np.testing.assert_allclose(colors[~mixed], exact[~mixed], atol=0.01)
    assert np.abs(colors - exact).max() < 0.06, "weights are rounded before they are mixed"


# ---- bodies that come and go -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("coupling", ["blend", "tight"])
def test_whatever_is_shown_of_a_moment_leaves_out_what_was_removed(coupling: str) -> None:
    scene = scenes.build("chain")
    params = Params(workers=2, runtime="inline", coupling=coupling)
    with Simulation(scene, params) as simulation:
        simulation.step(5)
        simulation.bodies.remove([0, 7, *simulation.workers.overlap[:1]])
        ball = simulation.bodies.add_one(Sphere(0.3), (0.0, 0.0, 9.0), label=5, name="new")
        before = of_simulation(simulation)
        alive = simulation.alive.copy()
        other = simulation.bodies.add_one(Sphere(0.3), (0.0, 0.0, 12.0))
        simulation.joints.add_one(Ball(), ball, other, (0.0, 0.0, 10.5))
        simulation.step(2)
        simulation.bodies.remove([8])
        after = of_simulation(simulation)
    np.testing.assert_array_equal(before.alive, alive)
    for snapshot in (before, after):
        count = snapshot.scene.body_count
        assert len(snapshot.states) == len(snapshot.alive) == len(snapshot.weights) == count
        assert len(snapshot.joint_alive) == snapshot.scene.joint_count
        assert worker_counts(snapshot)[0].sum() >= snapshot.alive.sum()
        assert not snapshot.is_member[~snapshot.alive].any()
        assert snapshot.alive[graph_edges(snapshot)].all()
        assert len(joint_lines(snapshot)) >= snapshot.joint_alive.sum()
        assert errors_mm(snapshot)["joint gap"] < 50
        tints, draft = Tints(2), np.zeros(count, np.int32)
        for mode in MODE_NAMES:
            assert np.isfinite(tints.colors(mode, snapshot, draft)).all()
        tints.colors("label", snapshot, draft)
        assert "label 5" in [text for _, text in tints.legend("label").entries]
        for body in np.flatnonzero(snapshot.alive):
            assert body_text(snapshot, int(body)).startswith(f"**body {body}")
    assert (before.scene.body_count, after.scene.body_count) == (41, 42), "a snapshot stays as it was"
    assert not before.has(7)
    assert before.has(8)
    assert not after.has(8)
    assert not before.has(other)
    assert "holds no more" in body_text(after, 9)
    assert "ball to body 41" in body_text(after, ball)


class Node(SimpleNamespace):
    """What a page knows of a node of its browsers."""

    def on_drag(self, button: str) -> Callable[[Any], Any]:
        return partial(setattr, self, "drag")

    def remove_drag_callback(self) -> None:
        self.drag = None


class Nodes:
    """A server that browsers see nothing of."""

    def __init__(self) -> None:
        self.scene = self
        self.nodes: dict[str, Node] = {}

    def add_batched_meshes_simple(
        self, name: str, vertices: Array, faces: Array, turns: Array, places: Array, **rest: Any
    ) -> Node:
        assert name not in self.nodes
        self.nodes[name] = Node(vertices=vertices, faces=faces, batched_wxyzs=turns, batched_positions=places, **rest)
        return self.nodes[name]

    def shown(self) -> list[tuple[float, float]]:
        """Place and size along x of all bodies that can be seen."""
        found = []
        for node in self.nodes.values():
            lengths = {len(node.batched_positions), len(node.batched_wxyzs), len(node.batched_scales)}
            assert lengths == {len(node.batched_colors)}
            rows = zip(node.batched_positions[:, 0].tolist(), node.batched_scales[:, 0].tolist(), strict=True)
            found += [(place, round(size, 3)) for place, size in rows if size > 1e-3]
        return sorted(found)


def test_bodies_get_rows_of_a_batch_that_grows_and_give_them_back() -> None:
    server, scene = Nodes(), Scene("growing")
    nodes = BodyNodes(server, scene)  # type: ignore[arg-type]
    rooms, dragged = set(), []

    def update(alive: NDArray[np.bool_]) -> None:
        nodes.update(scene, alive, scene.states, np.full((len(alive), 3), 0.5))
        nodes.set_drag(dragged.append)  # type: ignore[arg-type]
        sizes = [scene.shapes[k].radius if k == 0 else 0.4 for k in scene.bodies.shape_id]  # type: ignore[union-attr]
        assert server.shown() == [(float(k), sizes[k]) for k in np.flatnonzero(alive)]

    for k in range(40):
        scene.add_body(Sphere(0.2), (k, 0, 0))
        update(scene.alive)
        rooms.add(len(server.nodes["/bodies/0"].batched_positions))
    assert sorted(rooms) == [1, 2, 4, 8, 16, 32, 64], "room doubles"
    assert nodes.body_of("/bodies/0", 17) == 17
    assert nodes.body_of("/bodies/0", 50) == nodes.body_of("/bodies/0", None) == nodes.body_of("/other", 0) == -1
    # Those that stay keep their rows, those that come get rows of those that are gone.
    alive = scene.alive
    alive[10:30] = False
    update(alive)
    assert nodes.body_of("/bodies/0", 17) == -1
    assert nodes.body_of("/bodies/0", 31) == 31
    scene.add_bodies(Sphere(0.2), [[k, 0, 0] for k in range(40, 80)])
    alive = np.concatenate([alive, np.ones(40, bool)])
    update(alive)
    assert len(server.nodes["/bodies/0"].batched_positions) == 64
    assert nodes.body_of("/bodies/0", 10) == 40
    assert nodes.body_of("/bodies/0", 31) == 31
    # A new shape is a node more; what is back, as where a recording is played from the start, has a row again.
    scene.add_body(Box((0.4, 0.4, 0.4)), (80, 0, 0))
    update(scene.alive)
    assert list(server.nodes) == ["/bodies/0", "/bodies/1"]
    assert nodes.surface_of(80)[1].tolist() == [0.4, 0.4, 0.4]
    assert all(node.drag is not None for node in server.nodes.values())
    # After a restart a number may be of another shape.
    nodes.clear()
    scene = Scene("restarted")
    scene.add_bodies([Sphere(0.2), Box((0.4, 0.4, 0.4))], [[0, 0, 0], [1, 0, 0]])
    update(scene.alive)
    assert nodes.surface_of(1)[1].tolist() == [0.4, 0.4, 0.4]
    nodes.set_drag(None)
    assert all(node.drag is None for node in server.nodes.values())


def test_a_batch_that_has_grown_large_is_drawn_coarser() -> None:
    server, scene = Nodes(), Scene("many")
    nodes = BodyNodes(server, scene)  # type: ignore[arg-type]
    faces = []
    for count in (1, 1800):
        scene.add_bodies(Sphere(0.2), np.zeros((count, 3)))
        nodes.update(scene, scene.alive, scene.states, np.ones((scene.body_count, 3)))
        faces.append(len(server.nodes["/bodies/0"].faces))
    assert faces[1] < faces[0]
    assert 1801 * faces[1] <= TRIANGLES


def test_a_page_goes_on_without_contacts_of_a_worker_that_is_gone() -> None:
    """The run ended with an error."""
    with Simulation(scenes.build("bowl", 60), Params(workers=2, coupling="tight")) as simulation:
        simulation.step(2)
        assert not all(reply.has_contacts for reply in simulation.replies)
        os.kill(pids(simulation)[1], signal.SIGKILL)
        assert of_simulation(simulation).contacts is None
        simulation.step()
        assert of_simulation(simulation).contacts is not None


# ---- texts -------------------------------------------------------------------------------------------------------


def test_text_of_others_has_no_markup() -> None:
    assert escaped("a name 7, äöü") == "a name 7\\, äöü"
    assert escaped("![x](http://h/a.png)") == "\\!\\[x\\]\\(http\\:\\/\\/h\\/a\\.png\\)"
    assert escaped("a\n\n# b\r\n<b>") == "a \\# b \\<b\\>", "one line"


def test_nobody_is_told_of_a_browser_that_leaves_while_it_is_written_to() -> None:
    """As viser would, once for each."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log_in_one_line()
        warnings.warn("Queued a GuiUpdateMessage on a closed connection (e.g. ...)", stacklevel=1)
