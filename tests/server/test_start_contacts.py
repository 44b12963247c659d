"""Contacts of the scene as it starts: workers find what one engine with all bodies finds, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapjoint import (
    Ball,
    Box,
    Capsule,
    Compound,
    ConvexHull,
    Cylinder,
    LapjointError,
    Params,
    Part,
    PenetrationWarning,
    Plane,
    Scene,
    Simulation,
    Sphere,
)
from lapjoint.engines import Contacts
from lapjoint.engines.bullet import BulletEngine
from lapjoint.server.detect import ServerDetector
from parallel_support import children

CORNERS = [(x, y, z) for x in (-0.4, 0.4) for y in (-0.3, 0.3) for z in (-0.2, 0.2)]
SHAPES = (
    Sphere(0.5),
    Box((1.0, 0.6, 0.4)),
    Capsule(0.3, 0.6),
    Cylinder(0.4, 0.5),
    ConvexHull(CORNERS),
    Compound((Part(Sphere(0.4), (-0.5, 0, 0)), Part(Box((0.5, 0.5, 0.5)), (0.5, 0, 0)))),
)


def heap(seed: int, body_count: int) -> Scene:
    """Bodies at random in a small room with two walls, some fast, some joined, some that do not touch."""
    rng = np.random.default_rng(seed)
    scene = Scene("heap")
    scene.add_static(Plane())
    scene.add_static(Box((4.0, 0.2, 4.0)), (0, 1.5, 1.0))
    side = 0.75 * body_count ** (1 / 3)
    turns = rng.normal(size=(body_count, 4))
    scene.add_bodies(
        [SHAPES[i] for i in rng.integers(0, len(SHAPES), body_count)],
        rng.uniform([-side, -side, 0.2], [side, side, 2 * side], (body_count, 3)),
        turns / np.linalg.norm(turns, axis=1)[:, None],
        linear_velocities=rng.normal(size=(body_count, 3)) * rng.choice([0.0, 1.0, 300.0], (body_count, 1)),
    )
    scene.bodies.group[:] = rng.choice([1, 2, 3], body_count)
    scene.bodies.mask[:] = rng.choice([1, 3, 3], body_count)
    for a, b in rng.integers(0, body_count, (3, 2)).tolist():
        if a != b:
            scene.add_joint(Ball(), a, b, scene.states[a, :3])
    return scene


def rows(contacts: Contacts) -> list[list[Any]]:
    return [column.tolist() for column in (contacts.bodies, contacts.point_count, contacts.depth)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::lapjoint.PenetrationWarning")
@given(
    seed=st.integers(0, 1 << 20),
    body_count=st.integers(2, 60),
    workers=st.integers(1, 5),
    solver=st.sampled_from(["substeps", "sequential"]),
    precision=st.sampled_from(["float32", "float64"]),
)
def test_workers_find_what_one_engine_finds(
    seed: int, body_count: int, workers: int, solver: str, precision: str
) -> None:
    scene = heap(seed, body_count)
    own = np.random.default_rng(seed).integers(0, workers, body_count)
    own[:workers] = np.arange(workers)[:body_count]
    if workers > body_count:
        workers, own = 1, np.zeros(body_count, int)
    params = Params(runtime="inline", workers=workers, partition=own, solver=solver, precision=precision)
    with Simulation(scene, params) as simulation:
        (start,) = simulation.replies
        expected = ServerDetector(scene, simulation.params).contacts(scene.states)
        assert rows(start.contacts) == rows(expected)


@pytest.mark.parametrize("runtime", ["inline", pytest.param("process", marks=pytest.mark.slow)])
def test_deep_penetration_is_a_warning_and_as_an_error_ends_the_workers(runtime: str) -> None:
    scene = Scene("deep")
    scene.add_bodies(Sphere(0.5), [(0, 0, 0), (0.2, 0, 0)])
    before = set(children())
    with pytest.warns(PenetrationWarning, match="body 0 starts 0.8 m deep inside body 1"):
        Simulation(scene, Params(workers=2, partition=[0, 1], runtime=runtime)).close()
    with pytest.raises(PenetrationWarning):  # warnings are errors in these tests
        Simulation(scene, Params(workers=2, partition=[0, 1], runtime=runtime))
    assert set(children()) == before


@pytest.mark.parametrize("where", ["__init__", "activate"])
def test_what_is_wrong_with_bodies_is_one_line(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene("wrong")
    scene.add_bodies(Sphere(0.5), [(0, 0, 0), (3, 0, 0)])

    def refuse(*_: object) -> None:
        raise LapjointError("body 1 has a shape like no other")

    monkeypatch.setattr(BulletEngine, where, refuse)
    with pytest.raises(LapjointError) as caught:
        Simulation(scene, Params(workers=2, runtime="inline"))
    assert str(caught.value) == "body 1 has a shape like no other"
