"""Checkpoints of earlier versions resume, and go on bit for bit as they did then."""

from __future__ import annotations

import json
import platform
import sys
from typing import Any

import pytest

from lapjoint import Checkpoint
from old_files import CHECKPOINTS, DATA, EXPECTED, WORKER_COUNTS, resumed_hashes

CASES: dict[str, dict[str, Any]] = json.loads((DATA / EXPECTED).read_text())["checkpoints"]
# Elsewhere, compilers and mathematical libraries round in other places.
HERE = sys.platform == "linux" and platform.machine() == "x86_64"


def test_every_file_has_its_case() -> None:
    files = {path.name.removeprefix("checkpoint-v1-") for path in DATA.glob("checkpoint-v1-*")}
    assert files == set(CASES) == set(CHECKPOINTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_checkpoint_of_version_1_goes_on_as_it_did_then(name: str) -> None:
    """With the workers it had, and with others."""
    expected = dict(CASES[name])
    path = DATA / f"checkpoint-v1-{name}"
    assert Checkpoint(path).params.workers == expected.pop("workers")
    hashes = resumed_hashes(path)
    assert hashes["0"] == expected["0"]
    assert len(hashes) == 1 + len(WORKER_COUNTS)
    if HERE:
        assert hashes == expected
