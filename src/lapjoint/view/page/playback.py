"""Playback: a recording in browsers, at any speed, forwards; and a scene as it starts, which is a single frame."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import numpy as np
import viser
from numpy.typing import NDArray

from ...engines import Contacts
from ...errors import LapjointError
from ...params import Params
from ...recording import Recording
from ...scene import Scene
from ...server.detect import ServerDetector
from ...server.partition import make_partition
from ...server.profile import PHASES
from .access import Access
from .button_help import add_button_help
from .by_hand import Draft
from .control_values import value_of
from .escape import escaped
from .look_panel import build_look_panel
from .page import Page
from .partition_panel import PartitionPanel
from .snapshot import Snapshot, counts, exchange_line, of_partition, of_recording

Ids = NDArray[np.int32]
SPEEDS = {
    "1/16": 1 / 16,
    "1/8": 1 / 8,
    "1/4": 1 / 4,
    "1/2": 1 / 2,
    "real time": 1.0,
    "2 x": 2.0,
    "5 x": 5.0,
    "20 x": 20.0,
}


class Clock:
    """The simulated time that a recording is at, which goes on while it plays."""

    def __init__(self, times: NDArray[np.float64], loop: bool = True) -> None:
        self._times = times
        self.loop = loop
        self.playing, self.speed = False, 1.0
        self.time = float(times[0])

    def advance(self, elapsed_s: float) -> int:
        """Go on by so much wall time; returns the number of the frame to show."""
        if self.playing:
            self.time += elapsed_s * self.speed
            last = float(self._times[-1])
            if self.time > last:
                self.time = float(self._times[0]) if self.loop else last
                self.playing = self.playing and self.loop
        return self.frame

    @property
    def frame(self) -> int:
        """The last frame that is not after the time."""
        return max(int(np.searchsorted(self._times, self.time + 1e-9, side="right")) - 1, 0)

    def go_to(self, frame: int) -> None:
        self.time = float(self._times[min(max(frame, 0), len(self._times) - 1)])


class Playback:
    """Browsers on a recording."""

    def __init__(
        self,
        recording: Recording,
        *,
        access: Access | None = None,
        port: int = 8080,
        fps: float = 30.0,
        folder: Path | None = None,
    ) -> None:
        if recording.frame_count == 0:
            raise LapjointError(f"{recording.path}: the recording has no frames, nothing to show")
        self.recording = recording
        self.clock = Clock(recording.times)
        self._every_s = 1.0 / fps
        self._asked = threading.Event()
        self._shown = 0
        self._phases = recording.profile.get("phases_ms")
        self._steps = recording.profile.get("step_count")
        names = ("exchanges", "residual") if recording.has_interface else ()
        self._exchanges = [recording.profile[name] for name in names]
        first = self._snapshot(0)
        workers = recording.worker_count
        self.page = Page(
            first,
            Draft(_first_partition(recording, first), workers),
            access=access or Access(),
            port=port,
            mode="worker" if workers > 1 else "label",
            has_contacts=recording.has_contacts,
            coupling=recording.params.coupling,
        )
        self._slider: viser.GuiSliderHandle[int] | None = None
        self.page.status = self._status
        self.page.build_controls.append(self._build)
        _open(self.page, folder)

    def close(self) -> None:
        self.page.close()

    def __enter__(self) -> Playback:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def serve(self, interrupted: Callable[[], bool]) -> None:
        """Play until interrupted."""
        before = time.perf_counter()
        while not interrupted():
            now = time.perf_counter()
            frame = self.clock.advance(now - before)
            before = now
            if frame != self._shown and self.page.wants_snapshot:
                self._shown = frame
                self.page.offer(self._snapshot(frame))
                self._move_slider(frame)
            self._asked.wait(self._every_s)
            self._asked.clear()

    def _snapshot(self, frame: int) -> Snapshot:
        snapshot = of_recording(self.recording, frame)
        if self._phases is not None and self._steps is not None and len(self._steps):
            row = min(int(np.searchsorted(self._steps, snapshot.step_count)), len(self._steps) - 1)
            snapshot.phases_ms = dict(zip(PHASES, self._phases[row].tolist(), strict=False))
            if self._exchanges:
                snapshot.exchanges, snapshot.residual = int(self._exchanges[0][row]), float(self._exchanges[1][row])
        return snapshot

    def _move_slider(self, frame: int) -> None:
        if self._slider is not None and self.clock.playing and self.page.holder() is not None:
            self._slider.value = frame  # type: ignore[misc]

    def _build(self, client: viser.ClientHandle) -> None:
        gui, clock = client.gui, self.clock
        last = self.recording.frame_count - 1
        with gui.add_folder("Recording", order=2):
            play = gui.add_button("Pause" if clock.playing else "Play", hint="Play the recording, or stop it.")
            speed = gui.add_dropdown(
                "Speed", list(SPEEDS), initial_value="real time", hint="Simulated time per wall time."
            )
            slider = gui.add_slider(
                "Frame", 0, max(last, 1), 1, clock.frame, disabled=last == 0, hint="Which frame is shown, from 0."
            )
            back = gui.add_button("One frame back", hint="Stop, and show the frame before.")
            ahead = gui.add_button("One frame ahead", hint="Stop, and show the frame after.")
            loop = gui.add_checkbox(
                "Begin again at the end", clock.loop, hint="Off: the recording stops at its last frame."
            )
            add_button_help(gui, play, back, ahead)
        self._slider = slider

        def on_play(_: object) -> None:
            if not clock.playing and clock.frame == last:
                clock.go_to(0)
            clock.playing = not clock.playing
            play.label = "Pause" if clock.playing else "Play"

        def on_speed(_: object) -> None:
            clock.speed = SPEEDS[value_of(speed)]

        def on_slide(event: viser.GuiEvent[viser.GuiSliderHandle[int]]) -> None:
            if event.client is not None:  # a hand moved it, not the clock
                clock.go_to(int(value_of(slider)))
                self._asked.set()

        def move(by: int) -> None:
            clock.playing = False
            play.label = "Play"
            clock.go_to(clock.frame + by)
            slider.value = clock.frame  # type: ignore[misc]
            self._asked.set()

        def on_loop(_: object) -> None:
            clock.loop = loop.value

        play.on_click(on_play)
        speed.on_update(on_speed)
        slider.on_update(on_slide)
        back.on_click(lambda _: move(-1))
        ahead.on_click(lambda _: move(1))
        loop.on_update(on_loop)

    def _status(self, snapshot: Snapshot) -> str:
        recording, page = self.recording, self.page
        frame = int(np.searchsorted(recording.steps, snapshot.step_count))
        return (
            f"**{snapshot.time:.3f} s** · frame {frame + 1:,} of {recording.frame_count:,} · step "
            f"{snapshot.step_count:,}\n\n{counts(snapshot)}, "
            f"{recording.worker_count} workers{page.watching}{exchange_line(snapshot)}"
        )


class StillView:
    """Browsers on a scene as it starts, with its partition, which can be changed by hand."""

    def __init__(
        self,
        scene: Scene,
        params: Params | None = None,
        *,
        access: Access | None = None,
        port: int = 8080,
        folder: Path | None = None,
    ) -> None:
        params = (params or Params()).resolved(scene)
        partition = make_partition(scene, params.workers, params.partition)
        contacts = ServerDetector(scene, params).contacts(scene.states) if scene.body_count else Contacts.none()
        self.page = Page(
            of_partition(scene, partition, params.workers, contacts),
            Draft(partition, params.workers),
            access=access or Access(),
            port=port,
            mode="partition by hand" if params.workers > 1 else "label",
            moves=False,
        )
        self.page.status = self._status
        _open(self.page, folder)

    def close(self) -> None:
        self.page.close()

    def __enter__(self) -> StillView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def serve(self, interrupted: Callable[[], bool]) -> None:
        """Show it until interrupted."""
        while not interrupted():
            time.sleep(0.05)

    def _status(self, snapshot: Snapshot) -> str:
        page = self.page
        return (
            f"**{escaped(page.scene.name)}** as it starts: "
            f"{counts(snapshot)}, {page.scene.static_count:,} static bodies, {len(snapshot.contacts or ()):,} contacts"
        )


def _first_partition(recording: Recording, first: Snapshot) -> Ids:
    """The run's partition; where its file is gone, or bodies have come since, each body's worker of most weight in the
    first frame."""
    if recording.has_changes:
        return np.asarray(np.argmax(first.weights, axis=1), np.int32)
    try:
        return make_partition(recording.scene, recording.worker_count, recording.params.partition)
    except LapjointError:
        return np.asarray(np.argmax(first.weights, axis=1), np.int32)


def _open(page: Page, folder: Path | None) -> None:
    """Add the controls that every page has, and let browsers in."""
    try:
        page.build_controls.append(lambda client: build_look_panel(page, client))
        if page.draft.worker_count > 1:
            PartitionPanel(page, folder or Path.cwd())
        page.open()
    except BaseException:
        page.close()
        raise
