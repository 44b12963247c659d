"""What exporters write over time: a scene as it starts, or the frames of a recording, as tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import FileWarning, LapjointError
from ...recording import Recording
from ...scene import Scene
from ..draw.colors import label_colors, to_linear, worker_colors
from ..draw.recorded import Recorded
from .filters import exported_sensors
from .streams import held, steady

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
MOST_NUMBERS = 400_000_000
"""Of all tables together: more would fill the memory."""


@dataclass(frozen=True)
class Frames:
    """A scene and how it moves. Tables have a row for each frame: one, of a scene as it starts; positions of bodies
    that are not there are those where they were or will be."""

    scene: Scene
    body_count: int
    """Bodies that the scene began with; those that came later are only seen."""
    joint_count: int
    times: Array
    """s, from the first frame on"""
    rate: float
    """Frames per simulated second."""
    positions: Floats
    """(frames, bodies, 3)"""
    quaternions: Floats
    """(frames, bodies, 4): w x y z, neighbours in time on the same side."""
    shown: NDArray[np.bool_]
    """(frames, bodies): who is there."""
    colors: Floats
    """(frames, bodies, 3), linear, from 0 to 1."""
    owners: NDArray[np.int32]
    """(frames, bodies): the worker of greatest weight; of a scene, the place of a body's label."""
    owner_name: str
    """What owners are: workers, or labels."""
    palette: Array
    """(owners, 3): the colour of each owner, linear."""
    static_poses: Floats
    """(frames, kinematic bodies, 7), in ascending order of the bodies' numbers."""

    @property
    def is_moving(self) -> bool:
        return len(self.times) > 1

    @property
    def time_codes(self) -> Array:
        """The number of each frame, counted by time: whole, but for a last frame that came early."""
        codes = self.times * self.rate
        whole = np.round(codes)
        return np.where(np.abs(codes - whole) < 1e-3, whole, codes)


def frames_of(source: Scene | Recording, every: int = 1) -> Frames:
    """One frame of a scene, or every `every`-th frame of a recording."""
    return frames_of_recording(source, every) if isinstance(source, Recording) else frames_of_scene(source)


def frames_of_scene(scene: Scene) -> Frames:
    """One frame: the scene as it starts, coloured by label."""
    _warn_of_what_is_left_out(scene)
    states, labels = scene.states, scene.bodies.label
    distinct, owners = np.unique(labels, return_inverse=True)
    palette = to_linear(label_colors(distinct)) if len(distinct) else np.zeros((0, 3))
    table: NDArray[np.int32] = owners.reshape(1, -1).astype(np.int32)
    statics = scene.statics
    poses = np.concatenate([statics.position, statics.quaternion], axis=1)[scene.kinematic_ids]
    return Frames(
        scene,
        scene.body_count,
        scene.joint_count,
        np.zeros(1),
        1 / scene.timestep,
        states[None, :, :3].astype(np.float32),
        states[None, :, 3:7].astype(np.float32),
        np.ones((1, scene.body_count), bool),
        palette[table].astype(np.float32),
        table,
        "label",
        palette,
        poses[None].astype(np.float32),
    )


def frames_of_recording(
    recording: Recording, every: int = 1, on_frame: Callable[[int, int], None] | None = None
) -> Frames:
    """Every `every`-th frame of a recording, coloured by worker. `on_frame` is called with the number of frames read,
    and of all."""
    if every < 1:
        raise LapjointError(f"every is {every}, expected at least 1")
    recorded = Recorded(recording, "worker")
    _warn_of_what_is_left_out(recording.scene)
    scene, numbers = recording.scene, range(0, recording.frame_count, every)
    count, bodies = len(numbers), scene.body_count
    if count * bodies * 12 > MOST_NUMBERS:
        raise LapjointError(
            f"{recording.path}: {count:,} frames of {bodies:,} bodies are too many for one file; raise --every"
        )
    positions, colors = np.zeros((count, bodies, 3), np.float32), np.zeros((count, bodies, 3), np.float32)
    quaternions, shown = np.zeros((count, bodies, 4), np.float32), np.zeros((count, bodies), bool)
    owners, kinematic = np.zeros((count, bodies), np.int32), scene.kinematic_ids
    poses = np.zeros((count, len(kinematic), 7), np.float32)
    for row, number in enumerate(numbers):
        moment = recorded.frame(number)
        positions[row], quaternions[row] = moment.states[:, :3], moment.states[:, 3:7]
        shown[row], colors[row] = recording.alive(number), moment.colors
        owners[row] = recording.weights(number).argmax(axis=1)
        poses[row] = recording.static_poses(number)[kinematic]
        if on_frame is not None:
            on_frame(row + 1, count)
    if not shown.all():
        positions, quaternions, colors = (held(one, shown) for one in (positions, quaternions, colors))
        owners = held(owners, shown)
    never = ~shown.any(axis=0)
    quaternions[:, never] = (1.0, 0.0, 0.0, 0.0)
    poses[:, :, 3:] = steady(poses[:, :, 3:].astype(float))
    times = recording.times[::every] - recording.times[0]
    return Frames(
        scene,
        *recording.began_with,
        times,
        1 / (recording.timestep * recording.every * every),
        positions,
        steady(quaternions.astype(float)).astype(np.float32),
        shown,
        to_linear(colors).astype(np.float32),
        owners,
        "worker",
        to_linear(worker_colors(recording.worker_count)),
        poses,
    )


def _warn_of_what_is_left_out(scene: Scene) -> None:
    """What neither standard has, nor words of our own."""
    compounds = len(scene.sensors) - len(exported_sensors(scene))
    for count, what in ((compounds, "sensor of several shapes"), (len(scene.fields), "force field")):
        if count:
            text = f"not exported of the scene {scene.name!r}: {what}, {count} of them"
            warnings.warn(text, FileWarning, stacklevel=3)


def changes(table: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Of a table (frames, bodies, numbers): which frames are needed so that a line through them has all: those that
    differ from the one before or the one after, and the first. (frames, bodies)"""
    moved = (table[1:] != table[:-1]).any(axis=2)
    needed = np.zeros(table.shape[:2], bool)
    needed[0] = True
    needed[1:] |= moved
    needed[:-1] |= moved
    return needed


def steps(table: NDArray[np.generic]) -> NDArray[np.bool_]:
    """The same for what jumps: the first frame, and those that differ from the one before. (frames, bodies)"""
    needed = np.ones(table.shape[:2], bool)
    needed[1:] = (table[1:] != table[:-1]).any(axis=2)
    return needed
