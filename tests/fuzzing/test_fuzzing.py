"""Files and messages that are not as they should be: each is refused in words or used, within bounds.

`LAPJOINT_FUZZ_CASES=10000 python -m pytest tests/fuzzing` tries so many of each kind, others every time; `make test` a
few, the same every time, and all of tests/data/fuzz, which have gone wrong once.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz_changes import OF_ARRAYS, OF_BYTES, OF_DESCRIPTION
from fuzz_support import CORPUS, Cases, is_fine

MANY = int(os.environ.get("LAPJOINT_FUZZ_CASES", "0"))
FEW = 10
KINDS = ["scenes", "other files", "usd files", "checkpoints", "recordings", "commands", "replies"]
KINDS += ["host letters", "server letters", "mail frames", "page heads", "page messages"]
NUMBER = st.integers(0, 2**16)


@pytest.fixture(scope="module")
def cases() -> Iterator[Cases]:
    with Cases() as cases:
        yield cases


def changes(kind: str) -> st.SearchStrategy[list[Any]]:
    """What is changed: mostly one thing or two, and seldom bytes, which mostly tears the whole."""
    inner = [*OF_DESCRIPTION, *([] if kind in ("other files", "usd files") else 2 * list(OF_ARRAYS))]
    change = st.tuples(st.sampled_from(inner), NUMBER, NUMBER, NUMBER)
    of_bytes = st.tuples(st.sampled_from(OF_BYTES), NUMBER, NUMBER, NUMBER)
    return st.one_of(*3 * [st.lists(change, min_size=1, max_size=4)], st.lists(of_bytes, min_size=1, max_size=2))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_changed_is_refused_or_used(cases: Cases, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    found: Counter[str] = Counter()

    @settings(
        max_examples=MANY or FEW,
        derandomize=not MANY,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, *([Phase.shrink] if MANY else [])],
    )
    @given(st.integers(0, cases.seed_count(kind) - 1), changes(kind))
    def attempt(seed: int, changes: list[Any]) -> None:
        outcome = cases.outcome(kind, seed, changes)
        found[outcome.split(":")[0]] += 1
        assert is_fine(outcome), f"{json.dumps([kind, seed, changes])}: {outcome}"

    attempt()
    assert found.total() >= (MANY or FEW), "so many cases were tried"
    if MANY:
        with capsys.disabled():
            print(f"\n{kind}: {dict(found)}")


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(CORPUS.glob("*.json")), ids=lambda file: file.stem)
def test_what_has_gone_wrong_once(cases: Cases, file: Path) -> None:
    kind, seed, changes = json.loads(file.read_text())
    outcome = cases.outcome(kind, seed, changes)
    assert is_fine(outcome), outcome
