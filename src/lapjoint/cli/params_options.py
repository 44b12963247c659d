"""Options of a command that are fields of Params, made from Params: name, type, default, help, choices and group.

>>> @with_params(but=["validate"])
... def bench(scenes: ScenesArgument, given: Given) -> None: ...

The command has an option for every field that has one, and `given` holds those that were typed.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import typer

from ..errors import LapjointError
from ..params import Params
from ..params.coupling_choice import CouplingChoice, mismatch
from ..params.engine_choice import EngineChoice
from ..params.options import Field
from ..params.params import FIELDS, others
from ..params.solver_choice import SolverChoice
from ..params.solver_choice import mismatch as solver_mismatch
from ..scene import Scene

METAVARS = {
    "workers": "N|N..M",
    "address": "HOST:PORT",
    "partition": "KIND|FILE",
    "engine": "NAME...",
    "solver": "NAME...",
    "speed_limit": "M/S",
    "timestep": "S",
    "hang_limit": "S",
    "repartition": "RATIO",
}
"""What the value of an option stands for, where its type is not enough."""
OF_TYPE = {int: "N", float: "X", str: "NAME"}
AUTO = "auto"
"""`--workers`: as many as trials find to pay, where a command takes it."""
JOINED = ("engine", "solver")
"""Options with something for each worker, in several words or with commas between them."""


@dataclass(frozen=True)
class Change:
    """What a command has otherwise than `lapjoint run`."""

    option: str | None = None
    """Another name, where the command uses this one for something else."""
    help: str | None = None
    default: str | None = None
    """The default in words, where the command has its own."""
    is_several: bool = False
    """Values to be tried one after the other."""
    is_auto: bool = False
    """Whether auto may be given, and is the default: then there is no value."""


@dataclass
class Given:
    """Fields of Params that were typed, by name; and what their options are called."""

    values: dict[str, Any]
    options: Mapping[str, str] = field(default_factory=dict)

    def take(self, name: str, default: list[Any]) -> list[Any]:
        """The values of an option that takes several, taken out of `values`."""
        return self.values.pop(name, None) or default

    def params(self, **more: Any) -> Params:
        """Params of what was typed. A message about an option that belongs to another coupling speaks of options."""
        self.check_coupling(CouplingChoice(more.get("coupling", self.values.get("coupling", "auto")), None))
        with self.naming_options():
            return Params.from_options(**{**self.values, **more})

    def check_coupling(self, choice: CouplingChoice) -> None:
        """Refuse what was typed and the coupling has no use for, also where it is the default."""
        unused = {} if choice.coupling == "auto" else others(choice.coupling)
        for name in self.values:
            if name in unused:
                raise LapjointError(self.in_options(mismatch(name, choice.coupling, unused[name], choice.reason)))

    def coupling(self, params: Params, scene: Scene) -> CouplingChoice:
        """The coupling that a run takes; the reason names options. Refuse what was typed of another."""
        choice = params.coupling_choice(scene)
        self.check_coupling(choice)
        return self.named(choice)

    def named(self, choice: CouplingChoice) -> CouplingChoice:
        """A choice whose reason names options."""
        return replace(choice, reason=None if choice.reason is None else self.in_options(choice.reason))

    def solver(self, params: Params, scene: Scene) -> SolverChoice:
        """The solver that a run takes; the reason names options. Refuse what was typed of another, also where it is the
        default."""
        choice = params.solver_choice(scene)
        if choice.solver in ("substeps", "sequential"):
            for name in self.values:
                of = FIELDS[name].part
                if of in ("substeps", "sequential") and of != choice.solver:
                    raise LapjointError(self.in_options(solver_mismatch(name, choice, of)))
        is_own = set(EngineChoice.parse(params.engine).names) != {"bullet"}  # what sequential stands for there
        reason = None if choice.reason is None or is_own else self.in_options(choice.reason)
        return SolverChoice(choice.solver, reason)

    def in_options(self, text: str) -> str:
        """A text with the names of options for those of fields in backticks."""
        return re.sub(r"`(\w+)`", lambda found: self._title(found[1]) if found[1] in FIELDS else found[0], text)

    def _title(self, name: str) -> str:
        return self.options.get(name, option_name(name))

    @contextmanager
    def naming_options(self) -> Iterator[None]:
        """Within it, a LapjointError names options in place of fields in backticks."""
        try:
            yield
        except LapjointError as error:
            raise LapjointError(self.in_options(str(error))) from None


def option_name(name: str) -> str:
    """The option of a field."""
    return "--" + name.replace("_", "-")


def with_params(
    *,
    only: Collection[str] | None = None,
    but: Collection[str] = (),
    changes: Mapping[str, Change] | None = None,
    default: str | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator of a command: options of Params in place of its argument `given`. `default` is what all defaults are in
    words, where it is not that of Params."""
    changed = changes or {}
    fields = [
        one for one in FIELDS.values() if one.has_option and (only is None or one.name in only) and one.name not in but
    ]
    names = {name: change.option for name, change in changed.items() if change.option is not None}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [one for one in inspect.signature(command, eval_str=True).parameters.values() if one.name != "given"]
        made = [_parameter(one, changed.get(one.name, Change(default=default))) for one in fields]

        @functools.wraps(command)
        def called(**typed: Any) -> None:
            values: dict[str, Any] = {}
            for one in fields:
                value, change = typed.pop(_python_name(one.name)), changed.get(one.name, Change())
                if value is not None and value != [] and not (change.is_auto and value == AUTO):
                    values |= {one.name: value} if change.is_several else _as_fields(one.name, value, change.is_auto)
            command(given=Given(values, names), **typed)

        parameters = [*own, *made]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in parameters}
        return called

    return decorate


def _python_name(name: str) -> str:
    """Of the argument, which a command may have for something else."""
    return f"params_{name}"


def _parameter(one: Field, change: Change) -> inspect.Parameter:
    option = change.option or option_name(one.name)
    kind: Any = one.type
    metavar = METAVARS.get(one.name, OF_TYPE.get(one.type, ""))
    if change.is_several:
        kind, metavar = list[kind], f"{OF_TYPE[one.type]}..."
    elif one.name in JOINED:
        kind = list[str]
    elif one.name == "workers":
        kind, metavar = str, f"{AUTO}|{metavar}" if change.is_auto else metavar
    elif one.type is bool:
        option = f"{option}/--no-{option[2:]}" if one.default else option
    default = AUTO if change.is_auto else change.default or one.default_text
    text = Given({}).in_options(change.help or one.summary)
    info = typer.Option(
        option,
        metavar=metavar or None,
        help=f"{text} [default: {default}]" if default else text,
        rich_help_panel=one.group.title,
        show_default=False,
    )
    annotation = Annotated[kind | None, info]
    return inspect.Parameter(
        _python_name(one.name), inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _as_fields(name: str, value: Any, is_auto: bool) -> dict[str, Any]:
    if name == "workers":
        least, most = worker_range(value, is_auto)
        return {"workers": least} if most is None else {"workers": least, "max_workers": most}
    return {name: ",".join(value) if name in JOINED else value}


def worker_range(text: str, is_auto: bool = False) -> tuple[int, int | None]:
    """`--workers`: a number, or the least and the most with two dots between. Messages name auto where `is_auto`."""
    least, dots, most = text.partition("..")
    if not least.isdecimal() or (dots and not most.isdecimal()):
        auto = f"{AUTO}, " if is_auto else ""
        raise LapjointError(f"--workers is {text!r}, expected {auto}a number, or two with dots between, as in 2..16")
    if dots and int(most) < int(least):
        raise LapjointError(f"--workers is {text!r}, expected the smaller number first: {int(most)}..{int(least)}")
    return int(least), int(most) if dots else None
