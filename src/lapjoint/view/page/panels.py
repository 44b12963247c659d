"""Panels: numbers and plots of a page, the same for every browser."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np
import viser
from numpy.typing import NDArray
from viser import uplot

from ...params.coupling_choice import traits
from ...scene.measures import joint_gaps
from ...server.profile import PHASES
from .describe import legend_html, workers_html
from .snapshot import Snapshot
from .tints import Legend

Array = NDArray[np.float64]
LENGTH = 300
"""How many samples a plot shows."""
_STROKES = ("#8c8c8c", "#3f7fc4", "#8e5bb5", "#3da35d", "#e5534f", "#f2b632")


class History:
    """The last samples of some numbers over simulated time."""

    def __init__(self, names: tuple[str, ...], length: int = LENGTH) -> None:
        self.names = names
        self._rows: deque[tuple[float, ...]] = deque(maxlen=length)

    def add(self, time: float, values: Mapping[str, float]) -> None:
        """Add a sample; one earlier than the last clears those before it, one of the same time is left out."""
        if self._rows and time == self._rows[-1][0]:
            return
        if self._rows and time < self._rows[-1][0]:
            self._rows.clear()
        self._rows.append((time, *(values.get(name, 0.0) for name in self.names)))

    def columns(self) -> tuple[Array, ...]:
        """Times, then the numbers of each name; at least two rows, as a plot needs them."""
        rows = list(self._rows) or [(0.0,) * (1 + len(self.names))]
        if len(rows) == 1:
            rows = [rows[0], (rows[0][0] + 1e-9, *rows[0][1:])]
        return tuple(np.array(column, float) for column in zip(*rows, strict=True))


class Panels:
    """Status, legend, time by phase, workers, and errors; with tight coupling the residual too."""

    def __init__(
        self,
        server: viser.ViserServer,
        worker_count: int,
        moves: bool,
        coupling: str = "blend",
    ) -> None:
        self._moves = moves
        gui = server.gui
        self._status = gui.add_markdown("", order=0)
        self._legend = gui.add_html("", order=11)
        self._phases = History(PHASES)
        self._errors = History(("joint gap", "penetration"))
        self._residual = History(("residual",))
        self._residual_plot: viser.GuiUplotHandle | None = None
        self._worker_table: viser.GuiHtmlHandle | None = None
        if worker_count > 1:
            with gui.add_folder("Workers", order=50):
                self._worker_table = gui.add_html("")
        if moves:
            with gui.add_folder("Time of a step by phase [ms]", order=51):
                self._phase_plot = _plot(gui, self._phases)
            with gui.add_folder("Joint gap and penetration [mm]", order=52):
                self._error_plot = _plot(gui, self._errors)
        if moves and traits(coupling).exchanges:
            with gui.add_folder("Residual of the last sweep [mm/s]", order=53):
                self._residual_plot = _plot(gui, self._residual)

    def update(self, snapshot: Snapshot, legend: Legend, status: str) -> None:
        """Show the numbers of this moment."""
        self._status.content = status
        self._legend.content = legend_html(legend)
        if self._moves and snapshot.step_count:
            self._phases.add(snapshot.time, snapshot.phases_ms)
            self._phase_plot.data = self._phases.columns()
            self._errors.add(snapshot.time, errors_mm(snapshot))
            self._error_plot.data = self._errors.columns()
        if self._residual_plot is not None and snapshot.step_count:
            self._residual.add(snapshot.time, {"residual": 1e3 * snapshot.residual})
            self._residual_plot.data = self._residual.columns()
        if self._worker_table is not None:
            self._worker_table.content = workers_html(*worker_counts(snapshot))


def errors_mm(snapshot: Snapshot) -> dict[str, float]:
    """Largest gap now of joints that hold, and deepest penetration as the last step began [mm]."""
    gaps = joint_gaps(snapshot.scene, snapshot.states, np.flatnonzero(snapshot.joint_alive))
    depth = 0.0 if snapshot.contacts is None else snapshot.contacts.penetration
    return {"joint gap": 1e3 * float(gaps.max(initial=0.0)), "penetration": 1e3 * depth}


def worker_counts(snapshot: Snapshot) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Active bodies and contacts of each worker: those with both bodies active there."""
    member = snapshot.is_member
    bodies = member.sum(axis=0)
    if snapshot.contacts is None:
        return bodies, None
    first, second = snapshot.contacts.bodies.T
    there = member[first] & (member[np.maximum(second, 0)] | (second < 0)[:, None])
    return bodies, there.sum(axis=0)


def _plot(gui: viser.GuiApi, history: History) -> viser.GuiUplotHandle:
    series: list[uplot.Series] = [{"label": "time [s]"}]
    for name, stroke in zip(history.names, _STROKES[-len(history.names) :], strict=True):
        series.append({"label": name, "stroke": stroke, "width": 1.5})
    return gui.add_uplot(
        history.columns(),
        tuple(series),
        scales={"x": {"time": False}},
        height=190 if len(history.names) > 3 else 160,
        padding=(8, 8, 0, 0),
    )
