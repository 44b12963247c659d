"""Exported pages: what is in them, and that they play in a browser, offline, from the disk."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from film_support import record_changing, record_falling
from lapjoint import LapjointError, Recording
from lapjoint.cli.export_page import export_recording
from lapjoint.view import Renderer, export
from lapjoint.view.draw.coloring import modes_of
from lapjoint.view.draw.recorded import Recorded, opening_states
from lapjoint.view.export.streams import Stream, held, pack, steady, unpack

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record_falling(tmp_path_factory.mktemp("export") / "run")


@pytest.fixture(scope="module")
def exported(run: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(run, tmp_path_factory.mktemp("page") / "run.html", every=1).path


def contents(path: Path) -> tuple[dict[str, Any], bytes]:
    text = path.read_text()
    found = {name: re.search(rf'id="{name}">(.*?)</script>', text, re.DOTALL) for name in ("head", "data")}
    assert found["head"] is not None
    assert found["data"] is not None
    return json.loads(found["head"][1]), gzip.decompress(base64.b64decode(found["data"][1]))


def stream_of(path: Path, name: str) -> np.ndarray:
    head, blob = contents(path)
    part = head["data"]["parts"][name]
    content = blob[part["offset"] : part["offset"] + part["size"]]
    return unpack(Stream(tuple(part["shape"]), part["order"], part["planes"], content))


# ---- what is in a page -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_streams_come_back_as_they_were(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.cumsum(rng.integers(-(10**seed), 10**seed + 1, (7, 5, 3)), axis=0)
    assert np.array_equal(unpack(pack(values)), values)


def test_smooth_motion_is_stored_as_changes_of_changes() -> None:
    falling = -(np.arange(60)[:, None, None] ** 2) * np.array([1, 2, 3])
    stream = pack(np.broadcast_to(falling, (60, 40, 3)).astype(np.int64))
    assert (stream.order, stream.planes) == (2, 1)
    assert np.array_equal(unpack(stream)[:, 0], falling[:, 0])
    assert unpack(pack(np.zeros((3, 0, 4), np.int64))).shape == (3, 0, 4)


def test_signs_of_quaternions_do_not_jump() -> None:
    rng = np.random.default_rng(0)
    true = np.cumsum(rng.normal(size=(20, 3, 4)) * 0.05, axis=0) + [1.0, 0.0, 0.0, 0.0]
    flipped = true * rng.choice([-1.0, 1.0], (20, 3, 1))
    assert np.allclose(steady(flipped), true * np.sign(flipped[0, :, :1] * true[0, :, :1]))


@pytest.mark.slow
def test_positions_and_orientations_are_those_of_the_recording(run: Recording, exported: Path) -> None:
    head, _ = contents(exported)
    assert head["times"] == pytest.approx(run.times.tolist())
    positions = stream_of(exported, "positions") * head["position_step"]
    true = np.stack([frame.states for frame in run])
    assert np.abs(positions - true[:, :, :3]).max() <= 0.51 * head["position_step"]
    assert head["position_step"] < 1.5e-3
    quaternions = stream_of(exported, "quaternions") / 2000
    boxes = true[:, 1::2, 3:7]  # balls are not turned
    assert np.abs(np.abs(np.einsum("fbk,fbk->fb", quaternions, boxes)) - 1).max() < 2e-3


@pytest.mark.slow
def test_colours_are_those_of_the_modes(run: Recording, exported: Path) -> None:
    head, _ = contents(exported)
    assert [mode["name"] for mode in head["modes"]] == modes_of("blend")
    for mode in head["modes"]:
        table = np.array([[int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)] for color in mode["colors"]])
        index = stream_of(exported, f"colors {mode['name']}")[:, :, 0]
        recorded = Recorded(run, mode["name"])
        for i in (0, 20, len(run) - 1):
            assert np.abs(table[index[i]] - recorded.frame(i).colors).max() < 0.011


def test_page_asks_for_nothing_from_elsewhere(exported: Path) -> None:
    text = re.sub(r'id="data">.*?</script>', "", exported.read_text(), flags=re.DOTALL)
    assert not re.search(r"https?:|//[a-z]+\.|src=|@import|url\(", text)
    assert "<title>falling &lt;b&gt;</title>" in text
    assert text.count("<b>") == 0


@pytest.mark.slow
def test_frames_are_thinned_to_30_a_second_and_to_the_limit(run: Recording, tmp_path: Path) -> None:
    usual = export(run, tmp_path / "a.html")
    assert (usual.every, usual.frame_count) == (3, len(range(0, len(run), 3)))
    assert usual.byte_count == (tmp_path / "a.html").stat().st_size
    whole = export(run, tmp_path / "b.html", every=1)
    small = export(run, tmp_path / "c.html", limit_mb=(usual.byte_count - 200) / 1e6)
    assert small.every > usual.every
    assert small.byte_count < usual.byte_count < whole.byte_count
    assert small.byte_count <= usual.byte_count - 200


@pytest.mark.slow
def test_wrong_exports_are_refused(run: Recording, tmp_path: Path) -> None:
    for options, message in (
        ({"every": 0}, "every is 0"),
        ({"limit_mb": 0}, "the limit is 0 MB"),
        ({"limit_mb": 1e-3}, r"more than 0\.001 MB; raise"),
        ({"every": 1, "limit_mb": 0.01}, "frames make a page"),
        ({"mode": "heat"}, "no colour mode"),
    ):
        with pytest.raises(LapjointError, match=message):
            export(run, tmp_path / "a.html", **options)
    with pytest.raises(LapjointError, match=r"unknown kind of page '\.txt'"):
        export(run, tmp_path / "a.txt")
    empty = record_falling(tmp_path / "empty", steps=0)
    with pytest.raises(LapjointError, match="no frames"):
        export(empty, tmp_path / "a.html")
    assert sorted(os.listdir(tmp_path)) == ["empty"]


def test_command_says_what_it_wrote(run: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export_recording(run.path, tmp_path / "a.html")
    assert re.search(r"20 frames \(1 of 3 frames of the recording\), 0.\d\d MB", capsys.readouterr().out)


@pytest.mark.slow
def test_a_page_has_who_is_shown(tmp_path: Path) -> None:
    run = record_changing(tmp_path / "r")
    path = export(run, tmp_path / "run.html", every=1).path
    shown = stream_of(path, "shown")[:, :, 0].astype(bool)
    assert np.array_equal(shown, [run.alive(i) for i in range(len(run))])
    positions = stream_of(path, "positions") * contents(path)[0]["position_step"]
    for i, frame in enumerate(run):
        assert np.allclose(positions[i][shown[i]], frame.states[shown[i], :3], atol=2e-3)
    assert np.array_equal(positions[-1, 0], positions[5, 0])


def test_who_is_not_shown_is_held() -> None:
    shown = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 0], [1, 0, 0]], bool)
    values = np.arange(12).reshape(4, 3)
    assert held(values, shown).T.tolist() == [[3, 3, 3, 9], [1, 4, 4, 4], [2, 2, 2, 2]]


# ---- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: tools/system-packages installs it")
    from playwright.sync_api import sync_playwright

    quiet = ["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
    drawing = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-sync"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*drawing, *quiet])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any, exported: Path) -> Iterator[Any]:
    with opened(browser, exported) as page:
        yield page


@contextmanager
def opened(browser: Any, path: Path) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 480, "height": 300}, offline=True)
    page = context.new_page()
    page.set_default_timeout(120_000)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.goto(path.as_uri())
    page.wait_for_function("window.player && window.player.drawnCount > 0")
    yield page
    assert complaints == []
    context.close()


def shown(page: Any) -> np.ndarray:
    """The canvas, without what lies over it."""
    page.add_style_tag(content="#top, #legend, #bar { visibility: hidden }")
    count = page.evaluate("player.drawnCount")
    page.evaluate("player.redraw()")
    page.wait_for_function(f"player.drawnCount > {count}")
    return np.asarray(Image.open(io.BytesIO(page.locator("#canvas").screenshot())).convert("RGB")).astype(int)


@pytest.mark.slow
def test_page_plays_from_the_disk_to_the_end(page: Any, run: Recording) -> None:
    assert page.title() == "falling <b>"
    last = float(run.times[-1])
    page.wait_for_function(f"!player.playing && player.time > {last - 1e-6}")
    assert f"{last:.2f} / {last:.2f} s" in page.locator("#clock").text_content()
    page.keyboard.press("Space")  # from the start again
    page.wait_for_function(f"player.playing && player.time < {last}")


@pytest.mark.slow
def test_page_looks_like_a_picture(page: Any, run: Recording) -> None:
    page.evaluate(f"player.playing = false; player.seek({float(run.times[12])!r})")
    seen = shown(page)
    recorded = Recorded(run, "worker")
    moment = recorded.frame(12)
    with Renderer(run.scene, (480, 300)) as renderer:
        view = Recorded(run, "worker").frame(0).states
        drawn = renderer.draw(moment.states, moment.colors, renderer.default_camera(view)).astype(int)
    assert np.ptp(seen) > 100
    # Edges are smoothed in other ways, and the renderer draws outlines.
    assert np.abs(seen - drawn).mean() < 6
    assert np.percentile(np.abs(seen - drawn).max(axis=2), 90) < 20


ACROSS = """places => {
    const { clientWidth, clientHeight } = player.canvas;
    const m = player.camera.matrix(clientWidth / clientHeight, 0.1, 1000);
    return places.map((place) => {
        const [x, y, z] = sub(place, player.camera.target);
        return (m[0] * x + m[4] * y + m[8] * z + m[12]) / (m[3] * x + m[7] * y + m[11] * z + m[15]);
    });
}"""
"""Where places are from the left, -1, to the right, 1."""


@pytest.mark.slow
def test_all_bodies_are_seen_in_a_narrow_window(page: Any, run: Recording) -> None:
    places = run.frame(0).states[:, :3].tolist()
    page.evaluate("player.playing = false")
    wide = page.evaluate("player.camera.distance")
    page.set_viewport_size({"width": 130, "height": 400})
    page.wait_for_function(f"player.camera.distance > {1.2 * wide}")
    across = np.abs(page.evaluate(ACROSS, places))
    assert 0.5 < across.max() < 1
    page.evaluate("player.camera.zoom(2); player.home()")
    assert np.abs(page.evaluate(ACROSS, places)) == pytest.approx(across)
    page.set_viewport_size({"width": 480, "height": 300})
    page.wait_for_function(f"player.camera.distance < {1.001 * wide}")


@pytest.mark.slow
def test_bodies_appear_and_vanish_on_a_page(browser: Any, tmp_path: Path) -> None:
    run = record_changing(tmp_path / "r")
    recorded = Recorded(run, "worker")
    with (
        opened(browser, export(run, tmp_path / "run.html", every=1).path) as page,
        Renderer(run.scene, (480, 300)) as renderer,
    ):
        camera = renderer.default_camera(*opening_states(run))
        for i in (0, 6, 11):
            page.evaluate(f"player.playing = false; player.seek({float(run.times[i])!r})")
            seen, moment = shown(page), recorded.frame(i)
            drawn = renderer.draw(moment.states, moment.colors, camera).astype(int)
            assert np.abs(seen - drawn).mean() < 6
            assert np.percentile(np.abs(seen - drawn).max(axis=2), 90) < 20


@pytest.mark.slow
def test_page_scrubs_steps_and_changes_colours(page: Any, run: Recording) -> None:
    page.evaluate("player.playing = false")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("player.time") == pytest.approx(run.times[1])
    page.locator("#scrub").evaluate("bar => { bar.value = 0; bar.dispatchEvent(new Event('input')) }")
    before = shown(page)
    page.locator("#scrub").evaluate("bar => { bar.value = 1000; bar.dispatchEvent(new Event('input')) }")
    after = shown(page)
    assert page.evaluate("player.time") == pytest.approx(run.times[-1])
    assert (np.abs(after - before).max(axis=2) > 40).sum() > 500
    page.evaluate("document.getElementById('bar').style.visibility = 'visible'")
    for number, mode in enumerate(modes_of("blend")):
        page.keyboard.press(str(number + 1))
        page.wait_for_function(f"document.getElementById('mode').value == '{number}'")
        assert page.locator("#mode option:checked").text_content() == mode
    assert page.locator("#legend span").count() >= 2
    assert (np.abs(shown(page) - after).max(axis=2) > 40).sum() > 200


@pytest.mark.slow
def test_page_turns_zooms_and_comes_home(page: Any) -> None:
    page.evaluate("player.playing = false; player.seek(0)")
    first = shown(page)
    page.mouse.move(240, 150)
    page.mouse.down()
    page.mouse.move(340, 130)
    page.mouse.up()
    page.mouse.wheel(0, -200)
    page.wait_for_function(
        "Math.abs(player.camera.distance / Math.hypot(...player.camera.first.eye.map((x, k) => "
        "x - player.camera.first.target[k])) - 1) > 0.1"
    )
    turned = shown(page)
    assert (np.abs(turned - first).max(axis=2) > 40).sum() > 500
    page.keyboard.press("r")
    assert np.abs(shown(page) - first).max() < 3
