"""Which bodies the server watches, by either kind of algorithms."""

from __future__ import annotations

import numpy as np

from lapjoint import Params, scenes
from lapjoint.algorithms import KINDS, native
from lapjoint.workers.messages import StepCommand
from lapjoint.workers.runtimes.watch import Watch


def test_the_watch_searches_by_the_algorithms_that_are_asked_for() -> None:
    scene = scenes.build("plank")
    owner, watched = np.arange(scene.body_count) % 2, {}
    for kind in KINDS:
        watch = Watch(scene, Params(workers=2, algorithms=kind).resolved(scene))
        assert isinstance(watch._finder, native.PairFinder) == (kind == "native")
        for worker in range(2):
            watch.set_worker(worker)
        watch.note([StepCommand(activate=np.flatnonzero(owner == w).astype(np.int32)) for w in range(2)])
        watched[kind] = [bodies.tolist() for bodies in watch.watched(scene.states)]
    assert watched["native"] == watched["reference"]
    assert any(watched["native"])
