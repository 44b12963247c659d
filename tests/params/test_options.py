"""Fields of Params: every one is described, checked and listed from its own annotation and docstring."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lapjoint import LapjointError, Params
from lapjoint.params.fields import GROUPS
from lapjoint.params.options import docstrings_of, fields_of, help_of
from lapjoint.params.params import CHOICES

FIELDS = fields_of(Params)


def test_every_field_has_a_group_a_type_and_a_docstring() -> None:
    assert [field.name for field in FIELDS] == list(Params.__dataclass_fields__)
    assert list(docstrings_of(Params)) == [field.name for field in FIELDS]
    for field in FIELDS:
        assert field.group in GROUPS
        assert field.type in (int, float, bool, str)
        assert help_of(Params, field.name)


def test_every_default_is_one_that_its_rule_allows() -> None:
    for field in FIELDS:
        if field.rule is not None and field.default is not None:
            field.rule.check(field.name, field.default)


def test_what_none_stands_for_is_said_of_every_option_that_may_be_none() -> None:
    assert [field.name for field in FIELDS if field.has_option and field.default is None and not field.unset] == []


def test_fields_of_couplings() -> None:
    of = {kind: [field.name for field in FIELDS if field.coupling == kind] for kind in ("blend", "tight")}
    assert of["blend"] == ["growth_depth", "search_depth", "balance", "linger", "weights"]
    assert of["tight"] == []


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_that_is_none_names_the_nearest(name: str) -> None:
    nearly = CHOICES[name][-1] + "x"
    with pytest.raises(LapjointError, match=rf"{name} is '{nearly}', expected one of .*did you mean '{nearly[:-1]}'"):
        Params(**{name: nearly})  # type: ignore[arg-type]


def test_the_page_of_options_is_current() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, root / "tools" / "make-options", "--print"], capture_output=True, text=True, check=True
    )
    assert done.stdout == (root / "docs" / "options.md").read_text(), "run tools/make-options"
