"""Forces of joints against statics and mechanics, for any workers; positions and velocities of those that move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lapjoint import (
    WORLD,
    Ball,
    Box,
    Breaks,
    Fixed,
    Hinge,
    LapjointError,
    Motor,
    Params,
    Scene,
    Simulation,
    SixAxis,
    Slider,
    Sphere,
    Spring,
)
from lapjoint.scene.joints import Joint

GRAVITY = 9.81
KEPT: dict[str, Any] = {"runtime": "inline", "keep_forces": True}
LINKS, MASS = 6, 2.0
TIGHT = [{"workers": 1}, {"workers": 2, "coupling": "tight"}, {"workers": 5, "coupling": "tight"}]


def chain(joint: Joint, count: int = 1) -> Scene:
    """Balls that hang from the world, one below the other; several such beside each other."""
    scene = Scene("chain", timestep=1 / 240)
    for x in range(count):
        scene.add_bodies(Sphere(0.1), [(x, 0, -0.3 * k) for k in range(LINKS)], mass=MASS)
        for k in range(LINKS):
            body = LINKS * x + k
            scene.add_joint(joint, body, body - 1 if k else WORLD, (x, 0, 0.15 - 0.3 * k))
    return scene


def forces_of(scene: Scene, steps: int, **params: Any) -> np.ndarray:
    with Simulation(scene, Params.from_options(**{**KEPT, **params})) as simulation:
        simulation.step(steps)
        return simulation.joints.forces(range(scene.joint_count))


@pytest.mark.slow
@pytest.mark.parametrize("joint", [Ball(), Hinge(axis=(0, 0, 1)), Fixed()], ids=["ball", "hinge", "fixed"])
@pytest.mark.parametrize("joints", ["swept", "direct"])
@pytest.mark.parametrize("params", TIGHT, ids=lambda one: str(one["workers"]))
def test_each_link_of_a_hanging_chain_holds_the_weight_below_it(
    joint: Joint, joints: str, params: dict[str, Any]
) -> None:
    forces = forces_of(chain(joint), 240, joints=joints, **params)
    up = 0 if isinstance(joint, Hinge) else 2  # its frame's x axis is the hinge's
    wanted = np.zeros((LINKS, 6))
    wanted[:, up] = MASS * GRAVITY * np.arange(LINKS, 0, -1)
    assert forces == pytest.approx(wanted, rel=1e-3, abs=1e-3 * MASS * GRAVITY)


@pytest.mark.slow
@pytest.mark.parametrize("joints", ["swept", "direct"])
@pytest.mark.parametrize("coupling", ["tight", "blend"])
@pytest.mark.parametrize("workers", [2, 5])
def test_chains_that_workers_do_not_share_are_held_as_by_one(workers: int, coupling: str, joints: str) -> None:
    """To the last bit. With blend, a chain that two workers share is held by each as far as it has it, and by what
    moves between them: that is no test of a force."""
    scene = chain(Ball(), 5)
    partition = np.repeat(np.arange(5) % workers, LINKS)
    one = forces_of(scene, 60, joints=joints)
    many = forces_of(scene, 60, joints=joints, workers=workers, coupling=coupling, partition=partition, repartition=0)
    assert np.array_equal(one, many)
    wanted = np.tile(MASS * GRAVITY * np.arange(LINKS, 0, -1), 5)
    assert many[:, 2] == pytest.approx(wanted, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("joints", ["swept", "direct"])
@pytest.mark.parametrize("params", TIGHT, ids=lambda one: str(one["workers"]))
def test_a_cantilever_is_held_by_weight_times_arm(joints: str, precision: str, params: dict[str, Any]) -> None:
    scene = Scene("cantilever", timestep=1 / 480)
    scene.add_bodies(Box((0.4, 0.1, 0.1)), [(0.2 + 0.4 * k, 0, 0) for k in range(5)], mass=MASS)
    for k in range(5):
        scene.add_joint(Fixed(), k, k - 1 if k else WORLD, (0.4 * k, 0, 0))
    forces = forces_of(scene, 480, joints=joints, precision=precision, **params)
    beyond = np.arange(5, 0, -1)
    assert forces[:, 2] == pytest.approx(beyond * MASS * GRAVITY, rel=1e-2)
    assert forces[:, 4] == pytest.approx(-(beyond**2) * 0.2 * MASS * GRAVITY, rel=1e-2)
    assert np.abs(forces[:, [0, 1, 3, 5]]).max() < 0.05 * MASS * GRAVITY


@pytest.mark.parametrize("joint", [Hinge(axis=(0, 1, 0)), Slider(axis=(0, 1, 0))])
def test_a_motor_that_is_too_weak_does_all_it_can(joint: Any) -> None:
    scene = Scene("motor", gravity=(0, 0, 0))
    scene.add_body(Sphere(0.5), mass=4.0)
    drive = type(joint)(axis=joint.axis, motor=Motor(1e6, 3.0))
    scene.add_joint(drive, 0, WORLD, (0, 0, 0))
    axis = 3 if isinstance(joint, Hinge) else 0
    with Simulation(scene, Params.from_options(**KEPT)) as simulation:
        simulation.step(50)
        wanted = np.zeros((1, 6))
        wanted[0, axis] = 3.0
        assert simulation.joints.forces([0]) == pytest.approx(wanted, abs=1e-4)
        inertia = scene.bodies.inertia[0, 0, 0] if axis == 3 else 4.0
        time = simulation.time
        assert simulation.joints.velocities([0], "free") == pytest.approx([3.0 / inertia * time], rel=1e-4)
        assert simulation.joints.positions([0], "free") == pytest.approx([1.5 / inertia * time**2], rel=0.02)


def test_a_motor_that_is_strong_enough_turns_at_its_speed() -> None:
    scene = Scene("motor")
    scene.add_body(Box((1, 0.2, 0.2)), (0.5, 0, 0), mass=1.0)
    scene.add_joint(Hinge(axis=(0, 0, 1), motor=Motor(2.0, 1e3)), 0, WORLD, (0, 0, 0))
    with Simulation(scene, Params.from_options(**KEPT)) as simulation:
        simulation.step(500)
        assert simulation.joints.positions([0]).shape == (1, 6)
        assert simulation.joints.positions([0], 3) == pytest.approx([2.0 * simulation.time], rel=0.01)
        assert simulation.joints.velocities([0], 3) == pytest.approx([2.0], rel=1e-4)
        simulation.step(1500)  # more than half a turn: angles are from -pi to pi
        angle = (2.0 * simulation.time + np.pi) % (2 * np.pi) - np.pi
        assert simulation.joints.positions([0], "free") == pytest.approx([angle], abs=0.02)


def test_springs_and_limits_count() -> None:
    """A weight on a spring, and one that rests on the end of a slider."""
    scene = Scene("spring", timestep=1 / 240)
    scene.add_bodies(Sphere(0.1), [(0, 0, 0), (1, 0, 0)], mass=MASS)
    linear = ((0, 0), (0, 0), (-1, 1))
    spring = Spring(stiffness=500.0, damping=60.0)
    scene.add_joint(SixAxis(linear=linear, angular=((0, 0),) * 3, springs={2: spring}), 0, WORLD, (0, 0, 0))
    scene.add_joint(Slider(axis=(0, 0, 1), limits=(-0.1, 0.1)), 1, WORLD, (1, 0, 0))
    with Simulation(scene, Params.from_options(**KEPT)) as simulation:
        simulation.step(1500)
        forces, positions = simulation.joints.forces([0, 1]), simulation.joints.positions([0, 1])
    assert forces[0] == pytest.approx([0, 0, MASS * GRAVITY, 0, 0, 0], rel=1e-3, abs=1e-3)
    assert -500.0 * positions[0, 2] == pytest.approx(MASS * GRAVITY, rel=1e-3)
    assert forces[1] == pytest.approx([MASS * GRAVITY, 0, 0, 0, 0, 0], rel=1e-3, abs=1e-3)
    assert positions[1, 0] == pytest.approx(-0.1, abs=1e-3)


@pytest.mark.parametrize("joints", ["swept", "direct"])
def test_what_turns_is_held_towards_its_middle_in_the_frame_that_turns(joints: str) -> None:
    """m w^2 r, and nothing across it, though the rotor turns by a third of a radian within the step."""
    scene = Scene("rotor", gravity=(0, 0, 0), timestep=1 / 60)
    spin = 20.0
    scene.add_body(Box((1, 1, 0.2)), mass=50.0, angular_velocity=(0, 0, spin))
    scene.add_body(
        Sphere(0.1), (0.9, 0, 0), mass=1.0, linear_velocity=(0, 0.9 * spin, 0), angular_velocity=(0, 0, spin)
    )
    scene.add_joint(Hinge(axis=(0, 0, 1)), 0, WORLD, (0, 0, 0))
    scene.add_joint(Fixed(), 1, 0, (0.9, 0, 0))
    with Simulation(scene, Params.from_options(**KEPT, joints=joints, substeps=16)) as simulation:
        simulation.step(60)
        now = simulation.joints.velocities([0], "free")[0]
        force = simulation.joints.forces([1])[0]
    assert force[0] == pytest.approx(-(now**2) * 0.9, rel=0.02)
    assert np.abs(force[1:]).max() < 0.02 * now**2 * 0.9


# ---- what can go wrong -----------------------------------------------------------------------------------------------


def test_what_is_not_kept_cannot_be_read() -> None:
    with Simulation(chain(Ball()), Params(runtime="inline")) as simulation:
        simulation.step()
        with pytest.raises(
            LapjointError, match=r"joints.forces: forces are not kept, expected Params\(keep_forces=True"
        ):
            simulation.joints.forces([0])
        assert simulation.joints.positions([0]).shape == (1, 6)
    with Simulation(chain(Ball()), Params.from_options(**KEPT)) as simulation:
        with pytest.raises(LapjointError, match=r"joints\.forces: no step has been taken yet"):
            simulation.joints.forces([0])
        simulation.step()
        for read in (simulation.joints.forces, simulation.joints.positions, simulation.joints.velocities):
            with pytest.raises(LapjointError, match=f"{read.__name__}: joint 6 does not exist, the scene has 6 joints"):
                read([0, 6])
            assert read([]).shape == (0, 6)
            assert read([3, 1, 3])[0].tolist() == read([3])[0].tolist()


@pytest.mark.parametrize("params", [{}, {"workers": 2}, {"workers": 2, "coupling": "blend"}])
def test_joints_that_come_and_go(params: dict[str, Any]) -> None:
    """One that breaks did what broke it in that step, and nothing later; one that was added does nothing before it."""
    scene = Scene("breaks", timestep=1 / 240)
    scene.add_bodies(Sphere(0.1), [(k, 0, 0) for k in range(3)], mass=MASS)
    for k in range(3):
        scene.add_joint(Fixed(breaks=Breaks(force=1.0) if k == 0 else None), k, WORLD, (k, 0, 0))
    with Simulation(scene, Params.from_options(**KEPT, **params)) as simulation:
        simulation.step()
        assert simulation.events.joint_breaks.joint.tolist() == [0]
        assert simulation.joints.forces([0, 1])[:, 2] == pytest.approx([MASS * GRAVITY] * 2, rel=1e-3)
        added = simulation.joints.add_one(Fixed(), 0, 1, (0.5, 0, 0))
        assert not simulation.joints.forces([added]).any()
        simulation.step()
        assert not simulation.joints.forces([0]).any()
        assert simulation.joints.forces([added]).any()
        simulation.bodies.remove([1])
        assert np.isnan(simulation.joints.positions([1, added])).all()
        simulation.step()
        assert not simulation.joints.forces([1, added]).any()
        assert simulation.joints.forces([2])[0, 2] == pytest.approx(MASS * GRAVITY, rel=1e-3)
