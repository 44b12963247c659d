"""Lapjoint and its peers on the same scene, alive at the same time, take their steps in turn and are measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version

import numpy as np

from ...errors import LapjointError
from ...scene import Scene
from ...simulation import Simulation
from ..bench.plan import step_work
from ..bench.progress import OnProgress, WorkMeter
from ..bench.repetitions import rotated, start
from ..bench.rows import Repetition, rows_of
from ..titles import count_of
from .base import Array
from .plan import PeerPlan
from .rows import ComparedRow, Side, SideTurn, compared_rows
from .sides import Contestant, OurSide, PeerSide


def measure_peers(plan: PeerPlan, on_progress: OnProgress | None = None) -> Iterator[ComparedRow]:
    """Rows as they are complete, scene by scene.

    Simulations are started and warmed up as for `lapjoint bench`. Every setting of every peer, and of lapjoint's own
    ladder, starts from the states of the simulation with one worker. In each repetition every side takes its steps in
    turn; its error is measured after them.
    """
    meter = WorkMeter(plan.work, on_progress)
    for scene in plan.plan.scenes:
        with ExitStack() as alive:
            simulations = start(plan.plan, scene, alive, meter)
            for iterations in plan.plan.amounts:
                yield from _repeat(plan, scene, iterations, simulations, meter)


def _repeat(
    plan: PeerPlan, scene: Scene, iterations: int | None, simulations: dict[int, Simulation], meter: WorkMeter
) -> Iterator[ComparedRow]:
    of_bench: list[Repetition] = []
    repetitions: list[dict[Side, SideTurn]] = []
    with ExitStack() as worlds:
        work = step_work(scene, plan.plan.sweeps(iterations))
        ours = {Side(count): OurSide(one, work) for count, one in simulations.items()}
        for simulation in simulations.values():
            if iterations is not None:
                simulation.workers.set_iterations(iterations)
        peers = _start_peers(plan, scene, iterations, simulations[1].states, worlds, meter)
        rungs = _start_rungs(plan, scene, simulations[1].states, worlds, meter)
        sides: dict[Side, Contestant] = {**ours, **rungs, **peers}
        for side, contestant in sides.items():
            doing = f"{scene.name}, {_title(side)}: settling"
            contestant.settle(plan.settle_steps, partial(meter.add, contestant.work, doing))
        try:
            for number in range(plan.plan.repetitions):
                turns: dict[Side, SideTurn] = {}
                for side in rotated(list(sides), number):
                    doing = f"{scene.name}: repetition {number + 1} of {plan.plan.repetitions}, {_title(side)}"
                    after_step = partial(meter.add, sides[side].work, doing)
                    turns[side] = sides[side].take_turn(plan.plan.steps, after_step)
                repetitions.append(turns)
                of_bench.append({s.workers: one.turn for s, one in ours.items() if s.workers and one.turn})
        except (KeyboardInterrupt, LapjointError):
            yield from compared_rows(rows_of(plan.plan, scene, iterations, of_bench), repetitions, list(sides))
            raise
        yield from compared_rows(rows_of(plan.plan, scene, iterations, of_bench), repetitions, list(sides))


def _start_peers(
    plan: PeerPlan, scene: Scene, iterations: int | None, states: Array, worlds: ExitStack, meter: WorkMeter
) -> dict[Side, PeerSide]:
    params, sides = plan.params(scene, iterations), {}
    for peer, setting in plan.rungs(scene, iterations):
        side = Side(None, peer.name, setting.title, version(peer.package), peer.precision, setting.threads)
        meter.report(f"{scene.name}: starting {_title(side)}")
        world = peer(scene, states, params, setting)
        worlds.callback(world.close)
        sides[side] = PeerSide(world, scene, step_work(scene, setting.work))
    return sides


def _start_rungs(
    plan: PeerPlan, scene: Scene, states: Array, worlds: ExitStack, meter: WorkMeter
) -> dict[Side, OurSide]:
    """lapjoint's own ladder, from the same states as the peers and, as these, without impulses of an earlier step."""
    sides = {}
    every = np.arange(scene.body_count)
    for rung in plan.own_rungs:
        side = Side(1, setting=rung.title)
        meter.report(f"{scene.name}: starting {_title(side)}")
        simulation = worlds.enter_context(Simulation(scene, rung.params))
        simulation.set_states(every, states)
        sides[side] = OurSide(simulation, step_work(scene, rung.work))
    return sides


def _title(side: Side) -> str:
    if side.workers is not None:
        return ", ".join(filter(None, [count_of(side.workers, "worker"), side.setting]))
    return f"{side.peer}, {side.setting}, {count_of(side.threads or 1, 'thread')}"
