"""The Ray runtime on two nodes: two network namespaces of this machine, which see nothing but each other."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from lapjoint import Params, Simulation, Sphere, scenes
from ray_support import ADDRESS, HEAD, LIMIT_S, OTHER, TwoNodes, two_nodes, why_not

pytest.importorskip("ray")
REASON = why_not()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(REASON), reason=REASON)]

TWICE = '''
"""Bullet for a slow machine: where the environment says so, everything is done twice."""

import os

from lapjoint import make_engine
from lapjoint.engines.bullet import BulletEngine


class Twice(BulletEngine):
    def __init__(self, scene, params):
        super().__init__(scene, params)
        self._twins = [BulletEngine(scene, params) for _ in range(int(os.environ.get("TEST_TWINS", "0")))]

    def activate(self, body_ids, states):
        super().activate(body_ids, states)
        for twin in self._twins:
            twin.activate(body_ids, states)

    def deactivate(self, body_ids):
        super().deactivate(body_ids)
        for twin in self._twins:
            twin.deactivate(body_ids)

    def set_states(self, body_ids, states):
        super().set_states(body_ids, states)
        for twin in self._twins:
            twin.set_states(body_ids, states)

    def step(self, count=1):
        super().step(count)
        for twin in self._twins:
            twin.step(count)
'''
ENTRY = "[lapjoint.engines]\ntwice = twice_engine:Twice\n"
METADATA = "Metadata-Version: 2.1\nName: twice-engine\nVersion: 1\n"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoNodes]:
    """The other node is a slow machine, for the engine that knows."""
    path = tmp_path_factory.mktemp("engine")
    (path / "twice_engine.py").write_text(TWICE)
    info = path / "twice_engine-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(ENTRY)
    (info / "METADATA").write_text(METADATA)
    with two_nodes(str(path), {"TEST_TWINS": "2"}) as nodes:
        yield nodes


FEED = """
def feed(simulation):
    step = simulation.step_count
    places = [[0.4 * i - 2.0, 0.3 * (step % 5), 3.0 + 0.3 * step] for i in range(12)]
    simulation.bodies.add(Sphere(0.1), places)
    if step % 3 == 2:
        simulation.bodies.remove(np.flatnonzero(simulation.alive)[::9])
"""
"""Bodies come and go."""

RUN = f"""
import json, sys
import numpy as np
from lapjoint import LapjointError, Params, Simulation, Sphere, scenes
from lapjoint.server.coupling import tight
from lapjoint.workers.runtimes import ray_cluster
{FEED}
tight.MOST_INTERFACE = 1000  # so that messages have to have more room, too
for case in json.loads(sys.argv[1]):
    params = Params.from_options(runtime="ray", address="{ADDRESS}", **case["params"])
    with Simulation(scenes.build(case["scene"], case["size"]), params) as simulation:
        counts = []
        if case["feeds"]:
            simulation.on_step(feed)
        for _ in range(case["steps"]):
            simulation.step()
            counts.append(simulation.profile.worker_body_count.tolist())
            if counts[-1][1] < case["until"] * counts[-1][0]:
                break
        print(json.dumps({{
            "hash": simulation.state_hash,
            "nodes": [worker.node.address for worker in simulation._core.runtime._workers],
            "shared": [worker.is_shared for worker in simulation._core.runtime._workers],
            "counts": counts,
        }}))
ray_cluster.own_version = lambda: "9.9.9"  # as if this were a newer one
try:
    Simulation(scenes.build("bowl", 60), Params(workers=2, runtime="ray", address="{ADDRESS}"))
except LapjointError as error:
    print(json.dumps({{"error": str(error)}}))
"""


def case(scene: str, size: int, steps: int, until: float = 0.0, feeds: bool = False, **params: Any) -> dict[str, Any]:
    """So many steps, or fewer if the second worker comes to have fewer bodies than `until` times the first."""
    return {"scene": scene, "size": size, "steps": steps, "until": until, "feeds": feeds, "params": params}


def run(nodes: TwoNodes, *cases: dict[str, Any]) -> list[dict[str, Any]]:
    """Simulations one after the other, in one program; then the error of one that has another lapjoint."""
    return [json.loads(line) for line in nodes.run(RUN, json.dumps(cases)).splitlines() if line.startswith("{")]


def test_the_same_bits_as_on_one_machine(nodes: TwoNodes) -> None:
    """With both couplings, and where bodies come and go; where workers are placed; a node with another lapjoint."""
    params: dict[str, Any] = {"workers": 3, "growth_depth": 0, "timestep": 0.005}
    cases = [
        case("building", 110, 30, **params),
        case("bridge", 106, 20, workers=3, timestep=0.005, coupling="tight"),
        case("bowl", 60, 20, feeds=True, workers=3, timestep=0.005, coupling="blend"),
    ]
    *found, error = run(nodes, *cases)
    wanted: list[str] = []
    feed: dict[str, Any] = {"np": np, "Sphere": Sphere}
    exec(FEED, feed)
    for one in cases:
        here = {**one["params"], "runtime": "inline"}
        with Simulation(scenes.build(one["scene"], one["size"]), Params.from_options(**here)) as simulation:
            if one["feeds"]:
                simulation.on_step(feed["feed"])
            simulation.step(one["steps"])
            if one is cases[0]:
                assert len(simulation.workers.overlap) > 0, "workers that never meet prove nothing"
            wanted.append(simulation.state_hash)
    assert [one["hash"] for one in found] == wanted
    for one in found:
        assert sorted(one["nodes"]) == [HEAD, HEAD, OTHER]
        assert one["shared"] == [address == HEAD for address in one["nodes"]]
    assert error["error"].startswith(f"node {OTHER} has lapjoint ")
    assert error["error"].endswith("expected 9.9.9, as here")


def test_a_slower_node_has_fewer_bodies(nodes: TwoNodes) -> None:
    """Its engine does everything three times; loads are the measured times."""
    found, _ = run(nodes, case("bowl", 400, 1500, until=0.7, workers=2, engine="twice", load="time", iterations=20))
    assert found["nodes"] == [HEAD, OTHER]
    fast, slow = found["counts"][-1]
    assert slow < 0.7 * fast
    first = found["counts"][0]
    assert first[1] > 0.8 * first[0], "it began with as many"


# ---- a node is lost ----------------------------------------------------------------------------------------------

BLENDED = f"""
import json, sys
from lapjoint import Failures, Params, Simulation, scenes
failures = Failures(hang_limit=8.0)
params = Params(workers=2, runtime="ray", address="{ADDRESS}", failures=failures, coupling="blend")
with Simulation(scenes.build("bowl", 120), params) as simulation:
    simulation.step(20)
    print("between steps", flush=True)
    sys.stdin.readline()
    simulation.step(20)
    print(json.dumps({{
        "nodes": [worker.node.address for worker in simulation._core.runtime._workers],
        "events": [event.text for event in simulation.incidents],
        "steps": simulation.step_count,
    }}))
"""

TIGHT_PARAMS: dict[str, Any] = {"workers": 3, "timestep": 0.005, "coupling": "tight"}
TIGHT = f"""
import json, sys
from lapjoint import Params, Simulation, scenes
params = Params.from_options(runtime="ray", address="{ADDRESS}", hang_limit=8.0, **json.loads(sys.argv[1]))
with Simulation(scenes.build("bridge", 106), params) as simulation:
    simulation.step(25)
    found = {{
        "hash": simulation.state_hash,
        "first nodes": [worker.node.address for worker in simulation._core.runtime._workers],
        "shared": [worker.is_shared for worker in simulation._core.runtime._workers],
    }}
    runtime, step = simulation._core.runtime, simulation._core.runtime.step
    def lost(commands, meanwhile=None):
        runtime.step = step
        def wait():
            print("in a step", flush=True)
            sys.stdin.readline()
        return step(commands, wait)
    runtime.step = lost
    for _ in range(5):  # one by one: the node is gone in the middle of them
        simulation.step()
    print(json.dumps({{
        **found,
        "nodes": [worker.node.address for worker in simulation._core.runtime._workers],
        "events": [event.text for event in simulation.incidents],
        "steps": simulation.step_count,
        "gap": simulation.joints.gaps().max(),
    }}))
"""


def test_runs_go_on_without_a_node_that_is_lost(nodes: TwoNodes) -> None:
    """Its workers are replaced on the node that is left: in a blended run between two steps, in a tightly coupled one
    in the middle of a step."""
    with Simulation(scenes.build("bridge", 106), Params.from_options(runtime="inline", **TIGHT_PARAMS)) as simulation:
        simulation.step(25)
        wanted = simulation.state_hash
    with running(nodes, BLENDED) as blended, running(nodes, TIGHT, json.dumps(TIGHT_PARAMS)) as tight:
        wait_for_line(blended, "between steps")
        wait_for_line(tight, "in a step")
        nodes.kill(OTHER)
        for program in (blended, tight):
            assert program.stdin is not None
            program.stdin.write("\n")
            program.stdin.flush()
        found, tight_found = told_at_the_end(blended), told_at_the_end(tight)
    assert found["nodes"] == [HEAD, HEAD]
    assert found["steps"] == 40
    assert len(found["events"]) == 1
    assert "worker 1" in found["events"][0]
    assert sorted(tight_found["first nodes"]) == [HEAD, HEAD, OTHER]
    assert tight_found["shared"] == [address == HEAD for address in tight_found["first nodes"]]
    assert tight_found["hash"] == wanted
    assert tight_found["nodes"] == [HEAD, HEAD, HEAD]
    assert tight_found["steps"] == 30
    assert len(tight_found["events"]) == 1
    assert tight_found["gap"] < 0.01


@contextmanager
def running(nodes: TwoNodes, code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    program = nodes.popen(code, *arguments)
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def wait_for_line(program: subprocess.Popen[str], text: str) -> None:
    assert program.stdout is not None
    for line in program.stdout:  # Ray itself may say something before
        if line == f"{text}\n":
            return
    raise AssertionError(program.communicate()[1])


def told_at_the_end(program: subprocess.Popen[str]) -> dict[str, Any]:
    output, errors = program.communicate(timeout=LIMIT_S)
    assert program.returncode == 0, errors
    assert "Traceback" not in errors  # Ray's own core may say in a line that the node cannot be reached
    (found,) = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert isinstance(found, dict)
    return found
