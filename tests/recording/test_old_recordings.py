"""Recordings of earlier versions are read as they were written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lapjoint import Recording
from lapjoint.params.params import RETIRED, REUSED, others
from old_files import DATA, EXPECTED, RECORDINGS, contents

CASES: dict[str, dict[str, Any]] = json.loads((DATA / EXPECTED).read_text())["recordings"]


def test_every_file_has_its_case() -> None:
    files = {path.name.removeprefix("recording-v1-") for path in DATA.glob("recording-v1-*")}
    assert files == set(CASES) == set(RECORDINGS)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_recording_of_version_1_is_read_as_it_was(name: str) -> None:
    found = json.loads(json.dumps(contents(DATA / f"recording-v1-{name}")))
    expected = dict(CASES[name])
    # Parameters may have been added since, with defaults of their own; those of then stay what they were.
    # Those that the run's coupling had no use for are left out, and those that are no more.
    then, now = expected.pop("params"), found.pop("params")
    used = set(then) - set(others(then["coupling"])) - set(RETIRED) - set(REUSED)
    assert not set(now) & set(RETIRED)
    assert {key: now.get(key) for key in used} == {key: then[key] for key in used}
    # Rounds were exchanges with the server.
    profile = {"exchanges" if key == "rounds" else key: values for key, values in expected.pop("profile").items()}
    assert list(found["profile"]) == list(profile)
    assert found == {**expected, "profile": profile}


@pytest.mark.slow
def test_a_recording_of_version_1_makes_a_table() -> None:
    pytest.importorskip("pandas")
    table = Recording(DATA / "recording-v1-tight").to_pandas()
    assert len(table) == 16
    assert {"server_ms", "worker_cpu_ms_1", "joint_gap_max", "worker_residual_0"} <= set(table)
