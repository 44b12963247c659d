"""Encoder: frames into a film through ffmpeg, by a pipe."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ...errors import LapjointError
from ...waits import wait_within
from .output import replacing

ENDINGS = (".mp4", ".gif", ".webp")
FRAME_S = 300.0
"""How long ffmpeg may take no frame [s]."""
FILM_S = 3600.0
"""What it may take for a film when it has all frames [s]: a GIF is made then."""
KILL_S = 30.0
Pixels = NDArray[np.uint8]


def find_ffmpeg() -> str:
    """The program that `imageio-ffmpeg` carries, or the system's."""
    try:
        import imageio_ffmpeg

        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        found = shutil.which("ffmpeg")
    if found is None:
        raise LapjointError("films need ffmpeg, which is not installed: pip install 'lapjoint[video]'")
    return found


def film_size(path: Path, size: tuple[int, int]) -> tuple[int, int]:
    """The size of a film in this kind of file: MP4 halves the colours' resolution, so it needs even numbers."""
    if path.suffix.lower() != ".mp4":
        return size
    return size[0] + size[0] % 2, size[1] + size[1] % 2


class FrameSink:
    """Takes frames one by one."""

    def __init__(self, path: Path, pipe: IO[bytes], size: tuple[int, int]) -> None:
        self._path, self._fd = path, pipe.fileno()
        os.set_blocking(self._fd, False)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLOUT)
        self._shape = (size[1], size[0], 3)

    def add(self, pixels: Pixels) -> None:
        if pixels.shape != self._shape or pixels.dtype != np.uint8:
            raise LapjointError(f"a frame has shape {pixels.shape}, expected {self._shape} of uint8")
        left = np.ascontiguousarray(pixels).data.cast("B")
        while len(left):
            if not wait_within(FRAME_S, lambda seconds: self._poll.poll(1e3 * seconds)):
                raise LapjointError(f"{self._path}: ffmpeg has taken nothing for {FRAME_S:.3g} s")
            left = left[os.write(self._fd, left) :]


@contextmanager
def encoding(path: Path, size: tuple[int, int], fps: float, quality: int) -> Iterator[FrameSink]:
    """Write frames to a film. It appears under its name when all frames are in it, or not at all."""
    program = find_ffmpeg()
    width, height = size
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:.6g}", "-i", "-"]
    with replacing(path) as part:
        if path.suffix.lower() == ".mp4":
            with _ffmpeg(program, path, [*raw, *_mp4(quality), str(part)], size) as sink:
                yield sink
        elif path.suffix.lower() == ".webp":
            # Level 4: 6 takes hundreds of times as long.
            codec = ["-c:v", "libwebp_anim", "-quality", str(quality), "-compression_level", "4", "-loop", "0"]
            with _ffmpeg(program, path, [*raw, *codec, "-f", "webp", str(part)], size) as sink:
                yield sink
        else:
            with tempfile.TemporaryDirectory(prefix="lapjoint-") as folder:
                # The palette is known only when all frames are: they are kept without loss until then.
                whole, palette = f"{folder}/film.mkv", f"{folder}/palette.png"
                codec = ["-c:v", "libx264rgb", "-qp", "0", "-preset", "ultrafast"]
                with _ffmpeg(program, path, [*raw, *codec, whole], size) as sink:
                    yield sink
                colors = int(np.clip(round(2.56 * quality), 8, 256))
                _run(program, path, ["-i", whole, "-vf", f"palettegen=max_colors={colors}:stats_mode=full", palette])
                use = "paletteuse=dither=bayer:bayer_scale=4:diff_mode=rectangle"
                _run(program, path, ["-i", whole, "-i", palette, "-lavfi", use, "-loop", "0", "-f", "gif", str(part)])


def _mp4(quality: int) -> list[str]:
    # Rate factors from 44 (poor) to 12 (hardly a difference); the moov atom first, so that browsers start at once.
    matrix = ["-vf", "scale=out_color_matrix=bt709:out_range=tv", "-colorspace", "bt709", "-color_primaries", "bt709"]
    codec = ["-c:v", "libx264", "-preset", "slow", "-crf", str(round(44 - 0.32 * quality)), "-pix_fmt", "yuv420p"]
    return [*matrix, "-color_trc", "bt709", *codec, "-movflags", "+faststart", "-f", "mp4"]


@contextmanager
def _ffmpeg(program: str, path: Path, arguments: Sequence[str], size: tuple[int, int]) -> Iterator[FrameSink]:
    """ffmpeg at work on what comes through the pipe; killed when anything goes wrong."""
    command = [program, "-hide_banner", "-loglevel", "error", "-y", *arguments]
    with tempfile.TemporaryFile() as complaints:
        # In a session of its own: Ctrl-C ends us, and we end ffmpeg.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=complaints, start_new_session=True
        )
        assert process.stdin is not None
        try:
            yield FrameSink(path, process.stdin, size)
            process.stdin.close()
            code = _exit_code(process, path)
        except BrokenPipeError:
            code = _exit_code(process, path) or -1  # it went before it had all frames
        finally:
            _kill(process)
            if not process.stdin.closed:
                with suppress(BrokenPipeError):
                    process.stdin.close()
        _check(code, path, complaints)


def _run(program: str, path: Path, arguments: Sequence[str]) -> None:
    with tempfile.TemporaryFile() as complaints:
        command = [program, "-hide_banner", "-loglevel", "error", "-nostdin", "-y", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=complaints)
        try:
            code = _exit_code(process, path)
        finally:
            _kill(process)
        _check(code, path, complaints)


def _exit_code(process: subprocess.Popen[bytes], path: Path) -> int:
    """When it is done. A LapjointError, if it takes too long."""

    def is_done(seconds: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return process.returncode is not None

    if not wait_within(FILM_S, is_done):
        raise LapjointError(f"{path}: ffmpeg has not ended within {FILM_S:.3g} s")
    return int(process.returncode)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Unless it has ended."""
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(KILL_S)


def _check(code: int, path: Path, complaints: IO[bytes]) -> None:
    if code == 0:
        return
    complaints.seek(0)
    lines = [line for line in complaints.read().decode(errors="replace").splitlines() if line.strip()]
    raise LapjointError(f"{path}: ffmpeg failed with code {code}: {lines[-1] if lines else 'no message'}")
