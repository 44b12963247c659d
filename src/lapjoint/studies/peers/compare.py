"""Lapjoint and its peers on the same scene, alive at the same time, take their steps in turn and are measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Protocol

from ...errors import LapjointError
from ...params import Params
from ...scene import Scene
from ...simulation import Simulation
from ..bench.plan import SETTLE_STEPS, BenchPlan, step_work
from ..bench.rounds import Meter, OnProgress, rotated, start, take_turn, workers_title
from ..bench.rows import Round, Turn, rows_of
from .base import Array, Peer, Setting, load_peer
from .error import state_error
from .rows import ComparedRow, Side, SideTurn, compared_rows

AfterStep = Callable[[], None]


@dataclass(frozen=True)
class PeerPlan:
    """What to compare. Whatever is wrong with it is an error here, before anything starts."""

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
                peer.check(scene)

    @property
    def settle_steps(self) -> int:
        """Unmeasured steps of every side from the common states: until contacts are what its own solver makes them."""
        return max(SETTLE_STEPS, self.plan.steps)

    def params(self, scene: Scene, iterations: int) -> Params:
        return replace(self.plan.params, iterations=iterations).resolved(scene)

    def rungs(self, scene: Scene, iterations: int) -> list[tuple[type[Peer], Setting]]:
        """Every setting of every peer."""
        params = self.params(scene, iterations)
        return [(peer, setting) for peer in map(load_peer, self.peers) for setting in peer.ladder(scene, params)]

    @property
    def work(self) -> float:
        """Of the whole plan, in the unit of `step_work`."""
        plan, total = self.plan, 0.0
        measured = self.settle_steps + plan.rounds * plan.steps
        for scene in plan.scenes:
            total += len(plan.counts) * plan.warmup * step_work(scene, plan.warmup_iterations)
            for iterations in map(int, plan.iterations):
                total += len(plan.counts) * measured * step_work(scene, iterations)
                total += sum(measured * step_work(scene, rung.work) for _, rung in self.rungs(scene, iterations))
        return total

    def notes(self) -> dict[str, list[str]]:
        """What is unfair, by peer: on any of the scenes."""
        found: dict[str, list[str]] = {}
        for name in self.peers:
            lines = [line for scene in self.plan.scenes for line in load_peer(name).unfair(scene)]
            found[name] = list(dict.fromkeys(lines))
        return found


class Contestant(Protocol):
    """One side, ready to step."""

    work: float

    def take_turn(self, steps: int, after_step: AfterStep) -> SideTurn: ...

    def settle(self, steps: int, after_step: AfterStep) -> None: ...


class OurSide:
    """A simulation."""

    def __init__(self, simulation: Simulation, work: float) -> None:
        self.simulation, self.work = simulation, work
        self.turn: Turn | None = None
        """The last one, as `lapjoint bench` has it."""

    def settle(self, steps: int, after_step: AfterStep) -> None:
        for _ in range(steps):
            self.simulation.step()
            after_step()

    def take_turn(self, steps: int, after_step: AfterStep) -> SideTurn:
        simulation, aside = self.simulation, 0.0

        def note() -> None:
            nonlocal aside
            before = time.process_time()
            after_step()
            aside += time.process_time() - before

        before = time.process_time()
        self.turn = turn = take_turn(simulation, steps, note)
        cpu_ms = 1e3 * (time.process_time() - before - aside) / steps
        if simulation.params.runtime != "inline":  # else workers are part of this process
            cpu_ms += turn.worker_cpu_ms_mean * simulation.params.workers
        states, read_ms = _read(lambda: simulation.states)
        return SideTurn(turn.step_ms, cpu_ms, read_ms, state_error(simulation.scene, states), None)


class PeerSide:
    """A peer at one setting."""

    def __init__(self, peer: Peer, scene: Scene, work: float) -> None:
        self.peer, self.scene, self.work = peer, scene, work

    def settle(self, steps: int, after_step: AfterStep) -> None:
        for _ in range(steps):
            self.peer.step()
            after_step()

    def take_turn(self, steps: int, after_step: AfterStep) -> SideTurn:
        wall_s = cpu_s = 0.0
        for _ in range(steps):
            wall, cpu = time.perf_counter(), time.process_time()
            self.peer.step()
            wall_s += time.perf_counter() - wall
            cpu_s += time.process_time() - cpu
            after_step()
        states, read_ms = _read(self.peer.states)
        error = state_error(self.scene, states)
        return SideTurn(1e3 * wall_s / steps, 1e3 * cpu_s / steps, read_ms, error, self.peer.penetration())


def _read(read: Callable[[], Array]) -> tuple[Array, float]:
    before = time.perf_counter()
    states = read()
    return states, 1e3 * (time.perf_counter() - before)


def measure_peers(plan: PeerPlan, on_progress: OnProgress | None = None) -> Iterator[ComparedRow]:
    """Rows as they are complete, scene by scene.

    Simulations are started and warmed up as for `lapjoint bench`. Every setting of every peer starts from the states of
    the simulation with one worker. In each round every side takes its steps in turn; its error is measured after them.
    """
    meter = Meter(plan.work, on_progress)
    for scene in plan.plan.scenes:
        with ExitStack() as alive:
            simulations = start(plan.plan, scene, alive, meter)
            for iterations in map(int, plan.plan.iterations):
                yield from _measure_rounds(plan, scene, iterations, simulations, meter)


def _measure_rounds(
    plan: PeerPlan, scene: Scene, iterations: int, simulations: dict[int, Simulation], meter: Meter
) -> Iterator[ComparedRow]:
    bench_rounds: list[Round] = []
    rounds: list[dict[Side, SideTurn]] = []
    with ExitStack() as worlds:
        ours = {Side(count): OurSide(one, step_work(scene, iterations)) for count, one in simulations.items()}
        for simulation in simulations.values():
            simulation.set_iterations(iterations)
        peers = _start_peers(plan, scene, iterations, simulations[1].states, worlds, meter)
        sides: dict[Side, Contestant] = {**ours, **peers}
        for side, contestant in sides.items():
            doing = f"{scene.name}, {_title(side)}: settling"
            contestant.settle(plan.settle_steps, partial(meter.add, contestant.work, doing))
        try:
            for number in range(plan.plan.rounds):
                turns: dict[Side, SideTurn] = {}
                for side in rotated(list(sides), number):
                    doing = f"{scene.name}: round {number + 1} of {plan.plan.rounds}, {_title(side)}"
                    tell = partial(meter.add, sides[side].work, doing)
                    turns[side] = sides[side].take_turn(plan.plan.steps, tell)
                rounds.append(turns)
                bench_rounds.append({s.workers: one.turn for s, one in ours.items() if s.workers and one.turn})
        except (KeyboardInterrupt, LapjointError):
            yield from compared_rows(rows_of(plan.plan, scene, iterations, bench_rounds), rounds, list(sides))
            raise
        yield from compared_rows(rows_of(plan.plan, scene, iterations, bench_rounds), rounds, list(sides))


def _start_peers(
    plan: PeerPlan, scene: Scene, iterations: int, states: Array, worlds: ExitStack, meter: Meter
) -> dict[Side, PeerSide]:
    params, sides = plan.params(scene, iterations), {}
    for peer, setting in plan.rungs(scene, iterations):
        side = Side(None, peer.name, setting.title, version(peer.package), peer.precision)
        meter.say(f"{scene.name}: starting {_title(side)}")
        world = peer(scene, states, params, setting)
        worlds.callback(world.close)
        sides[side] = PeerSide(world, scene, step_work(scene, setting.work))
    return sides


def _title(side: Side) -> str:
    return f"{side.peer}, {side.setting}" if side.workers is None else workers_title(side.workers)
