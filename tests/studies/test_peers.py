"""Peers: that every engine gets the scene as it is, what is refused, what is measured and what is made of it."""

from __future__ import annotations

import csv
import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lapjoint import (
    WORLD,
    Ball,
    Box,
    Breaks,
    Capsule,
    Compound,
    ConvexHull,
    Cylinder,
    Drive,
    Fixed,
    Gear,
    Hinge,
    LapjointError,
    Material,
    Motor,
    Params,
    Part,
    Plane,
    Scene,
    Sequential,
    Simulation,
    SixAxis,
    Slider,
    Sphere,
    Spring,
    TriangleMesh,
    Wind,
    make_engine,
    scenes,
)
from lapjoint.arrays import rotation
from lapjoint.cli import app, main
from lapjoint.cli.peer_tables import verdicts
from lapjoint.measures import joint_gaps
from lapjoint.studies.bench import BenchPlan, BenchRow
from lapjoint.studies.peers import PEER_NAMES, Peer, PeerPlan, Side, StateError, load_peer, measure_peers, state_error
from lapjoint.studies.peers.own_ladder import own_ladder
from lapjoint.studies.peers.rows import SideTurn, compared_rows
from lapjoint.studies.report.bench_file import read_bench

PACKAGES = {"mujoco": "mujoco", "rapier": "rapier3d", "box3d": "robox3d"}
EXTRA_KEYS = [
    "peer",
    "version",
    "setting",
    "threads",
    "cpu_ms",
    "read_ms",
    "penetration_max",
    "penetration_sum",
    "joint_gap_max",
    "joint_gap_sum",
    "own_penetration_max",
    "cheapest_for",
]
INSTALLED = [name for name in PEER_NAMES if importlib.util.find_spec(PACKAGES[name])]


@pytest.fixture(params=PEER_NAMES)
def name(request: pytest.FixtureRequest) -> str:
    peer: str = request.param
    return installed(peer)


def installed(peer: str) -> str:
    """The peer's name, or the test is skipped."""
    if peer not in INSTALLED:
        pytest.skip(f"the package {PACKAGES[peer]} is not installed: pip install {PACKAGES[peer]}")
    return peer


def start(name: str, scene: Scene, rung: int = -1) -> Peer:
    """A peer at a setting of its ladder, the most accurate if not told."""
    peer, params = load_peer(name), Params(sequential=Sequential(iterations=50)).resolved(scene)
    peer.check(scene)
    return peer(scene, scene.states, params, peer.ladder(scene, params)[rung])


def weightless(**options: Any) -> Scene:
    return Scene("weightless", gravity=(0, 0, 0), **options)


def irregular() -> ConvexHull:
    """A hull whose principal axes are not those of its frame."""
    return ConvexHull([[0, 0, 0], [0.9, 0.1, 0], [0.1, 0.5, 0], [0.2, 0.1, 0.4], [0.7, 0.4, 0.3]])


# ---- motion ------------------------------------------------------------------------------------------------------


def test_a_ball_falls(name: str) -> None:
    scene = Scene("fall")
    scene.add_body(Sphere(0.1), (0, 0, 10))
    peer = start(name, scene)
    peer.step(250)
    states, time = peer.states(), 250 * scene.timestep
    assert states[0, 2] == pytest.approx(10 - 9.81 * time**2 / 2, abs=9.81 * time * scene.timestep)
    assert states[0, 9] == pytest.approx(-9.81 * time, rel=1e-3)
    assert peer.penetration() == 0
    peer.close()


def test_states_come_back_as_they_were_given(name: str) -> None:
    random = np.random.default_rng(5)
    scene = Scene("states")
    cubes = (Part(Box((0.2, 0.3, 0.4)), (0.5, 0, 0)), Part(Box((0.5, 0.1, 0.1)), (0, 0.2, 0.1)))
    for shape in (Sphere(0.2), Box((1, 2, 3)), Capsule(0.1, 0.5), irregular(), Compound(cubes)):
        quaternion = random.normal(size=4)
        scene.add_body(
            shape,
            10 * random.normal(size=3),
            quaternion / np.linalg.norm(quaternion),
            linear_velocity=random.normal(size=3),
            angular_velocity=random.normal(size=3),
        )
    peer = start(name, scene)
    got, given = peer.states(), scene.states
    sign = np.sign((got[:, 3:7] * given[:, 3:7]).sum(axis=1))
    got[:, 3:7] *= sign[:, None]
    np.testing.assert_allclose(got, given, rtol=1e-5, atol=1e-5)
    peer.close()


def test_a_body_tumbles_by_its_inertia(name: str) -> None:
    """The same motion as in lapjoint, though the principal axes are askew."""
    scene = weightless()
    turn = rotation.from_axis_angle([1, 2, 3], 0.7)
    scene.add_body(irregular(), (0, 0, 0), turn, angular_velocity=(1, 3, -2))
    peer, engine = start(name, scene), make_engine(scene, Params(precision="float64"))
    engine.activate([0], scene.states)
    peer.step(250)
    engine.step(250)
    got, wanted = peer.states()[0], engine.get_states()[0]
    assert abs(got[3:7] @ wanted[3:7]) > 1 - 1e-4
    np.testing.assert_allclose(got[10:], wanted[10:], atol=0.05)
    assert np.linalg.norm(scene.states[0, 10:] - wanted[10:]) > 0.2, "it tumbles"
    peer.close()


def test_damping(name: str) -> None:
    scene = weightless()
    air = Material(linear_damping=0.5, angular_damping=0.75)
    scene.add_body(Sphere(0.3), material=air, linear_velocity=(2, 0, 0), angular_velocity=(0, 0, 4))
    peer = start(name, scene)
    peer.step(500)
    state = peer.states()[0]
    assert state[7] == pytest.approx(1, rel=0.02)
    assert state[12] == pytest.approx(1, rel=0.02)
    peer.close()


# ---- contacts ----------------------------------------------------------------------------------------------------

RESTING = {
    "sphere": (Sphere(0.2), 0.2),
    "box": (Box((0.4, 0.4, 0.6)), 0.3),
    "capsule": (Capsule(0.15, 0.5), 0.15),
    "cylinder": (Cylinder(0.3, 0.4), 0.2),
    "hull": (ConvexHull([[x, y, z] for x in (0, 0.5) for y in (0, 0.5) for z in (0, 0.3)]), 0.15),
    "compound": (Compound((Part(Box((0.3, 0.3, 0.2)), (-0.2, 0, 0)), Part(Cylinder(0.15, 0.2), (0.2, 0, 0)))), 0.1),
    "hulls": (Compound((Part(irregular(), (0, 0, 0)), Part(Box((2, 2, 0.2)), (0, 0, -0.1)))), None),
}


@pytest.mark.parametrize("kind", RESTING)
def test_every_shape_rests_at_its_height(name: str, kind: str) -> None:
    shape, height = RESTING[kind]
    if height is None:  # the lowest point of a compound
        height = 0.1 - shape.parts[1].position[2]  # type: ignore[union-attr]
    scene = Scene("rest")
    scene.add_static(Plane())
    lying = rotation.from_axis_angle([0, 1, 0], np.array(np.pi / 2)) if kind == "capsule" else rotation.IDENTITY
    scene.add_body(shape, (0, 0, height + 0.002), lying)
    peer = start(name, scene)
    peer.step(250)
    state = peer.states()[0]
    assert state[2] == pytest.approx(height, abs=0.003)
    assert np.linalg.norm(state[7:]) < 0.02
    assert peer.penetration() < 0.003
    peer.close()


def test_two_boxes_stack(name: str) -> None:
    scene = Scene("stack")
    scene.add_static(Box((4, 4, 1)), (0, 0, -0.5))
    scene.add_bodies(Box((1, 1, 1)), [(0, 0, 0.5), (0.1, 0, 1.5)])
    peer = start(name, scene)
    peer.step(300)
    states = peer.states()
    np.testing.assert_allclose(states[:, 2], [0.5, 1.5], atol=0.003)
    np.testing.assert_allclose(states[:, :2], [(0, 0), (0.1, 0)], atol=0.005)
    error = state_error(scene, states)
    assert error.penetration_max < 0.003
    assert error.penetration_sum <= 2 * error.penetration_max
    assert error.joint_gap_max == 0
    assert peer.penetration() == pytest.approx(error.penetration_max, abs=0.001)
    peer.close()


@pytest.mark.parametrize("peer", ["rapier", "box3d"])
def test_a_box_rests_on_a_mesh(peer: str) -> None:
    scene = Scene("mesh")
    corners = [(-3, -3, 0), (3, -3, 0), (3, 3, 0), (-3, 3, 0)]
    scene.add_static(TriangleMesh(corners, [(0, 1, 2), (0, 2, 3)]), (0, 0, 1))
    scene.add_body(Box((1, 1, 1)), (0.2, 0.1, 1.502))
    world = start(installed(peer), scene)
    world.step(250)
    assert world.states()[0, 2] == pytest.approx(1.5, abs=0.005)
    world.close()


@pytest.mark.parametrize(("friction", "slides"), [(0.5, True), (0.65, False)])
def test_friction_holds_a_box_on_a_slope(name: str, friction: float, slides: bool) -> None:
    """Of 30 degrees, whose tangent is 0.577; the slope has another friction, and the geometric mean counts."""
    if name == "mujoco":
        friction = friction if slides else 0.8  # the larger one counts, and its friction creeps
    turn = rotation.from_axis_angle([0, 1, 0], np.array(np.radians(30)))
    scene = Scene("slope")
    other = friction if name == "mujoco" else 0.9
    scene.add_static(Box((20, 4, 1)), rotation.rotate(turn, [0, 0, -0.5]), turn, material=Material(friction=other))
    surface = Material(friction=friction**2 / other)
    scene.add_body(Box((0.4, 0.4, 0.2)), rotation.rotate(turn, [0, 0, 0.1]), turn, material=surface)
    peer = start(name, scene)
    peer.step(150)
    along = float(np.linalg.norm(peer.states()[0, :3] - scene.states[0, :3]))
    free = 9.81 * (np.sin(np.radians(30)) - friction * np.cos(np.radians(30))) * (150 * scene.timestep) ** 2 / 2
    assert along == pytest.approx(free if slides else 0.0, abs=0.01)
    peer.close()


def test_friction_stops_a_sliding_box(name: str) -> None:
    scene = Scene("slide")
    rough = Material(friction=0.4)
    scene.add_static(Plane(), material=rough)
    scene.add_body(Box((1, 1, 0.2)), (0, 0, 0.1), linear_velocity=(2, 0, 0), material=rough)
    peer = start(name, scene)
    peer.step(400)
    state = peer.states()[0]
    assert state[0] == pytest.approx(2**2 / (2 * 0.4 * 9.81), rel=0.1)
    assert abs(state[7]) < 0.02
    peer.close()


def test_ignored_pairs_and_groups_pass_through(name: str) -> None:
    scene = weightless()
    ball = Sphere(0.5)
    scene.add_body(ball, (0, 0, 0), linear_velocity=(2, 0, 0), mask=1)
    scene.add_body(ball, (2, 0, 0), mask=1)
    scene.ignore([0], [1])
    scene.add_body(ball, (0, 5, 0), linear_velocity=(2, 0, 0), group=2, mask=2)
    scene.add_body(ball, (2, 5, 0), group=4, mask=4)
    scene.add_body(ball, (0, 9, 0), linear_velocity=(2, 0, 0), group=2, mask=2)
    scene.add_body(ball, (2, 9, 0), group=2, mask=2)
    peer = start(name, scene)
    peer.step(600)
    x = peer.states()[:, 0]
    np.testing.assert_allclose(x[:4], [2.4, 2, 2.4, 2], atol=1e-3)
    assert x[5] > 2.05, "this one was hit"
    peer.close()


# ---- joints ------------------------------------------------------------------------------------------------------


def pendulum(joint: Any) -> Scene:
    """Two rods in a row, the first hung from the world at its end, both lying."""
    scene = Scene("pendulum")
    rods = scene.add_bodies(Box((1, 0.1, 0.1)), [(0.5, 0, 0), (1.5, 0, 0)])
    scene.add_joint(joint, rods[0], WORLD, (0, 0, 0))
    scene.add_joint(joint, rods[1], rods[0], (1, 0, 0))
    return scene


@pytest.mark.parametrize("joint", [Ball(), Hinge(axis=(0, 1, 0))], ids=["ball", "hinge"])
def test_a_pendulum_stays_together(name: str, joint: Any) -> None:
    scene = pendulum(joint)
    peer = start(name, scene)
    peer.step(150)
    states = peer.states()
    assert joint_gaps(scene, states).max() < 0.002
    assert states[0, 2] < -0.2, "it swings"
    np.testing.assert_allclose(states[:, 1], 0, atol=1e-3)
    # What lapjoint makes of it, for the swing itself.
    engine = make_engine(scene, Params(sequential=Sequential(iterations=200), precision="float64"))
    engine.activate([0, 1], scene.states)
    engine.step(150)
    np.testing.assert_allclose(states[:, :3], engine.get_states()[:, :3], atol=0.05)
    peer.close()


def test_a_hinge_keeps_its_axis(name: str) -> None:
    scene = weightless()
    scene.add_body(Box((1, 0.2, 0.1)), (0.5, 0, 0), angular_velocity=(1, 3, 1), linear_velocity=(0, 1, -1.5))
    scene.add_joint(Hinge(axis=(0, 1, 0)), 0, WORLD, (0, 0, 0))
    peer = start(name, scene)
    peer.step(200)
    state = peer.states()[0]
    np.testing.assert_allclose(rotation.rotate(state[3:7], [0, 1, 0]), [0, 1, 0], atol=0.02)
    assert np.linalg.norm(state[:3]) == pytest.approx(0.5, abs=0.002)
    assert abs(state[11]) > 1, "it turns"
    peer.close()


def test_a_fixed_joint_makes_one_of_two(name: str) -> None:
    scene = weightless()
    turn = rotation.from_axis_angle([0, 0, 1], np.array(0.5))
    scene.add_body(Box((1, 0.4, 0.2)), (0, 0, 0), linear_velocity=(0, 0, 1))
    scene.add_body(Box((1, 0.4, 0.2)), (1, 0, 0), turn)
    scene.add_joint(Fixed(), 1, 0, (0.5, 0, 0))
    peer = start(name, scene)
    peer.step(250)
    states = peer.states()
    assert joint_gaps(scene, states).max() < 0.002
    relative = rotation.multiply(rotation.conjugate(states[0, 3:7]), states[1, 3:7])
    assert abs(relative @ turn) > 1 - 1e-3
    assert abs(states[0, 3]) < 0.999, "they turn together"
    peer.close()


@pytest.mark.parametrize("peer", ["rapier", "box3d"])
def test_a_slider_slides(peer: str) -> None:
    scene = Scene("slider", gravity=(1.0, 0, -9.81))
    scene.add_body(Box((0.5, 0.3, 0.2)), (0, 0, 0))
    scene.add_joint(Slider(axis=(1, 0, 0)), 0, WORLD, (0, 0, 0))
    world = start(installed(peer), scene)
    world.step(250)
    state = world.states()[0]
    np.testing.assert_allclose(state[:3], [0.125, 0, 0], atol=0.003)
    assert abs(state[3]) > 0.9999
    world.close()


@pytest.mark.parametrize("name", ["rapier", "box3d"])
def test_limits_are_kept(name: str) -> None:
    scene = Scene("limits")
    scene.add_body(Box((1, 0.1, 0.1)), (0.5, 0, 0))
    scene.add_joint(Hinge(axis=(0, 1, 0), limits=(-0.2, 0.2)), 0, WORLD, (0, 0, 0))
    scene.add_body(Box((0.2, 0.2, 0.2)), (0, 5, 0))
    scene.add_joint(Slider(axis=(0, 0, 1), limits=(-0.3, 0.5)), 1, WORLD, (0, 5, 0))
    peer = start(installed(name), scene)
    peer.step(500)
    states = peer.states()
    assert np.arctan2(-states[0, 2], states[0, 0]) == pytest.approx(0.2, abs=0.02)
    assert states[1, 2] == pytest.approx(-0.3, abs=0.005)
    peer.close()


def test_box3d_has_the_masses_of_the_scene() -> None:
    scene = weightless()
    scene.add_body(irregular(), (0, 0, 0), mass=3.5)
    scene.add_body(Compound((Part(Sphere(0.1), (0.5, 0, 0)), Part(Sphere(0.2), (-0.1, 0, 0)))), (3, 0, 0))
    peer: Any = start(installed("box3d"), scene)
    for body in range(2):
        data = peer._lib.b3Body_GetMassData(peer._ids[body])
        inertia = [
            [getattr(column, axis) for axis in "xyz"] for column in (data.inertia.cx, data.inertia.cy, data.inertia.cz)
        ]
        assert data.mass == pytest.approx(scene.bodies.mass[body])
        np.testing.assert_allclose(inertia, scene.bodies.inertia[body], rtol=1e-5, atol=1e-7)
        assert (data.center.x, data.center.y, data.center.z) == (0, 0, 0)
    peer.close()
    peer.close()  # once more is nothing


def test_a_library_of_box3d_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> Any:
        raise OSError("libbox3d.so not found")

    installed("box3d")
    monkeypatch.setattr("lapjoint.studies.peers.box3d.import_module", fail)
    with pytest.raises(
        LapjointError, match=r"peer box3d: the package robox3d has no library .*: libbox3d.so not found"
    ):
        start("box3d", shaped(Sphere(1)))


def test_box3d_simplifies_hulls_of_many_corners_and_says_so() -> None:
    random = np.random.default_rng(0).normal(size=(90, 3))
    hull = ConvexHull(0.3 * random / np.linalg.norm(random, axis=1, keepdims=True))
    scene = Scene("round")
    scene.add_static(Plane())
    scene.add_body(hull, (0, 0, 0.35))
    assert "1 hulls of more than 44 corners are simplified to so many" in load_peer(installed("box3d")).unfair(scene)
    peer = start("box3d", scene)
    peer.step(100)
    assert peer.states()[0, 2] == pytest.approx(0.28, abs=0.03)
    peer.close()


# ---- refusals ----------------------------------------------------------------------------------------------------


def geared() -> Scene:
    scene = Scene("gears")
    scene.add_bodies(Sphere(0.1), [(0, 0, 0), (1, 0, 0)])
    scene.add_joint(Gear(2.0), 0, 1, (0, 0, 0))
    return scene


def jointed(joint: Any) -> Scene:
    scene = Scene("jointed")
    scene.add_body(Sphere(0.1))
    scene.add_joint(joint, 0, WORLD, (0, 0, 1))
    return scene


def shaped(shape: Any) -> Scene:
    scene = Scene("shaped")
    scene.add_static(shape)
    return scene


MESH = TriangleMesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)])
HALF = SixAxis(angular=((-1, 1), (-np.inf, np.inf), (0, 0)))
SPRUNG = SixAxis(linear=((-np.inf, np.inf), (0, 0), (0, 0)), springs={0: Spring(10)})
REFUSED = {
    "mujoco mesh": ("mujoco", shaped(MESH), "static body 0 is a TriangleMesh, which the peer mujoco cannot take"),
    "mujoco slider": (
        "mujoco",
        jointed(Slider()),
        "joint 0 is a Slider, which the peer mujoco does not have; it has Ball",
    ),
    "mujoco limits": (
        "mujoco",
        jointed(Hinge(limits=(-1, 1))),
        "joint 0 is a Hinge with limits, which the peer mujoco",
    ),
    "mujoco six axes": ("mujoco", jointed(SixAxis()), "joint 0 is a SixAxis, which the peer mujoco does not have"),
    "rapier motor": ("rapier", jointed(Slider(motor=Motor(1, 1))), "joint 0 is a Slider with a motor, which the peer"),
    "rapier spring": ("rapier", jointed(SPRUNG), "joint 0 is a SixAxis with a spring, which the peer rapier"),
    "box3d six axes": ("box3d", jointed(SixAxis()), "joint 0 is a SixAxis, which the peer box3d does not have"),
    "box3d motor": (
        "box3d",
        jointed(Hinge(motor=Motor(1, 1))),
        "joint 0 is a Hinge with a motor, which the peer box3d",
    ),
    "rapier drive": (
        "rapier",
        jointed(Hinge(drive=Drive(damping=1))),
        "joint 0 is a Hinge with a drive, which the peer",
    ),
    "rapier gear": ("rapier", geared(), "joint 0 is a Gear, which the peer rapier does not have"),
    "box3d friction": ("box3d", jointed(Slider(friction=1)), "joint 0 is a Slider with friction, which the peer box3d"),
    "box3d cone": ("box3d", jointed(Ball(swing=1)), "joint 0 is a Ball with limits, which the peer box3d"),
    "box3d turns": ("box3d", jointed(Hinge(limits=(-9, 9))), "joint 0 is a Hinge with an angle counted over turns"),
    "rapier angles": ("rapier", jointed(HALF), "joint 0 is a SixAxis with limits on one of several free rotations"),
}


def blown() -> Scene:
    scene = shaped(Plane())
    scene.add_field(Wind((1, 0, 0), 1.0))
    return scene


REFUSED["box3d wind"] = ("box3d", blown(), "has field 0, which no peer is given")


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_mapped_is_refused_by_name(case: str) -> None:
    peer, scene, words = REFUSED[case]
    with pytest.raises(LapjointError, match=words.replace("(", r"\(")):
        PeerPlan(BenchPlan([scene], [1]), [installed(peer)])


def test_mujoco_refuses_groups_that_differ_from_side_to_side() -> None:
    scene = Scene("groups")
    scene.add_body(Sphere(0.1), group=1, mask=2)
    scene.add_body(Sphere(0.1), group=2, mask=2)
    with pytest.raises(LapjointError, match="the peer mujoco cannot take groups and masks"):
        PeerPlan(BenchPlan([scene], [1]), [installed("mujoco")])


def test_unknown_doubled_and_missing_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = BenchPlan([scenes.build("chain", 8)], [1])
    with pytest.raises(LapjointError, match="no peer named 'havok'; known peers: mujoco, rapier, box3d"):
        PeerPlan(plan, ["havok"])
    with pytest.raises(LapjointError, match="peer rapier is given more than once"):
        PeerPlan(plan, ["rapier", "rapier"])
    with pytest.raises(LapjointError, match="no peer is given"):
        PeerPlan(plan, [])
    monkeypatch.setattr("lapjoint.studies.peers.base.importlib.util.find_spec", lambda _: None)
    with pytest.raises(LapjointError, match=r"peer rapier needs the package rapier3d, .*pip install rapier3d"):
        PeerPlan(plan, ["rapier"])


@pytest.mark.parametrize("scene", [scene for scene in scenes.names() if scene not in ("drum", "belt")])
def test_every_scene_can_be_compared_with_every_peer(name: str, scene: str) -> None:
    small = scenes.build(scene, {"building": 80, "four-way-bridge": 60}.get(scene, 40))
    peer = load_peer(name)
    peer.check(small)
    assert len(peer.unfair(small)) >= 4


def test_what_is_left_out_is_said() -> None:
    building = scenes.build("building", 80)
    for peer in PEER_NAMES:
        assert "rolling friction of 2 bodies is left out" in load_peer(installed(peer)).unfair(building)
        assert "1 joints that can break do not" in load_peer(peer).unfair(jointed(Fixed(breaks=Breaks(force=1.0))))
    notes = load_peer(installed("mujoco")).unfair(scenes.build("bowl", 10))
    assert "restitution of 10 bodies is left out: its contacts have none" in notes


# ---- error and rows ----------------------------------------------------------------------------------------------


def test_the_error_is_that_of_the_states() -> None:
    scene = Scene("error")
    scene.add_bodies(Sphere(0.5), [(0, 0, 0), (0.9, 0, 0), (5, 0, 0), (5.7, 0, 0)])
    scene.add_joint(Ball(), 0, WORLD, (0, 0, 0))
    states = scene.states.copy()
    states[0, :3] -= (0, 0.03, 0)
    error = state_error(scene, states)
    apart = float(np.hypot(0.9, 0.03))
    assert error.penetration_max == pytest.approx(0.3, abs=1e-6)
    assert error.penetration_sum == pytest.approx(0.3 + 1 - apart, abs=1e-6)
    assert (error.joint_gap_max, error.joint_gap_sum) == pytest.approx((0.03, 0.03))
    states[2, 7] = np.nan
    assert state_error(scene, states).values == (np.inf,) * 4


def test_an_error_is_within_another_but_for_the_allowances() -> None:
    one = StateError(1.0, 10.0, 0.0, 0.0)
    assert StateError(1.9, 10.9, 0.0, 0.0).is_within(one)
    assert not StateError(2.1, 5.0, 0.0, 0.0).is_within(one)
    assert not StateError(0.5, 11.1, 0.0, 0.0).is_within(one)
    assert StateError(0.5, 5.0, 0.5, 0.9).is_within(one), "small beside the penetration"
    assert not StateError(0.5, 5.0, 0.5, 1.1).is_within(one)
    assert not StateError(*(np.inf,) * 4).is_within(one)


def fake_rows(*peers: Any) -> list[Any]:
    """Rows of one worker (10 ms, an error of 1), of two (12 ms, 2), and of peers (title, ms, error, threads or 1)."""
    plan = BenchPlan(
        [scenes.build("chain", 8)], [1, 2], Params(runtime="inline"), [3], steps=1, repetitions=1, warmup=0
    )
    benches = bench_rows(plan)
    sides = {Side(1): (10.0, 1.0), Side(2): (12.0, 2.0)}
    for title, ms, size, *threads in peers:
        sides[Side(None, "rapier", title, "0", "float32", *(threads or [1]))] = (ms, size)
    repetitions = [
        {side: SideTurn(ms * k, ms * k, 0.5, StateError(*(size,) * 4), size) for side, (ms, size) in sides.items()}
        for k in (1, 2, 1)
    ]
    return compared_rows(benches, repetitions, list(sides))


def bench_rows(plan: BenchPlan) -> list[BenchRow]:
    from lapjoint.studies.bench import measure

    return list(measure(plan))


def test_the_cheapest_setting_of_equal_error_is_marked() -> None:
    rows = fake_rows(("4", 5.0, 3.0), ("8", 6.0, 1.5), ("16", 9.0, 0.9), ("32", 20.0, 0.1))
    assert [row.cheapest_for for row in rows] == [None, None, (), (2,), (1,), ()]
    assert verdicts(rows) == [
        "lapjoint, 2 workers: up to 2.0 times the error of 1 worker: the speed-up is not at equal error",
        "rapier against 1 worker: 16: 0.90 of the CPU time, 0.90 of the wall time",
        "rapier against 2 workers: 8: 0.50 of the CPU time, 0.50 of the wall time",
    ]


def test_workers_are_compared_with_as_many_threads() -> None:
    rows = fake_rows(("4", 5.0, 0.5), ("4", 3.0, 0.5, 2), ("8", 4.0, 0.1, 2))
    assert [row.cheapest_for for row in rows] == [None, None, (1,), (2,), ()]
    assert verdicts(rows)[1:] == [
        "rapier against 1 worker: 4: 0.50 of the CPU time, 0.50 of the wall time",
        "rapier against 2 workers: 4, 2 threads: 0.25 of the CPU time, 0.25 of the wall time",
    ]
    assert [row.to_dict()["threads"] for row in rows] == [None, None, 1, 2, 2]


def test_threads_are_as_many_as_workers_but_not_more_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapjoint.studies.peers.plan.core_count", lambda: 4)
    plan = PeerPlan(BenchPlan([scenes.build("chain", 16)], [1, 2, 8]), [installed("rapier"), installed("mujoco")])
    threads = {peer.name: set[int]() for peer, _ in plan.rungs(plan.plan.scenes[0], 10)}
    for peer, setting in plan.rungs(plan.plan.scenes[0], 10):
        threads[peer.name].add(setting.threads)
    assert threads == {"rapier": {1, 2, 4}, "mujoco": {1}}


@pytest.mark.parametrize("peer", ["rapier", "box3d"])
def test_threads_do_not_change_what_a_pile_does(peer: str) -> None:
    scene = scenes.build("bowl", 60)
    found = []
    for threads in (1, 2):
        made, params = load_peer(installed(peer)), Params(sequential=Sequential(iterations=50)).resolved(scene)
        world = made(scene, scene.states, params, replace(made.ladder(scene, params)[-1], threads=threads))
        world.step(60)
        found.append(world.states())
        world.close()
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)


@pytest.mark.parametrize("given", [{}, {"substeps": 3, "joints": "swept"}, {"iterations": 5}])
def test_own_ladder_has_the_solvers_that_the_engine_has(given: dict[str, Any]) -> None:
    params = Params.from_options(workers=4, runtime="inline", timestep=0.001, **given)
    titles = [rung.title for rung in own_ladder(params)]
    assert titles[-3:] == ["10 iterations", "50 iterations", "200 iterations"]
    assert titles[:-3] == [f"{n} substeps" for n in (1, 2, 4, 8)]
    last = own_ladder(params)[-1].params
    assert last == Params(runtime="inline", timestep=0.001, solver="sequential", sequential=Sequential(iterations=200))
    for rung in own_ladder(params):
        assert rung.params.resolved(scenes.build("chain", 4)).solver == rung.params.solver
    for rung in own_ladder(replace(params, coupling="tight")):
        assert rung.title in titles
        rung.params.resolved(Scene())  # which refuses what does not go together
    assert [rung.title for rung in own_ladder(Params(engine="rapier"))] == titles[-3:], "its own solver"


def test_where_no_setting_reaches_it_that_is_said() -> None:
    rows = fake_rows(("4", 5.0, np.inf), ("8", 6.0, 1.5))
    assert [row.cheapest_for for row in rows[2:]] == [(), (2,)]
    assert verdicts(rows)[1] == (
        "rapier against 1 worker: no setting of the ladder has as little error: the times do not compare"
    )
    assert rows[2].to_dict()["penetration_max"] is None


def test_a_row_of_a_file_has_all_keys() -> None:
    ours, _, theirs = fake_rows(("4", 5.0, 0.25))
    plain = ours.bench.to_dict()
    assert list(ours.to_dict()) == [*plain, *EXTRA_KEYS] == list(theirs.to_dict())
    assert {key: ours.to_dict()[key] for key in plain} == plain
    assert (ours.to_dict()["peer"], ours.to_dict()["cpu_ms"], ours.to_dict()["penetration_max"]) == (None, 10.0, 1.0)
    row = theirs.to_dict()
    assert (row["scene"], row["workers"], row["iterations"], row["engine"]) == ("chain", None, 3, "rapier")
    assert (row["peer"], row["setting"], row["step_ms"], row["precision"]) == ("rapier", "4", 5.0, "float32")
    assert (row["own_penetration_max"], row["cheapest_for"], row["server_ms"]) == (0.25, "1 2", None)


# ---- measuring and the command -----------------------------------------------------------------------------------


def test_all_sides_start_together_and_take_their_steps_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    begun: list[Any] = []

    class FakePeer:
        name, package, precision, most_threads = "rapier", "numpy", "float64", 8

        @staticmethod
        def check(scene: Scene) -> None: ...

        @staticmethod
        def unfair(scene: Scene) -> list[str]:
            return []

        @staticmethod
        def ladder(scene: Scene, params: Params) -> list[Any]:
            from lapjoint.studies.peers import Setting

            return [Setting("low", 1), Setting("high", 2)]

        def __init__(self, scene: Scene, states: Any, params: Params, setting: Any) -> None:
            begun.append(states)
            self.now, self.title = states, f"{setting.title} on {setting.threads}"

        def step(self, count: int = 1) -> None:
            taken.append(self.title)

        def states(self) -> Any:
            return self.now

        def penetration(self) -> float:
            return 0.0

        def close(self) -> None:
            taken.append(f"{self.title} closed")

    step = Simulation.step_at_once

    def record(self: Simulation, most: int) -> int:
        taken.append(f"{self.params.workers}" if self.params.sequential.iterations != 7 else "rung")
        if self.params.sequential.iterations == 7 and self.step_count == 0:
            begun.append(self.states.copy())
        return step(self, 1)

    monkeypatch.setattr(Simulation, "step_at_once", record)
    monkeypatch.setattr("lapjoint.studies.peers.plan.load_peer", lambda _: FakePeer)
    monkeypatch.setattr("lapjoint.studies.peers.plan.core_count", lambda: 2)
    monkeypatch.setattr("lapjoint.studies.peers.own_ladder.LADDER", {"sequential": (7,)})
    bench = BenchPlan([scenes.build("chain", 8)], [2], Params(runtime="inline"), [5], steps=3, repetitions=2, warmup=1)
    shares: list[float] = []
    rows = list(measure_peers(PeerPlan(bench, ["rapier"]), lambda doing, share: shares.append(share)))
    peers = [f"{title} on {threads}" for threads in (1, 2) for title in ("low", "high")]
    turn = [one for one in ("1", "2", "rung", *peers) for _ in range(3)]
    assert taken == ["1", "2", *turn, *turn, *turn[3:], *turn[:3], *(f"{one} closed" for one in peers[::-1])]
    assert len(begun) == 5
    assert all(np.array_equal(one, begun[0]) for one in begun)
    assert [(row.side.workers, row.side.setting, row.side.threads) for row in rows] == [
        (1, None, None),
        (2, None, None),
        (1, "7 iterations", None),
        (None, "low", 1),
        (None, "high", 1),
        (None, "low", 2),
        (None, "high", 2),
    ]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason="no peer is installed: pip install --group peers")
def test_bench_prints_and_writes_peers(tmp_path: Path) -> None:
    files = tmp_path / "b.json", tmp_path / "b.csv"
    command = f"bench chain --peer {' '.join(INSTALLED)} --workers 2 --iterations 20 --size 8 --steps 3 --repetitions 2"
    command += f" --warmup 3 --json {files[0]} --csv {files[1]}"
    result = CliRunner().invoke(app, command.split(), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    rows = json.loads(files[0].read_text())
    assert [(row["workers"], row["peer"], row["setting"]) for row in rows[:2]] == [(1, None, None), (2, None, None)]
    own = [row for row in rows[2:] if row["peer"] is None]
    assert [row["setting"] for row in own][-3:] == ["10 iterations", "50 iterations", "200 iterations"]
    assert {(row["workers"], row["threads"], row["server_ms"]) for row in own} == {(1, None, None)}
    assert {row["peer"] for row in rows[2 + len(own) :]} == set(INSTALLED)
    assert all(row["cpu_ms"] > 0 and row["step_ms"] > 0 and row["joint_gap_sum"] is not None for row in rows)
    with files[1].open(newline="") as file:
        assert [list(line) for line in csv.DictReader(file)] == [list(row) for row in rows]
    assert [point.workers for point in read_bench(files[0])] == [1, 2], "a report takes lapjoint's rows alone"
    assert "side by side" in result.stdout
    assert "What is not fair" in result.stdout
    for peer in INSTALLED:
        assert f"{peer} against 2 workers: " in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("chain --peer havok", "no peer named 'havok'"),
        ("chain --peer rapier rapier", "peer rapier is given more than once"),
    ],
)
def test_a_mistake_is_one_line(
    command: str, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warnings.showwarning", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["lapjoint", "bench", *command.split()])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert words in capsys.readouterr().err
