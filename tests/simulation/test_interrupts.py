"""Ctrl-C at any moment: the simulation goes on from a whole step, or says that it cannot. Callbacks, and threads."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from interrupt_support import interrupted
from lapjoint import LapjointError, Params, Recording, RecordingWriter, Simulation, Sphere, scenes
from parallel_support import children, finish

SCENE = scenes.build("bowl", 12)
KINDS = [("inline", "tight"), ("inline", "blend")]
SLOW_KINDS = [
    *KINDS,
    pytest.param("process", "tight", marks=pytest.mark.slow),
    pytest.param("process", "blend", marks=pytest.mark.slow),
]
CANNOT = "the simulation was broken off in the middle of step() and cannot go on, expected a new one, or restart()"


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    """Whatever happens, who interrupts these tests is heard."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def simulate(runtime: str = "inline", coupling: str = "tight", **more: Any) -> Simulation:
    return Simulation(SCENE, Params.from_options(workers=2, runtime=runtime, coupling=coupling, **more))


class Twin:
    """A run that is never interrupted."""

    def __init__(self, coupling: str = "tight") -> None:
        self._simulation = simulate("inline", coupling)
        self._hashes: list[str] = []

    def hash_after(self, steps: int) -> str:
        while len(self._hashes) <= steps:
            self._hashes.append(self._simulation.state_hash)
            self._simulation.step()
        return self._hashes[steps]


def during_steps(simulation: Simulation, action: Callable[[], object]) -> None:
    """Have this done in the middle of every step: where the workers are sent their commands."""
    step = simulation._core.runtime.step

    def act_and_step(*arguments: Any) -> Any:
        action()
        return step(*arguments)

    simulation._core.runtime.step = act_and_step  # type: ignore[method-assign]


def is_free(simulation: Simulation) -> bool:
    """Whether another thread can use it: none has left it in use."""
    return finish(simulation.step) is None


# ---- between two steps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("runtime", "coupling"), SLOW_KINDS)
def test_an_interrupt_at_any_moment_leaves_whole_steps(runtime: str, coupling: str) -> None:
    twin, event, count = Twin(coupling), 1, 0
    with simulate(runtime, coupling) as simulation:
        simulation.step(2)
        while (came := interrupted(lambda: simulation.step(2), event)) is not None:
            count += came
            assert simulation.state_hash == twin.hash_after(simulation.step_count), event
            event += max(1, event // 8)  # all of the first moments, and some of those after
        assert count > 20
        assert is_free(simulation)
        assert simulation.state_hash == twin.hash_after(simulation.step_count)
        assert simulation.incidents == []


def interrupt_after(seconds: float, action: Callable[[], object]) -> None:
    """By another process, as it were: the signal comes while this thread is in `action`, or begins it."""
    shot = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))

    def act() -> None:
        shot.start()
        action()

    with pytest.raises(KeyboardInterrupt):
        act()
    shot.join()


@pytest.mark.slow
@pytest.mark.parametrize(("runtime", "coupling"), [("process", "tight"), ("process", "blend"), ("inline", "tight")])
def test_interrupts_in_the_midst_of_many_steps(runtime: str, coupling: str) -> None:
    """As a user sends them, while the server waits for its workers or works itself."""
    twin = Twin(coupling)
    with simulate(runtime, coupling) as simulation:
        for after_s in (0.0, 0.003, 0.011, 0.017, 0.031):
            interrupt_after(after_s, lambda: simulation.step(10**6))
        interrupt_after(0.01, lambda: deque(simulation.frames(10**6, every=2), maxlen=1))
        simulation.step(3)
        assert simulation.state_hash == twin.hash_after(simulation.step_count)


def test_a_recording_goes_on_after_interrupts(tmp_path: Path) -> None:
    with simulate() as simulation, RecordingWriter(tmp_path / "r", simulation) as recording:
        states = {}
        for event in range(1, 120, 7):
            simulation.step()
            states[simulation.step_count] = simulation.states
            interrupted(lambda: recording.add(simulation), event)
    frames = list(Recording(tmp_path / "r"))
    assert len(frames) > 10
    for frame in frames:
        assert np.array_equal(frame.states, states[frame.step_count])


# ---- what cannot go on -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_second_interrupt_does_not_wait_for_a_worker_that_hangs() -> None:
    with simulate("process", hang_limit=600.0) as simulation:
        simulation.step(4)
        os.kill(simulation._core.runtime.process_ids[1], signal.SIGSTOP)  # type: ignore[attr-defined]

        def interrupt_twice() -> None:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGINT)

        shot = threading.Timer(0.2, interrupt_twice)
        shot.start()
        with pytest.raises(KeyboardInterrupt):
            simulation.step(100)
        shot.join()
        for use in (simulation.step, lambda: simulation.states, lambda: simulation.bodies.add_forces([0], [[0, 0, 1]])):
            with pytest.raises(LapjointError, match="cannot go on") as caught:
                use()
            assert str(caught.value).endswith(CANNOT)
        assert children() == []
        simulation.restart()
        simulation.step(5)
        assert simulation.state_hash == Twin().hash_after(5)


def test_an_error_in_the_middle_of_a_step_is_said() -> None:
    def wanted(step_count: int) -> bool:
        raise RuntimeError("my mistake")

    with simulate() as simulation:
        simulation.step()
        simulation.contacts_wanted.append(wanted)
        with pytest.raises(RuntimeError, match="my mistake"):
            simulation.step()
        with pytest.raises(LapjointError) as caught:
            simulation.step()
        assert str(caught.value) == f"step: {CANNOT}"


# ---- callbacks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_callback_that_raises_leaves_a_whole_step(kind: type[BaseException]) -> None:
    def fail(simulation: Simulation) -> None:
        if simulation.step_count == 3:
            raise kind

    with simulate() as simulation:
        simulation.on_step(fail)
        with pytest.raises(kind):
            simulation.step(9)
        assert simulation.step_count == 3
        simulation.step(2)
        assert simulation.state_hash == Twin().hash_after(5)
        assert is_free(simulation)


def test_an_interrupt_waits_for_callbacks_and_a_second_one_does_not() -> None:
    seen: list[int] = []

    def interrupt(simulation: Simulation) -> None:
        for _ in range(2 if simulation.step_count == 4 else 1):
            signal.raise_signal(signal.SIGINT)

    with simulate() as simulation:
        simulation.on_step(interrupt)
        simulation.on_step(lambda simulation: seen.append(simulation.step_count))
        for step_count in (1, 2, 3, 4, 5):
            with pytest.raises(KeyboardInterrupt):
                simulation.step(5)
            assert simulation.step_count == step_count
        assert seen == [1, 2, 3, 5]
        assert simulation.state_hash == Twin().hash_after(5)


# ---- done or not done ------------------------------------------------------------------------------------------------


def change_bodies(simulation: Simulation) -> None:
    simulation.bodies.add(Sphere(0.2), [[0, 0, 6], [1, 0, 6]])


def remove(simulation: Simulation) -> None:
    simulation.bodies.remove([2, 3])


CHANGES: list[Callable[[Simulation], None]] = [
    change_bodies,
    remove,
    lambda simulation: simulation.workers.set_count(3),
]


@pytest.mark.parametrize("coupling", ["tight", "blend"])
@pytest.mark.parametrize("change", CHANGES, ids=["add", "remove", "workers"])
def test_a_change_is_done_or_not_done(change: Callable[[Simulation], None], coupling: str) -> None:
    ends = []
    for is_done in (False, True):
        with simulate("inline", coupling) as simulation:
            simulation.step(2)
            if is_done:
                change(simulation)
            simulation.step(2)
            ends.append((simulation.state_hash, simulation.params.workers))
    event, found = 1, set()
    with simulate("inline", coupling) as simulation:
        while True:
            simulation.restart()
            simulation.step(2)
            if interrupted(lambda: change(simulation), event) is None:
                break
            simulation.step(2)
            found.add(ends.index((simulation.state_hash, simulation.params.workers)))
            event += max(1, event // 3)
    assert found == {0, 1}


@pytest.mark.parametrize("runtime", ["inline", pytest.param("process", marks=pytest.mark.slow)])
def test_a_restart_is_done_or_not_done(runtime: str) -> None:
    twin, event, found = Twin(), 1, set()
    with simulate(runtime) as simulation:
        simulation.step(3)
        while interrupted(simulation.restart, event) is not None:
            found.add(simulation.step_count)
            simulation.step(3 - simulation.step_count)
            assert simulation.state_hash == twin.hash_after(3)
            event += max(1, event // 2)
    assert found == {0, 3}


@pytest.mark.parametrize("runtime", ["inline", pytest.param("process", marks=pytest.mark.slow)])
def test_an_interrupted_start_leaves_nothing(runtime: str) -> None:
    scene, event, count = scenes.build("bowl", 12), 1, 0
    simulate("process").close() if runtime == "process" else None  # the fork server stays
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    made: list[Simulation] = []

    def start() -> None:
        made.append(Simulation(scene, Params(workers=2, runtime=runtime)))

    while (came := interrupted(start, event)) is not None:
        count += came
        if made:  # it came when the start was over
            made.pop().close()
        scene.set_states([0], scene.states[[0]])  # nothing is in motion
        assert children() == []
        event += max(1, event // 2)
    made.pop().close()
    gc.collect()
    assert count > 10
    assert before == 0 or len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("runtime", ["inline", pytest.param("process", marks=pytest.mark.slow)])
def test_an_interrupted_close_closes(runtime: str) -> None:
    event, is_over = 1, False
    while not is_over:
        simulation = simulate(runtime)
        is_over = interrupted(simulation.close, event) is None
        simulation.close()
        assert children() == []
        with pytest.raises(LapjointError, match="the simulation is closed"):
            simulation.step()
        event += max(1, event // 2)


# ---- handlers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGALRM])
def test_a_handler_of_the_user_is_called_at_once_and_stays(number: signal.Signals) -> None:
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(simulation.step_count)

    def fail(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    with simulate() as simulation:
        during_steps(simulation, lambda: signal.raise_signal(number))
        before = signal.signal(number, note)
        try:
            for _ in range(3):
                simulation.step()
            assert came == [0, 1, 2]
            assert signal.getsignal(number) is note
            signal.signal(number, fail)
            with pytest.raises(TimeoutError):
                simulation.step()
            assert signal.getsignal(number) is fail
            assert simulation.step_count == 4
        finally:
            signal.signal(number, before)


# ---- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("runtime", "coupling"), SLOW_KINDS)
def test_a_second_thread_is_refused_and_harms_nothing(runtime: str, coupling: str) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(simulation: Simulation) -> None:
        begun.set()
        go_on.wait(60)

    with simulate(runtime, coupling) as simulation:
        simulation.on_step(wait)
        thread = threading.Thread(target=lambda: simulation.step(3), name="first")
        thread.start()
        assert begun.wait(60)
        uses: dict[str, Callable[[], object]] = {
            "step": simulation.step,
            "state": simulation.state,
            "bodies.add_one": lambda: simulation.bodies.add_one(Sphere(0.2), (0, 0, 6)),
            "queries.cast_rays": lambda: simulation.queries.cast_rays([[0, 0, 9]], [[0, 0, -1]]),
            "close": simulation.close,
        }
        for name, use in uses.items():
            with pytest.raises(LapjointError) as caught:
                use()
            told = f"{name}: thread 'first' is using the simulation, expected one thread at a time"
            assert str(caught.value) == told
        assert simulation.step_count > 0, "what no worker is asked for can be read"
        assert len(simulation.states) == 12
        go_on.set()
        thread.join()
        simulation.step(2)
        assert simulation.state_hash == Twin(coupling).hash_after(5)


def test_nothing_is_done_about_signals_outside_the_main_thread() -> None:
    found: list[object] = []
    with simulate() as simulation:
        during_steps(simulation, lambda: found.append(signal.getsignal(signal.SIGINT)))
        assert finish(simulation.step) is None
        assert found == [signal.default_int_handler]
