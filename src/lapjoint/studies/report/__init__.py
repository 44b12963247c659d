"""Reports: recordings and benchmarks as one page with figures, and the figures as files. See docs/report.md.

Needs the extra `lapjoint[report]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from ...errors import LapjointError
from ...recording.layout import ROOT
from ...system.files import write_file
from ...system.shortage import reason
from ..titles import count_of
from . import page
from .contents import Plot, Section, sections
from .runs import Material, open_material
from .style import check_matplotlib, figure_png, figure_svg, inline_svg, styled
from .tables import bench_origins, run_origins

__all__ = ["report", "write_page"]

PAGE = "index.html"


def report(
    runs: Sequence[str | Path],
    out: str | Path,
    title: str | None = None,
    on_figure: Callable[[int, int], None] | None = None,
) -> Path:
    """Write a report on recordings and files of `lapjoint bench --json` into a directory; returns its page.

    `on_figure` gets the figures that are done and those to do.
    """
    out = Path(out)
    check_matplotlib()
    material = open_material(runs)
    check_out(out)
    contents = sections(material)
    scenes = list(dict.fromkeys([*(run.scene for run in material.runs), *(row.scene for row in material.rows)]))
    title = title or f"lapjoint: {', '.join(scenes)}"
    what = [count_of(len(material.runs), "recording")] if material.runs else []
    what += [count_of(len({row.file for row in material.rows}), "benchmark")] if material.rows else []
    return write_page(out, title, " and ".join(what), _header(material), contents, on_figure)


def write_page(
    out: Path,
    title: str,
    lead: str,
    header: Sequence[str],
    contents: Sequence[Section],
    on_figure: Callable[[int, int], None] | None = None,
) -> Path:
    """Draw the figures of all sections into files and into a page; returns the page. `header` is HTML."""
    try:
        out.mkdir(exist_ok=True)
    except OSError as error:
        raise LapjointError(f"{out}: cannot be made: {reason(error)}") from None
    parts = [*header, page.links([(section.heading, _anchor(n)) for n, section in enumerate(contents)])]
    total = sum(isinstance(item, Plot) for section in contents for item in section.items)
    done = 0
    names: set[str] = set()
    for number, section in enumerate(contents):
        parts.append(page.heading(section.heading, _anchor(number)))
        if section.table is not None:
            parts.append(page.table(section.table))
        if section.notes:
            parts.append(page.bullets(section.notes))
        for item in section.items:
            if isinstance(item, Plot):
                parts.append(_draw(item, out, file_name(section, item, names)))
                done += 1
                if on_figure is not None:
                    on_figure(done, total)
            else:
                parts.append(page.left_out(item.title, item.reason))
    made = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    path = out / PAGE
    write_file(path, page.page(title, f"{lead}; made {made}", parts).encode())
    return path


def check_out(out: Path) -> None:
    """Refuse a place for the report before anything is drawn."""
    if out.exists() and not out.is_dir():
        raise LapjointError(f"--out {out}: is a file, expected a directory")
    if (out / ROOT).exists():
        raise LapjointError(f"--out {out}: is a recording, expected another directory")
    if not out.exists() and not out.parent.is_dir():
        raise LapjointError(f"--out {out}: the directory {out.parent} does not exist")


def file_name(section: Section, plot: Plot, taken: set[str]) -> str:
    """A name for a figure's files, of small letters, digits and dashes; not one that is taken."""
    scene = "-".join(re.findall(r"[a-z0-9]+", section.name.lower()))[:40].strip("-")
    base = f"{scene}-{plot.name}" if scene else plot.name
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name


def _header(material: Material) -> list[str]:
    """Where everything comes from: once what is the same for all, then a table of the rest."""
    parts = []
    for heading, table in (("Recordings", run_origins(material.runs)), ("Benchmarks", bench_origins(material.rows))):
        if table.rows:
            shared, rest = table.without_shared("run")
            parts += [page.subheading(heading), page.definitions(shared), page.table(rest)]
    return parts


def _draw(plot: Plot, out: Path, name: str) -> str:
    with styled():
        figure = plot.draw()
        write_file(out / f"{name}.png", figure_png(figure))
        svg = figure_svg(figure, name)
    write_file(out / f"{name}.svg", svg.encode())
    return page.figure(plot.title, plot.caption, inline_svg(svg), plot.numbers)


def _anchor(number: int) -> str:
    return f"section-{number}"
