"""Tight coupling as a user types it: options, the summary, files, benchmarks, engines."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lapjoint import LapjointError, Measures, Params, Scene, Simulation, scenes
from lapjoint.cli import app
from lapjoint.cli.progress import residual_text
from lapjoint.cli.summary_table import summary_table
from lapjoint.run import RunSummary, run
from lapjoint.server.profile import EXCHANGE_MS, StepProfile
from lapjoint.studies.report.numbers import projected_ms

OF_TIGHT = ("exchanges_mean", "exchanges_max", "residual_max", "interface_count_mean", "cut_share_mean")


def invoke(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in arguments], env={"COLUMNS": "200"}, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def run_chain(tmp_path: Path, *arguments: object) -> tuple[dict[str, Any], str]:
    file = tmp_path / "run.json"
    told = invoke("run", "chain", "--steps", 6, "--runtime", "inline", "--json", file, *arguments)
    return json.loads(file.read_text()), told


def chain_params(**given: Any) -> Params:
    return Params.from_options(**{"workers": 2, "runtime": "inline", "coupling": "tight", "joints": "swept", **given})


# ---- options and what a run says ---------------------------------------------------------------------------------


def test_a_tight_run_says_exchanges_residual_and_interface(tmp_path: Path) -> None:
    summary, told = run_chain(tmp_path, "--workers", 2, "--joints", "swept")
    assert (summary["coupling"], summary["coupling_reason"], summary["solver"]) == ("tight", None, "substeps")
    assert summary["exchanges_mean"] == summary["exchanges_max"] > 4, "several in each of four substeps"
    assert 0 < summary["residual_mean"] <= summary["residual_max"]
    assert summary["interface_count_mean"] == 2
    assert 0 < summary["cut_share_mean"] < 0.1
    assert (summary["overlap_count_mean"], summary["duplicated_share"]) == (0, 0)
    assert f"tight, {summary['exchanges_max']} exchanges a step between two workers" in told
    assert f"{summary['residual_max']:.2g} m/s at most: largest velocity change of any constraint" in told
    assert "2 bodies, 2.6% of the constraints between workers" in told
    assert "growth depth" not in told
    assert "overlap" not in told


def test_a_tolerance_takes_more_substeps_and_says_so() -> None:
    arguments = "run pyramid --size 8 --workers 2 --runtime inline --steps 5 --tolerance 1e-12 --max-substeps 8"
    result = CliRunner().invoke(app, arguments.split())
    assert result.exit_code == 0, result.output
    assert "substeps, 8.0 a step, 8 at most" in result.output


def test_there_are_more_exchanges_in_more_substeps(tmp_path: Path) -> None:
    found = [run_chain(tmp_path, "--workers", 2, "--substeps", count)[0]["exchanges_max"] for count in (2, 4, 8)]
    each = (found[1] - found[0]) // 2
    assert each > 0
    assert found[2] - found[1] == 4 * each


def test_blend_keeps_its_keys_and_has_none_of_tight_coupling(tmp_path: Path) -> None:
    summary, told = run_chain(tmp_path, "--workers", 2, "--growth-depth", 1)
    assert summary["coupling"] == "blend"
    assert [summary[name] for name in OF_TIGHT] == [None] * len(OF_TIGHT)
    assert summary["overlap_count_mean"] > 0
    assert "blend, growth depth 1, search depth" in told
    assert "exchanges" not in told


def test_one_worker_has_nobody_to_exchange_with(tmp_path: Path) -> None:
    summary, told = run_chain(tmp_path, "--coupling", "tight", "--joints", "swept")
    assert (summary["exchanges_mean"], summary["exchanges_max"]) == (0, 0)
    assert summary["residual_max"] > 0
    assert "exchange" not in told
    assert "interface" not in told
    plain, _ = run_chain(tmp_path, "--joints", "swept")
    assert plain["state_hash"] == summary["state_hash"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "--coupling tight --growth-depth 2",
            "--growth-depth is given, but the coupling is tight, which has no overlap",
        ),
        ("--coupling tight --weights computed", "--weights is given, but the coupling is tight"),
        ("--coupling tight --iterations 60", "coupling is tight and solver is sequential, expected substeps"),
        ("--coupling tight --solver dantzig", "coupling is tight and solver is dantzig, expected substeps"),
        ("--tolerance 1e-3 --max-substeps 2", "max_substeps is 2, expected at least substeps, 4"),
        ("--tolerance 1e-3 --solver sequential", "--tolerance is given, but the solver is sequential"),
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
    for words in ("--coupling", "one exchange a step", "within every substep", "docs/coupling.md", "--substeps"):
        assert words in told


def test_the_progress_line_shows_the_residual() -> None:
    with Simulation(scenes.build("chain"), chain_params()) as simulation:
        simulation.step()
        residual = simulation.profile.residual
        assert residual_text(simulation) == f", residual {residual:.1e} m/s"
    with Simulation(scenes.build("chain"), Params(runtime="inline")) as simulation:
        simulation.step()
        assert residual_text(simulation) == ""


def test_a_run_without_a_step_has_a_table() -> None:
    with Simulation(scenes.build("chain"), chain_params()) as simulation:
        summary = run(simulation, 0)
    assert (summary.exchanges_max, summary.residual_max) == (None, None)
    assert summary_table(summary).row_count > 5


# ---- the simulation ----------------------------------------------------------------------------------------------


def test_interface_and_exchanges_of_a_simulation() -> None:
    scene = scenes.build("chain")
    with Simulation(scene, chain_params()) as simulation:
        simulation.step()
        owner = simulation.workers.weights().argmax(axis=1)
        joints = np.stack([scene.joints.body_a, scene.joints.body_b], axis=1)
        joints = joints[joints[:, 1] >= 0]
        cut = joints[owner[joints[:, 0]] != owner[joints[:, 1]]]
        assert sorted(np.unique(cut)) == simulation.workers.interface.tolist()
        assert simulation.profile.exchanges > 4
        simulation.workers.interface[:] = 7  # a copy
        assert sorted(np.unique(cut)) == simulation.workers.interface.tolist()


def test_bytes_of_exchanges_are_counted() -> None:
    counts = []
    for substeps in (4, 8):
        with Simulation(scenes.build("chain"), chain_params(substeps=substeps)) as simulation:
            simulation.step(2)
            profile = simulation.profile
            assert profile.byte_count > profile.exchange_bytes > 0
            counts.append((profile.exchange_bytes, profile.byte_count))
    (first, all_first), (second, all_second) = counts
    assert 0 < second - first <= all_second - all_first, "replies have a time for every half sweep, and no more"
    assert all_second - all_first < 1.2 * (second - first)


def test_one_worker_and_blend_have_no_interface_and_no_exchanges() -> None:
    for given in ({"workers": 1}, {"coupling": "blend"}):
        with Simulation(scenes.build("chain"), chain_params(**given)) as simulation:
            simulation.step()
            assert len(simulation.workers.interface) == 0
            assert simulation.profile.exchanges == 0


def test_one_worker_has_no_one_step_error() -> None:
    with Simulation(scenes.build("chain"), chain_params(workers=1)) as simulation:
        measures = Measures(simulation, ["one_step_error"])
        for _ in range(2):
            measures.before_step(simulation)
            simulation.step()
            assert measures.after_step(simulation)["one_step_error"] == 0


# ---- projected times ---------------------------------------------------------------------------------------------


def test_a_projected_step_has_its_exchanges() -> None:
    profile = StepProfile(
        server_ms=2.0, exchanges=10, worker_cpu_ms=np.array([7.0, 6.0]), worker_prepare_ms=np.zeros(2)
    )
    assert profile.projected_ms == pytest.approx(9.0 + 10 * EXCHANGE_MS)
    assert replace(profile, exchanges=0).projected_ms == 9.0
    values = {
        "server_ms": np.array([2.0, 2.0]),
        "exchanges": np.array([10, 10]),
        "worker_cpu_ms": np.array([[7.0, 6.0], [7.0, 0.0]]),  # in the second step there is one worker
        "worker_prepare_ms": np.zeros((2, 2)),
    }
    assert projected_ms(values) == pytest.approx([9.0 + 10 * EXCHANGE_MS, 9.0])


# ---- benchmarks, engines -----------------------------------------------------------------------------------------


def test_couplings_are_measured_side_by_side(tmp_path: Path) -> None:
    file, table = tmp_path / "bench.json", tmp_path / "bench.csv"
    words = ["bench", "chain", "--workers", 2, "--joints", "swept", "--steps", 1, "--repetitions", 1, "--warmup", 0]
    words += ["--coupling", "blend", "tight", "--growth-depth", 1, "--runtime", "inline"]
    told = invoke(*words, "--json", file, "--csv", table)
    rows = json.loads(file.read_text())
    assert [(row["coupling"], row["workers"]) for row in rows] == [
        ("blend", 1),
        ("blend", 2),
        ("tight", 1),
        ("tight", 2),
    ]
    assert [row["exchanges"] for row in rows[:3]] == [None, None, 0]
    assert rows[3]["exchanges"] > 4
    assert [row["interface_count"] for row in rows] == [None, None, 0, 2]
    assert all(row["residual"] > 0 for row in rows)
    assert [row["params"].get("growth_depth") for row in rows] == [1, 1, None, None]
    with table.open(newline="") as lines:
        assert [line["coupling"] for line in csv.DictReader(lines)] == [row["coupling"] for row in rows]
    assert "coupling blend beside tight" in told
    assert f"{rows[3]['residual']:.1e}" in told
    assert f"{1e3 * EXCHANGE_MS:.0f} µs each" in " ".join(told.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--coupling tight tight", "coupling 'tight' is given more than once"),
        ("--coupling tight --growth-depth 3", "--growth-depth is given, but the coupling is tight"),
        ("--coupling blend tight --peer rapier", "--peer is given with several couplings, expected one coupling"),
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


def test_a_run_goes_on_from_the_command_line(tmp_path: Path) -> None:
    place = tmp_path / "checkpoints"
    run_chain(tmp_path, "--workers", 2, "--checkpoint", place)
    file = tmp_path / "more.json"
    told = invoke("resume", place, "--steps", 2, "--json", file)
    assert "going on from step 6, coupling tight" in told
    whole, _ = run_chain(tmp_path, "--workers", 2, "--steps", 8)
    assert json.loads(file.read_text())["state_hash"] == whole["state_hash"]


def summary_of(scene: Scene, **given: Any) -> RunSummary:
    with Simulation(scene, chain_params(**given)) as simulation:
        return run(simulation, 3)


def test_keys_are_flat_numbers() -> None:
    summary = summary_of(scenes.build("chain")).to_dict()
    assert all(isinstance(summary[name], int | float) for name in OF_TIGHT)
    json.dumps(summary, allow_nan=False)
