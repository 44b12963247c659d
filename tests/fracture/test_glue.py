"""Glue: a body of pieces is one until it is hit, and then as many as it has, with the same momenta."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint import Box, LapjointError, Params, Plane, Scene, Simulation, Sphere, fracture
from lapjoint.scene.measures import angular_momentum, linear_momentum

BLOCK = Box((1.0, 0.6, 0.4))


def pieces(count: int = 9, seed: int = 0) -> fracture.Pieces:
    return fracture.cut(BLOCK, fracture.seeds_uniform(BLOCK, count, seed))


def momenta(simulation: Simulation) -> np.ndarray:
    scene, states = simulation.scene, simulation.states
    mass = scene.bodies.mass[simulation.alive].sum()
    return np.concatenate([[mass], linear_momentum(scene, states), angular_momentum(scene, states)])


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(count=st.integers(2, 12), seed=st.integers(0, 100))
def test_mass_and_momenta_stay_to_rounding(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    scene = Scene("free", gravity=(0, 0, 0))
    turn = random.normal(size=4)
    glued = fracture.add_glued(
        scene,
        pieces(count, seed),
        impulse=1.0,
        position=random.normal(size=3),
        quaternion=turn / np.linalg.norm(turn),
        density=700.0,
        linear_velocity=random.normal(size=3),
        angular_velocity=5 * random.normal(size=3),
    )
    assert scene.bodies.mass[glued.body] == pytest.approx(700 * 0.24)
    with Simulation(scene, Params(runtime="inline", engine="bullet:float64")) as simulation:
        simulation.step(3)
        before = momenta(simulation)
        bodies = simulation.bodies.take_apart(glued.body)
        after = momenta(simulation)
        assert len(bodies) == len(glued)
        assert np.flatnonzero(simulation.alive).tolist() == list(bodies)
        np.testing.assert_allclose(after, before, rtol=1e-12, atol=1e-12 * np.abs(before).max())
        simulation.step(2)
        np.testing.assert_allclose(momenta(simulation)[1:4], before[1:4], rtol=1e-9, atol=1e-9)


def falling(height: float, strength: float | None = None) -> tuple[Scene, fracture.Glued]:
    scene = Scene("falls", timestep=0.004)
    scene.add_static(Plane())
    glued = fracture.add_glued(scene, pieces(), impulse=600.0, strength=strength, position=(0, 0, 0.2 + height))
    scene.add_body(Sphere(0.1), (3, 0, 0.1))
    scene.add_body(Sphere(0.1), (-3, 0, 0.1))
    return scene, glued


@pytest.mark.slow
@pytest.mark.parametrize("way", [{"workers": 1}, {"workers": 2}, {"workers": 2, "coupling": "blend"}], ids=str)
def test_a_hit_that_is_hard_enough_takes_it_apart(way: dict[str, Any]) -> None:
    """240 kg that fall from 0.1 m bring 336 N s, from 2 m 1500."""
    for height, comes_apart in ((0.1, False), (2.0, True)):
        scene, glued = falling(height)
        with Simulation(scene, Params.from_options(runtime="inline", validate=True, **way)) as simulation:
            simulation.step(220)
            bodies = simulation.bodies.pieces_of(glued.body)
            assert (bodies is not None) == comes_apart
            assert simulation.alive[glued.body] == (not comes_apart)
            assert len(simulation.events.all.of("made")) == (len(glued) if comes_apart else 0)
            if bodies is not None:
                assert simulation.alive[bodies].all()
                assert simulation.states_of(bodies)[:, 2].min() > 0


def test_bonds_of_great_strength_hold_the_pieces_together() -> None:
    scene, glued = falling(2.0, strength=1e9)
    with Simulation(scene, Params(runtime="inline")) as simulation:
        simulation.step(400)
        bodies = simulation.bodies.pieces_of(glued.body)
        assert bodies is not None
        assert len(simulation.events.joint_breaks) == 0
        places = simulation.states_of(bodies)[:, :3]
        apart = np.linalg.norm(places - places[0], axis=1)
        assert apart == pytest.approx(np.linalg.norm(glued.places - glued.places[0], axis=1), abs=5e-3)


def test_a_restart_glues_it_again() -> None:
    scene, glued = falling(2.0)
    with Simulation(scene, Params(runtime="inline")) as simulation:
        hashes = []
        for _ in range(2):
            simulation.step(220)
            assert simulation.bodies.pieces_of(glued.body) is not None
            hashes.append(simulation.state_hash)
            simulation.restart()
        assert hashes[0] == hashes[1]


@pytest.mark.parametrize("options", [{"impulse": 0.0}, {"impulse": 1.0, "strength": -1.0}])
def test_what_is_no_strength_is_refused(options: dict[str, float]) -> None:
    scene = Scene("none")
    with pytest.raises(LapjointError, match="expected a positive number"):
        fracture.add_glued(scene, pieces(), **options)
    assert scene.body_count == 0
