"""Direct solvers: what they solve exactly, who has them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from engine_support import gaps_of
from lapjoint import (
    WORLD,
    Ball,
    Box,
    Checkpoint,
    CheckpointWriter,
    LapjointError,
    Material,
    Params,
    Plane,
    Scene,
    Simulation,
    Sphere,
    make_engine,
    scenes,
)
from lapjoint.cli import app
from lapjoint.engines import Engine
from lapjoint.measures import linear_momentum
from lapjoint.params.solver_choice import parse_solvers, solvers_of_workers
from lapjoint.server.partition import make_partition

DIRECT = [("dantzig", "float32"), ("dantzig", "float64")]
every_direct = pytest.mark.parametrize(("solver", "precision"), DIRECT)
APART = "sequential,label:1=dantzig"


def started(scene: Scene, solver: str = "sequential", precision: str = "float32", **params: object) -> Engine:
    engine = make_engine(scene, Params.from_options(solver=solver, precision=precision, **params))
    engine.activate(np.arange(scene.body_count), scene.states)
    return engine


def heavy_chain(link_count: int = 12, ratio: float = 1000.0) -> Scene:
    """Hung straight to the side, with a heavy ball at its end."""
    scene = Scene("heavy chain", timestep=0.001, iterations=50)
    place = np.arange(link_count + 1)[:, None] * [0.2, 0.0, 0.0]
    mass = np.where(np.arange(link_count + 1) < link_count, 0.1, 0.1 * ratio)
    bodies = scene.add_bodies(Sphere(0.05), place, mass=mass)
    scene.add_joints(Ball(), bodies, [WORLD, *bodies[:-1]], place - [0.1, 0.0, 0.0])
    return scene


def stack(count: int = 5) -> Scene:
    scene = Scene("stack", timestep=1 / 240, iterations=50)
    scene.add_static(Plane())
    scene.add_bodies(Box((0.2, 0.2, 0.2)), [(0.0, 0.0, 0.1 + 0.2 * k) for k in range(count)], mass=1.0)
    return scene


def slope(friction: float, angle: float = 0.4) -> Scene:
    turn = (np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0)
    rough = Material(friction=friction)
    scene = Scene("slope", timestep=1 / 240, iterations=50)
    scene.add_static(Plane(), (0, 0, 0), turn, material=rough)
    scene.add_body(Box((0.2, 0.2, 0.2)), 0.1 * np.array([np.sin(angle), 0, np.cos(angle)]), turn, material=rough)
    return scene


# ---- physics -----------------------------------------------------------------------------------------------------


@every_direct
def test_a_chain_with_a_heavy_load_holds(solver: str, precision: str) -> None:
    scene = heavy_chain()
    sequential, direct = started(scene, precision=precision), started(scene, solver, precision)
    worst = [0.0, 0.0]
    for _ in range(300):
        for k, engine in enumerate((sequential, direct)):
            engine.step()
            worst[k] = max(worst[k], float(gaps_of(engine)[1].max()))
        assert direct.report().fallback_count == 0  # type: ignore[attr-defined]
        assert direct.report().residual < 1e-4
    assert worst[0] > 5e-4
    assert worst[1] < worst[0] / 50


@every_direct
def test_a_stack_stands_stiller_than_with_sweeps(solver: str, precision: str) -> None:
    scene = stack()
    sequential, direct = started(scene, precision=precision), started(scene, solver, precision)
    for engine in (sequential, direct):
        engine.step(120)
    assert direct.get_states()[:, 2] == pytest.approx(scene.states[:, 2], abs=1e-4)
    assert np.abs(direct.get_states()[:, 7:]).max() < 1e-3
    assert direct.report().residual < sequential.report().residual


@every_direct
def test_friction_holds_and_lets_slide(solver: str, precision: str) -> None:
    angle, seconds = 0.4, 1.0
    held = started(slope(0.6), solver, precision)
    held.step(240)
    assert np.linalg.norm(held.get_states()[0, 7:10]) < 1e-3
    slides = started(slope(0.2), solver, precision)
    slides.step(240)
    expected = 9.81 * (np.sin(angle) - 0.2 * np.cos(angle)) * seconds
    assert np.linalg.norm(slides.get_states()[0, 7:10]) == pytest.approx(expected, rel=0.03)


@every_direct
def test_restitution_and_rolling_friction_are_those_of_the_sequential_solver(solver: str, precision: str) -> None:
    material = Material(restitution=0.8, friction=0.8, rolling_friction=0.005)
    scene = Scene("balls", timestep=1 / 240, iterations=50)
    scene.add_static(Plane(), material=Material(restitution=0.8, friction=0.8))
    scene.add_body(Sphere(0.1), (0, 0, 1), material=material)
    scene.add_body(Sphere(0.1), (1, 0, 0.1), linear_velocity=(1, 0, 0), angular_velocity=(0, 10, 0), material=material)
    sequential, direct = started(scene, precision=precision), started(scene, solver, precision)
    for _ in range(20):
        sequential.step(12)
        direct.step(12)
        assert direct.get_states() == pytest.approx(sequential.get_states(), abs=2e-3)
    assert direct.get_states()[1, 7] < 0.9, "it slows down"


@every_direct
def test_momentum_is_kept(solver: str, precision: str) -> None:
    rng = np.random.default_rng(4)
    scene = Scene("free", gravity=(0, 0, 0), timestep=0.004, iterations=50)
    place = np.stack([0.45 * np.arange(8), np.zeros(8), np.zeros(8)], axis=1)
    bodies = scene.add_bodies(
        Sphere(0.2), place, linear_velocities=rng.normal(size=(8, 3)), mass=10.0 ** rng.uniform(-1, 1, 8)
    )
    scene.add_joints(Ball(), bodies[1:4], bodies[:3], (place[1:4] + place[:3]) / 2)
    engine = started(scene, solver, precision)
    before = linear_momentum(scene, engine.get_states())
    engine.step(100)
    assert linear_momentum(scene, engine.get_states()) == pytest.approx(before, abs=1e-3)


def test_a_group_with_too_many_rows_is_swept_and_counted() -> None:
    few, many = stack(3), stack(6)
    for scene, expected in ((few, 0), (many, 1)):
        engine = started(scene, "dantzig", solver_rows=36)
        for _ in range(5):
            engine.step()
        assert engine.report().fallback_count == expected  # type: ignore[attr-defined]
    swept, plain = started(many, "dantzig", solver_rows=1), started(many)
    for engine in (swept, plain):
        engine.step(5)
    assert np.array_equal(swept.get_states(), plain.get_states())
    assert plain.report().fallback_count == 0  # type: ignore[attr-defined]


def test_order_of_arrival_does_not_matter() -> None:
    scene = scenes.build("cable", 40)
    one, other = started(scene, "dantzig"), make_engine(scene, Params(solver="dantzig"))
    for body in range(scene.body_count)[::-1]:
        other.activate([body], scene.states[[body]])
    for engine in (one, other):
        engine.step(60)
    assert np.array_equal(one.get_states(), other.get_states())


# ---- who has which -----------------------------------------------------------------------------------------------


def test_labels_become_workers() -> None:
    scene = scenes.build("cable", 40)
    partition = make_partition(scene, 3, "auto", [1])
    assert set(partition[scene.bodies.label == 1]) == {2}
    assert set(partition[scene.bodies.label == 0]) == {0, 1}
    assert solvers_of_workers(APART, scene, partition, 3) == "sequential,2=dantzig"
    assert solvers_of_workers("label:1=dantzig,2=sequential", scene, partition, 3) == "substeps,2=sequential"
    assert solvers_of_workers("dantzig", scene, partition, 3) == "dantzig"
    assert parse_solvers("label:1=dantzig").of(0) == "substeps"


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 3])
def test_the_cable_alone_is_solved_directly(workers: int) -> None:
    scene = scenes.build("cable", 60)
    worst = []
    for solver in ("sequential", APART):
        params = Params(
            workers=workers, runtime="inline", coupling="blend", solver=solver, validate=True, repartition=0
        )
        with Simulation(scene, params) as simulation:
            gaps = []
            for _ in range(150):
                simulation.step()
                gaps.append(simulation.joints.gaps().max())
            assert simulation.profile.fallback_count == 0
            if solver == APART:
                assert simulation.params.solver == f"sequential,{workers - 1}=dantzig"
                assert simulation.replies[-1].residual < 1e-4
                column = simulation.workers.membership.column(workers - 1)
                assert np.array_equal(np.flatnonzero(column), np.flatnonzero(scene.bodies.label == 1))
        worst.append(max(gaps))
    assert worst[1] < worst[0] / 100


@pytest.mark.slow
def test_processes_do_what_one_process_does() -> None:
    hashes = set()
    for runtime in ("inline", "process"):
        with Simulation(scenes.build("cable", 40), Params(workers=2, runtime=runtime, solver=APART)) as simulation:
            simulation.step(80)
            hashes.add(simulation.state_hash)
    assert len(hashes) == 1


def test_a_resumed_run_keeps_its_solvers(tmp_path: Path) -> None:
    with Simulation(scenes.build("cable", 40), Params(workers=2, runtime="inline", solver=APART)) as first:
        first.step(40)
        file = CheckpointWriter(tmp_path / "c", first).save(first)
        first.step(40)
        end = first.state_hash
    checkpoint = Checkpoint(file)
    with checkpoint.resume() as second:
        assert second.params == first.params
        assert second.params.solver == "sequential,1=dantzig"
        second.step(40)
        assert second.state_hash == end
    with pytest.raises(LapjointError, match="3 workers are asked for in place of 2, and solver is 'sequential,1=dan"):
        checkpoint.resume(workers=3)
    with pytest.raises(LapjointError, match="solver cannot change when a run goes on"):
        checkpoint.resume(solver="dantzig")


# ---- what is refused ---------------------------------------------------------------------------------------------

REFUSED = {
    "unknown": (
        {"solver": "simplex"},
        "cannot read 'simplex', expected auto, substeps, sequential, dantzig, or several as in",
    ),
    "twice": ({"solver": "dantzig,sequential"}, "two solvers for all workers, expected one"),
    "worker twice": ({"solver": "1=dantzig,1=dantzig"}, "worker 1 is given two solvers"),
    "no worker": ({"solver": "sequential,5=dantzig"}, "there is no worker 5, workers are 0 to 1"),
    "no label": ({"solver": "label:7=dantzig"}, "no body has label 7; labels of 'cable': 0, 1"),
    "mixed": ({"solver": APART, "workers": 1}, "no worker has mostly bodies of label 1, expected more workers than 1"),
    "elastic": ({"solver": APART, "max_workers": 4}, "max_workers is 4, and solver is .* expected one solver for all"),
    "engine": ({"solver": "dantzig", "engine": "mujoco:float64"}, "dantzig, which the engine mujoco does not have"),
    "one engine": (
        {"solver": APART, "engine": "bullet,1=mujoco:float64"},
        "solver is dantzig, which the engine mujoco does not have",
    ),
    "rows": ({"solver_rows": 0}, "solver_rows is 0, expected 1 to 10000"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_before_anything_starts(case: str) -> None:
    params, message = REFUSED[case]
    if "mujoco" in params.get("engine", ""):
        pytest.importorskip("mujoco")
    with pytest.raises(LapjointError, match=message):
        Simulation(scenes.build("cable", 40), Params.from_options(**{"workers": 2, "runtime": "inline", **params}))


def test_another_number_of_workers_is_refused_on_the_way() -> None:
    with Simulation(scenes.build("cable", 40), Params(workers=2, runtime="inline", solver=APART)) as simulation:
        with pytest.raises(LapjointError, match="3 workers are asked for in place of 2"):
            simulation.workers.set_count(3)
        simulation.step()


def test_the_command_takes_several_solvers(tmp_path: Path) -> None:
    words = ["run", "--solver", "sequential", "label:1=dantzig", "cable"]
    file = tmp_path / "run.json"
    options = f"--size 40 --steps 5 --workers 2 --runtime inline --json {file}"
    done = CliRunner().invoke(app, [*words, *options.split()], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "sequential,1=dantzig, 0 groups a step left to sweeps" in " ".join(done.stdout.split())
    summary = json.loads(file.read_text())
    assert (summary["solver"], summary["fallback_count_mean"]) == ("sequential,1=dantzig", 0)
