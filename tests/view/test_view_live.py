"""A live view and its clients, without a browser: a client here is a socket that speaks the browser's protocol."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import numpy as np
import pytest
import viser
import websockets.sync.client
from viser import _messages

from lapjoint import Params, scenes
from lapjoint.view.draw.snapshot import Snapshot
from lapjoint.view.page.live import LiveView
from view_support import LIMIT_S, live_view, wait_until

CAMERA = _messages.ViewerCameraMessage(
    wxyz=(1.0, 0.0, 0.0, 0.0),
    position=(0.0, -9.0, 3.0),
    fov=0.8,
    near=0.1,
    far=100.0,
    image_height=600,
    image_width=900,
    look_at=(0.0, 0.0, 0.0),
    up_direction=(0.0, 0.0, 1.0),
)


@contextmanager
def client(view: LiveView) -> Iterator[websockets.sync.client.ClientConnection]:
    """A client of the view that reads nothing unless told to."""
    before = view.page.visitor_count
    with websockets.sync.client.connect(
        f"ws://localhost:{view.page.port}/",
        subprotocols=[websockets.Subprotocol(f"viser-v{viser.__version__}")],
        open_timeout=LIMIT_S,
        close_timeout=1,
        max_size=None,
        proxy=None,
    ) as socket:
        socket.send(msgspec.msgpack.encode(CAMERA.as_serializable_dict([])))
        wait_until(lambda: view.page.visitor_count == before + 1, "the client is known")
        yield socket


@pytest.fixture(scope="module")
def view() -> Iterator[LiveView]:
    with live_view(scenes.build("chain"), Params(workers=2, runtime="inline", coupling="blend")) as shown:
        shown.speed = None
        yield shown


def test_without_clients_nothing_is_copied_and_the_simulation_runs(view: LiveView) -> None:
    painted, start = view.page.painted_count, view.simulation.step_count
    wait_until(lambda: view.simulation.step_count > start + 100, "steps")
    assert view.page.painted_count <= painted + 1


@pytest.mark.slow
def test_the_simulation_does_not_wait_for_a_page_that_is_stuck(view: LiveView, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, go_on = threading.Event(), threading.Event()
    paint = view.page._paint

    def wait_first(snapshot: Snapshot) -> None:
        stuck.set()
        assert go_on.wait(LIMIT_S)
        paint(snapshot)

    with client(view):
        wait_until(lambda: view.page.snapshot.step_count > 0, "frames")
        monkeypatch.setattr(view.page, "_paint", wait_first)
        assert stuck.wait(LIMIT_S)
        painted, start = view.page.painted_count, view.simulation.step_count
        wait_until(lambda: view.simulation.step_count > start + 300, "steps while the page is stuck")
        assert view.page.painted_count == painted
        go_on.set()
        wait_until(lambda: view.page.snapshot.step_count > start + 300, "then the newest frame, not those in between")
        assert view.page.painted_count < painted + 100


@pytest.mark.slow
def test_a_client_that_reads_nothing_holds_up_neither_simulation_nor_other_clients(view: LiveView) -> None:
    with client(view), client(view) as reader:
        start = view.simulation.step_count
        wait_until(lambda: view.simulation.step_count > start + 300, "steps")
        sizes = [len(reader.recv(timeout=LIMIT_S)) for _ in range(20)]
        assert max(sizes) > 1000


def test_what_clients_ask_for_happens_between_steps_in_the_simulations_thread(view: LiveView) -> None:
    threads: list[str] = []
    done = threading.Event()
    view.ask(lambda simulation: threads.append(threading.current_thread().name))
    view.ask(lambda simulation: done.set())
    assert done.wait(LIMIT_S)
    assert threads != [threading.current_thread().name]
    view.freeze(10, True)
    wait_until(lambda: view.simulation.frozen_ids.tolist() == [10], "frozen")
    held, start = view.simulation.states[10, :3], view.simulation.step_count
    wait_until(lambda: view.simulation.step_count > start + 50, "steps")
    np.testing.assert_allclose(view.simulation.states[10, :3], held, atol=1e-3)  # a step may be under way
    pushed = view.simulation.states[[10]]
    pushed[0, 7:10] = [0.0, 0.0, 3.0]  # it may have come to rest
    view.freeze(10, False)
    view.ask(lambda simulation: simulation.set_states([10], pushed))
    wait_until(lambda: len(view.simulation.frozen_ids) == 0, "released")
    wait_until(lambda: np.abs(view.simulation.states[10, :3] - held).max() > 0.003, "it moves again")


@pytest.mark.slow
def test_a_pull_across_workers_moves_a_body_until_it_is_removed(view: LiveView) -> None:
    body = int(view.simulation.overlap[0])
    assert len(view.simulation.membership.workers(body)) == 2
    start = view.simulation.states[body, :3]
    view.keep_pulls, view.strength = True, 20.0
    view.grab(body, start)
    view.drag_to(start + [0.0, 0.0, 2.0])
    view.let_go()
    wait_until(lambda: view.simulation.states[body, 2] > start[2] + 0.3, "it rises")
    assert [pull.body for pull in view.pulls.all()] == [body]
    view.remove_pulls(body)
    wait_until(lambda: view.pulls.all() == [], "the force is gone")
    wait_until(lambda: view.simulation.states[body, 2] < start[2] + 0.2, "it falls back")


def test_the_number_of_workers_changes_while_a_client_looks_on(view: LiveView) -> None:
    """Fewer, and as many as at the start again."""
    simulation, most = view.simulation, view.most_workers
    assert most > 1
    with client(view):
        for count in (1, most):
            view.ask(lambda simulation, count=count: simulation.set_worker_count(count))
            wait_until(lambda count=count: simulation.params.workers == count, f"{count} workers")
            shown = view.page.painted_count
            wait_until(lambda shown=shown: view.page.painted_count > shown + 1, "frames after the change")
