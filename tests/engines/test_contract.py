"""What every engine promises (`lapjoint/engines/base.py`): who is active, states, forces, steps, joints.

Contacts are in `test_contract_contacts.py`. Both run for every engine and precision in `engine_support.ENGINES`; what
an engine says it does not support is skipped by name.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine_support import Kind, Make, gaps_of
from lapjoint import (
    WORLD,
    Ball,
    Box,
    Capsule,
    ConvexHull,
    Engine,
    Hinge,
    LapjointError,
    Plane,
    Scene,
    Sphere,
)
from lapjoint.arrays import rotation as rot
from lapjoint.engines import Changes, PreparingEngine

NAMES = ["ada", "bob", "cy", "dee"]


def four(make: Make) -> Scene:
    """Four bodies in the air, four joints: ada-bob, bob-cy, cy-WORLD, ada-dee. An engine without boxes, capsules or
    hinges gets spheres and ball joints."""
    scene = Scene("four")
    scene.add_static(Plane())
    wanted = [Sphere(0.5), Box((1.0, 0.6, 0.4)), Capsule(0.2, 0.5), Box((0.5, 0.5, 0.5))]
    shapes = [shape if make.supports.has_shape(shape) else Sphere(0.3) for shape in wanted]
    hinge = Hinge((0.0, 1.0, 0.0)) if Hinge in make.supports.joints else Ball()
    turns = rot.from_axis_angle([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 1, 1]], [0.1, 0.7, 1.3, 2.9])
    scene.add_bodies(shapes, [(2.0 * k, 0.3 * k, 5.0) for k in range(4)], turns, names=NAMES)
    for joint, a, b in ((Ball(), 0, 1), (hinge, 1, 2), (Ball(), 2, WORLD), (Ball(), 0, 3)):
        scene.add_joint(joint, a, b, (2.0 * a + 1.0, 0.3, 5.0))
    return scene


def same_turn(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How far two quaternions are apart, whatever their sign."""
    return np.minimum(np.abs(a - b).max(axis=-1), np.abs(a + b).max(axis=-1))


def assert_same_states(got: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    flat = [0, 1, 2, 7, 8, 9, 10, 11, 12]
    np.testing.assert_allclose(got[:, flat], wanted[:, flat], rtol=tolerance, atol=tolerance)
    assert same_turn(got[:, 3:7], wanted[:, 3:7]).max(initial=0.0) < tolerance


def snapshot(engine: Engine) -> tuple[bytes, ...]:
    return engine.active_ids.tobytes(), engine.live_joint_ids.tobytes(), engine.get_states().tobytes()


# ---- an empty world ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bodies", [0, 4], ids=["no bodies", "no active bodies"])
def test_an_empty_world_can_be_stepped_and_read(make: Make, bodies: int) -> None:
    engine = make(four(make) if bodies else Scene("nothing"))
    engine.step(3)
    engine.contacts(now=True)
    engine.change(Changes(forgets_contacts=True))
    engine.activate([], np.empty((0, 13)))
    engine.deactivate([])
    assert engine.active_ids.tolist() == []
    assert engine.live_joint_ids.tolist() == []
    assert engine.get_states().shape == (0, 13)
    assert len(engine.contacts()) == 0
    assert engine.contacts().penetration == 0.0
    assert engine.report().residual == 0.0
    assert [len(part) for part in gaps_of(engine)] == [0, 0]


def test_the_contract_is_the_protocol(make: Make) -> None:
    assert isinstance(make(four(make)), Engine)


# ---- activate and deactivate -------------------------------------------------------------------------------------


def test_active_bodies_are_listed_in_ascending_order_whatever_the_order_they_came_in(make: Make) -> None:
    scene = four(make)
    engine = make(scene)
    engine.activate([3, 1], scene.states[[3, 1]])
    assert engine.active_ids.tolist() == [1, 3]
    engine.activate([0], scene.states[[0]])
    assert engine.active_ids.tolist() == [0, 1, 3]
    engine.deactivate([1])
    assert engine.active_ids.tolist() == [0, 3]
    engine.deactivate([3, 0])
    assert engine.active_ids.tolist() == []


def test_a_body_that_comes_back_has_the_state_it_comes_back_with(make: Make, rounding: float) -> None:
    scene = four(make)
    engine = make(scene)
    engine.activate(range(4), scene.states)
    engine.step(10)
    engine.deactivate([2])
    engine.activate([2], scene.states[[2]])
    assert_same_states(engine.get_states([2]), scene.states[[2]], 10 * rounding)


def test_inactive_bodies_neither_move_nor_touch(make: Make) -> None:
    scene = Scene()
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 1.0), (0.0, 0.0, 1.9)])
    engine = make(scene)
    engine.activate([1], scene.states[[1]])
    engine.step(5)
    assert len(engine.contacts()) == 0


MISTAKES: dict[str, tuple[Callable[[Engine, np.ndarray], object], str]] = {
    "activate an active body": (lambda e, s: e.activate([2, 1], s[[2, 1]]), "body 1 ('bob') is already active"),
    "activate a body twice": (lambda e, s: e.activate([2, 3, 2], s[[2, 3, 2]]), "body 2 ('cy') is activated twice"),
    "activate no body of the scene": (lambda e, s: e.activate([2, 4], s[[2, 3]]), "body 4 does not exist"),
    "activate a negative number": (lambda e, s: e.activate([2, -1], s[[2, 3]]), "body -1 does not exist"),
    "activate a number beyond 32 bits": (lambda e, s: e.activate([2**32 + 2], s[[2]]), "body 4294967298 does not"),
    "activate by a fraction": (lambda e, s: e.activate([2.0], s[[2]]), "expected integers"),
    "activate with a NaN": (lambda e, s: e.activate([2, 3], np.where([[0], [1]], np.nan, s[2:])), "body 3 ('dee')"),
    "activate with too few states": (lambda e, s: e.activate([2, 3], s[[2]]), "expected (2, 13)"),
    "deactivate an inactive body": (lambda e, s: e.deactivate([0, 2]), "body 2 ('cy') is not active"),
    "deactivate a body twice": (lambda e, s: e.deactivate([0, 0]), "body 0 ('ada') is deactivated twice"),
    "deactivate no body of the scene": (lambda e, s: e.deactivate([0, 9]), "body 9 does not exist"),
    "move an inactive body": (lambda e, s: e.set_states([0, 3], s[[1, 3]]), "body 3 ('dee') is not active"),
    "move to infinity": (lambda e, s: e.set_states([1, 0], np.where([[1], [0]], np.inf, s[:2])), "body 1 ('bob')"),
    "move to a number too large": (lambda e, s: e.set_states([0], np.full((1, 13), 1e308)), "body 0 ('ada')"),
    "move with no rotation": (lambda e, s: e.set_states([0], np.zeros((1, 13))), "body 0 ('ada')"),
    "move with too few columns": (lambda e, s: e.set_states([0, 1], s[:2, :12]), "shape (2, 12), expected (2, 13)"),
    "move with one number": (lambda e, s: e.set_states([0, 1], 1.0), "expected (2, 13)"),
    "move with text": (lambda e, s: e.set_states([0], "here"), "expected (1, 13)"),
    "read an inactive body": (lambda e, s: e.get_states([0, 2]), "body 2 ('cy') is not active"),
    "read into float32": (lambda e, s: e.get_states([0], np.empty((1, 13), np.float32)), "float64"),
    "read into too little room": (lambda e, s: e.get_states([0, 1], np.empty((1, 13))), "expected (2, 13)"),
    "read into too few rows": (lambda e, s: e.get_states([0, 1], np.empty((4, 13)), [2]), "rows are 1 for 2 bodies"),
    "read into a row beyond": (lambda e, s: e.get_states([0], np.empty((4, 13)), [4]), "from 0 to 3"),
    "read into every other row": (lambda e, s: e.get_states([0, 1], np.empty((4, 13))[::2]), "contiguous"),
    "push an inactive body": (lambda e, s: e.add_forces([1, 2], np.ones((2, 3))), "body 2 ('cy') is not active"),
    "push with a NaN": (lambda e, s: e.add_forces([1], [[0.0, np.nan, 0.0]]), "body 1 ('bob')"),
    "turn with a NaN": (lambda e, s: e.add_forces([1], [[0.0] * 3], [[np.nan] * 3]), "body 1 ('bob')"),
    "push in two dimensions": (lambda e, s: e.add_forces([1], [[0.0, 1.0]]), "expected (1, 3)"),
    "step backwards": (lambda e, s: e.step(-1), "-1"),
}


@pytest.mark.slow
def test_a_mistake_is_named_and_changes_nothing(make: Make) -> None:
    """One after the other in one engine, beside one in which nobody makes any."""
    scene = four(make)
    engine, untouched = make(scene), make(scene)
    for one in (engine, untouched):
        one.activate([0, 1], scene.states[[0, 1]])
        one.step(2)
    for mistake, (act, message) in MISTAKES.items():
        before = snapshot(engine)
        try:
            act(engine, scene.states)
        except LapjointError as error:
            said = str(error)
        else:
            raise AssertionError(f"{mistake}: nothing was raised")
        assert message in said, mistake
        assert snapshot(engine) == before, mistake
        for one in (engine, untouched):
            one.step(3)
        assert snapshot(engine) == snapshot(untouched), mistake


# ---- states ------------------------------------------------------------------------------------------------------


def test_states_come_back_as_they_were_set(make: Make, rounding: float) -> None:
    scene = four(make)
    engine = make(scene)
    engine.activate([0, 1, 2, 3], scene.states)
    assert_same_states(engine.get_states(), scene.states, 10 * rounding)
    rng = np.random.default_rng(5)
    states = rng.normal(size=(4, 13))
    states[:, 3:7] /= np.linalg.norm(states[:, 3:7], axis=1, keepdims=True)
    engine.set_states([0, 1, 2, 3], states)
    assert_same_states(engine.get_states(), states, 10 * rounding)


def test_states_are_read_and_written_in_the_order_asked_for(make: Make) -> None:
    scene = four(make)
    engine = make(scene)
    engine.activate([3, 0, 2], scene.states[[3, 0, 2]])
    all_states = engine.get_states()
    np.testing.assert_array_equal(engine.get_states([2, 0, 3]), all_states[[1, 0, 2]])
    engine.set_states([2, 0], all_states[[0, 1]])
    np.testing.assert_array_equal(engine.get_states()[[0, 1], :3], all_states[[1, 0], :3])


def test_states_are_written_into_the_array_given(make: Make) -> None:
    scene = four(make)
    engine = make(scene)
    engine.activate([0, 1], scene.states[:2])
    out = np.full((2, 13), -1.0)
    assert engine.get_states([1, 0], out) is out
    np.testing.assert_array_equal(out, engine.get_states([1, 0]))
    table = np.full((5, 13), 7.0)
    assert engine.get_states([1, 0], table, rows=[3, 1]) is table
    np.testing.assert_array_equal(table[[3, 1]], out)
    assert (table[[0, 2, 4]] == 7.0).all()
    assert out.dtype == np.float64


def test_a_skewed_body_keeps_the_frame_of_the_scene(make: Make, rounding: float) -> None:
    """An engine may turn a body to its principal axes inside; nobody outside may see it."""
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    hull = ConvexHull(np.random.default_rng(3).random((12, 3)) * [2.0, 1.0, 0.5])
    turn = rot.from_axis_angle((1.0, 2.0, 3.0), 0.8)
    scene.add_body(hull, (1.0, 2.0, 3.0), turn)
    off_diagonal = scene.bodies.inertia[0][np.triu_indices(3, 1)]
    assert np.abs(off_diagonal).max() > 0.01 * np.trace(scene.bodies.inertia[0])
    engine = make(scene)
    engine.activate([0], scene.states)
    assert_same_states(engine.get_states(), scene.states, 10 * rounding)
    engine.step(20)
    assert_same_states(engine.get_states(), scene.states, 100 * rounding)


# ---- forces ------------------------------------------------------------------------------------------------------


def test_a_force_acts_on_its_body_for_one_step(start: Make, rounding: float) -> None:
    scene = Scene(gravity=(0.0, 0.0, 0.0), timestep=0.01)
    box = Box((0.2, 0.3, 0.4))
    shape = box if start.supports.has_shape(box) else Sphere(0.2)
    scene.add_bodies(shape, [(0.0, 0.0, 0.0), (5.0, 0.0, 0.0)], mass=[2.0, 3.0])
    engine = start(scene)
    force, torque = np.array([3.0, -4.0, 5.0]), np.array([0.0, 0.02, 0.0])
    engine.add_forces([1], [force], [torque])
    engine.step(1)
    after = engine.get_states()
    np.testing.assert_allclose(after[1, 7:10], force / 3.0 * 0.01, rtol=10 * rounding)
    np.testing.assert_allclose(after[1, 11], 0.02 / scene.bodies.inertia[1, 1, 1] * 0.01, rtol=10 * rounding)
    assert not after[0, 7:].any()
    engine.step(1)
    np.testing.assert_allclose(engine.get_states()[1, 7:10], after[1, 7:10], rtol=rounding)


def test_forces_add_up_wait_for_the_step_and_last_for_its_first_timestep(start: Make, rounding: float) -> None:
    scene = Scene(gravity=(0.0, 0.0, 0.0), timestep=0.01)
    scene.add_body(Sphere(0.5), mass=4.0)
    engine = start(scene)
    engine.add_forces([0], [[8.0, 0.0, 0.0]])
    engine.contacts(now=True)
    engine.add_forces([0], (0.0, 8.0, 0.0))
    engine.step(3)
    np.testing.assert_allclose(engine.get_states()[0, 7:10], [0.02, 0.02, 0.0], rtol=10 * rounding)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_preparing_changes_nothing(make: Make, seed: int) -> None:
    """Bodies of all shapes fall on a heap, some are moved between steps, some come and go."""
    rng = np.random.default_rng(seed)
    shapes = [Sphere(0.3), Box((0.5, 0.4, 0.3)), Capsule(0.2, 0.4), ConvexHull(rng.random((12, 3)))]
    scene = Scene("heap", timestep=0.01, iterations=10)
    scene.add_static(Plane())
    turns = rng.normal(size=(40, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    places = rng.uniform(-0.8, 0.8, (40, 3)) * [1, 1, 2] + [0, 0, 2.2]
    shapes = [shape for shape in shapes if make.supports.has_shape(shape)]
    scene.add_bodies([shapes[k] for k in rng.integers(len(shapes), size=40)], places, turns)
    scene.add_joints(Ball(), [0, 1, 2], [1, 2, 3], places[:3])
    plain, prepared = make(scene), make(scene)
    if not isinstance(prepared, PreparingEngine):
        pytest.skip(f"the engine {make.kind[0]} prepares nothing")
    for engine in (plain, prepared):
        engine.activate(np.arange(40), scene.states)
    seen = 0
    for k in range(60):
        moving = np.sort(rng.choice(30, 6, replace=False))
        prepared.prepare(moving)
        states = plain.get_states(moving[:4])
        states[:, :3] += 0.01 * rng.normal(size=(4, 3))
        for engine in (plain, prepared):
            if k % 10 == 3:
                engine.deactivate(np.arange(35, 40))
            engine.set_states(moving[:4], states)
            if k % 10 == 5:
                engine.activate(np.arange(35, 40), scene.states[35:] + np.eye(13)[2] * 3)
            engine.step()
        assert snapshot(prepared) == snapshot(plain), f"step {k}"
        assert prepared.contacts().bodies.tobytes() == plain.contacts().bodies.tobytes()
        assert prepared.contacts().depth.tobytes() == plain.contacts().depth.tobytes()
        seen += len(plain.contacts())
    assert seen > 400
    prepared.prepare([])
    prepared.prepare([1])  # once is enough
    prepared.set_states([5], plain.get_states([5]))  # not what was said: allowed, and the step is whole
    prepared.step()
    assert np.isfinite(prepared.get_states()).all()
    prepared.deactivate([36])
    with pytest.raises(LapjointError, match="body 36 is not active"):
        prepared.prepare([36])


def test_iterations_can_change_between_steps(make: Make) -> None:
    """As good as an engine that had them from the start."""
    make.needs("iterations")
    scene = four(make)
    fresh, changed = make(scene, iterations=30), make(scene, iterations=1)
    for engine in (fresh, changed):
        engine.activate(np.arange(4), scene.states)
    changed.change(Changes(iterations=30))
    for engine in (fresh, changed):
        engine.step(2)
    assert snapshot(changed) == snapshot(fresh)
    changed.change(Changes(iterations=1))
    fresh.step(2)
    changed.step(2)
    assert snapshot(changed) != snapshot(fresh)
    with pytest.raises(LapjointError, match="iterations is 0, expected 1 to"):
        changed.change(Changes(iterations=0))


def test_forces_do_not_outlive_a_body(make: Make) -> None:
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    scene.add_body(Sphere(0.5))
    engine = make(scene)
    engine.activate([0], scene.states)
    engine.add_forces([0], [[1e6, 0.0, 0.0]])
    engine.deactivate([0])
    engine.activate([0], scene.states)
    engine.step(1)
    assert not engine.get_states()[0, 7:].any()


# ---- steps -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_many_steps_at_once_are_many_steps(start: Make) -> None:
    one, many = start(four(start)), start(four(start))
    for _ in range(50):
        one.step()
    many.step(50)
    assert snapshot(one) == snapshot(many)


def test_a_state_that_is_not_finite_names_the_body(start: Make, kind: Kind) -> None:
    scene = Scene()
    scene.add_bodies(Sphere(0.5), [(2.0 * k, 0.0, 0.0) for k in range(4)], names=NAMES)
    engine = start(scene)
    fast = scene.states[[1]]
    fast[0, 7] = 1e-7 * np.finfo(kind[1]).max
    engine.set_states([1], fast)
    with pytest.raises(LapjointError, match=r"body 1 \('bob'\).*not finite"):
        engine.step()


@pytest.mark.slow
def test_equal_input_gives_equal_bits(start: Make) -> None:
    def run() -> bytes:
        engine = start(four(start))
        trace = []
        for _ in range(100):
            engine.step()
            trace.append(engine.get_states().tobytes())
        return b"".join(trace)

    assert run() == run()


# ---- joints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("active", "live"),
    [([0], []), ([2], [2]), ([0, 1], [0]), ([1, 2], [1, 2]), ([0, 3], [3]), ([0, 2, 3], [2, 3]), (range(4), range(4))],
)
def test_a_joint_is_live_when_both_its_bodies_are_active(make: Make, active: list[int], live: list[int]) -> None:
    scene = four(make)
    engine = make(scene)
    for body in reversed(active):
        engine.activate([body], scene.states[[body]])
    assert engine.live_joint_ids.tolist() == list(live)
    at_once = make(scene)
    at_once.activate(active, scene.states[list(active)])
    assert at_once.live_joint_ids.tolist() == list(live)
    at_once.deactivate(active)
    assert at_once.live_joint_ids.tolist() == []


@pytest.mark.slow
def test_a_live_joint_holds_and_a_dead_one_does_not(make: Make) -> None:
    scene = Scene()
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 5.0), (2.0, 0.0, 5.0)])
    scene.add_joint(Ball(), 0, WORLD, (0.0, 0.0, 5.5))
    scene.add_joint(Ball(), 1, 0, (1.0, 0.0, 5.0))
    engine = make(scene)
    engine.activate([0, 1], scene.states)
    engine.deactivate([0])
    engine.step(100)
    np.testing.assert_allclose(engine.get_states([1])[0, 9], -9.81 * 100 * scene.timestep, rtol=1e-4)
    engine.activate([0], scene.states[[0]])
    engine.deactivate([1])
    engine.step(100)
    assert abs(engine.get_states([0])[0, 9]) < 1e-3


def test_joint_gaps_are_those_of_the_states(start: Make, rounding: float) -> None:
    scene = Scene()
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 5.0), (2.0, 0.0, 5.0)])
    scene.add_joint(Ball(), 0, WORLD, (0.0, 0.0, 5.5))
    scene.add_joint(Ball(), 1, 0, (1.0, 0.0, 5.0))
    engine = start(scene)
    moved = scene.states[[1]]
    moved[0, 0] += 0.3
    engine.set_states([1], moved)
    joints, gaps = gaps_of(engine)
    assert joints.tolist() == [0, 1]
    np.testing.assert_allclose(gaps, [0.0, 0.3], atol=rounding)
    engine.deactivate([0])
    assert gaps_of(engine)[0].tolist() == []


def test_another_engine_goes_on_from_a_memory(make: Make, start: Make, rounding: float) -> None:
    """With the feature "contact cache" bit for bit, see test_contract_state.py; without it from the states."""
    scene = pair_of_balls()
    engine, twin = start(scene), start(scene)
    engine.step(5)
    twin.restore(engine.state())
    assert np.array_equal(twin.active_ids, engine.active_ids)
    for _ in range(3):
        assert np.allclose(twin.get_states(), engine.get_states(), rtol=0, atol=100 * rounding)
        for each in (engine, twin):
            each.step()


def pair_of_balls() -> Scene:
    """Two balls in free flight, apart."""
    scene = Scene("balls", timestep=0.005)
    scene.add_body(Sphere(0.3), (0.0, 0.0, 5.0), linear_velocity=(1.0, 0.0, 0.0))
    scene.add_body(Sphere(0.3), (2.0, 0.0, 5.0), angular_velocity=(0.0, 1.0, 0.0))
    return scene
