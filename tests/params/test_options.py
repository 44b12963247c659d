"""Fields of Params: every one is described, checked and listed from its own annotation and docstring."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from lapjoint import Blend, Failures, LapjointError, Params, Sleep, Substeps, Units
from lapjoint.params.fields import GROUPS
from lapjoint.params.options import docstrings_of, fields_of
from lapjoint.params.params import CHOICES, PARTS

FIELDS = fields_of(Params)


def test_every_field_has_a_group_a_type_and_a_docstring() -> None:
    owners = {field.owner for field in FIELDS}
    assert {(field.owner, field.attribute) for field in FIELDS} == {
        (owner, one.name) for owner in owners for one in fields(owner) if one.name not in PARTS or owner is not Params
    }
    for owner in owners:
        assert list(docstrings_of(owner)) == [one.name for one in fields(owner)]
    for field in FIELDS:
        assert field.group in GROUPS
        assert field.type in (int, float, bool, str)
        assert field.summary


def test_no_two_options_have_the_same_name() -> None:
    assert len({field.name for field in FIELDS}) == len(FIELDS)


def test_options_and_params_say_the_same() -> None:
    params = Params(
        workers=3,
        blend=Blend(growth_depth=2),
        substeps=Substeps(8, joints="swept"),
        sleep=Sleep(after=0.2),
        units=Units(length=0.5),
        failures=Failures(quarantine=True),
    )
    options = params.options()
    assert (options["growth_depth"], options["substeps"], options["sleep"], options["sleep_after"]) == (2, 8, True, 0.2)
    assert Params.from_options(**options) == params
    assert Params.from_options(**Params().options()) == Params()
    assert params.with_options(sleep=False).sleep is False
    assert params.with_options(growth_depth=5).blend == Blend(growth_depth=5)
    assert Params(sleep=True) == Params(sleep=Sleep()) == Params.from_options(sleep=True)


def test_every_default_is_one_that_its_rule_allows() -> None:
    for field in FIELDS:
        if field.rule is not None and field.default is not None:
            field.rule.check(field.name, field.default)


def test_what_none_stands_for_is_said_of_every_option_that_may_be_none() -> None:
    assert [field.name for field in FIELDS if field.has_option and field.default is None and not field.unset] == []


def test_fields_of_couplings() -> None:
    of = {kind: [field.name for field in FIELDS if field.part == kind] for kind in ("blend", "tight")}
    assert of["blend"] == ["growth_depth", "search_depth", "balance", "linger", "weights"]
    assert of["tight"] == []


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_that_is_none_names_the_nearest(name: str) -> None:
    nearly = CHOICES[name][-1] + "x"
    with pytest.raises(LapjointError, match=rf"{name} is '{nearly}', expected one of .*did you mean '{nearly[:-1]}'"):
        Params.from_options(**{name: nearly})


def test_the_page_of_options_is_current() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, root / "tools" / "make-options", "--print"], capture_output=True, text=True, check=True
    )
    assert done.stdout == (root / "docs" / "options.md").read_text(), "run tools/make-options"
