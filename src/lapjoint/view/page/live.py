"""Live: a simulation in browsers while it runs.

The view stands at the gate before each step: there, in the simulation's own thread, it carries out what browsers asked
for, waits while the simulation is paused, and copies a snapshot when the page can take one. But for the first page to
open, the simulation never waits for a browser.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np
import viser

from ...arrays import rotation
from ...forks import belongs_here
from ...simulation import Simulation
from .access import Access
from .balls import BALLS
from .by_hand import Draft
from .live_panel import LivePanel
from .look_panel import build_look_panel
from .page import Page
from .partition_panel import PartitionPanel
from .snapshot import Snapshot, counts, exchange_line, most_workers, of_simulation
from .steering import IDLE_S, Steering


class LiveView:
    """Browsers on a running simulation. So many balls that they throw are there at once at most.

    >>> with LiveView(simulation) as view:
    ...     print(view.page.address)
    ...     while view.gate(lambda: False):
    ...         simulation.step()

    The first step waits for a page to open, unless `wait` is False.
    """

    def __init__(
        self,
        simulation: Simulation,
        *,
        ball_count: int = BALLS,
        access: Access | None = None,
        port: int = 8080,
        fps: float = 30.0,
        folder: Path | None = None,
        wait: bool = True,
        can_restart: bool = True,
    ) -> None:
        self.simulation = simulation
        self.steering = Steering(simulation, ball_count, can_restart=can_restart)
        self.is_waiting = wait
        """Whether the run waits for the first page to open."""
        self._every_s = 1.0 / fps
        self._snapshot_at = self._rate_at = 0.0
        self._snapshot_step = -1
        self._rate_step, self.steps_per_second = simulation.step_count, 0.0
        self.most_workers = workers = most_workers(simulation.params)
        self._scene, self._start_number = simulation.scene, 0
        start = simulation.workers.weights()[: simulation.scene.began_with[1]].argmax(axis=1)
        self.page = page = Page(
            self._snapshot(),
            Draft(start, workers),
            access=access or Access(),
            port=port,
            mode="worker" if workers > 1 else "label",
            coupling=simulation.params.coupling,
        )
        try:
            page.status = self._status
            self.steering.on_refusal = lambda reason: page.notify(None, "Refused", reason)
            LivePanel(page, self.steering, workers, self.set_dragging)
            page.build_controls.append(lambda client: build_look_panel(page, client))
            if workers > 1:
                PartitionPanel(page, folder or Path.cwd(), self.steering.repartition)
            self.set_dragging(True)
            page.open()
        except BaseException:
            page.close()
            raise
        belongs_here(self, "the view", lambda _: None)

    def close(self) -> None:
        """Send browsers away."""
        self.page.close()

    def __enter__(self) -> LiveView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- the simulation's thread -----------------------------------------------------------------------------------

    def gate(self, interrupted: Callable[[], bool]) -> bool:
        """Return True when the next step may be taken, False if interrupted. Forces of pulls go with the step."""
        steering = self.steering
        while True:
            self._serve()
            if interrupted():
                return False
            self.is_waiting = self.is_waiting and self.page.visitor_count == 0
            wait_s = IDLE_S if self.is_waiting else steering.wait_s(self._every_s)
            if wait_s <= 0:
                break
            steering.wait(wait_s)
        steering.begin_step()
        return True

    def stay(self, interrupted: Callable[[], bool]) -> None:
        """Show the last step until interrupted. After a restart, take as many steps again."""
        last = self.simulation.step_count
        self._finish()
        while self.gate(interrupted):
            self.simulation.step()
            if self.simulation.step_count >= last:
                self._finish()

    def _finish(self) -> None:
        self.steering.finish()
        self.is_waiting = False
        self.page.repaint()

    def _serve(self) -> None:
        """Carry out requests; copy a snapshot if it is time for one and the page is ready."""
        if self.steering.serve():
            self._snapshot_step = -1
        now = time.perf_counter()
        step = self.simulation.step_count
        if step == self._snapshot_step or now - self._snapshot_at < self._every_s or not self.page.wants_snapshot:
            return
        # On time in the mean, though steps end when they end; what was missed is not made up for.
        self._snapshot_at = max(self._snapshot_at + self._every_s, now - self._every_s)
        self._snapshot_step = step
        if now - self._rate_at > 0.5:
            self.steps_per_second = max(step - self._rate_step, 0) / (now - self._rate_at)
            self._rate_at, self._rate_step = now, step
        self.page.offer(self._snapshot())

    def _snapshot(self) -> Snapshot:
        if self._scene is not self.simulation.scene:
            self._scene, self._start_number = self.simulation.scene, self._start_number + 1
        snapshot = of_simulation(self.simulation)
        snapshot.start_number = self._start_number
        pulls = [pull for pull in self.steering.pulls.all() if snapshot.has(pull.body)]
        if not pulls:
            return snapshot
        bodies = np.array([pull.body for pull in pulls], np.int32)
        states = snapshot.states[bodies]
        grips = states[:, :3] + rotation.rotate(states[:, 3:7], np.array([pull.grip for pull in pulls]))
        lines = np.stack([grips, np.array([pull.target for pull in pulls])], axis=1)
        return replace(snapshot, pulled=bodies, pull_lines=lines)

    # ---- browsers' threads -------------------------------------------------------------------------------------------

    def set_dragging(self, dragging: bool) -> None:
        """Let dragging move bodies, or else always the camera."""
        self.page.drag = self._drag if dragging else None
        self.page.repaint()

    async def _drag(self, event: viser.SceneNodeDragEvent[viser.BatchedMeshHandle]) -> None:
        """A body is dragged in a browser. Coroutines are called in order; functions would not be."""
        page = self.page
        if not page.controls.has(event.client_id):
            if event.phase == "start":
                page.holds(event.client)
        elif event.phase == "start":
            body = page.nodes.body_of(event.target.name, event.instance_index)
            if body >= 0:
                self.steering.grab(body, event.start_position)
        elif event.phase == "update":
            self.steering.drag_to(event.end_position)
        else:
            self.steering.let_go()

    def _status(self, snapshot: Snapshot) -> str:
        page, steering = self.page, self.steering
        state = "done" if steering.done else "paused" if steering.paused else f"{self.steps_per_second:,.0f} steps/s"
        contacts = 0 if snapshot.contacts is None else len(snapshot.contacts)
        factor = self.steps_per_second * self.simulation.timestep
        return (
            f"**{snapshot.time:.3f} s** · step {snapshot.step_count:,} · {state}"
            + ("" if steering.paused else f" · {factor:.2g} x real time")
            + f"\n\n{counts(snapshot)}, {contacts:,} contacts"
            + f" · {sum(snapshot.phases_ms.values()):.1f} ms/step{page.watching}"
            + exchange_line(snapshot)
        )
