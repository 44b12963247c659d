"""Measures of runs in which bodies and joints come and go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lapjoint import Ball, Box, Params, Plane, Scene, Simulation, Sphere
from lapjoint.cli.shared import console
from lapjoint.cli.summary_table import summary_table
from lapjoint.measures.interfaces import InterfaceErrors
from lapjoint.measures.step import Measures
from lapjoint.run import run

WAYS = [{"workers": 1}, {"workers": 2, "coupling": "tight"}, {"workers": 2, "coupling": "blend"}]


def start(**params: Any) -> Simulation:
    scene = Scene("row")
    scene.add_static(Plane())
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [[1.01 * i, 0.0, 0.501] for i in range(6)])
    scene.add_joints(Ball(), [0, 2], [1, 3], [[0.5, 0, 0.5], [2.5, 0, 0.5]])
    return Simulation(scene, Params.from_options(runtime="inline", **params))


def change(simulation: Simulation) -> None:
    """Three bodies come with a joint every fourth step, and one goes in every sixth."""
    if simulation.step_count % 4 == 1:
        x = 0.1 * simulation.step_count
        new = simulation.bodies.add(Sphere(0.2), [[x, 0.1 * i, 1.3 + 0.5 * i] for i in range(3)])
        simulation.joints.add_one(Ball(), new[0], new[1], (x, 0.05, 1.55))
    if simulation.step_count % 6 == 5:
        simulation.bodies.remove(np.flatnonzero(simulation.alive)[[1]])


@pytest.mark.slow
@pytest.mark.parametrize("in_callback", [False, True])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_every_measure_is_of_those_who_are_there(way: dict[str, Any], in_callback: bool) -> None:
    with start(**way) as simulation:
        measures = Measures(simulation)
        if in_callback:
            simulation.on_step(change)
        for _ in range(24):
            if not in_callback:
                change(simulation)
            measures.before_step(simulation)
            simulation.step()
            found = measures.after_step(simulation)
            assert all(np.isfinite(value).all() for value in found.values())
            there, scene = simulation.states[simulation.alive], simulation.scene
            mass = scene.bodies.mass[simulation.alive]
            assert found["linear_momentum"] == pytest.approx(mass @ there[:, 7:10])
            assert found["potential_energy"] == pytest.approx(9.81 * mass @ there[:, 2])
            holding = simulation.joints.gaps()[scene.joint_alive]
            assert found["joint_gap_max"] == pytest.approx(holding.max(initial=0.0))
            assert found["joint_gap_max"] < 0.1
            if way["workers"] == 1:
                assert found["one_step_error"] == 0
        assert not simulation.scene.joint_alive.all()


def test_joints_that_are_gone_are_no_part_of_errors_at_interfaces() -> None:
    found = []
    for gone in ([], [0, 1]):
        with start(workers=2, coupling="tight", partition=[0, 0, 0, 1, 1, 1]) as simulation:
            simulation.set_states([2], [[2.0, 0.0, 0.6, 1, 0, 0, 0, *[0.0] * 6]])
            simulation.bodies.remove(gone)
            simulation.joints.add_one(Ball(), 4, 5, (4.5, 0, 0.5))
            errors = InterfaceErrors()
            simulation.step()
            errors.after_step(simulation)
            found.append(errors.values())
    assert found[0]["joint_gap_interface"] == pytest.approx(found[1]["joint_gap_interface"], rel=0.5)
    assert found[1]["joint_gap_interior"] is not None


def test_a_summary_counts_who_came_and_went(tmp_path: Any) -> None:
    with start(workers=1) as simulation:
        simulation.on_step(change)
        summary = run(simulation, 24, record=tmp_path / "r", record_every=3)
    assert (summary.body_count, summary.joint_count) == (6, 2)
    assert (summary.made_count, summary.removed_count) == (18, 4)
    assert summary.duplicated_share == 0
    assert list(summary.to_dict())[-2:] == ["made_count", "removed_count"]
    with console.capture() as capture:
        console.print(summary_table(summary))
    lines = [line.split(maxsplit=1) for line in capture.get().splitlines()]
    assert ["made", "18 bodies"] in [[line[0], line[1].strip()] for line in lines if len(line) == 2]
    assert ["removed", "4 bodies"] in [[line[0], line[1].strip()] for line in lines if len(line) == 2]
    with start(workers=1) as simulation, console.capture() as capture:
        console.print(summary_table(run(simulation, 2)))
    assert not {"made", "removed"} & {line.split()[0] for line in capture.get().splitlines() if line.strip()}
