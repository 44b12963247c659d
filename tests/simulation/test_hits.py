"""Hits: contacts are reported that do as much as one of their bodies asks for, once a step, for all workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from faulty_engine import register, tell
from lapjoint import (
    Box,
    Checkpoint,
    CheckpointWriter,
    Compound,
    LapjointError,
    Material,
    Params,
    Part,
    Plane,
    Recording,
    Scene,
    Simulation,
    Sphere,
    scenes,
)
from lapjoint.cli import app
from lapjoint.run import run
from lapjoint.scene.serialize import describe_scene
from lapjoint.step_tables.hits import Hits

GRAVITY, TIMESTEP = 9.81, 0.002
INLINE: dict[str, Any] = {"runtime": "inline"}


def drop(height: float, restitution: float = 0.0, mass: float = 2.0, **options: Any) -> Scene:
    """A ball above the ground."""
    scene = Scene("drop", timestep=TIMESTEP)
    scene.add_static(Plane(), material=Material(restitution=restitution))
    surface = Material(restitution=restitution)
    scene.add_body(Sphere(0.1), (0.3, -0.2, 0.1 + height), mass=mass, material=surface, **options)
    return scene


def heap(seed: int = 0, hit_impulse: float = 1.0, count: int = 24) -> Scene:
    """Balls and boxes that fall on the ground, and on each other, here and there."""
    rng = np.random.default_rng(seed)
    scene = Scene("heap")
    scene.add_static(Plane())
    places = np.column_stack(
        [np.repeat(np.arange(count // 3) * 0.8, 3), np.zeros(count), np.tile([0.17, 0.5, 0.9], count // 3)]
    )
    places[:, :2] += rng.uniform(-0.03, 0.03, (count, 2))
    shapes = [Box((0.3, 0.3, 0.3)) if k % 2 else Sphere(0.15) for k in range(count)]
    scene.add_bodies(shapes, places, density=300.0, material=Material(restitution=0.3), hit_impulse=hit_impulse)
    return scene


def meetings(count: int = 10) -> Scene:
    """Pairs of balls that fly at each other, every pair apart from the others."""
    rng = np.random.default_rng(1)
    scene = Scene("meetings", gravity=(0, 0, 0))
    start = np.column_stack([np.tile([-0.3, 0.3], count), np.repeat(np.arange(count) * 0.5, 2), np.zeros(2 * count)])
    start[:, 1:] += rng.uniform(-0.05, 0.05, (2 * count, 2))
    velocities = -start * (rng.uniform(3.0, 8.0, 2 * count)[:, None] * [1, 0, 0])
    surface = Material(restitution=0.5)
    scene.add_bodies(
        Sphere(0.1),
        start,
        mass=rng.uniform(0.5, 2.0, 2 * count),
        linear_velocities=velocities,
        material=surface,
        hit_impulse=0.5,
    )
    return scene


def hits_of(scene: Scene, steps: int, **params: Any) -> Hits:
    with Simulation(scene, Params.from_options(**{**INLINE, **params})) as simulation:
        simulation.step(steps)
        return simulation.events.hits


def same(a: Hits, b: Hits) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(vars(a).values(), vars(b).values(), strict=True))


# ---- how much --------------------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.floats(0.05, 5.0), st.floats(0.0, 1.0), st.floats(0.01, 100.0), st.sampled_from([1, 4, 9]))
def test_a_ball_that_falls_gives_the_ground_what_stops_it(height: float, e: float, mass: float, substeps: int) -> None:
    """m (1 + e) sqrt(2 g h), but for what gravity does within the step, and while a ball that is thrown back above the
    ground would have gone down and up again."""
    speed = np.sqrt(2 * GRAVITY * height)
    found = hits_of(
        drop(height, e, mass, hit_impulse=0.05 * mass * speed), int(speed / GRAVITY / TIMESTEP) + 3, substeps=substeps
    )
    assert len(found) == 1 or (e < 0.01 and len(found) == 2), (
        "a contact begins to stop what will touch in the next step"
    )
    assert found.bodies.tolist() == len(found) * [[0, -1]]
    below = min(e * speed, GRAVITY * TIMESTEP / substeps / max(e, 1e-6))
    assert found.impulse.sum() == pytest.approx(mass * (1 + e) * speed, abs=mass * (2.5 * GRAVITY * TIMESTEP + below))
    assert found.step[0] == pytest.approx(speed / GRAVITY / TIMESTEP, abs=2)
    assert found.point[0] == pytest.approx([0.3, -0.2, 0.0], abs=1e-6)
    assert found.normal[0] == pytest.approx([0.0, 0.0, 1.0], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("masses", [(1.0, 3.0), (5.0, 0.2)])
@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("params", [{}, {"workers": 2}, {"workers": 2, "coupling": "blend"}])
def test_two_balls_give_each_other_the_same(masses: tuple[float, float], e: float, params: dict[str, Any]) -> None:
    """The lower threshold decides; the normal is the first one's; both momenta change by the impulse."""
    scene = Scene(gravity=(0, 0, 0), timestep=TIMESTEP)
    velocities = [(2.0, 0, 0), (-1.0, 0, 0)]
    impulse = masses[0] * masses[1] / sum(masses) * (1 + e) * 3.0
    scene.add_bodies(
        Sphere(0.1),
        [(0, 0, 0), (1, 0, 0)],
        mass=masses,
        linear_velocities=velocities,
        material=Material(restitution=e, friction=0.0),
        hit_impulse=[np.inf, impulse / 2],
    )
    with Simulation(scene, Params.from_options(**INLINE, **params)) as simulation:
        simulation.step(300)
        found, after = simulation.events.hits, simulation.states[:, 7]
    assert found.bodies.tolist() == [[0, 1]]
    assert found.impulse[0] == pytest.approx(impulse, rel=1e-4)
    assert found.normal[0] == pytest.approx([-1, 0, 0], abs=1e-6)
    if params.get("coupling") != "blend":  # which keeps no momentum
        assert np.array(masses) * (after - (2.0, -1.0)) == pytest.approx(found.impulse[0] * np.array([-1, 1]), rel=1e-4)


@pytest.mark.parametrize("shape", ["box", "compound"])
def test_what_rests_reports_its_weight_in_every_step(shape: str) -> None:
    scene = Scene(timestep=TIMESTEP)
    scene.add_static(Plane())
    half = Part(Box((0.5, 1.0, 1.0)), (-0.25, 0, 0)), Part(Box((0.5, 1.0, 1.0)), (0.25, 0, 0))
    scene.add_body(Box((1, 1, 1)) if shape == "box" else Compound(half), (2, 0, 0.5), mass=3.0, hit_impulse=0.01)
    found = hits_of(scene, 60)
    assert found.step.tolist() == list(range(60)), "one hit a step, whatever the number of its points and parts"
    assert found.impulse[10:] == pytest.approx(np.full(50, 3.0 * GRAVITY * TIMESTEP), rel=0.02)
    assert found.point[10:] == pytest.approx(np.tile([2.0, 0.0, 0.0], (50, 1)), abs=2e-2)


def test_a_threshold_that_is_met_counts_and_one_above_does_not() -> None:
    impulse = hits_of(drop(1.0, hit_impulse=1.0), 300).impulse[0]
    assert len(hits_of(drop(1.0, hit_impulse=impulse), 300)) == 1
    assert len(hits_of(drop(1.0, hit_impulse=np.nextafter(impulse, np.inf)), 300)) == 0
    assert len(hits_of(drop(1.0), 300)) == 0


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_impulses_are_those_that_stop_bodies(precision: str) -> None:
    """Of a heap, all contacts of all bodies together bear what gravity gives them but for what they still move with."""
    scene = heap(3, hit_impulse=1e-6)
    scene.bodies.friction[:] = scene.statics.friction[:] = 0.0
    with Simulation(scene, Params.from_options(**INLINE, precision=precision)) as simulation:
        simulation.step(200)
        found, states = simulation.events.hits, simulation.states
    changed = np.zeros((scene.body_count, 3))
    push = found.impulse[:, None] * found.normal
    np.add.at(changed, found.bodies[:, 0], push)
    moving = found.bodies[:, 1] >= 0
    np.add.at(changed, found.bodies[moving, 1], -push[moving])
    mass = scene.bodies.mass[:, None]
    wanted = mass * (states[:, 7:10] - 200 * scene.timestep * scene.gravity)
    assert changed == pytest.approx(wanted, abs=2e-3 * (mass * GRAVITY * 200 * scene.timestep).max())


# ---- workers ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "params", [{"workers": 2}, {"workers": 4}, {"workers": 2, "coupling": "blend"}, {"workers": 4, "coupling": "blend"}]
)
def test_workers_report_what_one_reports(params: dict[str, Any]) -> None:
    """Which pairs, in which steps, where and how much, each once. Both bodies of a pair have different workers."""
    scene = meetings()
    partition = np.arange(scene.body_count) % params["workers"]
    alone = hits_of(scene, 150)
    together = hits_of(scene, 150, partition=partition, repartition=0, **params)
    assert sorted(alone.bodies[:, 0].tolist()) == list(range(0, 20, 2))
    if params.get("coupling") == "blend":  # which knows of other workers' bodies up to the reach of contacts
        by_body = [np.argsort(found.bodies[:, 0], kind="stable") for found in (alone, together)]
        assert alone.bodies[by_body[0]].tolist() == together.bodies[by_body[1]].tolist()
        assert np.abs(together.step[by_body[1]] - alone.step[by_body[0]]).max() <= 1
        assert together.impulse[by_body[1]] == pytest.approx(alone.impulse[by_body[0]], rel=0.2)
        return
    assert alone.bodies.tolist() == together.bodies.tolist()
    assert np.array_equal(together.step, alone.step)
    assert together.impulse == pytest.approx(alone.impulse, rel=1e-5)
    assert together.point == pytest.approx(alone.point, abs=1e-5)
    assert together.normal == pytest.approx(alone.normal, abs=1e-5)


@pytest.mark.parametrize("params", [{}, {"workers": 2}, {"workers": 4}, {"workers": 3, "coupling": "blend"}])
def test_hits_are_in_order_and_each_is_there_once(params: dict[str, Any]) -> None:
    found = hits_of(heap(), 120, partition=np.arange(24) % params.get("workers", 1), **params)
    rows = np.column_stack([found.step, found.bodies])
    assert len(rows) > 30
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert np.array_equal(np.lexsort(rows.T[::-1]), np.arange(len(rows)))


@pytest.mark.slow
@pytest.mark.parametrize("params", [{}, {"workers": 3}, {"workers": 2, "coupling": "blend"}])
def test_the_same_wherever_workers_live_and_however_many_steps_they_take(params: dict[str, Any]) -> None:
    wanted = hits_of(heap(5), 150, **params)
    assert len(wanted) > 10
    assert same(hits_of(heap(5), 150, **{**params, "runtime": "process"}), wanted)
    with Simulation(heap(5), Params.from_options(**INLINE, **params)) as simulation:
        for _ in range(150):
            simulation.step()
        assert same(simulation.events.hits, wanted)
        assert simulation.state_hash == _hash(heap(5), 150, **params)
        simulation.restart()
        assert len(simulation.events.hits) == 0


def _hash(scene: Scene, steps: int, **params: Any) -> str:
    with Simulation(scene, Params.from_options(**INLINE, **params)) as simulation:
        simulation.step(steps)
        return simulation.state_hash


@pytest.mark.parametrize("params", [{}, {"workers": 2}, {"workers": 2, "coupling": "blend"}])
def test_reporting_changes_nothing(params: dict[str, Any]) -> None:
    assert _hash(heap(), 120, **params) == _hash(heap(hit_impulse=np.inf), 120, **params)


@pytest.mark.usefixtures("unhurried")
def test_a_run_with_hits_takes_many_steps_at_once() -> None:
    with Simulation(heap(), Params.from_options(**INLINE, workers=2)) as simulation:
        simulation.step(5)
        assert simulation.step_at_once(20) == 20
        before = len(simulation.events.hits)
        assert simulation.step_at_once(20) == 20
        later = simulation.events.hits.taken(slice(before, None))
        assert len(later)
        assert ((later.step >= 25) & (later.step < 45)).all()


@pytest.mark.slow
def test_hits_of_steps_that_are_taken_again_are_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(tmp_path, monkeypatch)
    params: dict[str, Any] = {"workers": 2, "repartition": 0, "solver": "substeps", "coupling": "tight"}
    wanted = hits_of(heap(7), 100, **params)
    with Simulation(heap(7), Params.from_options(engine="faulty", runtime="process", **params)) as simulation:
        simulation.step()
        tell("kill", 0, when="end")
        simulation.step(99)
        assert [event.kind for event in simulation.incidents] == ["gone"]
        found = simulation.events.hits
    assert np.array_equal(found.step[:10], wanted.step[:10])
    assert np.array_equal(found.bodies[:10], wanted.bodies[:10])
    assert len(np.unique(np.column_stack([found.step, found.bodies]), axis=0)) == len(found)


# ---- what is kept ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [2, 1])
def test_a_checkpoint_has_the_hits_so_far(workers: int, tmp_path: Path) -> None:
    with Simulation(heap(9), Params.from_options(**INLINE, workers=2)) as simulation:
        simulation.step(80)
        checkpoint = Checkpoint(CheckpointWriter(tmp_path, simulation).save(simulation))
        before = simulation.events.hits
        simulation.step(60)
        wanted = simulation.events.hits
    assert 0 < len(before) < len(wanted)
    with checkpoint.resume(workers=workers) as simulation:
        assert same(simulation.events.hits, before)
        simulation.step(60)
        assert same(simulation.events.hits, wanted) or workers == 1
        assert np.array_equal(simulation.events.hits.bodies[: len(before) + 3], wanted.bodies[: len(before) + 3])


def test_a_recording_has_the_hits_up_to_each_frame(tmp_path: Path) -> None:
    with Simulation(heap(11), Params.from_options(**INLINE, workers=2)) as simulation:
        simulation.step(10)
        summary = run(simulation, 120, record=tmp_path / "heap", record_every=40)
        wanted = simulation.events.hits
    assert summary.reported["hits"] == len(wanted) > 10
    recording = Recording(tmp_path / "heap")
    for frame in range(3):
        assert same(recording.hits(frame), wanted.taken(wanted.step < 10 + 40 * (frame + 1)))
    assert same(recording.hits(), wanted)
    with Simulation(drop(1.0), Params.from_options(**INLINE)) as simulation:
        run(simulation, 3, record=tmp_path / "plain")
    plain = Recording(tmp_path / "plain")
    assert Hits not in plain.kinds
    assert len(plain.hits()) == 0
    assert not list((tmp_path / "plain").glob("hit_*"))


def test_the_command_line_counts_hits(tmp_path: Path) -> None:
    path = drop(0.2, hit_impulse=1.0).save(tmp_path / "drop.npz")
    arguments = ["run", str(path), "--steps", "150", "--json", str(tmp_path / "summary.json")]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert json.loads((tmp_path / "summary.json").read_text())["reported"]["hits"] == 1
    assert any(line.split() == ["hits", "1"] for line in result.stdout.splitlines())


# ---- scenes ----------------------------------------------------------------------------------------------------------


def test_thresholds_are_part_of_a_scene_and_of_its_file(tmp_path: Path) -> None:
    scene = Scene()
    scene.add_bodies(Sphere(1.0), [(0, 0, 0), (3, 0, 0)], hit_impulse=[2.0, np.inf])
    scene.add_body(Sphere(1.0), (6, 0, 0), hit_impulse=0.5)
    scene.add_body(Sphere(1.0), (9, 0, 0))
    again = Scene.load(scene.save(tmp_path / "scene.npz"))
    assert again == scene
    assert again.bodies.hit_impulse.tolist() == [2.0, np.inf, 0.5, np.inf]


def test_a_scene_without_thresholds_has_the_file_it_had() -> None:
    for scene in (drop(1.0), scenes.build("chain", 5)):
        assert not any("hit" in name for name in describe_scene(scene)[1])


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), -np.inf, "1 N s", (1.0, 2.0)])
def test_wrong_thresholds(wrong: Any) -> None:
    scene = Scene()
    with pytest.raises(LapjointError, match=r"body 0: hit_impulse is .*, expected (a positive|finite|one) number"):
        scene.add_body(Sphere(1.0), hit_impulse=wrong)
    assert scene.body_count == 0


@pytest.mark.parametrize("params", [{"solver": "sequential"}, {"engine": "rapier"}, {"engine": "mujoco:float64"}])
def test_who_cannot_report_hits_says_so(params: dict[str, Any]) -> None:
    if "engine" in params:
        pytest.importorskip({"rapier": "rapier3d", "mujoco:float64": "mujoco"}[params["engine"]])
    with pytest.raises(LapjointError, match=r"scene 'drop': body 0 has a hit_impulse, which"):
        Simulation(drop(1.0, hit_impulse=1.0), Params.from_options(**params))
