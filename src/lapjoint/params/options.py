"""The fields of Params and of the classes in it as options, in one list: as the command line, files, the checks and the
documentation see them. Read once, from the classes."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from .fields import RULES, Group, InPythonOnly, Named, OneOf, Rule, Unset

PLAIN = (int, float, bool, str)


@dataclass(frozen=True)
class Field:
    """A field with a plain value, of Params or of a class in it."""

    name: str
    """Of its option: no two fields have the same."""
    owner: type
    """The class that has it."""
    attribute: str
    """Its name there."""
    part: str | None
    """The field of Params that has the owner; None for a field of Params itself."""
    type: Any
    """int, float, bool or str; without None."""
    default: Any
    group: Group
    rule: Rule | None
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

    @property
    def summary(self) -> str:
        """The first paragraph of the text below it, on one line."""
        return " ".join(docstrings_of(self.owner)[self.attribute].split("\n\n")[0].split())

    @property
    def in_python(self) -> str:
        """How it is written: `workers`, `blend.linger`."""
        return self.attribute if self.part is None else f"{self.part}.{self.attribute}"


@functools.cache
def fields_of(cls: type) -> tuple[Field, ...]:
    """The plain fields of a dataclass that is annotated as in fields.py, those of a class in it where its field is."""
    return tuple(_fields_of(cls, None))


def _fields_of(cls: Any, part: str | None) -> list[Field]:
    found: list[Field] = []
    hints = get_type_hints(cls, include_extras=True)
    for one in fields(cls):
        kinds, notes = _split(hints[one.name])
        if any(kind in PLAIN for kind in kinds):
            found.append(_field(cls, part, one.name, one.default, kinds, notes))
        for owner in kinds:
            if isinstance(owner, type) and is_dataclass(owner):
                found += _fields_of(owner, one.name)
    return found


def _split(hint: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The types that an annotation allows, and what is noted there."""
    base, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    kinds = get_args(base) if get_origin(base) in (Union, UnionType) else (base,)
    return kinds, tuple(notes)


def _field(
    owner: type, part: str | None, attribute: str, default: Any, kinds: tuple[Any, ...], notes: tuple[Any, ...]
) -> Field:
    return Field(
        next((note.name for note in notes if isinstance(note, Named)), attribute),
        owner,
        attribute,
        part,
        next(kind for kind in kinds if kind in PLAIN),
        default,
        next((note for note in notes if isinstance(note, Group)), None) or owner.GROUP,  # type: ignore[attr-defined]
        next((note for note in notes if isinstance(note, RULES)), None),
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
