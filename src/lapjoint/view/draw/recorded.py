"""Recorded: what a recording looks like at any time, between its frames too."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import LapjointError
from ...params.coupling_choice import traits
from ...recording import Recording
from ...scene.states import there
from .coloring import Entry, body_colors, checked_mode, fastest_of, legend, modes_of

Array = NDArray[np.float64]
_SAMPLES = 48
"""Frames looked at to find what is fast in a recording."""


@dataclass(frozen=True)
class Moment:
    """States and colours of all bodies at a time, and where static bodies are."""

    time: float
    """s"""
    states: Array
    colors: Array
    static_poses: Array | None = None
    """None: where the scene has them."""


class Recorded:
    """A recording with a colour mode. Its frames are kept for as long as their neighbours are asked for."""

    def __init__(self, recording: Recording, mode: str = "worker") -> None:
        self.recording = recording
        self.mode = checked_mode(mode)
        if recording.frame_count == 0:
            raise LapjointError(f"{recording.path}: the recording has no frames")
        if mode == "contacts" and not recording.has_contacts:
            raise LapjointError(
                f"{recording.path}: recorded without contacts, so it cannot be coloured by them; "
                "`lapjoint run --record-contacts` keeps them"
            )
        coupling = recording.params.coupling
        if mode not in modes_of(coupling):
            has = "overlap" if traits(coupling).overlaps else "interface"
            raise LapjointError(
                f"{recording.path}: recorded with coupling {coupling}, which has no {mode}; colour mode {has} shows "
                "what workers share"
            )
        self.times = recording.times
        self.fastest = fastest_speed(recording) if mode == "speed" else 1.0
        """The speed at the end of the ramp [m/s]."""
        self._kept: OrderedDict[int, Moment] = OrderedDict()
        names, profile = ("step_count", "exchanges", "residual"), recording.profile
        has_exchanges = recording.has_interface and len(profile["step_count"]) > 0
        self._exchanges = tuple(profile[name] for name in names) if has_exchanges else None

    def frame(self, i: int) -> Moment:
        """A frame as recorded; negative numbers count from the end."""
        recording = self.recording
        if -recording.frame_count <= i < 0:
            i += recording.frame_count
        if i not in self._kept:
            frame = recording.frame(i)
            poses = recording.static_poses(i) if recording.kinematic_count else None
            self._kept[i] = Moment(frame.time, frame.states, self._colors(i, frame.states), poses)
            while len(self._kept) > 2:
                self._kept.popitem(last=False)
        self._kept.move_to_end(i)
        return self._kept[i]

    def nearest(self, time: float) -> int:
        """The number of the frame nearest to a time [s]."""
        if not np.isfinite(time):
            raise LapjointError(f"{self.recording.path}: time is {time}, expected a finite number of seconds")
        return int(np.abs(self.times - time).argmin())

    def at(self, time: float) -> Moment:
        """The moment at a time, interpolated between two frames; before the first and after the last nothing moves. A
        body appears with the first frame that has it, and vanishes with the first that has it no more."""
        after = int(np.searchsorted(self.times, time))
        if after == 0 or after == len(self.times):
            return self.frame(min(after, len(self.times) - 1))
        share = float((time - self.times[after - 1]) / (self.times[after] - self.times[after - 1]))
        if min(share, 1 - share) < 1e-3:
            return self.frame(after - 1 if share < 0.5 else after)
        a, b = self.frame(after - 1), self.frame(after)
        poses = None
        if a.static_poses is not None and b.static_poses is not None:
            poses = between_states(a.static_poses, b.static_poses, share)
        colors = np.where(there(b.states)[:, None], b.colors, a.colors)
        return Moment(time, between_states(a.states, b.states, share), a.colors + share * (colors - a.colors), poses)

    def exchanges_at(self, time: float) -> str:
        """Exchanges and residual of the step at a time; empty unless coupling is tight."""
        if self._exchanges is None:
            return ""
        step = round(time / self.recording.timestep)
        row = min(int(np.searchsorted(self._exchanges[0], step)), len(self._exchanges[0]) - 1)
        return exchange_text(int(self._exchanges[1][row]), float(self._exchanges[2][row]))

    def legend(self) -> list[Entry]:
        """The meaning of the colours."""
        labels = self.recording.scene.bodies.label.tolist() if self.mode == "label" else ()
        return legend(self.mode, workers=self.recording.worker_count, fastest=self.fastest, labels=labels)

    def _colors(self, i: int, states: Array) -> Array:
        recording, mode = self.recording, self.mode
        if mode == "label":
            return body_colors(mode, labels=recording.scene.bodies.label)
        if mode == "overlap":
            return body_colors(mode, weights=recording.membership(i))
        if mode in ("worker", "interface"):
            return body_colors(mode, weights=recording.weights(i), interface=recording.interface(i))
        contacts = recording.contacts(i).bodies if mode == "contacts" else None
        return body_colors(mode, states=states, contacts=contacts, fastest=self.fastest)


def between_states(a: Array, b: Array, share: float) -> Array:
    """States or poses from a (share 0) to b (1): straight lines, and the short way round for orientations. Bodies that
    are no more in b stay as they are in a, and those that are not yet in a are not there."""
    b = np.where(there(b)[:, None] & there(a)[:, None], b, a)
    turned = np.where(np.einsum("ij,ij->i", a[:, 3:7], b[:, 3:7])[:, None] < 0, -b[:, 3:7], b[:, 3:7])
    ends = np.concatenate([b[:, :3], turned, b[:, 7:]], axis=1)
    states = a + share * (ends - a)
    states[:, 3:7] /= np.maximum(np.linalg.norm(states[:, 3:7], axis=1, keepdims=True), 1e-12)
    return np.asarray(states)


def fastest_speed(recording: Recording) -> float:
    """The highest speed in a recording [m/s], but for the few fastest bodies: a ramp's end for all its frames."""
    picks = np.unique(np.linspace(0, recording.frame_count - 1, _SAMPLES).round().astype(int))
    tables = [recording.frame(i).states[recording.alive(i)] for i in picks.tolist()]
    tops = [fastest_of(np.linalg.norm(states[:, 7:10], axis=1)) for states in tables if len(states)]
    return max(*tops, 1e-3, 1e-3)


def opening_states(recording: Recording) -> list[Array]:
    """States that a camera is chosen for: those of the first frame, and where bodies come and go those of later ones
    too."""
    count = recording.frame_count
    picks = sorted({0, count // 2, count - 1}) if recording.has_changes else [0]
    return [recording.frame(i).states for i in picks]


def exchange_text(exchanges: int, residual: float) -> str:
    """Exchanges and residual of a tight step, in words."""
    return f"{exchanges} exchange{'s' * (exchanges != 1)}, residual {residual:.1e} m/s"
