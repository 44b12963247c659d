"""Workers on several machines, here hosts of this machine, without a cluster: the same bits wherever they are, who is
connected to whom, and failures."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import psutil
import pytest

from host_support import MachinesRuntime
from lapjoint import Box, Params, Simulation, Sphere, scenes
from lapjoint.errors import SimulationStopped, WorkerError
from lapjoint.workers.messages import Command
from lapjoint.workers.runtimes import base, fleet
from lapjoint.workers.runtimes.link import Link
from parallel_support import children, poll

pytestmark = pytest.mark.slow
LIMIT_S = 240.0
SIZES = {"bridge": 106, "pyramid": 6}


@pytest.fixture(autouse=True)
def _machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(base._RUNTIMES, "machines", "host_support:MachinesRuntime")


def simulate(name: str, **more: Any) -> Simulation:
    params: dict[str, Any] = {"workers": 3, "validate": True, "timestep": 0.01}
    return Simulation(scenes.build(name, SIZES[name]), Params.from_options(**{**params, **more}))


def runtime_of(simulation: Simulation) -> MachinesRuntime:
    assert isinstance(simulation._core.runtime, MachinesRuntime)
    return simulation._core.runtime


@pytest.mark.parametrize(
    ("name", "coupling", "cpu_counts", "is_shared"),
    [("bridge", "tight", (2, 1), True), ("pyramid", "tight", (1, 1, 1), False), ("bridge", "blend", (1, 2), True)],
)
def test_the_same_bits_and_a_connection_for_each_two_machines(
    name: str, coupling: str, cpu_counts: tuple[int, ...], is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listens any more; machines that are not used any longer are left, and leave nothing."""
    monkeypatch.setattr(MachinesRuntime, "cpu_counts", cpu_counts)
    monkeypatch.setattr(MachinesRuntime, "is_shared", is_shared)
    before = tcp_sockets()
    hashes = []
    for kind in ("inline", "machines"):
        with simulate(name, runtime=kind, coupling=coupling) as simulation:
            simulation.step(10)
            if kind == "machines":
                count = len(cpu_counts)
                assert [w.is_shared for w in runtime_of(simulation)._workers].count(True) == cpu_counts[0] * is_shared
                links = count + (count * (count - 1) // 2 if coupling == "tight" else 0)
                links += count - is_shared  # to the neighbours that keep copies
                assert tcp_sockets() == sorted(before + 2 * links * [psutil.CONN_ESTABLISHED])
            simulation.workers.set_count(1)
            simulation.step(2)
            simulation.workers.set_count(4)
            simulation.step(10)
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]
    assert poll(lambda: tcp_sockets() == before, LIMIT_S)
    assert children() == []


def test_what_is_asked_is_answered_as_on_one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What rays meet, what is nearest, and what is sensed, while bodies come, go and are set."""
    monkeypatch.setattr(MachinesRuntime, "cpu_counts", (1, 2))
    random = np.random.default_rng(0)
    origins, directions = random.uniform(-6, 6, (100, 3)), random.normal(size=(100, 3))
    for params in ({"coupling": "tight"}, {"coupling": "blend", "growth_depth": 1}):
        found = []
        for kind in ({"runtime": "inline"}, {"runtime": "machines"}):
            scene = scenes.build("bowl", 120)
            scene.add_sensor(Box((2, 2, 2)), (0, 0, 1))
            answers: list[Any] = []
            with Simulation(scene, Params.from_options(workers=3, **kind, **params)) as simulation:
                for turn in range(3):
                    if turn == 1:
                        simulation.bodies.add(Sphere(0.2), [(0, 0, 3), (1, 0, 3.5)])
                        simulation.bodies.remove([5, 40])
                        states = simulation.states_of([8])
                        states[:, 2] += 0.25
                        simulation.set_states([8], states)
                    hits = simulation.queries.cast_rays(origins, directions, all_hits=True)
                    near, inside = simulation.queries.closest_points(origins), simulation.queries.inside()
                    rows = [hits.ray, hits.body, hits.distance, near.body, near.distance, inside.sensor, inside.body]
                    answers += [np.asarray(row).tolist() for row in rows]
                    simulation.step(6)
                events = simulation.events.sensor_events
                assert len(events.step) > 0
                found.append([*answers, events.step.tolist(), events.pair.tolist(), simulation.state_hash])
        assert found[0] == found[1]


def tcp_sockets() -> list[str]:
    """States of this process's TCP sockets."""
    return sorted(link.status for link in psutil.Process().net_connections("tcp") if link.status != "TIME_WAIT")


def lose(simulation: Simulation, worker: int, number: signal.Signals) -> None:
    """In the next step, stop a worker before it has its command; while the others wait for it, send the signal."""
    runtime, step = simulation._core.runtime, simulation._core.runtime.step
    process = psutil.Process(runtime.process_ids[worker])  # type: ignore[attr-defined]

    def lost(commands: Sequence[Command | None], meanwhile: Callable[[], None] | None = None) -> Any:
        runtime.step = step  # type: ignore[method-assign]
        process.send_signal(signal.SIGSTOP)
        assert poll(lambda: process.status() == psutil.STATUS_STOPPED, LIMIT_S)

        def then() -> None:
            time.sleep(0.3)
            process.send_signal(number)
            if meanwhile is not None:
                meanwhile()

        return step(commands, then)

    runtime.step = lost  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("cpu_counts", "number"), [((2, 1), signal.SIGKILL), ((1, 2), signal.SIGSTOP)], ids=["dies", "hangs"]
)
def test_a_worker_lost_within_a_step(
    cpu_counts: tuple[int, ...], number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is replaced, all take the step again, and the rest is what it is with processes. Those that wait for it, here
    and elsewhere, are not taken for hanging."""
    monkeypatch.setattr(MachinesRuntime, "cpu_counts", cpu_counts)
    hashes = []
    for kind in ("process", "machines"):
        hang_limit = 5.0 if number == signal.SIGSTOP else 20.0
        with simulate("bridge", runtime=kind, coupling="tight", hang_limit=hang_limit) as simulation:
            simulation.step(2)
            for worker in range(3):
                simulation._core.runtime._limits.forget(worker)  # type: ignore[attr-defined]  # how slow the first step was
            simulation.step(1)
            old = list(simulation._core.runtime.process_ids)  # type: ignore[attr-defined]
            lose(simulation, 1, number)
            simulation.step(3)
            new = simulation._core.runtime.process_ids  # type: ignore[attr-defined]
            assert [(event.kind, event.worker) for event in simulation.incidents] == [
                ("gone" if number == signal.SIGKILL else "hung", 1)
            ]
            assert [a == b for a, b in zip(old, new, strict=True)] == [True, False, True]
            assert poll(lambda pid=old[1]: not psutil.pid_exists(pid), LIMIT_S)
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]


def test_a_machine_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """All its workers are replaced; the machine is used again, for it is still there."""
    monkeypatch.setattr(MachinesRuntime, "cpu_counts", (1, 2))
    with simulate("pyramid", runtime="machines", coupling="tight") as simulation:
        simulation.step(3)
        runtime = runtime_of(simulation)
        places = [worker.node.node_id for worker in runtime._workers]
        assert places == ["1", "0", "1"]
        lost = runtime._workers[0].host
        assert lost.link is not None
        lost.link._socket.shutdown(socket.SHUT_RDWR)  # as where the machine has lost its power
        simulation.step(3)
        assert [(event.kind, event.worker) for event in simulation.incidents] == [("gone", 0), ("gone", 2)]
        assert all("127.0.0.1: its host has left" in event.text for event in simulation.incidents)
        assert lost not in runtime._hosts
        assert [worker.node.node_id for worker in runtime._workers] == places
        assert simulation.step_count == 6
    assert children() == []


# ---- copies ----------------------------------------------------------------------------------------------------------


def cut_off(runtime: MachinesRuntime, node: str) -> None:
    """As where the machine has lost its power."""
    (host,) = [host for host in runtime._hosts if host.node.node_id == node]
    assert host.link is not None
    host.link._socket.shutdown(socket.SHUT_RDWR)


def on(simulation: Simulation, node: str) -> list[int]:
    """Workers on a machine."""
    return [worker.index for worker in runtime_of(simulation)._workers if worker.node.node_id == node]


@pytest.mark.parametrize(("coupling", "is_shared"), [("tight", False), ("tight", True), ("blend", False)])
def test_machines_lost_one_after_the_other_take_nothing_with_them(
    coupling: str, is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its neighbour has the states of its bodies, whoever that is by then, and no other machine's came to the server:
    what follows is what follows where processes are lost, of which the server has all states."""
    monkeypatch.setattr(MachinesRuntime, "cpu_counts", (1, 2, 1))
    monkeypatch.setattr(MachinesRuntime, "is_shared", is_shared)
    hashes, lost = [], []
    for kind in ("machines", "process"):
        with simulate("bridge", runtime=kind, coupling=coupling, workers=4, validate=False) as simulation:
            for turn, node in enumerate(("1", "2", "1")):
                simulation.step(4)
                if kind == "machines":
                    assert not runtime_of(simulation)._remote.is_complete
                    lost.append(on(simulation, node))
                    cut_off(runtime_of(simulation), node)
                else:
                    for worker in lost[turn]:
                        os.kill(simulation._core.runtime.process_ids[worker], signal.SIGKILL)  # type: ignore[attr-defined]
            simulation.step(4)
            assert [event.worker for event in simulation.incidents] == [worker for turn in lost for worker in turn]
            hashes.append(simulation.state_hash)
    assert all(lost)
    assert hashes[0] == hashes[1]


def test_two_machines_lost_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One kept the copies of the other: the run ends, and says what is missing."""
    monkeypatch.setattr(MachinesRuntime, "cpu_counts", (1, 1, 1))
    with simulate("pyramid", runtime="machines", coupling="tight", validate=False) as simulation:
        simulation.step(3)
        for node in ("1", "2"):
            cut_off(runtime_of(simulation), node)
        with pytest.raises(SimulationStopped, match=r"before the step are lost with 127\.0\.0\.1 and with the ma"):
            simulation.step()
    assert children() == []


def test_one_machine_alone_has_the_server_keep_its_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MachinesRuntime, "cpu_counts", (3,))
    monkeypatch.setattr(MachinesRuntime, "is_shared", False)
    with simulate("pyramid", runtime="machines", coupling="tight") as simulation:
        simulation.step(3)
        assert runtime_of(simulation)._remote.is_complete
        cut_off(runtime_of(simulation), "0")
        simulation.step()
        assert len(simulation.incidents) == 3


@pytest.mark.parametrize("fault", ["is cut", "hangs"])
def test_a_link_to_a_neighbour_that_fails(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it for long; another takes its place, with all that is there, before a machine is lost."""
    monkeypatch.setattr(MachinesRuntime, "cpu_counts", (1, 1, 1))
    send, faults = Link.send, []

    def faulty(link: Link, kind: str, *arguments: Any, **values: Any) -> None:
        if kind == "kept" and not faults:
            faults.append(fault)
            if fault == "is cut":
                link.shut_down()
            return
        send(link, kind, *arguments, **values)

    with simulate("pyramid", runtime="machines", coupling="tight", hang_limit=3.0) as simulation:
        simulation.step(3)
        for worker in range(3):
            runtime_of(simulation)._limits.forget(worker)  # how slow the first step was
        simulation.step(1)
        monkeypatch.setattr(Link, "send", faulty)
        simulation.step(2)
        assert faults == [fault]
        assert simulation.incidents == []
        runtime = runtime_of(simulation)
        assert not any(host.is_alone for host in runtime._hosts)
        assert not runtime._remote.keeps_all
        cut_off(runtime, "2")
        simulation.step(2)
        assert [event.kind for event in simulation.incidents] == ["gone"]


def test_a_machine_with_another_lapjoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "source_digest", lambda: "another")
    with pytest.raises(WorkerError, match=r"node 127\.0\.0\.1 has a lapjoint of the same version whose files differ"):
        simulate("pyramid", runtime="machines")
    assert children() == []


def test_an_interrupt_ends_all_workers() -> None:
    with simulate("pyramid", runtime="machines") as simulation:
        simulation.step()
        workers = [psutil.Process(pid) for pid in runtime_of(simulation).process_ids]

        def interrupt() -> None:
            signal.raise_signal(signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            simulation._core.runtime.step([None] * 3, interrupt)
        assert not any(worker.is_running() for worker in workers)
