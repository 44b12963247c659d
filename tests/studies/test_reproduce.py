"""The paper's evaluation: plans, what is kept and what is run again, Table 2, the page, and Ctrl-C."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lapjoint import LapjointError, Params, Recording, scenes
from lapjoint.cli import app
from lapjoint.studies.reproduce import Done, Plan, RunPart, SpeedupPart, full, quick, reproduce
from lapjoint.studies.reproduce.paper import COUNTS, ITERATIONS, SCENES, TABLE_2, TIMESTEP
from lapjoint.studies.reproduce.parts import run_parts, summed_up
from lapjoint.studies.reproduce.plan import GROWTH_DEPTHS, Part, step_ms
from lapjoint.studies.reproduce.reductions import reductions
from lapjoint.studies.reproduce.store import PartStore
from lapjoint.studies.reproduce.table2 import as_csv, as_markdown, table2
from lapjoint.system.folder_lock import FolderLock
from recording_support import balls, record

SIZES = {"bowl": 24, "building": 75, "chain-net": 12, "four-way-bridge": 60, "two-way-bridge": 60}
INLINE = Params(timestep=TIMESTEP, runtime="inline")
FIGURES = [
    "errors-over-growth-depth",
    "errors-over-workers",
    "figure-10-speedup",
    "figure-11-step-times",
    "figure-12-errors",
    "figure-13-contacts-per-worker",
    "figure-14-bodies-per-worker",
    "one-step-error",
]


def tiny(part: Part) -> Part:
    """The same part of a small scene, with hardly any steps."""
    if isinstance(part, SpeedupPart):
        return replace(part, size=SIZES[part.scene], iterations=3, warmup=1, steps=1, repetitions=1)
    every = None if part.one_step_every is None else 2
    warmup = min(part.warmup, 1)
    return replace(
        part,
        size=SIZES[part.scene],
        iterations=3,
        steps=6,
        one_step_every=every,
        warmup=warmup,
        skip=min(part.skip, 2),
        frame_every=3,
    )


def tiny_plan(*scene_names: str) -> Plan:
    plan = quick()
    plan = Plan("quick", tuple(map(tiny, plan.parts)), INLINE)
    return plan.only(scene_names) if scene_names else plan


def two_parts(**changed: Any) -> Plan:
    """A benchmark and a run of the bowl."""
    run = replace(RunPart("bowl", 24, 0, 3, 2, 4, None), **changed)
    return Plan("quick", (SpeedupPart("bowl", 24, 0, 3, (1, 2), 1, 1, 1), run), INLINE)


# ---- plans -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_the_paper_states_is_what_the_scenes_have() -> None:
    for paper in TABLE_2:
        scene = scenes.build(paper.name)
        assert (scene.body_count, scene.joint_count) == (paper.body_count, paper.joint_count)
        assert (scene.growth_depth, scene.timestep) == (paper.growth_depth, TIMESTEP)


def test_the_full_plan_has_the_papers_everything() -> None:
    plan = full()
    assert plan.scenes == list(SCENES)
    assert {part.counts for part in plan.speedups} == {COUNTS}
    assert {part.iterations for part in plan.parts} == {ITERATIONS}
    assert {part.size for part in plan.parts} == {None}
    for paper in TABLE_2:
        counts = [part.workers for part in plan.runs("run", paper.name)]
        assert {1, 2, paper.workers} <= set(counts)
        assert {part.growth_depth for part in plan.runs("run", paper.name)} == {paper.growth_depth}
    for name in ("two-way-bridge", "four-way-bridge"):
        many = [part for part in plan.runs("depth", name) if part.workers > 1]
        assert [part.growth_depth for part in many] == list(GROWTH_DEPTHS)
        assert {part.workers for part in many} == {SCENES[name].workers}
    assert [part.workers for part in plan.runs("count")] == [1, 2, 4, 8]
    assert plan.params.timestep == TIMESTEP


def test_the_quick_plan_is_smaller_and_says_so() -> None:
    plan = quick()
    assert plan.scenes == list(SCENES)
    assert sum(part.work for part in plan.parts) < 0.05 * sum(part.work for part in full().parts)
    for part in plan.speedups:
        assert {1, 2, SCENES[part.scene].workers} <= set(part.counts)
    said = "\n".join(reductions(plan))
    net = plan.runs("run", "chain-net")[0]
    assert f"Recorded runs with about {net.size:,} bodies: chain-net. The paper has 3,724." in said
    for part in plan.runs("run"):
        assert f"Recorded runs at {part.iterations} iterations" in said
        assert f"Recorded runs of {part.steps} steps" in said
    assert "Errors over growth depth with 2 workers instead" in said
    assert len(reductions(full())) < len(reductions(plan))
    assert not re.search("iterations: .*The paper has 1,000", "\n".join(reductions(full())))


def test_work_follows_size_iterations_and_what_is_measured() -> None:
    assert step_ms("bowl", None, 1000) > 10 * step_ms("bowl", None, 10)
    assert step_ms("chain-net", 372, 50) == pytest.approx(step_ms("chain-net", None, 50) * 372 / 3724)
    plain = RunPart("bowl", None, 0, 50, 7, 100, None)
    assert replace(plain, steps=200).work == pytest.approx(2 * plain.work)
    assert replace(plain, one_step_every=1).work > replace(plain, one_step_every=90).work > plain.work
    assert replace(plain, workers=1).work > plain.work
    part = SpeedupPart("bowl", None, 0, 1000, (1, 2), 100, 20, 3)
    assert replace(part, counts=(1, 2, 4)).work > part.work


def test_mistakes_in_a_plan_are_named() -> None:
    with pytest.raises(LapjointError, match="no scene 'bowling' in Table 2, expected some of bowl, building"):
        quick().only(["bowling"])
    with pytest.raises(LapjointError, match="scene 'chain' is not in Table 2"):
        Plan("quick", (RunPart("chain", None, 0, 5, 1, 5, None),))
    with pytest.raises(LapjointError, match="part 'bowl-2-run' is in the plan more than once"):
        Plan("quick", (two_parts().parts[1], two_parts(iterations=9).parts[1]))
    with pytest.raises(LapjointError, match="no parts"):
        reproduce(Plan("quick", ()), "nowhere")
    only = quick().only(["bowl"])
    assert only.scenes == ["bowl"]
    assert {part.kind for part in only.parts} == {"speedup", "run", "count"}


# ---- what is kept ------------------------------------------------------------------------------------------------


def run_into(folder: Path, plan: Plan, **options: Any) -> dict[str, bool]:
    """Run a plan; which parts were kept from before."""
    folder.mkdir(exist_ok=True)
    found = run_parts(plan, PartStore(folder, plan.params), **options)
    return {name: done.kept for name, done in found.items()}


def test_parts_that_are_there_are_not_run_again(tmp_path: Path) -> None:
    assert run_into(tmp_path, two_parts()) == {"bowl-speedup": False, "bowl-2-run": False}
    results = {path.name: path.read_text() for path in tmp_path.glob("*.json")}
    told: list[str] = []
    again = run_into(tmp_path, two_parts(), on_progress=lambda doing, share: told.append(doing))
    assert again == {"bowl-speedup": True, "bowl-2-run": True}
    assert told == []
    assert {path.name: path.read_text() for path in tmp_path.glob("*.json")} == results
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bowl-2-run.json",
        "bowl-2-run.zarr",
        "bowl-speedup.json",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("changed", [{"iterations": 4}, {"steps": 5}, {"size": 25}, {"one_step_every": 2}])
def test_a_changed_part_is_run_again_and_the_others_are_kept(tmp_path: Path, changed: dict[str, Any]) -> None:
    run_into(tmp_path, two_parts())
    assert run_into(tmp_path, two_parts(**changed)) == {"bowl-speedup": True, "bowl-2-run": False}
    assert run_into(tmp_path, two_parts(**changed)) == {"bowl-speedup": True, "bowl-2-run": True}
    recording = Recording(tmp_path / "bowl-2-run.zarr")
    part = two_parts(**changed).parts[1]
    assert isinstance(part, RunPart)
    assert (len(recording.profile["step_count"]), recording.body_count) == (part.steps, part.size)


@pytest.mark.slow
def test_other_parameters_versions_or_machines_run_everything_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_into(tmp_path, two_parts())
    nothing = {"bowl-speedup": False, "bowl-2-run": False}
    assert run_into(tmp_path, replace(two_parts(), params=INLINE.with_options(weights="computed"))) == nothing
    assert run_into(tmp_path, two_parts()) == nothing
    for name, value in (
        ("versions", {"lapjoint": "9.9", "engine": "bullet"}),
        ("machine", {"cpu": "another", "core_count": 2, "platform": "x"}),
    ):
        monkeypatch.setattr(f"lapjoint.studies.reproduce.store.{name}", lambda *_, value=value: value)
        assert run_into(tmp_path, two_parts()) == nothing
        assert True in run_into(tmp_path, two_parts()).values()


def test_the_names_under_which_parts_are_kept_stay(tmp_path: Path) -> None:
    """Another name would run again, for hours, what an earlier version has kept."""
    run_into(tmp_path, two_parts())
    kept = json.loads((tmp_path / "bowl-speedup.json").read_text())
    names = ["kind", "scene", "size", "growth_depth", "iterations", "counts", "warmup", "steps", "repetitions"]
    assert list(kept["key"]["part"]) == names
    assert {row["repetitions"] for row in kept["result"]["rows"]} == {1}


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["torn", "no recording", "open recording", "another's"])
def test_what_is_damaged_is_run_again(tmp_path: Path, damage: str) -> None:
    run_into(tmp_path, two_parts())
    file, root = tmp_path / "bowl-2-run.json", tmp_path / "bowl-2-run.zarr" / "zarr.json"
    if damage == "torn":
        file.write_text(file.read_text()[:200])
    elif damage == "another's":
        file.write_text("[1, 2]")
    elif damage == "no recording":
        root.unlink()
    else:
        root.write_text(root.read_text().replace('"complete": true', '"complete": false'))
    assert run_into(tmp_path, two_parts()) == {"bowl-speedup": True, "bowl-2-run": False}


@pytest.mark.slow
def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    plan = two_parts()

    def stop(doing: str, share: float) -> None:
        if "run on" in doing and "starting" not in doing:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_into(tmp_path, plan, on_progress=stop)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bowl-2-run.part", "bowl-speedup.json"]
    shares: list[float] = []
    assert run_into(tmp_path, plan, on_progress=lambda _, share: shares.append(share)) == {
        "bowl-speedup": True,
        "bowl-2-run": False,
    }
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)  # of what is left
    assert not (tmp_path / "bowl-2-run.part").exists()


def test_a_benchmark_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    def stop(doing: str, share: float) -> None:
        if "repetition 1" in doing:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_into(tmp_path, two_parts(), on_progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_an_error_names_the_part(tmp_path: Path) -> None:
    plan = Plan("quick", (RunPart("bowl", 3, 0, 3, 7, 4, None),), INLINE)
    with pytest.raises(LapjointError, match=r"bowl: run on 7 workers: .*3"):
        run_into(tmp_path, plan)


@pytest.mark.slow
def test_means_are_over_the_late_steps(tmp_path: Path) -> None:
    record(tmp_path / "a", balls(3), 4)
    assert summed_up(Recording(tmp_path / "a"), 0) == {}
    run_into(tmp_path, two_parts(steps=8, one_step_every=2))
    recording = Recording(tmp_path / "bowl-2-run.zarr")
    late = summed_up(recording, 4)
    residuals = recording.measures["worker_residual"].sum(axis=1)[4:]
    assert late["worker_residual"] == {"mean": pytest.approx(residuals.mean()), "largest": residuals.max()}
    errors = recording.measures["one_step_error"][[5, 7]]
    assert late["one_step_error"]["mean"] == pytest.approx(errors.mean())


# ---- Table 2 -----------------------------------------------------------------------------------------------------


def bench_row(workers: int, speedup: float, projected: float, **more: Any) -> dict[str, Any]:
    row = {"workers": workers, "step_ms": 100.0, "speedup": speedup, "projected_speedup": projected, "cores": 2}
    return {**row, "runtime": "process", "body_count": 5040, "joint_count": 0, **more}


def made_up(*rows: dict[str, Any], contacts: dict[str, float] | None = None) -> tuple[Plan, dict[str, Done]]:
    part = SpeedupPart("bowl", None, 0, 1000, tuple(row["workers"] for row in rows), 0, 1, 1)
    run = RunPart("bowl", None, 0, 1000, 1, 1, None)
    done = {part.name: Done(part, {"rows": list(rows)}, Path(), True)}
    if contacts:
        done[run.name] = Done(run, {"summary": contacts}, Path(), True)
    return Plan("full", (part, run) if contacts else (part,)), done


def test_measured_where_cores_suffice_and_projected_beyond() -> None:
    plan, done = made_up(
        bench_row(1, 1.0, 1.0),
        bench_row(2, 1.8, 1.9),
        bench_row(7, 1.6, 5.25),
        bench_row(8, 1.5, 5.125),
        contacts={"contact_count_mean": 7000.4, "contact_point_count_mean": 7100.0, "body_count": 5040},
    )
    (row,) = table2(plan, done)
    assert (row.speedup, row.speedup_is) == (5.25, "projected")
    assert (row.best_speedup, row.best_workers, row.best_is) == (5.25, 7, "projected")
    assert (row.two_measured, row.two_projected) == (1.8, 1.9)
    text = as_markdown([row], 2)
    assert "| Bowl | 5,040, 5,040 | 0, 0 | 7,022 | 7,000, 7,100 | 4.10 (7) | ~5.25 (7) |" in text
    assert "one of the 2 cores" in text
    (line,) = csv.DictReader(io.StringIO(as_csv([row])))
    assert (line["scene"], line["paper_speedup"], line["speedup"]) == ("bowl", "4.1", "5.25")
    assert line["contact_count"] == "7000.4"
    smaller = as_markdown([replace(row, contact_body_count=600)], 2)
    assert "| 7,000, 7,100 of 600 bodies |" in smaller


def test_a_table_without_the_papers_count_and_without_a_run() -> None:
    plan, done = made_up(bench_row(1, 1.0, 1.0), bench_row(2, 1.75, 1.9))
    (row,) = table2(plan, done)
    assert (row.speedup, row.contact_count) == (None, None)
    assert (row.best_speedup, row.best_workers, row.best_is) == (1.75, 2, "measured")
    assert "| - | 4.10 (7) | - | 1.75 (2) | 1.75, 1.90 |" in as_markdown([row], 2)
    (line,) = csv.DictReader(io.StringIO(as_csv([row])))
    assert (line["speedup"], line["contact_count"]) == ("", "")


# ---- from end to end ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every scene, small."""
    page = reproduce(tiny_plan(), tmp_path_factory.mktemp("reproduce") / "new" / "out")
    assert page.name == "index.html"
    return page.parent


@pytest.mark.slow
def test_everything_is_written(out: Path) -> None:
    figures = [f"{name}.{ending}" for name in FIGURES for ending in ("png", "svg")]
    written = {path.name for path in out.iterdir()}
    assert written == {"index.html", "parts", "results.json", "table2.csv", "table2.md", *figures}
    text = (out / "index.html").read_text()
    assert re.findall(r"https?:|//cdn|@import|url\((?!#)", text) == []
    assert "</strong> is left out" not in text
    for words in ("Less than in the paper", "Table 2", "Figure 10", "Figure 14", "Errors over workers: the bowl"):
        assert words in text


@pytest.mark.slow
def test_the_results_hold_everything(out: Path) -> None:
    results = json.loads((out / "results.json").read_text())
    assert {"fidelity", "versions", "machine", "cores", "params", "reductions", "table2", "parts"} <= results.keys()
    assert len(results["table2"]) == 5
    assert results["parts"].keys() == {part.name for part in tiny_plan().parts}
    run = results["parts"]["two-way-bridge-8-run"]
    assert run["part"]["growth_depth"] == 6
    assert {"joint_gap_sum", "penetration_max", "worker_residual", "one_step_error"} <= run["result"]["measured"].keys()
    assert run["result"]["scene_length"] > 5
    assert Recording(out / run["recording"]).worker_count == 8
    assert results["parts"]["bowl-speedup"]["recording"] is None
    assert [row["workers"] for row in results["parts"]["bowl-speedup"]["result"]["rows"]] == [1, 2, 4, 7]


@pytest.mark.slow
def test_a_part_of_the_scenes_uses_what_is_there(out: Path, tmp_path: Path) -> None:
    kept: list[bool] = []
    shutil.copytree(out, tmp_path / "out")
    page = reproduce(tiny_plan("four-way-bridge"), tmp_path / "out", on_part=lambda done, *_: kept.append(done.kept))
    assert len(kept) == 11
    assert all(kept)
    text = page.read_text()
    assert "Errors over workers: the bowl</strong> is left out. It needs the bowl." in text
    assert "per worker</strong> is left out. It needs runs of building with" in text


# ---- the command -------------------------------------------------------------------------------------------------


def invoke(monkeypatch: pytest.MonkeyPatch, plan: Plan, *arguments: str) -> Any:
    monkeypatch.setattr("lapjoint.cli.reproduce.quick", lambda: plan)
    return CliRunner().invoke(app, ["reproduce", *arguments], env={"COLUMNS": "100"})


@pytest.mark.slow
def test_the_command_is_interrupted_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = two_parts()
    stopped = False

    def stop(*given: Any, **options: Any) -> Any:
        nonlocal stopped
        stopped = True
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("lapjoint.studies.reproduce.parts.run", stop)
        result = invoke(patch, plan, "--quick", "--scenes", "bowl", "--out", str(tmp_path / "[out]"))
    assert stopped
    assert result.exit_code == 130
    assert "interrupted: 1 of 2 parts are complete and kept" in result.stdout
    assert f"to go on: lapjoint reproduce --quick --scenes bowl --out {tmp_path}/[out]" in result.stdout
    result = invoke(monkeypatch, plan, "--out", str(tmp_path / "[out]"))
    assert result.exit_code == 0, result.output
    assert re.search(r"1 of 2 +bowl: speed-up +kept", result.stdout)
    assert re.search(r"2 of 2 +bowl: run on 2 workers +\d+ s", result.stdout)
    assert "4.10 (7)" in result.stdout
    assert "index.html" in result.stdout


def test_the_command_refuses_what_it_cannot_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for arguments, said in (
        (["--scenes", "bowl,plank"], "no scene 'plank' in Table 2"),
        (["--out", str(tmp_path / "file")], "is a file"),
        (["--out", str(tmp_path / "file" / "out")], "cannot be made"),
    ):
        result = invoke(monkeypatch, two_parts(), *arguments)
        assert isinstance(result.exception, LapjointError)
        assert said in str(result.exception)


def test_two_at_once_do_not_take_away_each_others_parts(tmp_path: Path) -> None:
    with FolderLock(tmp_path / "out/parts/quick", "this test writes there"), pytest.raises(LapjointError) as caught:
        reproduce(two_parts(), tmp_path / "out")
    assert "quick: another `lapjoint reproduce` writes there" in str(caught.value)


def test_without_matplotlib_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(LapjointError, match=r"pip install 'lapjoint\[report\]'"):
        reproduce(two_parts(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
