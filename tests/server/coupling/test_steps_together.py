"""Steps that workers take by themselves, one after the other: the same bits as one by one, and what happens if one of
them fails in the middle."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faulty_engine import register, tell
from lapjoint import Params, Simulation, SimulationStopped, scenes
from lapjoint.engines.bullet import BulletEngine
from lapjoint.engines.mailboxes import memory_size
from lapjoint.server.coupling.tight import DECIDE_EVERY
from lapjoint.server.coupling.turns import check_turns, pair_turns, round_robin
from tight_runs import inner_body, pids, tight, tight_coupling

PLAIN: dict[str, Any] = {"validate": False, "timestep": 0.002}


def hash_after(name: str, steps: int, at_once: int, **params: Any) -> str:
    with tight(name, **{**PLAIN, **params}) as simulation:
        simulation._core.last_step_ms = 1e-3  # a guess: so short that nothing keeps workers from taking all at once
        while simulation.step_count < steps:
            simulation.step(min(at_once, steps - simulation.step_count))
        return simulation.state_hash


@pytest.mark.slow
@pytest.mark.parametrize(("name", "workers"), [("two-way-bridge", 3), ("building", 3), ("bowl", 1)])
def test_however_many_are_taken_at_once(name: str, workers: int) -> None:
    one_by_one = hash_after(name, 70, 1, workers=workers, validate=True)
    assert hash_after(name, 70, 70, workers=workers) == one_by_one
    assert hash_after(name, 70, 13, workers=workers, runtime="process") == one_by_one


def test_how_many_are_taken_at_once() -> None:
    with tight("two-way-bridge", **PLAIN) as simulation:
        simulation.step(3)
        simulation._core.last_step_ms = 1e-3
        simulation.step(DECIDE_EVERY)
        assert simulation.profile.steps == 3, "those after the last decision"
        simulation._core.last_step_ms = 1e9
        simulation.step(2)
        assert simulation.profile.steps == 1, "nobody could interrupt them"
        simulation._core.last_step_ms = 1e-3
        simulation.bodies.add_forces([0], [[0.0, 0.0, 1.0]])
        simulation.step(2)
        assert simulation.step_count == DECIDE_EVERY + 7
        assert simulation.profile.steps == 1, "the force is for one step"
        seen: list[int] = []
        simulation.on_step(lambda now: seen.append(now.step_count))
        simulation.step(4)
        assert seen == [DECIDE_EVERY + 8 + k for k in range(4)]


def test_times_are_those_of_one_step() -> None:
    with tight("building", **PLAIN) as simulation:
        simulation.step(2)
        simulation._core.last_step_ms = 1e-3
        simulation.step(20)
        profile = simulation.profile
        assert profile.steps == 20
        assert 0 < profile.worker_cpu_ms.max() < 1e3 * sum(reply.times.cpu_s for reply in profile.replies)
        assert simulation.step_count == 22


def test_frames_between_which_nobody_looks() -> None:
    scene = scenes.build("chain")
    with Simulation(scene, Params(workers=2, runtime="inline")) as simulation:
        assert [frame.step_count for frame in simulation.frames(steps=25, every=10)] == [10, 20]
        assert simulation.step_count == 25


# ---- failures in the middle ------------------------------------------------------------------------------------------


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    register(tmp_path, monkeypatch)
    return {**PLAIN, "engine": "faulty"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["kill", "error"])
def test_a_worker_that_fails_in_the_middle(kind: str, faulty: dict[str, Any]) -> None:
    """All go back to the first of the steps, and no step is left out."""
    with tight("building", runtime="process", **faulty) as simulation:
        simulation.step(5)
        tell(kind, inner_body(simulation), when="begin")
        simulation._core.last_step_ms = 1e-3
        simulation.step(20)
        assert simulation.step_count == 25
        (event,) = simulation.incidents
        assert (event.worker, event.step_count) == (1, 5)
        states = simulation.states
    with tight("building", **PLAIN) as undisturbed:
        undisturbed.step(25)
        assert np.abs(states[:, :3] - undisturbed.states[:, :3]).max() < 1e-3


@pytest.mark.slow
def test_workers_killed_at_any_moment_of_many_steps() -> None:
    with tight("building", runtime="process", **PLAIN) as simulation:
        simulation.step(5)
        simulation._core.last_step_ms = 1e-3
        for worker in (0, 2):
            events = len(simulation.incidents)
            killer = threading.Timer(0.01, os.kill, (pids(simulation)[worker], signal.SIGKILL))
            killer.start()
            while len(simulation.incidents) == events:
                simulation.step(20)
            killer.join()
        assert [(event.kind, event.worker) for event in simulation.incidents] == [("gone", 0), ("gone", 2)]
        assert np.isfinite(simulation.states).all()


@pytest.mark.filterwarnings("ignore::lapjoint.AccuracyWarning")
@pytest.mark.parametrize(
    ("runtime", "workers"), [("inline", 1), ("inline", 3), pytest.param("process", 2, marks=pytest.mark.slow)]
)
def test_the_step_in_which_a_body_is_lost_is_found(runtime: str, workers: int) -> None:
    """A body so fast that it leaves the range of float32 in a later step: the run stops just before that one."""
    scene = scenes.build("bowl", 120)
    speed = 3e37
    velocity = np.zeros((1, 13))
    with Simulation(scene, Params(workers=workers, runtime=runtime, coupling="tight", timestep=1.0)) as simulation:
        simulation.step(2)
        velocity[:] = simulation.states[7]
        velocity[0, 7:10] = 0.0, 0.0, speed
        simulation.set_states([7], velocity)
        simulation._core.last_step_ms = 1e-3
        with pytest.raises(SimulationStopped, match="body 7"):
            simulation.step(40)
        stopped_at = simulation.step_count
        assert np.isfinite(simulation.states).all()
    with Simulation(scene, Params(workers=workers, runtime=runtime, coupling="tight", timestep=1.0)) as simulation:
        simulation.step(2)
        simulation.set_states([7], velocity)
        simulation.on_step(lambda _: None)  # who looks at every step
        with pytest.raises(SimulationStopped, match="body 7"):
            simulation.step(40)
        assert simulation.step_count == stopped_at


def test_other_turns_of_two_workers_are_known_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision may change turns and nothing else: two workers have others then, and all choose ghosts together."""
    with tight("two-way-bridge", workers=4, repartition=0, **PLAIN) as simulation:
        simulation.step(3)

        def later(owner: Any, edges: Any, worker_count: int) -> Any:
            turns = pair_turns(owner, edges, worker_count)
            turns[2, 3] = turns[3, 2] = turns.max() + 1
            return turns

        monkeypatch.setattr("lapjoint.server.coupling.tight.pair_turns", later)
        tight_coupling(simulation)._next_decision = simulation.step_count
        simulation.step(3)
        assert not simulation.incidents, "nobody waited for a message that was another"


def test_bodies_that_changed_need_other_ghosts() -> None:
    scene = scenes.build("chain")
    engine = BulletEngine(scene, Params(coupling="tight", workers=2))
    engine.activate(np.arange(4), scene.states[:4])
    engine.open_mailboxes(np.zeros(memory_size(1, 1 << 20), np.uint8), 1, 1 << 20, 0)
    engine.set_turns(0, [0], [])
    with pytest.raises(Exception, match="bodies of worker 0 have changed, but ghosts stay"):
        engine.step_with_neighbours(1, 1, choose=False)
    assert engine.step_with_neighbours(1, 3, choose=True)
    assert engine.step_with_neighbours(4, 1, choose=False)
    assert len(engine.ghost_ids) == 0
    engine.set_turns(0, [0, 1], [])
    with pytest.raises(Exception, match="turns of worker 0 are not set for 1 workers"):
        engine.step_with_neighbours(5, 1, choose=True)


# ---- turns -----------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 12), st.integers(0, 40), st.integers(0, 1000))
def test_no_worker_has_two_pairs_in_one_turn(workers: int, edge_count: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    owner = chance.integers(0, workers, 30).astype(np.int32)
    edges = chance.integers(0, 30, (edge_count, 2)).astype(np.int32)
    turns = pair_turns(owner, edges, workers)
    check_turns("turns", turns)
    used = {tuple(sorted(pair)) for pair in owner[edges].tolist() if pair[0] != pair[1]}
    degree = np.bincount([worker for pair in used for worker in pair], minlength=workers).max(initial=0)
    assert max((turns[a, b] for a, b in used), default=-1) < max(1, 2 * degree - 1), "as few as the rule gives"


def test_turns_of_all_pairs() -> None:
    for workers in range(2, 9):
        turns = round_robin(workers)
        check_turns("turns", turns)
        pairs = turns[np.triu_indices(workers, 1)]
        assert len(np.unique(pairs)) == workers - 1 + workers % 2
