"""Fields in simulations: with any number of workers, in any runtime, after failures, checkpoints and changes."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from field_functions import not_finite, push_at_times, spring, too_few
from lapjoint import (
    Attractor,
    Ball,
    Box,
    BoxRegion,
    Buoyancy,
    Checkpoint,
    CheckpointWriter,
    Drag,
    Field,
    Gravity,
    LapjointError,
    Params,
    Plane,
    Scene,
    Simulation,
    Sphere,
    Wind,
)
from lapjoint.workers.runtimes.process import ProcessRuntime

BLEND: dict[str, Any] = {"coupling": "blend"}
TIGHT: dict[str, Any] = {"coupling": "tight"}
COUPLINGS = [pytest.param(BLEND, id="blend"), pytest.param(TIGHT, id="tight")]
NAMES = {"field_functions:spring": spring, "field_functions:push_at_times": push_at_times}


def pool(functions: bool = True, workers: int = 5) -> Scene:
    """Boxes and balls, some in a chain, that fall into water in the wind."""
    scene = Scene("pool", timestep=0.005)
    scene.add_static(Plane(), (0, 0, -3))
    places = [(0.45 * (k % 10), 0.45 * (k // 10 % 3), 0.2 + 0.5 * (k // 30)) for k in range(60)]
    shapes = [Box((0.4, 0.4, 0.3)) if k % 2 else Sphere(0.2) for k in range(60)]
    labels = [k % 10 * workers // 10 for k in range(60)]
    scene.add_bodies(shapes, places, density=[400.0 + 10 * k for k in range(60)], labels=labels)
    for k in range(8):
        scene.add_joint(Ball(), k, k + 1, (0.45 * k + 0.225, 0, 0.2))
    scene.add_field(Buoyancy(1000.0, linear_drag=30.0, angular_drag=1.0))
    scene.add_field(Wind((3.0, 0, 0), 5.0, region=BoxRegion((-10, -10, 0), (10, 10, 10))))
    scene.add_field(Drag(1.0, 0.5), bodies=range(0, 60, 3))
    scene.add_field(Attractor((2.0, 0.5, 0), 2.0, core=1.0))
    if functions:
        scene.add_field(Field(spring), bodies=range(10, 30))
        scene.add_field(Field(push_at_times))
    return scene


def run(scene: Scene, steps: int = 40, **params: Any) -> Simulation:
    simulation = Simulation(scene, Params.from_options(**{"runtime": "inline", "partition": "labels", **params}))
    simulation.step(steps)
    return simulation


@pytest.mark.slow
@pytest.mark.parametrize("params", COUPLINGS)
def test_processes_compute_what_inline_does(params: dict[str, Any]) -> None:
    hashes = []
    for runtime in ("inline", "process"):
        with run(pool(workers=3), workers=3, runtime=runtime, **params) as simulation:
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]


def test_results_do_not_depend_on_how_many_steps_workers_take_at_once() -> None:
    for params in ({"workers": 1}, {"workers": 2, **TIGHT}):
        with run(pool(workers=2), **params) as at_once, run(pool(workers=2), 0, **params) as one_by_one:
            for _ in range(40):
                one_by_one.step()
            assert at_once.state_hash == one_by_one.state_hash


@pytest.mark.parametrize("workers", [2, 5])
def test_tight_coupling_computes_what_one_worker_does(workers: int) -> None:
    ends = []
    for params in ({"workers": 1}, {"workers": workers, **TIGHT}):
        with run(pool(workers=workers), 20, precision="float64", **params) as simulation:
            ends.append(simulation.states)
    np.testing.assert_allclose(ends[1][:, :3], ends[0][:, :3], atol=2e-3)


def test_fields_are_forces_from_the_server_without_the_way() -> None:
    """Gravity as a field, and as a force that is added before every step."""
    ends = []
    for as_field in (True, False):
        scene = Scene("pull", gravity=(0, 0, 0))
        scene.add_bodies(Sphere(0.1), [(k, 0, 0) for k in range(4)], mass=2.0)
        if as_field:
            scene.add_field(Gravity((0, 1.0, -3.0)))
        with Simulation(scene, Params(workers=2, runtime="inline", coupling="tight")) as simulation:
            for _ in range(10):
                if not as_field:
                    simulation.bodies.add_forces(range(4), (0, 2.0, -6.0))
                simulation.step()
            ends.append(simulation.states)
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("params", COUPLINGS)
def test_a_run_goes_on_from_a_checkpoint(params: dict[str, Any], tmp_path: Path) -> None:
    with run(pool(workers=2), 15, workers=2, **params) as simulation:
        path = CheckpointWriter(tmp_path, simulation).save(simulation)
        simulation.step(15)
        wanted = simulation.state_hash
    checkpoint = Checkpoint(path)
    with pytest.raises(LapjointError, match=r"field 4 \(field_functions:spring\) is a function, which a file has by"):
        checkpoint.resume()
    with Checkpoint(path).resume(functions=NAMES) as again:
        again.step(15)
        assert again.state_hash == wanted
    with Checkpoint(path).resume(functions=NAMES, workers=3) as more:
        more.step(15)


@pytest.mark.slow
@pytest.mark.parametrize("params", COUPLINGS)
def test_a_worker_that_is_killed_is_replaced(params: dict[str, Any]) -> None:
    with run(pool(workers=2), 20, workers=2, runtime="process", **params) as simulation:
        wanted = simulation.states
    with run(pool(workers=2), 10, workers=2, runtime="process", **params) as simulation:
        assert isinstance(simulation._core.runtime, ProcessRuntime)
        os.kill(simulation._core.runtime.process_ids[0], signal.SIGKILL)
        simulation.step(10)
        assert len(simulation.incidents) == 1
        # The fresh worker has no warm-start data of contacts.
        np.testing.assert_allclose(simulation.states[:, :3], wanted[:, :3], atol=0.02)


def test_new_bodies_are_in_the_fields_that_act_on_all() -> None:
    scene = Scene("more", gravity=(0, 0, 0))
    scene.add_bodies(Sphere(0.1), [(k, 0, 0) for k in range(2)])
    scene.add_field(Gravity((0, 0, 1.0)))
    scene.add_field(Gravity((0, 1.0, 0)), bodies=[0, 1])
    scene.add_field(Buoyancy(500.0, level=100.0, gravity=(0, 0, -1.0)))
    with Simulation(scene, Params(workers=2, runtime="process")) as simulation:
        simulation.step(5)
        simulation.bodies.add_one(Box((0.2, 0.3, 0.4)), (5.0, 0, 0))
        simulation.step(5)
        simulation.bodies.remove([0])
        simulation.step(5)
        velocity = simulation.states[:, 7:10]
    elapsed = 10 * scene.timestep
    np.testing.assert_allclose(velocity[2], [0, 0, 1.5 * elapsed], rtol=1e-5)
    np.testing.assert_allclose(velocity[1], [0, 1.5 * elapsed, 1.5 * 1.5 * elapsed], rtol=1e-5)


def test_a_restart_begins_with_the_same_fields() -> None:
    with run(pool(workers=2), 10, workers=2) as simulation:
        wanted = simulation.state_hash
        simulation.restart()
        simulation.step(10)
        assert simulation.state_hash == wanted


@pytest.mark.parametrize(
    ("function", "message"),
    [(too_few, r"it returned float64 \(4, 3\) for 3 bodies"), (not_finite, "its force on body 0")],
)
def test_a_function_that_returns_something_else_is_named(function: Any, message: str) -> None:
    scene = Scene("wrong")
    scene.add_bodies(Sphere(0.1), [(k, 0, 0) for k in range(3)])
    scene.add_field(Field(function))
    with Simulation(scene, Params(runtime="inline")) as simulation, pytest.raises(LapjointError, match=message):
        simulation.step()
