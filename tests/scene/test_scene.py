"""A scene refuses every mistake with a message that names the body, and stays as it was."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lapjoint import (
    FREE,
    LOCKED,
    WORLD,
    Ball,
    Box,
    ConvexHull,
    Fixed,
    Hinge,
    LapjointError,
    Material,
    Motor,
    Params,
    PenetrationWarning,
    Plane,
    Scene,
    Simulation,
    SixAxis,
    Slider,
    Sphere,
    Spring,
    TriangleMesh,
)
from lapjoint.arrays import rotation as rot
from lapjoint.scene.scene import BODY_OPTIONS

NAN, INF = np.nan, np.inf
CUBE = Box((1.0, 1.0, 1.0))
MESH = TriangleMesh(np.eye(3), [(0, 1, 2)])


def two() -> Scene:
    """Two bodies, the first of them named."""
    scene = Scene("two")
    scene.add_body(Sphere(0.5), name="ada")
    scene.add_body(Sphere(0.5), (2.0, 0.0, 0.0))
    return scene


def refused(act: Callable[[Scene], object], *words: str) -> None:
    """`act` on a scene raises a LapjointError with all these words, and changes nothing."""
    scene = two()
    with pytest.raises(LapjointError) as caught:
        act(scene)
    for word in words:
        assert word in str(caught.value)
    assert scene == two()
    assert scene.add_body(CUBE, name="new") == 2


# ---- bodies ------------------------------------------------------------------------------------------------------

BODY_MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "unknown option": ({"weight": 1.0}, "no option named 'weight'; known options: linear_velocities"),
    "singular and plural": ({"label": 1, "labels": 2}, "both"),
    "mass zero": ({"mass": 0.0}, "mass is 0"),
    "mass negative": ({"mass": -1.0}, "mass is -1"),
    "mass NaN": ({"mass": NAN}, "mass is nan"),
    "mass infinite": ({"mass": INF}, "mass is inf"),
    "mass text": ({"mass": "heavy"}, "mass is heavy"),
    "mass for two": ({"mass": [1.0, 2.0]}, "mass is [1.0, 2.0]"),
    "density zero": ({"density": 0.0}, "density is 0"),
    "mass and density": ({"mass": 1.0, "density": 1.0}, "both mass and density"),
    "position NaN": ({"position": (0.0, NAN, 0.0)}, "position"),
    "position of two": ({"position": (0.0, 1.0)}, "expected 3 numbers"),
    "position of one": ({"position": 5.0}, "expected 3 numbers"),
    "position text": ({"position": "there"}, "position is there"),
    "position None": ({"position": None}, "position"),
    "quaternion too long": ({"quaternion": (1.0, 1.0, 0.0, 0.0)}, "has length 1.41421, expected 1"),
    "quaternion zero": ({"quaternion": (0.0, 0.0, 0.0, 0.0)}, "has length 0, expected 1"),
    "quaternion of three": ({"quaternion": (1.0, 0.0, 0.0)}, "expected 4 numbers"),
    "velocity NaN": ({"linear_velocity": (NAN, 0.0, 0.0)}, "linear velocity"),
    "velocity of one": ({"linear_velocity": 1.0}, "expected 3 numbers"),
    "spin infinite": ({"angular_velocity": (0.0, 0.0, INF)}, "angular velocity"),
    "spin of four": ({"angular_velocity": (0.0, 0.0, 0.0, 0.0)}, "expected 3 numbers"),
    "inertia impossible": ({"inertia": (1.0, 1.0, 3.0)}, "no one is larger than the sum"),
    "inertia zero": ({"inertia": (1.0, 1.0, 0.0)}, "expected positive"),
    "inertia of four": ({"inertia": np.ones((2, 2))}, "inertia has shape (2, 2)"),
    "inertia crooked": ({"inertia": [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]}, "symmetric"),
    "inertia NaN": ({"inertia": (NAN, 1.0, 1.0)}, "finite"),
    "inertia text": ({"inertia": "round"}, "inertia"),
    "material text": ({"material": "oak"}, "expected a Material"),
    "group negative": ({"group": -1}, "group is -1"),
    "group beyond 32 bits": ({"group": 2**32}, "group is 4294967296"),
    "mask fraction": ({"mask": 1.5}, "mask is 1.5"),
    "label fraction": ({"label": 0.5}, "label is 0.5"),
    "label NaN": ({"label": NAN}, "label"),
    "label beyond 32 bits": ({"label": 2**31}, "label is 2147483648"),
}


@pytest.mark.parametrize("mistake", BODY_MISTAKES)
def test_a_body_with_a_mistake_is_refused_by_number_and_name(mistake: str) -> None:
    options, message = BODY_MISTAKES[mistake]
    refused(lambda scene: scene.add_body(CUBE, name="eve", **options), "body 2 ('eve'): ", message)


@pytest.mark.parametrize("shape", [Plane(), MESH], ids=["plane", "mesh"])
def test_shapes_that_can_only_be_static_are_refused_for_bodies(shape: Any) -> None:
    refused(lambda scene: scene.add_body(shape, name="eve"), "body 2 ('eve')", "can only be static, use add_static")


@pytest.mark.parametrize("shape", ["ball", None, Sphere])
def test_what_is_no_shape_is_refused(shape: Any) -> None:
    refused(lambda scene: scene.add_body(shape, name="eve"), "body 2 ('eve')", "is not a shape")
    refused(lambda scene: scene.add_static(shape), "static body 0", "is not a shape")


def test_names_are_different_texts() -> None:
    refused(lambda scene: scene.add_body(CUBE, name="ada"), "body 2 ('ada')", "already taken by body 0")
    pair = np.zeros((2, 3))
    refused(lambda scene: scene.add_bodies(CUBE, pair, names=["eve", "eve"]), "body 3 ('eve')", "taken by body 2")
    refused(lambda scene: scene.add_bodies(CUBE, pair, names=["eve"]), "body 2 ('eve')", "1 names for 2 bodies")
    refused(lambda scene: scene.add_body(CUBE, name=""), "body 2", "expected a text")
    refused(lambda scene: scene.add_body(CUBE, name=7), "body 2", "expected a text")  # type: ignore[arg-type]


BULK_MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "one wrong mass": ({"mass": [1.0, 0.0]}, "body 3 ('abe'): mass is 0"),
    "one wrong place": ({"positions": [(0.0, 0.0, 0.0), (0.0, 0.0, INF)]}, "body 3 ('abe'): position"),
    "one wrong turn": ({"quaternions": [(1.0, 0, 0, 0), (2.0, 0, 0, 0)]}, "body 3 ('abe'): quaternion"),
    "one wrong shape": ({"shape": [CUBE, Plane()]}, "body 3 ('abe'): a Plane can only be static"),
    "one wrong tensor": ({"inertia": [np.eye(3), -np.eye(3)]}, "body 3 ('abe'): principal moments"),
    "three shapes for two": ({"shape": [CUBE, CUBE, CUBE]}, "3 shapes for 2 bodies"),
    "no shapes for two": ({"shape": []}, "0 shapes for 2 bodies"),
    "three velocities for two": ({"linear_velocities": np.zeros((3, 3))}, "expected 3 numbers or 2 rows"),
    "a column of velocities": ({"linear_velocities": np.zeros((2, 1))}, "expected 3 numbers or 2 rows"),
    "places in a plane": ({"positions": np.zeros((2, 2))}, "expected rows of 3 numbers"),
    "places in a block": ({"positions": np.zeros((2, 2, 3))}, "expected rows of 3 numbers"),
    "places of text": ({"positions": "here"}, "expected rows of 3 numbers"),
    "no places": ({"positions": []}, "expected rows of 3 numbers"),
}


@pytest.mark.parametrize("mistake", BULK_MISTAKES)
def test_one_mistake_among_many_bodies_refuses_them_all(mistake: str) -> None:
    options, message = BULK_MISTAKES[mistake]
    given = {"shape": CUBE, "positions": np.zeros((2, 3)), "names": ["eve", "abe"], **options}
    refused(lambda scene: scene.add_bodies(**given), message)


def test_many_bodies_take_options_in_the_singular_too_and_refuse_unknown_ones() -> None:
    singular, plural = two(), two()
    singular.add_bodies(CUBE, np.zeros((2, 3)), linear_velocity=(1.0, 0.0, 0.0), label=3)
    plural.add_bodies(CUBE, np.zeros((2, 3)), linear_velocities=(1.0, 0.0, 0.0), labels=3)
    assert singular == plural
    places = np.zeros((2, 3))
    refused(
        lambda scene: scene.add_bodies(CUBE, places, weight=1.0),
        "body 2: no option named 'weight'; known options: linear_velocities",
    )
    refused(lambda scene: scene.add_bodies(CUBE, places, label=1, labels=2), "body 2", "both")


def test_the_options_of_one_body_are_those_of_many() -> None:
    parameters = inspect.signature(Scene.add_bodies).parameters.values()
    assert {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} == {*BODY_OPTIONS, "names"}


def test_many_bodies_at_once_are_the_bodies_one_by_one() -> None:
    rng = np.random.default_rng(7)
    shapes = [Sphere(0.1), CUBE, ConvexHull(rng.random((8, 3))), CUBE]
    turns = rot.from_axis_angle(rng.normal(size=(4, 3)), rng.normal(size=4))
    columns = {
        "linear_velocities": rng.normal(size=(4, 3)),
        "angular_velocities": rng.normal(size=(4, 3)),
        "mass": rng.random(4) + 1,
        "labels": np.arange(4) * 3,
        "group": [1, 2, 4, 8],
        "mask": [3, 0, 2**32 - 1, 7],
    }
    places = rng.normal(size=(4, 3))
    stone = Material(friction=0.9, restitution=0.1, rolling_friction=0.01, linear_damping=0.2, angular_damping=0.3)
    bulk, single = Scene(), Scene()
    assert bulk.add_bodies(shapes, places, turns, material=stone, names=list("abcd"), **columns) == range(4)  # type: ignore[arg-type]
    for k in range(4):
        one = {name: value[k] for name, value in columns.items()}  # type: ignore[index]
        assert single.add_body(shapes[k], places[k], turns[k], material=stone, name="abcd"[k], **one) == k
    assert bulk == single
    assert bulk.body_id("c") == 2
    assert len(bulk.shapes) == 3


def test_no_bodies_are_no_change() -> None:
    scene = two()
    assert scene.add_bodies(CUBE, np.empty((0, 3))) == range(2, 2)
    assert scene.add_statics(Plane(), np.empty((0, 3))) == range(0)
    assert scene == two()


def test_an_unknown_name_is_an_error_that_names_the_scene() -> None:
    with pytest.raises(LapjointError, match=r"'two' has no body named 'eve'"):
        two().body_id("eve")


# ---- states ------------------------------------------------------------------------------------------------------


def test_states_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        two().states[:] = 1.0


def test_a_scene_starts_from_states_that_are_set() -> None:
    scene = two()
    states = np.arange(26.0).reshape(2, 13)
    scene.set_states([1, 0], states)
    turns = states[:, 3:7] / np.linalg.norm(states[:, 3:7], axis=1, keepdims=True)
    expected = np.concatenate([states[:, :3], turns, states[:, 7:]], axis=1)
    assert np.array_equal(scene.states[[1, 0]], expected)
    before = scene.states
    scene.set_states([0, 1], before)
    assert np.array_equal(scene.states, before)  # to the last bit
    scene.set_states([0, 1], before[0])
    assert np.array_equal(scene.states, before[[0, 0]])
    scene.set_states([], np.empty((0, 13)))


def test_joints_stay_where_they_are_on_bodies_that_are_set() -> None:
    scene = two()
    scene.add_joint(Ball(), 0, 1, (1.0, 0.0, 0.0))
    frames = scene.joints.frame_a.copy(), scene.joints.frame_b.copy()
    scene.set_states([0], [5.0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    assert np.array_equal(frames, (scene.joints.frame_a, scene.joints.frame_b))


def row(**changed: float) -> list[float]:
    state = [0.0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    for place, value in changed.items():
        state[int(place[1:])] = value
    return state


STATE_MISTAKES: dict[str, tuple[Any, Any, str]] = {
    "quaternion zero": ([1, 0], [row(), row(q3=0.0)], "set_states: body 0 ('ada'): the state's quaternion is [0. 0."),
    "not a number": ([0, 1], [row(), row(v7=NAN)], "set_states: body 1: state is"),
    "infinite": ([0], row(x0=INF), "expected finite numbers"),
    "too short": ([0, 1], np.zeros((2, 12)), "expected 13 numbers or 2 rows"),
    "three for two": ([0, 1], np.zeros((3, 13)), "expected 13 numbers or 2 rows"),
    "text": ([0], "there", "set_states: state is there, expected 13 numbers"),
    "no such body": ([2], row(), "set_states: body 2 does not exist, the scene has 2 bodies"),
    "half a body": ([0.5], row(), "set_states: body is 0.5"),
}


@pytest.mark.parametrize("mistake", STATE_MISTAKES)
def test_what_is_no_state_is_refused(mistake: str) -> None:
    ids, states, message = STATE_MISTAKES[mistake]
    refused(lambda scene: scene.set_states(ids, states), message)


# ---- locks -------------------------------------------------------------------------------------------------------

CHANGES: dict[str, Callable[[Scene], object]] = {
    "add_body": lambda scene: scene.add_body(CUBE),
    "add_bodies": lambda scene: scene.add_bodies(CUBE, np.zeros((2, 3))),
    "add_static": lambda scene: scene.add_static(CUBE),
    "add_joint": lambda scene: scene.add_joint(Ball(), 0, 1, (0.0, 0.0, 0.0)),
    "ignore": lambda scene: scene.ignore([0], [1]),
    "set_states": lambda scene: scene.set_states([0], row(x0=7.0)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_locked_scene_refuses_changes_until_all_locks_are_gone(change: str) -> None:
    scene = two()
    scene.locks.add("it is simulated")
    scene.locks.add("it is simulated twice")
    with pytest.raises(LapjointError, match="scene 'two' cannot be changed now: it is simulated twice"):
        CHANGES[change](scene)
    scene.locks.take_back()
    with pytest.raises(LapjointError, match=r"it is simulated$"):
        CHANGES[change](scene)
    assert scene == two()
    scene.locks.take_back()
    CHANGES[change](scene)
    assert scene != two()
    with pytest.raises(LapjointError, match="the scene is not locked"):
        scene.locks.take_back()


# ---- static bodies -----------------------------------------------------------------------------------------------

STATIC_MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "position NaN": ({"position": (NAN, 0.0, 0.0)}, "position"),
    "position of two": ({"position": (0.0, 0.0)}, "expected 3 numbers"),
    "position of one": ({"position": 1.0}, "expected 3 numbers"),
    "position text": ({"position": "there"}, "position is there"),
    "quaternion too long": ({"quaternion": (2.0, 0.0, 0.0, 0.0)}, "has length 2"),
    "material number": ({"material": 1}, "expected a Material"),
    "group negative": ({"group": -1}, "group is -1"),
}


@pytest.mark.parametrize("mistake", STATIC_MISTAKES)
def test_a_static_body_with_a_mistake_is_refused_by_number(mistake: str) -> None:
    options, message = STATIC_MISTAKES[mistake]
    refused(lambda scene: scene.add_static(Plane(), **options), "static body 0: ", message)


def test_many_static_bodies_have_one_shape_or_one_each() -> None:
    each, single = Scene(), Scene()
    assert each.add_statics([CUBE, Plane(), CUBE], np.zeros((3, 3))) == range(3)
    for shape in (CUBE, Plane(), CUBE):
        single.add_static(shape)
    assert each == single
    refused(lambda scene: scene.add_statics([CUBE, CUBE], np.zeros((3, 3))), "static body 0", "2 shapes for 3 bodies")
    refused(lambda scene: scene.add_statics([CUBE, "ball"], np.zeros((2, 3))), "static body 1", "is not a shape")  # type: ignore[list-item]


def test_one_mistake_among_many_static_bodies_refuses_them_all() -> None:
    turns = [(1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)]
    refused(lambda scene: scene.add_statics(CUBE, np.zeros((2, 3)), turns), "static body 1: quaternion")


# ---- joints ------------------------------------------------------------------------------------------------------

AT = (1.0, 0.0, 0.0)
JOINT_MISTAKES: dict[str, tuple[tuple[Any, ...], str]] = {
    "to a missing body": ((Ball(), 0, 9, AT), "body b is 9, but there are 2 bodies"),
    "from a missing body": ((Ball(), -2, 1, AT), "body a is -2"),
    "from the world": ((Ball(), WORLD, 1, AT), "only body b may be the WORLD"),
    "to itself": ((Ball(), 0, 0, AT), "joins body 0 ('ada') to itself"),
    "to half a body": ((Ball(), 0, 0.5, AT), "body b is 0.5, expected a whole number"),
    "to a name": ((Ball(), "ada", 1, AT), "body a is ['ada']"),
    "anchor NaN": ((Ball(), 0, 1, (0.0, NAN, 0.0)), "anchor"),
    "anchor of two": ((Ball(), 0, 1, (0.0, 0.0)), "expected 3 numbers"),
    "anchor of one": ((Ball(), 0, 1, 1.0), "expected 3 numbers"),
    "no joint": (("glue", 0, 1, AT), "is not a joint, expected one of Ball, Hinge"),
    "a joint's class": ((Ball, 0, 1, AT), "is not a joint"),
    "axis zero": ((Hinge((0.0, 0.0, 0.0)), 0, 1, AT), "axis is zero, expected a direction"),
    "axis NaN": ((Slider((0.0, 0.0, NAN)), 0, 1, AT), "axis"),
    "axis of two": ((Hinge((0.0, 1.0)), 0, 1, AT), "expected 3 numbers"),  # type: ignore[arg-type]
    "limits upside down": ((Hinge(limits=(1.0, 0.0)), 0, 1, AT), "Hinge: limits are (1.0, 0.0), expected (lower"),
    "limits NaN": ((Slider(limits=(NAN, 1.0)), 0, 1, AT), "Slider: limits"),
    "limits of one": ((Hinge(limits=1.0), 0, 1, AT), "Hinge: limits are 1.0"),  # type: ignore[arg-type]
    "limits beyond all": ((Slider(limits=(INF, INF)), 0, 1, AT), "Slider: limits"),
    "limits beyond half a turn": (
        (SixAxis(angular=((-10.0, 10.0), FREE, LOCKED)), 0, 1, AT),
        "axis 3: limits are (-10.0, 10.0), expected angles from -pi to pi",
    ),
    "limits beyond count": ((Hinge(limits=(-1e9, 10.0)), 0, 1, AT), "expected at most 100000 rad"),
    "motor number": ((Hinge(motor=3.0), 0, 1, AT), "Hinge: axis 3 has 3.0, expected a Motor"),  # type: ignore[arg-type]
    "two linear axes": ((SixAxis(linear=(FREE, FREE)), 0, 1, AT), "need three (lower, upper) pairs"),
    "axis limits upside down": ((SixAxis(angular=((1, 0), FREE, FREE)), 0, 1, AT), "SixAxis: axis 3: limits"),
    "seventh axis": ((SixAxis(springs={6: Spring(1.0)}), 0, 1, AT), "axis 6 does not exist, expected 0 to 5"),
    "axis by letter": ((SixAxis(motors={"x": Motor(1.0, 1.0)}), 0, 1, AT), "axis x does not exist"),  # type: ignore[dict-item]
    "motor for spring": (
        (SixAxis((FREE, LOCKED, LOCKED), springs={0: Motor(1.0, 1.0)}), 0, 1, AT),  # type: ignore[dict-item]
        "expected a Spring",
    ),
    "spring on a locked axis": ((SixAxis(springs={0: Spring(1.0)}), 0, 1, AT), "axis 0 is locked"),
}


@pytest.mark.parametrize("mistake", JOINT_MISTAKES)
def test_a_joint_with_a_mistake_is_refused_by_number(mistake: str) -> None:
    arguments, message = JOINT_MISTAKES[mistake]
    refused(lambda scene: scene.add_joint(*arguments), "joint 0: ", message)


def test_one_mistake_among_many_joints_refuses_them_all() -> None:
    places = np.zeros((3, 3))
    refused(lambda scene: scene.add_joints(Ball(), [0, 1, 0], [1, 0, 7], places), "joint 2: body b is 7")
    refused(lambda scene: scene.add_joints(Ball(), [0, 1], [1, 0, 1], places), "joint 0: body a", "3 rows")
    refused(lambda scene: scene.add_joints(Hinge(), 0, 1, places, axes=np.eye(2, 3)), "joint 0: axis", "3 rows")
    refused(lambda scene: scene.add_joints(Hinge(), 0, 1, places, axes=np.diag([1.0, 1.0, 0.0])), "joint 2: axis")


def test_many_joints_at_once_are_the_joints_one_by_one() -> None:
    bulk, single = two(), two()
    axes = [(1.0, 0.0, 0.0), (0.0, 1.0, 1.0)]
    places = [(1.0, 0.0, 0.0), (2.0, 3.0, 4.0)]
    assert bulk.add_joints(Hinge(limits=(-1.0, 2.0)), [0, 1], [1, WORLD], places, axes=axes) == range(2)
    single.add_joint(Hinge(axes[0], (-1.0, 2.0)), 0, 1, places[0])
    single.add_joint(Hinge(axes[1], (-1.0, 2.0)), 1, WORLD, places[1])
    assert bulk == single


def test_ignored_pairs_are_sorted_and_hold_jointed_neighbours() -> None:
    scene = two()
    scene.add_bodies(CUBE, np.zeros((3, 3)))
    scene.ignore([4, 1], 0)
    scene.ignore(0, 1)
    scene.add_joint(Fixed(), 3, 2, AT)
    scene.add_joint(Fixed(), 4, 3, AT, collide=True)
    scene.add_joint(Fixed(), 4, WORLD, AT)
    assert scene.ignored_pairs.tolist() == [[0, 1], [0, 4], [2, 3]]


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((0, 9), "no such body, there are 2"),
        ((-1, 0), "no such body"),
        ((0, 0), "body 0 ('ada') is paired with itself"),
        ((0.5, 1), "whole number"),
        (([0, 1], [1, 0, 1]), "expected one number or 3 rows"),
    ],
)
def test_pairs_that_cannot_be_ignored_are_refused(pair: tuple[Any, Any], message: str) -> None:
    refused(lambda scene: scene.ignore(*pair), "ignore", message)


# ---- bodies inside each other ------------------------------------------------------------------------------------


def test_bodies_that_start_deep_inside_each_other_are_named() -> None:
    scene = Scene("crowd")
    scene.add_static(Box((9.0, 9.0, 1.0)), (0.0, 0.0, -0.5))
    places = [(0.0, 0.0, 0.5), (0.8, 0.0, 0.5), (5.0, 0.0, 0.5), (5.3, 0.0, 0.5)]
    scene.add_bodies(Sphere(0.5), places, names=["ada", "bob", "cy", "dee"])
    message = r"'crowd': body 2 \('cy'\) starts 0\.7 m deep inside body 3 \('dee'\) \(2 pairs are deep"
    with pytest.warns(PenetrationWarning, match=message):
        Simulation(scene, Params(runtime="inline")).close()


def test_a_body_that_starts_deep_inside_a_static_one_is_named() -> None:
    scene = Scene("sunk")
    scene.add_statics(Box((9.0, 9.0, 1.0)), [(20.0, 0.0, -0.5), (0.0, 0.0, -0.5)])
    scene.add_body(Sphere(0.5), (0.0, 0.0, 0.3), name="ada")
    with pytest.warns(PenetrationWarning, match=r"body 0 \('ada'\) starts 0\.2 m deep inside static body 1;"):
        Simulation(scene, Params(runtime="inline")).close()


def test_bodies_that_merely_touch_are_no_reason_to_warn() -> None:
    scene = Scene()
    scene.add_static(Plane())
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 0.499), (0.98, 0.0, 0.499)])
    Simulation(scene, Params(runtime="inline")).close()  # warnings are errors here


def test_a_copy_of_a_scene_that_is_being_simulated_is_free() -> None:
    scene = Scene("one")
    scene.add_body(Sphere(0.5), (0, 0, 1))
    scene.locks.add("a simulation of it is running")
    free = copy.deepcopy(scene)
    free.add_body(Sphere(0.5), (0, 0, 3))
    assert (scene.body_count, free.body_count) == (1, 2)
    with pytest.raises(LapjointError, match="cannot be changed now"):
        scene.add_body(Sphere(0.5), (0, 0, 3))
