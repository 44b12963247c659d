"""What engines promise that find who enters sensors by themselves (feature "sensors")."""

from __future__ import annotations

import numpy as np
import pytest

from engine_support import ENGINES, Kind, is_installed, params_of, reported, supports_of
from lapjoint import Box, Scene, Sphere, make_engine
from lapjoint.engines import Changes
from lapjoint.queries import SensorSet
from lapjoint.step_tables.sensor_events import SensorEvents

HAVE_IT = [kind for kind in ENGINES if is_installed(kind[0]) and "sensors" in supports_of(kind[0]).features]
ENTER, LEAVE = 0, 1


def shots() -> Scene:
    """Balls that fly through a row of sensors, at several speeds."""
    scene = Scene("shots", gravity=(0, 0, 0), timestep=0.01)
    speeds = [(4.0 + k, 0, 0) for k in range(5)]
    scene.add_bodies(Sphere(0.3), [(-1, k, 0) for k in range(5)], linear_velocities=speeds)
    scene.add_sensor(Box((0.5, 10, 1)), (0, 2, 0))
    scene.add_sensor(Sphere(1.0), (1, 1, 0))
    scene.add_sensor(Box((0.5, 10, 1)), (2, 2, 0))
    return scene


@pytest.mark.parametrize("kind", HAVE_IT, ids="-".join)
def test_events_of_many_steps_are_those_of_single_looks(kind: Kind) -> None:
    scene = shots()
    sensors, alive = SensorSet(scene), np.zeros(5, bool)
    alive[:4] = True  # the last one is not active, and nobody's business
    engine, other = (make_engine(scene, params_of(kind)) for _ in range(2))
    for one in (engine, other):
        one.activate(np.arange(4), scene.states[:4])
    inside = sensors.find(alive, scene.states, np.empty((0, 7)))
    expected: list[tuple[int, int, int, int]] = []
    states, before = scene.states.copy(), {tuple(pair) for pair in inside.tolist()}
    for step in range(60):
        other.step()
        states[:4] = other.get_states()
        now = {tuple(pair) for pair in sensors.find(alive, states, np.empty((0, 7))).tolist()}
        expected += sorted(
            [(step, *pair, ENTER) for pair in now - before] + [(step, *pair, LEAVE) for pair in before - now]
        )
        before = now
    engine.change(Changes(senses=True, inside=[*inside.tolist(), (1, 4)]))
    engine.step(60)
    events = reported(engine, SensorEvents).ordered()
    assert [(s, *p, k) for s, p, k in zip(*(c.tolist() for c in vars(events).values()), strict=True)] == expected
    assert len(expected) > 12
    engine.change(Changes(senses=False))
    engine.step(5)
    assert len(reported(engine, SensorEvents)) == 0
