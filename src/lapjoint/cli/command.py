"""Command: typer's, with options that take several values, and with our own page of help."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from typer.core import TyperCommand

from ..engines import engine_names
from ..errors import LapjointError
from ..params.engine_choice import EngineChoice
from ..params.fields import GROUPS
from ..params.params import CHOICES
from ..params.solver_choice import parse_solvers
from ..studies.peers import PEER_NAMES
from .help_page import print_command_page

NUMBER = re.compile(r"[-+]?\d[\d.]*")
LIST = re.compile(r"\d+(,\d+)+")
"""Numbers with commas between them: several values in one word."""


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


def _is_number(word: str) -> bool:
    return bool(NUMBER.fullmatch(word) or LIST.fullmatch(word))


IS_VALUE: Mapping[str, Callable[[str], bool]] = {
    "--peer": PEER_NAMES.__contains__,
    "--engine": _names_engines,
    "--coupling": CHOICES["coupling"].__contains__,
    "--solver": _names_solvers,
}
"""Which words are further values of an option, where these are not numbers."""


class Command(TyperCommand):
    """A command whose options of list type take several values each: `--workers 1 2 4`, `--workers 1,2,4`, or
    `--workers 1 --workers 2`.

    The word after an option belongs to it, whatever it is, and so do the numbers that follow, or the words that are
    values of it. The first word that is neither ends them: a scene or another option.
    """

    def make_parser(self, ctx: Any) -> Any:
        parser = super().make_parser(ctx)
        for option in self.params:
            if option.param_type_name == "option" and getattr(option, "multiple", False):
                for name in option.opts:
                    _take_several(parser._long_opt[name], IS_VALUE.get(name, _is_number))
        return parser

    def format_help(self, ctx: Any, formatter: Any) -> None:
        print_command_page(self, ctx, [group.title for group in GROUPS])


def _take_several(option: Any, is_value: Callable[[str], bool]) -> None:
    """Let the parser's option take the words after its first value, as long as they are values of it."""
    take_one = option.process

    def process(value: str, state: Any) -> None:
        words = [value]
        while state.rargs and is_value(state.rargs[0]):
            words.append(state.rargs.pop(0))
        for word in words:
            for one in word.split(",") if LIST.fullmatch(word) else [word]:
                take_one(one, state)

    option.process = process
