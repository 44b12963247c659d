"""Whatever is done in whatever order, answers and sensors are those of one look at all states, and change none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint import Box, Params, Plane, Scene, Simulation, Sphere
from lapjoint.queries import BodyTree, SensorSet
from lapjoint.scene.scene import ALL_GROUPS

ACTIONS = ["step", "steps", "add", "remove", "set", "freeze", "release", "workers", "repartition", "ask", "ask"]


def scene_of(random: np.random.Generator) -> Scene:
    scene = Scene("random", timestep=0.005)
    scene.add_static(Plane())
    places = np.indices((4, 4, 2)).reshape(3, -1).T * 0.7 + (0, 0, 0.4) + random.uniform(-0.02, 0.02, (32, 3))
    scene.add_bodies([Sphere(0.3) if k % 2 else Box((0.5, 0.4, 0.5)) for k in range(32)], places)
    for place in random.uniform((0, 0, 0), (2, 2, 1.5), (4, 3)):
        scene.add_sensor(Box(tuple(random.uniform(0.2, 1.0, 3))), place)
    return scene


def act(simulation: Simulation, action: str, random: np.random.Generator) -> None:
    there = np.flatnonzero(simulation.alive)
    some = random.choice(there, min(3, len(there)), replace=False) if len(there) else there
    if action in ("step", "steps"):
        simulation.step(1 if action == "step" else 6)
    elif action == "add":
        simulation.bodies.add(Sphere(0.2), random.uniform((0, 0, 3), (2, 2, 5), (2, 3)))
    elif action == "remove" and len(there) > 12:
        simulation.bodies.remove(some)
    elif action == "set":
        states = simulation.states_of(some)
        states[:, :3] += random.uniform(0, 1, (len(some), 3))
        simulation.set_states(some, states)
    elif action == "freeze":
        simulation.bodies.freeze(some)
    elif action == "release":
        simulation.bodies.release(simulation.bodies.frozen_ids)
    elif action == "workers":
        simulation.workers.set_count(int(random.integers(1, 5)))
    elif action == "repartition":
        count = simulation.params.workers
        parts = np.zeros(simulation.scene.body_count, int)
        parts[there] = np.arange(len(there)) % count
        if simulation.workers.membership.worker_count == count == simulation._core.now.repartition.wanted_count:
            simulation.workers.repartition(parts)


def check(simulation: Simulation, random: np.random.Generator) -> None:
    scene, states = simulation.scene, simulation.states
    alive = np.flatnonzero(simulation.alive).astype(np.int32)
    everything = BodyTree(scene)
    everything.set_bodies(alive, states)
    origins, directions = random.uniform(-1, 3, (50, 3)), random.normal(size=(50, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    ray, body, distance, _ = everything.cast_all(origins, directions, np.full(50, np.inf), ALL_GROUPS)
    hits = simulation.queries.cast_rays(origins, directions, all_hits=True, statics=False)
    for mine, wanted in ((hits.ray, ray), (hits.body, body)):
        np.testing.assert_array_equal(mine, wanted)
    np.testing.assert_allclose(hits.distance, distance, rtol=1e-12)
    near = everything.nearest_bodies(origins, np.full(50, np.inf), ALL_GROUPS)
    np.testing.assert_array_equal(simulation.queries.closest_points(origins, statics=False).body, near[0])
    inside = SensorSet(scene).find(simulation.alive, states, simulation.kinematic.static_poses)
    found = simulation.queries.inside()
    np.testing.assert_array_equal(np.stack([found.sensor, found.body], axis=1), inside)


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["tight", "blend"])
@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1), workers=st.integers(1, 4), actions=st.lists(st.sampled_from(ACTIONS), max_size=14)
)
def test_any_order(coupling: str, seed: int, workers: int, actions: list[str]) -> None:
    hashes = []
    for asks in (True, False):
        random, other = np.random.default_rng(seed), np.random.default_rng(seed + 1)
        params = Params(coupling=coupling, workers=workers, runtime="inline")
        with Simulation(scene_of(random), params) as simulation:
            for action in [*actions, "step", "ask", "steps", "ask"]:
                if action != "ask":
                    act(simulation, action, random)
                elif asks:
                    check(simulation, other)
            events = simulation.events.sensor_events
            inside: set[tuple[int, ...]] = set()
            for pair, kind in zip(map(tuple, events.pair.tolist()), events.kind.tolist(), strict=True):
                assert (pair in inside) == (kind == 1)
                inside ^= {pair}
            found = simulation.queries.inside()
            assert inside == set(zip(found.sensor.tolist(), found.body.tolist(), strict=True))
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]
