"""What Params and the classes in it have in common: a keyword that is no field, and a value that a field may not have,
is a LapjointError."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from ..errors import LapjointError, did_you_mean, shortened
from .options import fields_of

Class = TypeVar("Class", bound=type)


def with_named_keywords(cls: Class) -> Class:
    """Class decorator: a keyword that is no field raises a LapjointError, where Python has a TypeError. It says where
    the field is, if a class in this one has it."""
    plain = cls.__init__  # type: ignore[misc]

    @functools.wraps(plain)
    def init(self: Any, *values: Any, **given: Any) -> None:
        known = [field.name for field in fields(cls)]
        for name, value in given.items():
            if name not in known:
                raise LapjointError(_elsewhere(cls, name, value) or unknown(name, known, _names_within(cls)))
        plain(self, *values, **given)

    cls.__init__ = init  # type: ignore[misc]
    return cls


def _elsewhere(cls: type, name: str, value: Any) -> str | None:
    for one in fields_of(cls):
        if one.owner is not cls and name in (one.name, one.attribute):
            example = f"{one.owner.__name__}({one.attribute}={shortened(repr(value))})"
            return f"{name} is of {one.part}: {cls.__name__}({one.part}={example})"
    return None


def _names_within(cls: type) -> list[str]:
    return [one.name for one in fields_of(cls) if one.owner is not cls]


def unknown(name: str, known: Sequence[str], more: Sequence[str] = ()) -> str:
    """What is wrong with the name of a parameter that is none. `more` may be meant too."""
    return f"no parameter named {name!r}{did_you_mean(name, [*known, *more])}; known parameters: {', '.join(known)}"


def check_values(params: Any) -> None:
    """Raise a LapjointError for a value that its field may not have. NumPy's numbers become plain ones: messages and
    checkpoints have those alone."""
    cls: type = type(params)
    for field in fields_of(cls):
        if field.owner is not cls:
            continue
        value = getattr(params, field.attribute)
        if is_dataclass(value):  # it has checked itself
            continue
        if isinstance(value, np.generic):
            value = value.item()
            object.__setattr__(params, field.attribute, value)
        if isinstance(field.default, bool) and not isinstance(value, bool):
            raise LapjointError(f"{field.name} is {shortened(repr(value))}, expected True or False")
        if field.rule is not None and not (value is None and field.default is None):
            field.rule.check(field.name, value)
