"""How far two recorded runs of a scene are apart. Numbers only; studies/report/compare_figure.py draws them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import LapjointError
from ..measures.step import UNITS, Measures
from ..recording import Recording, RecordingWriter
from ..simulation import Simulation
from .step_values import step_values, unit_of

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

NOT_AGAIN = ("one_step_error", "one_step_difference")
"""Measures that `run_single` does not take: with one worker they are zero, and they need a second engine."""


@dataclass(frozen=True)
class Value:
    """A recorded number of both runs, over the steps that both have. None where a run has no such number."""

    name: str
    unit: str
    a_mean: float | None = None
    a_largest: float | None = None
    b_mean: float | None = None
    b_largest: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Differences of two runs, a row for every frame that both have."""

    a: str
    b: str
    scene: str
    body_count: int
    """Of all times, in both."""
    steps: Ids
    time: Array
    """s"""
    position_rms: Array
    """Root of the mean square over the bodies that are there in both of how far positions are apart [m]."""
    position_largest: Array
    """m"""
    position_body: Ids
    """The body that is farthest apart; -1 where none is there in both."""
    rotation_largest: Array
    """rad, 0 to pi"""
    values: list[Value]
    """Profile and measures side by side."""
    notes: list[str]
    """What makes the two runs less comparable."""
    a_coupling: str = "blend"
    b_coupling: str = "blend"

    def to_dict(self) -> dict[str, object]:
        """For a JSON file; a number that is not finite is null."""
        series = ("steps", "time", "position_rms", "position_largest", "position_body", "rotation_largest")
        return {
            "a": self.a,
            "b": self.b,
            "a_coupling": self.a_coupling,
            "b_coupling": self.b_coupling,
            "scene": self.scene,
            "body_count": self.body_count,
            "frame_count": len(self.steps),
            "position_rms_max": _plain(self.position_rms.max()),
            "position_largest_max": _plain(self.position_largest.max()),
            "rotation_largest_max": _plain(self.rotation_largest.max()),
            **{name: [_plain(number) for number in getattr(self, name)] for name in series},
            "values": {
                value.name: {
                    "unit": value.unit,
                    **{key: _plain(getattr(value, key)) for key in ("a_mean", "a_largest", "b_mean", "b_largest")},
                }
                for value in self.values
            },
            "notes": self.notes,
        }


def compare(a: Recording, b: Recording) -> Comparison:
    """Compare two recordings of a scene, frame by frame; frames are matched by their step numbers."""
    if a.began_with[0] != b.began_with[0]:
        raise LapjointError(
            f"{a.path} has {a.began_with[0]:,} bodies, {b.path} has {b.began_with[0]:,}: expected two runs of one scene"
        )
    if not math.isclose(a.timestep, b.timestep):
        raise LapjointError(
            f"{a.path} has steps of {a.timestep * 1e3:g} ms, {b.path} of {b.timestep * 1e3:g} ms: "
            "expected the same timestep, for frames are matched by their step numbers"
        )
    steps, in_a, in_b = np.intersect1d(a.steps, b.steps, return_indices=True)
    if len(steps) == 0:
        raise LapjointError(f"no step has a frame in both: {_frames(a)}, {_frames(b)}")
    frames = list(zip(in_a.tolist(), in_b.tolist(), strict=True))
    there = [_there(a, i, b, j) for i, j in frames]
    rows = [
        state_differences(a.frame(i).states, b.frame(j).states, np.flatnonzero(ours & theirs))
        for (i, j), (ours, theirs) in zip(frames, there, strict=True)
    ]
    rms, largest, body, turn = (np.array(column) for column in zip(*rows, strict=True))
    return Comparison(
        a=str(a.path),
        b=str(b.path),
        scene=a.scene.name,
        body_count=min(a.body_count, b.body_count),
        steps=steps,
        time=a.times[in_a],
        position_rms=rms,
        position_largest=largest,
        position_body=body,
        rotation_largest=turn,
        values=compare_values(a, b),
        notes=[*_notes(a, b), *_who_differs([int((ours ^ theirs).sum()) for ours, theirs in there])],
        a_coupling=a.params.coupling,
        b_coupling=b.params.coupling,
    )


def state_differences(a: ArrayLike, b: ArrayLike, bodies: Ids | None = None) -> tuple[float, float, int, float]:
    """RMS and largest distance of positions [m], the body with the largest, and the largest rotation [rad], of all
    bodies or of these."""
    ids = np.arange(len(np.asarray(a))) if bodies is None else bodies
    ours, theirs = np.asarray(a, float)[ids], np.asarray(b, float)[ids]
    if len(ids) == 0:
        return 0.0, 0.0, -1, 0.0
    with np.errstate(invalid="ignore", over="ignore"):  # a run that blew up has states that are not finite
        distance = np.linalg.norm(ours[:, :3] - theirs[:, :3], axis=1)
        turn = rotation_differences(ours[:, 3:7], theirs[:, 3:7])
        rms = float(np.sqrt(np.mean(distance**2)))
    farthest = int(distance.argmax())
    return rms, float(distance[farthest]), int(ids[farthest]), float(turn.max())


def rotation_differences(a: ArrayLike, b: ArrayLike) -> Array:
    """The angle from each of some quaternions to another [rad], 0 to pi; exact for small angles too."""
    with np.errstate(invalid="ignore", divide="ignore"):
        p, q = (given / np.linalg.norm(given, axis=-1, keepdims=True) for given in map(np.asarray, (a, b)))
        # q and -q are the same rotation: the nearer one counts.
        chord = np.minimum(np.linalg.norm(p - q, axis=-1), np.linalg.norm(p + q, axis=-1))
        return np.asarray(4.0 * np.arcsin(np.minimum(0.5 * chord, 1.0)))


# ---- profile and measures ----------------------------------------------------------------------------------------


def compare_values(a: Recording, b: Recording) -> list[Value]:
    """Mean and largest of everything recorded, over the steps that both recordings have."""
    _, in_a, in_b = np.intersect1d(a.profile["step_count"], b.profile["step_count"], return_indices=True)
    ours, theirs = step_values(a), step_values(b)
    found = []
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        numbers = [
            _mean_and_largest(values[name][rows]) if name in values else (None, None)
            for values, rows in ((ours, in_a), (theirs, in_b))
        ]
        found.append(Value(name, unit_of(name), *numbers[0], *numbers[1]))
    return found


def _mean_and_largest(values: NDArray[Any]) -> tuple[float | None, float | None]:
    measured = values[~np.isnan(values)]  # a measure may be taken in some steps only
    if measured.size == 0:
        return None, None
    return float(measured.mean()), float(measured.max())


# ---- one worker --------------------------------------------------------------------------------------------------


def run_single(recording: Recording, path: str | Path, on_step: Callable[[int, int], None] | None = None) -> Recording:
    """Run a recording's scene again on one worker, with its parameters and for as many frames, and record that.

    `on_step` gets the steps taken and those to take. Forces that a program added, and parameters that it changed
    between steps, are in no recording: such a run is not repeated. One to which bodies or joints were added, or from
    which they were removed, is refused.
    """
    if recording.has_changes:
        raise LapjointError(
            f"{recording.path}: bodies or joints were added or removed while it ran, by a program that is not in the "
            "recording: expected a second recording to compare with"
        )
    if recording.frame_count == 0:
        raise LapjointError(f"{recording.path}: the recording has no frames to compare with")
    start, end = int(recording.steps[0]) - recording.every, int(recording.steps[-1])
    names = [name for name in recording.measures if name in UNITS and name not in NOT_AGAIN]
    with Simulation(recording.scene, replace(recording.params, workers=1)) as simulation:
        measures = Measures(simulation, names)
        options: dict[str, Any] = {"every": recording.every, "measures": measures.counts, "steps": end - start}
        with RecordingWriter(path, simulation, **options) as writer:
            for done in range(1, end + 1):
                measures.before_step(simulation)
                simulation.step()
                if done > start:
                    writer.add(simulation, measures.after_step(simulation))
                if on_step is not None:
                    on_step(done, end)
    return Recording(path)


# ---- words -------------------------------------------------------------------------------------------------------


def _frames(recording: Recording) -> str:
    if recording.frame_count == 0:
        return f"{recording.path} has no frames"
    steps = recording.steps
    return f"{recording.path} has steps {steps[0]} to {steps[-1]}, every {recording.every}"


def _notes(a: Recording, b: Recording) -> list[str]:
    notes = []
    if a.scene.name != b.scene.name:
        notes.append(f"the scenes have different names: {a.scene.name!r} and {b.scene.name!r}")
    elif a.body_count == b.body_count and a.scene != b.scene:
        notes.append("the scenes differ, though not in their name and number of bodies")
    notes += [f"{run.path} was not closed: its end may be missing" for run in (a, b) if not run.complete]
    return notes


def _there(a: Recording, i: int, b: Recording, j: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Who is there in frame i of one run and in frame j of the other, of all bodies of both."""
    count = max(a.body_count, b.body_count)
    ours, theirs = (np.pad(there, (0, count - len(there))) for there in (a.alive(i), b.alive(j)))
    return ours, theirs


def _who_differs(counts: list[int]) -> list[str]:
    """A note, where bodies are there in one run only; `counts` has how many, of each frame."""
    frames = sum(count > 0 for count in counts)
    if not frames:
        return []
    return [f"{frames:,} of {len(counts):,} frames have bodies of one run only, up to {max(counts):,}: not compared"]


def _plain(value: Any) -> float | int | None:
    """A number as JSON has it."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if isinstance(value, int | np.integer) else float(value)
