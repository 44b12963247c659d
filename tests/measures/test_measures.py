"""Measures: what is known by hand, what must not change, and what dividing a scene does to them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lapjoint import (
    WORLD,
    Ball,
    Box,
    Hinge,
    LapjointError,
    Params,
    Plane,
    Scene,
    Simulation,
    SixAxis,
    Slider,
    Sphere,
    Spring,
    scenes,
)
from lapjoint.arrays import rotation
from lapjoint.measures import (
    angular_momentum,
    disagreements,
    joint_gaps,
    kinetic_energy,
    linear_momentum,
    motion,
    potential_energy,
)
from lapjoint.measures.one_step import WARM_STEPS, compare
from lapjoint.measures.step import UNITS, Measures, checked_names

Array = NDArray[np.float64]
ROOT = Path(__file__).parents[2]
SEEDS = st.integers(0, 2**32 - 1)


def measured(scene: Scene, steps: int, names: str = "all", every: int = 1, **params: Any) -> dict[str, Array]:
    """Measures of every step of a run, by name."""
    with Simulation(scene, Params.from_options(runtime="inline", **params)) as simulation:
        measures = Measures(simulation, names, every)
        rows = []
        for _ in range(steps):
            measures.before_step(simulation)
            simulation.step()
            rows.append(measures.after_step(simulation))
    return {name: np.array([row[name] for row in rows]) for name in measures.names}


def random_states(rng: np.random.Generator, count: int) -> Array:
    states = rng.normal(size=(count, 13))
    states[:, 3:7] /= np.linalg.norm(states[:, 3:7], axis=1, keepdims=True)
    return states


def random_scene(rng: np.random.Generator, count: int = 7) -> tuple[Scene, Array]:
    """Boxes of all sizes, with tensors that are not diagonal, and random states."""
    scene = Scene(gravity=(0, 0, 0))
    root = rng.normal(size=(count, 3, 3))
    tensors = root @ root.transpose(0, 2, 1) + 3 * np.eye(3)
    trace = np.trace(tensors, axis1=1, axis2=2)
    tensors = trace[:, None, None] * np.eye(3) - tensors  # a tensor that a body can have
    sizes = rng.uniform(0.1, 2, (count, 3))
    scene.add_bodies([Box(tuple(size)) for size in sizes.tolist()], rng.normal(size=(count, 3)), inertia=tensors)
    return scene, random_states(rng, count)


# ---- the table ---------------------------------------------------------------------------------------------------


def test_the_table_in_the_documentation_is_what_there_is() -> None:
    text = (ROOT / "docs" / "measures.md").read_text()
    rows = re.findall(r"^\| `([a-z_]+)` \| (\w+) \| ([^|]+) \|", text, re.MULTILINE)
    assert {name: unit for name, _, unit in rows} == UNITS
    assert [name for name, _, _ in rows] == list(UNITS)
    with Simulation(scenes.build("chain", 6), Params(workers=2, runtime="inline")) as simulation:
        measures = Measures(simulation)
        assert {name: {"workers": 2}.get(count) or int(count) for name, count, _ in rows} == measures.counts
        measures.before_step(simulation)
        simulation.step()
        values = measures.after_step(simulation)
    assert {name: np.size(value) for name, value in values.items()} == measures.counts
    assert list(values) == list(UNITS)


def test_names_are_a_list_a_text_or_all() -> None:
    assert checked_names("all") == tuple(UNITS)
    assert checked_names("joint_gap_max, kinetic_energy,joint_gap_max") == ("joint_gap_max", "kinetic_energy")
    assert checked_names(["kinetic_energy"]) == ("kinetic_energy",)
    assert checked_names(()) == ()
    for wrong in ("gap", "", "kinetic_energy,", ["all", "gap"]):
        with pytest.raises(LapjointError, match="known measures: all, joint_gap_sum, joint_gap_max"):
            checked_names(wrong)


def test_only_what_was_asked_for_is_measured() -> None:
    found = measured(scenes.build("chain", 6), 2, "kinetic_energy,joint_gap_max")
    assert list(found) == ["kinetic_energy", "joint_gap_max"]


def test_mistakes_are_named() -> None:
    scene, states = random_scene(np.random.default_rng(0), 3)
    for function in (joint_gaps, kinetic_energy, potential_energy, linear_momentum, angular_momentum):
        for wrong in (states[:2], states[:, :12], states[0], []):
            with pytest.raises(LapjointError, match=r"expected \(3, 13\)"):
                function(scene, wrong)
    for joint in (-1, 0):
        with pytest.raises(LapjointError, match=f"joint {joint} does not exist, the scene has 0 joints"):
            joint_gaps(scene, states, [joint])
    with Simulation(scene, Params(runtime="inline")) as simulation:
        for every in (0, -3, 1.5):
            with pytest.raises(LapjointError, match=f"one_step_every is {every}"):
                Measures(simulation, "one_step_error", every)  # type: ignore[arg-type]


def test_a_scene_without_bodies_has_measures_too() -> None:
    found = measured(Scene("nothing"), 2)
    assert all((values == 0).all() for values in found.values())


# ---- energy and momentum -----------------------------------------------------------------------------------------


def test_a_falling_ball() -> None:
    scene = Scene(gravity=(0, 0, -9.81), timestep=0.002)
    scene.add_body(Sphere(0.5), (3, 4, 20), mass=2.0)
    found = measured(scene, 200, precision="float64")
    step = np.arange(1, 201)
    speed = 9.81 * 0.002 * step
    height = 20 - 9.81 / 2 * (0.002 * step) ** 2
    assert np.allclose(found["kinetic_energy"], 0.5 * 2.0 * speed**2, rtol=1e-9)
    assert np.allclose(found["potential_energy"], 2.0 * 9.81 * height, rtol=1e-9)
    momentum = np.stack([0 * speed, 0 * speed, -2.0 * speed], axis=1)
    assert np.allclose(found["linear_momentum"], momentum, atol=1e-9)
    assert np.allclose(found["angular_momentum"], np.cross([3, 4, 0], momentum), atol=1e-9)
    total = found["kinetic_energy"] + found["potential_energy"]
    assert np.ptp(total) < 0.01 * found["kinetic_energy"][-1]


def test_potential_energy_follows_gravity_wherever_it_points() -> None:
    scene = Scene(gravity=(1.0, -2.0, -3.0))
    scene.add_body(Sphere(1), (1, 0, 0), mass=5)
    scene.add_body(Sphere(1), (0, 2, 10), mass=2)
    assert potential_energy(scene, scene.states) == pytest.approx(-5 * 1 + 2 * 2 * 2 + 2 * 3 * 10)


def test_a_spinning_box_wherever_it_is_turned() -> None:
    scene = Scene()
    scene.add_body(Box((1, 2, 3)), mass=12.0)  # moments: 12 / 12 * (4 + 9) and so on
    moments = np.array([13.0, 10.0, 5.0])
    for turn in ([1, 0, 0, 0], rotation.from_axis_angle([1, 2, 3], 1.0), rotation.from_axis_angle([0, 1, 0], 2.0)):
        for axis in range(3):
            states = scene.states.copy()
            states[0, 3:7] = turn
            states[0, 10:] = rotation.rotate(turn, 4.0 * np.eye(3)[axis])
            assert kinetic_energy(scene, states) == pytest.approx(0.5 * moments[axis] * 16)
            assert np.allclose(angular_momentum(scene, states), moments[axis] * states[0, 10:])


def closed_scene() -> Scene:
    """Balls, bars and joints flying into each other, with nothing around them."""
    rng = np.random.default_rng(4)
    scene = Scene("closed", gravity=(0, 0, 0), timestep=0.002, iterations=50)
    place = 1.1 * np.stack(np.meshgrid(*[np.arange(3)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    scene.add_bodies(Sphere(0.5), place, linear_velocities=2 * rng.normal(size=(27, 3)))
    bars = scene.add_bodies(Box((0.8, 0.2, 0.2)), [(i - 1.0, 0.3, 4.0) for i in range(4)], linear_velocities=(0, 0, -8))
    scene.add_joints(Ball(), bars[:-1], bars[1:], [(i - 0.5, 0.3, 4.0) for i in range(3)])
    return scene


def test_nothing_changes_the_momentum_of_a_closed_scene() -> None:
    scene = closed_scene()
    found = measured(scene, 400, "linear_momentum,angular_momentum,kinetic_energy,penetration_max", precision="float64")
    before = motion(scene, scene.states)
    mass = scene.bodies.mass.sum()
    assert found["penetration_max"].max() > 0, "they did meet"
    assert found["kinetic_energy"][-1] < 0.8 * before[0]
    assert np.abs(found["linear_momentum"] - before[1:4]).max() < 1e-9 * mass
    # An impulse acts on two bodies at two points, one on each, which a gap or a penetration is apart.
    assert np.abs(found["angular_momentum"] - before[4:]).max() < 0.02 * np.abs(before[4:]).max()


def test_two_boxes_that_meet_off_centre_begin_to_turn_and_keep_their_angular_momentum() -> None:
    scene = Scene(gravity=(0, 0, 0), timestep=0.001)
    scene.add_body(Box((1, 1, 1)), (-1, 0.4, 0), linear_velocity=(4, 0, 0), mass=2)
    scene.add_body(Box((1, 1, 1)), (1, -0.4, 0), linear_velocity=(-4, 0, 0), mass=2)
    with Simulation(scene, Params(runtime="inline", precision="float64")) as simulation:
        measures = Measures(simulation, "angular_momentum")
        simulation.step(500)
        measures.before_step(simulation)
        simulation.step()
        found = measures.after_step(simulation)["angular_momentum"]
        spin = simulation.states[:, 12]
    expected = [0, 0, -2 * 2 * 4 * 0.4]
    assert np.allclose(angular_momentum(scene, scene.states), expected)
    assert np.allclose(found, expected, rtol=0.01, atol=1e-6)
    assert (spin < -0.5).all()


@given(SEEDS)
@settings(max_examples=50)
def test_moving_and_turning_everything(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scene, states = random_scene(rng)
    energy, linear, angular = kinetic_energy(scene, states), *np.split(motion(scene, states)[1:], 2)
    shift, mass = rng.normal(size=3), scene.bodies.mass.sum()
    moved = states.copy()
    moved[:, :3] += shift
    assert kinetic_energy(scene, moved) == pytest.approx(energy)
    assert potential_energy(scene, moved) == 0, "there is no gravity"
    assert np.allclose(linear_momentum(scene, moved), linear)
    assert np.allclose(angular_momentum(scene, moved), angular + np.cross(shift, linear))
    faster = states.copy()
    faster[:, 7:10] += shift
    assert np.allclose(linear_momentum(scene, faster), linear + mass * shift)
    assert kinetic_energy(scene, faster) == pytest.approx(energy + linear @ shift + 0.5 * mass * shift @ shift)
    turn = random_states(rng, 1)[0, 3:7]
    turned = states.copy()
    turned[:, 3:7] = rotation.multiply(turn, states[:, 3:7])
    for columns in (slice(0, 3), slice(7, 10), slice(10, 13)):
        turned[:, columns] = rotation.rotate(turn, states[:, columns])
    assert kinetic_energy(scene, turned) == pytest.approx(energy)
    assert np.allclose(linear_momentum(scene, turned), rotation.rotate(turn, linear))
    assert np.allclose(angular_momentum(scene, turned), rotation.rotate(turn, angular))
    scene.gravity = rng.normal(size=3)
    difference = potential_energy(scene, moved) - potential_energy(scene, states)
    assert difference == pytest.approx(-mass * scene.gravity @ shift)


@given(SEEDS)
@settings(max_examples=50)
def test_motion_is_what_it_is_by_matrices(seed: int) -> None:
    scene, states = random_scene(np.random.default_rng(seed))
    mass, inertia = scene.bodies.mass, scene.bodies.inertia
    place, turn = states[:, :3], rotation.to_matrix(states[:, 3:7])
    velocity, spin = states[:, 7:10], states[:, 10:]
    moment = np.einsum("nij,njk,nlk,nl->ni", turn, inertia, turn, spin)
    energy = 0.5 * (mass @ (velocity**2).sum(axis=1) + (moment * spin).sum())
    linear = mass[:, None] * velocity
    angular = np.cross(place, linear) + moment
    assert np.allclose(motion(scene, states), [energy, *linear.sum(axis=0), *angular.sum(axis=0)])


# ---- joint gaps --------------------------------------------------------------------------------------------------


def gaps_by_arrays(scene: Scene, states: Array) -> Array:
    """The same in NumPy, all joints at once."""
    joints = scene.joints
    a, b = joints.body_a, joints.body_b
    world = (b == WORLD)[:, None]
    anchor_a = states[a, :3] + rotation.rotate(states[a, 3:7], joints.frame_a[:, :3])
    b_turn = np.where(world, rotation.IDENTITY, states[b, 3:7])
    anchor_b = np.where(world, 0.0, states[b, :3]) + rotation.rotate(b_turn, joints.frame_b[:, :3])
    axes = rotation.multiply(b_turn, joints.frame_b[:, 3:])
    offset = rotation.rotate(rotation.conjugate(axes), anchor_a - anchor_b)
    beyond = offset - np.clip(offset, joints.lower[:, :3], joints.upper[:, :3])
    return np.linalg.norm(np.where(joints.spring_stiffness[:, :3] > 0, 0.0, beyond), axis=1)


def jointed_scene(rng: np.random.Generator) -> Scene:
    """Every kind of joint, between bodies and to the world."""
    scene, _ = random_scene(rng)
    limited = SixAxis(linear=((-1, 1), (-0.5, np.inf), (0, 0)), springs={0: Spring(3.0)}, axis=(0, 1, 1))
    for joint in (Ball(), Hinge((1, 2, 3)), Slider((0, 1, 0)), Slider((1, 1, 0), limits=(-0.3, 0.2)), limited):
        a, b = rng.permutation(scene.body_count)[:2].tolist()
        scene.add_joint(joint, a, b, rng.normal(size=3))
        scene.add_joint(joint, a, WORLD, rng.normal(size=3))
    return scene


@pytest.mark.slow
@given(SEEDS)
@settings(max_examples=50)
def test_joint_gaps_are_what_they_are_by_arrays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scene = jointed_scene(rng)
    assert np.allclose(joint_gaps(scene, scene.states), 0, atol=1e-12)
    states = random_states(rng, scene.body_count)
    gaps = joint_gaps(scene, states)
    assert np.allclose(gaps, gaps_by_arrays(scene, states), rtol=1e-12, atol=1e-12)
    some = rng.permutation(scene.joint_count)[:4]
    assert joint_gaps(scene, states, some).tolist() == gaps[some].tolist()
    # As a whole, scene and world, moved and turned: joints between bodies do not notice.
    turn, shift = random_states(rng, 1)[0, 3:7], rng.normal(size=3)
    states[:, 3:7] = rotation.multiply(turn, states[:, 3:7])
    states[:, :3] = shift + rotation.rotate(turn, states[:, :3])
    inner = scene.joints.body_b != WORLD
    assert np.allclose(joint_gaps(scene, states)[inner], gaps[inner])


def test_sum_and_largest_joint_gap_by_hand() -> None:
    scene = Scene(gravity=(0, 0, 0))
    bodies = scene.add_bodies(Sphere(0.5), [(2.0 * i, 0, 0) for i in range(3)])
    scene.add_joints(Ball(), bodies[:-1], bodies[1:], [(1.0, 0, 0), (3.0, 0, 0)])
    states = scene.states.copy()
    states[2, :3] += (0.3, 0, 0.4)
    assert joint_gaps(scene, states).tolist() == pytest.approx([0, 0.5])
    states[0, :3] += (0, 0.25, 0)
    assert joint_gaps(scene, states).tolist() == pytest.approx([0.25, 0.5])


# ---- penetration -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_penetration_counts_every_pair_once_and_no_pair_that_is_apart(workers: int) -> None:
    """A row of balls on the ground, in each other by 0, 1 and 2 cm; the last two are 5 mm apart."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add_static(Plane())
    places = np.cumsum([0, 1.0, 0.99, 0.98, 1.005])
    scene.add_bodies(Sphere(0.5), [(x, 0, 0.5 - 0.03 * (i == 4)) for i, x in enumerate(places)], labels=[0, 0, 0, 1, 1])
    depth = [0.5 + 0.5 - np.hypot(1.005, 0.03), 0.01, 0.02, 0.03]
    assert depth[0] < 0
    found = measured(scene, 1, "penetration_sum,penetration_max", precision="float64", workers=workers)
    assert found["penetration_sum"][0] == pytest.approx(0.06, abs=1e-6)
    assert found["penetration_max"][0] == pytest.approx(0.03, abs=1e-6)


# ---- disagreement ------------------------------------------------------------------------------------------------


def test_disagreement_by_hand() -> None:
    rows = np.zeros((7, 13))
    rows[:, 3] = 1
    rows[1, :3] = 3, 4, 0  # body 0: two workers, 5 m and 2 m/s apart
    rows[1, 7:10] = 0, 0, 2
    rows[3, :3] = 1, 0, 0  # body 1: the first and the third of three are the farthest apart in position
    rows[4, :3] = -1, 1, 0
    rows[3, 7:10] = 1, 0, 0
    position, velocity = disagreements(np.array([0, 2, 5, 7], np.int32), rows)
    assert position.tolist() == pytest.approx([5, 5**0.5, 0])
    assert velocity.tolist() == pytest.approx([2, 1, 0])
    for empty in disagreements(np.zeros(1, np.int32), rows):
        assert empty.tolist() == []


@given(SEEDS)
@settings(max_examples=50)
def test_disagreement_is_that_of_the_two_farthest_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    offset = np.cumsum([0, *rng.integers(2, 6, rng.integers(0, 6))]).astype(np.int32)
    rows = random_states(rng, int(offset[-1]) + 2)  # there are rows beyond, of an earlier step
    for found, columns in zip(disagreements(offset, rows), (slice(0, 3), slice(7, 10)), strict=True):
        for k, value in enumerate(found):
            own = rows[offset[k] : offset[k + 1], columns]
            assert value == pytest.approx(max(np.linalg.norm(x - y) for x in own for y in own))


def test_workers_disagree_at_an_interface_alone_and_less_with_overlap() -> None:
    names = ",".join(name for name in UNITS if name.startswith("disagreement"))
    scene = scenes.build("chain")
    alone = measured(scene, 20, names)
    assert all((values == 0).all() for values in alone.values())
    narrow, wide = (
        measured(scene, 60, names, workers=2, iterations=5, growth_depth=depth, search_depth=9) for depth in (0, 3)
    )
    for values in narrow.values():
        assert (values[10:] > 0).all(), "once the chain has begun to move"
    for what in ("position", "velocity"):
        largest, mean = (narrow[f"disagreement_{what}_{kind}"] for kind in ("max", "mean"))
        assert (largest >= mean).all()
        assert wide[f"disagreement_{what}_mean"].mean() < mean.mean()
    # Both start from the same states: positions differ by what velocities differ in one step.
    apart = scene.timestep * narrow["disagreement_velocity_max"]
    assert np.allclose(narrow["disagreement_position_max"], apart, rtol=0.01, atol=1e-6)


# ---- residual ----------------------------------------------------------------------------------------------------


def test_every_worker_has_its_residual() -> None:
    with Simulation(scenes.build("bridge"), Params(workers=3, runtime="inline", coupling="blend")) as simulation:
        measures = Measures(simulation, "worker_residual")
        for _ in range(3):
            simulation.step()
            residuals = measures.after_step(simulation)["worker_residual"]
            assert np.shape(residuals) == (3,)
            assert np.max(residuals) == simulation.profile.residual > 0


# ---- one-step error ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size", "steps"), [("bowl", 80, 300), ("building", 75, 120), ("chain-net", 12, 40)])
def test_one_worker_has_no_one_step_error(name: str, size: int, steps: int) -> None:
    """Bit for bit, with contacts that came and went: the engine remembers what the worker does."""
    found = measured(scenes.build(name, size), steps, "one_step_error,one_step_difference,penetration_max")
    assert found["penetration_max"][-1] > 0
    assert (found["one_step_error"] == 0).all()
    assert (found["one_step_difference"] == 0).all()


@pytest.mark.slow
def test_the_one_step_error_falls_with_the_growth_depth() -> None:
    scene = scenes.build("bridge")
    names = "one_step_error,one_step_difference"
    runs = [
        measured(scene, 60, names, workers=2, iterations=100, growth_depth=depth, search_depth=2 * depth + 2)
        for depth in (0, 1, 3)
    ]
    error, difference = ([run[name].mean() for run in runs] for name in ("one_step_error", "one_step_difference"))
    assert error[0] > error[1] > error[2] > 0
    assert difference[1] < 0.5 * difference[0]
    assert difference[2] < 0.5 * difference[1]


@pytest.mark.slow
def test_which_steps_are_compared() -> None:
    scene = scenes.build("chain", 12)
    exact = measured(scene, 60, "one_step_error", workers=2, coupling="blend")["one_step_error"]
    assert np.isfinite(exact).all()
    for every in (3, WARM_STEPS + 1, WARM_STEPS + 2, 25):
        found = measured(scene, 60, "one_step_error", every, workers=2, coupling="blend")["one_step_error"]
        compared = np.isfinite(found)
        assert np.flatnonzero(compared).tolist() == list(range(every - 1, 60, every))
        if every <= WARM_STEPS + 1:
            assert found[compared].tolist() == exact[compared].tolist(), "the engine took every step"
        else:
            assert np.allclose(found[compared], exact[compared], rtol=0.02)


def test_the_engine_feels_the_same_forces_and_iterations() -> None:
    with Simulation(closed_scene(), Params(runtime="inline", solver="sequential")) as simulation:
        measures = Measures(simulation, "one_step_error")
        for step in range(40):
            if step % 3 == 0:
                simulation.bodies.add_forces([1, 5, 28], [(300 * step, 0, 0)] * 3, [(0, 10 * step, 0)] * 3)
                simulation.bodies.add_forces([5], [(0, 0, 100)])
            if step % 7 == 3:
                simulation.workers.set_iterations(3 + step)
            measures.before_step(simulation)
            simulation.step()
            assert measures.after_step(simulation)["one_step_error"] == 0


@pytest.mark.slow
def test_measuring_leaves_the_run_as_it_is() -> None:
    scene = scenes.build("bowl", 60)
    hashes = []
    for names in ((), "all"):
        with Simulation(scene, Params(workers=2, runtime="inline")) as simulation:
            measures = Measures(simulation, names)
            for _ in range(100):
                measures.before_step(simulation)
                simulation.step()
                measures.after_step(simulation)
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]


def test_error_and_difference_by_hand() -> None:
    start, one = np.zeros((4, 3)), np.zeros((4, 3))
    one[0] = 3, 4, 0
    many = one.copy()
    assert compare(start, many, one) == (0, 0)
    many[1] = 0, 0, 1
    assert compare(start, many, one) == (pytest.approx(1 / 5), pytest.approx(1 / 2))
    assert compare(one, many, one) == (np.inf, pytest.approx(1 / 2))
    assert compare(one, one, one) == (0, 0), "nothing moves"
