"""Views in a real browser: Chromium without a screen, with WebGL in software."""

from __future__ import annotations

import http.client
import io
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import viser
import websockets.exceptions
import websockets.sync.client
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from playwright.sync_api import Page as Tab

from lapjoint import Box, Cylinder, Params, Plane, Recording, Scene, Simulation, Sphere
from lapjoint.run import run
from lapjoint.view.page.access import COOKIE, Access
from lapjoint.view.page.page import WIDE, Page
from lapjoint.view.page.picking import project
from lapjoint.view.page.playback import Playback, StillView
from view_support import LIMIT_S, live_view, wait_until

FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DRAWING = [
    ["--use-gl=angle", "--use-angle=gl-egl", "--ignore-gpu-blocklist"],  # Mesa's renderer, the one of pictures
    ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"],  # Chromium's own, much slower
]
pytestmark = pytest.mark.slow
HAS_WEBGL = "() => document.createElement('canvas').getContext('webgl2') !== null"
SIZE = {"width": 860, "height": 480}
SELDOM = """
const draw = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (callback) => setTimeout(() => draw(callback), 150);
window.cancelAnimationFrame = clearTimeout;
"""
"""Six frames a second are enough to look at; without a graphics card, sixty take all of a core."""
DRAWN_S = 0.2  # between two looks at what is drawn, for each of which the browser draws it once more


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        if os.geteuid() == 0 and shutil.which("apt-get"):
            pytest.fail("Chromium is missing; `make setup` installs it here (tools/system-packages)")
        pytest.skip("Chromium is not installed, and cannot be without an administrator: apt-get install chromium")
    with sync_playwright() as playwright:
        for drawing in DRAWING:
            options: dict[str, Any] = {"executable_path": path, "args": FLAGS + drawing, "timeout": 1e3 * LIMIT_S}
            chromium = playwright.chromium.launch(**options)
            if chromium.new_page().evaluate(HAS_WEBGL):
                break
            chromium.close()
        else:
            pytest.fail("Chromium has no WebGL, neither by Mesa nor by its own renderer")
        yield chromium
        chromium.close()


@contextmanager
def tab_on(browser: Browser, page: Page, address: str | None = None, shadows: bool = False) -> Iterator[Tab]:
    """A tab that shows a page, without shadows, which take most of its time. Nothing in it fails, and whatever a test
    does, it needs nothing from elsewhere."""
    if not shadows:
        page.server.scene.configure_default_lights(cast_shadow=False)
    context = browser.new_context(viewport=SIZE)  # type: ignore[arg-type]
    context.set_default_timeout(1e3 * LIMIT_S)
    context.add_init_script(SELDOM)
    errors: list[str] = []
    asked: list[str] = []
    try:
        tab = context.new_page()
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(address or page.address)
        tab.locator("canvas").first.wait_for()
        yield tab
    finally:
        context.close()
    assert errors == []
    own = (f"http://localhost:{page.port}/", f"http://127.0.0.1:{page.port}/", "data:", "blob:")
    assert asked
    assert [url for url in asked if not url.startswith(own)] == []


@pytest.fixture(scope="module")
def shelf() -> Scene:
    """A row of balls and boxes on the ground, apart from each other."""
    scene = Scene("shelf", timestep=0.005, iterations=20)
    scene.add_static(Plane())
    scene.add_bodies(Sphere(0.2), [[x, 0.0, 0.2] for x in np.arange(6) * 0.6], labels=0)
    scene.add_bodies(Box((0.3, 0.3, 0.3)), [[x, 0.8, 0.15] for x in np.arange(6) * 0.6], labels=1)
    scene.camera = ((1.5, -3.0, 2.4), (1.5, 0.4, 0.2))
    return scene


def pixels(tab: Tab) -> NDArray[np.int16]:
    """What the canvas shows, left of the controls."""
    shot = tab.screenshot(clip={"x": 0, "y": 0, "width": 400, "height": SIZE["height"]})
    return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(np.int16)


def is_drawn(tab: Tab) -> bool:
    """Whether there are bodies on the canvas: strong colours."""
    shown = pixels(tab)
    return bool((np.ptp(shown, axis=2) > 60).sum() > 400)


def magenta(tab: Tab) -> int:
    """How many pixels have the colour of the highlight."""
    red, green, blue = np.moveaxis(pixels(tab), 2, 0)
    return int(((red - green > 60) & (blue - green > 60)).sum())


def yellow(tab: Tab) -> int:
    """How many pixels have the colour of a third label, below the note that drawing is slow here."""
    red, green, blue = np.moveaxis(pixels(tab)[160:], 2, 0)
    return int(((red - blue > 60) & (green - blue > 60)).sum())


def spot(page: Page, tab: Tab, body: int) -> tuple[float, float]:
    """Where a body's middle is in the window of the browser with the controls."""
    holder = page.holder()
    assert holder is not None
    camera = holder.client.camera
    place = page.snapshot.states[body : body + 1, :3]
    screen, depth = project(place, camera.position, camera.wxyz, camera.fov, camera.aspect)
    assert depth[0] > 0
    canvas = tab.locator("canvas").first.bounding_box()
    assert canvas is not None
    return canvas["x"] + float(screen[0, 0]) * canvas["width"], canvas["y"] + float(screen[0, 1]) * canvas["height"]


def ready(page: Page, tab: Tab) -> None:
    """The browser is there, has the controls, and shows bodies."""
    wait_until(lambda: page.holder() is not None, "a browser with the controls")
    wait_until(lambda: is_settled(page, tab), "the camera steps back for the window")
    wait_until(lambda: is_drawn(tab), "bodies on the canvas", pause_s=DRAWN_S)


def is_settled(page: Page, tab: Tab) -> bool:
    """Whether the camera that the page knows of is that of the canvas beside the controls."""
    holder, canvas = page.holder(), tab.locator("canvas").first.bounding_box()
    assert holder is not None
    assert canvas is not None
    camera, first = holder.client.camera, page.scene.camera
    assert first is not None
    aspect = canvas["width"] / canvas["height"]
    away = np.linalg.norm(camera.position - first[1]) / np.linalg.norm(np.subtract(*first))
    return abs(camera.aspect - aspect) < 0.01 and abs(away - max(1.0, WIDE / aspect)) < 0.01


# ---- live --------------------------------------------------------------------------------------------------------


def test_a_live_view_moves_and_a_body_can_be_clicked_dragged_frozen_and_let_go(browser: Browser, shelf: Scene) -> None:
    with (
        live_view(shelf, Params(workers=2, runtime="inline")) as view,
        tab_on(browser, view.page) as tab,
    ):
        page, simulation = view.page, view.simulation
        ready(page, tab)
        wait_until(lambda: page.painted_count > 5, "frames")

        tab.mouse.click(*spot(page, tab, 1))
        tab.get_by_text("body 1", exact=True).wait_for()
        tab.get_by_text("Sphere, ", exact=False).wait_for()
        wait_until(lambda: magenta(tab) > 100, "the clicked body is highlighted", pause_s=DRAWN_S)

        start = simulation.states[1, :3]
        before = pixels(tab)
        x, y = spot(page, tab, 1)
        tab.mouse.move(x, y)
        tab.mouse.down()
        for k in range(1, 11):
            tab.mouse.move(x + 4 * k, y - 10 * k)
        wait_until(
            lambda: view.steering.pulls.held is not None and view.steering.pulls.held.body == 1, "the ball is held"
        )
        wait_until(lambda: simulation.states[1, 2] > start[2] + 0.2, "the ball rises in the simulation")
        wait_until(
            lambda: np.abs(pixels(tab) - before).max(axis=2).astype(bool).sum() > 200,
            "it moves on the screen",
            pause_s=DRAWN_S,
        )
        others = np.delete(np.arange(12), 1)
        assert np.abs(simulation.states[others, 2] - shelf.states[others, 2]).max() < 0.05, "the others stay"

        tab.get_by_role("button", name="Freeze or release the clicked body").click()
        wait_until(lambda: simulation.bodies.frozen_ids.tolist() == [1], "it is frozen")
        tab.mouse.up()
        tab.get_by_role("button", name="Remove the clicked body").click()
        wait_until(lambda: not simulation.alive[1], "it is gone")
        tab.get_by_text("11 bodies", exact=False).first.wait_for()
        tab.get_by_text("Click a body.", exact=True).wait_for()
        wait_until(lambda: magenta(tab) == 0, "it is not drawn", pause_s=DRAWN_S)


def test_the_controls_of_a_live_view_reach_the_simulation(browser: Browser, shelf: Scene) -> None:
    with (
        live_view(shelf, Params(workers=2, runtime="inline")) as view,
        tab_on(browser, view.page) as tab,
    ):
        page, simulation = view.page, view.simulation
        ready(page, tab)
        tab.get_by_role("button", name="Pause").click()
        wait_until(lambda: view.steering.paused, "pause")
        paused_at: list[int] = []
        view.steering.ask(lambda paused: paused_at.append(paused.step_count))  # after a step that is under way
        wait_until(lambda: paused_at, "the step is over")
        stopped = paused_at[0]
        wait_until(lambda: page.snapshot.step_count == stopped, "the last step is shown")
        tab.get_by_role("button", name="Single step").click()
        wait_until(lambda: simulation.step_count == stopped + 1, "one step")
        tab.get_by_role("button", name="Play").click()
        wait_until(lambda: simulation.step_count > stopped + 5, "play")
        tab.get_by_role("button", name="Throw a ball").click()
        wait_until(lambda: simulation.scene.body_count == 13, "a ball is thrown")
        tab.get_by_text("13 bodies", exact=False).first.wait_for()
        tab.get_by_role("button", name="Pause").click()
        wait_until(lambda: view.steering.paused, "pause")
        tab.get_by_role("button", name="Restart").click()
        wait_until(lambda: simulation.step_count == 0, "the scene's start")
        tab.get_by_text("12 bodies", exact=False).first.wait_for()
        tab.get_by_text("0.000 s", exact=True).wait_for()
        tab.get_by_role("button", name="Play").click()
        wait_until(lambda: simulation.step_count > 5, "play")


def test_bodies_of_known_and_new_shapes_appear_and_can_be_clicked(browser: Browser, shelf: Scene) -> None:
    with live_view(shelf, Params(workers=2, runtime="inline")) as view, tab_on(browser, view.page) as tab:
        page, steering = view.page, view.steering
        ready(page, tab)
        page.look.mode = "label"
        steering.pause(True)
        assert yellow(tab) == 0

        def more(simulation: Simulation) -> None:
            simulation.bodies.add(Sphere(0.2), [[x, 0.4, 1.0] for x in np.arange(8) * 0.4], labels=2)
            simulation.bodies.add_one(Cylinder(0.2, 0.6), (1.5, -0.8, 0.3), label=4)

        steering.ask(more)
        wait_until(lambda: len(page.snapshot.alive) == 21, "the page knows them")
        wait_until(lambda: yellow(tab) > 400, "they are drawn in their colour", pause_s=DRAWN_S)
        for body, what in ((15, "Sphere, "), (20, "Cylinder, ")):
            tab.mouse.click(*spot(page, tab, body))
            tab.get_by_text(f"body {body}", exact=True).wait_for()
            tab.get_by_text(what, exact=False).wait_for()
        x, y = spot(page, tab, 15)
        tab.mouse.move(x, y)
        tab.mouse.down()
        tab.mouse.move(x, y - 20)
        wait_until(lambda: [pull.body for pull in steering.pulls.all()] == [15], "a new body is held")
        tab.mouse.up()
        steering.ask(lambda simulation: simulation.bodies.remove(range(12, 21)))
        tab.get_by_text("12 bodies", exact=False).first.wait_for()
        wait_until(lambda: yellow(tab) == 0, "they are gone", pause_s=DRAWN_S)


def test_a_second_browser_watches_until_the_first_one_leaves(browser: Browser, shelf: Scene) -> None:
    with live_view(shelf, Params(runtime="inline")) as view:
        page = view.page
        with tab_on(browser, page) as first:
            ready(page, first)
            with tab_on(browser, page) as second:
                second.get_by_text("You are watching", exact=False).wait_for()
                wait_until(lambda: is_drawn(second), "bodies for the second browser", pause_s=DRAWN_S)
                assert second.get_by_role("button", name="Pause").count() == 0
                assert first.get_by_role("button", name="Pause").count() == 1
                x, y = spot(page, first, 1)
                second.mouse.move(x, y)
                second.mouse.down()
                second.mouse.move(x + 20, y - 40)
                second.mouse.move(x + 40, y - 80)
                second.mouse.up()
                second.get_by_text("Another browser holds the controls.", exact=True).wait_for()
                assert view.steering.pulls.all() == []
                first.close()
                second.get_by_role("button", name="Pause").wait_for()
                second.get_by_role("button", name="Pause").click()
                wait_until(lambda: view.steering.paused, "the second browser pauses")


# ---- partition by hand -------------------------------------------------------------------------------------------


def test_a_rectangle_makes_a_partition_file_that_runs(browser: Browser, shelf: Scene, tmp_path: Path) -> None:
    params = Params(workers=2, partition="equal")
    with StillView(shelf, params, port=0, folder=tmp_path) as view, tab_on(browser, view.page) as tab:
        page = view.page
        ready(page, tab)
        tab.get_by_text("Partition by hand", exact=True).click()
        wanted = [0, 1, 6, 7]
        corners = np.array([spot(page, tab, body) for body in wanted])
        low, high = corners.min(axis=0) - 12, corners.max(axis=0) + 12
        tab.keyboard.down("Shift")
        tab.mouse.move(*low)
        tab.mouse.down()
        tab.mouse.move(*((low + high) / 2))
        tab.mouse.move(*high)
        tab.mouse.up()
        tab.keyboard.up("Shift")
        tab.get_by_text("4 marked", exact=False).wait_for()
        assert page.marked.tolist() == wanted
        before = page.draft.partition.copy()
        tab.get_by_role("button", name="Give marked bodies").click()
        wait_until(lambda: page.draft.partition[wanted].tolist() == [0, 0, 0, 0], "they have worker 0")
        tab.get_by_text("0: 8, 1: 4", exact=False).wait_for()
        tab.get_by_role("button", name="Undo").click()
        wait_until(lambda: np.array_equal(page.draft.partition, before), "undo")
        page.draft.give(wanted, 0)
        tab.get_by_role("button", name="Save").click()
        file = tmp_path / "partition.txt"
        wait_until(file.exists, "the file")
        tab.get_by_text("Saved", exact=True).wait_for()
    with Simulation(shelf, Params(workers=2, partition=str(file), runtime="inline")) as simulation:
        np.testing.assert_array_equal(simulation.workers.weights().argmax(axis=1), page.draft.partition)
        simulation.step(2)


def test_a_partition_by_hand_takes_effect_in_the_run(browser: Browser, shelf: Scene, tmp_path: Path) -> None:
    params = Params(workers=2, runtime="inline", partition="equal", repartition=0)
    with live_view(shelf, params, folder=tmp_path, wait=True) as view, tab_on(browser, view.page) as tab:
        page = view.page
        ready(page, tab)
        tab.get_by_text("Partition by hand", exact=True).click()

        def workers() -> NDArray[np.intp]:
            return page.snapshot.weights.argmax(axis=1)

        before = workers()
        page.marked = np.array([0, 6])
        page.draft.give([6, 7, 8], 0)
        tab.get_by_role("button", name="Give marked bodies").click()
        wait_until(lambda: page.draft.partition[[0, 6, 7, 8]].tolist() == [0, 0, 0, 0], "the draft")
        assert np.array_equal(workers(), before), "a draft changes nothing"
        tab.get_by_role("button", name="Apply to the run").click()
        wait_until(lambda: np.array_equal(workers(), page.draft.partition), "the run has it")
        wait_until(lambda: page.look.mode == "worker", "the colours are those of the run")
        tab.get_by_role("button", name="Undo").click()
        wait_until(lambda: not np.array_equal(page.draft.partition, workers()), "undo")
        tab.get_by_role("button", name="Copy the present partition").click()
        wait_until(lambda: np.array_equal(page.draft.partition, workers()), "a copy")


# ---- recordings --------------------------------------------------------------------------------------------------


def test_a_recording_plays_and_is_scrubbed(browser: Browser, shelf: Scene, tmp_path: Path) -> None:
    falling = Scene("falling", timestep=0.005)
    falling.add_static(Plane())
    falling.add_bodies(Sphere(0.3), [[x, 0.0, 4.0 + x] for x in range(3)])
    falling.camera = ((1.0, -9.0, 4.0), (1.0, 0.0, 2.5))
    with Simulation(falling, Params(workers=2, runtime="inline")) as simulation:
        run(simulation, 120, record=tmp_path / "run.zarr", record_every=4)
    ended = threading.Event()
    with Playback(Recording(tmp_path / "run.zarr"), port=0) as view:
        thread = threading.Thread(target=view.serve, args=(ended.is_set,))
        thread.start()
        try:
            with tab_on(browser, view.page) as tab:
                ready(view.page, tab)
                view.clock.loop = False
                first = pixels(tab)
                tab.get_by_role("button", name="Play").click()
                wait_until(lambda: view.clock.frame == 29, "the end")
                wait_until(lambda: view.page.snapshot.step_count == 120, "the last frame")
                tab.get_by_text("frame 30 of 30", exact=False).wait_for()
                wait_until(
                    lambda: np.abs(pixels(tab) - first).max(axis=2).astype(bool).sum() > 400,
                    "movement",
                    pause_s=DRAWN_S,
                )
                slider = tab.get_by_role("slider").first
                slider.focus()
                slider.press("Home")
                wait_until(lambda: view.page.snapshot.step_count == view.recording.steps[0], "the first frame again")
                tab.get_by_role("button", name="One frame ahead").click()
                wait_until(lambda: view.page.snapshot.step_count == view.recording.steps[1], "the second frame")
        finally:
            ended.set()
            thread.join()


# ---- access ------------------------------------------------------------------------------------------------------


def get(port: int, target: str, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    try:
        connection.request("GET", target, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers
    finally:
        connection.close()


def connect(port: int, target: str = "/", **headers: str) -> websockets.sync.client.ClientConnection:
    protocol = websockets.Subprotocol(f"viser-v{viser.__version__}")
    return websockets.sync.client.connect(
        f"ws://127.0.0.1:{port}{target}",
        subprotocols=[protocol],
        additional_headers=headers,
        open_timeout=LIMIT_S,
        max_size=None,
        proxy=None,
    )


def test_with_another_host_nothing_is_served_without_the_token(browser: Browser, shelf: Scene) -> None:
    access = Access.of("0.0.0.0")
    assert access.token is not None
    with StillView(shelf, access=access, port=0) as view:
        port = view.page.port
        assert get(port, "/")[0] == 403
        assert get(port, "/?token=wrong")[0] == 403
        status, headers = get(port, f"/?token={access.token}")
        assert status == 200
        assert access.token in headers["Set-Cookie"]
        assert "HttpOnly" in headers["Set-Cookie"]
        for target, given in (("/", {}), ("/?token=wrong", {}), ("/", {"Cookie": f"{COOKIE}=wrong"})):
            with pytest.raises(websockets.exceptions.InvalidStatus, match="403"):
                connect(port, target, **given)
        with connect(port, f"/?token={access.token}") as socket:
            assert len(socket.recv(timeout=LIMIT_S)) > 100
        # Behind the front, too, there is nothing for those who did not come through it.
        with connect(view.page.server.get_port()) as socket, pytest.raises(websockets.exceptions.ConnectionClosed):
            socket.recv(timeout=LIMIT_S)
        with tab_on(browser, view.page, f"http://127.0.0.1:{port}/?token={access.token}", shadows=True) as tab:
            ready(view.page, tab)
        context = browser.new_context()
        refused = context.new_page().goto(f"http://127.0.0.1:{port}/")
        assert refused is not None
        assert refused.status == 403
        context.close()


def test_on_this_machine_a_page_of_another_site_may_not_connect(shelf: Scene) -> None:
    with StillView(shelf, port=0) as view:
        assert get(view.page.port, "/")[0] == 200
        assert get(view.page.port, "/", Host="evil.example")[0] == 403
        with pytest.raises(websockets.exceptions.InvalidStatus, match="403"):
            connect(view.page.port, Origin="http://evil.example")


@pytest.mark.parametrize("kind", ["still", "playback"])
def test_names_and_paths_are_shown_as_they_are_written(browser: Browser, tmp_path: Path, kind: str) -> None:
    name = "![one](http://evil.example/a.png) <img src='http://evil.example/b.png'> **c** &amp; ~~d~~\n# e"
    shown = " ".join(name.split())
    scene = Scene(name, timestep=0.005)
    scene.add_static(Plane())
    scene.add_body(Box((1.0, 1.0, 1.0)), (0.0, 0.0, 0.5), name=name)
    scene.add_body(Box((1.0, 1.0, 1.0)), (0.0, 0.0, 1.5))
    scene.camera = ((0.0, -5.0, 2.0), (0.0, 0.0, 0.8))
    params = Params(workers=2, runtime="inline", partition="equal")
    folder = tmp_path / name
    with ExitStack() as stack:
        view: StillView | Playback
        if kind == "still":
            view = stack.enter_context(StillView(scene, params, port=0, folder=folder))
        else:
            with Simulation(scene, params) as simulation:
                run(simulation, 8, record=tmp_path / "run.zarr", record_every=4)
            view = stack.enter_context(Playback(Recording(tmp_path / "run.zarr"), port=0, folder=folder))
        tab = stack.enter_context(tab_on(browser, view.page))
        ready(view.page, tab)
        view.page.visitors()[0].body = 0
        view.page.repaint()
        tab.get_by_text(f"body 0 ({name!r})", exact=True).wait_for()
        tab.get_by_text("Partition by hand", exact=True).click()
        path = tab.get_by_text(" ".join(str(folder).split()), exact=False).first
        # A click that comes while the page still builds the folder can be lost on it.
        wait_until(lambda: path.is_visible() or _clicked(tab, "What the buttons do"), "the path")
        if kind == "still":
            tab.get_by_text(shown, exact=True).wait_for()
        assert tab.locator("img[src*='evil']").count() == 0


def _clicked(tab: Tab, title: str) -> bool:
    """Open or close the folders with this title; false, for nothing is known yet of what they hold."""
    for folder in tab.get_by_text(title, exact=True).all():
        folder.click()
    tab.wait_for_timeout(1000)
    return False
