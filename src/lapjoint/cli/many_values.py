"""Options that take several values: `--workers 1 2 4 8`, `--peer pybullet rapier`, `--solver sequential 1=dantzig`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from typer.core import TyperCommand

from ..engines import engine_names
from ..errors import LapjointError
from ..params.engine_choice import EngineChoice
from ..params.params import CHOICES
from ..params.solver_choice import parse_solvers
from ..studies.peers import PEER_NAMES

NUMBER = re.compile(r"[-+]?\d[\d.]*")
IsValue = Callable[[str], bool]


def _names_engines(word: str) -> bool:
    try:
        return set(EngineChoice.parse(word).names) <= set(engine_names())
    except LapjointError:
        return False


def _names_solvers(word: str) -> bool:
    try:
        return bool(parse_solvers(word))
    except LapjointError:
        return False


WORDS: dict[str, IsValue] = {
    "--peer": PEER_NAMES.__contains__,
    "--engine": _names_engines,
    "--coupling": CHOICES["coupling"].__contains__,
    "--solver": _names_solvers,
}
"""Which words are further values of an option that has no numbers."""


def spread(arguments: Sequence[str], options: Collection[str], words_of: Mapping[str, IsValue] = WORDS) -> list[str]:
    """`--workers 1 2 4` as `--workers 1 --workers 2 --workers 4`, for these options.

    The word after an option belongs to it, whatever it is, and so do the numbers that follow, or the words that are
    values of it. The first word that is neither ends them: a scene or another option.
    """
    done: list[str] = []
    option = ""
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, given, _ = word.partition("=")
        if word == "--":
            return [*done, word, *words]
        if name in options:
            option = name
            done.append(word)
            if words and not given:
                done.append(words.pop(0))
        elif option and (words_of[option](word) if option in words_of else NUMBER.fullmatch(word)):
            done += [option, word]
        else:
            option = ""
            done.append(word)
    return done


class ManyValuesCommand(TyperCommand):
    """A command whose options of list type take several values each."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        many = [name for option in self.params if getattr(option, "multiple", False) for name in option.opts]
        return super().parse_args(ctx, spread(args, many))
