"""Touches: begin and end, and hits above a speed, found in every step and reported once, whoever has the bodies."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faulty_engine import register, tell
from lapjoint import (
    Box,
    Checkpoint,
    CheckpointWriter,
    ConstantVelocity,
    LapjointError,
    Material,
    Params,
    Plane,
    Recording,
    Scene,
    Simulation,
    Sphere,
)
from lapjoint.run import run
from lapjoint.server.touches import TouchLog
from lapjoint.step_tables.touches import BEGIN, END, NEAR, Touches, TouchReports

GRAVITY, TIMESTEP = 9.81, 0.002
INLINE: dict[str, Any] = {"runtime": "inline"}
WORKERS: list[dict[str, Any]] = [
    {},
    *({"workers": w, "coupling": c} for c in ("tight", "blend") for w in (2, 5)),
]


def of_workers(one: dict[str, Any]) -> str:
    return f"{one.get('workers', 1)}-{one.get('coupling', 'alone')}"


def touches_of(scene: Scene, steps: int, **params: Any) -> Touches:
    with Simulation(scene, Params.from_options(**{**INLINE, **params})) as simulation:
        simulation.step(steps)
        return simulation.events.touches


def same(a: Touches, b: Touches) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(vars(a).values(), vars(b).values(), strict=True))


def rows(found: Touches) -> list[tuple[int, int, int, int]]:
    return [(int(s), int(a), int(b), int(k)) for s, (a, b), k in zip(found.step, found.bodies, found.kind, strict=True)]


def meetings(count: int = 10, **options: Any) -> Scene:
    """Pairs of balls that fly at each other and part again, every pair apart from the others."""
    rng = np.random.default_rng(1)
    scene = Scene("meetings", gravity=(0, 0, 0))
    start = np.column_stack([np.tile([-0.3, 0.3], count), np.repeat(np.arange(count) * 0.5, 2), np.zeros(2 * count)])
    velocities = -start * (rng.uniform(3.0, 8.0, 2 * count)[:, None] * [1, 0, 0])
    scene.add_bodies(
        Sphere(0.1), start, mass=1.0, linear_velocities=velocities, material=Material(restitution=0.5), **options
    )
    return scene


def heap(seed: int = 0, count: int = 24, **options: Any) -> Scene:
    """Balls and boxes that fall on the ground, and on each other."""
    rng = np.random.default_rng(seed)
    scene = Scene("heap")
    scene.add_static(Plane())
    places = np.column_stack(
        [np.repeat(np.arange(count // 3) * 0.8, 3), np.zeros(count), np.tile([0.17, 0.5, 0.9], count // 3)]
    )
    places[:, :2] += rng.uniform(-0.03, 0.03, (count, 2))
    shapes = [Box((0.3, 0.3, 0.3)) if k % 2 else Sphere(0.15) for k in range(count)]
    scene.add_bodies(
        shapes, places, density=300.0, material=Material(restitution=0.3), **{"touch_events": True, **options}
    )
    return scene


# ---- what is a touch -------------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(height=st.floats(0.1, 2.0), e=st.floats(0.3, 0.9), substeps=st.sampled_from([1, 4]))
def test_a_ball_that_bounces_touches_between_its_flights(height: float, e: float, substeps: int) -> None:
    scene = Scene("bounce", timestep=TIMESTEP)
    surface = Material(restitution=e)
    scene.add_static(Plane(), material=surface)
    scene.add_body(Sphere(0.1), (0, 0, 0.1 + height), mass=2.0, material=surface, touch_events=True)
    speed = np.sqrt(2 * GRAVITY * height)
    first = speed / GRAVITY / TIMESTEP
    second = first + 2 * e * speed / GRAVITY / TIMESTEP
    found = touches_of(scene, int(second) + 8, substeps=substeps)
    begins, ends = found.of("begin"), found.of("end")
    assert found.bodies.tolist() == [[0, -1]] * len(found)
    assert found.is_static.all()
    assert begins.step[:2] == pytest.approx([first, second], abs=3 + 0.01 * second)
    assert begins.speed[0] == pytest.approx(speed, abs=2 * GRAVITY * TIMESTEP)
    assert begins.speed[1] == pytest.approx(e * speed, abs=0.03 * speed + 3 * GRAVITY * TIMESTEP)
    # It is gone once it is further than what a touch may give way by.
    away = 0.005 * 0.125 / (e * speed * TIMESTEP)
    assert begins.step[0] < ends.step[0] <= begins.step[0] + 3 + away
    assert (ends.speed == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("params", [{}, {"workers": 2}, {"workers": 2, "coupling": "blend"}], ids=of_workers)
def test_what_rests_goes_on_touching(params: dict[str, Any]) -> None:
    """Boxes on boxes begin once, and are found to touch for as long as they lie there."""
    scene = Scene("rest")
    scene.add_static(Plane())
    places = [(x, 0, 0.1505 + 0.301 * k) for x in (0, 2) for k in range(3)]
    scene.add_bodies(Box((0.3, 0.3, 0.3)), places, touch_events=True)
    with Simulation(scene, Params.from_options(**INLINE, **params)) as simulation:
        simulation.step(40)
        settled = len(simulation.events.touches)
        simulation.step(400)
        assert len(simulation.events.touches) == settled
        assert simulation.contacts.touching.tolist() == [[0, 1], [0, -1], [1, 2], [3, 4], [3, -1], [4, 5]]
        assert sorted(simulation.contacts.pairs().bodies.tolist()) == sorted(simulation.contacts.touching.tolist())


def test_what_only_comes_near_does_not_touch() -> None:
    """A ball flies past another at half a millimetre: within what is looked at, and without an impulse."""
    scene = Scene("past", gravity=(0, 0, 0))
    places = [(-0.5, 0, 0.2005), (0, 0, 0)]
    scene.add_bodies(Sphere(0.1), places, linear_velocities=[(5, 0, 0), (0, 0, 0)], touch_events=True, hit_speed=0.01)
    with Simulation(scene, Params.from_options(**INLINE)) as simulation:
        seen = False
        for _ in range(120):
            simulation.step()
            seen |= len(simulation.contacts.pairs()) > 0
        assert seen
        assert len(simulation.events.touches) == len(simulation.contacts.touching) == 0


@pytest.mark.parametrize("speed", [1.0, 4.0])
def test_the_lower_speed_decides_what_is_a_hit(speed: float) -> None:
    scene = Scene("hit", gravity=(0, 0, 0))
    velocities = [(speed, 0, 0), (0, 0, 0)]
    scene.add_bodies(
        Sphere(0.1), [(-0.3, 0, 0), (0.0, 0, 0)], linear_velocities=velocities, hit_speed=[np.inf, 2.0], mass=1.0
    )
    found = touches_of(scene, 200)
    assert len(found) == (speed > 2)
    if len(found):
        assert found.of("hit").bodies.tolist() == [[0, 1]]
        assert found.speed == pytest.approx([speed], rel=1e-3)
        assert not found.is_static.any()


def test_a_plate_that_comes_at_a_body_has_its_speed() -> None:
    scene = Scene("plate", gravity=(0, 0, 0))
    scene.add_kinematic(Box((1, 1, 0.2)), (0, 0, -0.5), motion=ConstantVelocity((0, 0, 2.0)))
    scene.add_body(Sphere(0.1), touch_events=True, hit_speed=1.9)
    found = touches_of(scene, 200)
    assert found.kind.tolist()[:2] == [0, 2]
    assert found.speed[:2] == pytest.approx([2.0, 2.0], rel=1e-3)


# ---- workers ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("params", WORKERS[1:], ids=of_workers)
@pytest.mark.parametrize("apart", [False, True])
def test_workers_report_what_one_reports(params: dict[str, Any], apart: bool) -> None:
    """Both bodies of a pair have different workers, or the same."""
    scene = meetings(touch_events=True, hit_speed=1.5)
    numbers = np.arange(scene.body_count)
    partition = (numbers if apart else numbers // 2) % params["workers"]
    wanted = touches_of(scene, 150)
    found = touches_of(scene, 150, partition=partition, repartition=0, **params)
    assert len(wanted.of("begin")) == len(wanted.of("end")) == 10
    assert 0 < len(wanted.of("hit")) <= 10
    if apart and params["coupling"] == "blend":  # what the two have after it is blended: they part later
        assert sorted(found.of("hit").bodies.tolist()) == sorted(wanted.of("hit").bodies.tolist())
        found, wanted, parted, begun = found.of("begin"), wanted.of("begin"), found.of("end"), found.of("begin")
        assert sorted(parted.bodies.tolist()) == sorted(begun.bodies.tolist())
    if apart and params["coupling"] == "blend":  # nor do they know of each other before contacts reach
        assert sorted(found.bodies.tolist()) == sorted(wanted.bodies.tolist())
        assert np.abs(np.sort(found.step) - np.sort(wanted.step)).max() <= 1
        return
    assert rows(found) == rows(wanted)
    assert found.speed == pytest.approx(wanted.speed, rel=1e-5)
    if not apart:
        assert same(found, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("params", WORKERS, ids=of_workers)
def test_begin_and_end_take_turns(params: dict[str, Any]) -> None:
    """Of each pair, however bodies migrate; what has begun and not ended touches now."""
    scene = heap(3)
    workers = params.get("workers", 1)
    with Simulation(scene, Params.from_options(**INLINE, **params, partition=np.arange(24) % workers)) as simulation:
        for shift in range(6):
            simulation.step(25)
            if workers > 1:
                simulation.workers.repartition((np.arange(24) + shift) % workers)
        found, touching = simulation.events.touches, simulation.contacts.touching
    assert len(found) > 20
    is_open: dict[tuple[int, int], bool] = {}
    for _, a, b, kind in rows(found):
        assert is_open.get((a, b), False) == (kind == 1)
        is_open[a, b] = kind == 0
    assert sorted(pair for pair, still in is_open.items() if still) == sorted(map(tuple, touching.tolist()))
    assert np.array_equal(np.lexsort((*found.bodies.T[::-1], found.step)), np.arange(len(found)))


@pytest.mark.parametrize("coupling", ["tight", "blend"])
@pytest.mark.parametrize("at", range(12))
def test_bodies_that_migrate_go_on_touching_and_cease_to_once(at: int, coupling: str) -> None:
    """A ball bounces from the ground; in any step about it, it changes its worker, and so does another."""
    scene = Scene("migrate", timestep=1 / 240)
    surface = Material(restitution=0.8)
    scene.add_static(Plane(), material=surface)
    scene.add_bodies(Sphere(0.1), [(0, 0, 0.12), (3, 0, 0.11)], material=surface, touch_events=True)
    wanted = touches_of(scene, 40)
    assert len(wanted.of("end")) >= 2
    params = Params.from_options(**INLINE, workers=2, coupling=coupling, partition=[0, 1], repartition=0)
    with Simulation(scene, params) as simulation:
        simulation.step(12 + at)
        simulation.workers.repartition([1, 0])
        simulation.step(28 - at)
        assert simulation.workers.membership.active(0).tolist() == [1]
        assert rows(simulation.events.touches) == rows(wanted)


@pytest.mark.slow
@pytest.mark.parametrize("params", [{}, {"workers": 3}, {"workers": 2, "coupling": "blend"}], ids=of_workers)
def test_the_same_wherever_workers_live_and_however_many_steps_they_take(params: dict[str, Any]) -> None:
    wanted = touches_of(heap(5), 150, **params)
    assert len(wanted) > 20
    assert same(touches_of(heap(5), 150, **{**params, "runtime": "process"}), wanted)
    with Simulation(heap(5), Params.from_options(**INLINE, **params)) as simulation:
        for _ in range(150):
            simulation.step()
        assert same(simulation.events.touches, wanted)
        with_touches = simulation.state_hash
        simulation.restart()
        assert len(simulation.events.touches) == len(simulation.contacts.touching) == 0
    with Simulation(heap(5, touch_events=False), Params.from_options(**INLINE, **params)) as simulation:
        simulation.step(150)
        assert simulation.state_hash == with_touches
        assert len(simulation.events.touches) == 0


@pytest.mark.slow
def test_touches_of_steps_that_are_taken_again_are_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(tmp_path, monkeypatch)
    params: dict[str, Any] = {"workers": 2, "repartition": 0, "solver": "substeps", "coupling": "tight"}
    scene = meetings(6, touch_events=True)
    params["partition"] = np.arange(12) % 2
    wanted = touches_of(scene, 120, **params)
    with Simulation(scene, Params.from_options(engine="faulty", runtime="process", **params)) as simulation:
        simulation.step()
        tell("kill", 0, when="end")
        simulation.step(119)
        assert [event.kind for event in simulation.incidents] == ["gone"]
        assert rows(simulation.events.touches) == rows(wanted)


# ---- the log ---------------------------------------------------------------------------------------------------------


class _Bodies:
    touch_events = np.ones(4, bool)
    hit_speed = np.full(4, np.inf)


@given(data=st.data())
def test_the_log_is_that_of_a_plain_loop(data: st.DataObject) -> None:
    """Whether pairs touch, are near or apart in each of many steps, cut into batches anywhere."""
    pairs = [(0, 1), (0, -1), (2, 3), (1, -2)]
    steps = data.draw(st.lists(st.tuples(*[st.sampled_from("tna")] * len(pairs)), min_size=1, max_size=12))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(steps)))) | {0, len(steps)})
    log, wanted, touches = TouchLog(), [], [False] * len(pairs)
    for number, states in enumerate(steps):
        for k in sorted(range(len(pairs)), key=lambda one: pairs[one]):
            now = states[k] == "t" or (states[k] == "n" and touches[k])
            if now != touches[k]:
                wanted.append((number, *pairs[k], int(touches[k])))
            touches[k] = now
    for start, stop in pairwise(cuts):
        # As workers report: see native/bullet/step_readings.cpp.
        found: list[tuple[int, tuple[int, int], int, float]] = []
        known: dict[int, bool] = {}
        for step in range(start, stop):
            for k, state in enumerate(steps[step]):
                sure = known.get(k, False)
                if state == "t":
                    if not sure:
                        found.append((step - start, pairs[k], BEGIN, 1.0))
                    known[k] = True
                elif state == "n" and step == start:
                    found.append((0, pairs[k], NEAR, 0.0))
                    known[k] = False
                elif state == "a" and known.pop(k, None) is not None:
                    found.append((step - start, pairs[k], END, 0.0))
        step, bodies, kind, speed = zip(*found, strict=True) if found else ((), (), (), ())
        reported = TouchReports(
            np.array(step, np.int32),
            np.array(bodies, np.int32).reshape(-1, 2),
            np.array(kind, np.uint8),
            np.array(speed, float),
        )
        log.add(reported, _Bodies(), start)  # type: ignore[arg-type]
    assert rows(log.all) == wanted
    assert set(map(tuple, log.touching.tolist())) == {pair for pair, one in zip(pairs, touches, strict=True) if one}


@pytest.mark.parametrize("params", [{}, {"workers": 2}, {"workers": 2, "coupling": "blend"}], ids=of_workers)
def test_a_body_that_is_removed_ceases_to_touch(params: dict[str, Any]) -> None:
    scene = Scene("gone")
    scene.add_static(Plane())
    scene.add_bodies(
        Box((0.3, 0.3, 0.3)), [(0, 0, 0.15), (0, 0, 0.45), (3, 0, 0.15)], touch_events=[True, False, False]
    )
    with Simulation(scene, Params.from_options(**INLINE, **params)) as simulation:
        simulation.step(20)
        assert simulation.contacts.touching.tolist() == [[0, 1], [0, -1]]
        new = simulation.bodies.add_one(Sphere(0.1), (1, 0, 0.1), touch_events=True)
        simulation.bodies.remove([1])
        simulation.step(10)
        assert simulation.contacts.touching.tolist() == [[0, -1], [new, -1]]
        ends = simulation.events.touches.of("end")
        assert (ends.step.tolist(), ends.bodies.tolist()) == ([20], [[0, 1]])
        simulation.bodies.remove([0, new])
        assert len(simulation.contacts.touching) == 0
        simulation.step(10)
        assert len(simulation.events.touches.of("end")) == 3


@pytest.mark.parametrize("workers", [2, 1])
def test_a_checkpoint_has_the_touches_so_far(workers: int, tmp_path: Path) -> None:
    with Simulation(heap(9), Params.from_options(**INLINE, workers=2)) as simulation:
        simulation.step(80)
        checkpoint = Checkpoint(CheckpointWriter(tmp_path, simulation).save(simulation))
        before, touching = simulation.events.touches, simulation.contacts.touching
        simulation.step(60)
        wanted = simulation.events.touches
    assert 0 < len(before) < len(wanted)
    with checkpoint.resume(workers=workers) as simulation:
        assert same(simulation.events.touches, before)
        assert np.array_equal(simulation.contacts.touching, touching)
        simulation.step(60)
        assert same(simulation.events.touches, wanted) or workers == 1
        assert rows(simulation.events.touches)[: len(before) + 3] == rows(wanted)[: len(before) + 3]


def test_a_recording_has_the_touches_up_to_each_frame(tmp_path: Path) -> None:
    with Simulation(heap(11), Params.from_options(**INLINE, workers=2)) as simulation:
        simulation.step(10)
        run(simulation, 120, record=tmp_path / "heap", record_every=40)
        wanted = simulation.events.touches
    assert len(wanted) > 10
    recording = Recording(tmp_path / "heap")
    for frame in range(3):
        assert same(recording.touches(frame), wanted.taken(wanted.step < 10 + 40 * (frame + 1)))
    assert same(recording.touches(), wanted)
    with Simulation(heap(11, touch_events=False), Params.from_options(**INLINE)) as simulation:
        run(simulation, 3, record=tmp_path / "plain")
    plain = Recording(tmp_path / "plain")
    assert Touches not in plain.kinds
    assert len(plain.touches()) == 0
    assert not list((tmp_path / "plain").glob("touch_*"))


@pytest.mark.usefixtures("unhurried")
def test_a_run_with_touches_takes_many_steps_at_once() -> None:
    with Simulation(heap(), Params.from_options(**INLINE, workers=2)) as simulation:
        simulation.step(5)
        assert simulation.step_at_once(20) == 20


# ---- scenes ----------------------------------------------------------------------------------------------------------


def test_files_have_the_columns_where_they_are_used(tmp_path: Path) -> None:
    scene = Scene("columns")
    scene.add_bodies(Sphere(1.0), [(0, 0, 0), (3, 0, 0)], touch_events=[False, True])
    scene.add_body(Sphere(1.0), (6, 0, 0), hit_speed=0.5)
    again = Scene.load(scene.save(tmp_path / "scene.npz"))
    assert again.bodies.touch_events.tolist() == [False, True, False]
    assert again.bodies.hit_speed.tolist() == [np.inf, np.inf, 0.5]
    plain = Scene("plain")
    plain.add_body(Sphere(1.0))
    plain.save(tmp_path / "plain.npz")
    with np.load(tmp_path / "plain.npz") as file:
        assert not [name for name in file.files if "touch" in name or "hit" in name]


def test_wrong_options_are_refused() -> None:
    scene = Scene()
    for speed in (0.0, -1.0, "fast", [1.0, 2.0], np.nan):
        with pytest.raises(LapjointError, match="body 0: hit_speed is"):
            scene.add_body(Sphere(1.0), hit_speed=speed)
    for flag in (1, "yes", [True, False], None):
        with pytest.raises(LapjointError, match=r"body 0: touch_events is .*, expected true or false"):
            scene.add_body(Sphere(1.0), touch_events=flag)
    with pytest.raises(LapjointError, match="no touches are 'hits'; known kinds: begin, end, hit"):
        Touches.none().of("hits")


@pytest.mark.parametrize("params", [{"engine": "rapier"}, {"engine": "mujoco:float64"}, {"solver": "sequential"}])
@pytest.mark.parametrize("options", [{"touch_events": True}, {"hit_speed": 1.0}])
def test_engines_without_touches_refuse_them(params: dict[str, Any], options: dict[str, Any]) -> None:
    scene = Scene("drop")
    scene.add_body(Sphere(1.0), **options)
    with pytest.raises(LapjointError, match=r"scene 'drop': body 0 has (touch_events|a hit_speed), which"):
        Simulation(scene, Params.from_options(**INLINE, **params))
    plain = Scene("plain")
    plain.add_body(Sphere(1.0))
    if "mujoco" not in params.get("engine", ""):
        with Simulation(plain, Params.from_options(**INLINE, **params)) as simulation, pytest.raises(LapjointError):
            simulation.bodies.add_one(Sphere(0.1), (5, 0, 0), **options)


@pytest.mark.parametrize("runtime", ["inline", "process"])
def test_the_first_body_that_wants_touches_comes_while_it_runs(runtime: str) -> None:
    scene = Scene("later")
    scene.add_static(Plane())
    scene.add_body(Sphere(0.5), (5.0, 0.0, 0.5))
    with Simulation(scene, Params(workers=1, runtime=runtime)) as simulation:
        simulation.step(3)
        added = simulation.bodies.add_one(Sphere(0.5), (0.0, 0.0, 0.52), touch_events=True, hit_impulse=0.1)
        simulation.step(60)
        assert simulation.events.touches.bodies.tolist() == [[added, -1]]
        assert len(simulation.events.hits) > 0
