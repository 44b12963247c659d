"""Drives, friction, gears, ropes and limits against formulas, in all ways that joints are solved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lapjoint import (
    FREE,
    LOCKED,
    WORLD,
    Ball,
    Box,
    Cylinder,
    Distance,
    Drive,
    Fixed,
    Gear,
    Hinge,
    Motor,
    Params,
    Scene,
    Simulation,
    SixAxis,
    Slider,
    Sphere,
)
from lapjoint.arrays import rotation
from lapjoint.scene.measures import kinetic_energy, potential_energy
from reference.drive_response import DriveResponse

SUBSTEPS, STEP = 4, 1 / 120
H = STEP / SUBSTEPS
ZERO = (0.0, 0.0, 0.0)
Z = (0.0, 0.0, 1.0)
WAYS: list[dict[str, Any]] = [
    {"joints": joints, "engine": f"bullet:{precision}"}
    for joints, precision in (("direct", "float32"), ("swept", "float32"), ("swept", "float64"))
]
ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way.values()))


def run(scene: Scene, steps: int, **params: Any) -> np.ndarray:
    """States after every step."""
    given = {"workers": 1, "runtime": "inline", "substeps": SUBSTEPS, **params}
    with Simulation(scene, Params.from_options(**given)) as simulation:
        return np.array([frame.states for frame in simulation.frames(steps)])


def angles(states: np.ndarray, axis: int = 2) -> np.ndarray:
    """About an axis of the world, counted over turns."""
    return np.unwrap(2 * np.arctan2(states[:, 4 + axis], states[:, 3]))


def wheel(joint: Any, *, speed: float = 0.0, gravity: Any = ZERO, timestep: float = STEP) -> tuple[Scene, float]:
    """A wheel on the joint, and its moment of inertia."""
    scene = Scene(gravity=gravity, timestep=timestep)
    scene.add_body(Cylinder(0.5, 0.1), mass=2.0, angular_velocity=(0.0, 0.0, speed))
    scene.add_joint(joint, 0, WORLD, ZERO)
    return scene, float(scene.bodies.inertia[0, 2, 2])


def arm(joint: Any, **options: Any) -> Scene:
    """A bar of one metre on a joint at its end."""
    scene = Scene(timestep=STEP, **options)
    scene.add_body(Box((1.0, 0.1, 0.1)), (0.5, 0.0, 0.0), mass=1.0)
    scene.add_joint(joint, 0, WORLD, ZERO)
    return scene


def exact_response(k: float, c: float, inertia: float, position: float, velocity: float, t: np.ndarray) -> np.ndarray:
    """Angle of a wheel at rest at 0 that a drive begins to pull."""
    decay, square = c / inertia / 2, k / inertia + 0j
    if k == 0:
        return velocity * (t + np.expm1(-2 * decay * t) / (2 * decay))
    rest = position + c * velocity / k
    root = np.sqrt(decay**2 - square)
    return rest - rest * np.real(np.exp(-decay * t) * (np.cosh(root * t) + decay / root * np.sinh(root * t)))


# ---- drives ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@ways
@pytest.mark.parametrize(("k", "c"), [(25.0, 0.0), (25.0, 4.9), (250.0, 1.5), (0.0, 1.5)])
def test_a_drive_on_a_hinge_responds_as_a_damped_oscillator(way: dict[str, Any], k: float, c: float) -> None:
    drive = Drive(1.0, 0.5 if c else 0.0, k, c)
    scene, inertia = wheel(Hinge(Z, drive=drive))
    found = angles(run(scene, 240, **way)[:, 0])
    time = STEP * np.arange(1, 241)
    # A substep moves with the velocity at its end: all of it comes half a substep early, and nothing else is wrong.
    # Measured: an eighth of the square of frequency times substep, so 5e-5 with 10 rad/s and 5e-4 with 32 rad/s.
    exact = exact_response(k, c, inertia, drive.position, drive.velocity, time + H / 2)
    assert np.abs(found - exact).max() < 0.15 * k / inertia * H**2 + 5e-6


@pytest.mark.slow
@pytest.mark.parametrize("k", [0.0, 1e2, 1e15])
@pytest.mark.parametrize("c", [0.0, 1e9])
@pytest.mark.parametrize("off_centre", [0.0, 0.5])
@pytest.mark.parametrize("joints", ["direct", "swept"])
def test_a_drive_is_stable_however_stiff(k: float, c: float, off_centre: float, joints: str) -> None:
    if k == 0 and c == 0:
        return
    scene = Scene(gravity=ZERO, timestep=1 / 60)
    scene.add_body(Box((1.0, 0.3, 0.2)), (off_centre, 0.0, 0.0), mass=1.0)
    scene.add_joint(Hinge(Z, drive=Drive(1.0, 0.0, k, c)), 0, WORLD, ZERO)
    found = angles(run(scene, 180, joints=joints)[:, 0])
    inertia = scene.bodies.inertia[0, 2, 2] + off_centre**2
    limit = 1.0 if c >= 2 * np.sqrt(k * inertia) else 2.0
    assert found.min() > -0.05
    assert found.max() < limit + 0.05
    if c == 0 and k >= 1e9:  # implicit: it is there at once, without a swing
        assert np.abs(found[60:] - 1).max() < 1e-3
    if joints == "direct" and k == c == 1e9:  # a creep: in three seconds, but for the start, to the last e^-3
        assert found[-1] == pytest.approx(1 - np.exp(-3.0), abs=0.01)


@pytest.mark.parametrize("joints", ["direct", "swept"])
@pytest.mark.parametrize("seed", range(8))
def test_a_slider_moves_as_the_readable_twin(seed: int, joints: str) -> None:
    rng = np.random.default_rng(seed)
    mass, k, c = 2.0, 10 ** rng.uniform(0, 7), 10 ** rng.uniform(-1, 5)
    target, velocity, load = rng.normal(size=3)
    scene = Scene(gravity=(load, 0.0, 0.0), timestep=STEP)
    scene.add_body(Box((0.2, 0.2, 0.2)), mass=mass)
    scene.add_joint(Slider((1.0, 0.0, 0.0), drive=Drive(target, velocity, k, c)), 0, WORLD, ZERO)
    found = run(scene, 30, engine="bullet:float64", joints=joints)[:, 0, 0]
    response = DriveResponse(k, c, 1 / mass, H)
    q = v = carried = 0.0
    for step in range(30):
        for _ in range(SUBSTEPS):
            # What carries next to nothing gets half of a force before it moves and half after it.
            first, apart = 0.5 if abs(carried) <= abs(load) * H / 64 else 1.0, q - target
            q += H * response.velocity(v, v + first * load * H, apart, velocity, joints == "direct")
            before, v = v, response.velocity(v, v + load * H, apart, velocity, joints == "direct")
            carried = v - before - load * H
        assert found[step] == pytest.approx(q, abs=1e-9)


def test_both_ways_are_tried() -> None:
    """Of those eight, some are followed exactly and some are not."""
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        found.append(DriveResponse(10 ** rng.uniform(0, 7), 10 ** rng.uniform(-1, 5), 0.5, H).is_exact)
    assert 2 <= sum(found) <= 6


@pytest.mark.slow
@pytest.mark.parametrize(("k", "c", "load"), [(1e3, 1e2, 0.0), (1e5, 1e3, 0.0), (1e6, 1e5, 100.0), (1e9, 1e6, 100.0)])
def test_an_arm_of_drives_holds_what_it_carries(k: float, c: float, load: float) -> None:
    """Six links, and a load a hundred times as heavy as one: every drive gives way by torque / stiffness."""
    scene = Scene(timestep=STEP)
    scene.add_bodies(Box((0.5, 0.1, 0.1)), [(0.25 + 0.5 * i, 0.0, 0.0) for i in range(6)], mass=1.0)
    for i in range(6):
        joint = Hinge((0.0, 1.0, 0.0), drive=Drive(stiffness=k, damping=c))
        scene.add_joint(joint, i, i - 1 if i else WORLD, (0.5 * i, 0.0, 0.0))
    if load:
        scene.add_joint(Fixed(), scene.add_body(Sphere(0.1), (3.0, 0.0, 0.0), mass=load), 5, (3.0, 0.0, 0.0))
    states = run(scene, 480)
    weights = np.append(np.full(6, 9.81), 9.81 * load)
    places = states[-1, :, 0] if load else np.append(states[-1, :, 0], 0.0)
    turns = -2 * np.arcsin(states[-1, :6, 5])  # downwards
    for i in range(6):
        start = states[-1, i, 0] - 0.25 * np.cos(turns[i])
        torque = float((weights[i:] * (places[i:] - start)).sum())
        bend = -(turns[i] - (turns[i - 1] if i else 0.0))
        assert bend == pytest.approx(torque / k, rel=0.02, abs=2e-6)
    assert np.abs(states[-1, :, 7:]).max() < 0.02


@ways
@pytest.mark.parametrize("k", [1e4, 1e12])
def test_a_drive_that_is_too_weak_lets_an_arm_fall_as_slowly_as_it_can(way: dict[str, Any], k: float) -> None:
    weight, most = 9.81 * 0.5, 3.0
    states = run(arm(Hinge((0.0, 1.0, 0.0), drive=Drive(stiffness=k, damping=k / 10, max_force=most))), 24, **way)
    time = STEP * 24
    turned = (weight - most) / (1 / 3 + 0.01 / 12) * time * (time + H) / 2
    assert 2 * np.arcsin(states[-1, 0, 5]) == pytest.approx(turned, rel=0.02)


@pytest.mark.parametrize("k", [1e4, 1e12])
@pytest.mark.parametrize("joints", ["direct", "swept"])
def test_an_arm_of_drives_that_are_too_weak_gains_nothing_from_them(k: float, joints: str) -> None:
    scene = Scene(timestep=STEP)
    scene.add_bodies(Box((0.5, 0.1, 0.1)), [(0.25 + 0.5 * i, 0.0, 0.0) for i in range(6)], mass=1.0)
    for i in range(6):
        joint = Hinge((0.0, 1.0, 0.0), drive=Drive(stiffness=k, damping=k / 100, max_force=20.0))
        scene.add_joint(joint, i, i - 1 if i else WORLD, (0.5 * i, 0.0, 0.0))
    states = run(scene, 120, joints=joints)
    energy = [kinetic_energy(scene, one) + potential_energy(scene, one) for one in states]
    assert max(energy) < 0.5
    assert states[-1, 5, 2] < -0.5


@pytest.mark.parametrize("k", [1e5, 1e9])
def test_an_arm_of_swept_drives_is_softer_and_stable(k: float) -> None:
    scene = Scene(timestep=STEP)
    scene.add_bodies(Box((0.5, 0.1, 0.1)), [(0.25 + 0.5 * i, 0.0, 0.0) for i in range(6)], mass=1.0)
    for i in range(6):
        joint = Hinge((0.0, 1.0, 0.0), drive=Drive(stiffness=k, damping=k / 10))
        scene.add_joint(joint, i, i - 1 if i else WORLD, (0.5 * i, 0.0, 0.0))
    states = run(scene, 480, joints="swept")
    assert np.abs(states[-100:, :, 7:]).max() < 3.0
    assert states[-100:, 5, 2].min() > -0.5


@ways
def test_a_drive_holds_a_load_as_far_out_as_its_stiffness_lets_it(way: dict[str, Any]) -> None:
    scene = Scene(timestep=STEP)
    scene.add_body(Box((0.2, 0.2, 0.2)), mass=5.0)
    scene.add_joint(Slider(Z, drive=Drive(0.3, 0.0, 2000.0, 300.0)), 0, WORLD, ZERO)
    assert run(scene, 480, **way)[-1, 0, 2] == pytest.approx(0.3 - 5 * 9.81 / 2000, abs=1e-6)


@ways
def test_a_drive_does_no_more_than_its_largest_force(way: dict[str, Any]) -> None:
    scene = Scene(gravity=ZERO, timestep=STEP)
    scene.add_body(Box((0.2, 0.2, 0.2)), mass=2.0)
    scene.add_joint(Slider(Z, drive=Drive(100.0, 0.0, 1e6, 1e3, max_force=3.0)), 0, WORLD, ZERO)
    assert run(scene, 120, **way)[-1, 0, 9] == pytest.approx(1.5, rel=1e-4)


@pytest.mark.parametrize("joint", [Hinge, Slider])
def test_a_motor_is_a_drive_of_infinite_damping(joint: Any) -> None:
    results = []
    for given in ({"motor": Motor(2.0, 3.0)}, {"drive": Drive(velocity=2.0, damping=np.inf, max_force=3.0)}):
        results.append(run(arm(joint((0.0, 1.0, 0.0), **given)), 60))
    assert np.array_equal(*results)


@pytest.mark.slow
@ways
def test_a_hinge_is_driven_over_many_turns(way: dict[str, Any]) -> None:
    scene, _ = wheel(Hinge(Z, drive=Drive(-40.0, 0.0, 30.0, 6.0)))
    assert angles(run(scene, 360, **way)[:, 0])[-1] == pytest.approx(-40.0, abs=0.01)


def test_a_six_axis_joint_is_driven_on_several_axes() -> None:
    scene = Scene(gravity=ZERO, timestep=STEP)
    scene.add_body(Box((0.3, 0.2, 0.1)), mass=1.0)
    drives = {0: Drive(0.4, 0.0, 400.0, 40.0), 4: Drive(0.6, 0.0, 5.0, 0.5), 5: Drive(-0.8, 0.0, 5.0, 0.5)}
    joint = SixAxis((FREE, LOCKED, LOCKED), (LOCKED, FREE, FREE), drives=drives)
    scene.add_joint(joint, 0, WORLD, ZERO)
    last = run(scene, 480)[-1, 0]
    turned = rotation.rotate(last[3:7], np.eye(3))  # rows: a's axes
    assert last[0] == pytest.approx(0.4, abs=1e-3)
    assert -np.arcsin(turned[0, 2]) == pytest.approx(0.6, abs=1e-2)
    assert np.arctan2(turned[0, 1], turned[0, 0]) == pytest.approx(-0.8, abs=1e-2)


# ---- friction --------------------------------------------------------------------------------------------------------


@ways
def test_friction_slows_a_flywheel_linearly_and_stops_it(way: dict[str, Any]) -> None:
    scene, inertia = wheel(Hinge(Z, friction=1.5), speed=10.0)
    spin = run(scene, 240, **way)[:, 0, 12]
    time = STEP * np.arange(1, 241)
    assert np.abs(spin - np.maximum(10 - 1.5 / inertia * time, 0)).max() < 1e-3
    assert np.abs(spin[-20:]).max() < 1e-5


@pytest.mark.slow
@ways
@pytest.mark.parametrize("joint", [Hinge((0.0, 1.0, 0.0), friction=1.0), Ball(friction=1.0)])
def test_friction_holds_what_is_below_its_limit(way: dict[str, Any], joint: Any) -> None:
    weight = 9.81 * 0.5
    for share, holds in ((1.02, True), (0.97, False)):
        joint = type(joint)(**{**vars(joint), "friction": share * weight})
        states = run(arm(joint), 240, **way)
        drop = -states[-1, 0, 2]
        assert (drop < 5e-4) if holds else (drop > 0.05)
        if holds:  # nor does it creep
            assert abs(states[-1, 0, 2] - states[119, 0, 2]) < 2e-5


@ways
def test_friction_of_a_ball_joint_is_against_the_turning_whatever_its_axis(way: dict[str, Any]) -> None:
    scene = Scene(gravity=ZERO, timestep=STEP)
    start = np.array([3.0, 4.0, 12.0])
    scene.add_body(Sphere(0.3), mass=2.0, angular_velocity=start)
    scene.add_joint(Ball(friction=0.4), 0, WORLD, ZERO)
    spin = run(scene, 240, **way)[:, 0, 10:]
    left = np.maximum(13 - 0.4 / scene.bodies.inertia[0, 0, 0] * STEP * np.arange(1, 241), 0)
    assert np.abs(spin - left[:, None] * start / 13).max() < 1e-3


@ways
def test_friction_of_a_slider_stops_it_after_its_way(way: dict[str, Any]) -> None:
    scene = Scene(gravity=ZERO, timestep=STEP)
    scene.add_body(Box((0.2, 0.2, 0.2)), mass=2.0, linear_velocity=(3.0, 0.0, 0.0))
    scene.add_joint(Slider((1.0, 0.0, 0.0), friction=4.0), 0, WORLD, ZERO)
    assert run(scene, 240, **way)[-1, 0, 0] == pytest.approx(9 / 4 - 3 * H / 2, abs=1e-3)


# ---- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@ways
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_hinge_stops_at_three_turns(way: dict[str, Any], sign: float) -> None:
    limit = 6 * np.pi
    scene = arm(Hinge(Z, limits=(-limit, limit), motor=Motor(sign * 8.0, 50.0)), gravity=ZERO)
    found = sign * angles(run(scene, 600, **way)[:, 0])
    assert found[-1] == pytest.approx(limit, abs=1e-3)
    assert found.max() < limit + 2e-3
    assert np.diff(found[20:200]) == pytest.approx(8.0 * STEP, rel=1e-3)  # on the way nothing holds it


def test_a_six_axis_joint_counts_turns_about_its_last_axis() -> None:
    joint = SixAxis(angular=(LOCKED, LOCKED, (-1.0, 15.0)), motors={5: Motor(6.0, 20.0)})
    scene, _ = wheel(joint)
    assert angles(run(scene, 480)[:, 0])[-1] == pytest.approx(15.0, abs=2e-3)


def swing_and_twist(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    w, x, y, z = states[:, 3:7].T
    twist = np.angle(np.exp(2j * np.arctan2(x, w)))
    return np.arccos(np.clip(1 - 2 * (y**2 + z**2), -1, 1)), twist


@pytest.mark.slow
@ways
@pytest.mark.parametrize("swing", [0.3, 1.2, 2.8])
def test_a_cone_holds_a_bar_that_falls_and_swings(way: dict[str, Any], swing: float) -> None:
    scene = Scene(timestep=STEP, gravity=(-9.81, 0.0, -3.0) if swing > 2 else (0.0, 0.0, -9.81))
    scene.add_body(Box((1.0, 0.1, 0.1)), (0.5, 0.0, 0.0), mass=1.0, angular_velocity=(0.0, 0.5, 2.0))
    scene.add_joint(Ball(swing=swing), 0, WORLD, ZERO)
    found, _ = swing_and_twist(run(scene, 480, **way)[:, 0])
    assert found.max() == pytest.approx(swing, abs=2e-3)


@pytest.mark.slow
@ways
@pytest.mark.parametrize("spin", [5.0, -5.0])
@pytest.mark.parametrize("swing", [None, 1.0])
def test_a_twist_stays_within_its_limits(way: dict[str, Any], spin: float, swing: float | None) -> None:
    scene = Scene(timestep=STEP, gravity=ZERO)
    scene.add_body(Box((1.0, 0.3, 0.1)), mass=1.0, angular_velocity=(spin, 0.3, 0.2))
    scene.add_joint(Ball(swing=swing, twist=(-0.5, 1.0), friction=0.05), 0, WORLD, ZERO)
    _, twist = swing_and_twist(run(scene, 120, **way)[:, 0])
    assert twist.min() > -0.502
    assert twist.max() < 1.002
    assert (twist.max() > 0.99) if spin > 0 else (twist.min() < -0.49)


# ---- distances and gears ---------------------------------------------------------------------------------------------


@ways
def test_a_rope_holds_a_load_at_its_length_and_lets_it_fall_till_then(way: dict[str, Any]) -> None:
    scene = Scene(timestep=STEP)
    scene.add_body(Sphere(0.1), (0.0, 0.0, -1.0), mass=3.0)
    scene.add_joint(Distance(upper=1.5), 0, WORLD, (0.0, 0.0, -0.9), anchor_b=ZERO)
    height = run(scene, 360, **way)[:, 0, 2]
    time = STEP * np.arange(1, 25)
    assert height[:24] == pytest.approx(-1 - 9.81 / 2 * time**2, abs=1e-4)
    assert height[-1] == pytest.approx(-1.6, abs=1e-4)


@pytest.mark.slow
@ways
def test_a_rod_swings_at_its_length_with_the_period_of_a_pendulum(way: dict[str, Any]) -> None:
    scene = Scene(timestep=STEP)
    small = 0.05
    start = np.array([np.sin(small), 0.0, -np.cos(small)])
    scene.add_body(Sphere(0.01), start, mass=2.0)
    scene.add_joint(Distance(1.0), 0, WORLD, start, anchor_b=ZERO)
    place = run(scene, 600, **way)[:, 0, :3]
    assert np.linalg.norm(place, axis=1) == pytest.approx(1.0, abs=1e-4)
    crossed = np.flatnonzero(np.diff(np.sign(place[:, 0])))
    period = 2 * np.mean(np.diff(crossed)) * STEP
    assert period == pytest.approx(2 * np.pi / np.sqrt(9.81), rel=0.01)


def test_a_distance_keeps_bodies_apart_too() -> None:
    scene = Scene(timestep=STEP, gravity=ZERO)
    velocity = [(1.0, 0.0, 0.0), (-1.0, 0.0, 0.0)]
    scene.add_bodies(Sphere(0.1), [(0.0, 0.0, 0.0), (2.0, 0.0, 0.0)], mass=1.0, linear_velocities=velocity)
    scene.add_joint(Distance(lower=1.5, upper=3.0), 0, 1, ZERO, anchor_b=(2.0, 0.0, 0.0))
    states = run(scene, 120)
    apart = states[:, 1, 0] - states[:, 0, 0]
    assert apart.min() == pytest.approx(1.5, abs=1e-3)
    assert np.abs(states[-1, :, 7]).max() < 1e-3


@pytest.mark.slow
@ways
@pytest.mark.parametrize("ratio", [-2.5, 3.0])
def test_gears_keep_their_ratio_over_many_turns(way: dict[str, Any], ratio: float) -> None:
    scene = Scene(gravity=ZERO, timestep=STEP)
    scene.add_bodies(Cylinder(0.2, 0.1), [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)], mass=1.0)
    scene.add_joint(Hinge(Z, motor=Motor(10.0, 5.0)), 0, WORLD, ZERO)
    scene.add_joint(Hinge(Z, friction=0.1), 1, WORLD, (1.0, 0.0, 0.0))
    scene.add_joint(Gear(ratio, Z, Z), 0, 1, ZERO)
    states = run(scene, 1200, **way)
    slip = angles(states[:, 0]) - ratio * angles(states[:, 1])
    assert angles(states[:, 0])[-1] > 14 * 2 * np.pi
    assert np.abs(slip).max() < 3e-3
    assert abs(slip[-1] - slip[200]) < 1e-4  # no drift
    assert states[-1, 0, 12] == pytest.approx(ratio * states[-1, 1, 12], rel=1e-4)


def test_gears_may_stand_at_an_angle() -> None:
    scene = Scene(gravity=ZERO, timestep=STEP)
    scene.add_bodies(Sphere(0.2), [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)], mass=1.0)
    scene.add_joint(Hinge(Z, motor=Motor(5.0, 5.0)), 0, WORLD, ZERO)
    scene.add_joint(Hinge((1.0, 0.0, 0.0)), 1, WORLD, (1.0, 0.0, 0.0))
    scene.add_joint(Gear(2.0, Z, (1.0, 0.0, 0.0)), 0, 1, ZERO)
    states = run(scene, 240)
    assert angles(states[:, 0])[-1] == pytest.approx(2 * angles(states[:, 1], axis=0)[-1], abs=2e-3)
