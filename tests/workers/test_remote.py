"""Workers that share no memory with the server: what travels, and that it is enough. All without a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapjoint import Checkpoint, CheckpointWriter, Params, Plane, Scene, Simulation, Sphere, scenes
from lapjoint.arrays import rotation
from lapjoint.scene import STATE_SIZE
from lapjoint.scene.shared import SceneLayout, read_scene
from lapjoint.workers.codec import from_bytes, to_bytes
from lapjoint.workers.messages import AnswerPart, Command, StatePart, StepCommand, StepReply
from lapjoint.workers.runtimes import base
from lapjoint.workers.runtimes.copies import Copies
from lapjoint.workers.runtimes.placement import Node, place
from lapjoint.workers.runtimes.remote import RemoteStates
from lapjoint.workers.runtimes.remote_worker import RemoteSide, table
from lapjoint.workers.runtimes.shared import SharedMemory
from lapjoint.workers.runtimes.watch import Tracker, distances, limit_of, turn_reaches
from lapjoint.workers.worker import Worker


def scene_bytes(scene: Scene) -> np.ndarray:
    layout = SceneLayout(scene)
    memory = np.empty(layout.size, np.uint8)
    layout.write(memory)
    return memory


class Loopback:
    """Workers in this process that have nothing but the messages they are sent."""

    last: Loopback

    def __init__(self, scene: Scene, params: Params, worker_count: int, mail_room: int = 0) -> None:
        self.border_states = np.zeros((scene.body_count, STATE_SIZE))
        self.worker_states = np.zeros((scene.body_count * worker_count, STATE_SIZE))
        self.remote = RemoteStates(scene, params, self.border_states)
        self.wait_cpu_s = 0.0
        self.fetch_count = 0
        self.row_bytes = 0
        self.wire_bytes = 0
        self.made: list[Worker] = []
        self.workers = [self._start(scene, params, index) for index in range(worker_count)]
        Loopback.last = self

    def _start(self, scene: Scene, params: Params, index: int) -> RemoteSide:
        blocks = [SharedMemory(8 * STATE_SIZE * rows) for rows in (scene.body_count, 1)]
        own = read_scene(scene_bytes(scene))
        worker = Worker(index, own, params, *map(table, blocks))
        self.remote.set_worker(index, False)
        self.made.append(worker)
        return RemoteSide(worker, own, params, *blocks, Copies.empty())

    def answers(self, requests: Sequence[bytes]) -> list[bytes]:
        """Of every worker."""
        found = [to_bytes(w.answer(from_bytes(request))) for w, request in zip(self.workers, requests, strict=True)]
        for worker in self.made:
            worker.prepare()
        return found

    @property
    def byte_count(self) -> int:
        return self.remote.byte_count

    @property
    def states(self) -> np.ndarray:
        if not self.remote.is_complete:
            self.fetch()
        self.remote.want()
        return self.border_states

    def fetch(self) -> None:
        self.fetch_count += 1
        self.remote.take(self.answers(self.remote.ask()))

    def step(self, commands: Sequence[Command], meanwhile: Callable[[], None] | None = None) -> list[StepReply]:
        self.remote.byte_count = 0
        if self.remote.must_know_more(commands):
            self.fetch()
        requests = self.remote.pack(commands)
        answers = self.answers(requests)
        self.wire_bytes = sum(map(len, requests)) + sum(map(len, answers))
        self.row_bytes = sum(4 * from_bytes(answer).states.size for answer in answers)
        if meanwhile is not None:
            meanwhile()
        replies = self.remote.unpack(commands, answers, self.worker_states)
        if self.remote.needs_all:
            self.fetch()
        assert all(isinstance(reply, StepReply | StatePart | AnswerPart) for reply in replies), list(
            map(from_bytes, answers)
        )
        return replies  # type: ignore[return-value]

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(base._RUNTIMES, "loopback", f"{__name__}:Loopback")


CASES = [
    ("bowl", 200, 3, 100, {}),
    ("building", 200, 2, 60, {}),
    ("bridge", 106, 3, 60, {"growth_depth": 1}),
    ("chain-net", 100, 2, 20, {}),
]


def hashes(runtime: str, name: str, size: int, workers: int, steps: int, more: dict[str, Any]) -> list[str]:
    """Of the states at the end and, so that states are not asked for, of the contacts in between."""
    params = Params.from_options(workers=workers, runtime=runtime, timestep=0.005, coupling="blend", **more)
    with Simulation(scenes.build(name, size), params) as simulation:
        found = []
        for _ in range(steps):
            simulation.step()
            found.append(str(hash(simulation.workers.graph.contacts.tobytes())))
            found.append(str(hash(simulation.workers.membership.bits.tobytes())))
        return [*found, simulation.state_hash]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size", "workers", "steps", "more"), CASES, ids=[case[0] for case in CASES])
def test_the_same_bits_as_with_all_states_at_hand(
    name: str, size: int, workers: int, steps: int, more: dict[str, Any]
) -> None:
    case = (name, size, workers, steps, more)
    assert hashes("loopback", *case) == hashes("inline", *case)
    assert Loopback.last.fetch_count < steps / 4


def test_the_paper_s_detection_takes_all_states_with_every_step() -> None:
    case = ("bowl", 100, 2, 20, {"detect": "server"})
    assert hashes("loopback", *case) == hashes("inline", *case)


def test_only_the_border_travels() -> None:
    """A wide floor of balls at rest in two halves."""
    scene = Scene("floor", iterations=10)
    scene.add_static(Plane())
    places = [[x, y, 0.4999] for x in range(40) for y in range(10)]
    scene.add_bodies(Sphere(0.5), places)
    with Simulation(scene, Params(workers=2, runtime="loopback", partition="boxes", coupling="blend")) as simulation:
        simulation.step(5)
        full = 4 * STATE_SIZE * scene.body_count
        assert 0 < Loopback.last.row_bytes < full / 5
        few = simulation.profile.byte_count
        assert few == Loopback.last.wire_bytes
        assert Loopback.last.fetch_count == 0
        states = simulation.states
        assert Loopback.last.fetch_count == 1
        simulation.bodies.add_forces(0, [0.0, 0.0, 1e6])  # else all stay where they are, to the last bit
        simulation.step()
        assert simulation.profile.byte_count == Loopback.last.wire_bytes > few + 0.7 * full
        assert Loopback.last.row_bytes > 0.9 * full, "who looks at states will look again: they come with the step"
        assert not np.array_equal(simulation.states, states)
        assert Loopback.last.fetch_count == 1


def test_a_body_that_is_set_elsewhere_is_found_there() -> None:
    """It meets bodies of another worker that nobody has watched."""

    def contacts(runtime: str) -> list[str]:
        scene = Scene("row", iterations=10)
        scene.add_static(Plane())
        scene.add_bodies(Sphere(0.5), [[2 * x, 0, 0.4999] for x in range(20)])
        params = Params(workers=2, runtime=runtime, partition="boxes", coupling="blend")
        with Simulation(scene, params) as simulation:
            simulation.step(3)
            state = simulation.states[0].copy()
            state[:3] = [36.5, 0, 1.3]
            simulation.set_states([0], [state])
            simulation.step(30)
            return [simulation.state_hash, str(simulation.workers.overlap.tolist())]

    assert contacts("loopback") == contacts("inline")


def test_a_body_that_flies_through_many_others_in_a_step() -> None:
    def final(runtime: str) -> str:
        scene = Scene("shot", iterations=10)
        scene.add_static(Plane())
        scene.add_bodies(Sphere(0.5), [[2 * x, 0, 0.4999] for x in range(20)])
        scene.add_bodies(Sphere(0.5), [[-30, 0.3, 0.9]], linear_velocities=[300.0, 0, 0])
        params = Params(workers=2, runtime=runtime, partition="boxes", coupling="blend")
        with Simulation(scene, params) as simulation:
            simulation.step(60)
            return simulation.state_hash

    assert final("loopback") == final("inline")
    assert Loopback.last.fetch_count > 0


def test_a_worker_that_has_no_body_of_its_own_any_more() -> None:
    scene = Scene("two", iterations=10)
    scene.add_bodies(Sphere(0.5), [[0, 0, 0], [3, 0, 0]])
    loopback = Loopback(scene, Params(workers=1, runtime="loopback"), 1)
    both = np.arange(2, dtype=np.int32)
    loopback.border_states[:] = scene.states
    loopback.step([StepCommand(activate=both)])
    fallen = loopback.states.copy()
    assert (fallen[:, 2] < 0).all()
    loopback.step([StepCommand(deactivate=both)])  # states come with the step
    loopback.fetch()  # and when they are asked for
    assert np.array_equal(loopback.states, fallen)


# ---- parts -----------------------------------------------------------------------------------------------------------


def test_distances_are_those_of_the_farthest_point() -> None:
    rng = np.random.default_rng(1)
    scene = scenes.build("bridge", 106)
    reach = turn_reaches(scene)
    assert (reach > 0).any()
    before = scene.states.copy()
    after = before.copy()
    after[:, :3] += rng.normal(0, 0.1, (len(after), 3))
    after[:, 3:7] += rng.normal(0, 0.3, (len(after), 4))
    after[:, 3:7] /= np.linalg.norm(after[:, 3:7], axis=1)[:, None]
    after[::2, 3:7] *= -1  # the same rotation
    for _ in range(20):
        point = rng.normal(size=(len(after), 3))
        point *= (reach / np.linalg.norm(point, axis=1))[:, None]
        ends = [s[:, :3] + np.einsum("nij,nj->ni", rotation.to_matrix(s[:, 3:7]), point) for s in (before, after)]
        moved = np.linalg.norm(ends[1] - ends[0], axis=1)
        assert (moved <= distances(before[:, :7], after[:, :7], reach) + 1e-12).all()


def test_a_tracker_finds_bodies_once_they_have_left() -> None:
    scene = Scene("two")
    scene.add_bodies(Sphere(0.5), [[0, 0, 0], [5, 0, 0]])
    params = Params().resolved(scene)
    tracker, limit = Tracker(scene, params), limit_of(params)
    ids, states = np.array([0, 1], np.int32), scene.states.copy()
    assert tracker.moved(ids, states).tolist() == [0, 1], "the server knows nothing yet"
    tracker.known(ids, states)
    states[1, 0] += 0.9 * limit
    assert tracker.moved(ids, states).tolist() == []
    states[1, 0] += 0.2 * limit
    assert tracker.moved(ids, states).tolist() == [1]
    states[0, 0] = np.nan
    assert tracker.moved(ids, states).tolist() == [0, 1]


BIG, SMALL, HEAD = Node("big", "a", 8), Node("small", "b", 4), Node("head", "c", 4, is_server=True)


@pytest.mark.parametrize(
    ("count", "nodes", "taken", "expected"),
    [
        (4, [BIG, SMALL], [], {"big": 3, "small": 1}),
        (12, [BIG, SMALL], [], {"big": 8, "small": 4}),
        (24, [BIG, SMALL], [], {"big": 16, "small": 8}),
        (2, [BIG, SMALL], ["big", "big"], {"big": 1, "small": 1}),
        (2, [Node("none", "d", 0, is_server=True), SMALL], [], {"small": 2}),
    ],
)
def test_placement(count: int, nodes: list[Node], taken: list[str], expected: dict[str, int]) -> None:
    found = [node.node_id for node in place(count, nodes, taken)]
    assert {name: found.count(name) for name in set(found)} == expected


@pytest.mark.slow
@pytest.mark.parametrize("workers", [3, 2])
def test_a_resumed_run_knows_whom_to_watch(workers: int, tmp_path: Path) -> None:
    """Workers that took over an engine state were sent no activation; bodies still meet across the border."""

    def resumed(runtime: str) -> list[str]:
        params = Params(workers=3, runtime=runtime, timestep=0.005, validate=True, coupling="blend")
        with Simulation(scenes.build("bowl", 200), params) as simulation:
            simulation.step(60)
            checkpoint = Checkpoint(CheckpointWriter(tmp_path / runtime, simulation).save(simulation))
        with checkpoint.resume(workers=workers) as simulation:
            found = []
            for _ in range(60):
                simulation.step()
                found.append(str(hash(simulation.workers.graph.contacts.tobytes())))
            return [*found, simulation.state_hash]

    assert resumed("loopback") == resumed("inline")
