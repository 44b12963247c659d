"""Export: a recording as one page that plays by itself: offline, from the disk, in any browser of today.

The page holds a player (`player/`), the scene's surfaces, and positions, orientations and colours of every frame as
`streams` make them small. It shades with the renderer's own shaders.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import LapjointError
from ...recording import Recording
from ...scene import Sphere
from ..draw.coloring import MODES, modes_of
from ..draw.output import checked_file, replacing
from ..draw.recorded import Recorded, opening_states
from ..draw.stage import Stage
from .player_page import fill_page
from .scene import scene_parts
from .streams import Stream, held, pack, steady

FRAMES_PER_SECOND = 30.0
"""Simulated; what lies between is interpolated."""
TURN_STEP = 1 / 2000
"""Quaternions are whole multiples of it: at most 0.06 degrees off."""
_MOST_NUMBERS = 60_000_000
"""In a page: more would fill a browser's memory."""
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Exported:
    """What was written."""

    path: Path
    frame_count: int
    every: int
    """Recorded frames from one frame of the page to the next."""
    byte_count: int


def export(
    recording: Recording,
    path: str | Path,
    *,
    every: int | None = None,
    limit_mb: float = 50.0,
    mode: str = "worker",
    on_frame: Callable[[int, int], None] | None = None,
) -> Exported:
    """Write a recording as a page of at most `limit_mb` megabytes.

    Of the recording every `every`-th frame is kept; if not given, so many that there are 30 a second, and fewer where
    the page would become too large. `mode` is the colour mode it opens with. `on_frame` is called with the number of
    frames read, and of all.
    """
    path = checked_file(path, "page", (".html", ".htm"))
    if every is not None and every < 1:
        raise LapjointError(f"every is {every}, expected at least 1")
    if not limit_mb > 0:
        raise LapjointError(f"the limit is {limit_mb:g} MB, expected more than 0")
    first = Recorded(recording, mode)
    stage = Stage(recording.scene)
    spacing = recording.every * recording.timestep
    stride = every or max(1, round(1 / (FRAMES_PER_SECOND * spacing)))
    while True:
        numbers = list(range(0, recording.frame_count, stride))
        size = 7 * len(numbers) * recording.body_count
        page = b"" if size > _MOST_NUMBERS else _page(first, stage, numbers, on_frame)
        if page and len(page) <= 1e6 * limit_mb:
            break
        what = f"{len(page) / 1e6:.1f} MB, more than {limit_mb:g} MB" if page else "too large for a browser"
        if every is not None or len(numbers) <= 2:
            raise LapjointError(f"{path}: {len(numbers)} frames make a page that is {what}; raise `every` or the limit")
        stride = max(
            stride + 1, int(np.ceil(stride * (len(page) / (1e6 * limit_mb) if page else size / _MOST_NUMBERS)))
        )
    with replacing(path) as part:
        part.write_bytes(page)
    return Exported(path, len(numbers), stride, len(page))


def _page(opening: Recorded, stage: Stage, numbers: list[int], on_frame: Callable[[int, int], None] | None) -> bytes:
    recording, scene = opening.recording, stage.scene
    head, arrays = scene_parts(stage, opening_states(recording))
    modes = modes_of(recording.params.coupling, recording.has_contacts)
    coloured = [Recorded(recording, mode) for mode in modes]
    round_shapes = np.array([isinstance(shape, Sphere) for shape in scene.shapes], bool)
    turning = np.flatnonzero(~round_shapes[scene.bodies.shape_id])  # nobody sees how a ball is turned
    positions = np.zeros((len(numbers), scene.body_count, 3))
    quaternions = np.zeros((len(numbers), len(turning), 4))
    shown = np.zeros((len(numbers), scene.body_count), bool)
    paints = [np.zeros((len(numbers), scene.body_count), np.int32) for _ in modes]
    for row, number in enumerate(numbers):
        states = recording.frame(number).states
        places, turns, there = (values[: scene.body_count] for values in stage.places(states))
        positions[row], quaternions[row], shown[row] = places, turns[turning], there
        for paint, recorded in zip(paints, coloured, strict=True):
            paint[row] = _packed(recorded.frame(number).colors)
        if on_frame is not None:
            on_frame(row + 1, len(numbers))
    length = max(float(np.median(stage.batch.radii[: scene.body_count])) if scene.body_count else 1.0, 1e-6) / 400
    if recording.has_changes:
        # Whoever is not there stays where it was, which takes no space, and is not drawn.
        positions, quaternions = held(positions, shown), held(quaternions, shown[:, turning])
        paints = [held(paint, shown) for paint in paints]
    streams: dict[str, Stream] = {}
    streams["positions"], streams["quaternions"] = _pose_streams(positions, quaternions, length)
    if recording.has_changes:
        streams["shown"] = pack(shown[:, :, None].astype(np.int64))
    kinematic = np.flatnonzero(np.isin(stage.batch.static_ids, scene.kinematic_ids))
    if len(kinematic):
        ids = stage.batch.static_ids[kinematic]
        poses = np.stack([recording.static_poses(number)[ids] for number in numbers])
        pair = _pose_streams(poses[:, :, :3], poses[:, :, 3:], length)
        streams["kinematic positions"], streams["kinematic quaternions"] = pair
        arrays["kinematic"] = (scene.body_count + kinematic).astype("<u4")
    tables = []
    for recorded, paint in zip(coloured, paints, strict=True):
        table, index = np.unique(paint, return_inverse=True)
        streams[f"colors {recorded.mode}"] = pack(index.reshape(*paint.shape, 1).astype(np.int64))
        entries = [{"text": entry.text, "color": _hex(entry.color)} for entry in recorded.legend()]
        about = {"name": recorded.mode, "about": MODES[recorded.mode], "legend": entries if len(entries) <= 24 else []}
        tables.append({**about, "colors": [f"#{color:06x}" for color in table.tolist()]})
    arrays["turning"] = turning.astype("<u4")
    head |= {
        "name": scene.name,
        "workers": recording.worker_count,
        "times": [round(float(recording.times[i]), 6) for i in numbers],
        "position_step": length,
        "modes": tables,
        "mode": opening.mode,
        "frames": numbers,
    }
    return fill_page(scene.name, head, *_blob(arrays, streams))


def _pose_streams(positions: Array, quaternions: Array, length: float) -> tuple[Stream, Stream]:
    """Of rows that move, positions in multiples of a length."""
    turns = np.round(steady(quaternions) / TURN_STEP).astype(np.int64)
    return pack(np.round(positions / length).astype(np.int64)), pack(turns)


def _packed(colors: Array) -> NDArray[np.int32]:
    """Colours as 0xrrggbb, in 64 steps each: few distinct ones, and no step can be seen."""
    steps = np.round(np.round(colors * 63) / 63 * 255).astype(np.int32)
    return (steps[:, 0] << 16) + (steps[:, 1] << 8) + steps[:, 2]


def _hex(color: tuple[float, float, float]) -> str:
    return "#" + "".join(f"{round(255 * share):02x}" for share in color)


def _blob(arrays: dict[str, NDArray[Any]], streams: dict[str, Stream]) -> tuple[dict[str, Any], str]:
    """Where each array and stream is, and all of them as one compressed text."""
    places: dict[str, Any] = {}
    pieces: list[bytes] = []
    offset = 0

    def add(name: str, content: bytes, about: dict[str, Any]) -> None:
        nonlocal offset
        places[name] = {"offset": offset, "size": len(content), **about}
        content += bytes(-len(content) % 8)  # typed arrays need aligned starts
        pieces.append(content)
        offset += len(content)

    for name, array in arrays.items():
        add(name, np.ascontiguousarray(array).tobytes(), {"type": array.dtype.str[1:]})
    for name, stream in streams.items():
        add(name, stream.content, stream.to_dict())
    packed = gzip.compress(b"".join(pieces), 9, mtime=0)
    return {"size": offset, "parts": places}, base64.b64encode(packed).decode()
