"""What is asked about the scene, over all workers: against one look at all shapes where `states` shows them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine_support import is_installed
from lapjoint import (
    NO_BODY,
    Box,
    Capsule,
    Checkpoint,
    CheckpointWriter,
    Compound,
    ConstantVelocity,
    ConvexHull,
    Cylinder,
    LapjointError,
    Params,
    Part,
    PenetrationWarning,
    Plane,
    RayHits,
    Scene,
    Simulation,
    Sphere,
    TriangleMesh,
)
from lapjoint.arrays import rotation
from lapjoint.workers.messages import Ask
from parallel_support import children, poll
from reference import queries as reference

Array = NDArray[np.float64]
RANDOM = np.random.default_rng(7)
ORIGINS = RANDOM.uniform((-2, -2, -1), (6, 6, 6), (120, 3))
DIRECTIONS = RANDOM.normal(size=(120, 3))
SHAPES = [
    Sphere(0.45),
    Box((0.8, 0.7, 0.6)),
    Capsule(0.25, 0.4),
    Cylinder(0.35, 0.7),
    ConvexHull(RANDOM.uniform(-0.45, 0.45, (14, 3))),
    Compound((Part(Sphere(0.25), (-0.2, 0, 0)), Part(Box((0.4, 0.3, 0.2)), (0.2, 0, 0.1)))),
]
MODES = [("tight", 1), ("tight", 2), ("tight", 5), ("blend", 2), ("blend", 5)]


def heap(simple: bool = False) -> Scene:
    """A block of 4 x 4 x 3 bodies of all shapes that falls onto a plane, and a ramp beside it."""
    scene = Scene("heap")
    scene.add_static(Plane())
    if not simple:
        scene.add_static(TriangleMesh([[-3, -3, 2], [-1, -3, 0], [-3, 5, 2], [-1, 5, 0]], [[0, 1, 2], [1, 3, 2]]))
    places = np.stack(np.meshgrid(np.arange(4), np.arange(4), np.arange(3)), axis=-1).reshape(-1, 3) + (0, 0, 0.6)
    shapes = [SHAPES[i % (2 if simple else len(SHAPES))] for i in range(len(places))]
    for group in (1, 2):
        scene.add_bodies(shapes[group - 1 :: 2], places[group - 1 :: 2], group=1 if simple else group)
    return scene


def params(coupling: str, workers: int, **more: Any) -> Params:
    return Params.from_options(**{"coupling": coupling, "workers": workers, "runtime": "inline", **more})


def everything(simulation: Simulation, mask: int, statics: bool) -> list[tuple[int, Any, Array]]:
    """Number, shape and pose of all that is there."""
    scene, states = simulation.scene, simulation.states
    found = [
        (body, scene.shapes[scene.bodies.shape_id[body]], states[body, :7])
        for body in np.flatnonzero(simulation.alive & (scene.bodies.group & mask != 0)).tolist()
    ]
    for s, pose in enumerate(simulation.kinematic.static_poses if statics else []):
        if scene.statics.group[s] & mask:
            found.append((-1 - s, scene.shapes[scene.statics.shape_id[s]], pose))
    return found


def turned(pose: Array) -> Array:
    return np.asarray(pose[3:] / np.linalg.norm(pose[3:]))


def look(simulation: Simulation, reach: float = np.inf, mask: int = 0xFFFFFFFF, statics: bool = True) -> RayHits:
    """All hits, by the readable twin."""
    rows: list[tuple[int, float, int, Array]] = []
    directions = DIRECTIONS / np.linalg.norm(DIRECTIONS, axis=1)[:, None]
    for body, shape, pose in everything(simulation, mask, statics):
        back = rotation.conjugate(turned(pose))
        found, normals = reference.cast(
            shape, rotation.rotate(back, ORIGINS - pose[:3]), rotation.rotate(back, directions)
        )
        for ray in np.flatnonzero(np.isfinite(found) & (found <= reach)).tolist():
            rows.append((ray, found[ray], body, rotation.rotate(turned(pose), normals[ray])))
    rows.sort(key=lambda row: row[:3])
    ray, distance, body, normal = (np.array(column) for column in zip(*rows, strict=True))
    return RayHits(ray, body, distance, ORIGINS[ray] + distance[:, None] * directions[ray], normal)


def check(simulation: Simulation, **options: Any) -> RayHits:
    """All answers are those of one look at all shapes. Returns all hits of rays."""
    expected = look(simulation, **options)
    reach = {"max_distance": options.pop("reach")} if "reach" in options else {}
    hits = simulation.queries.cast_rays(ORIGINS, DIRECTIONS, **reach, **options, all_hits=True)
    np.testing.assert_array_equal(hits.ray, expected.ray)
    np.testing.assert_array_equal(hits.body, expected.body)
    for name in ("distance", "point", "normal"):
        np.testing.assert_allclose(getattr(hits, name), getattr(expected, name), atol=1e-8)
    closest = simulation.queries.cast_rays(ORIGINS, DIRECTIONS, **reach, **options)
    first = np.searchsorted(hits.ray, np.arange(len(ORIGINS)))
    is_hit = np.isin(np.arange(len(ORIGINS)), hits.ray)
    np.testing.assert_array_equal(closest.is_hit, is_hit)
    assert (closest.body[~is_hit] == NO_BODY).all()
    assert np.isinf(closest.distance[~is_hit]).all()
    for name in ("body", "distance", "point", "normal"):
        np.testing.assert_array_equal(getattr(closest, name)[is_hit], getattr(hits, name)[first[is_hit]])

    near = simulation.queries.closest_points(ORIGINS, **reach, **options)
    best = np.full(len(ORIGINS), np.inf)
    ball: set[tuple[int, int]] = set()
    mask, statics = options.get("mask", 0xFFFFFFFF), options.get("statics", True)
    for body, shape, pose in everything(simulation, mask, statics):
        local = rotation.rotate(rotation.conjugate(turned(pose)), ORIGINS - pose[:3])
        away = reference.nearest(shape, local)[0]
        best = np.minimum(best, away)
        ball |= {(point, body) for point in np.flatnonzero(away <= 0.5).tolist()}
    best[best > reach.get("max_distance", np.inf)] = np.inf
    np.testing.assert_allclose(near.distance, best, atol=1e-8)
    is_near = near.body != NO_BODY
    back = near.point[is_near] + near.distance[is_near, None] * near.normal[is_near]
    np.testing.assert_allclose(back, ORIGINS[is_near], atol=1e-8)
    overlaps = simulation.queries.overlapping(Sphere(0.5), ORIGINS, mask=mask, statics=statics)
    assert list(zip(overlaps.query.tolist(), overlaps.body.tolist(), strict=True)) == sorted(ball)
    return hits


@pytest.mark.slow
@pytest.mark.parametrize(("coupling", "workers"), MODES)
def test_answers_are_those_of_one_look_at_everything(coupling: str, workers: int) -> None:
    with Simulation(heap(), params(coupling, workers)) as simulation:
        check(simulation)  # before the first step no worker has a body
        simulation.step(3)
        check(simulation)
        check(simulation, reach=1.5)
        check(simulation, mask=2)
        check(simulation, statics=False)


@pytest.mark.slow
@pytest.mark.parametrize(("coupling", "workers"), MODES)
def test_what_was_changed_since_the_last_step_counts(coupling: str, workers: int) -> None:
    with Simulation(heap(), params(coupling, workers)) as simulation:
        simulation.step(2)
        check(simulation)
        simulation.bodies.remove([3, 17, 18])
        check(simulation)
        states = simulation.states_of([5, 30])
        states[:, :3] += (0.3, -0.2, 3.0)
        simulation.set_states([5, 30], states)
        check(simulation)
        simulation.bodies.add([Sphere(0.4), Cylinder(0.2, 1.1)], [(1, 1, 5), (3, 2, 5.5)])
        simulation.bodies.freeze([8, 9])
        check(simulation)
        simulation.step(2)
        simulation.bodies.remove([8, 48])
        check(simulation)
        simulation.workers.set_count(3)
        check(simulation)
        simulation.step()
        check(simulation)


@pytest.mark.slow
@pytest.mark.parametrize(("coupling", "workers"), MODES)
def test_nothing_depends_on_who_asks(coupling: str, workers: int) -> None:
    def ask(simulation: Simulation) -> None:
        simulation.queries.cast_rays(ORIGINS, DIRECTIONS)
        simulation.queries.closest_points(ORIGINS)

    hashes = []
    for asks in (False, True):
        with Simulation(heap(), params(coupling, workers)) as simulation:
            for step in range(8):
                if asks:
                    ask(simulation)
                if step == 3:
                    states = simulation.states_of([5])
                    states[:, 2] += 0.25
                    simulation.set_states([5], states)
                    simulation.bodies.add_one(Sphere(0.3), (1.5, 1.5, 5))
                    simulation.bodies.remove([20])
                if asks:
                    ask(simulation)
                simulation.step()
            simulation.step(20)
            if asks:
                ask(simulation)
            simulation.step()
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]


def test_answers_are_equal_to_the_last_bit_for_any_number_of_workers() -> None:
    answers = []
    for workers in (1, 2, 5):
        with Simulation(heap(), params("tight", workers)) as simulation:
            simulation.step(1)
            simulation.set_states(np.arange(48), SETTLED)
            hits = simulation.queries.cast_rays(ORIGINS, DIRECTIONS, all_hits=True)
            near = simulation.queries.closest_points(ORIGINS)
            answers.append([*vars(hits).values(), *vars(near).values()])
    for others in answers[1:]:
        for mine, theirs in zip(answers[0], others, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def settled() -> Array:
    with Simulation(heap(), params("tight", 1)) as simulation:
        simulation.step(30)
        return simulation.states


SETTLED = settled()


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
def test_a_ray_that_two_bodies_share_hits_the_first(seed: int) -> None:
    """Two equal boxes at the same place are hit at the same distance."""
    random = np.random.default_rng(seed)
    scene = Scene("twice")
    turn = random.normal(size=4)
    scene.add_bodies(Box((1, 1, 1)), [(0, 0, 0)] * 5 + [(500, 0, 0)], turn / np.linalg.norm(turn), group=4)
    ids = scene.add_bodies(Box((1, 1, 1)), [(0, 0, 0)] * 2, turn / np.linalg.norm(turn))
    with pytest.warns(PenetrationWarning):
        simulation = Simulation(scene, params("tight", 1))
    with simulation:
        start = random.normal(size=3) * 3
        if not np.isfinite(simulation.queries.cast_rays(start, -start).distance[0]):
            return
        assert simulation.queries.cast_rays(start, -start).body[0] == 0
        assert simulation.queries.cast_rays(start, -start, mask=1).body[0] == ids[0]
        all_hits = simulation.queries.cast_rays(start, -start, max_distance=5 + np.linalg.norm(start), all_hits=True)
        assert all_hits.body[:5].tolist() == [0, 1, 2, 3, 4]


def test_only_workers_that_rays_come_near_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene("two heaps")
    scene.add_bodies(Sphere(0.5), [(3.0 * k, 0, 0) for k in range(4)], labels=0)
    scene.add_bodies(Sphere(0.5), [(100 + 3.0 * k, 0, 0) for k in range(4)], labels=1)
    with Simulation(scene, params("tight", 2, partition="labels")) as simulation:
        simulation.step()
        asked: list[dict[int, int]] = []
        step: Callable[..., Any] = simulation._core.runtime.step

        def note(commands: Sequence[Any], *more: Any) -> Any:
            asked.append({w: len(c.data) for w, c in enumerate(commands) if isinstance(c, Ask)})
            return step(commands, *more)

        monkeypatch.setattr(simulation._core.runtime, "step", note)
        down = [(0, 0, -1.0)]
        assert simulation.queries.cast_rays([(3, 0, 9)], down).body.tolist() == [1]
        assert [list(one) for one in asked] == [[0, 1], [0]]  # both look once, one is asked
        asked.clear()
        assert simulation.queries.cast_rays([(103, 0, 9)], down).body.tolist() == [5]
        assert [list(one) for one in asked] == [[1]]
        asked.clear()
        assert simulation.queries.cast_rays([(50, 0, 9)], down).body.tolist() == [NO_BODY]
        assert simulation.queries.overlapping(Box((1, 1, 1)), (50, 0, 9)).body.tolist() == []
        assert simulation.queries.closest_points((50, 0, 9), 1.0).body.tolist() == [NO_BODY]
        assert asked == []
        assert simulation.queries.overlapping(Box((1, 1, 1)), (106, 0, 0.9)).body.tolist() == [6]
        assert [list(one) for one in asked] == [[1]]
        asked.clear()
        simulation.queries.cast_rays([(3, 0, 9)] * 99 + [(103, 0, 9)], down)
        (sizes,) = asked
        assert sizes[1] < sizes[0]  # each gets its own rays


def test_a_kinematic_body_is_where_it_is_now() -> None:
    scene = heap(simple=True)
    moving = scene.add_kinematic(Box((1, 1, 1)), (0, 0, 20), motion=ConstantVelocity((100, 0, 0)))
    for workers in (1, 2):
        with Simulation(scene, params("tight", workers)) as simulation:
            for steps in (0, 10, 10):
                simulation.step(steps)
                x = 100 * simulation.time
                hits = simulation.queries.cast_rays(
                    [(x - 0.51, 0, 30), (x - 0.49, 0, 30), (x + 0.49, 0, 30)], (0, 0, -1)
                )
                assert hits.body[1:].tolist() == [-1 - moving] * 2
                assert hits.body[0] != -1 - moving
                np.testing.assert_allclose(hits.distance[1:], 9.5)


@pytest.mark.slow
def test_processes_answer_and_one_that_died_is_answered_for() -> None:
    hashes = []
    for asks in (False, True):
        with Simulation(heap(), params("tight", 2, runtime="process")) as simulation:
            simulation.step(3)
            before = check(simulation) if asks else None
            pid = simulation._core.runtime.process_ids[1]  # type: ignore[attr-defined]
            os.kill(pid, signal.SIGKILL)
            assert poll(lambda pid=pid: pid not in [process.pid for process in children()], 60)
            if before is not None:
                np.testing.assert_array_equal(before.distance, check(simulation).distance)
            simulation.set_states([0], simulation.states_of([0]) + np.eye(1, 13, 2))
            if asks:
                check(simulation)
            simulation.step(3)
            if asks:
                check(simulation)
            assert len(simulation.incidents) == 1
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["tight", "blend"])
def test_after_a_checkpoint(coupling: str, tmp_path: Path) -> None:
    with Simulation(heap(), params(coupling, 2)) as simulation:
        simulation.step(3)
        hits = check(simulation)
        path = CheckpointWriter(tmp_path, simulation).save(simulation)
    for workers in (2, 3):
        with Checkpoint(path).resume(workers=workers) as simulation:
            again = check(simulation)
            np.testing.assert_array_equal(hits.distance, again.distance)
            simulation.step()
            check(simulation)


@pytest.mark.parametrize("engine", ["bullet:float64", "rapier", "mujoco:float64"])
def test_every_engine_is_asked_the_same_way(engine: str) -> None:
    if not is_installed(engine.partition(":")[0]):
        pytest.skip(f"{engine} is not installed")
    with Simulation(heap(simple=True), Params(engine=engine, workers=2, runtime="inline")) as simulation:
        check(simulation)
        simulation.step(2)
        check(simulation)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1), places=st.integers(1, 12))
def test_overlaps_of_boxes_are_those_of_separating_axes(seed: int, places: int) -> None:
    random = np.random.default_rng(seed)
    scene = Scene("boxes", gravity=(0, 0, 0))
    sizes = random.uniform(0.3, 1.5, (6, 3))
    turns = random.normal(size=(6 + places, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    at = random.uniform(-1.5, 1.5, (6 + places, 3))
    for k in range(6):
        scene.add_body(Box(tuple(sizes[k])), at[k], turns[k], group=1 << k, mask=0)
    shape = Box((0.7, 0.9, 0.4))
    with Simulation(scene, params("tight", 2)) as simulation:
        found = simulation.queries.overlapping(shape, at[6:], turns[6:])
    expected = [
        (q, k)
        for q in range(places)
        for k in range(6)
        if not separated(np.array(shape.size), at[6 + q], turns[6 + q], sizes[k], at[k], turns[k])
    ]
    assert list(zip(found.query.tolist(), found.body.tolist(), strict=True)) == expected


def separated(size_a: Array, at_a: Array, turn_a: Array, size_b: Array, at_b: Array, turn_b: Array) -> bool:
    a, b = rotation.to_matrix(turn_a).T, rotation.to_matrix(turn_b).T
    axes = [*a, *b, *(np.cross(x, y) for x in a for y in b)]
    return any(
        abs(axis @ (at_b - at_a)) > np.abs(a @ axis) @ size_a / 2 + np.abs(b @ axis) @ size_b / 2 + 1e-14
        for axis in axes
    )


REFUSED: list[tuple[Callable[[Simulation], object], str]] = [
    (lambda s: s.queries.cast_rays((0, 0, 0), (0, 0, 0)), "cast_rays: ray 0: direction is zero, expected a direction"),
    (
        lambda s: s.queries.cast_rays([(0, 0, 0)] * 2, [(0, 0, 1), (0, np.nan, 0)]),
        "ray 1: direction is .*, expected finite",
    ),
    (lambda s: s.queries.cast_rays((0, np.inf, 0), (0, 0, 1)), "ray 0: origin is .*, expected finite"),
    (lambda s: s.queries.cast_rays((0, 0), (0, 0, 1)), "cast_rays: ray 0: origin is .*, expected rows of 3 numbers"),
    (lambda s: s.queries.cast_rays([(0, 0, 0)] * 2, [(0, 0, 1)] * 3), "cast_rays: ray 0: origin is .* or 3 rows"),
    (lambda s: s.queries.cast_rays((0, 0, 0), (0, 0, 1), -1), "ray 0: max_distance is -1, expected 0 or more"),
    (lambda s: s.queries.cast_rays((0, 0, 0), (0, 0, 1), np.nan), "max_distance is nan"),
    (lambda s: s.queries.cast_rays((0, 0, 0), (0, 0, 1), mask=-1), "cast_rays: mask is -1"),
    (lambda s: s.queries.closest_points((0, np.nan, 0)), "closest_points: point 0: point is"),
    (lambda s: s.queries.overlapping(Plane(), (0, 0, 0)), "overlapping: shape is a Plane"),  # type: ignore[arg-type]
    (lambda s: s.queries.overlapping("ball", (0, 0, 0)), "overlapping: 'ball' is not a shape"),  # type: ignore[arg-type]
    (lambda s: s.queries.overlapping(Sphere(1), (0, 0, 0), (2, 0, 0, 0)), "overlapping: pose 0: quaternion"),
]


@pytest.mark.parametrize(("ask", "message"), REFUSED, ids=[message[:30] for _, message in REFUSED])
def test_what_cannot_be_answered_is_refused(ask: Callable[[Simulation], object], message: str) -> None:
    with Simulation(heap(simple=True), params("tight", 1)) as simulation, pytest.raises(LapjointError, match=message):
        ask(simulation)
    with pytest.raises(LapjointError, match="closed"):
        simulation.queries.cast_rays((0, 0, 0), (0, 0, 1))


def test_nothing_asked_is_nothing_answered() -> None:
    for workers in (1, 2):
        with Simulation(heap(), params("tight", workers)) as simulation:
            simulation.step()
            assert len(simulation.queries.cast_rays(np.empty((0, 3)), np.empty((0, 3)))) == 0
            assert len(simulation.queries.cast_rays(np.empty((0, 3)), np.empty((0, 3)), all_hits=True)) == 0
            assert len(simulation.queries.closest_points(np.empty((0, 3)))) == 0
            assert len(simulation.queries.overlapping(Sphere(1), np.empty((0, 3)))) == 0
