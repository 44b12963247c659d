"""A live view and its clients, without a browser: a client here is a socket that speaks the browser's protocol."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest
import viser
import websockets.sync.client
from numpy.typing import NDArray
from viser import _messages

from lapjoint import Cylinder, LapjointError, Params, Recording, Simulation, Sphere, scenes
from lapjoint.run import run
from lapjoint.view.page.escape import escaped
from lapjoint.view.page.live import LiveView
from lapjoint.view.page.page import Page, Visitor
from lapjoint.view.page.playback import Playback, StillView
from lapjoint.view.page.snapshot import Snapshot
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
def client(page: Page) -> Iterator[websockets.sync.client.ClientConnection]:
    """A client of the page that reads nothing unless told to."""
    before = page.visitor_count
    with websockets.sync.client.connect(
        f"ws://localhost:{page.port}/",
        subprotocols=[websockets.Subprotocol(f"viser-v{viser.__version__}")],
        open_timeout=LIMIT_S,
        close_timeout=1,
        max_size=None,
        proxy=None,
        ping_interval=None,  # who reads nothing reads no answer to a ping
    ) as socket:
        socket.send(msgspec.msgpack.encode(CAMERA.as_serializable_dict([])))
        wait_until(lambda: page.visitor_count == before + 1, "the client is known")
        yield socket
    # The next one counts those that are there.
    wait_until(lambda: page.visitor_count <= before, "the client is gone")


@pytest.fixture(scope="module")
def view() -> Iterator[LiveView]:
    params = Params(workers=2, runtime="inline", coupling="blend", solver="sequential")
    with live_view(scenes.build("chain"), params) as shown:
        shown.steering.speed = None
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

    with client(view.page):
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
    with client(view.page), client(view.page) as reader:
        start = view.simulation.step_count
        wait_until(lambda: view.simulation.step_count > start + 300, "steps")
        sizes = [len(reader.recv(timeout=LIMIT_S)) for _ in range(20)]
        assert max(sizes) > 1000


def test_what_clients_ask_for_happens_between_steps_in_the_simulations_thread(view: LiveView) -> None:
    threads: list[str] = []
    done = threading.Event()
    view.steering.ask(lambda simulation: threads.append(threading.current_thread().name))
    view.steering.ask(lambda simulation: done.set())
    assert done.wait(LIMIT_S)
    assert threads != [threading.current_thread().name]
    view.steering.freeze(10, True)
    wait_until(lambda: view.simulation.bodies.frozen_ids.tolist() == [10], "frozen")
    held, start = view.simulation.states[10, :3], view.simulation.step_count
    wait_until(lambda: view.simulation.step_count > start + 50, "steps")
    np.testing.assert_allclose(view.simulation.states[10, :3], held, atol=1e-3)  # a step may be under way
    pushed = view.simulation.states[[10]]
    pushed[0, 7:10] = [0.0, 0.0, 3.0]  # it may have come to rest
    view.steering.freeze(10, False)
    view.steering.ask(lambda simulation: simulation.set_states([10], pushed))
    wait_until(lambda: len(view.simulation.bodies.frozen_ids) == 0, "released")
    wait_until(lambda: np.abs(view.simulation.states[10, :3] - held).max() > 0.003, "it moves again")


@pytest.mark.slow
def test_a_pull_across_workers_moves_a_body_until_it_is_removed(view: LiveView) -> None:
    body = int(view.simulation.workers.overlap[0])
    assert len(view.simulation.workers.membership.workers(body)) == 2
    start = view.simulation.states[body, :3]
    view.steering.keep_pulls, view.steering.strength = True, 20.0
    view.steering.grab(body, start)
    view.steering.drag_to(start + [0.0, 0.0, 2.0])
    view.steering.let_go()
    wait_until(lambda: view.simulation.states[body, 2] > start[2] + 0.3, "it rises")
    assert [pull.body for pull in view.steering.pulls.all()] == [body]
    view.steering.remove_pulls(body)
    wait_until(lambda: view.steering.pulls.all() == [], "the force is gone")
    wait_until(lambda: view.simulation.states[body, 2] < start[2] + 0.2, "it falls back")


@pytest.mark.slow
def test_the_number_of_workers_changes_while_a_client_looks_on(view: LiveView) -> None:
    """Fewer, and as many as at the start again."""
    simulation, most = view.simulation, view.most_workers
    assert most > 1
    with client(view.page):
        for count in (1, most):
            view.steering.ask(lambda simulation, count=count: simulation.workers.set_count(count))
            wait_until(lambda count=count: simulation.params.workers == count, f"{count} workers")
            shown = view.page.painted_count
            wait_until(lambda shown=shown: view.page.painted_count > shown + 1, "frames after the change")


@pytest.mark.slow
def test_a_restart_is_bit_for_bit_a_new_simulation_and_keeps_the_settings() -> None:
    scene = scenes.build("chain")
    params = Params(workers=2, runtime="inline", coupling="blend", solver="sequential")
    with Simulation(scene, params) as simulation:
        simulation.step(30)
        expected = simulation.state_hash
    with live_view(scene, params) as view:
        steering, simulation = view.steering, view.simulation
        steering.speed = None
        wait_until(lambda: simulation.step_count > 40, "steps")
        steering.throw((0.0, -9.0, 3.0), (0.0, 1.0, 0.0), 5.0)
        steering.remove(20)
        steering.freeze(10, True)
        steering.grab(3, (0.0, 0.0, 0.0))
        steering.pause(True)
        restarted = threading.Event()
        steering.restart(restarted.set)
        assert restarted.wait(LIMIT_S)
        assert simulation.alive.tolist() == [True] * 40, "no ball, and all that was removed"
        assert simulation.bodies.frozen_ids.tolist() == []
        assert steering.pulls.all() == []
        assert steering.paused
        for count in range(1, 31):
            steering.single_step()
            wait_until(lambda count=count: simulation.step_count == count, "a single step")
        assert simulation.state_hash == expected
        steering.change("iterations", lambda simulation: simulation.workers.set_iterations(7))
        again = threading.Event()
        steering.restart(again.set)
        assert again.wait(LIMIT_S)
        assert simulation.params.sequential.iterations == 7


@pytest.mark.slow
def test_a_run_that_is_restarted_sums_up_the_steps_since() -> None:
    scene, params = scenes.build("chain"), Params(workers=2, runtime="inline", coupling="blend")
    with Simulation(scene, params) as simulation:
        expected = run(simulation, 25)
    with Simulation(scene, params) as simulation, LiveView(simulation, port=0, wait=False) as view:
        view.steering.speed = None
        asked = []

        def restart_once(done: int) -> None:
            if done == 15 and not asked:
                asked.append(done)
                view.steering.restart()

        summary = run(simulation, 25, restart_once, gate=view.gate)
        assert asked == [15]
        assert (summary.steps, summary.state_hash) == (25, expected.state_hash)
        assert summary.joint_gap_max == expected.joint_gap_max

        steps = []

        def until_done_again() -> bool:
            steps.append(simulation.step_count)
            return len(set(steps)) > 20 and view.steering.done

        view.steering.restart()
        view.stay(until_done_again)
        assert (simulation.step_count, simulation.state_hash) == (25, expected.state_hash)


def test_a_view_stays_open_when_a_forked_process_ends() -> None:
    simulation = Simulation(scenes.build("chain"), Params(runtime="inline"))
    with simulation, LiveView(simulation, port=0, wait=False) as view:
        pid = os.fork()
        if pid == 0:
            try:
                view.gate(lambda: False)
            except LapjointError as error:
                view.close()
                os._exit(0 if "the view belongs to process" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert view.gate(lambda: False)
        with socket.create_connection(("127.0.0.1", view.page.port), 60) as connection:
            connection.sendall(b"nonsense\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 400"


def test_a_run_that_leaves_figures_does_not_restart() -> None:
    with (
        Simulation(scenes.build("chain"), Params(runtime="inline")) as simulation,
        LiveView(simulation, port=0, wait=False, can_restart=False) as view,
    ):
        refused: list[str] = []
        view.steering.on_refusal = refused.append
        simulation.step(3)
        view.steering.restart()
        assert view.gate(lambda: False)
        assert simulation.step_count == 3
        assert "cannot restart" in refused[0]


def test_the_first_step_waits_for_a_page() -> None:
    with live_view(scenes.build("chain"), Params(runtime="inline"), wait=True) as view:
        served = threading.Event()
        view.steering.ask(lambda simulation: served.set())
        assert served.wait(LIMIT_S)
        assert view.is_waiting
        assert view.simulation.step_count == 0
        with client(view.page):
            wait_until(lambda: view.simulation.step_count > 5, "steps")
        start = view.simulation.step_count
        wait_until(lambda: view.simulation.step_count > start + 5, "steps after the page has left")


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["blend", "tight"])
def test_a_partition_by_hand_is_applied_to_the_run(coupling: str) -> None:
    scene = scenes.build("chain")
    params = Params(workers=2, runtime="inline", coupling=coupling, repartition=0, validate=True)
    wanted = (np.arange(scene.body_count) % 20 < 10).astype(np.int32)
    with live_view(scene, params) as view:
        refused: list[str] = []
        view.steering.on_refusal = refused.append
        view.steering.speed = None
        wait_until(lambda: view.simulation.step_count > 5, "steps")
        view.steering.throw((0.0, -9.0, 3.0), (0.0, -1.0, 0.0), 5.0)  # after the draft was made
        view.steering.remove(39)
        view.steering.repartition(wanted + 1)
        wait_until(lambda: refused, "there is no worker 2")
        assert "expected 0 to 1" in refused[0]
        done = threading.Event()
        view.steering.repartition(wanted, done.set)
        assert done.wait(LIMIT_S)
        start = view.simulation.step_count
        wait_until(lambda: view.simulation.step_count > start + 5, "steps")
        weights: list[NDArray[np.float64]] = []
        view.steering.ask(lambda simulation: weights.append(simulation.workers.weights()))
        wait_until(lambda: weights, "weights")
        inside = np.arange(scene.body_count) % 10 == 5  # far from the interfaces
        assert (weights[0][:40].argmax(axis=1) == wanted)[inside].all()
        assert weights[0].sum(axis=1).tolist() == pytest.approx([1.0] * 39 + [0.0, 1.0])


@pytest.mark.slow
def test_every_control_explains_itself(tmp_path: Path) -> None:
    """In live views of both couplings, recordings and scenes; also where something is disabled."""
    scene = scenes.build("chain")
    with Simulation(scene, Params(workers=2, runtime="inline")) as simulation:
        run(simulation, 4, record=tmp_path / "run.zarr")
    shared = {"Colour by", "Joints", "Contacts", "Constraint graph", "Opacity", "Worker", "Undo", "File", "Save"}
    live = shared | {"Pause", "Restart", "Speed", "Workers", "Load", "Pull", "Throw a ball", "Apply to the run"}
    live |= {"Remove the clicked body"}
    with ExitStack() as stack:
        pages = []
        for coupling, solver, own in (
            ("blend", "sequential", {"Growth depth", "Iterations"}),
            ("tight", "substeps", set[str]()),
        ):
            params = Params(workers=2, runtime="inline", coupling=coupling, solver=solver)
            pages.append((stack.enter_context(live_view(scene, params)).page, live | own))
        pages.append((stack.enter_context(Playback(Recording(tmp_path / "run.zarr"), port=0)).page, shared | {"Frame"}))
        pages.append((stack.enter_context(StillView(scene, Params(workers=2), port=0)).page, shared))
        for page, expected in pages:
            with client(page):
                wait_until(page.holder, "the controls")
                holder = page.holder()
                assert holder is not None
                handles = holder.client.gui._gui_input_handle_from_uuid
                wait_until(
                    lambda: expected <= {handle.label for handle in list(handles.values())},  # noqa: B023
                    f"all of {sorted(expected)}",
                )
                assert [handle.label for handle in handles.values() if not handle.hint] == []
                # The page itself shows no hints of buttons: they stand in a folder beside them.
                wait_until(lambda: buttons_without_text(holder) == [], "the hints of all buttons")  # noqa: B023


def buttons_without_text(holder: Visitor) -> list[str]:
    """Labels of buttons whose hint stands nowhere on the page."""
    gui = holder.client.gui
    containers = list(gui._container_handle_from_uuid.values())
    children = [child for container in containers for child in list(container._children.values())]
    texts = "".join(child.content for child in children if isinstance(child, viser.GuiMarkdownHandle))
    handles = list(gui._gui_input_handle_from_uuid.values())
    buttons = [handle for handle in handles if isinstance(handle, viser.GuiButtonHandle)]
    return [button.label for button in buttons if escaped(str(button.hint)) not in texts]


@pytest.mark.slow
def test_the_clicked_body_is_highlighted_for_the_browser_that_clicked_it(view: LiveView) -> None:
    page = view.page
    with client(page), client(page):
        wait_until(lambda: len(page.visitors()) == 2, "two browsers")
        one, other = page.visitors()
        one.body = 7
        page.repaint()
        wait_until(lambda: one.highlight.body == 7, "the highlight")
        assert other.highlight.body is None
        handle = one.highlight.handle
        assert handle is not None
        shown = page.painted_count
        wait_until(lambda: page.painted_count > shown + 2, "frames")
        wait_until(
            lambda: np.allclose(handle.batched_positions[0], page.snapshot.states[7, :3], atol=0.05), "it follows"
        )
        scale = np.array(handle.batched_scales[0])
        assert (scale > page.nodes.surface_of(7)[1]).all(), "larger than the body"
        one.body = None
        page.repaint()
        wait_until(lambda: one.highlight.handle is None, "no highlight")


@pytest.mark.slow
def test_bodies_come_and_go_while_clients_look_on() -> None:
    """By the simulation's own callbacks, by hand, and by a restart."""
    params = Params(workers=2, runtime="process", partition="equal", repartition=0)

    def feed(simulation: Simulation) -> None:
        if simulation.step_count % 4 == 0:
            shape = Sphere(0.1) if simulation.step_count % 8 else Cylinder(0.1, 0.2)
            simulation.bodies.add_one(shape, (3.0, 0.0, 0.4 * simulation.step_count), label=7)
        if simulation.step_count % 10 == 0:
            simulation.bodies.remove(np.flatnonzero(simulation.alive)[-2:-1])

    with live_view(scenes.build("chain"), params) as view, client(view.page):
        page, steering, simulation = view.page, view.steering, view.simulation
        wait_until(page.holder, "the controls")
        holder = page.holder()
        assert holder is not None
        page.look.mode = "partition by hand"
        page.look.wanted.joints = page.look.wanted.contacts = page.look.wanted.graph = True
        steering.speed = None
        steering.ask(lambda simulation: simulation.on_step(feed))
        wait_until(lambda: len(page.snapshot.alive) > 80, "bodies that are shown")
        assert len(page.draft.partition) >= 81
        # The one that is clicked is removed.
        steering.pause(True)
        steering.throw((0.0, -9.0, 30.0), (0.0, 0.0, 1.0), 5.0)
        wait_until(lambda: page.snapshot.scene.bodies.label[-1] != 7, "a ball")
        ball = len(page.snapshot.alive) - 1
        holder.body, page.marked = ball, np.array([3, ball])
        page.draft.give([3, ball], 1)
        page.repaint()
        wait_until(lambda: holder.highlight.body == ball, "the highlight")
        wait_until(lambda: holder.info.content.startswith(f"**body {ball}**"), "the text")
        steering.keep_pulls = True
        steering.grab(ball, (0.0, -9.0, 30.0))
        steering.let_go()
        steering.remove(ball)
        wait_until(lambda: holder.highlight.body is None, "no highlight")
        wait_until(lambda: holder.info.content == "Click a body.", "no text")
        assert page.marked.tolist() == [3]
        refused: list[str] = []
        steering.on_refusal = refused.append
        steering.remove(ball)
        steering.grab(ball, (0.0, 0.0, 0.0))
        wait_until(lambda: len(refused) == 2, "it is gone")
        assert refused[1] == f"pull: body {ball} was removed"
        start = simulation.step_count
        steering.single_step()
        wait_until(lambda: simulation.step_count == start + 1, "a step, in which nobody pulls")
        assert steering.pulls.all() == []
        # All begins again with what the scene began with.
        simulation._callbacks.clear()
        steering.restart()
        wait_until(lambda: len(page.snapshot.alive) == 40, "the scene's start")
        assert page.draft.partition.shape == (40,)
        steering.throw((0.0, -9.0, 30.0), (0.0, 0.0, 1.0), 5.0)
        wait_until(lambda: len(page.snapshot.alive) == 41, "a ball, which has the number of another body of before")
        radius = simulation.scene.bounding_radii()[40]
        assert page.nodes.surface_of(40)[1].tolist() == [radius] * 3


def test_a_closed_view_has_closed_its_event_loop() -> None:
    """However long viser takes: one that is left open is a warning in the middle of something else."""
    with live_view(scenes.build("chain"), Params(runtime="inline")) as shown, client(shown.page):
        inner = shown.page.server._websock_server
    assert inner._background_event_loop.is_closed()
