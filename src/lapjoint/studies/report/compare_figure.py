"""The figure of a comparison."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..compare import Comparison
from .figures import Line, Panel, over_time
from .style import checked_figure_path, save, styled


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Differences over time, as a PNG or an SVG."""
    checked_figure_path("figure", path)
    time = comparison.time
    lines = [
        Line(0, "RMS of all bodies", time, 1e3 * comparison.position_rms),
        Line(1, "largest", time, 1e3 * comparison.position_largest),
    ]
    turns = [Line(1, "largest", time, comparison.rotation_largest)]
    panels = [
        Panel(axis, shown, log=any(np.any(line.y > 0) for line in shown))
        for axis, shown in (("position difference [mm]", lines), ("rotation difference [rad]", turns))
    ]
    with styled():
        figure = over_time(panels)
        figure.suptitle(f"{comparison.scene}: {Path(comparison.a).name} and {Path(comparison.b).name}", fontsize=10)
        save(figure, path)
