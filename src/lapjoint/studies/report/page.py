"""The page: HTML that needs nothing but itself. Every name goes through `escape`."""

from __future__ import annotations

import html
from collections.abc import Sequence

from .tables import Table

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1f2328; --grid: #d1d5da; --soft: #57606a; }
@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #e6edf3; --grid: #3d444d; --soft: #9198a1; } }
html { background: var(--paper); color: var(--ink); }
body { margin: 2rem auto; padding: 0 1.2rem; max-width: 62rem; font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .8rem; padding-bottom: .2rem; border-bottom: 1px solid var(--grid); }
h3 { font-size: 1.02rem; margin: 0 0 .3rem; }
h1, h2, h3, dd { overflow-wrap: anywhere; }
p { margin: .3rem 0; }
.soft, figcaption { color: var(--soft); font-size: .88rem; }
ul { margin: .6rem 0; padding-left: 1.2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1.2rem; margin: .8rem 0; }
dt { color: var(--soft); }
dd { margin: 0; }
.wide { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .8rem .25rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--grid); }
th { font-weight: 600; vertical-align: bottom; }
td { white-space: nowrap; }
td.long { white-space: normal; min-width: 14rem; overflow-wrap: anywhere; }
figure { margin: 1.6rem 0; break-inside: avoid; }
figure svg { display: block; width: 100%; height: auto; margin-top: .6rem; }
details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--soft); font-size: .88rem; }
nav a { margin-right: 1rem; }
a { color: inherit; }
"""

LONG = 40
"""Letters of a cell from which it may be broken into lines."""


def page(title: str, lead: str, parts: Sequence[str]) -> str:
    """A whole page of parts that are HTML already."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f'<h1>{escape(title)}</h1>\n<p class="soft">{escape(lead)}</p>\n' + "\n".join(parts) + "\n</body>\n</html>\n"
    )


def escape(text: str) -> str:
    return html.escape(text, quote=True)


def heading(text: str, anchor: str) -> str:
    return f'<h2 id="{escape(anchor)}">{escape(text)}</h2>'


def subheading(text: str) -> str:
    return f"<h3>{escape(text)}</h3>"


def links(targets: Sequence[tuple[str, str]]) -> str:
    """Text and anchor of every section."""
    return "<nav>" + "".join(f'<a href="#{escape(anchor)}">{escape(text)}</a>' for text, anchor in targets) + "</nav>"


def definitions(pairs: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
    return f"<dl>{rows}</dl>"


def bullets(texts: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def table(content: Table, summary: str = "") -> str:
    """A table; folded away behind `summary` if there is one."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in content.headings)
    rows = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>\n" for row in content.rows)
    text = f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>'
    return f"<details><summary>{escape(summary)}</summary>{text}</details>" if summary else text


def _cell(text: str) -> str:
    kind = ' class="long"' if len(text) > LONG else ""
    return f"<td{kind}>{escape(text)}</td>"


def figure(title: str, caption: str, svg: str, numbers: Table | None = None) -> str:
    """`svg` comes from `style.inline_svg`, where matplotlib has escaped every text."""
    named = svg.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)
    below = "" if numbers is None else table(numbers, "Numbers of this figure")
    return f"<figure><h3>{escape(title)}</h3><figcaption>{escape(caption)}</figcaption>\n{named}{below}</figure>"


def left_out(title: str, reason: str) -> str:
    return f'<p class="soft"><strong>{escape(title)}</strong> is left out. {escape(reason)}</p>'
