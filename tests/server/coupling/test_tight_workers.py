"""Tight coupling: workers that come and go, what a user does to bodies at an interface, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lapjoint import Ball, LapjointError, Params, Scene, Simulation, Sphere, scenes
from lapjoint.workers.runtimes.process import ProcessRuntime
from parallel_support import children
from tight_runs import SIZES, energy, interface, jump, owner_of, tight, wall

CALM: dict[str, Any] = {"timestep": 0.002}


# ---- the number of workers -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(1, 3), (3, 1), (2, 4, 3, 1, 2)], ids=str)
def test_a_wall_feels_nothing_of_workers_that_come_and_go(counts: tuple[int, ...]) -> None:
    with tight(wall(), workers=counts[0], repartition=0, **CALM) as simulation:
        simulation.step(100)
        start = simulation.states
        for count in counts[1:]:
            simulation.workers.set_count(count)
            simulation.step()
            assert simulation.params.workers == simulation.workers.membership.worker_count == count
            assert len(np.unique(owner_of(simulation))) == count
            assert energy(simulation) < 0.02, "20 boxes of a tonne each"
            simulation.step(14)
            assert count == 1 or len(interface(simulation)) > 0
        assert jump(simulation.states, start) < 1e-4
        assert [event.kind for event in simulation.incidents] == ["workers"] * len(counts[1:])


@pytest.mark.slow
def test_processes_come_and_go_with_the_same_bits() -> None:
    hashes = []
    for runtime in ("inline", "process"):
        with tight("building", workers=2, runtime=runtime) as simulation:
            for count in (4, 1, 3):
                simulation.step(5)
                simulation.workers.set_count(count)
            simulation.step(5)
            assert len(children()) == (3 if runtime == "process" else 0)
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]


@pytest.mark.slow
def test_a_bridge_hangs_on_while_workers_change() -> None:
    with tight("two-way-bridge", **CALM) as simulation, tight("two-way-bridge", **CALM) as undisturbed:
        for count in (2, 5, 1, 4):
            simulation.workers.set_count(count)
            simulation.step(10)
            undisturbed.step(10)
        assert jump(simulation.states, undisturbed.states) < 2e-3


@pytest.mark.slow
def test_the_number_follows_the_load() -> None:
    scene = scenes.build("bowl", size=1600)
    with tight(scene, workers=1, max_workers=2, load="bodies") as simulation:
        simulation.step(55)
        assert [event.text for event in simulation.incidents] == ["workers: 2, before 1"]
        assert simulation.params.workers == 2


@pytest.mark.slow
def test_more_workers_than_bits_of_a_word() -> None:
    with tight("building", workers=70) as simulation:
        simulation.step(3)
        assert len(interface(simulation)) > 50
        simulation.workers.set_count(2)
        simulation.step(5)
        assert np.isfinite(simulation.states).all()


# ---- bodies at an interface ------------------------------------------------------------------------------------------


def run_chain(workers: int, runtime: str = "inline", **push: Any) -> np.ndarray:
    """States of a chain after a step in which a user has done something to the body at the interface."""
    scene = Scene("chain", timestep=0.002)
    scene.add_bodies(Sphere(0.5), [[1.0 * i, 0, 0] for i in range(6)])
    scene.add_joints(Ball(), range(5), range(1, 6), [[i + 0.5, 0, 0] for i in range(5)])
    converged = {"precision": "float64", "partition": "equal"}
    with tight(scene, workers=workers, runtime=runtime, **converged) as simulation:
        simulation.step(3)
        assert workers == 1 or 2 in interface(simulation)
        if "force" in push:
            simulation.bodies.add_forces([2], [push["force"]], [push["torque"]])
        if "velocity" in push:
            states = np.array(simulation.states[[2]])
            states[0, 7:13] = push["velocity"]
            simulation.set_states([2], states)
        simulation.step()
        return simulation.states


@pytest.mark.slow
@pytest.mark.parametrize(
    ("push", "runtime"),
    [
        ({"force": [4e5, 0.0, 0.0], "torque": [0.0, 0.0, 0.0]}, "inline"),
        ({"force": [0.0, 3e4, -3e4], "torque": [2e3, 1e4, 0.0]}, "process"),
        ({"velocity": [0.5, 0.0, 0.1, 0.3, 0.0, 0.2]}, "inline"),
        ({"velocity": [0.5, 0.0, 0.1, 0.3, 0.0, 0.2]}, "process"),
    ],
    ids=["along", "across and turning", "velocity", "velocity in processes"],
)
def test_a_ghost_feels_what_its_body_feels(push: dict[str, Any], runtime: str) -> None:
    """Two workers come to what one comes to."""
    one, two = run_chain(1, **push), run_chain(2, runtime, **push)
    effect = np.abs(one - run_chain(1)).max()
    assert effect > 0.1
    assert np.abs(one - two).max() < 1e-6 * effect


@pytest.mark.slow
def test_a_frozen_body_at_the_interface_holds_the_others() -> None:
    with tight("two-way-bridge", **CALM) as simulation, tight("two-way-bridge", workers=1, **CALM) as one:
        simulation.step()
        held = interface(simulation)[::3]
        one.step()
        for each in (simulation, one):
            each.bodies.freeze(held)
        before = simulation.states
        for each in (simulation, one):
            each.step(40)
        assert np.array_equal(simulation.states[held, :7], before[held, :7])
        assert jump(simulation.states, one.states) < 2e-3
        simulation.bodies.release(held)
        simulation.step(5)
        assert (simulation.states[held, :3] != before[held, :3]).any()


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_nothing_overlaps_and_so_nothing_grows() -> None:
    with tight("building") as simulation:
        simulation.step(2)
        with pytest.raises(LapjointError, match="set_growth_depth: coupling is tight, expected blend"):
            simulation.workers.set_growth_depth(2)
        assert len(simulation.workers.overlap) == 0
        simulation.step(2)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"solver": "dantzig"}, "coupling is tight and solver is dantzig, expected substeps"),
        ({"solver": "sequential"}, "coupling is tight and solver is sequential, expected substeps"),
        ({"solver": "substeps,1=dantzig"}, "coupling is tight and solver is .*dantzig.*, expected substeps"),
        ({"solver": "substeps,label:1=dantzig"}, "coupling is tight and solver is .*dantzig.*, expected substeps"),
        ({"iterations": 20}, "coupling is tight and solver is sequential, expected substeps"),
        ({"engine": "rapier"}, "coupling is tight, which the engine rapier does not have"),
        ({"engine": "bullet,1=rapier"}, "coupling is tight, which the engine rapier does not have"),
        ({"engine": "mujoco:float64"}, "coupling is tight, which the engine mujoco does not have"),
        ({"coupling": "loose"}, "coupling is 'loose', expected one of auto, blend, tight"),
    ],
    ids=str,
)
def test_refused_before_anything_starts(params: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_worker(*_: object) -> None:
        raise AssertionError("workers have been started")

    monkeypatch.setattr(ProcessRuntime, "__init__", no_worker)
    scene = scenes.build("building", SIZES["building"])
    with pytest.raises(LapjointError, match=message):
        Simulation(scene, Params.from_options(**{"coupling": "tight", "workers": 2, **params}))
