"""Joints that break: under what they should, once, for all workers, and however steps are taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faulty_engine import register, tell
from lapjoint import (
    WORLD,
    Ball,
    Box,
    Breaks,
    Checkpoint,
    CheckpointWriter,
    Fixed,
    Hinge,
    LapjointError,
    Params,
    Plane,
    Recording,
    Scene,
    Simulation,
    SixAxis,
    Slider,
    Sphere,
)
from lapjoint.measures.step import Measures
from lapjoint.run import run
from lapjoint.scene.serialize import describe_scene
from lapjoint.step_tables.breaks import JointBreaks
from lapjoint.view.page.panels import errors_mm
from lapjoint.view.page.snapshot import of_recording

GRAVITY = 9.81
UNBROKEN: dict[str, Any] = {"runtime": "inline"}


def hanging(joint: Any, count: int = 4, mass: float = 10.0, strengths: Any = None) -> Scene:
    """Boxes below each other, the first one at the world: joint k bears all from box k on."""
    scene = Scene("hanging")
    places = [(0.0, 0.0, 10.0 - 0.5 * k) for k in range(count)]
    scene.add_bodies(Box((0.2, 0.2, 0.2)), places, mass=mass)
    anchors = [(0.0, 0.0, 10.25 - 0.5 * k) for k in range(count)]
    scene.add_joints(joint, range(count), [WORLD, *range(count - 1)], anchors, breaks=strengths)
    return scene


def beam(torque: float, cells: int = 40, size: float = 0.1) -> Scene:
    """Cells in a row, glued to each other and to the world at one end, under their own weight."""
    scene = Scene("beam")
    scene.add_bodies(Box((size, size, size)), [((k + 0.5) * size, 0.0, 1.0) for k in range(cells)], density=1000.0)
    anchors = [(k * size, 0.0, 1.0) for k in range(cells)]
    scene.add_joints(Fixed(), range(cells), [WORLD, *range(cells - 1)], anchors, breaks=Breaks(torque=torque))
    return scene


# ---- under what ----------------------------------------------------------------------------------------------------

KINDS = {
    "ball": Ball(breaks=Breaks(force=1.0)),
    "hinge": Hinge(axis=(0.0, 1.0, 0.0), breaks=Breaks(force=1.0)),
    "fixed": Fixed(breaks=Breaks(force=1.0)),
    "slider at its limit": Slider(axis=(0.0, 0.0, 1.0), limits=(0.0, 0.0), breaks=Breaks(force=1.0)),
    "slider across": Slider(axis=(1.0, 0.0, 0.0), breaks=Breaks(force=1.0)),
    "six axes": SixAxis(angular=((-1.0, 1.0), (0.0, 0.0), (0.0, 0.0)), breaks=Breaks(force=1.0)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("joints", ["direct", "swept"])
def test_a_joint_bears_what_hangs_on_it(kind: str, joints: str) -> None:
    """All joints would break in the first step; the load of each is the weight below it."""
    with Simulation(hanging(KINDS[kind]), Params.from_options(joints=joints, substeps=16, **UNBROKEN)) as simulation:
        simulation.step()
        found = simulation.events.joint_breaks
    assert found.joint.tolist() == [0, 1, 2, 3]
    assert found.step.tolist() == [0] * 4
    assert found.load[:, 0] == pytest.approx(10.0 * GRAVITY * np.array([4, 3, 2, 1]), rel=0.02)
    assert found.load[:, 1] == pytest.approx(np.zeros(4), abs=0.5)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("joints", ["direct", "swept"])
def test_only_what_is_too_weak_breaks(workers: int, joints: str) -> None:
    weight = 10.0 * GRAVITY
    # Joints that are swept are springs: they swing about their load at first, and after a blow.
    shares = {"direct": (4.1, 3.1, 1.9, 1.1), "swept": (8.0, 7.0, 1.5, 4.0)}[joints]
    strengths = [Breaks(force=share * weight) for share in shares]
    params = Params.from_options(workers=workers, joints=joints, **UNBROKEN)
    with Simulation(hanging(Ball(), strengths=strengths), params) as simulation:
        simulation.step(100)
        assert simulation.events.joint_breaks.joint.tolist() == [2]
        assert simulation.joints.broken_ids.tolist() == [2]
        height = simulation.states[:, 2]
        assert height[:2] == pytest.approx([10.0, 9.5], abs=2e-3), "the upper two hang"
        fallen = 0.5 * GRAVITY * (simulation.time - simulation.timestep) ** 2
        assert height[2:] == pytest.approx([9.0 - fallen, 8.5 - fallen], abs=0.01), "the lower two fall together"
        gaps = simulation.joints.gaps()
        assert gaps[2] == 0
        assert gaps.max() < 2e-3


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_beam_breaks_at_its_support_under_the_moment_that_beam_theory_has(workers: int) -> None:
    moment = 1000.0 * 0.1**2 * GRAVITY * 4.0**2 / 2
    for share, breaks in ((1.03, False), (0.97, True)):
        with Simulation(beam(share * moment), Params.from_options(workers=workers, **UNBROKEN)) as simulation:
            simulation.step(50)
            found = simulation.events.joint_breaks
            assert found.joint.tolist() == ([0] if breaks else [])
            if breaks:
                assert found.load[0, 1] == pytest.approx(moment, rel=0.03)


def test_a_blow_is_felt_as_a_force_over_one_step() -> None:
    """A body that is stopped by its joint in one step does m v / dt to it, whatever the number of substeps."""
    loads = []
    for substeps in (2, 8):
        scene = Scene(gravity=(0, 0, 0), timestep=0.002)
        scene.add_body(Sphere(0.1), (0, 0, 0), mass=2.0, linear_velocity=(3.0, 0, 0))
        scene.add_joint(Ball(breaks=Breaks(force=1e-3)), 0, WORLD, (0, 0, 0))
        with Simulation(scene, Params.from_options(substeps=substeps, joints="direct", **UNBROKEN)) as simulation:
            simulation.step()
            loads.append(simulation.events.joint_breaks.load[0, 0])
    assert loads == pytest.approx([2.0 * 3.0 / 0.002] * 2, rel=0.02)


# ---- what follows --------------------------------------------------------------------------------------------------


def test_momentum_stays_and_nothing_explodes_when_a_joint_breaks() -> None:
    """Two bodies that turn about each other fly apart with the velocities that they have."""
    scene = Scene(gravity=(0, 0, 0))
    velocity = [(0.0, 4.0, 0.0), (0.0, -4.0, 0.0)]
    scene.add_bodies(Sphere(0.1), [(-0.5, 0, 0), (0.5, 0, 0)], mass=2.0, linear_velocities=velocity)
    pull = 2.0 * 4.0**2 / 0.5
    scene.add_joint(Fixed(breaks=Breaks(force=0.9 * pull)), 0, 1, (0, 0, 0))
    # The joint holds them to one body that spins.
    scene.set_states([0, 1], [[-0.5, 0, 0, 1, 0, 0, 0, 0, 4, 0, 0, 0, -8], [0.5, 0, 0, 1, 0, 0, 0, 0, -4, 0, 0, 0, -8]])
    with Simulation(scene, Params.from_options(**UNBROKEN)) as simulation:
        simulation.step(100)
        assert simulation.events.joint_breaks.load[0, 0] == pytest.approx(pull, rel=0.05)
        speed = np.linalg.norm(simulation.states[:, 7:10], axis=1)
        assert speed == pytest.approx([4.0, 4.0], rel=0.01)
        assert np.abs(simulation.states[:, 7:10].sum(axis=0)).max() < 1e-5
        assert np.linalg.norm(simulation.states[0, :3] - simulation.states[1, :3]) > 1.3


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_bodies_of_a_broken_joint_may_touch(workers: int) -> None:
    """Held apart by a joint, one falls on the other once it is broken, and comes to rest there."""
    scene = Scene()
    scene.add_static(Plane())
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [(0, 0, 0.5), (0, 0, 1.6)], mass=1.0)
    scene.add_joint(Ball(breaks=Breaks(force=5.0)), 1, 0, (0.0, 0.0, 1.05))
    with Simulation(scene, Params.from_options(workers=workers, **UNBROKEN)) as simulation:
        simulation.bodies.add_forces([1], [[0.0, 0.0, 30.0]])
        simulation.step(600)
        assert simulation.joints.broken_ids.tolist() == [0]
        assert simulation.states[:, 2] == pytest.approx([0.5, 1.5], abs=1e-3)
        assert len(simulation.contacts.pairs()) == 2


def random_net(seed: int) -> Scene:
    """A net of balls that swings down about its upper edge, with strengths at random: loads grow, and joint after joint
    breaks."""
    rng = np.random.default_rng(seed)
    side = 5
    scene = Scene("net", timestep=0.004)
    places = [(0.5 * x, 0.5 * y, 5.0) for y in range(side) for x in range(side)]
    scene.add_bodies(Sphere(0.1), places, mass=1.0)
    pairs = [(k, k + 1) for k in range(side**2) if k % side < side - 1]
    pairs += [(k, k + side) for k in range(side * (side - 1))]
    anchors = [(np.array(places[a]) + np.array(places[b])) / 2 for a, b in pairs]
    strengths = [Breaks(force=force) for force in rng.uniform(4.0, 60.0, len(pairs))]
    scene.add_joints(Ball(), *zip(*pairs, strict=True), anchors, breaks=strengths)
    for k in range(side):
        scene.add_joint(Ball(), k, WORLD, places[k])
    return scene


def after(scene: Scene, steps: int, at_once: int = 1, migrate: int = 0, **params: Any) -> tuple[str, list[Any]]:
    """The hash and all breaks of a run."""
    with Simulation(scene, Params.from_options(**{"runtime": "inline", "repartition": 0, **params})) as simulation:
        count = simulation.params.workers
        while simulation.step_count < steps:
            simulation._core.last_step_ms = 1e-3  # a guess: nothing keeps workers from taking all at once
            simulation.step(min(at_once, steps - simulation.step_count))
            if migrate and simulation.step_count % migrate == 0:
                owners = np.random.default_rng(simulation.step_count).permutation(np.arange(scene.body_count) % count)
                simulation.workers.repartition(owners)
        return simulation.state_hash, [column.tolist() for column in vars(simulation.events.joint_breaks).values()]


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 3))
def test_breaks_do_not_depend_on_how_steps_are_taken(seed: int, workers: int) -> None:
    scene = random_net(seed)
    one_by_one = after(scene, 160, workers=workers, validate=True)
    assert len(one_by_one[1][1]) > 1, "nothing broke"
    assert len(set(one_by_one[1][1])) == len(one_by_one[1][1]), "once for all"
    assert after(scene, 160, 80, workers=workers) == one_by_one


@pytest.mark.slow
def test_breaks_are_the_same_in_processes_and_stay_where_bodies_migrate() -> None:
    scene = random_net(3)
    wanted = after(scene, 160, workers=3)
    assert after(scene, 160, 80, workers=3, runtime="process") == wanted
    moving = after(scene, 160, migrate=10, workers=3, validate=True)
    assert after(scene, 160, 5, migrate=10, workers=3, runtime="process") == moving
    one = after(scene, 160, workers=1)
    assert {*moving[1][1]} == {*one[1][1]} == {*wanted[1][1]}, "whoever simulates it"


@pytest.mark.slow
def test_joints_that_broke_in_steps_taken_again_break_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker dies after some steps at once, in which joints broke: all go back, and nothing is broken too early."""
    register(tmp_path, monkeypatch)
    scene = random_net(5)
    params: dict[str, Any] = {"workers": 2, "repartition": 0, "solver": "substeps", "coupling": "tight"}
    steps, joints, _ = after(scene, 160, **params)[1]
    with Simulation(scene, Params.from_options(engine="faulty", runtime="process", **params)) as simulation:
        simulation.step()
        simulation._core.last_step_ms = 1e-3
        tell("kill", 0, when="end")
        simulation.step(100)
        assert [(event.kind, event.step_count) for event in simulation.incidents] == [("gone", 1)]
        found = simulation.events.joint_breaks
        assert sum(1 <= step <= 100 for step in steps) > 1, "joints broke in the steps that were taken again"
        assert [step for step in found.step.tolist() if step < 5] == [step for step in steps if step < 5]
        assert simulation.joints.broken_ids.tolist() == sorted(found.joint.tolist())
        assert len(set(found.joint.tolist()) & set(joints)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_resumed_run_has_the_same_breaks(tmp_path: Path, workers: int) -> None:
    scene, params = random_net(7), {"workers": 2, "repartition": 0}
    wanted = after(scene, 160, **params)
    middle = wanted[1][0][len(wanted[1][0]) // 2] + 1
    with Simulation(scene, Params.from_options(runtime="inline", **params)) as simulation:
        simulation.step(middle)
        assert 0 < len(simulation.joints.broken_ids) < len(wanted[1][1])
        checkpoint = Checkpoint(CheckpointWriter(tmp_path, simulation).save(simulation))
    with checkpoint.resume(workers=workers) as simulation:
        simulation.step(160 - middle)
        found = [column.tolist() for column in vars(simulation.events.joint_breaks).values()]
        assert simulation.joints.broken_ids.tolist() == sorted(found[1])
        if workers == 2:
            assert (simulation.state_hash, found) == wanted
        else:
            assert {*found[1]} == {*wanted[1][1]}


def test_with_blend_the_server_tells_all_workers() -> None:
    with Simulation(random_net(9), Params(workers=3, runtime="inline", coupling="blend", validate=True)) as simulation:
        simulation.step(160)
        found = simulation.events.joint_breaks
        assert len(found.joint) > 1
        assert len(set(found.joint.tolist())) == len(found.joint)
        for worker in simulation._core.runtime._workers:  # type: ignore[attr-defined]
            assert not set(worker._engine.live_joint_ids.tolist()) & set(found.joint.tolist())


def test_a_recording_has_what_broke_up_to_each_frame(tmp_path: Path) -> None:
    with Simulation(random_net(13), Params(workers=2, runtime="inline")) as simulation:
        simulation.step(10)
        run(simulation, 90, record=tmp_path / "net", record_every=30)
        wanted = simulation.events.joint_breaks
    recording = Recording(tmp_path / "net")
    assert len(wanted.joint) > 3
    for frame in range(3):
        until = wanted.step < 10 + 30 * (frame + 1)
        found = recording.joint_breaks(frame)
        for name in ("step", "joint", "load"):
            assert np.array_equal(getattr(found, name), getattr(wanted, name)[until]), name
    shown = of_recording(recording, 2)
    assert errors_mm(shown)["joint gap"] < 1.0, "of joints that hold"
    with Simulation(hanging(Ball()), Params(runtime="inline")) as simulation:
        run(simulation, 3, record=tmp_path / "plain")
    assert JointBreaks not in Recording(tmp_path / "plain").kinds
    assert len(Recording(tmp_path / "plain").joint_breaks().joint) == 0


def test_a_restart_mends_everything() -> None:
    with Simulation(random_net(11), Params(workers=2, runtime="inline")) as simulation:
        simulation.step(160)
        assert len(simulation.joints.broken_ids)
        simulation.restart()
        assert len(simulation.joints.broken_ids) == len(simulation.events.joint_breaks.joint) == 0
        simulation.step()
        assert simulation.joints.gaps().max() < 1e-3


def test_a_broken_joint_has_no_gap_in_any_measure() -> None:
    with Simulation(hanging(Ball(breaks=Breaks(force=50.0))), Params(runtime="inline")) as simulation:
        measures = Measures(simulation, ["joint_gap_max", "one_step_error"])
        for _ in range(20):
            measures.before_step(simulation)
            simulation.step()
            found = measures.after_step(simulation)
            assert found["joint_gap_max"] == 0
            assert found["one_step_error"] == 0


# ---- by hand -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"workers": 1},
        {"workers": 2},
        {"workers": 2, "coupling": "blend"},
        {"workers": 1, "solver": "sequential"},
        {"workers": 2, "solver": "sequential"},
    ],
)
def test_a_joint_that_is_removed_lets_go(params: dict[str, Any]) -> None:
    with Simulation(hanging(Ball()), Params.from_options(runtime="inline", **params)) as simulation:
        simulation.step(5)
        simulation.joints.remove([2])
        assert simulation.joints.broken_ids.tolist() == [2]
        simulation.step(100)
        fallen = 0.5 * GRAVITY * (100 * simulation.timestep) ** 2
        assert simulation.states[:, 2] == pytest.approx([10.0, 9.5, 9.0 - fallen, 8.5 - fallen], abs=0.01)
        assert len(simulation.events.joint_breaks.joint) == 0, "it did not break"
        assert simulation.joints.gaps()[2] == 0


def test_what_cannot_be_removed() -> None:
    with Simulation(hanging(Ball()), Params(runtime="inline")) as simulation:
        for wrong, message in (([4], "joint 4 does not exist, the scene has 4 joints"), ([-1], "joint -1 does not")):
            with pytest.raises(LapjointError, match=f"joints.remove: {message}"):
                simulation.joints.remove(wrong)
        simulation.joints.remove([1])
        with pytest.raises(LapjointError, match=r"joints\.remove: joint 1 has broken or was removed before"):
            simulation.joints.remove([0, 1])
        assert simulation.joints.broken_ids.tolist() == [1], "nothing of it was done"
        simulation.joints.remove([])
    pytest.importorskip("rapier3d")
    message = "joints.remove: joints stay with the engine rapier, expected bullet"
    params = Params(runtime="inline", engine="rapier", precision="float32")
    with Simulation(hanging(Ball()), params) as simulation, pytest.raises(LapjointError, match=message):
        simulation.joints.remove([0])


# ---- scenes --------------------------------------------------------------------------------------------------------


def test_strengths_are_part_of_a_scene_and_of_its_file(tmp_path: Path) -> None:
    scene = hanging(Ball(), strengths=[Breaks(force=5.0), Breaks(torque=2.0), Breaks(3.0, 4.0), Breaks(force=1.0)])
    again = Scene.load(scene.save(tmp_path / "scene.npz"))
    assert again == scene
    assert again.joints.break_force.tolist() == [5.0, np.inf, 3.0, 1.0]
    assert again.joints.break_torque.tolist() == [np.inf, 2.0, 4.0, np.inf]


def test_a_scene_without_strengths_has_the_file_it_had() -> None:
    assert not any("break" in name for name in describe_scene(hanging(Ball()))[1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Breaks(force=0.0), "Breaks: force is 0.0, expected a positive number"),
        (lambda: Breaks(force=1.0, torque=float("nan")), "Breaks: torque is nan, expected a positive number"),
        (lambda: Breaks(force="1 kN"), "Breaks: force is '1 kN', expected a positive number"),
        (lambda: Breaks(), "Breaks: neither force nor torque is given"),
        (lambda: hanging(Ball(breaks=3.0)), "joint 0: breaks is 3.0, expected a Breaks"),  # type: ignore[arg-type]
        (lambda: hanging(Ball(), strengths=[Breaks(1.0)] * 3), "joint 0: 3 breaks for 4 joints, expected one or 4"),
    ],
)
def test_wrong_strengths(make: Any, message: str) -> None:
    with pytest.raises(LapjointError, match=message):
        make()


@pytest.mark.parametrize("params", [{"solver": "sequential"}, {"engine": "rapier"}, {"engine": "mujoco:float64"}])
def test_who_cannot_break_joints_says_so(params: dict[str, Any]) -> None:
    if "engine" in params:
        pytest.importorskip({"rapier": "rapier3d", "mujoco:float64": "mujoco"}[params["engine"]])
    with pytest.raises(LapjointError, match=r"scene 'hanging': joint 0 is a Fixed (with breaks|that breaks), which"):
        Simulation(hanging(Fixed(breaks=Breaks(force=1.0))), Params.from_options(**params))
