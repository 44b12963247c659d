"""Native and readable algorithms are the same by their types, and the readable ones need nothing that is compiled."""

from __future__ import annotations

import inspect
import subprocess
import sys
from types import ModuleType

import pytest

from lapjoint.algorithms import Algorithms, ConstraintGraph, NearPairFinder, native, reference

both = pytest.mark.parametrize("module", [native, reference], ids=["native", "reference"])


def methods_of(protocol: type) -> dict[str, inspect.Signature]:
    """Signatures of what a protocol asks for, without `self`."""
    functions = {name: f for name, f in vars(protocol).items() if inspect.isfunction(f) and not name.startswith("_")}
    return {name: without_self(f) for name, f in functions.items()}


def without_self(function: object) -> inspect.Signature:
    signature = inspect.signature(function)  # type: ignore[arg-type]
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def parameters(signature: inspect.Signature) -> list[inspect.Parameter]:
    """Names, kinds, defaults and types (as they are written)."""
    return list(signature.parameters.values())


@both
def test_functions_have_the_signatures_of_the_protocol(module: ModuleType) -> None:
    expected = methods_of(Algorithms)
    assert len(expected) == 8
    for name, signature in expected.items():
        own = getattr(module, name)
        if inspect.isclass(own):
            assert parameters(without_self(own.__init__)) == parameters(signature), name
        else:
            assert inspect.signature(own) == signature, name


@both
@pytest.mark.parametrize(("name", "protocol"), [("Graph", ConstraintGraph), ("PairFinder", NearPairFinder)])
def test_classes_have_the_methods_of_their_protocols(module: ModuleType, name: str, protocol: type) -> None:
    expected = methods_of(protocol)
    assert len(expected) >= 2
    for method, signature in expected.items():
        assert without_self(getattr(getattr(module, name), method)) == signature, method


@both
def test_graphs_have_the_arrays_of_their_protocol(module: ModuleType) -> None:
    graph = module.Graph(3, [(0, 1)], [[(1, 2)]])
    assert set(ConstraintGraph.__annotations__) == {"body_count", "start", "neighbor", "edges", "contacts"}
    assert all(hasattr(graph, name) for name in ConstraintGraph.__annotations__)


@both
def test_modules_offer_no_algorithm_beside_the_protocol(module: ModuleType) -> None:
    """One that only a twin had would be called past the types."""
    offered = {
        name
        for name, own in vars(module).items()
        if callable(own) and not name.startswith("_") and own.__module__ == module.__name__
    }
    assert offered <= set(methods_of(Algorithms))
    assert {*getattr(module, "__all__", offered)} == set(methods_of(Algorithms))


BLOCKED = """
import sys
sys.modules["lapjoint._algorithms"] = None  # whoever imports it has an ImportError

import numpy as np
from lapjoint import Params, Simulation, scenes
from lapjoint.algorithms import Balance, Membership, load_algorithms
from lapjoint.workers.runtimes.watch import Watch

try:
    load_algorithms("native")
except ImportError:
    print("blocked")

readable = load_algorithms("reference")
scene = scenes.build("plank")
count = scene.body_count
membership = Membership(np.arange(count) % 2, 2)
known = membership.bits.copy()
edges = np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)
graph = readable.Graph(count, edges, [edges])
readable.assign_overlap(1, graph, membership)
readable.balance(graph.contacts, 1, graph, membership, Balance.PRUNED, np.ones(count, bool), 2)
membership.validate(graph)
membership.set_costs(np.arange(count), 3)
overlap = membership.overlap()
for weigh in (readable.compute_weights, readable.depth_weights):
    offset, worker, weight = weigh(2, graph, membership, overlap)
states = scene.states.copy()
readable.blend(offset, weight, np.repeat(states[overlap], np.diff(offset), axis=0), overlap, states)
readable.command_lists(membership, known, overlap, worker)
finder = readable.PairFinder(scene, 0.1)
finder.find(states, membership)
finder.find_again(overlap, membership)
finder.prepare(membership)

params = Params(workers=2, coupling="blend", algorithms="reference")
watch = Watch(scene, params)
watch.set_worker(0)
watch.set_worker(1)
watch.watched(states)
with Simulation(scene, params) as simulation:
    simulation.step(3)
print("done")
"""


@pytest.mark.slow
def test_the_readable_algorithms_need_no_compiled_code() -> None:
    done = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True)
    assert done.stdout.split() == ["blocked", "done"], done.stderr
