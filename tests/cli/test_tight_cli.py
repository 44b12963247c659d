"""Tight coupling as a user types it: options, the summary, files, benchmarks, engines."""

from __future__ import annotations

import csv
import importlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lapjoint import LapjointError, Measures, Params, Scene, Simulation, scenes
from lapjoint.cli import app
from lapjoint.cli.progress import rounds_text
from lapjoint.cli.summary_table import summary_table
from lapjoint.engines.exchange import CONTRIBUTION, HEADS, MASS, MOST_MASSES
from lapjoint.params.params import ROUNDS
from lapjoint.run import RunSummary, run
from lapjoint.server.profile import ROUND_MS, StepProfile
from lapjoint.studies.report.numbers import projected_ms
from tight_runs import tight_coupling

OF_TIGHT = (
    "rounds",
    "tolerance",
    "joint_warm_start",
    "acceleration",
    "joints_together",
    "rounds_mean",
    "rounds_max",
    "residual_max",
)
OF_TIGHT += ("interface_count_mean", "cut_share_mean")


def invoke(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in arguments], env={"COLUMNS": "200"}, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def run_chain(tmp_path: Path, *arguments: object) -> tuple[dict[str, Any], str]:
    file = tmp_path / "run.json"
    words = ("run", "chain", "--steps", 6, "--iterations", 60, "--runtime", "inline", "--json", file)
    told = invoke(*words, *arguments)
    return json.loads(file.read_text()), told


def chain_params(**given: Any) -> Params:
    return Params(**{"workers": 2, "runtime": "inline", "coupling": "tight", "iterations": 60, "rounds": 6, **given})


# ---- options and what a run says ---------------------------------------------------------------------------------


def test_a_tight_run_says_rounds_residual_and_interface(tmp_path: Path) -> None:
    summary, told = run_chain(tmp_path, "--workers", 2, "--coupling", "tight", "--rounds", 6)
    assert (summary["coupling"], summary["rounds"], summary["tolerance"]) == ("tight", 6, 0.0)
    assert (summary["rounds_mean"], summary["rounds_max"]) == (6.0, 6)
    assert 0 < summary["residual_mean"] <= summary["residual_max"]
    assert summary["interface_count_mean"] == 2
    assert 0 < summary["cut_share_mean"] < 0.1
    assert (summary["overlap_count_mean"], summary["duplicated_share"]) == (0, 0)
    assert summary["worker_residual_mean"] == [], "all workers have one residual together"
    assert "tight, at most 6 rounds" in told
    assert "6.0 a step, 6 at most" in told
    assert f"{summary['residual_max']:.2g} m/s at most: largest velocity change of any constraint" in told
    assert "2 bodies, 2.6% of the constraints between workers" in told
    assert "growth depth" not in told
    assert "overlap" not in told


def test_a_tolerance_ends_rounds_and_all_options_reach_the_parameters(tmp_path: Path) -> None:
    words = ("--workers", 2, "--coupling", "tight", "--rounds", 30, "--iterations", 300, "--tolerance", 0.5)
    summary, told = run_chain(tmp_path, *words, "--joint-warm-start", 0.25, "--no-acceleration", "--no-joints-together")
    assert (summary["joint_warm_start"], summary["tolerance"]) == (0.25, 0.5)
    assert (summary["acceleration"], summary["joints_together"]) == (False, False)
    assert summary["rounds_mean"] < 30
    assert summary["residual_max"] < 0.5 or summary["rounds_max"] == 30
    assert "tolerance 0.5 m/s" in told


def test_blend_keeps_its_keys_and_has_none_of_tight_coupling(tmp_path: Path) -> None:
    summary, told = run_chain(tmp_path, "--workers", 2, "--growth-depth", 1)
    assert summary["coupling"] == "blend"
    assert [summary[name] for name in OF_TIGHT] == [None] * len(OF_TIGHT)
    assert summary["overlap_count_mean"] > 0
    assert "blend, growth depth 1, search depth" in told
    assert "rounds" not in told


def test_one_worker_takes_its_rounds_alone(tmp_path: Path) -> None:
    summary, told = run_chain(tmp_path, "--coupling", "tight", "--no-joints-together")
    assert (summary["rounds"], summary["rounds_mean"]) == (ROUNDS, ROUNDS)
    assert summary["residual_max"] > 0
    assert f"{ROUNDS}.0 a step, {ROUNDS} at most" in told
    assert "interface" not in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--rounds 5", "--rounds is given, but the coupling is blend, expected tight"),
        ("--tolerance 1e-3", "--tolerance is given, but the coupling is blend, expected tight"),
        ("--joint-warm-start 0.5", "--joint-warm-start is given, but the coupling is blend"),
        ("--no-acceleration", "--acceleration is given, but the coupling is blend"),
        (
            "--coupling tight --growth-depth 2",
            "--growth-depth is given, but the coupling is tight, which has no overlap",
        ),
        ("--coupling tight --weights equal", "--weights is given, but the coupling is tight"),
        ("--coupling tight --rounds 0", "rounds is 0, expected 1 to"),
        ("--coupling tight --tolerance -1", "tolerance is -1"),
        ("--coupling loose", "coupling is 'loose', expected one of auto, blend, tight"),
        ("--coupling tight --engine mujoco:float64", "which the engine mujoco does not have; it has blend"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: str, message: str) -> None:
    result = CliRunner().invoke(app, ["run", "chain", "--steps", "1", *arguments.split()])
    assert isinstance(result.exception, LapjointError), result.output
    assert message in str(result.exception)


def test_help_teaches_which_coupling_when() -> None:
    told = " ".join(invoke("run", "--help").replace("│", " ").split())
    for words in ("--coupling", "for slow links", "on one machine", "docs/coupling.md", "--rounds", "--tolerance"):
        assert words in told


def test_the_progress_line_shows_the_residual() -> None:
    with Simulation(scenes.build("chain"), chain_params()) as simulation:
        simulation.step()
        residual = simulation.profile.residual
        assert rounds_text(simulation) == f", 6 rounds, residual {residual:.1e} m/s"
    with Simulation(scenes.build("chain"), Params(runtime="inline")) as simulation:
        simulation.step()
        assert rounds_text(simulation) == ""


def test_a_run_without_a_step_has_a_table() -> None:
    with Simulation(scenes.build("chain"), chain_params()) as simulation:
        summary = run(simulation, 0)
    assert (summary.rounds_max, summary.residual_max) == (None, None)
    assert summary_table(summary).row_count > 5


# ---- the simulation ----------------------------------------------------------------------------------------------


def test_interface_and_rounds_of_a_simulation() -> None:
    scene = scenes.build("chain")
    with Simulation(scene, chain_params()) as simulation:
        simulation.step()
        owner = simulation.weights().argmax(axis=1)
        joints = np.stack([scene.joints.body_a, scene.joints.body_b], axis=1)
        joints = joints[joints[:, 1] >= 0]
        cut = joints[owner[joints[:, 0]] != owner[joints[:, 1]]]
        assert sorted(np.unique(cut)) == simulation.interface.tolist()
        for rounds in (3, 12):
            simulation.set_rounds(rounds)
            simulation.step()
            assert simulation.profile.rounds == rounds
        with pytest.raises(LapjointError, match="rounds is 0"):
            simulation.set_rounds(0)
        simulation.interface[:] = 7  # a copy
        assert sorted(np.unique(cut)) == simulation.interface.tolist()


def test_bytes_of_rounds_are_counted() -> None:
    for precision in ("float32", "float64"):
        native = importlib.import_module(f"lapjoint._bullet_{precision}")
        down, up, contribution = native.exchange_heads
        assert (down + up + 1, contribution) == (HEADS, CONTRIBUTION)
        assert native.mass_limits == (MASS, MOST_MASSES)
    counts = []
    for rounds in (2, 12):
        with Simulation(scenes.build("chain"), chain_params(rounds=rounds)) as simulation:
            simulation.step(2)
            counts.append(simulation.profile.byte_count)
    assert counts[1] - counts[0] == 10 * 8 * (2 * HEADS + 2 * 2 * CONTRIBUTION), "two workers, two interface bodies"


def test_rounds_end_when_one_changes_nothing(tmp_path: Path) -> None:
    """All joints of a chain are solved at once: there is nothing left for a second round, or a second sweep."""
    summary, told = run_chain(tmp_path, "--coupling", "tight", "--rounds", 6)
    assert (summary["rounds_mean"], summary["residual_max"]) == (2, 0)
    assert "2.0 a step, 2 at most" in told
    for more in ({"iterations": 6}, {"iterations": 600, "rounds": 60}):
        with Simulation(scenes.build("chain"), chain_params(workers=1, **more)) as simulation:
            simulation.step(6)
            assert simulation.state_hash == summary["state_hash"]


def test_one_worker_follows_the_rounds_too_and_has_no_interface() -> None:
    with Simulation(scenes.build("chain"), chain_params(workers=1, joints_together=False)) as simulation:
        simulation.step()
        assert simulation.profile.rounds == 6
        simulation.set_rounds(11)
        simulation.step()
        assert simulation.profile.rounds == 11
        assert len(simulation.interface) == 0


def test_blend_has_no_interface_and_no_rounds_to_set() -> None:
    with Simulation(scenes.build("chain"), chain_params(coupling="blend", rounds=None)) as simulation:
        simulation.step()
        assert len(simulation.interface) == 0
        with pytest.raises(LapjointError, match="coupling is blend, expected tight"):
            simulation.set_rounds(5)


def test_the_one_step_error_follows_the_rounds() -> None:
    with Simulation(scenes.build("chain"), chain_params(workers=1)) as simulation:
        measures = Measures(simulation, ["one_step_error"])
        for rounds in (6, 2):
            simulation.set_rounds(rounds)
            measures.before_step(simulation)
            simulation.step()
            assert measures.after_step(simulation)["one_step_error"] == 0


# ---- projected times ---------------------------------------------------------------------------------------------


def test_a_projected_step_has_its_rounds() -> None:
    profile = StepProfile(server_ms=2.0, rounds=10, worker_cpu_ms=np.array([7.0, 6.0]), worker_prepare_ms=np.zeros(2))
    assert profile.projected_ms == pytest.approx(9.0 + 10 * ROUND_MS)
    alone = replace(profile, worker_cpu_ms=np.array([7.0]), worker_prepare_ms=np.zeros(1))
    assert alone.projected_ms == 9.0, "one worker has nobody to wait for"
    values = {
        "server_ms": np.array([2.0, 2.0]),
        "rounds": np.array([10, 10]),
        "worker_cpu_ms": np.array([[7.0, 6.0], [7.0, 0.0]]),  # in the second step there is one worker
        "worker_prepare_ms": np.zeros((2, 2)),
    }
    assert projected_ms(values) == pytest.approx([9.0 + 10 * ROUND_MS, 9.0])


def test_the_servers_time_has_its_rounds_and_not_those_of_inline_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    with Simulation(scenes.build("chain"), chain_params()) as simulation:
        simulation.step()
        links = simulation._runtime.links
        monkeypatch.setattr(simulation._runtime, "links", lambda: replace(links(), worker_cpu_s=lambda: 4.0))
        clock = iter([0.0, 1.0, 10.0, 20.0])  # the step begins, its rounds begin and end
        monkeypatch.setattr("lapjoint.server.coupling.interface.time", SimpleNamespace(thread_time=lambda: next(clock)))
        simulation.step()
        interface = tight_coupling(simulation)._interface
        assert (interface.begin_cpu_s, interface.exchange_cpu_s) == (1.0, 6.0)


# ---- benchmarks, engines -----------------------------------------------------------------------------------------


def test_couplings_are_measured_side_by_side(tmp_path: Path) -> None:
    file, table = tmp_path / "bench.json", tmp_path / "bench.csv"
    words = ["bench", "chain", "--workers", 2, "--iterations", 60, "--steps", 1, "--rounds", 1, "--warmup", 0]
    words += ["--coupling", "blend", "tight", "--step-rounds", 6, "--growth-depth", 1, "--runtime", "inline"]
    told = invoke(*words, "--json", file, "--csv", table)
    rows = json.loads(file.read_text())
    assert [(row["coupling"], row["workers"]) for row in rows] == [
        ("blend", 1),
        ("blend", 2),
        ("tight", 1),
        ("tight", 2),
    ]
    assert [row["step_rounds"] for row in rows] == [None, None, 2, 6]
    assert [row["interface_count"] for row in rows] == [None, None, 0, 2]
    assert [row["residual"] > 0 for row in rows] == [True, True, False, True]
    assert "rounds" not in rows[0]["params"]
    assert rows[2]["params"]["rounds"] == 6
    with table.open(newline="") as lines:
        assert [line["coupling"] for line in csv.DictReader(lines)] == [row["coupling"] for row in rows]
    assert "coupling blend beside tight" in told
    assert f"{rows[3]['residual']:.1e}" in told
    assert f"{1e3 * ROUND_MS:.0f} µs each" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--step-rounds 5", "--step-rounds is given, but the coupling is blend, expected tight"),
        ("--coupling tight tight", "coupling 'tight' is given more than once"),
        ("--coupling tight --growth-depth 3", "--growth-depth is given, but the coupling is tight"),
        ("--coupling blend tight --peer pybullet", "--peer is given with several couplings, expected one coupling"),
    ],
)
def test_benchmarks_refuse_what_does_not_fit(arguments: str, message: str) -> None:
    result = CliRunner().invoke(app, ["bench", "chain", "--workers", "1", *arguments.split()])
    assert isinstance(result.exception, LapjointError), result.output
    assert message in str(result.exception)


def test_engines_say_their_couplings() -> None:
    lines = {line.split()[0]: line for line in invoke("engines").splitlines() if line.strip()}
    assert "blend tight" in lines["bullet"]
    assert "tight" not in lines["mujoco"]
    assert "tight" not in lines["rapier"]


def test_a_run_goes_on_with_other_rounds(tmp_path: Path) -> None:
    place = tmp_path / "checkpoints"
    run_chain(tmp_path, "--coupling", "tight", "--no-joints-together", "--rounds", 6, "--checkpoint", place)
    file = tmp_path / "more.json"
    told = invoke("resume", place, "--steps", 2, "--rounds", 9, "--json", file)
    assert "going on from step 6, coupling tight" in told
    assert json.loads(file.read_text())["rounds_mean"] == 9


def summary_of(scene: Scene, **given: Any) -> RunSummary:
    with Simulation(scene, chain_params(**given)) as simulation:
        return run(simulation, 3)


def test_keys_are_flat_numbers() -> None:
    summary = summary_of(scenes.build("chain")).to_dict()
    assert all(isinstance(summary[name], int | float) for name in OF_TIGHT)
    json.dumps(summary, allow_nan=False)
