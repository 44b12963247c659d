"""Comparing recordings: differences of known states, values side by side, one worker again, and the command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from lapjoint import LapjointError, Params, Recording, RecordingWriter, Scene, Sequential, Simulation, Sphere, scenes
from lapjoint.arrays import rotation
from lapjoint.cli import app
from lapjoint.studies.compare import Comparison, Value, compare, rotation_differences, run_single, state_differences
from recording_support import balls, made


def states_of(scene: Scene, shift: float = 0.0) -> NDArray[np.float64]:
    """The scene's own states, every body moved along x."""
    states = scene.states.copy()
    states[:, 0] += shift
    return states


def write(path: Path, scene: Scene, steps: Sequence[tuple[int, NDArray[np.float64]]], **options: Any) -> Recording:
    """A recording of these states at these steps."""
    profile = options.pop("profile", {})
    timestep = options.pop("timestep", 0.002)
    values = options.pop("values", None)
    first = made(scene)
    first.timestep = timestep
    with RecordingWriter(path, first, measures=list(values[0]) if values else [], **options) as writer:
        for number, (step, states) in enumerate(steps):
            now = made(scene, step)
            now.states, now.timestep = states, timestep
            for name, numbers in profile.items():
                setattr(now.profile, name, numbers[number])
            writer.add(now, values[number] if values else None)
    return Recording(path)


def value(comparison: Comparison, name: str) -> Value:
    return next(one for one in comparison.values if one.name == name)


# ---- states ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_differences_are_those_that_were_put_in(tmp_path: Path) -> None:
    scene = balls(4)
    ours = [states_of(scene), states_of(scene), states_of(scene)]
    theirs = [states.copy() for states in ours]
    theirs[1][2, :3] += (0.003, 0.004, 0.0)
    theirs[2][:, :3] += (0.0, 0.0, 0.5)
    theirs[2][1, 3:7] = rotation.from_axis_angle((0, 0, 1), np.array(0.25))
    found = compare(
        write(tmp_path / "a", scene, list(enumerate(ours, 1))), write(tmp_path / "b", scene, list(enumerate(theirs, 1)))
    )
    assert found.steps.tolist() == [1, 2, 3]
    assert found.time == pytest.approx([0.002, 0.004, 0.006])
    assert found.position_largest == pytest.approx([0.0, 0.005, 0.5], abs=1e-7)
    assert found.position_rms == pytest.approx([0.0, 0.0025, 0.5], abs=1e-7)
    assert found.position_body[1] == 2
    assert found.rotation_largest == pytest.approx([0.0, 0.0, 0.25], abs=1e-6)
    assert (found.scene, found.body_count, found.notes) == ("balls", 4, [])


def test_identical_recordings_differ_by_exactly_nothing(tmp_path: Path) -> None:
    scene = balls(5)
    rng = np.random.default_rng(1)
    steps = [(i, rng.normal(size=(5, 13))) for i in range(1, 6)]
    found = compare(write(tmp_path / "a", scene, steps), write(tmp_path / "b", scene, steps))
    for numbers in (found.position_rms, found.position_largest, found.rotation_largest):
        assert numbers.tolist() == [0.0] * 5


def test_frames_are_matched_by_step_number(tmp_path: Path) -> None:
    scene = balls(2)
    steps = [(i, states_of(scene, 0.1 * i)) for i in range(1, 13)]
    a = write(tmp_path / "a", scene, steps, every=2)
    late = write(tmp_path / "b", scene, steps[3:], every=3)  # frames of steps 6, 9 and 12
    found = compare(a, late)
    assert found.steps.tolist() == [6, 12]
    assert found.position_largest.tolist() == [0.0, 0.0]


def test_a_step_that_was_recorded_twice_counts_once(tmp_path: Path) -> None:
    scene = balls(2)
    a = write(tmp_path / "a", scene, [(1, states_of(scene)), (1, states_of(scene, 9)), (2, states_of(scene))])
    b = write(tmp_path / "b", scene, [(1, states_of(scene)), (2, states_of(scene))])
    found = compare(a, b)
    assert found.steps.tolist() == [1, 2]
    assert found.position_largest.tolist() == [0.0, 0.0]


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    scene = balls(2)
    a = write(tmp_path / "a", scene, [(i, states_of(scene)) for i in range(1, 5)])
    for name, other, said in (
        ("more", write(tmp_path / "more", balls(3), [(1, states_of(balls(3)))]), "has 2 bodies, .* has 3"),
        ("late", write(tmp_path / "late", scene, [(9, states_of(scene))]), "steps 1 to 4, every 1, .* steps 9 to 9"),
        ("none", write(tmp_path / "none", scene, []), "none has no frames"),
        ("slow", write(tmp_path / "slow", scene, [(1, states_of(scene))], timestep=0.01), "steps of 2 ms, .* of 10 ms"),
    ):
        with pytest.raises(LapjointError, match=f"(?s){said}") as caught:
            compare(a, other)
        assert str(tmp_path / name) in str(caught.value)


def test_scenes_of_other_names_are_compared_with_a_note(tmp_path: Path) -> None:
    other = Scene("pearls")
    other.add_bodies(Sphere(0.1), positions=[(0, 0, 1), (0.3, 0, 1)])
    a = write(tmp_path / "a", balls(2), [(1, states_of(balls(2)))])
    found = compare(a, write(tmp_path / "b", other, [(1, states_of(other))]))
    assert found.notes == ["the scenes have different names: 'balls' and 'pearls'"]
    heavy = Scene("balls")
    heavy.add_bodies(Sphere(0.1), positions=[(0, 0, 1), (0.3, 0, 1)], mass=7.0)
    found = compare(a, write(tmp_path / "c", heavy, [(1, states_of(heavy))]))
    assert found.notes == ["the scenes differ, though not in their name and number of bodies"]


def test_states_that_blew_up_are_not_a_number_and_null_in_json(tmp_path: Path) -> None:
    scene = balls(2)
    bad = states_of(scene)
    bad[1, :3] = np.inf
    steps = [(1, bad)]
    found = compare(write(tmp_path / "a", scene, steps), write(tmp_path / "b", scene, steps))
    assert np.isnan(found.position_largest[0])
    assert found.position_body[0] == 1
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(text)["position_largest_max"] is None


def test_rotations_are_angles_whatever_the_sign_of_the_quaternion() -> None:
    angles = np.array([0.0, 1e-7, 0.3, 3.0, np.pi])
    q = rotation.from_axis_angle(np.tile((1.0, 2.0, -1.0), (5, 1)), angles)
    start = np.tile(rotation.IDENTITY, (5, 1))
    assert rotation_differences(start, q) == pytest.approx(angles, rel=1e-6)
    assert rotation_differences(start, -q) == pytest.approx(angles, rel=1e-6)
    assert rotation_differences(3 * q, q).max() < 1e-7


def test_no_bodies_are_no_difference() -> None:
    assert state_differences(np.empty((0, 13)), np.empty((0, 13))) == (0.0, 0.0, -1, 0.0)


# ---- values ------------------------------------------------------------------------------------------------------


def test_values_are_of_the_steps_that_both_have(tmp_path: Path) -> None:
    scene = balls(2)
    steps = [(i, states_of(scene)) for i in range(1, 5)]
    overlap = {"overlap_count": [0, 2, 4, 600], "activation_count": [50, 1, 2, 3]}
    nan = float("nan")
    values = [{"gap": gap, "rare": rare} for gap, rare in ((0.0, nan), (1.0, 4.0), (5.0, nan), (9.0, 8.0))]
    a = write(tmp_path / "a", scene, steps, profile=overlap, values=values)
    found = compare(a, write(tmp_path / "b", scene, steps[:3]))
    count = value(found, "overlap_count")
    assert (count.a_mean, count.a_largest, count.unit) == (2.0, 4.0, "")
    assert value(found, "gap") == Value("gap", "", 2.0, 5.0, None, None)
    assert (value(found, "rare").a_mean, value(found, "rare").a_largest) == (4.0, 4.0)
    # All bodies are activated before the first step: that is no change.
    assert value(found, "activation_count").a_largest == 2.0
    assert value(found, "step_ms").unit == value(found, "blend_ms").unit == "ms"
    assert {"step_phase_ms", "worker_body_count", "residual"} <= {one.name for one in found.values}
    phases = [value(found, f"{name}_ms").a_mean for name in ("reset", "detect", "balance", "weigh", "step_phase")]
    total = sum(ms for ms in (*phases, value(found, "blend_ms").a_mean) if ms is not None)
    assert value(found, "step_ms").a_mean == pytest.approx(total)


def test_of_a_vector_its_length_counts(tmp_path: Path) -> None:
    scene = balls(1)
    with RecordingWriter(tmp_path / "a", made(scene), measures={"force": 3}) as writer:
        writer.add(made(scene, 1), {"force": (3.0, 0.0, 4.0)})
    a = Recording(tmp_path / "a")
    assert value(compare(a, a), "force").a_mean == 5.0


# ---- one worker --------------------------------------------------------------------------------------------------


def record(path: Path, workers: int, steps: int = 12, skip: int = 0, every: int = 2) -> Recording:
    """A short run of the chain."""
    with Simulation(
        scenes.build("chain"),
        Params(workers=workers, runtime="inline", coupling="blend", sequential=Sequential(iterations=15)),
    ) as simulation:
        simulation.step(skip)
        with RecordingWriter(path, simulation, every=every, measures=["joint_gap_max", "own"]) as writer:
            for _ in range(steps):
                simulation.step()
                writer.add(simulation, {"joint_gap_max": simulation.joints.gaps().max(), "own": 1.0})
    return Recording(path)


@pytest.mark.parametrize("skip", [0, 3])
def test_one_worker_run_again_is_the_same_run(tmp_path: Path, skip: int) -> None:
    first = record(tmp_path / "first", workers=1, skip=skip)
    told: list[tuple[int, int]] = []
    again = run_single(first, tmp_path / "again", lambda done, total: told.append((done, total)))
    assert told == [(i, 12 + skip) for i in range(1, 13 + skip)]
    assert again.steps.tolist() == first.steps.tolist()
    assert again.params == first.params
    found = compare(first, again)
    assert found.position_largest.tolist() == [0.0] * 6
    gap = value(found, "joint_gap_max")
    assert gap.a_mean == pytest.approx(gap.b_mean, rel=1e-9)
    assert value(found, "own").b_mean is None


def test_two_workers_are_near_one(tmp_path: Path) -> None:
    two = record(tmp_path / "two", workers=2)
    one = run_single(two, tmp_path / "one")
    assert one.worker_count == 1
    assert 0 < compare(two, one).position_largest.max() < 0.01


def test_a_recording_without_frames_is_not_run_again(tmp_path: Path) -> None:
    with pytest.raises(LapjointError, match="no frames"):
        run_single(write(tmp_path / "a", balls(1), []), tmp_path / "b")


# ---- the command -------------------------------------------------------------------------------------------------


def invoke(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["compare", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


@pytest.mark.slow
def test_compare_prints_writes_and_draws(tmp_path: Path) -> None:
    two = record(tmp_path / "two", workers=2)
    files = [tmp_path / name for name in ("c.json", "c.png", "c.svg", "one")]
    text = invoke(two.path, "--single", "--record", files[3], "--json", files[0], "--figure", files[1])
    assert "chain, 40 bodies, 6 frames. A: two, B: one" in text
    assert "RMS [mm]" in text
    assert "joint_gap_max [m]" in text
    rows = json.loads(files[0].read_text())
    assert rows["steps"] == [2, 4, 6, 8, 10, 12]
    assert rows["position_largest_max"] == max(rows["position_largest"])
    assert rows["values"]["own"] == {"unit": "", "a_mean": 1.0, "a_largest": 1.0, "b_mean": None, "b_largest": None}
    assert files[1].read_bytes().startswith(b"\x89PNG")
    invoke(two.path, files[3], "--figure", files[2])
    assert "position difference [mm]" in files[2].read_text()
    assert Recording(files[3]).worker_count == 1


@pytest.mark.slow
def test_a_figure_of_no_difference_and_of_one_frame_can_be_drawn(tmp_path: Path) -> None:
    a = write(tmp_path / "a", balls(2), [(1, states_of(balls(2)))])
    invoke(a.path, a.path, "--figure", tmp_path / "c.svg")
    assert "zero throughout" in (tmp_path / "c.svg").read_text()


MISTAKES = {
    "A": "only one recording is given, expected a second one or --single",
    "A A --single": "A and --single are both given, expected one of them",
    "A A --record B": "--record is given without --single",
    "A gone": "gone: not a lapjoint recording (it does not exist)",
    "A A --figure c.gif": "--figure c.gif: expected a name that ends in .png or .svg",
}


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_refused_before_anything_is_written(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "A", balls(1), [(1, states_of(balls(1)))])
    with pytest.raises(LapjointError) as caught:
        invoke(*command.split())
    assert MISTAKES[command] in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["A"]


WITHOUT = """
import sys
sys.modules["matplotlib"] = None
sys.argv = ["lapjoint", *sys.argv[1:]]
from lapjoint.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "what"), [("compare A A --figure c.png", "--figure needs"), ("report A --out R", "figures need")]
)
def test_without_matplotlib_figures_are_refused_in_one_line(tmp_path: Path, command: str, what: str) -> None:
    write(tmp_path / "A", balls(1), [(1, states_of(balls(1)))])
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *command.split()], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {what} matplotlib: pip install 'lapjoint[report]'\n"
    assert [path.name for path in tmp_path.iterdir()] == ["A"]


@pytest.mark.slow
def test_comparing_needs_no_matplotlib(tmp_path: Path) -> None:
    write(tmp_path / "A", balls(1), [(1, states_of(balls(1)))])
    command = [sys.executable, "-c", WITHOUT, "compare", "A", "A", "--json", "c.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "c.json").read_text())["frame_count"] == 1
