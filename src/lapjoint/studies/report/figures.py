"""Drawing: each function makes one figure of numbers it is given, and decides nothing about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...view.draw.colors import worker_colors
from .accuracy import GrowthLine
from .numbers import Array, quartiles, thin, top_of_axis
from .speedup import SpeedupLine
from .style import INK, PAPER, PHASE_COLORS, WIDTH, color, dash, marker

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Line:
    """A line of a panel; `number` decides its colour."""

    number: int
    label: str
    x: Array
    y: Array


@dataclass(frozen=True)
class Panel:
    axis: str
    """Name and unit of what goes up."""
    lines: Sequence[Line]
    from_zero: bool = True
    cut_peaks: bool = False
    log: bool = False
    title: str = ""


def over_time(panels: Sequence[Panel], x_axis: str = "simulated time [s]") -> Figure:
    """Panels of lines over time, with one legend for all."""
    figure, axes = _grid(len(panels), 2.6)
    for number, (ax, panel) in enumerate(zip(axes, panels, strict=True)):
        _draw_panel(ax, panel)
        if number >= len(panels) - _columns(len(panels)):
            ax.set_xlabel(x_axis)
    shown = {line.label: line.number for panel in panels for line in panel.lines}
    if len(shown) > 1:
        from matplotlib.lines import Line2D

        handles = [Line2D([], [], color=color(n), linestyle=dash(n), linewidth=2) for n in shown.values()]
        _legend_below(figure, handles, list(shown))
    return figure


def _draw_panel(ax: Axes, panel: Panel) -> None:
    if panel.log:
        from matplotlib.ticker import FuncFormatter, NullFormatter

        ax.set_yscale("log", nonpositive="mask")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
    for line in panel.lines:
        x, y = thin(line.x, line.y)
        dot = "o" if len(x) == 1 else ""
        ax.plot(x, y, color=color(line.number), linestyle=dash(line.number), marker=dot, markersize=4)
    ax.set_ylabel(panel.axis)
    ax.set_title(panel.title, loc="left")
    ax.margins(x=0.01)
    top = top_of_axis([line.y for line in panel.lines]) if panel.cut_peaks else None
    highest = max((float(line.y[np.isfinite(line.y)].max(initial=0.0)) for line in panel.lines), default=0.0)
    if panel.from_zero and not panel.log:
        ax.set_ylim(0, top if top is not None else 1.06 * highest or 1.0)
    if top is not None:
        ax.set_title(f"peaks of up to {highest:.3g} are cut off", fontsize=8, loc="right")
    elif panel.from_zero and highest == 0:
        ax.set_title("zero throughout", fontsize=8, loc="right")


# ---- speed-up ----------------------------------------------------------------------------------------------------


def speedup(
    lines: Sequence[SpeedupLine], stars: Mapping[str, tuple[int, float]] | None = None, stars_label: str = ""
) -> Figure:
    """Figure 10. Measured: filled marks and full lines; projected: hollow marks and dashed lines.

    `stars` are workers and speed-up of something to compare with, by the label of a line.
    """
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FixedLocator, NullLocator

    figure, (ax,) = _grid(1, 4.2)
    counts = sorted({point.workers for line in lines for point in line.points})
    highest = 1.0
    for number, line in enumerate(lines):
        for name, style, face in (("projected", "--", PAPER), ("measured", "-", color(number))):
            points = [(p.workers, value) for p in line.points if (value := getattr(p, name)) is not None]
            if len(points) < 2 and name == "measured":
                points = []  # one worker alone is no speed-up
            if not points:
                continue
            x, y = zip(*points, strict=True)
            ax.plot(
                x, y, style, color=color(number), marker=marker(number), markerfacecolor=face, markersize=6, zorder=3
            )
            highest = max(highest, *y)
        if stars and line.label in stars:
            ax.plot(*stars[line.label], "*", color=color(number), markeredgecolor=INK, markersize=12, zorder=4)
            highest = max(highest, stars[line.label][1])
    ax.plot([1, counts[-1]], [1, counts[-1]], ":", color=INK, linewidth=1, zorder=1)
    ax.set_ylim(0, min(counts[-1], 1.5 * highest) * 1.05)
    ax.set_xlabel("workers")
    ax.set_ylabel("speed-up against one worker")
    ax.xaxis.set_major_locator(FixedLocator(_apart(counts)))
    ax.xaxis.set_minor_locator(NullLocator())
    handles = [Line2D([], [], color=color(n), marker=marker(n), linestyle="") for n in range(len(lines))]
    labels = [line.label for line in lines]
    handles += [
        Line2D([], [], color=INK, marker="o", markersize=5),
        Line2D([], [], color=INK, marker="o", markersize=5, markerfacecolor=PAPER, linestyle="--"),
        Line2D([], [], color=INK, linestyle=":", linewidth=1),
    ]
    labels += ["measured", "projected", "ideal"]
    if stars:
        handles.append(Line2D([], [], color=PAPER, marker="*", markeredgecolor=INK, markersize=11, linestyle=""))
        labels.append(stars_label)
    _legend_below(figure, handles, labels)
    return figure


# ---- growth depth ------------------------------------------------------------------------------------------------


def over_growth_depth(
    panels: Mapping[str, tuple[Sequence[GrowthLine], float | None]], x_axis: str = "growth depth"
) -> Figure:
    """Errors by growth depth: mean over time as a full line, largest dashed; one worker's mean for comparison.

    With another `x_axis` the lines' growth depth is that.
    """
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    figure, axes = _grid(len(panels), 2.8)
    numbers: dict[str, int] = {}
    single = False
    for place, (ax, (axis, (lines, at_best))) in enumerate(zip(axes, panels.items(), strict=True)):
        for line in lines:
            number = numbers.setdefault(line.label, len(numbers))
            ax.plot(line.growth_depth, line.mean, "-", color=color(number), marker=marker(number), markersize=6)
            ax.plot(
                line.growth_depth,
                line.largest,
                "--",
                color=color(number),
                marker=marker(number),
                markersize=5,
                markerfacecolor=PAPER,
                linewidth=1,
            )
        if at_best is not None:
            ax.axhline(at_best, color=INK, linestyle=":", linewidth=1)
            single = True
        ax.set_ylim(0, None)
        ax.set_ylabel(axis)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if place >= len(panels) - _columns(len(panels)):
            ax.set_xlabel(x_axis)
    handles = [Line2D([], [], color=color(n), marker=marker(n), linestyle="") for n in numbers.values()]
    handles += [
        Line2D([], [], color=INK, marker="o", markersize=5),
        Line2D([], [], color=INK, marker="o", markersize=5, markerfacecolor=PAPER, linestyle="--"),
    ]
    labels = [*numbers, "mean over time", "largest"]
    if single:
        handles.append(Line2D([], [], color=INK, linestyle=":", linewidth=1))
        labels.append("1 worker, mean")
    _legend_below(figure, handles, labels)
    return figure


# ---- violins -----------------------------------------------------------------------------------------------------


def violins(panels: Mapping[str, NDArray[Any]], axis: str) -> Figure:
    """Figures 13 and 14: how a count of each worker was distributed over the steps. Panels are (steps, workers)."""
    columns = _columns(len(panels)) if len(panels) in (1, 2, 4) else 3
    figure, axes = _grid(len(panels), 2.9 if columns < 3 else 2.3, columns)
    for place, (ax, (label, counts)) in enumerate(zip(axes, panels.items(), strict=True)):
        workers = np.arange(counts.shape[1])
        colors = worker_colors(len(workers))
        drawn = ax.violinplot(list(counts.T.astype(float)), positions=workers, widths=0.85, showextrema=False)
        bodies: Any = drawn["bodies"]
        for shape, own in zip(bodies, colors, strict=True):
            shape.set(facecolor=own, edgecolor=own, alpha=0.75, linewidth=1.5)
        for worker in workers:
            spread = quartiles(counts[:, worker])
            ax.plot([worker] * 2, [spread.low, spread.high], color=INK, linewidth=3, solid_capstyle="butt", zorder=3)
            ax.plot(worker, spread.median, "o", color="#ffffff", markeredgecolor=INK, markersize=4.5, zorder=4)
        ax.set_title(_shortened(label, 100 // columns))
        ax.set_ylim(0, 1.08 * float(counts.max(initial=0)) or 1.0)
        every = -(-len(workers) // 16)
        ax.set_xticks(workers[::every])
        ax.set_xlim(-0.6, len(workers) - 0.4)
        ax.grid(axis="x", visible=False)
        if place % columns == 0:
            ax.set_ylabel(axis)
        if place >= len(panels) - columns:
            ax.set_xlabel("worker")
    return figure


# ---- phases ------------------------------------------------------------------------------------------------------


def phases(bars: Mapping[str, Mapping[str, float]]) -> Figure:
    """Stacked bars of ms per phase; a second panel has the server's phases alone, which are short beside the step."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    names = list(dict.fromkeys(phase for bar in bars.values() for phase in bar))
    colors = {name: PHASE_COLORS[number % len(PHASE_COLORS)] for number, name in enumerate(names)}
    figure = Figure(figsize=(WIDTH, 1.5 + 0.34 * len(bars)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(bars))[::-1]
    for ax, shown, title in (
        (left, names, "whole step"),
        (right, [name for name in names if name != "step"], "server's phases: all but step"),
    ):
        start = np.zeros(len(bars))
        for name in shown:
            length = np.array([bar.get(name, 0.0) for bar in bars.values()])
            ax.barh(places, length, 0.7, left=start, color=colors[name], edgecolor=PAPER, linewidth=0.5)
            start += length
        for place, total in zip(places, start, strict=True):
            ax.annotate(f"{total:.3g}", (total, place), (3, 0), textcoords="offset points", va="center", fontsize=8)
        ax.set_xlim(0, 1.15 * float(start.max(initial=0)) or 1.0)
        ax.set_title(title)
        ax.set_xlabel("ms per step")
        ax.grid(axis="y", visible=False)
        ax.tick_params(axis="y", length=0)
    left.set_yticks(places, [_shortened(label) for label in bars])
    _legend_below(figure, [Patch(color=colors[name]) for name in names], names)
    return figure


# ---- layout ------------------------------------------------------------------------------------------------------


def _apart(ticks: Sequence[int], most: int = 24) -> list[int]:
    """Ticks, without those whose labels would run into the next one's; the last one stays."""
    kept: list[int] = []
    for tick in reversed(ticks):
        if not kept or kept[-1] - tick >= ticks[-1] / most:
            kept.append(tick)
    return kept[::-1]


def _columns(count: int) -> int:
    return 1 if count == 1 else 2


def _grid(count: int, row_height: float, columns: int | None = None) -> tuple[Figure, list[Axes]]:
    """A figure with so many axes, two in a row by default, and room for a legend below."""
    from matplotlib.figure import Figure

    columns = columns or _columns(count)
    rows = -(-count // columns)
    figure = Figure(figsize=(WIDTH, row_height * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in axes[count:]:
        spare.remove()
    return figure, list(axes[:count])


def _legend_below(figure: Figure, handles: Sequence[Any], labels: Sequence[str]) -> None:
    shown = [_shortened(label) for label in labels]
    columns = max(1, min(len(shown), 115 // (max(map(len, shown)) + 6)))
    rows = -(-len(shown) // columns)
    if rows > 2:  # for two there is room
        figure.set_figheight(figure.get_figheight() + 0.2 * (rows - 2))
    figure.legend(handles, shown, loc="outside lower center", ncols=columns, handlelength=2.4, columnspacing=1.4)


def _shortened(label: str, most: int = 60) -> str:
    """A label that fits; matplotlib leaves out what starts with an underscore."""
    label = label if len(label) <= most else f"{label[: most - 1]}…"
    return f" {label}" if label.startswith("_") else label
