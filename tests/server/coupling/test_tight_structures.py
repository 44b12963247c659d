"""Structures of joints across workers: solved at once where interfaces are narrow, swept where they are wide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lapjoint import WORLD, Ball, Box, Fixed, Hinge, Params, Plane, Scene, Simulation, Slider, scenes
from lapjoint.measures import joint_gaps, linear_momentum
from lapjoint.server.coupling.structures import structure_labels
from lapjoint.server.coupling.tight import Tight
from tight_support import simulate


def beam(count: int = 9) -> Scene:
    """Boxes in a row, held at one end, with joints of every kind that locks something."""
    scene = Scene("beam", timestep=0.002)
    ids = scene.add_bodies(Box((0.4, 0.2, 0.2)), [(0.5 * i, 0.0, 2.0) for i in range(count)], density=500.0)
    scene.add_joint(Fixed(), ids[0], WORLD, (-0.25, 0.0, 2.0))
    kinds: list[Any] = [Fixed(), Hinge((0, 1, 0)), Ball(), Slider((0, 0, 1), (-0.1, 0.1))]
    for i in range(1, count):
        scene.add_joint(kinds[i % 4], ids[i], ids[i - 1], (0.5 * i - 0.25, 0.0, 2.0))
    return scene


def pairs(gravity: float = 0.0) -> Scene:
    """Two boxes with a joint each, one of each worker."""
    scene = Scene("pairs", gravity=(0.0, 0.0, -gravity))
    if gravity:
        scene.add_static(Plane())
    velocities = np.random.default_rng(4).normal(size=(6, 3))
    places = [(0.6 * k, 1.0 * i, 0.4) for i in range(3) for k in range(2)]
    ids = scene.add_bodies(Box((0.5, 0.3, 0.3)), places, mass=1.0, linear_velocities=velocities, labels=[0, 1] * 3)
    for i in range(3):
        scene.add_joint(Ball(), ids[2 * i], ids[2 * i + 1], (0.3, 1.0 * i, 0.4))
    return scene


def sheet(side: int, count: int = 1) -> Scene:
    """Boxes joined edge to edge, held at two sides; several such sheets above each other."""
    scene = Scene("sheet", timestep=0.004)
    for k in range(count):
        places = np.array([(0.5 * x, 0.5 * y, 2.0 * k) for x in range(side) for y in range(side)])
        first = int(scene.add_bodies(Box((0.4, 0.4, 0.05)), places, density=300.0)[0])
        for i, (x, y, z) in enumerate(places.tolist()):
            body = first + i
            if i + side < side**2:
                scene.add_joint(Ball(), body, body + side, (x + 0.25, y, z))
            if (i + 1) % side:
                scene.add_joint(Ball(), body, body + 1, (x, y + 0.25, z))
            if not side <= i < side * (side - 1):
                scene.add_joint(Ball(), body, WORLD, (x - 0.25 if i < side else x + 0.25, y, z))
    return scene


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("substeps", [1, 4])
def test_joints_of_every_kind_across_workers_do_as_in_one(substeps: int, workers: int) -> None:
    scene = beam()
    one, many = (simulate(scene, 60, workers=count, substeps=substeps, partition="equal") for count in (1, workers))
    assert np.abs(one - scene.states)[:, 2].max() > 0.05, "nothing happened"
    assert np.abs(many - one)[:, :7].max() < 1e-6
    assert joint_gaps(scene, many).sum() < 1.1 * joint_gaps(scene, one).sum() + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("substeps", [1, 4])
def test_pairs_between_workers_conserve_momentum(substeps: int) -> None:
    scene = pairs()
    states = simulate(scene, 100, workers=2, substeps=substeps)
    assert np.abs(states[:, 7:] - scene.states[:, 7:]).max() > 0.1, "nothing happened"
    change = linear_momentum(scene, states) - linear_momentum(scene, scene.states)
    assert np.abs(change).max() < 1e-12


@pytest.mark.slow
def test_pairs_between_workers_fall_as_in_one_engine() -> None:
    scene = pairs(gravity=9.81)
    one, two = (simulate(scene, 150, workers=workers) for workers in (1, 2))
    assert one[:, 2].min() < 0.2, "they have landed"
    assert np.abs(two - one)[:, :3].max() < 1e-2
    assert joint_gaps(scene, two).max() < 1.5 * joint_gaps(scene, one).max() + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("side", "steps"), [(12, 60), (40, 30)])
def test_a_sheet_cut_in_the_middle_does_not_drift(side: int, steps: int) -> None:
    """Its joints hold as well as in one worker, however wide the cut is."""
    scene, half = sheet(side), (np.arange(side**2) >= side**2 // 2).astype(int)
    gaps = []
    more: dict[str, Any]
    for more in ({}, {"workers": 2, "partition": half, "repartition": 0.0, "coupling": "tight"}):
        with Simulation(scene, Params.from_options(runtime="inline", **more)) as simulation:
            simulation.step(steps)
            gaps.append(simulation.joints.gaps().sum())
    assert gaps[1] < 1.1 * gaps[0]


def test_wide_interfaces_are_swept_and_narrow_ones_are_not() -> None:
    found = {}
    for name, partition in (("narrow", "metis"), ("wide", np.arange(106) % 5)):
        scene = scenes.build("two-way-bridge", 106)
        params = Params(workers=5, runtime="inline", coupling="tight", partition=partition, repartition=0.0)
        with Simulation(scene, params) as simulation:
            simulation.step(20)
            coupling = simulation._core.coupling
            assert isinstance(coupling, Tight)
            found[name] = len(coupling._structures.narrow(coupling.owner)), simulation.joints.gaps().sum()
    assert found["narrow"][0] == 1
    assert found["wide"][0] == 0
    assert 10 * found["narrow"][1] < found["wide"][1]


@pytest.mark.slow
@pytest.mark.parametrize(("joints", "size", "workers"), [("auto", 20, 2), ("auto", 16, 8), ("direct", 26, 2)])
def test_what_one_worker_solves_at_once_several_do_too(joints: str, size: int, workers: int) -> None:
    """Wide cuts of sheets; swept, their gaps would be a hundred times as large."""
    scene = scenes.build("joint-grid", size)
    one, many = (simulate(scene, 5, workers=count, joints=joints, partition="metis") for count in (1, workers))
    assert joint_gaps(scene, many).sum() < 1.1 * joint_gaps(scene, one).sum()


@pytest.mark.slow
def test_interfaces_are_solved_at_once_as_far_as_a_message_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of four sheets is narrow, all of them together are more than fits."""
    monkeypatch.setattr("lapjoint.server.coupling.tight.MOST_INTERFACE", 50_000)
    scene = sheet(10, 4)
    half = np.tile(np.arange(100) >= 50, 4).astype(int)
    params = Params(workers=2, runtime="inline", coupling="tight", partition=half, repartition=0.0)
    with Simulation(scene, params) as simulation:
        simulation.step(3)
        coupling = simulation._core.coupling
        assert isinstance(coupling, Tight)
        narrow = coupling._structures.narrow(coupling.owner)
        gaps = simulation.joints.gaps().reshape(4, -1).sum(axis=1)
    assert narrow.tolist() == [0, 100]
    assert gaps[:2].max() < 0.1 * gaps[2:].min()


def test_structures_are_named_by_their_lowest_bodies() -> None:
    joints = np.array([[5, 4], [4, 2], [7, 8], [1, 3], [9, 7]], np.int32)
    assert structure_labels(joints, 10).tolist() == [0, 1, 2, 1, 2, 2, 6, 7, 7, 7]
