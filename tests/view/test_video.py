"""Films and pictures of recordings: frames, sizes, colours, cameras, and what is refused."""

from __future__ import annotations

import builtins
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageSequence
from typer.testing import CliRunner

from film_support import record_falling
from lapjoint import LapjointError, Recording
from lapjoint.cli import app
from lapjoint.view import Shot, frame_picture, video
from lapjoint.view.draw.cameras import PRESETS, CameraPath
from lapjoint.view.draw.coloring import modes_of
from lapjoint.view.draw.encoder import encoding, find_ffmpeg
from lapjoint.view.draw.recorded import Recorded, between_states
from lapjoint.view.draw.renderer import Renderer

SIZE = (96, 54)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record_falling(tmp_path_factory.mktemp("video") / "run")


def decoded(path: Path, size: tuple[int, int]) -> np.ndarray:
    """The frames of a film, through ffmpeg."""
    command = [find_ffmpeg(), "-loglevel", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, size[1], size[0], 3).astype(int)


def check_frames(frames: np.ndarray, count: int) -> None:
    assert len(frames) == count
    assert all(np.ptp(frame) > 100 for frame in frames)  # none is blank
    assert all(np.abs(b - a).max() > 20 for a, b in itertools.pairwise(frames))  # all differ


# ---- films -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_mp4_has_the_frames_the_size_and_the_motion(run: Recording, tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    film = video(run, tmp_path / "a.mp4", size=SIZE, fps=20, on_frame=lambda i, n: done.append((i, n)))
    times = run.times
    count = int((times[-1] - times[0]) * 20 + 1e-6) + 1
    assert (film.frame_count, film.size, film.path) == (count, SIZE, tmp_path / "a.mp4")
    assert done == [(i + 1, count) for i in range(count)]
    check_frames(decoded(film.path, SIZE), count)
    assert os.listdir(tmp_path) == ["a.mp4"]


def test_a_film_shows_what_the_renderer_draws(run: Recording, tmp_path: Path) -> None:
    video(run, tmp_path / "a.mp4", size=SIZE, fps=10, quality=100, with_caption=False, end=0.2)
    frames = decoded(tmp_path / "a.mp4", SIZE)
    recorded = Recorded(run, "worker")
    with Renderer(run.scene, SIZE) as renderer:
        for frame, time in zip(frames, run.times[0] + np.arange(len(frames)) / 10, strict=True):
            moment = recorded.at(float(time))
            view = renderer.default_camera(recorded.frame(0).states)
            assert np.abs(frame - renderer.draw(moment.states, moment.colors, view)).mean() < 3


def test_odd_sizes_become_even_in_mp4_only(run: Recording, tmp_path: Path) -> None:
    film = video(run, tmp_path / "a.mp4", size=(95, 53), fps=5)
    assert film.size == (96, 54)
    check_frames(decoded(film.path, (96, 54)), film.frame_count)
    assert video(run, tmp_path / "a.gif", size=(95, 53), fps=5).size == (95, 53)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["gif", "webp"])
def test_animated_pictures(run: Recording, tmp_path: Path, ending: str) -> None:
    film = video(run, tmp_path / f"a.{ending}", size=SIZE, fps=10)
    with Image.open(film.path) as image:
        assert image.size == SIZE
        assert image.info.get("loop") == 0  # for ever
        frames = [np.asarray(frame.convert("RGB")).astype(int) for frame in ImageSequence.Iterator(image)]
        assert image.info["duration"] == 100
    check_frames(np.stack(frames), film.frame_count)
    assert os.listdir(tmp_path) == [f"a.{ending}"]


def test_speed_start_and_end_choose_the_part(run: Recording, tmp_path: Path) -> None:
    slow = video(run, tmp_path / "a.gif", size=(32, 18), fps=10, speed=0.25, start=0.1, end=0.3)
    assert slow.frame_count == 9
    assert slow.seconds == pytest.approx(0.9)


def test_caption_is_written_below(run: Recording, tmp_path: Path) -> None:
    size = (320, 180)
    frames = {}
    for with_caption in (False, True):
        film = video(run, tmp_path / "a.mp4", size=size, fps=10, end=0.1, with_caption=with_caption)
        frames[with_caption] = decoded(film.path, size)
    differs = np.abs(frames[True] - frames[False]).max(axis=(0, 3)) > 60
    rows, columns = np.nonzero(differs)
    assert differs.sum() > 200
    assert rows.min() > 0.85 * size[1]
    assert columns.min() < 0.1 * size[0]
    assert columns.max() > 0.9 * size[0]  # the workers' colours


def test_states_are_interpolated_between_frames(run: Recording) -> None:
    recorded = Recorded(run, "label")
    a, b = recorded.frame(3), recorded.frame(4)
    half = recorded.at((a.time + b.time) / 2)
    assert np.allclose(half.states[:, :3], (a.states[:, :3] + b.states[:, :3]) / 2)
    assert np.allclose(np.linalg.norm(half.states[:, 3:7], axis=1), 1)
    assert np.array_equal(recorded.at(a.time).states, a.states)
    assert np.array_equal(recorded.at(1e9).states, recorded.frame(-1).states)


def test_orientations_take_the_short_way() -> None:
    a, b = np.zeros((1, 13)), np.zeros((1, 13))
    a[0, 3:7], b[0, 3:7] = (1, 0, 0, 0), (-np.cos(0.2), -np.sin(0.2), 0, 0)  # 0.4 about x, with the other sign
    assert np.allclose(between_states(a, b, 0.5)[0, 3:7], [np.cos(0.1), np.sin(0.1), 0, 0])


def test_interrupted_film_leaves_nothing(run: Recording, tmp_path: Path) -> None:
    def stop(done: int, count: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    (tmp_path / "a.mp4").write_text("the old one")
    for name in ("a.mp4", "a.gif"):
        with pytest.raises(KeyboardInterrupt):
            video(run, tmp_path / name, size=SIZE, on_frame=stop)
    assert os.listdir(tmp_path) == ["a.mp4"]
    assert (tmp_path / "a.mp4").read_text() == "the old one"


def test_films_in_the_documents_are_small_and_move() -> None:
    films = sorted((Path(__file__).parents[2] / "docs" / "films").iterdir())
    names = ["bowl", "building", "chain-net", "crowd", "drum", "four-way-bridge", "pane", "two-way-bridge", "wrecking"]
    assert [film.name for film in films] == [f"{name}.webp" for name in names]
    assert sum(film.stat().st_size for film in films) < 4_500_000
    for film in films:
        with Image.open(film) as image:
            assert getattr(image, "n_frames", 1) > 60
            assert image.size == (480, 270)


# ---- cameras and colours ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_has_all_bodies_in_the_picture(run: Recording, preset: str) -> None:
    recorded = Recorded(run, "label")
    moment = recorded.frame(0)
    red = np.tile([0.9, 0.1, 0.1], (run.body_count, 1))
    with Renderer(run.scene, SIZE) as renderer:
        path = CameraPath(Shot(preset), renderer, recorded)
        pixels = renderer.draw(moment.states, red, path.camera(moment.states)).astype(int)
    hit = (pixels[..., 0] > 1.6 * pixels[..., 1]) & (pixels[..., 0] > 1.6 * pixels[..., 2])
    assert hit.sum() > 60
    assert not hit[[0, -1]].any()
    assert not hit[:, [0, -1]].any()


def test_orbit_follow_zoom_and_numbers(run: Recording) -> None:
    recorded = Recorded(run, "label")
    states = recorded.frame(-1).states
    with Renderer(run.scene, SIZE) as renderer:
        fixed = CameraPath(Shot("10,0,2,0,0,1"), renderer, recorded).camera(states)
        assert (fixed.eye, fixed.target) == ((10, 0, 2), (0, 0, 1))
        turned = CameraPath(Shot("10,0,2,0,0,1", orbit=45), renderer, recorded).camera(states, 2.0)
        assert np.allclose(turned.eye, (0, 10, 2))
        near = CameraPath(Shot("10,0,2,0,0,1", zoom=2, follow="body 4"), renderer, recorded).camera(states)
        assert np.allclose(near.target, states[4, :3])
        assert np.allclose(np.subtract(near.eye, near.target), (5, 0, 0.5))


@pytest.mark.slow
@pytest.mark.parametrize("mode", modes_of("blend"))
def test_picture_of_a_frame_in_every_mode(run: Recording, tmp_path: Path, mode: str) -> None:
    path = frame_picture(run, tmp_path / "a.png", -1, size=SIZE, mode=mode)
    pixels = np.asarray(Image.open(path))
    assert pixels.shape == (54, 96, 3)
    plain = np.asarray(Image.open(frame_picture(run, tmp_path / "b.png", 0, size=SIZE, mode="label")))
    assert np.abs(plain.astype(int) - pixels).max() > 40
    recorded = Recorded(run, mode)
    with Renderer(run.scene, SIZE) as renderer:
        first, last = recorded.frame(0), recorded.frame(-1)
        drawn = renderer.draw(last.states, last.colors, renderer.default_camera(first.states))
    assert np.array_equal(drawn, pixels)


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fps": 0}, "fps is 0"),
        ({"speed": -1}, "speed is -1"),
        ({"quality": 0}, "quality is 0"),
        ({"size": (0, 4)}, "size is 0 x 4"),
        ({"mode": "heat"}, "no colour mode 'heat'"),
        ({"start": 9.0}, "start is 9 s, expected a time of the recording"),
        ({"start": 0.4, "end": 0.2}, "the start before the end"),
        ({"shot": Shot(follow="77")}, "no body 77, expected 0 to 5"),
        ({"shot": Shot(follow="nobody")}, "nobody"),
    ],
)
def test_wrong_options_are_refused(run: Recording, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(LapjointError, match=message):
        video(run, tmp_path / "a.mp4", **options)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [({"camera": "up"}, "no camera 'up', expected scene, all"), ({"zoom": 0}, "zoom is 0"), ({"camera": "1,2"}, "six")],
)
def test_wrong_shots_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LapjointError, match=message):
        Shot(**options)


def test_wrong_files_are_refused(run: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LapjointError, match=r"unknown kind of film '.avi', expected .* .mp4, .gif or .webp"):
        video(run, tmp_path / "a.avi")
    with pytest.raises(LapjointError, match="there is no directory"):
        video(run, tmp_path / "none" / "a.mp4")
    (tmp_path / "a.mp4").mkdir()
    with pytest.raises(LapjointError, match="is a directory"):
        video(run, tmp_path / "a.mp4")
    (tmp_path / "b.mp4").touch()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(LapjointError, match=r"b.mp4: cannot be written, permission denied"):
        video(run, tmp_path / "b.mp4")


def test_empty_recordings_and_missing_contacts_are_refused(tmp_path: Path) -> None:
    empty = record_falling(tmp_path / "empty", steps=0)
    with pytest.raises(LapjointError, match="empty: the recording has no frames"):
        video(empty, tmp_path / "a.mp4")
    bare = record_falling(tmp_path / "bare", steps=10, contacts=False)
    with pytest.raises(LapjointError, match=r"recorded without contacts.*--record-contacts"):
        video(bare, tmp_path / "a.mp4", mode="contacts")


def test_missing_ffmpeg_names_the_extra(run: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name == "imageio_ffmpeg":
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LapjointError, match=r"films need ffmpeg.*pip install 'lapjoint\[video\]'"):
        video(run, tmp_path / "a.mp4")


def test_a_failing_ffmpeg_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "ffmpeg"
    fake.write_text(f"#!{sys.executable}\nimport sys\nsys.stderr.write('no such codec\\n')\nsys.exit(3)\n")
    fake.chmod(0o755)
    monkeypatch.setattr("lapjoint.view.draw.encoder.find_ffmpeg", lambda: str(fake))

    def film() -> None:
        with encoding(tmp_path / "a.mp4", (480, 270), 10, 50) as sink:
            for _ in range(50):
                sink.add(np.zeros((270, 480, 3), np.uint8))

    with pytest.raises(LapjointError, match=r"a.mp4: ffmpeg failed with code 3: no such codec"):
        film()
    assert os.listdir(tmp_path) == ["ffmpeg"]


# ---- commands --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_commands(run: Recording, tmp_path: Path) -> None:
    runner = CliRunner()
    small = ["--width", "64", "--height", "36"]
    film = str(tmp_path / "a.gif")
    done = runner.invoke(app, ["video", str(run.path), film, *small, "--fps", "5", "--color", "speed", "--orbit", "9"])
    assert done.exit_code == 0, done.output
    assert "frames of 64 x 36" in done.output
    pictures = {}
    for option in (["--frame", "0"], ["--time", "0.3"], []):
        file = tmp_path / "a.png"
        done = runner.invoke(app, ["picture", str(run.path), str(file), *small, *option, "--caption"])
        assert done.exit_code == 0, done.output
        pictures[" ".join(option)] = file.read_bytes()
    assert len(set(pictures.values())) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["RUN", "a.png", "--frame", "1", "--time", "2"], "--frame and --time are both given"),
        (["RUN", "a.png", "--frame", "999"], "no frame 999"),
        (["bowl", "a.png", "--frame", "1"], "--frame is given, but bowl is no recording"),
        (["bowl", "a.png", "--color", "worker"], "--color is given"),
        (["RUN", "a.jpg"], "unknown kind of picture '.jpg'"),
    ],
)
def test_wrong_picture_commands(
    run: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [str(run.path) if word == "RUN" else word for word in arguments]
    done = CliRunner().invoke(app, ["picture", *given])
    assert isinstance(done.exception, LapjointError)
    assert message in str(done.exception)


@pytest.mark.slow
def test_contacts_can_be_recorded_by_the_command(tmp_path: Path) -> None:
    given = ["run", "plank", "--steps", "60", "--record", str(tmp_path / "run"), "--record-contacts"]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    assert len(Recording(tmp_path / "run").contacts(-1)) > 0
    done = CliRunner().invoke(app, ["run", "plank", "--record-contacts"])
    assert "--record-contacts is given without --record" in str(done.exception)
