"""`lapjoint run --workers auto`, the default: the run is the one of the number that it takes, and it says why."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lapjoint import Checkpoint, LapjointError, Params, Recording, Scene, trials
from lapjoint.cli import app
from lapjoint.errors import WorkerError
from lapjoint.server.partition import write_partition
from lapjoint.trials import Trial

BOWL = ("bowl", "--size", 60, "--steps", 40)
REASON = "5.0 ms a step against 9.0 with 1; there are 2 cores"


def invoke(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in arguments], env={"COLUMNS": "200"}, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def run(tmp_path: Path, *arguments: object) -> tuple[dict[str, Any], str]:
    file = tmp_path / "run.json"
    told = invoke("run", *arguments, "--json", file)
    return json.loads(file.read_text()), told


def refusal(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["run", *map(str, arguments)])
    assert isinstance(result.exception, LapjointError), result.output
    return str(result.exception)


@pytest.fixture
def two_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores, and trials that find two workers faster than one."""
    found_s = {1: 9e-3, 2: 5e-3}

    def take(scene: Scene, params: Params, steps: int | None) -> Trial:
        return Trial(found_s[params.workers], 0.01)

    monkeypatch.setattr(trials, "core_count", lambda: 2)
    monkeypatch.setattr(trials, "START_S", 0.01)
    monkeypatch.setattr(trials, "take_trial", take)


# ---- the run is the one of that number ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("two_pay")
def test_a_run_is_to_the_bit_the_one_of_the_number_that_it_takes(tmp_path: Path) -> None:
    auto, told = run(tmp_path, *BOWL, "--record", tmp_path / "auto", "--checkpoint", tmp_path / "auto-kept")
    assert told.startswith(f"2 workers: {REASON}\n")
    assert f"2, process (auto: {REASON})" in told
    assert (auto["workers"], auto["workers_reason"], auto["steps"]) == (2, REASON, 40)
    two, told = run(
        tmp_path, *BOWL, "--workers", 2, "--record", tmp_path / "two", "--checkpoint", tmp_path / "two-kept"
    )
    assert "auto:" not in told
    assert two["workers_reason"] is None
    timed = {key for key in two if "_ms" in key or "per_second" in key} | {"real_time_factor", "workers_reason"}
    assert {key: auto[key] for key in two.keys() - timed} == {key: two[key] for key in two.keys() - timed}
    first, second = Recording(tmp_path / "auto"), Recording(tmp_path / "two")
    assert first.params == second.params
    assert first.steps.tolist() == second.steps.tolist()
    assert all(np.array_equal(a.states, b.states) for a, b in zip(first, second, strict=True))
    kept = [Checkpoint(tmp_path / name) for name in ("auto-kept", "two-kept")]
    assert [(one.step_count, one.params.workers) for one in kept] == [(40, 2)] * 2


@pytest.mark.slow
def test_real_trials_leave_the_run_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials are taken, and whatever they find, the run has as many workers as it says, and their bits."""
    monkeypatch.setattr(trials, "core_count", lambda: 2)
    monkeypatch.setattr(trials, "TINY_S", 0.0)
    monkeypatch.setattr(trials, "is_worth_a_trial", lambda *_: True)
    auto, told = run(tmp_path, *BOWL)
    assert told.startswith(("1 worker: ", "2 workers: "))
    given, _ = run(tmp_path, *BOWL, "--workers", auto["workers"])
    assert given["state_hash"] == auto["state_hash"]
    assert (given["steps"], given["coupling"]) == (auto["steps"], auto["coupling"])


@pytest.mark.slow
@pytest.mark.usefixtures("two_pay")
def test_auto_is_the_default_and_can_be_typed(tmp_path: Path) -> None:
    found = [run(tmp_path, *BOWL, *words)[0] for words in ((), ("--workers", "auto"))]
    assert found[0]["state_hash"] == found[1]["state_hash"]
    assert [one["workers_reason"] for one in found] == [REASON] * 2


@pytest.mark.slow
@pytest.mark.usefixtures("two_pay")
def test_the_coupling_is_that_of_the_number(tmp_path: Path) -> None:
    summary, told = run(tmp_path, *BOWL, "--growth-depth", 1)
    assert (summary["workers"], summary["coupling"]) == (2, "blend")
    assert told.splitlines()[:2] == [
        f"2 workers: {REASON}",
        "coupling: blend, because --growth-depth is given, which only blend has",
    ]
    assert "--linger is given, but the coupling is tight" in refusal(*BOWL, "--linger", 20)


# ---- what it says where it tries nothing -------------------------------------------------------------------------


def test_one_worker_has_its_reason_too(tmp_path: Path) -> None:
    summary, told = run(tmp_path, *BOWL, "--runtime", "inline")
    assert (summary["workers"], summary["workers_reason"]) == (1, "workers of the runtime inline take turns")
    assert "1, inline (auto: workers of the runtime inline take turns)" in told
    assert not told.startswith("1 worker")
    summary, told = run(tmp_path, *BOWL, "--runtime", "inline", "--workers", 1)
    assert summary["workers_reason"] is None
    assert "workers" not in told


def test_a_partition_and_names_of_workers_decide(tmp_path: Path) -> None:
    path = tmp_path / "three.txt"
    write_partition(path, (np.arange(60) % 3).astype(np.int32))
    summary, _ = run(tmp_path, *BOWL, "--runtime", "inline", "--partition", path)
    assert (summary["workers"], summary["workers_reason"]) == (3, "--partition is made for as many")
    summary, _ = run(tmp_path, *BOWL, "--runtime", "inline", "--solver", "sequential", "1=dantzig")
    assert (summary["workers"], summary["workers_reason"]) == (2, "--solver names worker 1")
    both = (*BOWL, "--runtime", "inline", "--partition", path, "--engine", "0=bullet", "1=bullet")
    assert "worker 2 has none" in refusal(*both)


def test_labels_of_solvers_decide(tmp_path: Path) -> None:
    words = ("cable", "--size", 40, "--steps", 5, "--runtime", "inline", "--solver", "sequential", "label:1=dantzig")
    summary, _ = run(tmp_path, *words)
    assert (summary["workers"], summary["solver"]) == (2, "sequential,1=dantzig")


def test_what_auto_cannot_be_is_refused(tmp_path: Path) -> None:
    assert refusal("chain", "--runtime", "ray").startswith(
        "--runtime is ray and --workers is auto, which tries workers on this machine alone, expected a number"
    )
    assert "expected auto, a number, or two with dots between" in refusal("chain", "--workers", "many")
    result = CliRunner().invoke(app, ["resume", str(tmp_path), "--workers", "auto"])
    assert "--workers is 'auto', expected a number, or two" in str(result.exception)


def test_a_trial_that_cannot_start_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def take(scene: Scene, params: Params, steps: int | None) -> Trial:
        if params.workers == 2:
            raise WorkerError("worker 1 cannot be started: [no] room")
        return Trial(9e-3, 0.0)

    monkeypatch.setattr(trials, "core_count", lambda: 2)
    monkeypatch.setattr(trials, "START_S", 0.0)
    monkeypatch.setattr(trials, "take_trial", take)
    summary, told = run(tmp_path, *BOWL)
    reason = "9.0 ms a step; a trial with 2 failed: worker 1 cannot be started: [no] room"
    assert told.startswith(f"1 worker: {reason}\n")
    assert (summary["workers"], summary["workers_reason"]) == (1, reason)


def test_the_help_teaches_auto() -> None:
    told = " ".join(invoke("run", "--help").replace("│", " ").split())
    assert "auto|N|N..M" in told
    assert "[default: auto]" in told
    assert "auto" not in invoke("resume", "--help").replace("│", " ").split()


# ---- Ctrl-C ------------------------------------------------------------------------------------------------------

INTERRUPTED = """
import os, signal, sys
from lapjoint import trials
from lapjoint.cli import main

timed = trials._timed
def interrupt(simulation, count):
    if simulation.params.runtime == "process":
        print(*simulation._core.runtime.process_ids, flush=True)
        signal.raise_signal(signal.SIGINT)
    return timed(simulation, count)

trials._timed = interrupt
trials.core_count = lambda: 2
trials.TINY_S = 0.0
trials.is_worth_a_trial = lambda *_: True
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["lapjoint", "run", "chain", "--steps", "1000"]
main()
"""


@pytest.mark.slow
def test_ctrl_c_in_a_trial_leaves_no_process(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "")
    ids = [int(word) for word in done.stdout.split()]
    assert len(ids) == 1
    assert not any(Path(f"/proc/{one}").exists() for one in ids)
    assert list(tmp_path.iterdir()) == []
