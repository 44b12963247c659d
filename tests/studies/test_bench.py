"""Benchmarks: options with several values, what is measured and what is made of it, files, mistakes, Ctrl-C."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lapjoint import Blend, LapjointError, Params, Simulation, Substeps, scenes
from lapjoint.cli import app, main
from lapjoint.errors import WorkerError
from lapjoint.server.profile import PHASES, StepProfile
from lapjoint.studies.bench import BenchPlan, BenchRow, bench, measure
from lapjoint.studies.bench.repetitions import rotated, take_turn
from lapjoint.studies.bench.rows import Repetition, TurnMeans, rows_of
from lapjoint.workers.messages import StepReply, StepTimes

LAPJOINT = str(Path(sys.executable).parent / "lapjoint")
DOCUMENT = Path(__file__).parents[2] / "docs" / "bench.md"
KEYS = {
    *("coupling", "residual", "exchanges", "interface_count", "cut_share", "substeps"),
    "scene",
    "workers",
    "iterations",
    "step_ms",
    "speedup",
    "projected_speedup",
    "projected_step_ms",
    "server_ms",
    "worker_cpu_ms_largest",
    "worker_cpu_ms_mean",
    "balance",
    "duplicated_share",
    "reset_ms",
    "detect_ms",
    "balance_ms",
    "weigh_ms",
    "step_phase_ms",
    "blend_ms",
    "activation_count",
    "contact_count",
    "body_count",
    "joint_count",
    "repetitions",
    "steps",
    "warmup",
    "cores",
    "engine",
    "precision",
    "runtime",
    "params",
}
SHORT = ["--size", "12", "--steps", "2", "--repetitions", "2", "--warmup", "3"]


def plan(*workers: int, **given: Any) -> BenchPlan:
    """On a short chain, with workers in this process."""
    given = {"iterations": [5], "steps": 2, "repetitions": 2, "warmup": 1, **given}
    return BenchPlan([scenes.build("chain", 12)], workers, Params(runtime="inline"), **given)


# ---- options with several values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "bench chain plank --workers 1 2 4 --iterations 9 8 --steps 7",
        "bench --workers 1 2 4 --steps 7 --iterations 9 8 chain plank",
        "bench --iterations=9 8 --workers 1 2 --workers 4 chain plank --steps=7",
    ],
)
def test_options_reach_the_plan(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[BenchPlan] = []

    def record(given: list[BenchPlan], _: object) -> Iterator[BenchRow]:
        plans.extend(given)
        return iter(())

    monkeypatch.setattr("lapjoint.cli.bench.measure_all", record)
    more = "--repetitions 2 --warmup 0 --size 40 --growth-depth 2 --detect server --weights computed --balance printed "
    more += "--load bodies --linger 3 --repartition 0"
    result = CliRunner().invoke(app, [*command.split(), *more.split()], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    (plan,) = plans
    assert [scene.name for scene in plan.scenes] == ["chain", "plank"]
    assert (plan.workers, plan.iterations) == ([1, 2, 4], [9, 8])
    assert (plan.steps, plan.repetitions, plan.warmup) == (7, 2, 0)
    assert plan.coupling == "blend"
    assert plan.params == Params(
        blend=Blend(growth_depth=2, weights="computed", balance="printed", linger=3),
        detect="server",
        load="bodies",
        repartition=0,
    )


# ---- which coupling ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "iterations", "params", "coupling"),
    [
        ([1, 2], None, {}, "tight"),
        ([1], None, {}, "blend"),
        ([2], [9], {}, "blend"),
        ([2], None, {"growth_depth": 1}, "blend"),
        ([2], None, {"coupling": "blend"}, "blend"),
        ([1], None, {"coupling": "tight"}, "tight"),
    ],
)
def test_a_benchmark_couples_as_a_run_does(
    workers: list[int], iterations: list[int] | None, params: dict[str, Any], coupling: str
) -> None:
    scene, chosen = scenes.build("chain", 12), Params.from_options(runtime="inline", **params)
    found = BenchPlan([scene], workers, chosen, iterations)
    assert found.coupling == coupling
    assert {found.params_of(count).resolved(scene).coupling for count in found.counts} == {coupling}
    rows = bench([scene], workers, chosen, iterations=iterations, steps=1, repetitions=1, warmup=0)
    assert {row.coupling for row in rows} == {coupling}


def test_a_benchmark_says_its_coupling_and_which_option_decided() -> None:
    words = ["bench", "chain", "--workers", "2", "--runtime", "inline", *SHORT]
    told = CliRunner().invoke(app, words, catch_exceptions=False).output
    assert "coupling tight" in told
    assert "because" not in told
    told = CliRunner().invoke(app, [*words, "--growth-depth", "1"], catch_exceptions=False).output
    assert "coupling: blend, because --growth-depth is given, which only blend has" in told


# ---- which solver ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "params", "amounts"),
    [
        (None, {}, [None]),
        (None, {"substeps": 8}, [None]),
        ([50, 20], {}, [50, 20]),
        (None, {"solver": "sequential"}, [1000]),
        (None, {"solver": "dantzig"}, [1000]),
        (None, {"coupling": "tight"}, [None]),
        (None, {"engine": "mujoco:float64"}, [1000]),
    ],
)
def test_without_iterations_it_is_the_substep_solver(
    given: list[int] | None, params: dict[str, Any], amounts: list[int | None]
) -> None:
    if "engine" in params:
        pytest.importorskip("mujoco")
    chosen = Params.from_options(**{"runtime": "inline", "coupling": "blend", **params})
    assert BenchPlan([scenes.build("chain", 12)], [2], chosen, given).amounts == amounts


@pytest.mark.parametrize(
    ("options", "amounts", "solvers"),
    [
        ("", [None], {"auto"}),
        ("--substeps 8 --joints swept", [None], {"auto"}),
        ("--iterations 9 8", [9, 8], {"auto"}),
        ("--solver sequential", [1000], {"sequential"}),
        ("--coupling blend tight", [None], {"auto"}),
    ],
)
def test_plans_side_by_side_have_one_solver(
    options: str, amounts: list[int | None], solvers: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[BenchPlan] = []

    def record(given: list[BenchPlan], _: object) -> Iterator[BenchRow]:
        plans.extend(given)
        return iter(())

    monkeypatch.setattr("lapjoint.cli.bench.measure_all", record)
    words = ["bench", "chain", "--workers", "2", "--runtime", "inline", *SHORT, *options.split()]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert [plan.amounts for plan in plans] == [amounts] * len(plans)
    assert {plan.params.solver for plan in plans} == solvers


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--substeps 8 --iterations 9",
            "--substeps is given, but the solver is sequential, expected substeps (--itera",
        ),
        (
            "--substeps 4 --iterations 9",
            "--substeps is given, but the solver is sequential, expected substeps (--itera",
        ),
        ("--iterations 9 --coupling tight", "coupling is tight and solver is sequential, expected substeps"),
        ("--solver substeps --iterations 9", "--iterations is given, but the solver is substeps, expected sequential:"),
    ],
)
def test_what_belongs_to_the_other_solver_is_refused(options: str, message: str) -> None:
    result = CliRunner().invoke(app, ["bench", "chain", *SHORT, *options.split()])
    assert isinstance(result.exception, LapjointError)
    assert message in str(result.exception)


def test_a_row_of_the_substep_solver_has_substeps_for_iterations() -> None:
    given = Params(runtime="inline", coupling="blend", substeps=Substeps(2, joints="swept"))
    rows = bench([scenes.build("chain", 12)], [2], given, steps=2, repetitions=2, warmup=1)
    assert [(row.workers, row.iterations, row.substeps, row.params) for row in rows] == [
        (count, None, 2, {"joints": "swept"}) for count in (1, 2)
    ]
    assert rows[0].to_dict()["iterations"] is None
    (row, _) = bench([scenes.build("chain", 12)], [2], iterations=[3], steps=1, repetitions=1, warmup=0)
    assert (row.iterations, row.substeps) == (3, None)


def test_help_shows_options_with_several_values() -> None:
    result = CliRunner().invoke(app, ["bench", "--help"], env={"COLUMNS": "100"})
    assert result.exit_code == 0
    assert re.search(r"--workers +N\.\.\.", result.stdout)
    assert re.search(r"--iterations +N\.\.\.", result.stdout)
    assert "Example: lapjoint bench" in result.stdout


# ---- what is made of samples -------------------------------------------------------------------------------------


def turn(step_ms: float, server_ms: float, largest: float, mean: float) -> TurnMeans:
    phases = dict.fromkeys(PHASES, step_ms / 6)
    return TurnMeans(step_ms, server_ms, server_ms + largest, largest, mean, largest / mean, phases, 0.25, 3.0, 7)


def test_ratios_are_taken_within_a_round_and_then_their_median() -> None:
    repetitions: list[Repetition] = [
        {1: turn(12.0, 2.0, 10.0, 10.0), 4: turn(6.0, 1.0, 3.0, 2.0)},
        {1: turn(24.0, 2.0, 22.0, 22.0), 4: turn(8.0, 2.0, 6.0, 5.0)},  # something else ran: both are slower
        {1: turn(10.0, 1.0, 9.0, 9.0), 4: turn(10.0, 1.0, 4.0, 2.5)},
    ]
    one, four = rows_of(plan(4), plan(4).scenes[0], 5, repetitions)
    assert (one.workers, one.step_ms, one.speedup, one.projected_speedup) == (1, 12.0, 1.0, 1.0)
    assert (four.workers, four.step_ms, four.speedup) == (4, 8.0, 2.0)  # of 2, 3 and 1
    assert four.projected_step_ms == 5.0  # of 4, 8 and 5
    assert four.projected_speedup == 3.0  # of 12/4, 24/8 and 10/5
    assert (four.server_ms, four.worker_cpu_ms_largest, four.worker_cpu_ms_mean) == (1.0, 4.0, 2.5)
    assert four.balance == 1.5  # of 3/2, 6/5 and 4/2.5
    assert (four.duplicated_share, four.activation_count, four.contact_count) == (0.25, 3.0, 7)
    assert four.phases_ms == dict.fromkeys(PHASES, 8.0 / 6)
    assert (four.repetitions, four.steps, four.warmup, four.iterations) == (3, 2, 1, 5)


def test_no_complete_round_makes_no_row() -> None:
    assert rows_of(plan(2), plan(2).scenes[0], 5, []) == []


def test_a_turn_by_a_fake_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing between steps is in no time at all."""
    clock = SimpleNamespace(wall=0.0)
    monkeypatch.setattr("lapjoint.studies.bench.repetitions.time.perf_counter", lambda: clock.wall)

    class FakeSimulation:
        params = Params(workers=2)
        scene = SimpleNamespace(body_count=10)
        steps = 0

        def step_at_once(self, most: int) -> int:
            self.steps += 1
            clock.wall += 0.008 * self.steps
            self.profile = StepProfile(
                activation_count=self.steps,
                server_ms=3.0,
                worker_body_count=np.array([5, 7]),
                worker_cpu_ms=np.array([[0.5, 1.0], [2.0, 1.0]][self.steps - 1]),
                worker_prepare_ms=np.zeros(2),
            )
            self.profile.phases_ms["detect"] = 2.0 * self.steps
            return 1

    def draw() -> None:
        clock.wall += 100.0

    simulation: Any = FakeSimulation()
    turn = take_turn(simulation, 2, draw)
    assert turn.step_ms == pytest.approx(12.0)
    assert turn.server_ms == pytest.approx(3.0)
    assert turn.worker_cpu_ms_largest == 1.5  # of 1 and 2, two different workers
    assert turn.worker_cpu_ms_mean == 1.125
    assert turn.projected_step_ms == pytest.approx(3.0 + 1.5)
    assert turn.balance == pytest.approx(1.25 / 1.125)  # of the means of each worker
    assert turn.duplicated_share == pytest.approx(0.2)
    assert turn.activation_count == 1.5
    assert turn.phases_ms["detect"] == 3.0


def test_all_wait_for_the_slowest_in_every_half_sweep() -> None:
    replies = [
        StepReply(times=StepTimes(between_meetings_s=1e-3 * np.array(ms), cpu_s=1e-3 * sum(ms)))
        for ms in ([3.0, 1.0], [1.0, 2.5])
    ]
    profile = StepProfile(steps=2)
    profile.count_workers([], replies, np.zeros((0, 1), np.uint64), 0)
    profile.divide_times()
    assert profile.sweep_wait_ms == pytest.approx(0.75)
    assert profile.projected_ms == pytest.approx((3.0 + 2.5) / 2)


def test_what_is_prepared_while_the_server_works_takes_no_time_of_its_own() -> None:
    profile = StepProfile(server_ms=2.0, worker_cpu_ms=np.array([7.0, 6.0, 9.0]), worker_prepare_ms=np.zeros(3))
    assert profile.projected_ms == 11.0
    profile.worker_prepare_ms = np.array([2.0, 1.0, 2.0])  # within the server's two
    assert profile.projected_ms == 9.0
    profile.worker_prepare_ms = np.array([2.0, 1.0, 5.0])  # three beyond them
    assert profile.projected_ms == 9.0
    profile.worker_prepare_ms = np.array([0.0, 1.0, 2.0])  # now the first is the slowest
    assert profile.projected_ms == 9.0
    profile.worker_cpu_ms[0] = 8.0
    assert profile.projected_ms == 10.0
    assert StepProfile(server_ms=2.0).projected_ms == 2.0


def test_every_count_comes_first_once() -> None:
    assert [rotated([1, 2, 4], number) for number in range(4)] == [[1, 2, 4], [2, 4, 1], [4, 1, 2], [1, 2, 4]]


# ---- measuring ---------------------------------------------------------------------------------------------------


def test_all_counts_live_at_once_and_take_their_steps_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    step, close = Simulation.step_at_once, Simulation.close
    taken: list[tuple[int, int]] = []
    closed: list[int] = []

    def record_step(self: Simulation, most: int) -> int:
        assert self.params.sequential.iterations is not None
        assert not closed
        count = step(self, most)
        taken.extend([(self.params.workers, self.params.sequential.iterations)] * count)
        return count

    def record_close(self: Simulation) -> None:
        closed.append(self.params.workers)
        close(self)

    monkeypatch.setattr(Simulation, "step_at_once", record_step)
    monkeypatch.setattr(Simulation, "close", record_close)
    rows = list(measure(plan(3, 2, iterations=[20, 12], warmup=4, repetitions=2)))
    turns = [1, 1, 2, 2, 3, 3] + [2, 2, 3, 3, 1, 1]
    wanted = [(workers, 10) for workers in (1, 2, 3) for _ in range(4)]
    for iterations in (20, 12):
        wanted += [(workers, iterations) for workers in [1, 1, 2, 2, 3, 3, *turns]]
    assert taken == wanted
    assert sorted(closed) == [1, 2, 3]
    assert [(row.workers, row.iterations) for row in rows] == [(n, i) for i in (20, 12) for n in (1, 2, 3)]


def test_the_warm_up_never_has_more_iterations_than_what_is_measured() -> None:
    assert plan(1, iterations=[1000]).warmup_iterations == 10
    assert plan(1, iterations=[1000, 3]).warmup_iterations == 3


def test_progress_grows_to_all_of_it() -> None:
    shares: list[float] = []
    list(measure(plan(2, iterations=[20, 3]), lambda doing, share: shares.append(share)))
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)


def test_bench_in_python_adds_one_worker() -> None:
    rows = bench(
        [scenes.build("chain", 12)],
        [2],
        Params(runtime="inline", coupling="blend"),
        iterations=[4],
        steps=1,
        repetitions=1,
        warmup=0,
    )
    assert [row.workers for row in rows] == [1, 2]
    assert (rows[0].speedup, rows[0].projected_speedup, rows[0].balance, rows[0].duplicated_share) == (1, 1, 1, 0)
    assert all(row.server_ms > 0 and row.worker_cpu_ms_largest > 0 for row in rows)
    assert rows[1].duplicated_share > 0


# ---- the command -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_bench_prints_and_writes_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    json_file, csv_file = tmp_path / "bench.json", tmp_path / "bench.csv"
    monkeypatch.setattr("lapjoint.studies.bench.rows.core_count", lambda: 1)
    command = ["bench", "chain", "--workers", "2", "--iterations", "6", "4", *SHORT, "--growth-depth", "1"]
    files = ["--json", str(json_file), "--csv", str(csv_file)]
    result = CliRunner().invoke(app, [*command, *files], catch_exceptions=False)
    assert result.exit_code == 0, result.output

    rows = json.loads(json_file.read_text())
    assert [(row["workers"], row["iterations"]) for row in rows] == [(1, 6), (2, 6), (1, 4), (2, 4)]
    for row in rows:
        assert row.keys() == KEYS
        assert (row["scene"], row["steps"], row["repetitions"], row["warmup"], row["cores"]) == ("chain", 2, 2, 3, 1)
        assert (row["runtime"], row["params"]) == ("process", {"growth_depth": 1})
    with csv_file.open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [list(line) for line in table] == [list(row) for row in rows]
    for line, row in zip(table, rows, strict=True):
        assert line.pop("params") == "growth_depth=1"
        assert list(line.values()) == [
            "" if value is None else str(value) for name, value in row.items() if name != "params"
        ]

    assert "bullet, float32, process, coupling blend, growth_depth 1" in result.stdout
    assert "1 core at hand" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100
    heading = next(line for line in result.stdout.splitlines() if line.startswith("scene"))
    assert heading.split()[:7] == ["scene", "workers", "ms", "a", "step", "speed-up", "speed-up"]
    above = next(line for line in result.stdout.splitlines() if line.strip().startswith("projected"))
    assert heading.index("speed-up") < above.index("projected")
    (line,) = (line for line in result.stdout.splitlines() if re.match("6 iterations +2 .*%", line))
    assert line.split()[4:6] == ["-", f"{rows[1]['projected_speedup']:.2f}"], "measured on one core: left out"


def test_every_key_is_explained() -> None:
    explained = re.findall(r"^\| `(\w+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    assert sorted(explained) == sorted(KEYS)


def test_a_scene_with_brackets_in_its_name_is_printed(tmp_path: Path) -> None:
    scene = scenes.build("chain", 12)
    scene.name = "[/b] [bold]chain"
    path = scene.save(tmp_path / "chain.npz")
    command = ["bench", str(path), "--workers", "1", "--steps", "1", "--warmup", "0", "--runtime", "inline"]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert "[/b] [bold]chain" in result.stdout


# ---- mistakes ----------------------------------------------------------------------------------------------------

MISTAKES = {
    "chain nowhere": "no scene named 'nowhere'; known scenes: chain, bridge",
    "chain chain": "scene 'chain' is given more than once",
    "chain --workers 0": "workers is 0, expected 1 to",
    "chain --workers 2 -1": "workers is -1",
    "chain --workers 1 2 4 2": "workers has 2 more than once",
    "chain bowl --workers 1 100": "scene 'chain': 100 workers for 40 bodies",
    "chain --iterations 10 0": "iterations is 0",
    "chain --iterations 10 10": "iterations has 10 more than once",
    "chain --steps 0": "steps is 0, expected at least 1",
    "chain --repetitions 0": "repetitions is 0, expected at least 1",
    "chain --warmup -1": "warmup is -1, expected at least 0",
    "chain --size 0": "size is 0",
    "bowl --seed -1": "--seed is -1",
    "chain --engine warp": "no engine named 'warp'",
    "chain --precision float16": "precision is 'float16'",
    "chain --runtime cloud": "no runtime named 'cloud'",
    "chain --partition nonsense": "no partition named 'nonsense'",
    "chain --detect nobody": "detect is 'nobody'",
    "chain --csv .": "--csv .: is a directory",
    "chain --json b --csv ./b": "--json and --csv are both b",
}


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_one_line_before_anything_starts(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a simulation took a step")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("warnings.showwarning", lambda *_: None)
    monkeypatch.setattr(Simulation, "step_at_once", never)
    monkeypatch.setattr(sys, "argv", ["lapjoint", "bench", *command.split()])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert MISTAKES[command] in err
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapjoint.recording.place.os.access", lambda *_: False)  # root may write everywhere
    with pytest.raises(LapjointError, match=r"--json .*bench.json: no permission to write there"):
        CliRunner().invoke(app, ["bench", "chain", "--json", str(tmp_path / "bench.json")], catch_exceptions=False)


@pytest.mark.parametrize(
    "command", ["bench", "bench chain --workers two", "bench chain --workers 1 2.5", "bench chain --bogus"]
)
def test_a_command_that_cannot_be_read_is_exit_code_2(command: str) -> None:
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 2
    assert result.stdout == ""


def test_a_plan_without_scenes_or_counts_is_refused() -> None:
    scene = scenes.build("chain", 12)
    for arguments in (([],), ([scene], []), ([scene], [1], Params(), [])):
        with pytest.raises(LapjointError, match="expected at least one"):
            BenchPlan(*arguments)


# ---- interruption ------------------------------------------------------------------------------------------------


def stop_at(monkeypatch: pytest.MonkeyPatch, number: int, error: BaseException) -> None:
    """Have the step of that number, of all simulations together, raise."""
    step, left = Simulation.step_at_once, iter(range(number))

    def limited(self: Simulation, most: int) -> int:
        if next(left, None) is None:
            raise error
        return step(self, 1)

    monkeypatch.setattr(Simulation, "step_at_once", limited)


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt(), WorkerError("worker 1 is gone")], ids=["ctrl-c", "error"])
@pytest.mark.parametrize(
    ("steps", "repetitions"),
    [(3, []), (8, []), (13, [1, 1]), (18, [2, 2]), (100, None)],
    ids=["warm-up", "first-repetition", "second-repetition", "next-iterations", "never"],
)
def test_rows_of_complete_repetitions_come_before_the_interrupt(
    steps: int, repetitions: list[int] | None, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two counts: 2 steps of warm-up, then 4 to settle and two repetitions of 4 for either number of iterations."""
    stop_at(monkeypatch, steps, error)
    rows: list[BenchRow] = []
    if repetitions is None:
        rows.extend(measure(plan(2, iterations=[5, 4])))
        assert [row.repetitions for row in rows] == [2, 2, 2, 2]
        return
    with pytest.raises(type(error)):
        rows.extend(measure(plan(2, iterations=[5, 4])))
    assert [row.repetitions for row in rows] == repetitions


@pytest.mark.parametrize(
    ("error", "exit_code"), [(KeyboardInterrupt(), 130), (WorkerError("worker 1 is gone"), 1)], ids=["ctrl-c", "error"]
)
def test_what_is_complete_is_printed_and_written(
    error: BaseException, exit_code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "bench.json"
    stop_at(monkeypatch, 3 * 2 + 2 * 2 + 2 * 2 + 1, error)
    command = ["bench", "chain", "--workers", "2", "--iterations", "3", *SHORT, "--runtime", "inline"]
    result = CliRunner().invoke(app, [*command, "--json", str(file)])
    assert result.exit_code == exit_code
    assert [row["repetitions"] for row in json.loads(file.read_text())] == [1, 1]
    assert "projected" in result.stdout
    if exit_code == 130:
        assert result.stdout.endswith("interrupted after 1 of 2 repetitions\n")


@pytest.mark.slow
def test_ctrl_c_in_a_terminal(tmp_path: Path) -> None:
    """Wait until its progress shows the second repetition, then press Ctrl-C there."""
    file = tmp_path / "bench.json"
    server, terminal = pty.openpty()
    arguments = [
        "bench",
        "chain",
        "--size",
        "12",
        "--workers",
        "2",
        "--iterations",
        "3",
        "--steps",
        "5",
        "--repetitions",
        "1000000",
        "--warmup",
        "2",
    ]
    process = subprocess.Popen(
        [LAPJOINT, *arguments, "--json", str(file)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(terminal)
    try:
        shown = ""
        while not re.search(r"repetition (?!1 )\d+ of 1000000", shown):
            shown += os.read(server, 4096).decode(errors="replace")
        os.killpg(process.pid, signal.SIGINT)
        rest = ""
        with suppress(OSError):  # the other end of the terminal is closed
            while chunk := os.read(server, 4096):
                rest += chunk.decode(errors="replace")
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        process.wait()
        os.close(server)
    rows = json.loads(file.read_text())
    assert [row["workers"] for row in rows] == [1, 2]
    assert f"interrupted after {rows[0]['repetitions']} of 1000000 repetitions" in re.sub(
        r"\x1b\[[0-9;?]*[A-Za-z]", "", rest
    )
    assert "Traceback" not in rest
