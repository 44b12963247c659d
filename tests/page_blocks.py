"""The code blocks of a Markdown page, and what the page says of each in a comment before it.

<!-- given                      Python that is run before the block and not shown: what its names stand for
scene = ...
-->
<!-- not run: why -->           for what cannot be run in a test
<!-- printed by: COMMAND -->    before a block of text: some lines of what the command prints
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
    printed_by: str | None

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
        by = [note.removeprefix(" printed by:").strip() for note in notes if note.startswith(" printed by:")]
        why_not, printed_by = why[0] if why else None, by[0] if by else None
        found.append(Block(match["language"], match["code"], "\n".join(given), why_not, printed_by))
    return found


MACHINE_LINES = ("interface", "speed", "phases")
"""First words of lines whose numbers differ with the speed of the machine: interfaces are counted between commands, and
how many steps a command is for depends on the time that steps take."""


def lines_not_printed(shown: str, printed: str) -> list[str]:
    """Lines of a block that do not follow, in this order, among those that were printed."""
    rest, missing = [" ".join(line.split()) for line in printed.splitlines()], []
    for line in filter(None, (" ".join(line.split()) for line in shown.splitlines())):
        pattern = re.escape(line)
        if line.split()[0] in MACHINE_LINES:
            pattern = re.sub(r"\d(?:[\d,]|\\\.\d)*", r"[\\d.,]+", pattern)
        at = next((at for at, other in enumerate(rest) if re.fullmatch(pattern, other)), None)
        if at is None:
            missing.append(line)
        else:
            rest = rest[at + 1 :]
    return missing
