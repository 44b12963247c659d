"""Loads: by bodies, contacts or time; bodies that linger; and a scene repartitioned when shares are uneven."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lapjoint import (
    Box,
    Checkpoint,
    CheckpointWriter,
    Contacts,
    LapjointError,
    Params,
    Plane,
    Scene,
    Sequential,
    Simulation,
    scenes,
)
from lapjoint.algorithms import Membership, native, reference
from lapjoint.algorithms.balance import Balance
from lapjoint.server.coupling.tight import PLAN_AHEAD
from lapjoint.server.loads import CONTACT, LOOK_EVERY, PATIENCE, POINT_SWEEP, Loads
from lapjoint.server.partition import repartition
from lapjoint.workers.messages import StepReply


def stacks(heights: list[int], **settings: object) -> Scene:
    """Towers of boxes, far apart, one after the other."""
    scene = Scene("stacks", iterations=20, **settings)  # type: ignore[arg-type]
    scene.add_static(Plane())
    for k, height in enumerate(heights):
        scene.add_bodies(Box((1.0, 1.0, 0.5)), [(3.0 * k, 0.0, 0.25 + 0.5 * i) for i in range(height)])
    return scene


# ---- costs -------------------------------------------------------------------------------------------------------


def reply_of(bodies: list[list[int]], points: list[int]) -> StepReply:
    return StepReply(Contacts(np.array(bodies, np.int32), np.array(points, np.int32), np.zeros(len(points))))


def test_loads_by_bodies_are_counts() -> None:
    membership = Membership([0, 0, 1], 2)
    loads = Loads(stacks([3]), Params(workers=2, load="bodies"))
    loads.estimate(membership, [reply_of([[0, 1]], [4])], 50)
    assert membership.load.tolist() == [2, 1]


def test_loads_by_contacts_count_ends_of_contacts_and_points_once_each() -> None:
    """Two workers tell of the contact 0-1, which both have; static bodies cost nothing themselves."""
    scene = stacks([4])
    membership = Membership([0, 0, 0, 1], 2)
    membership.activate([1], 0)
    membership.activate([1], 1)
    first = reply_of([[0, 1], [0, -1]], [4, 2])
    second = reply_of([[0, 1]], [4])
    loads = Loads(scene, Params(workers=2, load="contacts"))
    loads.estimate(membership, [first, second], 10)
    cost = membership.cost
    assert cost[2] == cost[3] < cost[1] < cost[0]
    # Body 1: one contact of four points. Body 0: the same, and half of what only one of its two workers tells.
    point = 10 * POINT_SWEEP
    assert cost[1] - cost[2] == CONTACT + 4 * point
    assert cost[0] - cost[1] == (CONTACT + 2 * point) // 2
    assert membership.load.tolist() == [cost[[0, 1, 2]].sum(), cost[[0, 1, 3]].sum()]


def test_costs_of_joints_grow_with_iterations() -> None:
    scene = scenes.build("chain")
    loads = Loads(scene, Params(workers=2, load="contacts"))
    totals = []
    for iterations in (10, 1000):
        membership = Membership(np.arange(scene.body_count) % 2, 2)
        loads.estimate(membership, [], iterations)
        totals.append(int(membership.load.sum()))
    assert totals[1] > 10 * totals[0]


def test_loads_by_time_follow_the_slower_worker() -> None:
    membership = Membership([0, 0, 1, 1], 2)
    loads = Loads(stacks([4]), Params(workers=2, load="time"))
    for _ in range(200):
        loads.measure(np.array([3.0, 1.0]))
    loads.estimate(membership, [], 10)
    assert membership.load[0] == pytest.approx(3 * membership.load[1], rel=0.01)
    # What moves from the slow worker to the fast one weighs less there.
    before = membership.load.copy()
    membership.activate([1], 0)
    membership.deactivate([0], 0)
    assert before[0] - membership.load[0] == pytest.approx(3 * (membership.load[1] - before[1]), rel=0.01)


@pytest.mark.slow
def test_a_throttled_worker_gets_fewer_bodies() -> None:
    """Worker 0 claims to be four times as slow: with loads by time it ends with far fewer bodies."""
    scene = scenes.build("bowl", 400)
    counts = {}
    for load in ("contacts", "time"):
        with Simulation(
            scene, Params(workers=2, runtime="inline", sequential=Sequential(iterations=10), load=load)
        ) as simulation:
            measure = simulation._core.now.loads.measure
            simulation._core.now.loads.measure = lambda ms, steps, measure=measure: measure(ms * [4.0, 1.0], steps)  # type: ignore[method-assign]
            simulation.step(400)
            counts[load] = simulation.profile.worker_body_count
    assert counts["contacts"][0] > 0.4 * 400
    assert counts["time"][0] < 0.3 * 400


# ---- lingering ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [native, reference])
@pytest.mark.parametrize("linger", [0, 4])
def test_a_flickering_contact_sends_nobody_to_and_fro(module: object, linger: int) -> None:
    """Body 1 touches body 0 (worker 0) always and body 2 (worker 1) in every other step."""
    membership = Membership([0, 0, 1], 2)
    changes = 0
    for step in range(40):
        contacts = np.array([(0, 1), (1, 2)][: 1 + step % 2], np.int32)
        before = membership.bits.copy()
        graph = module.Graph(3, contacts)  # type: ignore[attr-defined]
        module.balance(contacts, 0, graph, membership, Balance.PRUNED, None, linger)  # type: ignore[attr-defined]
        membership.validate(graph)
        changes += int((before != membership.bits).sum())
    if linger:
        assert changes <= 4
    else:
        assert changes > 20
    for _ in range(linger + 2):  # the contact is over for good: it leaves
        contacts = np.array([(0, 1)], np.int32)
        module.balance(contacts, 0, module.Graph(3, contacts), membership, Balance.PRUNED, None, linger)  # type: ignore[attr-defined]
    assert membership.worker_counts().tolist() == [1, 1, 1]


def test_a_body_that_leaves_for_the_first_time_does_not_wait() -> None:
    membership = Membership([0, 0, 1], 2)
    membership.activate([1], 1)
    contacts = np.array([(0, 1)], np.int32)
    native.balance(contacts, 0, native.Graph(3, contacts), membership, Balance.PRUNED, None, 50)
    assert membership.workers(1) == {0}


# ---- repartition -------------------------------------------------------------------------------------------------


def test_a_division_is_even_and_moves_as_few_bodies_as_it_can() -> None:
    """Four towers, and the workers' names are turned round: the towers stay where they are."""
    scene = stacks([6, 6, 6, 6])
    tower = np.repeat([2, 0, 3, 1], 6)
    membership = Membership(tower, 4)
    contacts = np.array([(i, i + 1) for i in range(23) if i % 6 != 5], np.int32)
    parts = repartition(scene, scene.states, contacts, membership)
    assert parts.tolist() == tower.tolist()
    membership.assign(np.where(np.arange(24) == 3, 0, tower))  # one strayed: it alone moves
    parts = repartition(scene, scene.states, contacts, membership)
    assert parts.tolist() == tower.tolist()


@pytest.mark.slow
def test_uneven_shares_are_divided_anew_and_nothing_is_lost(tmp_path: object) -> None:
    scene = stacks([8, 8, 8, 8])
    uneven = tmp_path / "uneven.txt"  # type: ignore[operator]
    uneven.write_text("".join(f"{int(b >= 29)}\n" for b in range(32)))
    hashes = []
    for runtime in ("inline", "process"):
        params = Params(workers=2, runtime=runtime, partition=str(uneven), validate=True)
        with Simulation(scene, params) as simulation:
            divided = []
            for k in range(PATIENCE + 2 * LOOK_EVERY):
                simulation.step()
                if simulation.profile.divided:
                    divided.append(k)
            assert divided == [PATIENCE + PLAN_AHEAD], "found to pay, and planned while the workers stepped"
            assert simulation.profile.worker_body_count.tolist() == [16, 16]
            assert np.abs(simulation.states[:, 7:10]).max() < 0.05, "the towers did not notice"
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]


@pytest.mark.slow
def test_a_planned_partition_takes_effect_in_its_step_also_after_a_checkpoint(tmp_path: Path) -> None:
    scene = stacks([8, 8, 8, 8])
    params = Params(workers=2, runtime="inline", partition=(np.arange(32) >= 29).astype(np.int32))
    end = PATIENCE + PLAN_AHEAD + 5
    with Simulation(scene, params) as simulation:
        simulation.step(end)
        whole = simulation.state_hash, simulation.workers.membership.bits.tolist()
    with Simulation(scene, params) as simulation:
        simulation.step(PATIENCE + 7)
        assert simulation.workers.membership.load[0] > 5 * simulation.workers.membership.load[1]
        checkpoint = Checkpoint(CheckpointWriter(tmp_path, simulation).save(simulation))
    with checkpoint.resume() as simulation:
        simulation.step(PLAN_AHEAD - 7)
        assert simulation.workers.membership.load[0] > 5 * simulation.workers.membership.load[1], "not yet"
        simulation.step()
        assert simulation.profile.divided
        simulation.step(end - simulation.step_count)
        assert (simulation.state_hash, simulation.workers.membership.bits.tolist()) == whole


@pytest.mark.usefixtures("unpruned")
def test_a_wide_overlap_is_divided_anew() -> None:
    scene = stacks([8, 8, 8, 8])
    with Simulation(scene, Params(workers=2, runtime="inline", coupling="blend", validate=True)) as simulation:
        for body in range(32):
            simulation.workers.membership.activate([0, 1], body)
        while not simulation.profile.divided:
            simulation.step()
            assert simulation.step_count <= PATIENCE + 1
        assert Loads.duplicated_share(simulation.workers.membership) > 0.4, "for one step in the old workers too"
        simulation.step()
        assert Loads.duplicated_share(simulation.workers.membership) < 0.1


def test_zero_never_divides() -> None:
    loads = Loads(stacks([4]), Params(workers=2, repartition=0))
    membership = Membership([0, 0, 0, 0], 2)
    assert not any(loads.is_time_to_look(step) for step in range(3 * PATIENCE))
    loads = Loads(stacks([4]), Params(workers=2, repartition=1.5))
    assert [step for step in range(PATIENCE + LOOK_EVERY) if loads.is_time_to_look(step)] == [PATIENCE]
    assert loads.are_uneven(membership)


@pytest.mark.parametrize("wrong", [-1, 0.5, 1.0, float("nan"), float("inf")])
def test_wrong_thresholds(wrong: float) -> None:
    with pytest.raises(LapjointError, match="expected 0 or a number above 1"):
        Params(repartition=wrong)


def test_a_tower_at_rest_changes_nothing_and_costs_the_server_nothing() -> None:
    """Once nothing changes, balance and weights are left as they are, and still hold."""
    scene = stacks([12])
    with Simulation(scene, Params(workers=3, runtime="inline", validate=True, coupling="blend")) as simulation:
        simulation.step(300)
        assert simulation._core.coupling._is_settled
        assert len(simulation.workers.overlap) > 0
        simulation.workers.membership.activate([0, 1, 2], 6)  # somebody else's doing is noticed, and put right
        simulation.step()
        assert simulation.workers.membership.worker_counts()[6] < 3
        simulation.step(60)
        assert simulation._core.coupling._is_settled
        assert len(simulation.workers.overlap) == 2
