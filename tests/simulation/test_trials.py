"""Trials of `--workers auto`: what is tried, what ends it, and what it leaves behind. No test asserts a time."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapjoint import LapjointError, Params, Scene, Simulation, SimulationStopped, Sphere, scenes, trials
from lapjoint.errors import WorkerError
from lapjoint.params.count_choice import CountChoice
from lapjoint.server.partition import write_partition
from lapjoint.trials import SHORT, Trial, known_count, take_trial, tried_count

LONG = 100_000


def small() -> Scene:
    return scenes.build("bowl", 40)


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "core_count", lambda: 4)


class Tried:
    """Trials without a simulation: with so many workers a step takes so long, or fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *found_ms: float | Exception, spent_s: float = 0.5) -> None:
        self.found_ms, self.spent_s = found_ms, spent_s
        self.params: list[Params] = []
        self.announced: list[int] = []
        monkeypatch.setattr(trials, "take_trial", self._take)

    def _take(self, scene: Scene, params: Params, steps: int | None) -> Trial:
        if params.runtime != "inline":  # a glance at few bodies
            self.params.append(params)
        found = self.found_ms[params.workers - 1]
        if isinstance(found, Exception):
            raise found
        return Trial(1e-3 * found, self.spent_s)

    def choice(self, steps: int | None = LONG, scene: Scene | None = None, **given: Any) -> CountChoice:
        return tried_count(scene or small(), Params.from_options(**given), steps, self.announced.append)

    @property
    def counts(self) -> list[int]:
        return [params.workers for params in self.params]


# ---- what is tried -----------------------------------------------------------------------------------------------


def test_one_more_is_tried_as_long_as_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Tried(monkeypatch, 16.0, 9.0, 8.9, 1.0)
    assert tried.choice() == CountChoice(2, "9.0 ms a step against 16.0 with 1; 3 would gain under 5%")
    assert tried.counts == tried.announced == [1, 2, 3]


def test_there_are_no_more_workers_than_cores_and_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Tried(monkeypatch, 16.0, 8.0, 4.0, 2.0, 1.0)
    assert tried.choice() == CountChoice(4, "2.0 ms a step against 16.0 with 1; there are 4 cores")
    assert tried.choice(scene=scenes.build("chain", 3)).reason.endswith("; there are 3 bodies")


def test_each_trial_has_what_a_run_with_so_many_workers_has(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, scene = Tried(monkeypatch, 16.0, 8.0, 8.0), small()
    tried.choice(substeps=3)
    assert [(one.coupling_choice(scene).coupling, one.substeps.count) for one in tried.params] == [
        *[("blend", 3), ("tight", 3), ("tight", 3)]
    ]


def test_a_tiny_step_is_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Tried(monkeypatch, 0.05)
    assert tried.choice() == CountChoice(1, "0.05 ms a step is too little to share")
    assert tried.counts == []


def test_a_trial_that_takes_longer_than_it_may_save_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Tried(monkeypatch, 10.0, 5.0, 2.0)
    assert tried.choice(50) == CountChoice(1, "10.0 ms a step; to try 2 would take longer than it may save")
    assert tried.counts == [], "seen at a glance"
    many = scenes.build("bowl", 600)
    assert tried.choice(50, many) == CountChoice(1, "10.0 ms a step; to try 2 would take longer than it may save")
    assert tried.counts == [1]
    two = "5.0 ms a step against 10.0 with 1; to try 3 would take longer than it may save"
    assert tried.choice(200, many) == CountChoice(2, two)


def test_a_run_without_a_last_step_is_worth_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Tried(monkeypatch, 10.0, 5.0, 5.0).choice(None).workers == 2


@pytest.mark.parametrize(
    "error", [WorkerError("worker 2 cannot be started"), SimulationStopped("worker 2 is gone\nmore"), OSError("full")]
)
def test_a_trial_that_fails_leaves_the_smaller_number(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    choice = Tried(monkeypatch, 10.0, 5.0, error).choice()
    assert choice.workers == 2
    assert choice.reason.endswith(f"; a trial with 3 failed: {str(error).splitlines()[0]}")
    choice = Tried(monkeypatch, error).choice()
    assert choice == CountChoice(1, f"a trial with 1 failed: {str(error).splitlines()[0]}")


def test_a_mistake_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LapjointError, match="no partition"):
        Tried(monkeypatch, 10.0, LapjointError("no partition")).choice()


# ---- what needs no trial -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "count", "reason"),
    [
        ({"runtime": "inline"}, 1, "workers of the runtime inline take turns"),
        ({"engine": "bullet,2=rapier"}, 3, "`engine` names worker 2"),
        ({"engine": "bullet,1=rapier", "runtime": "ray"}, 2, "`engine` names worker 1"),
        ({"solver": "sequential,1=dantzig", "runtime": "inline"}, 2, "`solver` names worker 1"),
        ({"solver": "sequential,label:1=dantzig"}, 2, "`solver` names labels: one worker for each, and one for the re"),
        ({"partition": [0, 1, 2] * 10}, 3, "`partition` is made for as many"),
        ({"partition": [0] * 30, "engine": "bullet,1=bullet"}, 2, "`engine` names worker 1"),
    ],
)
def test_options_decide_the_number(given: dict[str, Any], count: int, reason: str) -> None:
    choice = known_count(scenes.build("bowl", 30), Params.from_options(**given), LONG)
    assert choice is not None
    assert choice.workers == count
    assert choice.reason.startswith(reason)


def test_a_partition_in_a_file_decides_the_number(tmp_path: Path) -> None:
    scene, path = small(), tmp_path / "three.txt"
    write_partition(path, (np.arange(scene.body_count) % 3).astype(np.int32))
    assert known_count(scene, Params(partition=str(path)), 10) == CountChoice(3, "`partition` is made for as many")
    with pytest.raises(LapjointError, match=r"gone\.txt: there is no such file"):
        known_count(scene, Params(partition=str(tmp_path / "gone.txt")), 10)
    assert known_count(scene, Params(partition="metis"), LONG) is None


def test_where_there_is_nothing_to_share_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert known_count(small(), Params(), SHORT) is None
    assert known_count(small(), Params(), None) is None
    found = known_count(small(), Params(), SHORT - 1)
    assert found == CountChoice(1, "a run of less than 24 steps is over before 2 are tried")
    ball = Scene("ball")
    assert known_count(ball, Params(), LONG) == CountChoice(1, "there are no bodies")
    ball.add_body(Sphere(1.0), (0, 0, 0))
    assert known_count(ball, Params(), LONG) == CountChoice(1, "there is 1 body")
    monkeypatch.setattr(trials, "core_count", lambda: 1)
    assert known_count(small(), Params(), LONG) == CountChoice(1, "there is 1 core")


def test_workers_of_ray_are_not_tried() -> None:
    with pytest.raises(LapjointError, match=r"`runtime` is ray and `workers` is auto, .* expected a number of them"):
        known_count(small(), Params(runtime="ray"), LONG)


# ---- a trial itself ----------------------------------------------------------------------------------------------


@pytest.fixture
def counted_steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counts: list[int] = []
    step = Simulation.step

    def count(self: Simulation, count: int = 1) -> None:
        counts.append(count)
        step(self, count)

    monkeypatch.setattr(Simulation, "step", count)
    return counts


@pytest.mark.parametrize(("steps", "most"), [(None, 42), (LONG, 42), (150, 17), (30, 5), (1, 3)])
def test_a_trial_takes_few_steps(steps: int | None, most: int, counted_steps: list[int]) -> None:
    found = take_trial(scenes.build("chain", 4), Params(runtime="inline"), steps)
    assert 0 < found.step_s < found.spent_s
    assert counted_steps[:2] == [1, 1], "cold, and a first look"
    assert 3 <= sum(counted_steps) <= most
    assert len(set(counted_steps[2:])) == 1


def test_a_trial_warns_of_nothing_and_leaves_the_scene_open() -> None:
    scene = Scene("crowd")
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 0.0), (0.3, 0.0, 0.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        take_trial(scene, Params(runtime="inline"), 10)
    scene.add_body(Sphere(0.5), (5.0, 0.0, 0.0))


@pytest.mark.slow
def test_a_worker_that_was_replaced_makes_a_trial_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Simulation.step

    def kill_one(self: Simulation, count: int = 1) -> None:
        if self.step_count == 1:
            os.kill(self._core.runtime.process_ids[0], 9)  # type: ignore[attr-defined]
        step(self, count)

    monkeypatch.setattr(Simulation, "step", kill_one)
    with pytest.raises(WorkerError, match="worker 0"):
        take_trial(scenes.build("chain", 4), Params(), 30)


@pytest.mark.slow
def test_an_interrupted_trial_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fixture of all tests looks for processes that are left."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(trials, "_timed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        take_trial(scenes.build("chain", 8), Params(workers=2), 100)
