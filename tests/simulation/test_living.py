"""Bodies and joints that are added and removed while a simulation runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapjoint import (
    Ball,
    Box,
    Breaks,
    Checkpoint,
    CheckpointWriter,
    Fixed,
    LapjointError,
    Params,
    Plane,
    Scene,
    Simulation,
    SixAxis,
    Sphere,
    Spring,
)
from lapjoint.scene.joints import FREE, LOCKED, WORLD


def boxes(count: int = 8) -> Scene:
    """A row of boxes on the ground."""
    scene = Scene("row")
    scene.add_static(Plane())
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [[2.0 * i, 0.0, 0.501] for i in range(count)])
    return scene


def start(**params: Any) -> Simulation:
    params = {"runtime": "inline", "validate": True, **params}
    return Simulation(boxes(), Params.from_options(**params))


def live(simulation: Simulation, first: int, last: int) -> list[str]:
    """Add, join and remove in every one of these rounds; the hashes after each."""
    hashes = []
    for k in range(first, last):
        x, z = 2.0 * (k % 8), 1.6 + 2.5 * (k // 8)
        shape = Sphere(0.3) if k % 2 else Box((0.5, 0.5, 0.5))
        ids = simulation.bodies.add(shape, [[x, 0.1 * j, z + 0.6 * j] for j in range(2)])
        if k % 3 == 2:
            simulation.joints.add(Ball(), [ids[0]], [ids[1]], [[x, 0.05, z + 0.3]])
        simulation.step(2)
        if k % 5 == 4:
            simulation.bodies.remove(np.flatnonzero(simulation.alive)[[1, -3]])
        simulation.step(1)
        hashes.append(simulation.state_hash)
    return hashes


WAYS = [{"workers": 1}, {"workers": 2, "coupling": "tight"}, {"workers": 3, "coupling": "blend"}]


# ---- made and removed ------------------------------------------------------------------------------------------------


def test_numbers_only_grow_and_removed_ones_are_not_used_again() -> None:
    with start() as simulation:
        assert list(simulation.bodies.add(Sphere(0.2), [[0, 0, 3], [2, 0, 3]])) == [8, 9]
        simulation.step(3)
        simulation.bodies.remove([9, 3])
        assert simulation.bodies.add_one(Sphere(0.2), (4, 0, 3), name="late") == 10
        simulation.step(3)
        assert np.flatnonzero(~simulation.alive).tolist() == [3, 9]
        assert not simulation.states[[3, 9]].any()
        assert simulation.scene.body_id("late") == 10
        assert simulation.replies[0].body_count == 9


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_body_that_is_added_falls_as_one_that_was_there(way: dict[str, Any]) -> None:
    fall = 0.5 * 9.81 * 0.2**2
    with start(**way) as simulation:
        simulation.step(7)
        body = simulation.bodies.add_one(Sphere(0.3), (6.0, 0.0, 5.0), linear_velocity=(1.0, 0.0, 0.0))
        steps = round(0.2 / simulation.timestep)
        simulation.step(steps)
        state = simulation.states[body]
        assert state[0] == pytest.approx(6.2, abs=1e-4)
        assert state[2] == pytest.approx(5.0 - fall, abs=2e-3)
        assert state[9] == pytest.approx(-9.81 * 0.2, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_what_rests_on_a_removed_body_falls(way: dict[str, Any]) -> None:
    with start(**way) as simulation:
        top = simulation.bodies.add_one(Box((0.8, 0.8, 0.8)), (6.0, 0.0, 1.402))
        simulation.step(50)
        assert simulation.states[top, 2] > 1.39
        simulation.bodies.remove([3])
        simulation.step(500)
        assert simulation.states[top, 2] == pytest.approx(0.4, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_joints_that_are_added_hold_bodies_as_they_stand(way: dict[str, Any]) -> None:
    with start(**way) as simulation:
        simulation.step(10)
        simulation.set_states([2], [[4.0, 0.0, 3.0, 1, 0, 0, 0, *[0.0] * 6]])
        joint = simulation.joints.add_one(Fixed(), 2, WORLD, (4.0, 0.0, 3.0))
        other = simulation.joints.add(Fixed(), [6], [5], [[11.0, 0.0, 0.5]])[0]
        simulation.step(200)
        assert simulation.states[2, :3] == pytest.approx([4.0, 0.0, 3.0], abs=1e-3)
        assert simulation.joints.gaps()[[joint, other]] == pytest.approx(0.0, abs=1e-3)
        simulation.set_states([5], [[10.0, 0.0, 2.5, 1, 0, 0, 0, *[0.0] * 6]])
        simulation.set_states([6], [[12.0, 0.0, 2.5, 1, 0, 0, 0, *[0.0] * 6]])
        simulation.bodies.remove([5])
        assert simulation.joints.broken_ids.tolist() == [other]
        simulation.step(500)
        assert simulation.states[6, 2] == pytest.approx(0.5, abs=0.01)


def test_joints_that_are_added_break() -> None:
    with start(workers=2, coupling="tight") as simulation:
        simulation.step(5)
        ball = simulation.bodies.add_one(Sphere(0.2), (3.0, 0.0, 4.0), mass=10.0)
        simulation.joints.add(Fixed(), [ball], [WORLD], [[3.0, 0.0, 4.0]], breaks=Breaks(force=50.0))
        simulation.step(3)
        assert simulation.events.joint_breaks.joint.tolist() == [0]


# ---- wherever workers are --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_runtimes_have_the_same_states(way: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapjoint.server.coupling.tight.MOST_INTERFACE", 1000)  # messages need more room, too
    found = []
    for runtime in ("inline", "process"):
        with start(**way, runtime=runtime) as simulation:
            found.append(live(simulation, 0, 30))
    assert found[0] == found[1]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_from_a_callback(way: dict[str, Any]) -> None:
    def feed(simulation: Simulation) -> None:
        if simulation.step_count % 5 == 0:
            simulation.bodies.add_one(Sphere(0.2), (simulation.step_count % 14, 0.0, 3.0))
        if simulation.step_count % 20 == 0:
            simulation.bodies.remove(np.flatnonzero(simulation.alive)[:1])

    with start(**way) as simulation:
        simulation.on_step(feed)
        simulation.step(60)
        assert (simulation.scene.body_count, int(simulation.alive.sum())) == (20, 17)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_worker_killed_in_the_very_step_of_a_change(way: dict[str, Any]) -> None:
    with start(**way, runtime="process") as simulation:
        live(simulation, 0, 6)
        new = simulation.bodies.add(Sphere(0.3), [[1.0, 0.0, 4.0], [9.0, 0.0, 4.0]])
        simulation.bodies.remove([4])
        simulation._core.runtime._children[-1]._process.kill()  # type: ignore[attr-defined]
        simulation.step(3)
        assert [event.kind for event in simulation.incidents] == ["gone"]
        assert simulation.alive[new].all()
        assert simulation.states[new[0], 9] == pytest.approx(-9.81 * 3 * simulation.timestep, rel=1e-3)
        assert not simulation.alive[4]
        live(simulation, 6, 12)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_other_workers_take_over(way: dict[str, Any]) -> None:
    with start(**way, runtime="process") as simulation:
        live(simulation, 0, 6)
        simulation.workers.set_count(4)
        live(simulation, 6, 12)
        simulation.workers.set_count(1)
        live(simulation, 12, 18)
        assert np.isfinite(simulation.states).all()
        assert simulation.replies[0].body_count == simulation.alive.sum()


@pytest.mark.parametrize("way", WAYS[1:], ids=str)
def test_a_repartition_leaves_out_who_is_gone(way: dict[str, Any]) -> None:
    with start(**way) as simulation:
        live(simulation, 0, 10)
        partition = np.arange(simulation.scene.body_count) % way["workers"]
        simulation.workers.repartition(partition)
        live(simulation, 10, 12)
        simulation.bodies.add(Sphere(0.2), [[0.0, 3.0, 1.0]])
        assert simulation.workers.membership.bits.any(axis=1).tolist() == simulation.alive.tolist()


# ---- and goes on -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_resumed_run_goes_on_with_the_same_numbers(way: dict[str, Any], tmp_path: Path) -> None:
    with start(**way) as first:
        live(first, 0, 11)
        first.bodies.add(Box((0.4, 0.4, 0.4)), [[3.0, 0.0, 6.0]])  # which no worker has yet
        first.bodies.remove([0])
        path = CheckpointWriter(tmp_path / "c", first).save(first)
        ahead = live(first, 11, 20)
    with Checkpoint(path).resume() as second:
        assert live(second, 11, 20) == ahead
        second.restart()
        assert second.scene == boxes()
        again = live(second, 0, 3)
    with start(**way) as third:
        assert live(third, 0, 3) == again
    with Checkpoint(path).resume(workers=2 if way["workers"] != 2 else 3) as other:
        live(other, 11, 20)
        assert np.isfinite(other.states).all()


def test_a_scene_that_is_emptied_stays_as_it_was_given() -> None:
    """Memory is given back in blocks, and what a scene began with is not among it."""
    scene, same = boxes(2500), boxes(2500)
    with Simulation(scene, Params(runtime="inline")) as simulation:
        simulation.step()
        simulation.bodies.remove(np.arange(2400))
        assert scene == same
        simulation.bodies.add(Sphere(0.1), [[0.3 * i, 5.0, 1.0] for i in range(2100)])
        simulation.bodies.remove(np.arange(2500, 4600))
        simulation.step()
        simulation.restart()
        simulation.step()
        assert simulation.alive.all()
        assert simulation.scene == same


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_bad_input_is_refused_and_nothing_changes() -> None:
    with start(workers=2) as simulation:
        simulation.step(3)
        simulation.bodies.remove([2])
        joint = simulation.joints.add_one(Ball(), 0, 1, (1.0, 0.0, 0.5))
        simulation.joints.remove([joint])
        before = simulation.scene.extent, simulation.alive.tolist(), simulation.state_hash

        def refused(what: Any, text: str) -> None:
            with pytest.raises(LapjointError, match=text):
                what()
            assert (simulation.scene.extent, simulation.alive.tolist(), simulation.state_hash) == before

        refused(lambda: simulation.joints.add_one(Ball(), 0, 2, (1, 0, 0)), "joint 1: body b, body 2, was removed")
        refused(lambda: simulation.joints.add_one(Ball(), 3, 3, (1, 0, 0)), "joins body 3 to itself")
        refused(lambda: simulation.joints.add_one(Ball(), 3, 80, (1, 0, 0)), "body b is 80, but there are 8 bodies")
        refused(lambda: simulation.set_states([2], np.zeros(13)), "set_states: body 2 was removed")
        refused(lambda: simulation.bodies.add_forces([2], [0, 0, 1]), "add_forces: body 2 was removed")
        refused(lambda: simulation.bodies.freeze([2]), "freeze: body 2 was removed")
        refused(lambda: simulation.bodies.remove([2]), "bodies.remove: body 2 was removed")
        refused(lambda: simulation.bodies.remove([9]), "bodies.remove: body 9 does not exist")
        refused(lambda: simulation.joints.remove([0]), "joint 0 has broken or was removed before")
        refused(lambda: simulation.bodies.add_one(Plane()), "can only be static")  # type: ignore[arg-type]
        refused(lambda: simulation.bodies.add(Sphere(0.1), [[0, 0, 1], [0, 0, np.nan]]), "body 9: position")
        refused(lambda: simulation.bodies.add(Sphere(0.1), [[0, 0, 1]], mass=-1.0), "body 8: mass")
        refused(lambda: simulation.bodies.add(Sphere(0.1), [[0, 0, 1]], weight=1.0), "no option named 'weight'")
        refused(
            lambda: simulation.joints.add(Fixed(), [0], [1], [[1, 0, 0]], breaks=Breaks(force=0.0)),
            "force is 0",
        )
        refused(lambda: simulation.scene.add_body(Sphere(0.1)), "is in motion: its simulation changes it")
        stiff = SixAxis(linear=(FREE, LOCKED, LOCKED), springs={0: Spring(1e12, 0.0)})
        refused(lambda: simulation.joints.add_one(stiff, 0, 1, (1, 0, 0)), "swings faster")


def test_an_engine_that_takes_no_more_bodies_says_so() -> None:
    pytest.importorskip("mujoco")
    scene = boxes(2)
    with Simulation(scene, Params(engine="mujoco:float64", runtime="inline")) as simulation:
        simulation.step(2)
        with pytest.raises(LapjointError, match=r"bodies\.add_one: scenes stay as they are with the engine mujoco"):
            simulation.bodies.add_one(Sphere(0.1))
        simulation.bodies.remove([1])
        simulation.step(2)
        assert simulation.replies[0].body_count == 1


@pytest.mark.slow
def test_many_pass_through_and_what_is_saved_is_a_scene(tmp_path: Path) -> None:
    """More than the blocks have whose memory is given back."""

    def feed(simulation: Simulation) -> None:
        simulation.bodies.remove(np.flatnonzero(simulation.alive)[8:][:-900])
        simulation.bodies.add(Sphere(0.01), np.indices((50, 30, 1)).reshape(3, -1).T * 0.05 + [0, 2, 2])

    with start(workers=2, coupling="tight", runtime="process", validate=False) as simulation:
        for _ in range(4):
            feed(simulation)
            simulation.step()
        assert len(simulation.scene.spans) == 2
        assert not simulation.scene.bodies.inertia[2000].any(), "it has its memory still"
        path = CheckpointWriter(tmp_path / "c", simulation).save(simulation)
        feed(simulation)
        simulation.step(2)
        wanted = simulation.state_hash
        simulation.restart()
        assert simulation.scene == boxes()
    with Checkpoint(path).resume() as simulation:
        feed(simulation)
        simulation.step(2)
        assert simulation.state_hash == wanted


def test_workers_are_no_more_than_bodies_that_are_there() -> None:
    with start(workers=2) as simulation:
        simulation.bodies.remove(range(5))
        with pytest.raises(LapjointError, match="4 workers for 3 bodies"):
            simulation.workers.set_count(4)
        simulation.workers.set_count(3)
        simulation.step(3)
        assert simulation.alive.sum() == sum(reply.body_count for reply in simulation.replies)
