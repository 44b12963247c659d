"""What every runtime promises, on every runtime; and what happens to the process runtime when a worker dies."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from lapjoint import Failures, LapjointError, Params, Plane, Scene, Sphere, make_engine
from lapjoint.errors import WorkerError
from lapjoint.workers.messages import StepCommand, StepReply, StepTimes, WorkerFailure
from lapjoint.workers.runtimes import Runtime, answer_limits, make_runtime, runtime_names
from lapjoint.workers.runtimes.answer_limits import AnswerLimits
from lapjoint.workers.runtimes.child import Child
from lapjoint.workers.runtimes.process import ProcessRuntime
from parallel_support import children, finish, poll

Start = Callable[..., Runtime]

A, B, SHARED, RESTING = range(4)


def ids(*bodies: int) -> np.ndarray:
    return np.array(bodies, np.int32)


@pytest.fixture
def scene() -> Scene:
    """Three balls in the air, one on the ground."""
    scene = Scene("balls", iterations=10)
    scene.add_static(Plane())
    scene.add_bodies(Sphere(0.5), [[0, 0, 5], [3, 0, 5], [6, 0, 5], [9, 0, 0.499]], linear_velocities=[1.0, 0, 0])
    return scene


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[None]:
    """One for the whole module: to start one takes seconds."""
    pytest.importorskip("ray")
    from lapjoint.workers.runtimes.ray_cluster import join_cluster, leave_cluster

    join_cluster(None)
    yield
    leave_cluster()


def runtime_params() -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow if name == "ray" else ()) for name in runtime_names()]


@pytest.fixture(scope="module", params=runtime_params())  # one after the other: no cluster stands beside the others
def runtime_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "ray":
        request.getfixturevalue("ray_cluster")
    return name


@pytest.fixture
def start(runtime_name: str, scene: Scene) -> Iterator[Start]:
    """`start(worker_count)`: a runtime that holds the scene's states, closed after the test."""
    yield from starter(runtime_name, scene)


@pytest.fixture(params=["inline", "process"])
def start_here(request: pytest.FixtureRequest, scene: Scene) -> Iterator[Start]:
    """Without Ray: for what a worker does with its command, which is the same code everywhere."""
    yield from starter(request.param, scene)


@pytest.fixture
def start_processes(scene: Scene) -> Iterator[Start]:
    yield from starter("process", scene)


def starter(name: str, scene: Scene) -> Iterator[Start]:
    started: list[Runtime] = []

    def build(worker_count: int = 2) -> Runtime:
        started.append(make_runtime(scene, Params(runtime=name), worker_count))
        started[-1].states[:] = scene.states
        return started[-1]

    yield build
    for runtime in started:
        runtime.close()


@pytest.fixture
def fall(scene: Scene) -> Callable[[int], np.ndarray]:
    """States of all bodies after some steps of the plain engine."""

    def states(steps: int) -> np.ndarray:
        engine = make_engine(scene)
        engine.activate(np.arange(scene.body_count), scene.states)
        engine.step(steps)
        return engine.get_states()

    return states


# ---- every runtime ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_workers_start_empty(start: Start, scene: Scene) -> None:
    runtime = start()
    assert runtime.states.shape == (4, 13)
    assert runtime.worker_states.shape == (8, 13)
    replies = runtime.step([StepCommand(), StepCommand()])
    assert [len(reply.contacts.bodies) for reply in replies] == [0, 0]
    assert np.array_equal(runtime.states, scene.states)


@pytest.mark.slow
def test_a_worker_writes_the_rows_of_its_own_bodies(start: Start, scene: Scene, fall: Callable) -> None:
    runtime = start()
    replies = runtime.step([StepCommand(activate=ids(A)), StepCommand(activate=ids(B, RESTING))])
    assert all(isinstance(reply, StepReply) for reply in replies)
    assert np.array_equal(runtime.states[[A, B, RESTING]], fall(1)[[A, B, RESTING]])
    assert np.array_equal(runtime.states[SHARED], scene.states[SHARED])
    runtime.step([StepCommand(), StepCommand()])
    assert np.array_equal(runtime.states[[A, B, RESTING]], fall(2)[[A, B, RESTING]])


@pytest.mark.slow
def test_states_of_before_a_step_are_kept(start: Start, scene: Scene, fall: Callable) -> None:
    """Whatever the table has: it may be written while a worker is at work."""
    runtime = start()
    runtime.step([StepCommand(activate=ids(A), number=4), StepCommand(activate=ids(B, RESTING), number=4)])
    assert np.array_equal(runtime.states_before(0, ids(A)), scene.states[[A]])
    assert np.array_equal(runtime.states_before(1, ids(B, RESTING)), scene.states[[B, RESTING]])
    runtime.states[B] = scene.states[SHARED]
    runtime.step([StepCommand(number=5), StepCommand(reset=ids(B), number=5)])
    assert np.array_equal(runtime.states_before(0, ids(A)), fall(1)[[A]])
    assert np.array_equal(runtime.states_before(1, ids(B, RESTING)), [scene.states[SHARED], fall(1)[RESTING]])
    runtime.step([None, StepCommand(number=6)])
    assert np.array_equal(runtime.states_before(0, ids(A)), fall(1)[[A]])
    runtime.go_back(0, ids(A))
    assert np.array_equal(runtime.states[A], fall(1)[A])
    assert np.array_equal(runtime.states[RESTING], fall(3)[RESTING])


@pytest.mark.slow
def test_overlap_bodies_go_to_their_slots(start: Start, scene: Scene, fall: Callable) -> None:
    runtime = start()
    overlap = {"activate": ids(SHARED), "overlap": ids(SHARED)}
    runtime.step([StepCommand(**overlap, slot=ids(1)), StepCommand(**overlap, slot=ids(6))])
    after = fall(1)[SHARED]
    assert np.array_equal(runtime.worker_states[[1, 6]], [after, after])
    assert not runtime.worker_states[[0, 2, 3, 4, 5, 7]].any()
    assert np.array_equal(runtime.states[SHARED], scene.states[SHARED]), "its row is the server's"


@pytest.mark.slow
def test_reset_sets_back_to_the_table(start_here: Start, scene: Scene) -> None:
    runtime = start_here()
    runtime.step([StepCommand(activate=ids(A, B)), StepCommand()])
    runtime.states[[A, B], 2] = 50.0
    runtime.step([StepCommand(reset=ids(A)), StepCommand()])
    assert runtime.states[A, 2] == pytest.approx(50.0, abs=0.01)
    assert runtime.states[B, 2] == pytest.approx(5.0, abs=0.01), "without reset, the worker's own state goes on"


@pytest.mark.slow
def test_a_body_moves_from_worker_to_worker(start_here: Start, scene: Scene, fall: Callable) -> None:
    runtime = start_here()
    runtime.step([StepCommand(activate=ids(A, B)), StepCommand()])
    runtime.step([StepCommand(deactivate=ids(A)), StepCommand(activate=ids(A))])
    assert runtime.states[[A, B]] == pytest.approx(fall(2)[[A, B]], abs=1e-6)
    runtime.step([StepCommand(), StepCommand(deactivate=ids(A))])
    before = runtime.states[A].copy()
    runtime.step([StepCommand(), StepCommand()])
    assert np.array_equal(runtime.states[A], before), "nobody has it any more"


@pytest.mark.slow
def test_forces_last_one_step(start_here: Start, scene: Scene) -> None:
    runtime, mass = start_here(), scene.bodies.mass[A]
    push = StepCommand(activate=ids(A), force_ids=ids(A), forces=np.array([[0.0, mass * 100, 0.0, 0.0, 0.0, 0.0]]))
    for command in (push, StepCommand(), StepCommand()):
        runtime.step([command, StepCommand()])
        assert runtime.states[A, 8] == pytest.approx(100 * scene.timestep, rel=1e-5)


@pytest.mark.slow
def test_replies_have_contacts_and_measures(start: Start) -> None:
    runtime = start()
    empty, reply = runtime.step([StepCommand(activate=ids(A)), StepCommand(activate=ids(B, RESTING))])
    assert reply.contacts.bodies.tolist() == [[RESTING, -1]]
    assert reply.contacts.point_count.tolist() == [1]
    assert reply.contacts.depth == pytest.approx([0.001], abs=1e-5)
    assert len(empty.contacts.depth) == 0
    assert [reply.body_count, empty.body_count] == [2, 1]
    for each in (empty, reply):
        assert each.times.cpu_s > 0
        assert each.residual >= 0


@pytest.mark.slow
def test_an_exception_is_the_answer_of_its_worker_and_of_no_other(start: Start) -> None:
    runtime = start(3)
    runtime.step([StepCommand(activate=ids(A)), StepCommand(activate=ids(B)), StepCommand()])
    first, failure, last = runtime.step([StepCommand(), StepCommand(activate=ids(B)), StepCommand()])
    assert isinstance(first, StepReply)
    assert isinstance(last, StepReply)
    assert isinstance(failure, WorkerFailure)
    assert (failure.worker, failure.kind) == (1, "failed")
    assert failure.title.startswith("worker 1 failed:\nTraceback (most recent call last):")
    assert "worker.py" in failure.text
    assert failure.text.endswith("LapjointError: body 1 is already active")
    first, *rest = runtime.step([StepCommand(), StepCommand(), None])
    assert isinstance(first, StepReply), "the others go on"
    assert rest == [failure, None]


@pytest.mark.slow
def test_a_worker_without_a_command_does_not_step(start: Start, fall: Callable) -> None:
    runtime = start()
    runtime.step([StepCommand(activate=ids(A)), StepCommand(activate=ids(B))])
    assert runtime.step([None, None]) == [None, None]
    _, reply = runtime.step([None, StepCommand()])
    assert isinstance(reply, StepReply)
    assert np.array_equal(runtime.states[[A, B]], [fall(1)[A], fall(2)[B]])


@pytest.mark.slow
def test_states_that_are_not_finite_name_their_body(start_here: Start) -> None:
    runtime, push = start_here(), np.full((1, 6), 3e30)
    faster = StepCommand(activate=ids(A, B), force_ids=ids(B), forces=push)
    answers = runtime.step([StepCommand(activate=ids(RESTING)), faster])
    for _ in range(20):
        answers = runtime.step([StepCommand(), StepCommand(force_ids=ids(B), forces=push)])
        if not isinstance(answers[1], StepReply):
            break
    assert isinstance(answers[0], StepReply)
    assert isinstance(answers[1], WorkerFailure)
    assert answers[1].kind == "not finite"
    assert answers[1].body_ids == (B,)
    assert answers[1].title == "worker 1: body 1: not finite after the step"


@pytest.mark.slow
def test_a_replaced_worker_is_fresh_and_empty(start: Start, scene: Scene, fall: Callable) -> None:
    runtime = start()
    runtime.step([StepCommand(activate=ids(A, SHARED)), StepCommand(activate=ids(B))])
    runtime.step([StepCommand(activate=ids(A)), StepCommand()])
    runtime.replace(0)
    first, second = runtime.step([StepCommand(), StepCommand()])
    assert isinstance(first, StepReply)
    assert first.body_count == 0, "it has no bodies"
    assert isinstance(second, StepReply)
    runtime.states[A] = scene.states[A]
    runtime.step([StepCommand(activate=ids(A)), None])
    assert np.array_equal(runtime.states[[A, B]], [fall(1)[A], fall(3)[B]])


@pytest.mark.slow
def test_workers_come_and_go_at_the_end_of_the_list(start: Start, fall: Callable) -> None:
    runtime = start(2)
    runtime.step([StepCommand(activate=ids(A)), StepCommand(activate=ids(B))])
    runtime.set_worker_count(5)
    assert len(runtime.worker_states) >= 4 * 5
    # A worker of before writes where there was no room before.
    shared = StepCommand(activate=ids(SHARED), overlap=ids(SHARED), slot=ids(19))
    replies = runtime.step([shared, StepCommand(), StepCommand(), StepCommand(), StepCommand(activate=ids(RESTING))])
    assert [reply.body_count for reply in replies if isinstance(reply, StepReply)] == [2, 1, 0, 0, 1]
    assert np.array_equal(runtime.worker_states[19], fall(1)[SHARED])
    runtime.set_worker_count(1)
    assert len(runtime.step([StepCommand()])) == 1
    assert np.array_equal(runtime.states[[A, B]], [fall(3)[A], fall(2)[B]])
    runtime.set_worker_count(2)
    _, reply = runtime.step([None, StepCommand()])
    assert isinstance(reply, StepReply)
    assert reply.body_count == 0, "another worker than the one that went"


@pytest.mark.slow
def test_closing_twice_and_stepping_after(start: Start) -> None:
    runtime = start()
    runtime.step([StepCommand(activate=ids(A)), StepCommand()])
    runtime.close()
    runtime.close()
    assert children() == []
    assert np.isfinite(runtime.states).all(), "states outlive the workers"
    with pytest.raises(WorkerError, match="the workers have ended"):
        runtime.step([StepCommand(), StepCommand()])


@pytest.mark.slow
def test_a_worker_that_cannot_start(runtime_name: str, scene: Scene) -> None:
    params = Params(runtime=runtime_name, engine="no-such-engine")
    with pytest.raises(LapjointError, match="no engine named 'no-such-engine'"):
        make_runtime(scene, params, 2)
    assert children() == []


@pytest.mark.slow
def test_nothing_is_left_of_a_runtime_that_nobody_closed(runtime_name: str, scene: Scene) -> None:
    gc.collect()
    descriptors, blocks = psutil.Process().num_fds(), memory_block_count()
    runtime = make_runtime(scene, Params(runtime=runtime_name), 3)
    runtime.step([StepCommand()] * 3)
    del runtime
    gc.collect()
    assert children() == []
    assert memory_block_count() == blocks
    if runtime_name != "ray":  # which opens and closes connections of its own
        assert psutil.Process().num_fds() == descriptors


def memory_block_count() -> int:
    """Blocks of shared memory that this process has open."""
    links = Path("/proc/self/fd").iterdir() if Path("/proc/self/fd").is_dir() else iter(())
    count = 0
    for link in links:
        with suppress(OSError):
            count += "lapjoint" in os.path.basename(os.readlink(link))  # memfd:lapjoint, or its name of before
    return count


def test_an_unknown_runtime(scene: Scene) -> None:
    with pytest.raises(LapjointError, match="no runtime named 'cloud'; known runtimes: inline, process"):
        make_runtime(scene, Params(runtime="cloud"), 1)


# ---- when a worker process dies --------------------------------------------------------------------------------------


def pid_of(runtime: Runtime, worker: int) -> int:
    assert isinstance(runtime, ProcessRuntime)
    assert sorted(process.pid for process in children()) == sorted(runtime.process_ids)
    return runtime.process_ids[worker]


def answer_of(runtime: Runtime, worker: int, worker_count: int) -> StepReply | WorkerFailure | None:
    """Of a step of all workers; the others have taken it."""
    answers: list[StepReply | WorkerFailure | None] = []
    assert finish(lambda: answers.extend(runtime.step([StepCommand()] * worker_count))) is None
    assert all(isinstance(answer, StepReply) for index, answer in enumerate(answers) if index != worker)
    return answers[worker]


def killed(worker: int, pid: int, by: str = "SIGKILL") -> WorkerFailure:
    return WorkerFailure(worker, "gone", f"process {pid} was killed by {by}")


@pytest.mark.slow
def test_a_worker_that_died_while_idle_is_named_and_replaced(start_processes: Start) -> None:
    runtime = start_processes(3)
    pid = pid_of(runtime, 1)
    os.kill(pid, signal.SIGKILL)
    assert answer_of(runtime, 1, 3) == killed(1, pid)
    assert answer_of(runtime, 1, 3) == killed(1, pid), "until it is replaced"
    runtime.replace(1)
    assert isinstance(answer_of(runtime, 1, 3), StepReply)
    assert pid_of(runtime, 1) != pid
    assert len(children()) == 3


@pytest.mark.slow
def test_a_worker_that_dies_while_it_steps_is_named(start_processes: Start) -> None:
    runtime = start_processes(3)
    pid = pid_of(runtime, 2)
    os.kill(pid, signal.SIGSTOP)  # so that its step lasts until it dies
    killer = threading.Timer(0.5, os.kill, (pid, signal.SIGKILL))
    killer.start()
    assert answer_of(runtime, 2, 3) == killed(2, pid)
    killer.join()


@pytest.mark.slow
def test_a_worker_that_is_told_to_end_is_named(start_processes: Start) -> None:
    runtime = start_processes(2)
    pid = pid_of(runtime, 0)
    os.kill(pid, signal.SIGTERM)
    assert answer_of(runtime, 0, 2) == killed(0, pid, "SIGTERM")


@pytest.mark.slow
def test_a_worker_that_hangs_is_named_killed_and_replaced(scene: Scene) -> None:
    runtime = make_runtime(scene, Params(runtime="process", failures=Failures(hang_limit=3.0)), 3)
    try:
        assert finish(lambda: runtime.step([StepCommand()] * 3)) is None
        pid = pid_of(runtime, 1)
        os.kill(pid, signal.SIGSTOP)
        failure = answer_of(runtime, 1, 3)
        assert isinstance(failure, WorkerFailure)
        assert failure.kind == "hung"
        assert failure.text.startswith(f"process {pid} has not answered within ")
        assert not psutil.pid_exists(pid)
        runtime.replace(1)
        assert isinstance(answer_of(runtime, 1, 3), StepReply)
    finally:
        runtime.close()


def test_the_limit_follows_the_usual_time_between_bounds() -> None:
    limits = AnswerLimits(5.0, 0)
    assert limits.limit_s(0) == 60.0, "the first step activates everything"
    limits.note([StepReply(times=StepTimes(own_s=0.01))])
    assert limits.limit_s(0) == 5.0
    limits.note([StepReply(times=StepTimes(own_s=2.0)), WorkerFailure(1, "hung", ""), None])
    assert limits.limit_s(0) == 40.0
    assert limits.limit_s(1) == 60.0
    limits.note([StepReply(times=StepTimes(own_s=100.0))])
    assert limits.limit_s(0) == 60.0, "and no more"
    for _ in range(50):
        limits.note([StepReply(times=StepTimes(own_s=0.5))])
    assert limits.limit_s(0) == 10.0, "what is long ago is forgotten"
    limits.forget(0)
    assert limits.limit_s(0) == 60.0
    assert (limits.start_s, AnswerLimits(0.1, 0).start_s) == (60.0, 10.0)
    assert AnswerLimits(5.0, 1_000_000).limit_s(0) == AnswerLimits(5.0, 1_000_000).start_s == 360.0, (
        "large scenes take longer"
    )


@pytest.mark.slow
def test_a_worker_that_is_stopped_while_it_starts(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up as the hang limit says, and named."""
    monkeypatch.setattr(answer_limits, "START_LEAST_S", 1.0)
    begin = Child.__init__

    def stopped(child: Child, index: int, *arguments: Any) -> None:
        begin(child, index, *arguments)
        if index == 1:
            os.kill(child.pid, signal.SIGSTOP)

    monkeypatch.setattr(Child, "__init__", stopped)
    before = set(children())
    with pytest.raises(WorkerError, match=r"worker 1 .*has not answered within 1 s and was killed"):
        make_runtime(scene, Params(runtime="process", failures=Failures(hang_limit=0.05)), 2)
    assert poll(lambda: set(children()) <= before, 20.0)


@pytest.mark.slow
def test_a_worker_that_cannot_be_replaced(start_processes: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = start_processes(2)
    with monkeypatch.context() as patch:
        patch.setattr("sys.executable", "/no/such/python")
        with pytest.raises(WorkerError, match="worker 1 cannot be started: No such file or directory"):
            runtime.replace(1)
        with pytest.raises(WorkerError, match="worker 2 cannot be started"):
            runtime.set_worker_count(4)
    assert isinstance(answer_of(runtime, 1, 2), WorkerFailure)
    runtime.replace(1)
    assert isinstance(answer_of(runtime, 1, 2), StepReply)


@pytest.mark.slow
def test_a_worker_that_hangs_is_killed_at_close(start_processes: Start) -> None:
    runtime = start_processes(3)
    os.kill(pid_of(runtime, 0), signal.SIGSTOP)
    assert finish(runtime.close) is None
    assert children() == []


@pytest.mark.slow
def test_an_interrupt_ends_the_workers(start_processes: Start) -> None:
    """A step that was broken off cannot be gone on from: answers of it would be taken for those of the next."""
    runtime = start_processes(2)
    pid = pid_of(runtime, 1)
    os.kill(pid, signal.SIGSTOP)
    main = threading.main_thread().ident
    assert main is not None
    interrupt = threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT))
    rescue = threading.Timer(120.0, psutil.Process(pid).kill)  # a failure then, and no hang
    interrupt.start()
    rescue.start()
    with pytest.raises(KeyboardInterrupt):
        runtime.step([StepCommand(), StepCommand()])
    rescue.cancel()
    interrupt.join()
    rescue.join()
    assert children() == []
    with pytest.raises(WorkerError, match="the workers have ended"):
        runtime.step([StepCommand(), StepCommand()])


@pytest.mark.slow
def test_workers_end_by_themselves_when_the_server_lets_go(start_processes: Start) -> None:
    runtime = start_processes(2)
    assert isinstance(runtime, ProcessRuntime)
    workers = children()
    for child in runtime._children:  # as the kernel does when the server is killed
        child.link.close()
    assert len(workers) == 2
    assert poll(lambda: not children(), 60)
