"""Contact points with their impulses and forces between groups: momentum, weight, friction; each once, for any
workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faulty_engine import register, tell
from lapjoint import (
    WORLD,
    Ball,
    Box,
    Checkpoint,
    CheckpointWriter,
    Fixed,
    Hinge,
    LapjointError,
    Material,
    Motor,
    Params,
    Plane,
    Scene,
    Simulation,
    Slider,
    Sphere,
    scenes,
)
from lapjoint.arrays import rotation
from lapjoint.engines import ContactPoints
from lapjoint.workers.readings import group_sums, is_reported

GRAVITY = 9.81
KEPT: dict[str, Any] = {"runtime": "inline", "keep_forces": True}
WORKERS: list[dict[str, Any]] = [
    {},
    *({"workers": w, "coupling": c} for c in ("tight", "blend") for w in (2, 5)),
]


def of_workers(one: dict[str, Any]) -> str:
    return f"{one.get('workers', 1)}-{one.get('coupling', 'alone')}"


def same(a: ContactPoints, b: ContactPoints) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(vars(a).values(), vars(b).values(), strict=True))


def towers(count: int = 5, height: int = 4) -> Scene:
    """Boxes on each other, every tower apart from the others."""
    scene = Scene("towers", timestep=1 / 120)
    scene.add_static(Plane())
    places = [(1.5 * x, 0, 0.15 + 0.3 * k) for x in range(count) for k in range(height)]
    scene.add_bodies(Box((0.3, 0.3, 0.3)), places, mass=np.tile(np.arange(1.0, height + 1), count))
    return scene


def heap(count: int = 36, seed: int = 0) -> Scene:
    """Boxes and balls that fall into a box without a lid: static bodies 0 to 4, the floor first."""
    rng = np.random.default_rng(seed)
    scene = Scene("heap", timestep=1 / 240)
    scene.add_static(Plane())
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        scene.add_static(Box((0.2 if x else 2, 0.2 if y else 2, 2)), (0.8 * x, 0.8 * y, 0.5))
    grid = np.stack(np.meshgrid(range(3), range(3), range(-(-count // 9)), indexing="ij"), -1).reshape(-1, 3)[:count]
    places = (grid - [1, 1, 0]) * 0.34 + [0, 0, 0.2] + rng.uniform(-0.02, 0.02, (count, 3))
    shapes = [Box((0.3, 0.3, 0.3)) if k % 2 else Sphere(0.15) for k in range(count)]
    surface = Material(friction=0.6, rolling_friction=0.01)
    scene.add_bodies(shapes, places, density=500.0, material=surface)
    return scene


# ---- mechanics -------------------------------------------------------------------------------------------------------


def random_scene(seed: int, joined: str) -> Scene:
    """Balls and cubes, which have no gyroscopic torque; some are joined to the world, or to each other."""
    rng = np.random.default_rng(seed)
    scene = Scene("random", timestep=1 / 240)
    scene.add_static(Plane(), material=Material(restitution=0.4))
    scene.add_static(Box((4, 0.2, 1)), (0, 1.0, 0.3), rotation.from_axis_angle((1, 0, 0), 0.3))
    count = 9
    grid = np.stack(np.meshgrid(range(3), range(3)), -1).reshape(-1, 2) * 0.31
    places = np.column_stack([grid, rng.uniform(0.15, 0.4, count)])
    scene.add_bodies(
        [Box((0.25, 0.25, 0.25)) if k % 2 else Sphere(0.14) for k in range(count)],
        places,
        quaternions=rotation.from_axis_angle(rng.normal(size=(count, 3)), rng.uniform(0, 0.3, count)),
        mass=rng.uniform(0.5, 5.0, count),
        linear_velocities=rng.normal(size=(count, 3)),
        angular_velocities=rng.normal(size=(count, 3)),
        material=Material(friction=0.7, rolling_friction=0.02, restitution=0.4),
    )
    kinds = [Ball(), Hinge(axis=(0, 1, 0), motor=Motor(3.0, 2.0)), Slider(axis=(1, 0, 0), limits=(-0.1, 0.1)), Fixed()]
    pairs = rng.permutation(count)[:8].reshape(4, 2)  # no loops: joints that contradict each other do no one thing
    for k, (a, b) in enumerate(pairs if joined != "none" else ()):
        other = WORLD if joined == "world" else int(b)
        anchor = places[a] + rng.uniform(-0.1, 0.1, 3)
        scene.add_joint(kinds[rng.integers(4)], int(a), other, anchor, collide=bool(k % 2))
    return scene


def momenta(scene: Scene, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    moment = scene.bodies.inertia[:, 0, 0][:, None]
    return scene.bodies.mass[:, None] * states[:, 7:10], moment * states[:, 10:]


def given_by_joints(
    simulation: Simulation, before: np.ndarray, after: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Impulses on all bodies, linear and angular, and the largest of all joints. Frames are those of the middle of the
    step."""
    scene, dt = simulation.scene, simulation.timestep
    forces = simulation.joints.forces(range(scene.joint_count))
    middle = before.copy()
    middle[:, :7] = (before[:, :7] + after[:, :7]) / 2
    middle[:, 3:7] /= np.linalg.norm(middle[:, 3:7], axis=1, keepdims=True)
    linear, angular = np.zeros((scene.body_count, 3)), np.zeros((scene.body_count, 3))
    for joint in range(scene.joint_count):
        a, b = scene.joints.body_a[joint], scene.joints.body_b[joint]
        frame_a, frame_b = scene.joints.frame_a[joint], scene.joints.frame_b[joint]
        turn = frame_b[3:] if b == WORLD else rotation.multiply(middle[b, 3:7], frame_b[3:])
        force, torque = (rotation.rotate(turn, forces[joint, k : k + 3]) * dt for k in (0, 3))
        anchor = middle[a, :3] + rotation.rotate(middle[a, 3:7], frame_a[:3])
        for body, sign in ((a, 1), (b, -1)):
            if body != WORLD:
                linear[body] += sign * force
                angular[body] += sign * (np.cross(anchor - middle[body, :3], force) + torque)
    return linear, angular, dt * np.abs(forces).max(initial=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("joined", ["none", "world", "bodies"])
@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    params=st.sampled_from([{}, {"joints": "swept"}, {"workers": 2}, {"workers": 3, "precision": "float64"}]),
)
def test_momenta_change_by_what_is_read(joined: str, seed: int, params: dict[str, Any]) -> None:
    """Of every body in every step: contacts, joints and gravity are all that acts on it. Forces in frames that turn
    within the step are known in the world as far as they turn."""
    scene = random_scene(seed, joined)
    dt, weight = scene.timestep, scene.bodies.mass[:, None] * scene.gravity
    with Simulation(scene, Params.from_options(**KEPT, **params)) as simulation:
        for _ in range(12):
            simulation.step(3)
            before = simulation.states
            simulation.step()
            after, points = simulation.states, simulation.contacts.points()
            linear, angular, largest = given_by_joints(simulation, before, after)
            for side, sign in ((0, 1), (1, -1)):
                rows = points.bodies[:, side] >= 0
                body, impulse = points.bodies[rows, side], sign * points.impulse[rows]
                np.add.at(linear, body, impulse)
                arm = points.point[rows] - before[body, :3]
                np.add.at(angular, body, np.cross(arm, impulse) + sign * points.angular_impulse[rows])
            changes = [two - one for one, two in zip(momenta(scene, before), momenta(scene, after), strict=True)]
            scale = max(dt * np.abs(weight).max(), largest, points.normal_impulse.max(initial=0.0))
            turn = dt * np.linalg.norm(np.concatenate([before, after])[:, 10:], axis=1).max()
            exact = 5e-5 * scale
            # Bodies that come together within the step touch where they are by then.
            exact_turn = exact + dt * np.linalg.norm(before[:, 7:10], axis=1).max() * scale
            assert linear + dt * weight == pytest.approx(changes[0], abs=exact + (joined != "none") * turn * scale)
            assert angular == pytest.approx(changes[1], abs=exact_turn + (joined != "none") * turn * scale * 0.3)


@pytest.mark.parametrize("shape", [Box((1, 1, 0.4)), Sphere(0.5)], ids=["box", "ball"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_friction_on_a_slope_is_what_holds_a_body_there(shape: Any, precision: str) -> None:
    """m g sin and m g cos, each step; a ball that rolls feels 2/7 of the former."""
    slope, mass = 0.3, 3.0
    turn = rotation.from_axis_angle((0, 1, 0), slope)
    scene = Scene("slope")
    scene.add_static(Plane(), quaternion=turn, material=Material(friction=0.9))
    up = rotation.rotate(turn, (0, 0, 1.0))
    height = 0.2 if isinstance(shape, Box) else 0.5
    scene.add_body(shape, height * up, turn, mass=mass, material=Material(friction=0.9))
    with Simulation(scene, Params.from_options(**KEPT, precision=precision)) as simulation:
        simulation.step(200)
        points = simulation.contacts.points()
        force, _ = simulation.contacts.forces([0], [-1])
    weight = mass * GRAVITY * scene.timestep
    share = 1.0 if isinstance(shape, Box) else 2 / 7
    assert points.normal == pytest.approx(np.tile(up, (len(points), 1)), abs=1e-5)
    assert points.normal_impulse.sum() == pytest.approx(weight * np.cos(slope), rel=1e-3)
    uphill = rotation.rotate(turn, (-1.0, 0, 0))
    assert points.friction_impulse.sum(axis=0) == pytest.approx(
        share * weight * np.sin(slope) * uphill, rel=5e-3, abs=1e-4
    )
    assert force * scene.timestep == pytest.approx(points.impulse.sum(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize("params", WORKERS, ids=of_workers)
def test_each_layer_of_a_tower_bears_those_above_it(params: dict[str, Any]) -> None:
    """Within a hundredth, over a second. Workers share towers, but for blend: what two workers have there is borne by
    both."""
    scene = towers()
    count = scene.body_count
    workers, is_blend = params.get("workers", 1), params.get("coupling") == "blend"
    partition = np.repeat(np.arange(5) % workers, 4) if is_blend else np.arange(count) % workers
    between = [([k for k in range(4) if k >= layer], [layer - 1]) for layer in range(1, 4)]
    with Simulation(scene, Params.from_options(**KEPT, **params, partition=partition, repartition=0)) as simulation:
        simulation.step(120)
        wall, layers, torque = np.zeros(3), np.zeros((3, 3)), np.zeros(3)
        for _ in range(120):
            simulation.step()
            force, about = simulation.contacts.forces(range(count), [-1], about=(3.0, 0, 0))
            wall += force / 120
            torque += about / 120
            layers += simulation.contacts.forces(between=between)[0] / 120
    assert wall == pytest.approx([0, 0, scene.bodies.mass.sum() * GRAVITY], rel=0.01, abs=0.5)
    assert torque == pytest.approx([0, 0, 0], abs=0.01 * scene.bodies.mass.sum() * GRAVITY * 3)
    assert layers[:, 2] == pytest.approx([9 * GRAVITY, 7 * GRAVITY, 4 * GRAVITY], rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("params", WORKERS[:2], ids=of_workers)
def test_the_floor_and_the_walls_bear_a_heap(params: dict[str, Any]) -> None:
    """Within a hundredth, over a second."""
    scene = heap()
    weight, every = scene.bodies.mass.sum() * GRAVITY, range(scene.body_count)
    with Simulation(scene, Params.from_options(**KEPT, **params)) as simulation:
        simulation.step(600)
        change = -simulation.states[:, 7:10]
        force = np.zeros(3)
        for _ in range(240):
            simulation.step()
            force += simulation.contacts.forces(every)[0] / 240
        change += simulation.states[:, 7:10]
    force -= (scene.bodies.mass @ change) / (240 * simulation.timestep)
    assert force == pytest.approx([0, 0, weight], abs=0.01 * weight)


# ---- workers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("params", WORKERS[1:], ids=of_workers)
def test_points_are_those_of_one_worker_where_states_are(params: dict[str, Any]) -> None:
    """To the last bit, if every tower is in one worker."""
    scene = towers()
    partition = np.repeat(np.arange(5) % params["workers"], 4)
    with Simulation(scene, Params.from_options(**KEPT)) as simulation:
        simulation.step(40)
        wanted, force = simulation.contacts.points(), simulation.contacts.forces(range(20), [-1])[0]
    with Simulation(scene, Params.from_options(**KEPT, **params, partition=partition, repartition=0)) as simulation:
        simulation.step(40)
        assert same(simulation.contacts.points(), wanted)
        assert len(wanted) == 5 * 4 * 4
        some = simulation.contacts.points([2, -1])
        assert same(some, wanted.taken((wanted.bodies == -1).any(axis=1) | (wanted.bodies == 2).any(axis=1)))
        assert simulation.contacts.forces(range(20), [-1])[0] == pytest.approx(force, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("params", WORKERS, ids=of_workers)
def test_a_contact_that_several_workers_have_is_there_once(params: dict[str, Any]) -> None:
    scene = heap(27)
    partition = np.arange(27) % params.get("workers", 1)
    with Simulation(scene, Params.from_options(**KEPT, **params, partition=partition)) as simulation:
        for _ in range(4):
            simulation.step(20)
            points, contacts = simulation.contacts.points(), simulation.contacts.pairs()
            places = np.column_stack([points.bodies, points.point])
            assert len(np.unique(places, axis=0)) == len(points)
            pairs, counts = np.unique(points.bodies, axis=0, return_counts=True)
            order = np.lexsort(contacts.bodies.T[::-1])
            assert np.array_equal(pairs, contacts.bodies[order])
            if params.get("coupling") != "blend":
                assert np.array_equal(counts, contacts.point_count[order])
            deepest = np.full(len(pairs), -np.inf)
            np.maximum.at(deepest, np.unique(points.bodies, axis=0, return_inverse=True)[1].ravel(), points.depth)
            if params.get("coupling") != "blend":
                assert deepest == pytest.approx(contacts.depth[order], abs=1e-7)


@given(seed=st.integers(0, 10_000))
def test_of_workers_that_have_a_contact_exactly_one_reports_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bodies, workers = 12, int(rng.integers(2, 5))
    has = rng.random((bodies, workers)) < 0.6
    has[np.arange(bodies), rng.integers(workers, size=bodies)] = True
    overlap = np.flatnonzero(has.sum(axis=1) > 1).astype(np.int32)
    weight = np.where(has, rng.integers(1, 4, (bodies, workers)) / 4, -1.0)[overlap]
    pairs = np.array([(a, b) for a in range(bodies) for b in (*range(a + 1, bodies), -1, -2)], np.int32)
    with_both = has[pairs[:, 0]] & np.where((pairs[:, 1] >= 0)[:, None], has[pairs[:, 1]], True)
    count = np.zeros(len(pairs), int)
    for worker in range(workers):
        own = np.flatnonzero(with_both[:, worker])
        if len(overlap):
            own = own[is_reported(pairs[own], overlap, weight, worker)]
        count[own] += 1
    assert np.array_equal(count, with_both.any(axis=1))


@given(seed=st.integers(0, 10_000))
def test_sums_of_groups_are_those_of_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, pairs = int(rng.integers(0, 30)), int(rng.integers(1, 5))
    first = rng.integers(0, 8, count)
    second = np.array([rng.choice([*range(a + 1, 9), -1, -2]) for a in first], int).reshape(-1)
    rows = rng.normal(size=(4, count, 3))
    points = ContactPoints(
        np.column_stack([first, second]).astype(np.int32).reshape(-1, 2),
        *(rows[0], rows[1], np.zeros(count), rng.random(count), rows[2], rows[3]),
    )
    groups, others = [], []
    for _ in range(pairs):
        shuffled = rng.permutation([*range(9), -1, -2])
        size = rng.integers(1, 6)
        groups.append(set(shuffled[:size].tolist()))
        others.append(None if rng.random() < 0.3 else set(shuffled[size : size + 4].tolist()))
    wanted = np.zeros((pairs, 6))
    for k, (group, other) in enumerate(zip(groups, others, strict=True)):
        for a, b, at, impulse, twist in zip(
            first, second, points.point, points.impulse, points.angular_impulse, strict=True
        ):
            for one, two, sign in ((a, b, 1), (b, a, -1)):
                if one in group and (two in other if other is not None else two not in group):
                    wanted[k] += sign * np.concatenate([impulse, np.cross(at, impulse) + twist])

    def rows_of(sets: list[set[int] | None]) -> np.ndarray:
        return np.array([(n, k) for k, one in enumerate(sets) for n in one or ()], np.int32).reshape(-1, 2)

    has_others = np.array([other is not None for other in others])
    assert group_sums(points, rows_of([*groups]), rows_of(others), pairs, has_others) == pytest.approx(wanted)


def hash_and_points(scene: Scene, steps: list[int], **params: Any) -> tuple[str, ContactPoints]:
    with Simulation(scene, Params.from_options(**{**KEPT, **params})) as simulation:
        for count in steps:
            simulation.step(count)
            points = simulation.contacts.points() if simulation.params.keep_forces else ContactPoints.none()
        return simulation.state_hash, points


@pytest.mark.slow
@pytest.mark.parametrize("params", [{}, {"workers": 3}, {"workers": 2, "coupling": "blend"}], ids=of_workers)
def test_reading_changes_nothing_and_is_the_same_wherever_workers_live(params: dict[str, Any]) -> None:
    off, _ = hash_and_points(heap(), [60], **params, keep_forces=False)
    at_once = hash_and_points(heap(), [60], **params)
    one_by_one = hash_and_points(heap(), [1] * 60, **params)
    elsewhere = hash_and_points(heap(), [20, 40], **params, runtime="process")
    assert len(at_once[1]) > 25
    for found in (at_once, one_by_one, elsewhere):
        assert found[0] == off
        assert same(found[1], at_once[1])


def test_joints_change_nothing_either() -> None:
    for joints in ("swept", "direct"):
        hashes = set()
        for keep in (False, True):
            scene = scenes.build("bridge", 60)
            with Simulation(
                scene, Params.from_options(**{**KEPT, "keep_forces": keep}, workers=2, joints=joints)
            ) as simulation:
                simulation.step(20)
                if keep:
                    assert simulation.joints.forces(range(scene.joint_count)).any()
                hashes.add(simulation.state_hash)
        assert len(hashes) == 1


def test_a_tolerance_that_takes_more_substeps_counts_each_once() -> None:
    scene = Scene("press", timestep=1 / 60)
    scene.add_static(Plane())
    scene.add_bodies(
        Sphere(0.5), [(0, 0, 0.5), (0, 0, 1.5)], mass=[0.01, 100.0], linear_velocities=[(0, 0, 0), (0, 0, -20)]
    )
    with Simulation(scene, Params.from_options(**KEPT, tolerance=1e-4)) as simulation:
        simulation.step()
        assert simulation.profile.substeps > 4
        impulse = simulation.contacts.points([1]).normal_impulse.sum()
        assert impulse == pytest.approx(100.0 * (simulation.states[1, 9] + 20.0 + GRAVITY / 60), rel=1e-4)


# ---- what comes and goes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, {"workers": 2}, {"workers": 2, "coupling": "blend"}], ids=of_workers)
def test_bodies_may_come_and_go(params: dict[str, Any]) -> None:
    partition = np.repeat(np.arange(3) % params.get("workers", 1), 4)
    with Simulation(towers(3), Params.from_options(**KEPT, **params, partition=partition, repartition=0)) as simulation:
        simulation.step(30)
        simulation.bodies.remove([3])
        assert (simulation.contacts.points().bodies == 3).any()  # of the last step, as it was
        with pytest.raises(LapjointError, match=r"contacts\.points: body 3 was removed"):
            simulation.contacts.points([3])
        new = simulation.bodies.add_one(Box((0.3, 0.3, 0.3)), (0, 0, 1.04), mass=5.0)
        assert len(simulation.contacts.points([new])) == 0
        simulation.step(60)
        assert not (simulation.contacts.points().bodies == 3).any()
        force = np.zeros(3)
        for _ in range(60):
            simulation.step()
            force += simulation.contacts.forces([new], [2])[0] / 60
        assert force == pytest.approx([0, 0, 5 * GRAVITY], abs=0.05 * 5 * GRAVITY)


@pytest.mark.parametrize("coupling", ["tight", "blend"])
def test_after_a_resume_the_first_step_can_be_read(coupling: str, tmp_path: Path) -> None:
    with Simulation(heap(), Params.from_options(**KEPT, workers=2, coupling=coupling)) as simulation:
        simulation.step(40)
        checkpoint = Checkpoint(CheckpointWriter(tmp_path, simulation).save(simulation))
        simulation.step()
        wanted, end = simulation.contacts.points(), simulation.state_hash
    with checkpoint.resume() as simulation:
        with pytest.raises(LapjointError, match=r"contacts\.points: no step has been taken yet, or none since"):
            simulation.contacts.points()
        simulation.step()
        assert same(simulation.contacts.points(), wanted)
    with checkpoint.resume(keep_forces=False) as simulation:
        simulation.step()
        assert simulation.state_hash == end


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["tight", "blend"])
def test_a_step_that_was_taken_again_can_be_read(
    coupling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(tmp_path, monkeypatch)
    params: dict[str, Any] = {"workers": 2, "repartition": 0, "solver": "substeps", "coupling": coupling}
    with Simulation(
        towers(2), Params.from_options(engine="faulty", **{**KEPT, "runtime": "process"}, **params)
    ) as simulation:
        simulation.step(2)
        tell("kill", 0, when="end")
        simulation.step()
        assert [event.kind for event in simulation.incidents] == ["gone"]
        points = simulation.contacts.points()
        assert len(np.unique(np.column_stack([points.bodies, points.point]), axis=0)) == len(points) == 2 * 4 * 4
        simulation.step(60)
        assert simulation.contacts.forces(range(8), [-1])[0][2] == pytest.approx(20 * GRAVITY, rel=0.02)


def test_wrong_questions_are_refused() -> None:
    with Simulation(towers(1), Params(runtime="inline")) as simulation:
        simulation.step()
        for read in (simulation.contacts.points, lambda: simulation.contacts.forces([0])):
            with pytest.raises(LapjointError, match="forces are not kept, expected Params"):
                read()
    with Simulation(towers(1), Params.from_options(**KEPT)) as simulation:
        simulation.step()
        with pytest.raises(LapjointError, match=r"contacts\.points: body 4 does not exist"):
            simulation.contacts.points([4])
        with pytest.raises(LapjointError, match=r"contacts\.points: static body 1 does not exist"):
            simulation.contacts.points([-2])
        with pytest.raises(LapjointError, match=r"contacts\.forces: body 1 is in both groups"):
            simulation.contacts.forces([0, 1], [1, 2])
        with pytest.raises(LapjointError, match=r"contacts\.forces: static body 0 is in both groups"):
            simulation.contacts.forces(between=[([-1], [-1])])
        with pytest.raises(LapjointError, match=r"contacts\.forces: expected either bodies_a or between"):
            simulation.contacts.forces()
        with pytest.raises(LapjointError, match=r"contacts\.forces: about is"):
            simulation.contacts.forces([0], about=(1, 2))
        force, torque = simulation.contacts.forces(between=[])
        assert force.shape == torque.shape == (0, 3)
        assert simulation.contacts.forces([])[0].tolist() == [0, 0, 0]
