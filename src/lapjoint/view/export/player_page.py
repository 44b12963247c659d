"""The page of a player: its parts from `player/`, put into one file that needs no other."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from ..draw.body_shaders import BODY_FRAGMENT, BODY_VERTEX, SHADOW_FRAGMENT, SHADOW_VERTEX
from ..draw.disc_shaders import DISC_FRAGMENT, DISC_SHADOW_FRAGMENT, DISC_SHADOW_VERTEX, DISC_VERTEX
from ..draw.ground_shaders import BACKGROUND_FRAGMENT, PLANE_FRAGMENT, PLANE_VERTEX, SCREEN_VERTEX
from ..draw.shading import HEAD

_FOLDER = Path(__file__).parent / "player"
_SCRIPTS = ("data.js", "camera.js", "rows.js", "shadow.js", "painter.js", "controls.js", "main.js")
_BROWSER_HEAD = "#version 300 es\nprecision highp float;\nprecision highp int;\nprecision highp sampler2DShadow;\n"
_PROGRAMS = {
    "body": (BODY_VERTEX, BODY_FRAGMENT),
    "disc": (DISC_VERTEX, DISC_FRAGMENT),
    "body_shadow": (SHADOW_VERTEX, SHADOW_FRAGMENT),
    "disc_shadow": (DISC_SHADOW_VERTEX, DISC_SHADOW_FRAGMENT),
    "plane": (PLANE_VERTEX, PLANE_FRAGMENT),
    "background": (SCREEN_VERTEX, BACKGROUND_FRAGMENT),
}


def fill_page(title: str, head: dict[str, Any], places: dict[str, Any], blob: str) -> bytes:
    """The whole page."""
    programs = {name: [text.replace(HEAD, _BROWSER_HEAD) for text in pair] for name, pair in _PROGRAMS.items()}
    content = {**head, "data": places, "programs": programs}
    # `<` would end the script element that holds it.
    written = json.dumps(content, separators=(",", ":"), ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
    parts = {
        "TITLE": html.escape(title),
        "STYLE": (_FOLDER / "page.css").read_text("utf-8"),
        "SCRIPT": "\n".join((_FOLDER / name).read_text("utf-8") for name in _SCRIPTS),
        "HEAD": written,
        "DATA": blob,
    }
    page = (_FOLDER / "page.html").read_text("utf-8")
    pieces = page.split("@@")  # text, name, text, name, ..., text
    return "".join(parts[piece] if odd % 2 else piece for odd, piece in enumerate(pieces)).encode()
