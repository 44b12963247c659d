"""An exported glTF file in a real browser, beside the project's own picture of the same frame."""

from __future__ import annotations

import base64
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from film_support import record_changing
from lapjoint import Recording
from lapjoint.view import Camera, Renderer
from lapjoint.view.draw.recorded import Recorded
from lapjoint.view.export.frames import frames_of_recording
from lapjoint.view.export.gltf import write_gltf

pytestmark = pytest.mark.slow
VIEWER = Path(__file__).parents[1] / "data" / "gltf_viewer.html"
SIZE = (640, 360)
CAMERA = Camera((1.0, -7.0, 2.5), (0.3, 0.0, 0.8))
DRAWING = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    path = shutil.which("chromium")
    if path is None:
        if os.geteuid() == 0 and shutil.which("apt-get"):
            pytest.fail("Chromium is missing; `make setup` installs it here (tools/system-packages)")
        pytest.skip("Chromium is not installed, and cannot be without an administrator: apt-get install chromium")
    with sync_playwright() as playwright:
        options: dict[str, Any] = {"executable_path": path, "args": ["--no-sandbox", "--disable-quic", *DRAWING]}
        chromium = playwright.chromium.launch(**options)
        page = chromium.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        page.set_content(VIEWER.read_text())
        yield page
        chromium.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record_changing(tmp_path_factory.mktemp("browser") / "run")


def is_colored(pixels: np.ndarray) -> np.ndarray:
    """Bodies have the colours of their workers; static bodies, the ground and the sky are grey."""
    values = pixels.astype(int)
    return values.max(axis=2) - values.min(axis=2) > 45


@pytest.mark.parametrize("number", [0, 6, 11])
def test_a_browser_shows_what_the_picture_shows(tab: Page, run: Recording, number: int, tmp_path: Path) -> None:
    path = tmp_path / "run.glb"
    write_gltf(frames_of_recording(run), path)
    moment = Recorded(run).frame(number)
    with Renderer(run.scene, SIZE) as renderer:
        own = renderer.draw(moment.states, moment.colors, CAMERA)
    # The picture's camera, in the file's frame, where y is up.
    up = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
    projection = CAMERA.projection(SIZE[0] / SIZE[1], 0.1, 100.0)
    matrix = projection @ CAMERA.view(np.zeros(3)) @ np.linalg.inv(up)
    time = float(run.times[number] - run.times[0])
    count = tab.evaluate(
        "([file, time, view]) => window.show(file, time, view)",
        [base64.b64encode(path.read_bytes()).decode(), time, matrix.T.ravel().tolist()],
    )
    assert count == run.alive(number).sum() + run.scene.static_count
    shown = np.array(Image.open(io.BytesIO(tab.screenshot())).convert("RGB"))
    folder = os.environ.get("LAPJOINT_LOOK")
    if folder:
        Image.fromarray(np.concatenate([own, shown])).save(Path(folder) / f"browser-{number}.png")
    mine, theirs = is_colored(own), is_colored(shown)
    assert mine.sum() > 2000
    assert (mine & theirs).sum() > 0.9 * (mine | theirs).sum()
    # And in the same colours: more red than blue, or the other way round.
    both = mine & theirs
    red = [pixels[both][:, 0].astype(int) > pixels[both][:, 2] for pixels in (own, shown)]
    assert (red[0] == red[1]).mean() > 0.98
