"""Parts, rules and new shapes in a living scene: added while it runs, in processes, after a checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lapjoint import (
    Box,
    Checkpoint,
    CheckpointWriter,
    Compound,
    Cone,
    Ellipsoid,
    HeightField,
    Material,
    Params,
    Part,
    Scene,
    Simulation,
    Sphere,
)

ICE = Material(friction=0.0, friction_combine="minimum")


def valley() -> Scene:
    x = np.linspace(-1.0, 1.0, 21)
    scene = Scene("valley")
    scene.add_static(HeightField(0.3 * (x[None] ** 2 + x[:, None] ** 2), 0.4), material=Material(friction=0.8))
    shapes = [Cone(0.3, 0.6), Ellipsoid((0.4, 0.3, 0.2)), Box((0.4, 0.4, 0.4))]
    places = [(0.9 * (k % 4) - 1.3, 0.9 * (k // 4) - 0.9, 0.7) for k in range(12)]
    scene.add_bodies([shapes[k % 3] for k in range(12)], places)
    return scene


def add_more(simulation: Simulation) -> None:
    parts = Part(Cone(0.3, 0.6), (0, 0, 0.2), material=ICE), Part(Sphere(0.3), group=2, mask=1)
    simulation.bodies.add(Compound(parts), [(-1.0, 0.0, 1.6), (1.0, 0.0, 1.6)], material=Material(friction=0.3))


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["blend", "tight"])
@pytest.mark.parametrize("runtime", ["inline", "process"])
def test_a_resumed_run_goes_on_to_the_same_bits(coupling: str, runtime: str, tmp_path: Path) -> None:
    params = Params(workers=2, coupling=coupling, runtime=runtime)
    with Simulation(valley(), params) as simulation:
        simulation.step(30)
        add_more(simulation)
        simulation.step(60)
        checkpoint = Checkpoint(CheckpointWriter(tmp_path / "kept", simulation).save(simulation))
        simulation.step(30)
        expected = np.array(simulation.states)
    with checkpoint.resume() as simulation:
        simulation.step(30)
        np.testing.assert_array_equal(simulation.states, expected)
    assert expected[:12, 2].min() > 0.0
