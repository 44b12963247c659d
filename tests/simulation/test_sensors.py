"""Sensor volumes: who is inside, who came and who left, for any number of workers."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine_support import is_installed
from lapjoint import (
    WORLD,
    Box,
    Capsule,
    Checkpoint,
    CheckpointWriter,
    Compound,
    Cone,
    ConstantVelocity,
    ConvexHull,
    Cylinder,
    Ellipsoid,
    Fixed,
    LapjointError,
    Params,
    Part,
    Plane,
    Scene,
    SensorEvents,
    Simulation,
    Sphere,
    TriangleMesh,
)
from lapjoint.scene.serialize import describe_scene, scene_to_bytes

MODES = [("tight", 1), ("tight", 2), ("tight", 5), ("blend", 2), ("blend", 5)]
ENTER, LEAVE = 0, 1


def params(coupling: str, workers: int, **more: Any) -> Params:
    return Params.from_options(**{"coupling": coupling, "workers": workers, "runtime": "inline", **more})


def fall(moving: bool = False) -> Scene:
    """Bodies of all shapes that fall past sensors of all shapes onto a plane."""
    scene = Scene("fall", timestep=0.005)
    scene.add_static(Plane())
    shapes = [
        Sphere(0.2),
        Box((0.4, 0.3, 0.2)),
        Capsule(0.1, 0.2),
        Cylinder(0.15, 0.3),
        ConvexHull([(-0.2, -0.2, -0.2), (0.2, -0.2, -0.2), (0, 0.2, -0.2), (0, 0, 0.2)]),
        Compound((Part(Sphere(0.1), (-0.2, 0, 0)), Part(Box((0.2, 0.2, 0.2)), (0.1, 0, 0)))),
        Ellipsoid((0.2, 0.15, 0.1)),
        Cone(0.2, 0.4),
    ]
    places = [(0.5 * (k % 6), 0.5 * (k // 6), 0.6 + 0.05 * k) for k in range(24)]
    scene.add_bodies([shapes[k % 8] for k in range(24)], places)
    scene.add_bodies(Sphere(0.2), [(0.5 * k, 3, 0.6) for k in range(4)], group=2)
    scene.add_sensor(Box((3, 3, 0.3)), (1, 1, 0.5), name="gate")
    scene.add_sensor(Sphere(0.4), (0.5, 0.5, 0.4))
    scene.add_sensor(Plane(), (0, 0, 0.25), mask=2)
    scene.add_sensor(Cylinder(0.3, 1.0), (2, 1, 0.6), (np.sqrt(0.5), np.sqrt(0.5), 0, 0))
    platform = scene.add_kinematic(Box((1, 1, 0.1)), (-1, 1, 0.3), motion=ConstantVelocity((3, 0, 0)))
    scene.add_sensor(Box((0.8, 0.8, 0.8)), (0, 0, 0.5), body=-1 - platform, name="on the platform")
    if moving:
        scene.add_sensor(Capsule(0.4, 0.4), (0.1, 0, 0), body=1)
    return scene


def replayed(events: SensorEvents, steps: int | None = None) -> set[tuple[int, int]]:
    """Who is inside by what has happened in so many steps. Nobody enters who is inside, or leaves who is not."""
    inside: set[tuple[int, int]] = set()
    for step, pair, kind in zip(events.step.tolist(), events.pair.tolist(), events.kind.tolist(), strict=True):
        if steps is not None and step >= steps:
            break
        assert (tuple(pair) in inside) == (kind == LEAVE), (step, pair, kind)
        inside ^= {tuple(pair)}
    return inside


def pairs(simulation: Simulation) -> set[tuple[int, int]]:
    found = simulation.queries.inside()
    return set(zip(found.sensor.tolist(), found.body.tolist(), strict=True))


def overlaps(simulation: Simulation) -> set[tuple[int, int]]:
    """The same, asked for one sensor after the other."""
    scene = simulation.scene
    found = set()
    for sensor in range(len(scene.sensors)):
        row = {name: getattr(scene.sensors, name)[sensor] for name in ("shape_id", "position", "quaternion", "mask")}
        shape, place, on = scene.shapes[row["shape_id"]], row["position"], int(scene.sensors.body[sensor])
        if isinstance(shape, Plane):
            shape, place = Box((50, 50, 10)), place - (0, 0, 5)
        if on == 1:  # the capsule on body 1 is turned with it: see the test of its own
            continue
        if on > -1000:
            place = place + simulation.kinematic.static_poses[-1 - on, :3]
        bodies = simulation.queries.overlapping(
            shape, place, row["quaternion"], mask=int(row["mask"]), statics=False
        ).body
        found |= {(sensor, body) for body in bodies.tolist()}
    return found


@pytest.fixture(scope="module")
def one_by_one() -> tuple[SensorEvents, str]:
    """What happens on one worker, with a look after every step."""
    with Simulation(fall(), params("tight", 1)) as simulation:
        seen = []
        for _ in range(60):
            simulation.step()
            assert pairs(simulation) == overlaps(simulation)
            seen.append(pairs(simulation))
        events = simulation.events.sensor_events
        assert [replayed(events, step + 1) for step in range(60)] == seen
        assert len(events) > 20
        assert set(events.sensor.tolist()) == {0, 1, 2, 3, 4}
        return events, simulation.state_hash


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_many_steps_at_once_find_the_same(workers: int, one_by_one: tuple[SensorEvents, str]) -> None:
    with Simulation(fall(), params("tight", workers)) as simulation:
        simulation.step(60)
        events, state_hash = one_by_one
        if workers == 1:
            assert simulation.state_hash == state_hash
            for name, column in vars(simulation.events.sensor_events).items():
                np.testing.assert_array_equal(column, getattr(events, name))
        assert replayed(simulation.events.sensor_events) == pairs(simulation) == overlaps(simulation)


@pytest.mark.slow
@pytest.mark.parametrize(("coupling", "workers"), MODES)
def test_events_are_what_is_seen_after_every_step(coupling: str, workers: int) -> None:
    with Simulation(fall(), params(coupling, workers)) as simulation:
        assert replayed(simulation.events.sensor_events) == pairs(simulation) == overlaps(simulation)
        seen = []
        for step in range(40):
            if step == 20 and workers > 1:  # all bodies migrate
                simulation.workers.repartition(np.arange(28) % workers)
            simulation.step()
            seen.append(pairs(simulation))
            assert seen[-1] == overlaps(simulation)
        assert [replayed(simulation.events.sensor_events, step + 1) for step in range(40)] == seen


@pytest.mark.parametrize(("coupling", "workers"), MODES)
def test_sensors_change_nothing(coupling: str, workers: int) -> None:
    hashes = []
    for senses in (False, True):
        scene = fall()
        if not senses:
            scene.sensors.cut(0)
        with Simulation(scene, params(coupling, workers)) as simulation:
            simulation.step(30)
            hashes.append(simulation.state_hash)
            assert (len(simulation.events.sensor_events) > 0) == senses
    assert hashes[0] == hashes[1]


@pytest.mark.slow
@pytest.mark.parametrize(("coupling", "workers"), MODES)
def test_what_changes_between_steps(coupling: str, workers: int) -> None:
    with Simulation(fall(), params(coupling, workers)) as simulation:
        simulation.step(5)
        new = simulation.bodies.add_one(Sphere(0.1), (1, 1, 0.5))
        assert (0, new) in pairs(simulation)
        states = simulation.states_of([0])
        states[:, :3] = 100, 100, 100
        simulation.set_states([0], states)
        assert not any(body == 0 for _, body in pairs(simulation))
        inside = sorted(body for sensor, body in pairs(simulation) if sensor == 0)
        simulation.bodies.remove(inside[:1])
        assert (0, inside[0]) not in pairs(simulation)
        simulation.bodies.freeze(inside[1:2])
        for _ in range(8):
            simulation.step()
            assert pairs(simulation) == overlaps(simulation)
            assert (0, inside[1]) in pairs(simulation)
        simulation.bodies.release(inside[1:2])
        simulation.step(10)
        assert replayed(simulation.events.sensor_events) == pairs(simulation) == overlaps(simulation)
        events = simulation.events.sensor_events
        (row,) = np.flatnonzero((events.pair == (0, new)).all(axis=1) & (events.kind == ENTER))
        assert events.step[row] == 5


def test_a_body_at_known_speed_is_inside_when_it_must_be() -> None:
    """A ball of radius 0.5 at 10 m/s through a box from x = 2 to 3: it touches it from 1.5 to 3.5, for 0.2 s."""
    scene = Scene("shot", gravity=(0, 0, 0), timestep=0.01)
    scene.add_body(Sphere(0.5), linear_velocity=(10, 0, 0))
    scene.add_sensor(Box((1, 1, 1)), (2.5, 0, 0))
    with Simulation(scene, params("tight", 1, precision="float64")) as simulation:
        simulation.step(50)
        events = simulation.events.sensor_events
    assert events.kind.tolist() == [ENTER, LEAVE]
    assert abs(events.step[0] - 14) <= 1  # at the end of step 14 it is at 1.5
    assert abs(events.step[1] - 35) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["tight", "blend"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_sensor_moves_with_its_body(coupling: str, workers: int) -> None:
    """A car with a sensor in front of it passes by posts; it does not sense itself."""
    scene = Scene("car", gravity=(0, 0, 0), timestep=0.01)
    turn = (np.sqrt(0.5), 0, 0, np.sqrt(0.5))  # to the left: its front is along y
    car = scene.add_body(Box((2, 1, 1)), (0, -4, 0), turn, linear_velocity=(0, 10, 0))
    posts = scene.add_bodies(Cylinder(0.2, 2), [(2, y, 0) for y in range(0, 10, 2)])
    scene.add_joints(Fixed(), posts, [WORLD] * 5, [(2, y, 0) for y in range(0, 10, 2)])
    sensor = scene.add_sensor(Box((1, 4, 1)), (1.5, 0, 0), body=car)
    with Simulation(scene, params(coupling, workers)) as simulation:
        for _ in range(150):
            simulation.step()
            y = simulation.states[car, 1] + 1.5  # of the sensor's middle; it is 1 m long there
            at = np.arange(0, 10, 2)
            expected = np.array(posts)[np.abs(at - y) < 0.7 - 1e-4]
            found = simulation.queries.inside([sensor]).body
            assert (
                set(expected.tolist()) <= set(found.tolist()) <= set(np.array(posts)[np.abs(at - y) < 0.7001].tolist())
            )
        events = simulation.events.sensor_events
        assert events.kind[events.body == posts[0]].tolist() == [ENTER, LEAVE]
        assert car not in events.body
        simulation.bodies.remove([car])
        assert len(simulation.queries.inside()) == 0
        simulation.step(3)
        assert replayed(simulation.events.sensor_events) == set()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["rapier", "mujoco:float64"])
def test_engines_without_sensors_are_looked_at_by_the_server(engine: str) -> None:
    if not is_installed(engine.partition(":")[0]):
        pytest.skip(f"{engine} is not installed")
    scene = Scene("balls")
    scene.add_static(Plane())
    scene.add_bodies(Sphere(0.2), [(0, 0, 1 + 0.5 * k) for k in range(4)])
    scene.add_sensor(Box((1, 1, 0.5)), (0, 0, 1))
    with Simulation(scene, Params(engine=engine, workers=2, runtime="inline")) as simulation:
        simulation.step(250)
        events = simulation.events.sensor_events
        assert len(events) > 4
        assert replayed(events) == pairs(simulation)


@pytest.mark.slow
@pytest.mark.parametrize(("coupling", "workers"), [("tight", 2), ("blend", 2)])
@pytest.mark.parametrize("moving", [False, True])
def test_a_checkpoint_goes_on(coupling: str, workers: int, moving: bool, tmp_path: Path) -> None:
    scene = fall(moving)
    with Simulation(scene, params(coupling, workers)) as simulation:
        simulation.step(20)
        simulation.bodies.add_one(Sphere(0.1), (1, 1, 0.5))  # nobody has looked when it is saved
        path = CheckpointWriter(tmp_path, simulation).save(simulation)
        simulation.step(20)
        events = simulation.events.sensor_events
    for count in (workers, 3):
        with Checkpoint(path).resume(workers=count) as again:
            again.step(20)
            assert replayed(again.events.sensor_events) == pairs(again)
            if count == workers:
                for name, column in vars(again.events.sensor_events).items():
                    np.testing.assert_array_equal(column, getattr(events, name))


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_event() -> None:
    def run(kills: bool) -> tuple[SensorEvents, set[tuple[int, int]]]:
        with Simulation(fall(), params("tight", 2, runtime="process")) as simulation:
            simulation.step(10)
            if kills:
                os.kill(simulation._core.runtime.process_ids[1], signal.SIGKILL)  # type: ignore[attr-defined]
            simulation.step(20)
            assert len(simulation.incidents) == kills
            assert replayed(simulation.events.sensor_events) == pairs(simulation) == overlaps(simulation)
            return simulation.events.sensor_events, pairs(simulation)

    (before, _), (after, _) = run(False), run(True)
    early = slice(0, int(np.searchsorted(before.step, 10)))
    for name in ("step", "pair", "kind"):
        mine: NDArray[Any] = getattr(before, name)
        np.testing.assert_array_equal(mine[early], getattr(after, name)[early])


def test_sensors_are_part_of_the_scene(tmp_path: Path) -> None:
    scene = fall(moving=True)
    again = Scene.load(scene.save(tmp_path / "scene.npz"))
    assert again == scene
    assert again.sensor_id("gate") == 0
    assert again.sensor_id("on the platform") == 4
    assert len(again.sensors) == 6
    with pytest.raises(LapjointError, match="has no sensor named 'door'"):
        again.sensor_id("door")
    without = fall()
    without.sensors.cut(0)
    without.sensors.names.clear()
    assert not any("sensor" in name for name in describe_scene(without)[1])
    assert "sensor_names" not in describe_scene(without)[0]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"shape": TriangleMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])}, "sensor 5: shape is a TriangleMesh"),
    ({"shape": "ball"}, "sensor 5: 'ball' is not a shape"),
    ({"body": 28}, "sensor 5: body 28 does not exist, the scene has 28 bodies"),
    ({"body": -1}, "sensor 5: static body 0 is not kinematic"),
    ({"position": (0, np.nan, 0)}, "sensor 5: position"),
    ({"quaternion": (2, 0, 0, 0)}, "sensor 5: quaternion"),
    ({"mask": -1}, "sensor 5: mask is -1"),
    ({"name": ""}, "sensor 5: name is ''"),
    ({"name": "gate"}, "sensor 5 .'gate'.: the name is already taken by sensor 0"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[message[:30] for _, message in REFUSED])
def test_what_is_no_sensor_is_refused(options: dict[str, Any], message: str) -> None:
    scene = fall()
    before = scene_to_bytes(scene)
    with pytest.raises(LapjointError, match=message):
        scene.add_sensor(**{"shape": Sphere(1), **options})
    assert scene_to_bytes(scene) == before


def test_a_sensor_that_does_not_exist_is_refused() -> None:
    with Simulation(fall(), params("tight", 1)) as simulation:
        with pytest.raises(LapjointError, match="inside: sensor 5 does not exist, the scene has 5 sensors"):
            simulation.queries.inside(5)
        simulation.step()
        with pytest.raises(LapjointError, match="in motion"):
            simulation.scene.add_sensor(Sphere(1))
