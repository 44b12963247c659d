"""PeerPlan: which peers are compared with which benchmark, checked before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...engines.support import check_no_fields, check_nothing_moves
from ...errors import LapjointError
from ...params import Params
from ...recording.origin import core_count
from ...scene import Scene
from ..bench.plan import SETTLE_STEPS, BenchPlan, step_work
from .base import Peer, Setting, load_peer
from .own_ladder import OwnRung, own_ladder


@dataclass(frozen=True)
class PeerPlan:
    """What to compare. Invalid values raise here, before anything starts."""

    plan: BenchPlan
    peers: Sequence[str]

    def __post_init__(self) -> None:
        if len(self.peers) == 0:
            raise LapjointError("no peer is given, expected at least one")
        for name in self.peers:
            if list(self.peers).count(name) > 1:
                raise LapjointError(f"peer {name} is given more than once")
        for peer in map(load_peer, self.peers):
            for scene in self.plan.scenes:
                check_nothing_moves(scene, "no peer is given")
                check_no_fields(scene, "no peer is given")
                peer.check(scene)

    @property
    def settle_steps(self) -> int:
        """Unmeasured steps of every side from the common states: until contacts are what its own solver makes them."""
        return max(SETTLE_STEPS, self.plan.steps)

    def params(self, scene: Scene, iterations: int | None) -> Params:
        """Of one worker."""
        params = replace(self.plan.params, workers=1)
        return (params if iterations is None else params.with_options(iterations=iterations)).resolved(scene)

    def thread_counts(self, peer: type[Peer]) -> list[int]:
        """As many as lapjoint has workers, but not more than the peer can have, nor than there are cores: more would
        only take turns."""
        return sorted({min(count, peer.most_threads, core_count()) for count in self.plan.counts})

    def rungs(self, scene: Scene, iterations: int | None) -> list[tuple[type[Peer], Setting]]:
        """Every setting of every peer, on every count of threads that it can have."""
        params = self.params(scene, iterations)
        return [
            (peer, replace(setting, threads=threads))
            for peer in map(load_peer, self.peers)
            for threads in self.thread_counts(peer)
            for setting in peer.ladder(scene, params)
        ]

    @property
    def own_rungs(self) -> list[OwnRung]:
        """lapjoint's own ladder, on one worker."""
        return own_ladder(self.plan.params)

    @property
    def work(self) -> float:
        """Of the whole plan, in the unit of `step_work`."""
        plan, total = self.plan, 0.0
        measured = self.settle_steps + plan.repetitions * plan.steps
        for scene in plan.scenes:
            total += len(plan.counts) * plan.warmup * step_work(scene, plan.warmup_iterations)
            for iterations in plan.amounts:
                total += len(plan.counts) * measured * step_work(scene, plan.sweeps(iterations))
                total += sum(measured * step_work(scene, rung.work) for _, rung in self.rungs(scene, iterations))
                total += sum(measured * step_work(scene, rung.work) for rung in self.own_rungs)
        return total

    def notes(self) -> dict[str, list[str]]:
        """What is unfair, by peer: on any of the scenes."""
        found: dict[str, list[str]] = {}
        for name in self.peers:
            lines = [line for scene in self.plan.scenes for line in load_peer(name).unfair(scene)]
            found[name] = list(dict.fromkeys(lines))
        return found
