"""How figures look, and how they become files. The only place that imports matplotlib."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...errors import LapjointError
from ...system.files import write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, without black and yellow: distinct for the colour-blind, and seen on white and on black.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c")
Dash = Literal["-", "--", ":", "-."]
DASHES: tuple[Dash, ...] = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
PHASE_COLORS = ("#cc79a7", "#56b4e9", "#d55e00", "#009e73", "#0072b2", "#e69f00")

# Colours that stand for something else inside a page, which may be dark: `inline_svg` replaces them.
PAPER, INK, GRID = "#fefefe", "#24292f", "#d1d5da"

WIDTH = 9.0
"""Of a figure, in inches."""
PIXELS_PER_INCH = 150

RC: dict[Any, Any] = {
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "text.parse_math": False,  # a name may have dollars
    "svg.fonttype": "none",  # text stays text: small files, and a page that can be searched
    "axes.formatter.useoffset": False,
}


def color(number: int) -> str:
    """Of the run or line with that number."""
    return COLORS[number % len(COLORS)]


def dash(number: int) -> Dash:
    """Changes once all colours are used up."""
    return DASHES[number // len(COLORS) % len(DASHES)]


def marker(number: int) -> str:
    return MARKERS[number % len(MARKERS)]


def check_matplotlib() -> None:
    """Refuse to go on without matplotlib, before anything was done."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise LapjointError("figures need matplotlib: pip install 'lapjoint[report]'") from None


@contextmanager
def styled() -> Iterator[None]:
    """Within it, figures are made and written in this style, whatever the user's own settings are."""
    check_matplotlib()
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # names may have any letters
        yield


def checked_figure_path(option: str, path: Path) -> Path:
    """The path, if its ending names a kind of figure."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise LapjointError(f"{option} {path}: expected a name that ends in .png or .svg")
    return path


def save(figure: Figure, path: Path) -> None:
    """Write a PNG or an SVG, by the path's ending."""
    write_file(path, figure_svg(figure, path.stem).encode() if path.suffix.lower() == ".svg" else figure_png(figure))


def figure_png(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=PIXELS_PER_INCH)
    return out.getvalue()


def figure_svg(figure: Figure, name: str) -> str:
    """The same for the same figure; `name` keeps ids of figures apart in a page that has several."""
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def inline_svg(svg: str) -> str:
    """An SVG for a page: in the page's colours, without any address, and with those ids alone that it refers to."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    head, rest = svg.split(">", 1)
    svg = re.sub(r'\s(xmlns(:\w+)?|width|height|version)="[^"]*"', "", head) + ">" + rest
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    return re.sub(r"<[^<>]*>", lambda tag: _inline_tag(tag[0], used), svg)


def _inline_tag(tag: str, used: set[str]) -> str:
    for color, meaning in ((PAPER, "var(--paper)"), (INK, "var(--ink)"), (GRID, "var(--grid)")):
        tag = tag.replace(color, meaning)
    return re.sub(r'\sid="([^"]*)"', lambda found: found[0] if found[1] in used else "", tag)
