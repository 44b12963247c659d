"""Live: a simulation in browsers while it runs.

The view stands at the gate before each step: there, in the simulation's own thread, it applies what browsers asked for,
waits while the simulation is paused, and copies a snapshot when the page can take one. The simulation never waits for
the page.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import rotation
from ...errors import LapjointError
from ...run import RunSummary
from ...simulation import Simulation
from ..draw.snapshot import Snapshot, most_workers, of_simulation, rounds_line
from .access import Access
from .by_hand import Draft
from .hands import Pull, Pulls, thrown_state
from .page import Page

if TYPE_CHECKING:
    import viser

Array = NDArray[np.float64]
Request = Callable[[Simulation], None]
IDLE_S = 0.02
"""How often a paused simulation looks whether it was interrupted."""


class LiveView:
    """Browsers on a running simulation. The last `ball_count` bodies of its scene are balls in reserve.

    >>> with LiveView(simulation) as view:
    ...     print(view.page.address)
    ...     while view.gate(lambda: False):
    ...         simulation.step()
    """

    def __init__(
        self,
        simulation: Simulation,
        *,
        ball_count: int = 0,
        access: Access | None = None,
        port: int = 8080,
        fps: float = 30.0,
        folder: Path | None = None,
    ) -> None:
        self.simulation = simulation
        self.paused = False
        self.speed: float | None = 1.0
        """Most simulated seconds per second; None: as fast as it can."""
        self.strength = 1.0
        """Of pulls."""
        self.keep_pulls = False
        self.pulls = Pulls()
        self.done = False
        """Whether no step will follow."""
        self._every_s = 1.0 / fps
        self._steps_wanted = 0
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._asked = threading.Event()
        self._thrown_count = 0
        self._snapshot_at = self._step_at = self._rate_at = 0.0
        self._snapshot_step = -1
        self._rate_step, self.steps_per_second = simulation.step_count, 0.0
        self.most_workers = workers = most_workers(simulation.params)
        scene_bodies = simulation.scene.body_count - ball_count
        start = simulation.weights()[:scene_bodies].argmax(axis=1)
        self.page = Page(
            simulation.scene,
            self._snapshot(),
            Draft(start, workers),
            access=access or Access(),
            port=port,
            ball_count=ball_count,
            mode="worker" if workers > 1 else "label",
            coupling=simulation.params.coupling,
        )
        try:
            from .live_panel import build_live_controls
            from .look_panel import build_look_panel
            from .partition_panel import PartitionPanel

            page = self.page
            page.status = self._status
            page.build_controls.append(lambda client: build_live_controls(self, client))
            page.build_controls.append(lambda client: build_look_panel(page, client))
            if workers > 1:
                PartitionPanel(page, folder or Path.cwd())
            self.set_dragging(True)
            page.open()
        except BaseException:
            self.page.close()
            raise

    def close(self) -> None:
        self.page.close()

    def __enter__(self) -> LiveView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- the simulation's thread -----------------------------------------------------------------------------------

    def gate(self, interrupted: Callable[[], bool]) -> bool:
        """Before each step: True when it may be taken, False if interrupted. Forces of pulls go with the step."""
        while True:
            self._asked.clear()
            self._serve_requests()
            self._show()
            if interrupted():
                return False
            wait_s = self._wait_s()
            if wait_s <= 0:
                break
            self._asked.wait(min(wait_s, IDLE_S))
        self._steps_wanted = max(self._steps_wanted - 1, 0)
        pulls = self.pulls
        if pulls.held is not None or pulls.kept:
            simulation = self.simulation
            forces = pulls.forces(simulation.scene, simulation.states, simulation.timestep, self.strength)
            simulation.add_forces(*forces)
        return True

    def stay(self, interrupted: Callable[[], bool]) -> None:
        """After the last step: show it until interrupted."""
        self.done = self.paused = True
        while not interrupted():
            self._serve_requests()
            self._show()
            self._asked.wait(IDLE_S)
            self._asked.clear()

    def _wait_s(self) -> float:
        """How long until the next step may be taken [s]."""
        now = time.perf_counter()
        if self._steps_wanted:
            self._step_at = now
            return 0.0
        if self.paused or self.done:
            return IDLE_S
        if self.speed is None:
            return 0.0
        length = self.simulation.timestep / self.speed
        # A step that came late is not made up for by many at once.
        self._step_at = max(self._step_at, now - 2 * max(length, self._every_s))
        if now < self._step_at:
            return self._step_at - now
        self._step_at += length
        return 0.0

    def _serve_requests(self) -> None:
        while True:
            try:
                request = self._requests.get_nowait()
            except queue.Empty:
                return
            try:
                request(self.simulation)
            except LapjointError as error:
                self.page.notify(None, "Refused", str(error))
            self._snapshot_step = -1

    def _show(self) -> None:
        """Copy a snapshot if it is time for one and the page is ready; else the page does without."""
        now = time.perf_counter()
        step = self.simulation.step_count
        if step == self._snapshot_step or now - self._snapshot_at < self._every_s or not self.page.wants_snapshot:
            return
        # On time in the mean, though steps end when they end; what was missed is not made up for.
        self._snapshot_at = max(self._snapshot_at + self._every_s, now - self._every_s)
        self._snapshot_step = step
        if now - self._rate_at > 0.5:
            self.steps_per_second = (step - self._rate_step) / (now - self._rate_at)
            self._rate_at, self._rate_step = now, step
        self.page.offer(self._snapshot())

    def _snapshot(self) -> Snapshot:
        snapshot = of_simulation(self.simulation)
        pulls = self.pulls.all()
        if not pulls:
            return snapshot
        bodies = np.array([pull.body for pull in pulls], np.int32)
        states = snapshot.states[bodies]
        grips = states[:, :3] + rotation.rotate(states[:, 3:7], np.array([pull.grip for pull in pulls]))
        lines = np.stack([grips, np.array([pull.target for pull in pulls])], axis=1)
        return replace(snapshot, pulled=bodies, pull_lines=lines)

    def without_balls(self, summary: RunSummary) -> RunSummary:
        """What a run did, the balls not counted as bodies of the scene."""
        count = self.page.body_count
        return replace(summary, body_count=count, frozen_ids=[body for body in summary.frozen_ids if body < count])

    # ---- what browsers ask for, in their threads ---------------------------------------------------------------------

    def ask(self, request: Request) -> None:
        """Have the simulation's thread do this before the next step."""
        self._requests.put(request)
        self._asked.set()

    def pause(self, paused: bool) -> None:
        self.paused = paused
        self._asked.set()

    def single_step(self) -> None:
        """Pause, and take one step."""

        def step(simulation: Simulation) -> None:
            self.paused = True
            self._steps_wanted += 1

        self.ask(step)

    def grab(self, body: int, point: ArrayLike) -> None:
        """Hold a body at a point of the world."""

        def hold(simulation: Simulation) -> None:
            self.pulls.held = Pull.at(body, simulation.states[body], point)

        self.ask(hold)

    def drag_to(self, target: ArrayLike) -> None:
        """Pull the held body there."""
        place = np.array(target, float)

        def pull(simulation: Simulation) -> None:
            if self.pulls.held is not None:
                self.pulls.held.target = place

        self.ask(pull)

    def let_go(self) -> None:
        self.ask(lambda simulation: self.pulls.let_go(self.keep_pulls))

    def remove_pulls(self, body: int | None = None) -> None:
        """Remove the forces on a body, or all."""

        def remove(simulation: Simulation) -> None:
            self.pulls.remove(body)

        self.ask(remove)

    def freeze(self, body: int, frozen: bool) -> None:
        self.ask(lambda simulation: simulation.freeze([body]) if frozen else simulation.release([body]))

    def throw(self, eye: ArrayLike, direction: ArrayLike, speed: float) -> None:
        """Throw a ball from there; when all are out, the one that was thrown first."""
        if self.page.ball_count == 0:
            raise LapjointError("there are no balls to throw: --balls is 0")

        def throw(simulation: Simulation) -> None:
            ball = self.page.body_count + self._thrown_count % self.page.ball_count
            self._thrown_count += 1
            radius = float(simulation.scene.bounding_radii()[ball])
            simulation.release([ball])
            simulation.set_states([ball], thrown_state(eye, direction, speed, radius)[None])

        self.ask(throw)

    def set_dragging(self, dragging: bool) -> None:
        """Whether dragging a body moves it, or the camera."""
        for handle in self.page.nodes.handles:
            if dragging:
                handle.on_drag("left")(self._drag)
            else:
                handle.remove_drag_callback()

    async def _drag(self, event: viser.SceneNodeDragEvent[viser.BatchedMeshHandle]) -> None:
        """A body is dragged in a browser. Coroutines are called in order; functions would not be."""
        page = self.page
        if not page.controls.has(event.client_id):
            if event.phase == "start":
                page.holds(event.client)
        elif event.phase == "start":
            body = page.nodes.body_of(event.target.name, event.instance_index)
            if body >= 0:
                self.grab(body, event.start_position)
        elif event.phase == "update":
            self.drag_to(event.end_position)
        else:
            self.let_go()

    def _status(self, snapshot: Snapshot) -> str:
        page = self.page
        state = "done" if self.done else "paused" if self.paused else f"{self.steps_per_second:,.0f} steps/s"
        balls = page.ball_count - int((snapshot.frozen >= page.body_count).sum())
        contacts = 0 if snapshot.contacts is None else len(snapshot.contacts)
        factor = self.steps_per_second * self.simulation.timestep
        return (
            f"**{snapshot.time:.3f} s** · step {snapshot.step_count:,} · {state}"
            + ("" if self.paused else f" · {factor:.2g} x real time")
            + f"\n\n{page.body_count:,} bodies"
            + (f" + {balls} thrown" if balls else "")
            + f", {page.scene.joint_count:,} joints, {contacts:,} contacts"
            + f" · {sum(snapshot.phases_ms.values()):.1f} ms/step{page.watching}"
            + rounds_line(snapshot)
        )
