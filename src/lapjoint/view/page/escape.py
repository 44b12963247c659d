"""Escape: text that others wrote, such as names and paths, shown as it is by the Markdown of a page."""

from __future__ import annotations

import string

_ESCAPED = str.maketrans({mark: f"\\{mark}" for mark in string.punctuation})


def escaped(text: str) -> str:
    """Text as Markdown without any markup, on one line.

    Without it a name could hold an image, which browsers fetch from wherever it points, or HTML.
    """
    return " ".join(text.split()).translate(_ESCAPED)
