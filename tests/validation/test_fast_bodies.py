"""Fast bodies: what they come to within a step stops them, however thin; what they pass by does not.

Params has the couplings; a wall's bodies and the projectile are of different workers where there are several.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint import (
    Box,
    Capsule,
    Compound,
    ConvexHull,
    Cylinder,
    Fixed,
    Material,
    Params,
    Part,
    Plane,
    Scene,
    Simulation,
    Sphere,
    TriangleMesh,
)
from lapjoint.scene.motions import ConstantVelocity
from lapjoint.scene.thickness import thickness

ONE: dict[str, Any] = {"workers": 1}
BLEND: dict[str, Any] = {"workers": 2, "coupling": "blend", "partition": "labels"}
TIGHT: dict[str, Any] = {"workers": 2, "coupling": "tight", "partition": "labels"}
SERVER: dict[str, Any] = {**BLEND, "detect": "server"}
COUPLINGS = [
    pytest.param(one, id=name)
    for name, one in (("one", ONE), ("blend", BLEND), ("server detects", SERVER), ("tight", TIGHT))
]
HULL = ConvexHull(np.random.default_rng(0).normal(size=(12, 3)) * 0.08)
DUMBBELL = Compound((Part(Sphere(0.1), (0.1, 0, 0)), Part(Box((0.1, 0.1, 0.1)), (-0.1, 0, 0))))
PROJECTILES = [Sphere(0.1), Sphere(0.3), Box((0.2, 0.1, 0.3)), HULL, Capsule(0.05, 0.2), Cylinder(0.1, 0.1), DUMBBELL]
SMOOTH = Material(friction=0.0, restitution=0.0)


def direction(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle), 0.0])


def end_of(scene: Scene, seconds: float, **params: Any) -> Simulation:
    """The scene after a time, its simulation closed but for what it knows."""
    simulation = Simulation(scene, Params.from_options(runtime="inline", **params))
    simulation.step(int(np.ceil(seconds / scene.timestep)))
    return simulation


def shot(scene: Scene, shape: Any, speed: float, angle: float = 0.0, start: float = 2.37, **options: Any) -> int:
    way = direction(angle)
    options = {"mass": 10.0, "material": SMOOTH, "labels": 1} | options
    return scene.add_body(shape, -start * way, linear_velocity=speed * way, **options)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    shape=st.sampled_from(PROJECTILES),
    speed=st.floats(20.0, 400.0),
    wall=st.sampled_from([0.02, 0.05, 0.2]),
    timestep=st.sampled_from([1 / 60, 1 / 200, 1 / 500]),
    angle=st.floats(0.0, 1.2),
    start=st.floats(1.0, 6.0),
    precision=st.sampled_from(["float32", "float64"]),
)
def test_nothing_passes_a_static_wall(
    shape: Any, speed: float, wall: float, timestep: float, angle: float, start: float, precision: str
) -> None:
    scene = Scene("shot", gravity=(0, 0, 0), timestep=timestep)
    scene.add_static(Box((wall, 60, 60)), material=SMOOTH)
    body = shot(scene, shape, speed, angle, start)
    with end_of(scene, 1.5 * start / speed + 2 * timestep, precision=precision) as simulation:
        place, velocity = simulation.states[body, 0], simulation.states[body, 7]
    assert place < -wall / 2
    assert velocity < 0.2 * speed


def test_a_mesh_and_a_plane_are_walls_too() -> None:
    scene = Scene("shot", gravity=(0, 0, 0), timestep=1 / 60)
    corners = [(0.0, -9, -9), (0.0, 9, -9), (0.0, 9, 9), (0.0, -9, 9)]
    scene.add_static(TriangleMesh(corners, [(0, 1, 2), (0, 2, 3)]), material=SMOOTH)
    scene.add_static(Plane(), (20.0, 0, 0), (np.sqrt(0.5), 0, -np.sqrt(0.5), 0), material=SMOOTH)  # its inside: x > 20
    first = shot(scene, Sphere(0.05), 300.0, start=2.0)
    second = scene.add_body(Box((0.1, 0.1, 0.1)), (15.0, 0, 0), linear_velocity=(400.0, 0, 0), material=SMOOTH)
    with end_of(scene, 0.1) as simulation:
        places = simulation.states[:, 0]
    assert places[first] == pytest.approx(-0.05, abs=0.01)
    assert places[second] == pytest.approx(19.95, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("params", COUPLINGS)
@pytest.mark.parametrize(("speed", "timestep"), [(20.0, 1 / 60), (200.0, 1 / 60), (400.0, 1 / 200), (200.0, 1 / 500)])
@pytest.mark.parametrize("shape", [Sphere(0.1), Box((0.2, 0.2, 0.2))], ids=["ball", "box"])
@pytest.mark.parametrize("wall", [0.05, 0.2])
def test_a_wall_that_is_a_body_takes_the_momentum(
    params: dict[str, Any], speed: float, timestep: float, shape: Any, wall: float
) -> None:
    scene = Scene("shot", gravity=(0, 0, 0), timestep=timestep)
    target = scene.add_body(Box((wall, 4, 4)), mass=1000.0, labels=0)
    scene.add_body(Box((wall, 0.4, 0.4)), (0, 5, 0), labels=0)
    body = shot(scene, shape, speed, start=5.0, hit_impulse=1.0)
    scene.add_body(Sphere(0.1), (0, -20, 0), labels=1)
    with end_of(scene, 8.0 / speed + 2 * timestep, **params) as simulation:
        states, hits = simulation.states, simulation.events.hits
        assert not simulation.incidents  # nobody waited for somebody, nor is a blow energy from nowhere
    assert states[body, 0] < states[target, 0] - wall / 2
    together = 10.0 * speed / 1010.0
    if params not in (BLEND, SERVER):  # which keeps momentum only about
        momentum = scene.bodies.mass @ states[:, 7:10]
        np.testing.assert_allclose(momentum, [10 * speed, 0, 0], atol=1e-3 * speed)
        assert states[body, 7] == pytest.approx(together, rel=0.02)
        assert hits.impulse.sum() == pytest.approx(10.0 * (speed - together), rel=0.02)
    assert hits.bodies[0].tolist() == [target, body]
    assert hits.impulse[0] == pytest.approx(10.0 * (speed - together), rel=0.05)
    np.testing.assert_allclose(np.abs(hits.normal[0]), [1, 0, 0], atol=1e-3)
    assert hits.point[0, 0] == pytest.approx(-wall / 2, abs=0.02)  # where it is met, not where anybody was


@pytest.mark.parametrize("params", COUPLINGS)
@pytest.mark.parametrize(("speed", "timestep"), [(20.0, 1 / 60), (200.0, 1 / 60), (400.0, 1 / 500)])
def test_two_fast_bodies_meet_head_on(params: dict[str, Any], speed: float, timestep: float) -> None:
    scene = Scene("meeting", gravity=(0, 0, 0), timestep=timestep)
    bouncy = Material(restitution=1.0)
    for side, radius in ((-1, 0.05), (1, 0.08)):
        scene.add_body(
            Sphere(radius),
            (3.03 * side, 0, 0),
            linear_velocity=(-speed * side, 0, 0),
            mass=1.0,
            labels=(1 + side) // 2,
            material=bouncy,
        )
    with end_of(scene, 4.5 / speed + 2 * timestep, **params) as simulation:
        (place, other), (velocity, back) = simulation.states[:, 0], simulation.states[:, 7]
    assert place < other
    if params not in (BLEND, SERVER):
        assert (velocity, back) == (pytest.approx(-speed, rel=0.01), pytest.approx(speed, rel=0.01))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    shape=st.sampled_from([Sphere(0.1), Box((0.2, 0.2, 0.2)), Capsule(0.1, 0.1)]),
    speed=st.floats(60.0, 400.0),
    timestep=st.sampled_from([1 / 60, 1 / 200, 1 / 500]),
    gap=st.sampled_from([1e-3, 3e-4]),
    share=st.floats(0.0, 1.0),
)
def test_what_is_passed_by_does_not_deflect(
    shape: Any, speed: float, timestep: float, gap: float, share: float
) -> None:
    scene = Scene("by", gravity=(0, 0, 0), timestep=timestep)
    scene.add_static(Box((0.2, 2, 2)), (0, -1.1 - gap, 0))
    body = shot(scene, shape, speed, start=2.0 + share * speed * timestep)
    with end_of(scene, 4.0 / speed, **ONE) as simulation:
        velocity = simulation.states[body, 7:10]
    np.testing.assert_allclose(velocity, [speed, 0, 0], atol=1e-4 * speed)


def brick_wall(scene: Scene, **options: Any) -> range:
    places = [(0.0, 0.52 * (k % 5 - 2), 0.25 + 0.5 * (k // 5)) for k in range(25)]
    return scene.add_bodies(Box((0.2, 0.5, 0.48)), places, density=2000.0, **options)


@pytest.mark.parametrize("params", COUPLINGS)
@pytest.mark.parametrize("jointed", [False, True], ids=["stacked", "jointed"])
def test_a_wall_of_bricks_is_hit(params: dict[str, Any], jointed: bool) -> None:
    """What flies off behind it does so because it was hit: nothing of the ball's momentum is lost."""
    scene = Scene("bricks", gravity=(0, 0, 0), timestep=1 / 60)
    bricks = brick_wall(scene, labels=0)
    if jointed:
        pairs = [(k, k + 1) for k in range(24) if k % 5 < 4] + [(k, k + 5) for k in range(20)]
        middle = [(scene.bodies.position[a] + scene.bodies.position[b]) / 2 for a, b in pairs]
        scene.add_joints(Fixed(), [a for a, _ in pairs], [b for _, b in pairs], middle)
    ball = scene.add_body(
        Sphere(0.1), (-5.0, 0.1, 1.2), linear_velocity=(200.0, 0, 0), mass=30.0, labels=1, hit_impulse=1.0
    )
    scene.add_body(Sphere(0.1), (0, -20, 0), labels=1)
    with end_of(scene, 4 / 60, **params) as simulation:
        states, hits = simulation.states, simulation.events.hits
    assert hits.impulse.max() > 1000.0
    assert states[ball, 7] < 150.0
    if params not in (BLEND, SERVER):
        assert scene.bodies.mass @ states[:, 7] == pytest.approx(6000.0, rel=1e-3)
    assert states[list(bricks), 7].max() > 2.0


def test_what_is_hit_does_not_pass_what_is_behind_it() -> None:
    """Within the step in which it is hit itself."""
    scene = Scene("behind", gravity=(0, 0, 0), timestep=1 / 60)
    brick = scene.add_body(Box((0.2, 0.2, 0.2)), mass=1.0, material=SMOOTH)
    scene.add_static(Box((0.1, 9, 9)), (0.6, 0, 0), material=SMOOTH)
    ball = shot(scene, Sphere(0.1), 200.0, start=1.0, mass=10.0)
    with end_of(scene, 0.1) as simulation:
        places = simulation.states[:, 0]
    assert 0.0 < places[brick] < 0.47  # squeezed between a heavy ball and the wall, it may be pushed back
    assert places[ball] < places[brick]


def test_a_body_that_slides_along_a_wall_is_stopped_by_the_next() -> None:
    """Both within one step: its way bends where it meets the first."""
    scene = Scene("corner", gravity=(0, 0, 0), timestep=1 / 60)
    scene.add_static(Box((0.1, 9, 9)), (0.05, 0, 0), material=SMOOTH)  # x < 0 is free
    scene.add_static(Box((4, 0.05, 9)), (-2.0, 1.5, 0), material=SMOOTH)  # and y < 1.475
    body = scene.add_body(Sphere(0.1), (-0.5, -0.3, 0), linear_velocity=(150.0, 150.0, 0), mass=1.0, material=SMOOTH)
    with end_of(scene, 0.1) as simulation:
        place = simulation.states[body, :2]
    np.testing.assert_allclose(place, [-0.1, 1.375], atol=0.02)


def test_a_fast_kinematic_body_takes_along_what_it_meets() -> None:
    scene = Scene("bat", gravity=(0, 0, 0), timestep=1 / 60)
    scene.add_kinematic(Box((0.1, 2, 2)), (-3.0, 0, 0), motion=ConstantVelocity((100.0, 0, 0)))
    ball = scene.add_body(Sphere(0.1), mass=1.0, material=SMOOTH)
    with end_of(scene, 0.1) as simulation:
        assert simulation.states[ball, 7] == pytest.approx(100.0, rel=0.01)
        assert simulation.states[ball, 0] > simulation.kinematic.static_poses[0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("params", [ONE, BLEND, TIGHT], ids=["one", "blend", "tight"])
def test_processes_compute_the_same(params: dict[str, Any]) -> None:
    scene = Scene("bricks", timestep=1 / 60)
    scene.add_static(Plane())
    brick_wall(scene, labels=0)
    for k in range(3):
        scene.add_body(Sphere(0.1), (-3.0 - k, 0, 1.0), linear_velocity=(200.0, 0, 0), mass=10.0, labels=1)
    hashes = []
    for runtime in ("inline", "process"):
        with Simulation(scene, Params.from_options(runtime=runtime, **params)) as simulation:
            simulation.step(6)
            hashes.append(simulation.state_hash)
    with Simulation(scene, Params.from_options(runtime="inline", **params)) as simulation:
        for _ in range(6):
            simulation.step()
        hashes.append(simulation.state_hash)
    assert len(set(hashes)) == 1


def test_tight_coupling_computes_what_one_worker_does() -> None:
    scene = Scene("bricks", gravity=(0, 0, 0), timestep=1 / 60)
    brick_wall(scene, labels=0)
    shot(scene, Sphere(0.1), 200.0, start=3.0)
    ends = []
    for params in (ONE, TIGHT):
        with end_of(scene, 2 / 60, precision="float64", **params) as simulation:
            ends.append(simulation.states)
    # Constraints between workers are swept in another order.
    np.testing.assert_allclose(ends[1][-1, 7:10], ends[0][-1, 7:10], rtol=0.05, atol=2.0)


def test_thickness() -> None:
    turned = Compound((Part(Box((1, 1, 0.1)), (0, 0, 0), (0.8, 0.6, 0.0, 0.0)),))
    plate = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-0.05, 0.05)])
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    assert [thickness(one) for one in (Sphere(2.0), Box((3, 1, 2)), Capsule(0.2, 5), Cylinder(0.4, 0.2))] == [
        2.0,
        0.5,
        0.2,
        0.1,
    ]
    assert thickness(turned) == pytest.approx(0.05)
    assert thickness(ConvexHull(plate @ turn)) == pytest.approx(0.05)
    assert thickness(Plane()) == np.inf
