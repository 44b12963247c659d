"""Every engine has what it declares, and refuses, leaves out with a warning, or does otherwise what it does not."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine_support import ENGINES, Kind, class_of, is_installed, params_of, supports_of
from feature_cases import CASES, ROWS, Case
from lapjoint import Engine, EngineWarning, LapjointError, Scene, make_engine
from lapjoint.engines import Support
from lapjoint.engines.support import LEFT_OUT, check_support, warn_of_left_out

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
YES, REFUSED, OMITTED, NO = "yes", "refused", "left out", "no"
"""What becomes of a feature: it is there, an error names it, a warning does, or the engine does without."""


class Refused(Exception):
    """An engine does not take a scene."""


def declares(support: Support, row: str) -> bool:
    return row in support.features or row in {one.__name__ for one in (*support.shapes, *support.joints)}


def starter(kind: Kind) -> Any:
    def start(scene: Scene, **params: Any) -> Engine:
        given = params_of(kind, **params)
        try:
            check_support(kind[0], supports_of(kind[0]), scene, given.resolved(scene))
            class_of(kind[0]).check(scene, given.resolved(scene))
        except LapjointError as error:
            raise Refused(str(error)) from None
        engine = make_engine(scene, given)
        engine.activate(np.arange(scene.body_count), scene.states)
        return engine

    return start


def refusal_of(kind: Kind, case: Case) -> str | None:
    """Run a case; what the engine says that does not take its scene."""
    try:
        case.run(starter(kind))
    except Refused as error:
        return str(error)
    return None


def is_left_out(kind: Kind, case: Case) -> bool:
    """Whether the engine warns of what it leaves out of the scene of a case."""
    found = []

    def look(scene: Scene, **_: Any) -> Engine:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_of_left_out(kind[0], supports_of(kind[0]), scene)
        found.extend(one.category for one in caught)
        raise Refused

    with pytest.raises(Refused):
        case.run(look)
    return found == [EngineWarning]


@pytest.mark.parametrize("row", ROWS)
def test_what_is_declared_is_there_and_nothing_else_is_passed_over(kind: Kind, row: str, record_property: Any) -> None:
    case, declared = CASES[row], declares(supports_of(kind[0]), row)
    if case.solver and len(kind) > 2 and kind[2] != case.solver:
        pytest.skip(f"{row} is about the solver {case.solver}")
    if not declared and case.without is not None:
        case.without(starter(kind))
        outcome = NO
    elif not declared and row in LEFT_OUT:
        assert is_left_out(kind, case)
        outcome = OMITTED
    else:
        refusal = refusal_of(kind, case)
        outcome = YES if refusal is None else REFUSED
        if refusal is not None:
            assert not declared or len(kind) > 2  # another solver may have it
            assert kind[0] in refusal or f"solver is {kind[-1]}" in refusal
    assert declared or outcome != YES, "the engine has what it does not declare"
    record_property("cell", ["-".join(kind), row, outcome])


def test_every_row_has_a_case() -> None:
    assert set(CASES) == set(ROWS)


def test_the_table_in_the_documents_is_what_engines_declare() -> None:
    """tools/make-features makes it of what ran."""
    table = re.search(r"<!-- features -->\n(.*?)<!-- end of features -->", PAGE.read_text(), re.DOTALL)
    assert table, "docs/engines.md has no table of features"
    rows = [line.strip("|\n").split("|") for line in table[1].splitlines() if "**" not in line]
    head, _, *lines = ([cell.strip() for cell in row] for row in rows)
    assert [line[0] for line in lines] == list(ROWS)
    for row, *cells in lines:
        for engine in {name.split(",")[0] for name in head[1:]}:
            own = [cell for name, cell in zip(head[1:], cells, strict=True) if name.split(",")[0] == engine]
            assert (YES in own) == declares(supports_of(engine), row), (row, engine)


@pytest.mark.parametrize("engine", sorted({kind[0] for kind in ENGINES}))
def test_what_an_engine_declares_one_of_its_kinds_runs(engine: str) -> None:
    """A refusal by one solver is no refusal by the engine."""
    if not is_installed(engine):
        pytest.skip(f"the engine {engine} is not installed")
    for row in ROWS:
        if not declares(supports_of(engine), row):
            continue
        taken = 0
        for kind in (one for one in ENGINES if one[0] == engine):

            def look(scene: Scene, kind: Kind = kind, **params: Any) -> Engine:
                given = params_of(kind, **params)
                check_support(kind[0], supports_of(kind[0]), scene, given.resolved(scene))
                class_of(kind[0]).check(scene, given.resolved(scene))
                raise Refused

            try:
                CASES[row].run(look)
            except Refused:
                taken += 1
            except LapjointError:
                pass
        assert taken, row
