"""Static bodies that move are seen where they are: in recordings, pictures, films, pages and exported pages."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lapjoint import Box, ConstantVelocity, LapjointError, Params, Plane, Recording, Rotation, Scene, Simulation
from lapjoint.run import run
from lapjoint.view.draw.picture import frame_picture, picture
from lapjoint.view.draw.recorded import Recorded
from lapjoint.view.draw.renderer import Renderer
from lapjoint.view.export.export import export
from lapjoint.view.page.picking import Picker
from lapjoint.view.page.snapshot import of_recording, of_simulation
from parallel_support import poll
from view_support import LIMIT_S, live_view

STEPS, EVERY = 100, 20
FACING = ((0.0, -8.0, 1.0), (0.0, 0.0, 1.0))


def carousel() -> Scene:
    """A ground that rises, a board that turns, a slab that is told to move, and a box far from all of them."""
    scene = Scene("carousel", timestep=0.01)
    scene.add_kinematic(Plane(), (0, 0, -3), motion=ConstantVelocity((0, 0, 0.5)))
    scene.add_kinematic(Box((2.0, 0.2, 0.2)), (0, 0, 1), motion=Rotation((0, 1, 0), np.pi / 2))
    scene.add_kinematic(Box((0.5, 0.5, 0.5)), (-3, 0, 1))
    scene.add_static(Box((0.5, 0.5, 0.5)), (0, 0, 3), surface_velocity=(1, 0, 0))
    scene.add_body(Box((0.3, 0.3, 0.3)), (6, 0, 30))
    scene.camera = FACING
    return scene


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("recording") / "run"
    with Simulation(carousel(), Params(runtime="inline")) as simulation:
        simulation.kinematic.set_motion([2], ConstantVelocity((2.0, 0, 0)))
        run(simulation, STEPS, record=path, record_every=EVERY)
    return Recording(path)


def test_a_recording_has_where_kinematic_bodies_are(recording: Recording, tmp_path: Path) -> None:
    assert recording.kinematic_count == 3
    for frame in range(5):
        poses, time = recording.static_poses(frame), recording.times[frame]
        assert poses[0, 2] == pytest.approx(-3 + 0.5 * time)
        assert poses[1, 3:] == pytest.approx([np.cos(np.pi * time / 4), 0, np.sin(np.pi * time / 4), 0])
        assert poses[2, 0] == pytest.approx(-3 + 2 * time), "as it was told"
        assert poses[3].tolist() == [0, 0, 3, 1, 0, 0, 0]
    between = Recorded(recording).at(0.5 * (recording.times[1] + recording.times[2])).static_poses
    assert between is not None
    assert between[2, 0] == pytest.approx(np.mean([recording.static_poses(i)[2, 0] for i in (1, 2)]))


def test_a_recording_of_a_scene_without_any_has_none(tmp_path: Path) -> None:
    scene = Scene()
    scene.add_static(Plane())
    scene.add_body(Box((1, 1, 1)), (0, 0, 1))
    with Simulation(scene, Params(runtime="inline")) as simulation:
        run(simulation, 2, record=tmp_path / "run")
    plain = Recording(tmp_path / "run")
    assert plain.kinematic_count == 0
    assert not (tmp_path / "run" / "kinematic_poses").exists()
    assert plain.static_poses(0).tolist() == [[0, 0, 0, 1, 0, 0, 0]]
    assert of_recording(plain, 0).static_poses is None


def dark_places(pixels: Any) -> tuple[Any, Any]:
    """Rows and columns of what is neither background nor ground."""
    rows, columns = np.nonzero(np.asarray(pixels, int).sum(axis=2) < 560)
    return rows, columns


@pytest.mark.slow
def test_pictures_show_kinematic_bodies_where_they_are(recording: Recording, tmp_path: Path) -> None:
    """After one second the board stands upright."""
    scene, poses = recording.scene, recording.static_poses(4)
    seen = {}
    for name, path in (
        ("start", picture(scene, tmp_path / "start.png", camera=FACING)),
        ("end", picture(scene, tmp_path / "end.png", camera=FACING, static_poses=poses)),
        ("frame", frame_picture(recording, tmp_path / "frame.png")),
    ):
        seen[name] = np.asarray(Image.open(path).convert("RGB"))
    middle = seen["start"].shape[1] // 2
    near = slice(middle - 50, middle + 50)
    _, columns = dark_places(seen["start"][200:340, near])
    wide = np.ptp(columns)
    rows, columns = dark_places(seen["end"][150:450, near])
    assert np.ptp(rows) > 4 * np.ptp(columns), "upright"
    assert wide > 4 * np.ptp(columns)
    assert np.abs(seen["end"].astype(int) - seen["frame"]).mean() < 1, "but for the body and its shadow"
    with (
        Renderer(scene, (64, 36)) as renderer,
        pytest.raises(LapjointError, match=r"static poses are \(3, 7\), expected"),
    ):
        renderer.draw(static_poses=poses[:3])


def test_a_page_s_moment_has_where_they_are(recording: Recording) -> None:
    assert np.array_equal(of_recording(recording, 2).static_poses, recording.static_poses(2))
    with Simulation(carousel(), Params(runtime="inline")) as simulation:
        simulation.step(10)
        moment = of_simulation(simulation)
        assert moment.static_poses is not None
        assert moment.static_poses[0, 2] == pytest.approx(-2.95)


def test_a_body_is_hidden_by_what_has_moved_before_it() -> None:
    scene = carousel()
    picker, states = Picker(scene), scene.states
    poses = np.concatenate([scene.statics.position, scene.statics.quaternion], axis=1)
    assert picker.pick(states, (6, -5, 30), (0, 1, 0), alive=scene.alive)[0] == 0
    poses[2, :3] = 6, -2, 30
    assert picker.pick(states, (6, -5, 30), (0, 1, 0), poses, alive=scene.alive)[0] == -1


def test_a_page_moves_them(recording: Recording) -> None:
    poses = recording.static_poses(4)
    with live_view(carousel(), Params(runtime="inline"), wait=True) as view:
        snapshot = of_recording(recording, 4)
        view.page.offer(snapshot)
        assert poll(lambda: view.page.snapshot is snapshot, LIMIT_S)
        nodes = view.page.nodes
        assert nodes._planes[0].position == pytest.approx(poses[0, :3])
        meshes = [(ids.tolist(), mesh.batched_positions) for ids, mesh in nodes._statics]
        drawn = {number: place for ids, places in meshes for number, place in zip(ids, places, strict=True)}
        assert sorted(drawn) == [1, 2, 3]
        for number, place in drawn.items():
            assert place == pytest.approx(poses[number, :3], abs=1e-6)


@pytest.mark.slow
def test_an_exported_page_moves_them(recording: Recording, tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium on this machine: tools/system-packages installs it")
    from playwright.sync_api import sync_playwright

    path = export(recording, tmp_path / "page.html", every=1).path
    drawing = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-sync"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=drawing)
        page = browser.new_page(viewport={"width": 480, "height": 300})
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_function("window.player && !window.player.playing && window.player.drawnCount > 0")
        rows = page.evaluate("Array.from(player.rows.places)")
        turns = page.evaluate("Array.from(player.rows.turns)")
        picture = np.asarray(Image.open(io.BytesIO(page.locator("#canvas").screenshot())))
        browser.close()
    assert complaints == []
    assert picture.std() > 1
    places, last = np.reshape(rows, (-1, 3)), recording.static_poses(4)
    assert places[1:] == pytest.approx(last[1:, :3], abs=1e-3), "the body, then static bodies without planes"
    assert np.abs(np.sum(np.reshape(turns, (-1, 4))[1:] * last[1:, 3:], axis=1)) == pytest.approx(np.ones(3), abs=1e-3)
