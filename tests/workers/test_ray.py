"""The Ray runtime on this machine: the same bits, failures, and that nothing is left behind."""

from __future__ import annotations

import ipaddress
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest

from lapjoint import (
    Checkpoint,
    CheckpointWriter,
    Failures,
    LapjointError,
    Params,
    Plane,
    Scene,
    Simulation,
    Sphere,
    scenes,
)
from lapjoint.workers.messages import StepCommand, StepReply, WorkerFailure
from lapjoint.workers.runtimes import make_runtime
from parallel_support import finish, poll, worker_processes
from ray_support import LIMIT_S, gone, ray_processes

pytest.importorskip("ray")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One for all tests that start their workers here."""
    from lapjoint.workers.runtimes.ray_cluster import join_cluster, leave_cluster

    join_cluster(None)
    yield
    leave_cluster()


@pytest.fixture
def runtime(cluster: None) -> Iterator[object]:
    scene = Scene("balls", iterations=10)
    scene.add_static(Plane())
    scene.add_bodies(Sphere(0.5), [[0, 0, 5], [3, 0, 5], [6, 0, 5], [9, 0, 0.499]], linear_velocities=[1.0, 0, 0])
    made = make_runtime(scene, Params(runtime="ray", failures=Failures(hang_limit=6.0)).resolved(scene), 3)
    made.states[:] = scene.states
    yield made
    made.close()


def ids(*bodies: int) -> np.ndarray:
    return np.array(bodies, np.int32)


def test_a_checkpoint_goes_on_bit_for_bit_as_actors_and_back(cluster: None, tmp_path: Path) -> None:
    """Of a wall that leans on itself from the first step on, so that contacts go with it."""
    scene = scenes.build("pyramid", 6)
    with Simulation(scene, Params(workers=3, runtime="inline", timestep=0.005)) as whole:
        whole.step(30)
        wanted = whole.state_hash
    with Simulation(scene, Params(workers=3, runtime="inline", timestep=0.005)) as first:
        first.step(10)
        CheckpointWriter(tmp_path / "first", first).save(first)
    with Checkpoint(tmp_path / "first").resume(runtime="ray") as second:
        second.step(10)
        CheckpointWriter(tmp_path / "second", second).save(second)
    with Checkpoint(tmp_path / "second").resume(runtime="inline") as third:
        third.step(10)
        assert third.state_hash == wanted


def test_the_same_bits_as_in_one_process(cluster: None) -> None:
    """That processes have them too: test_simulation.py; several machines: test_hosts.py, test_ray_nodes.py."""
    for coupling in ("blend", "tight"):
        found = []
        for kind in ("inline", "ray"):
            growth = {"growth_depth": 1} if coupling == "blend" else {}
            params = Params.from_options(workers=3, runtime=kind, timestep=0.005, coupling=coupling, **growth)
            with Simulation(scenes.build("bridge", 106), params) as simulation:
                simulation.step(20)
                found.append(simulation.state_hash)
                if kind == "ray":
                    assert [worker.is_shared for worker in simulation._core.runtime._workers] == [True] * 3  # type: ignore[attr-defined]
        assert len(set(found)) == 1, (coupling, found)


def test_a_worker_and_a_host_that_die(runtime: object) -> None:
    """The others take the step, what is gone is replaced, and all go on. That a worker hangs: test_hosts.py."""
    commands = [StepCommand(activate=ids(w)) for w in range(3)]
    runtime.step(commands)  # type: ignore[attr-defined]
    first = runtime.states.copy()  # type: ignore[attr-defined]
    pid = runtime.process_ids[1]  # type: ignore[attr-defined]
    os.kill(pid, signal.SIGKILL)
    answers: list[object] = []
    assert finish(lambda: answers.extend(runtime.step([StepCommand()] * 3)), LIMIT_S) is None  # type: ignore[attr-defined]
    assert [type(answer) for answer in answers] == [StepReply, WorkerFailure, StepReply]
    address = runtime._workers[1].node.address  # type: ignore[attr-defined]
    assert answers[1] == WorkerFailure(1, "gone", f"process {pid} was killed by SIGKILL, on {address}")
    states = runtime.states  # type: ignore[attr-defined]
    assert (states[[0, 2], 2] < first[[0, 2], 2]).all(), "the others have taken the step, once"
    runtime.replace(1)  # type: ignore[attr-defined]
    answers = runtime.step([StepCommand(), StepCommand(activate=ids(1)), StepCommand()])  # type: ignore[attr-defined]
    assert [type(answer) for answer in answers] == [StepReply] * 3
    (host,) = runtime._hosts  # type: ignore[attr-defined]
    workers = [psutil.Process(pid) for pid in runtime.process_ids]  # type: ignore[attr-defined]
    os.kill(host.pid, signal.SIGKILL)
    answers = []
    assert finish(lambda: answers.extend(runtime.step([StepCommand()] * 3)), LIMIT_S) is None  # type: ignore[attr-defined]
    assert [getattr(answer, "kind", None) for answer in answers] == ["gone"] * 3
    assert poll(lambda: not any(worker.is_running() for worker in workers), LIMIT_S), "workers end with their host"
    for worker in range(3):
        runtime.replace(worker)  # type: ignore[attr-defined]
    answers = runtime.step(commands)  # type: ignore[attr-defined]
    assert [type(answer) for answer in answers] == [StepReply] * 3


def test_another_address_while_a_cluster_is_in_use(cluster: None) -> None:
    params = Params(runtime="ray", address="192.0.2.7:1")
    with pytest.raises(LapjointError, match=r"address is 192\.0\.2\.7:1, but this program uses another Ray cluster"):
        make_runtime(scenes.build("bowl", 60), params, 1)


def test_an_address_is_for_ray() -> None:
    with pytest.raises(LapjointError, match="address is 'host:1', but the runtime is process, expected ray"):
        Params(address="host:1")


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches it; IPv4 addresses may be written as those of IPv6."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return found.is_loopback


def listening(process: psutil.Process) -> Iterator[tuple[str, int]]:
    """Where it takes TCP connections."""
    for one in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            for connection in one.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN:
                    yield connection.laddr


def test_all_of_it_listens_on_loopback(cluster: None) -> None:
    with Simulation(scenes.build("bowl", 60), Params(workers=2, runtime="ray")) as simulation:
        simulation.step(3)
        found = list(listening(psutil.Process()))
    assert len(found) >= 6, "the server, the workers, the raylet's two, the GCS and an agent"
    assert [address for address in found if not is_loopback(address[0])] == []


# ---- the end of programs ---------------------------------------------------------------------------------------------

PROGRAM = """
import sys
from lapjoint import Params, Simulation, scenes
simulation = Simulation(scenes.build("bowl", 60), Params(workers=2, runtime="ray"))
simulation.step(3)
print("ready", flush=True)
sys.stdin.readline()
simulation.step(3)
"""


def folder_of(pid: int) -> str:
    return f"/tmp/lapjoint-ray-{pid}"


def test_programs_leave_nothing_behind() -> None:
    """One ends without closing anything, one is killed; the next start clears up what that one could not."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for _ in range(2)
    ]
    ends, dies = started
    home_before = Path.home().joinpath(".ray").exists()
    try:
        for process in (dies, ends):
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate()[1]
            assert len(ray_processes(folder_of(process.pid))) > 1
        dies.kill()
        dies.wait()
        assert gone(folder_of(dies.pid), LIMIT_S), ray_processes(folder_of(dies.pid))
        _, errors = ends.communicate("\n", timeout=LIMIT_S)
        assert (ends.returncode, errors) == (0, "")
        assert gone(folder_of(ends.pid), LIMIT_S)
        assert not Path(folder_of(ends.pid)).exists()
        assert Path.home().joinpath(".ray").exists() == home_before, "no token in the home directory"
    finally:
        for process in started:
            process.kill()
            process.communicate()
    from lapjoint.workers.runtimes.ray_remains import remove_remains

    remove_remains()
    assert not Path(folder_of(dies.pid)).exists()


def test_an_interrupted_command_line() -> None:
    program = Path(sys.executable).with_name("lapjoint")
    arguments = ["run", "bowl", "--size", "200", "--workers", "2", "--runtime", "ray", "--steps", "100000"]
    process = subprocess.Popen(
        [str(program), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    try:
        folder = folder_of(process.pid)
        assert poll(lambda: worker_processes(process.pid), LIMIT_S)
        os.killpg(process.pid, signal.SIGINT)  # as the terminal does: to all of its process group
        output, errors = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 130, errors
        assert "Traceback" not in output + errors
        assert gone(folder, LIMIT_S)
        assert not Path(folder).exists()
    finally:
        process.kill()
        process.communicate()
