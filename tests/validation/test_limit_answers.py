"""Limits, motors, friction and ropes do what mechanics says. Bounds are a few times what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from arm_support import GHOST, Array, X, Y, Z, arm_of, every_precision, every_timestep, link, moved, pitch
from lapjoint import WORLD, Ball, Box, Distance, Hinge, Motor, Scene, Slider, Sphere
from lapjoint.scene.joints import Joint
from substep_support import WEIGHTLESS, G


def wheel(timestep: float, joint: Joint, spin: float = 0.0) -> Scene:
    """A plate of 1 kg m^2 that turns about z; nothing pulls at it."""
    scene = Scene(timestep=timestep, gravity=WEIGHTLESS)
    scene.add_body(Box((1.0, 1.0, 0.1)), mass=6.0, angular_velocity=(0.0, 0.0, spin), **GHOST)
    scene.add_joint(joint, 0, WORLD, (0.0, 0.0, 0.0))
    return scene


@every_timestep
@every_precision
def test_a_limit_stops_a_link_that_falls(timestep: float, precision: str) -> None:
    angle = pitch(moved(link(timestep, Hinge(Y, (-0.5, 0.5))), 2.0, precision=precision)[:, 0])
    assert angle.max() < 0.5 + 1e-5
    assert angle[-1] == pytest.approx(0.5, abs=1e-5)


@every_timestep
@every_precision
def test_limits_stop_an_arm_with_a_heavy_end(timestep: float, precision: str) -> None:
    angles = pitch(moved(arm_of(timestep, Hinge(Y, (-0.3, 0.3)), [1.0, 10.0]), 2.0, precision=precision))
    turns = np.diff(angles, axis=1, prepend=0.0)
    assert turns.max() < 0.3 + 1e-4
    np.testing.assert_allclose(turns[-1], 0.3, atol=1e-5)


@every_timestep
@every_precision
def test_a_cone_stops_a_rod_that_falls(timestep: float, precision: str) -> None:
    scene = Scene(timestep=timestep)
    scene.add_body(Box((0.1, 0.1, 1.0)), (0, 0, 0.5), mass=2.0, angular_velocity=(0.3, 0.1, 0.0), **GHOST)
    scene.add_joint(Ball(swing=0.5, twist=(-0.2, 0.2), axis=Z), 0, WORLD, (0.0, 0.0, 0.0))
    states = moved(scene, 4.0, precision=precision)[:, 0]
    lean = 2 * np.arctan2(np.hypot(states[:, 4], states[:, 5]), np.hypot(states[:, 3], states[:, 6]))
    assert lean.max() < 0.5 + 1e-3
    assert lean[-1] == pytest.approx(0.5, abs=1e-4)


@every_timestep
@every_precision
@pytest.mark.parametrize("load", [1.0, 10.0, 1000.0])
def test_a_rope_of_light_links_is_as_long_as_it_is(load: float, timestep: float, precision: str) -> None:
    """Ten ropes of 0.2 m between balls of 0.1 kg, slack at first; the load falls by a tenth of a metre."""
    scene = Scene(timestep=timestep)
    places = [(0.0, 0.0, -0.19 * (k + 1)) for k in range(10)]
    scene.add_bodies(Sphere(0.05), places, mass=[*[0.1] * 9, load], **GHOST)
    for k, place in enumerate(places):
        above = (0.0, 0.0, place[2] + 0.19)
        scene.add_joint(Distance(upper=0.2), k, k - 1 if k else WORLD, place, anchor_b=above)
    height = moved(scene, 2.0, precision=precision)[:, -1, 2]
    assert height.min() > -2.0 - 2e-3
    assert height[-1] == pytest.approx(-2.0, abs=1e-4)


@every_timestep
@every_precision
def test_a_motor_slips_under_more_than_its_torque(timestep: float, precision: str) -> None:
    """The weight pulls with 9.81 N m: 9.9 hold it, and under 9.7 it turns by half the lack's acceleration a second."""
    ends = [pitch(moved(link(timestep, Hinge(Y, motor=Motor(0.0, torque))), 0.5, precision=precision)[:, 0])[-1]
            for torque in (9.9, 9.7)]  # fmt: skip
    inertia = 2.0 * (1.0 + 0.01) / 12 + 2.0 * 0.25
    assert abs(ends[0]) < 1e-5
    assert ends[1] == pytest.approx(0.11 / inertia * 0.5**2 / 2, rel=0.01)


@every_timestep
@every_precision
def test_friction_stops_a_wheel(timestep: float, precision: str) -> None:
    """At 1 N m on 1 kg m^2, 2 rad/s end after 2 s and 2 rad."""
    states = moved(wheel(timestep, Hinge(Z, friction=1.0), 2.0), 3.0, precision=precision)[:, 0]
    spin, turned = states[:, 12], np.unwrap(2 * np.arctan2(states[:, 6], states[:, 3]))
    assert spin[round(1 / timestep)] == pytest.approx(1.0, abs=1e-3)
    assert abs(spin[-1]) < 1e-5
    assert turned[-1] == pytest.approx(2.0, abs=1e-2)


@every_timestep
@every_precision
def test_a_motor_speeds_a_wheel_up(timestep: float, precision: str) -> None:
    """At 1 N m on 1 kg m^2, to its 2 rad/s and no more."""
    spin = moved(wheel(timestep, Hinge(Z, motor=Motor(2.0, 1.0))), 3.0, precision=precision)[:, 0, 12]
    assert spin[round(1 / timestep)] == pytest.approx(1.0, abs=1e-3)
    assert spin.max() < 2.0 + 1e-4
    assert spin[-1] == pytest.approx(2.0, abs=1e-4)


def on_slope(timestep: float, friction: float) -> tuple[Scene, Array]:
    """A box of 2 kg on a slider that leads down by 30 degrees, for a metre, and the way down."""
    down = np.array([np.cos(np.pi / 6), 0.0, -np.sin(np.pi / 6)])
    scene = Scene(timestep=timestep)
    scene.add_body(Box((0.2, 0.2, 0.2)), mass=2.0, **GHOST)
    scene.add_joint(Slider(tuple(down), (-1.0, 1.0), friction=friction), 0, WORLD, (0.0, 0.0, 0.0))
    return scene, down


@every_timestep
@every_precision
def test_a_slider_with_friction_slides_as_on_a_slope(timestep: float, precision: str) -> None:
    scene, down = on_slope(timestep, 3.0)
    states = moved(scene, 1.5, precision=precision)[:, 0]
    half = states[round(0.5 / timestep), 7:10] @ down
    assert half == pytest.approx((G / 2 - 3.0 / 2) * 0.5, rel=1e-3)
    assert (states[:, :3] @ down).max() < 1.0 + 1e-4
    assert states[-1, :3] @ down == pytest.approx(1.0, abs=1e-4)


@every_timestep
@every_precision
def test_a_slider_sticks_under_less_than_its_friction(timestep: float, precision: str) -> None:
    """It pulls with 9.81 N."""
    scene, down = on_slope(timestep, 9.9)
    assert np.abs(moved(scene, 1.0, precision=precision)[:, 0, :3] @ down).max() < 1e-5


@every_timestep
@every_precision
def test_friction_stops_a_slider(timestep: float, precision: str) -> None:
    """At 3 N on 2 kg, 3 m/s end after 2 s and 3 m."""
    scene = Scene(timestep=timestep, gravity=WEIGHTLESS)
    scene.add_body(Box((0.2, 0.2, 0.2)), mass=2.0, linear_velocity=(3.0, 0.0, 0.0), **GHOST)
    scene.add_joint(Slider(X, friction=3.0), 0, WORLD, (0.0, 0.0, 0.0))
    states = moved(scene, 3.0, precision=precision)[:, 0]
    assert states[round(1 / timestep), 7] == pytest.approx(1.5, rel=1e-3)
    assert abs(states[-1, 7]) < 1e-5
    assert states[-1, 0] == pytest.approx(3.0, abs=1e-2)


@every_timestep
@every_precision
def test_friction_stops_a_ball_joint(timestep: float, precision: str) -> None:
    """Against the turning, however it turns: 1 N m on 1 kg m^2 takes 1 rad/s each second from 3."""
    scene = Scene(timestep=timestep, gravity=WEIGHTLESS)
    scene.add_body(Sphere(0.5), mass=10.0, angular_velocity=(1.0, 2.0, 2.0), **GHOST)
    scene.add_joint(Ball(friction=1.0), 0, WORLD, (0.0, 0.0, 0.0))
    spins = moved(scene, 4.0, precision=precision)[:, 0, 10:13]
    np.testing.assert_allclose(spins[round(1 / timestep)], np.array([1.0, 2.0, 2.0]) * 2 / 3, atol=2e-3)
    assert np.abs(spins[-1]).max() < 1e-4


@every_timestep
@every_precision
def test_a_ball_joint_holds_what_its_friction_can_bear(timestep: float, precision: str) -> None:
    """A level beam whose weight pulls with 9.81 N m: 9.9 hold it, and under 9.7 it slips as a motor does."""
    ends = [pitch(moved(link(timestep, Ball(friction=torque)), 0.5, precision=precision)[:, 0])[-1]
            for torque in (9.9, 9.7)]  # fmt: skip
    inertia = 2.0 * (1.0 + 0.01) / 12 + 2.0 * 0.25
    assert abs(ends[0]) < 1e-4
    assert ends[1] == pytest.approx(0.11 / inertia * 0.5**2 / 2, rel=0.01)
