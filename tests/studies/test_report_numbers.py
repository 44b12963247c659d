"""Reports: the numbers behind the figures, labels and tables. Nothing here draws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapjoint import Box, Recording, Scene, scenes
from lapjoint.studies.report.accuracy import error_series, growth_lines, other_series, single_mean
from lapjoint.studies.report.bench_file import read_bench
from lapjoint.studies.report.numbers import duplicated_share, projected_ms, quartiles, rolling_mean, thin, top_of_axis
from lapjoint.studies.report.runs import Run, open_material, scene_title
from lapjoint.studies.report.speedup import SpeedupPoint, compare_times, has_cores, speedup_lines
from lapjoint.studies.report.tables import Table, run_origins
from report_support import record, record_chains, tower, write_bench


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return record_chains(tmp_path_factory.mktemp("chains"))


@pytest.fixture(scope="module")
def bench_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bench(tmp_path_factory.mktemp("bench") / "bench.json")


# ---- numbers -----------------------------------------------------------------------------------------------------


def test_the_rolling_mean_is_of_each_value_and_those_before_it() -> None:
    assert rolling_mean([1, 2, 3, 4, 5, 6]).tolist() == [1.0, 1.5, 2.0, 2.5, 3.0, 4.0]
    assert rolling_mean([4.0, 8.0], window=1).tolist() == [4.0, 8.0]
    assert rolling_mean([]).tolist() == []
    values = np.random.default_rng(0).random(40)
    wanted = [values[max(0, i - 4) : i + 1].mean() for i in range(40)]
    assert rolling_mean(values) == pytest.approx(wanted)


def test_thinning_keeps_short_lines_whole_and_every_peak_of_long_ones() -> None:
    x = np.arange(10_000.0)
    y = np.sin(x / 300)
    y[[4321, 777]] = 9, -9
    thin_x, thin_y = thin(x, y, 200)
    assert len(thin_x) <= 200
    assert (thin_y.max(), thin_y.min()) == (9, -9)
    assert (np.diff(thin_x) > 0).all()
    assert np.array_equal(y[thin_x.astype(int)], thin_y)
    assert all(np.array_equal(*pair) for pair in zip(thin(x[:9], y[:9], 200), (x[:9], y[:9]), strict=True))


def test_duplicated_bodies_are_those_beyond_the_scene() -> None:
    assert duplicated_share([[5, 5], [6, 9], [10, 10]], 10).tolist() == pytest.approx([0.0, 0.5, 1.0])
    assert duplicated_share([[0, 0]], 0).tolist() == [-1.0]


def test_quartiles_and_the_top_of_an_axis() -> None:
    spread = quartiles(np.arange(101))
    assert (spread.low, spread.median, spread.high) == (25.0, 50.0, 75.0)
    assert top_of_axis([np.ones(100)]) is None
    assert top_of_axis([np.append(np.ones(500), 80.0)]) == pytest.approx(1.25)
    assert top_of_axis([]) is None
    assert top_of_axis([np.array([0.0, np.nan])]) is None


def test_a_projected_step_is_the_server_and_then_the_slowest_worker() -> None:
    cpu = np.array([[3.0, 5.0], [4.0, 4.0]])
    server = np.array([1.0, 2.0])
    assert projected_ms({"worker_cpu_ms": cpu, "server_ms": server}) == pytest.approx([6.0, 6.0])
    # Half of it was prepared meanwhile; what took longer than the server's part is late.
    prepared = {"worker_cpu_ms": cpu, "server_ms": server, "worker_prepare_ms": cpu / 2}
    assert projected_ms(prepared) == pytest.approx([1 + 2.5 + 1.5, 2 + 2.0])
    assert projected_ms({"worker_cpu_ms": cpu}) is None
    assert projected_ms({}) is None


# ---- speed-up ----------------------------------------------------------------------------------------------------


def test_measured_times_count_only_where_every_worker_has_a_core() -> None:
    assert has_cores(2, 2, "process")
    assert not has_cores(3, 2, "process")
    assert has_cores(1, 1, "inline")
    assert not has_cores(2, 64, "inline")


@pytest.mark.slow
def test_speed_up_is_against_one_worker_over_the_steps_that_both_have(chains: list[Path]) -> None:
    one, two = Run(Recording(chains[0])), Run(Recording(chains[1]))
    for run, factor in ((one, 6.0), (two, 2.0)):
        run.values["step_ms"] = np.array([1000.0, *[factor] * 7])  # the first step sets the workers up
        run.values["server_ms"] = np.zeros(8)
        run.values["worker_prepare_ms"] = np.zeros((8, run.workers))
        run.values["worker_cpu_ms"] = np.full((8, run.workers), factor / 2)
    assert compare_times(two, one) == SpeedupPoint(2, 2.0, None, 3.0)
    two.recording.machine["core_count"] = 2
    two.params["runtime"] = "process"
    assert compare_times(two, one) == SpeedupPoint(2, 2.0, 3.0, 3.0)
    two.steps = two.steps + 8
    assert compare_times(two, one) is None


@pytest.mark.slow
def test_lines_join_runs_that_differ_in_workers_alone(chains: list[Path]) -> None:
    lines = speedup_lines(open_material(chains))
    assert [line.label for line in lines] == [f"chain, growth depth {depth}" for depth in (0, 1, 2)]
    assert [[point.workers for point in line.points] for line in lines] == [[1, 2], [1, 2], [1, 2, 3]]
    assert all(line.points[0].projected == 1.0 for line in lines)
    assert speedup_lines(open_material(chains[1:])) == []  # nothing to compare with


def test_repeated_runs_are_one_point(tmp_path: Path, chains: list[Path]) -> None:
    again = record(tmp_path / "again", scenes.build("chain"), workers=2, growth_depth=0)
    (line,) = speedup_lines(open_material([chains[0], chains[1], again]))
    assert [point.workers for point in line.points] == [1, 2]


def test_one_worker_is_a_base_for_either_coupling(tmp_path: Path) -> None:
    scene = scenes.build("chain", 12)
    given: list[dict[str, Any]] = [{"workers": 1}, {"workers": 2}, {"workers": 2, "coupling": "blend"}]
    paths = [
        record(tmp_path / str(number), scene, steps=3, iterations=None, **params) for number, params in enumerate(given)
    ]
    lines = speedup_lines(open_material(paths))
    assert {line.label for line in lines} == {"chain, coupling blend", "chain, coupling tight"}
    assert [[point.workers for point in line.points] for line in lines] == [[1, 2], [1, 2]]


def test_a_benchmark_is_a_line_and_its_projected_values_stay_apart(bench_file: Path) -> None:
    rows = json.loads(bench_file.read_text())
    (line,) = speedup_lines(open_material([bench_file]))
    assert line.label == "tower"
    assert [point.workers for point in line.points] == [1, 2, 4]
    assert [point.projected for point in line.points] == [row["projected_speedup"] for row in rows]
    assert [point.measured for point in line.points] == [1.0, None, None]  # inline workers take turns


# ---- errors ------------------------------------------------------------------------------------------------------


def test_errors_are_as_recorded_or_worked_out_from_frames(chains: list[Path]) -> None:
    one, two = (Run(Recording(path)) for path in chains[:2])
    recorded, found = error_series(one), error_series(two)
    assert recorded["joint_gap_max"].values.tolist() == [1e3 * step for step in range(8)]  # in mm
    assert recorded["joint_gap_max"].time == pytest.approx(0.002 * np.arange(1, 9))
    assert found["joint_gap_max"].time == pytest.approx(0.002 * np.arange(2, 9, 2))
    assert (found["joint_gap_sum"].values >= found["joint_gap_max"].values).all()
    assert found["joint_gap_max"].values.min() > 0
    assert "one_step_error" not in found
    assert list(other_series(one)) == ["own"]
    assert other_series(two) == {}


def test_steps_that_were_not_measured_are_left_out(tmp_path: Path) -> None:
    run = Run(Recording(record(tmp_path / "a", tower(), measures=["one_step_error"])))
    run.values["one_step_error"] = np.array([np.nan, 1, np.nan, 2, np.nan, np.inf, np.nan, 3])
    series = error_series(run)["one_step_error"]
    assert series.values.tolist() == [1.0, 2.0, 3.0]
    assert series.time == pytest.approx([0.008, 0.016, 0.032])
    assert not any(name.startswith("joint_gap") for name in error_series(run))  # it has no joints
    assert "penetration_max" in error_series(run)  # from the contacts of frames


@pytest.mark.slow
def test_errors_over_growth_depth(chains: list[Path]) -> None:
    runs = open_material(chains).runs
    errors = [error_series(run) for run in runs]
    (line,) = growth_lines(runs, errors, "joint_gap_sum")
    assert (line.label, line.growth_depth.tolist()) == ("2 workers", [0.0, 1.0, 2.0])
    assert (line.largest >= line.mean).all()
    assert single_mean(runs, errors, "joint_gap_max") == pytest.approx(3500.0)
    assert growth_lines(runs, errors, "one_step_error") == []
    assert single_mean(runs[1:], errors[1:], "joint_gap_max") is None


# ---- names and tables --------------------------------------------------------------------------------------------


def test_labels_say_what_differs_and_are_never_the_same(tmp_path: Path, chains: list[Path]) -> None:
    labels = [run.label for run in open_material(chains[::-1]).runs]
    depths = [f"2 workers, growth depth {depth}" for depth in (0, 1, 2)]
    assert labels == ["1 worker", *depths, "3 workers, growth depth 2"]
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    paths = [record(tmp_path / name, tower(), steps=1) for name in ("a/run", "b/run", "c")]
    labels = [run.label for run in open_material(paths).runs]
    assert labels == [f"1 worker ({paths[0]})", f"1 worker ({paths[1]})", "1 worker (c)"]


def test_scenes_of_one_name_are_told_apart_by_their_counts(tmp_path: Path) -> None:
    small = Scene("tower")
    small.add_body(Box((1, 1, 1)))
    runs = [Run(Recording(record(tmp_path / f"{n}", scene, 1))) for n, scene in enumerate((tower(), small))]
    assert [scene_title(run, runs) for run in runs] == ["tower (8 bodies, 0 joints)", "tower (1 body, 0 joints)"]
    assert scene_title(runs[0], runs[:1]) == "tower"


def test_what_all_runs_share_is_said_once(chains: list[Path]) -> None:
    shared, rest = run_origins(open_material(chains).runs).without_shared("run")
    said = dict(shared)
    assert said["scene"] == "chain"
    assert (said["bodies"], said["joints"], said["iterations"], said["timestep"]) == ("40", "41", "5", "2 ms")
    assert {"machine", "versions", "runtime"} <= said.keys()
    assert rest.headings[:2] == ["run", "workers"]
    assert [row[0] for row in rest.rows] == ["one", "two-0", "two-1", "two-2", "three"]
    assert Table.of([{"a": "1"}, {"b": "2"}]).rows == [["1", "-"], ["-", "2"]]


def test_rows_of_a_benchmark_are_read_as_written(bench_file: Path) -> None:
    rows = read_bench(bench_file)
    written = json.loads(bench_file.read_text())
    assert [row.step_ms for row in rows] == [row["step_ms"] for row in written]
    assert rows[0].phases_ms["step"] == written[0]["step_phase_ms"]
    assert rows[0].facts["body_count"] == 8
