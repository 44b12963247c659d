"""The code blocks of a Markdown page, and what the page says of each in a comment before it.

<!-- given                      Python that is run before the block and not shown: what its names stand for
scene = ...
-->
<!-- not run: why -->           for what cannot be run in a test
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

FENCE = re.compile(
    r"(?P<notes>(?:^<!--(?:(?!-->).)*-->\n+)*)^```(?P<language>[\w{}-]*)[^\n]*\n(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
RUN, SHOWN = ("python", "sh"), ("text", "toml", "xml", "{toctree}", "{raw}")
"""Languages of blocks that are run, and of those that are not code."""


@dataclass(frozen=True)
class Block:
    """One block of a page."""

    language: str
    code: str
    given: str
    why_not: str | None

    def commands(self) -> list[list[str]]:
        """The commands of a shell block, in words."""
        lines = self.code.replace("\\\n", " ").splitlines()
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def blocks_of(text: str) -> list[Block]:
    found = []
    for match in FENCE.finditer(text):
        notes = re.findall(r"<!--(.*?)-->", match["notes"], re.DOTALL)
        given = [note.removeprefix(" given") for note in notes if note.startswith(" given")]
        why = [note.removeprefix(" not run:").strip() for note in notes if note.startswith(" not run:")]
        found.append(Block(match["language"], match["code"], "\n".join(given), why[0] if why else None))
    return found
