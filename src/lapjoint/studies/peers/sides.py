"""The sides of a comparison: a simulation, or a peer at one setting; each takes its steps and is measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from ...scene import Scene
from ...simulation import Simulation
from ..bench.repetitions import take_turn
from ..bench.rows import TurnMeans
from .base import Array, Peer
from .error import state_error
from .rows import SideTurn

AfterStep = Callable[[], None]


class Contestant(Protocol):
    """One side, ready to step."""

    work: float

    def take_turn(self, steps: int, after_step: AfterStep) -> SideTurn: ...

    def settle(self, steps: int, after_step: AfterStep) -> None: ...


class OurSide:
    """A simulation."""

    def __init__(self, simulation: Simulation, work: float) -> None:
        self.simulation, self.work = simulation, work
        self.turn: TurnMeans | None = None
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
