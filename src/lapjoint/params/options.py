"""The fields of Params as the command line, the checks and the documentation see them: read once, from the class."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from .fields import RULES, Group, InPythonOnly, Of, OfSolver, OneOf, Rule, Unset


@dataclass(frozen=True)
class Field:
    """A field of Params."""

    name: str
    type: Any
    """int, float, bool or str; without None."""
    default: Any
    group: Group
    rule: Rule | None
    coupling: str | None
    """The coupling it belongs to, if not to all."""
    solver: str | None
    """The solver it belongs to, if not to all."""
    unset: str | None
    """What None stands for, where it is the default."""
    has_option: bool

    @property
    def choices(self) -> tuple[str, ...]:
        """Values to choose from; empty where there is no such list."""
        return tuple(map(str, self.rule.values)) if isinstance(self.rule, OneOf) else ()

    @property
    def default_text(self) -> str | None:
        """The default, in the words of `--help`."""
        if isinstance(self.default, bool):
            return "on" if self.default else None
        if self.default is None:
            return self.unset
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)


@functools.cache
def fields_of(cls: type) -> tuple[Field, ...]:
    """The fields of a dataclass that is annotated as in fields.py."""
    hints = get_type_hints(cls, include_extras=True)
    return tuple(_field(one.name, hints[one.name], one.default) for one in fields(cls))


def _field(name: str, hint: Any, default: Any) -> Field:
    if get_origin(hint) is not Annotated:
        raise TypeError(f"{name}: expected Annotated[type, group, ...]")
    base, *notes = get_args(hint)
    kinds = get_args(base) if get_origin(base) in (Union, UnionType) else (base,)
    return Field(
        name,
        next(kind for kind in kinds if kind in (int, float, bool, str)),
        default,
        next(note for note in notes if isinstance(note, Group)),
        next((note for note in notes if isinstance(note, RULES)), None),
        next((note.coupling for note in notes if isinstance(note, Of)), None),
        next((note.solver for note in notes if isinstance(note, OfSolver)), None),
        next((note.text for note in notes if isinstance(note, Unset)), None),
        not any(isinstance(note, InPythonOnly) for note in notes),
    )


@functools.cache
def docstrings_of(cls: type) -> Mapping[str, str]:
    """The text below each field, by name: Python keeps no docstrings of fields, so it is read from the source."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for node, after in zip(body.body, body.body[1:], strict=False):
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[node.target.id] = inspect.cleandoc(str(after.value.value))
    return found


def help_of(cls: type, name: str) -> str:
    """The first paragraph of the text below a field, on one line."""
    return " ".join(docstrings_of(cls)[name].split("\n\n")[0].split())
