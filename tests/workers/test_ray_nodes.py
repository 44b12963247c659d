"""The Ray runtime on two nodes: two network namespaces of this machine, which see nothing but each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lapjoint import Params, Simulation, scenes
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


RUN = f"""
import json, sys
from lapjoint import Params, Simulation, scenes
from lapjoint.errors import LapjointError
case = json.loads(sys.argv[1])
params = Params(runtime="ray", address="{ADDRESS}", **case["params"])
with Simulation(scenes.build(case["scene"], case["size"]), params) as simulation:
    counts = []
    for _ in range(case["steps"]):
        simulation.step()
        counts.append(simulation.profile.worker_body_count.tolist())
        if counts[-1][1] < case["until"] * counts[-1][0]:
            break
    print(json.dumps({{
        "hash": simulation.state_hash,
        "nodes": [actor.node.address for actor in simulation._runtime._actors],
        "shared": [actor.is_shared for actor in simulation._runtime._actors],
        "counts": counts,
    }}))
"""


def run(nodes: TwoNodes, scene: str, size: int, steps: int, until: float = 0.0, **params: Any) -> dict[str, Any]:
    """So many steps, or fewer if the second worker comes to have fewer bodies than `until` times the first."""
    case = {"scene": scene, "size": size, "steps": steps, "until": until, "params": params}
    found: dict[str, Any] = json.loads(nodes.run(RUN, json.dumps(case)))
    return found


@pytest.mark.parametrize("send", ["all", "border"])
def test_the_same_bits_as_on_one_machine(nodes: TwoNodes, send: str) -> None:
    params: dict[str, Any] = {"workers": 3, "growth_depth": 0, "timestep": 0.005}
    found = run(nodes, "bowl", 120, 60, send=send, **params)
    assert sorted(found["nodes"]) == [HEAD, HEAD, OTHER]
    assert found["shared"] == [address == HEAD for address in found["nodes"]]
    with Simulation(scenes.build("bowl", 120), Params(runtime="inline", **params)) as simulation:
        simulation.step(60)
        assert found["hash"] == simulation.state_hash


def test_pack_fills_the_server_s_node_first(nodes: TwoNodes) -> None:
    found = run(nodes, "bowl", 60, 2, workers=3, placement="pack")
    assert found["nodes"] == [HEAD, HEAD, OTHER]


def test_a_slower_node_has_fewer_bodies(nodes: TwoNodes) -> None:
    """Its engine does everything three times; loads are the measured times."""
    found = run(nodes, "bowl", 400, 1500, until=0.7, workers=2, engine="twice", load="time", iterations=20)
    assert found["nodes"] == [HEAD, OTHER]
    fast, slow = found["counts"][-1]
    assert slow < 0.7 * fast
    first = found["counts"][0]
    assert first[1] > 0.8 * first[0], "it began with as many"


def test_a_node_with_another_lapjoint(nodes: TwoNodes) -> None:
    code = f"""
        from lapjoint import LapjointError, Params, Simulation, scenes
        from lapjoint.workers.runtimes import ray_cluster
        ray_cluster.own_version = lambda: "9.9.9"  # as if this were a newer one
        try:
            Simulation(scenes.build("bowl", 60), Params(workers=2, runtime="ray", address="{ADDRESS}"))
        except LapjointError as error:
            print(error)
    """
    text = nodes.run(code).strip()
    assert text.startswith(f"node {OTHER} has lapjoint ")
    assert text.endswith("expected 9.9.9, as here")


LOSE = f"""
import json, sys
from lapjoint import Params, Simulation, scenes
params = Params(workers=2, runtime="ray", address="{ADDRESS}", hang_limit=2.0)
with Simulation(scenes.build("bowl", 120), params) as simulation:
    simulation.step(20)
    print([actor.node.address for actor in simulation._runtime._actors], flush=True)
    sys.stdin.readline()
    simulation.step(20)
    print(json.dumps({{
        "nodes": [actor.node.address for actor in simulation._runtime._actors],
        "events": [event.text for event in simulation.events],
        "steps": simulation.step_count,
    }}))
"""


def test_a_node_that_is_lost(nodes: TwoNodes) -> None:
    """Its worker is replaced on the node that is left, and the run goes on."""
    program = nodes.popen(LOSE)
    assert program.stdout is not None
    line = program.stdout.readline()
    assert line == f"['{HEAD}', '{OTHER}']\n", (line, program.communicate()[1])
    nodes.kill(OTHER)
    output, errors = program.communicate("\n", timeout=LIMIT_S)
    assert program.returncode == 0, errors
    # Ray itself may say, before and after that, that a raylet is gone.
    (found,) = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert found["nodes"] == [HEAD, HEAD]
    assert found["steps"] == 40
    assert len(found["events"]) == 1
    assert "worker 1" in found["events"][0]
    assert "Traceback" not in errors  # Ray's own core may say in a line that the node cannot be reached
