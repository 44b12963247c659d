"""Steering: what browsers ask of a running simulation, carried out between two steps in the simulation's own thread."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import LapjointError
from ...scene.content import checked_ids
from ...simulation import Simulation
from .balls import BALLS, Balls
from .hands import Pull, Pulls

Ids = NDArray[np.int32]
Request = Callable[[Simulation], None]
IDLE_S = 0.02
"""How often a paused simulation checks whether it was interrupted."""


class Steering:
    """Pace, pulls and requests of one simulation. So many balls that were thrown are there at once at most."""

    def __init__(self, simulation: Simulation, ball_count: int = BALLS, *, can_restart: bool = True) -> None:
        self.simulation, self.ball_count, self.can_restart = simulation, ball_count, can_restart
        self._balls = Balls(simulation.scene, ball_count)
        self.paused = False
        self.done = False
        """Whether all steps of the run are taken; only a restart goes on."""
        self.speed: float | None = 1.0
        """Most simulated seconds per second; None: as fast as possible."""
        self.strength = 1.0
        """Factor on the forces of pulls."""
        self.keep_pulls = False
        self.pulls = Pulls()
        self.on_refusal: Callable[[str], None] = lambda reason: None
        """Called with the reason when a request cannot be carried out."""
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._asked = threading.Event()
        self._settings: dict[str, Request] = {}
        self._steps_wanted = 0
        self._step_at = 0.0

    # ---- the simulation's thread -----------------------------------------------------------------------------------

    def serve(self) -> bool:
        """Carry out all requests; returns whether there were any."""
        self._asked.clear()
        served = False
        while True:
            try:
                request = self._requests.get_nowait()
            except queue.Empty:
                return served
            served = True
            try:
                request(self.simulation)
            except LapjointError as error:
                self.on_refusal(str(error))

    def wait(self, seconds: float) -> None:
        """Wait so long at most, or until something is asked for."""
        self._asked.wait(min(seconds, IDLE_S))

    def wait_s(self, frame_s: float) -> float:
        """Return how long until the next step may be taken [s]; 0: now. `frame_s` is the time between two frames."""
        now = time.perf_counter()
        if self.done:
            self._steps_wanted = 0
            return IDLE_S
        if self._steps_wanted:
            self._step_at = now
            return 0.0
        if self.paused:
            return IDLE_S
        if self.speed is None:
            return 0.0
        length = self.simulation.timestep / self.speed
        # A step that came late is not made up for by many at once.
        self._step_at = max(self._step_at, now - 2 * max(length, frame_s))
        if now < self._step_at:
            return self._step_at - now
        self._step_at += length
        return 0.0

    def begin_step(self) -> None:
        """Count a wanted step as taken, and add the forces of pulls to it."""
        self._steps_wanted = max(self._steps_wanted - 1, 0)
        simulation, pulls = self.simulation, self.pulls
        pulls.keep(simulation.alive)
        if pulls.held is not None or pulls.kept:
            forces = pulls.forces(simulation.scene, simulation.states, simulation.timestep, self.strength)
            simulation.bodies.add_forces(*forces)

    def finish(self) -> None:
        """All steps of the run are taken."""
        self.done = self.paused = True

    # ---- what browsers ask for, in their threads ---------------------------------------------------------------------

    def ask(self, request: Request) -> None:
        """Have the simulation's thread do this before the next step."""
        self._requests.put(request)
        self._asked.set()

    def change(self, name: str, setting: Request) -> None:
        """Change a setting of the simulation. A restart applies the last one of each name again."""

        def apply(simulation: Simulation) -> None:
            setting(simulation)
            self._settings[name] = setting

        self.ask(apply)

    def pause(self, paused: bool) -> None:
        """Stop before the next step, or go on."""
        self.paused = paused
        self._asked.set()

    def single_step(self) -> None:
        """Pause, and take one step."""

        def step(simulation: Simulation) -> None:
            self.paused = True
            self._steps_wanted += 1

        self.ask(step)

    def restart(self, on_done: Callable[[], None] = lambda: None) -> None:
        """Begin again from the scene's start, with the params of the run and the settings changed since."""

        def restart(simulation: Simulation) -> None:
            if not self.can_restart:
                raise LapjointError("this run leaves figures behind (--record, --json, ...), and cannot restart")
            simulation.restart()
            self._balls.restart()
            self.pulls, self._steps_wanted = Pulls(), 0
            if self.done:
                self.done = self.paused = False
            for setting in self._settings.values():
                setting(simulation)
            on_done()

        self.ask(restart)

    def repartition(self, partition: ArrayLike, on_done: Callable[[], None] = lambda: None) -> None:
        """Migrate bodies to these workers in the next step; those that have come since stay where they are."""
        wanted = np.array(partition, np.int32)

        def repartition(simulation: Simulation) -> None:
            since = simulation.workers.weights()[len(wanted) :].argmax(axis=1)
            simulation.workers.repartition(np.concatenate([wanted, since]).astype(np.int32))
            on_done()

        self.ask(repartition)

    # ---- hands -------------------------------------------------------------------------------------------------------

    def grab(self, body: int, point: ArrayLike) -> None:
        """Hold a body at a point of the world."""

        def hold(simulation: Simulation) -> None:
            checked_ids(simulation.scene, [body], "pull")
            self.pulls.held = Pull.at(body, simulation.states[body], point)

        self.ask(hold)

    def drag_to(self, target: ArrayLike) -> None:
        """Pull the held body to this point."""
        place = np.array(target, float)

        def pull(simulation: Simulation) -> None:
            if self.pulls.held is not None:
                self.pulls.held.target = place

        self.ask(pull)

    def let_go(self) -> None:
        """Release the held body; its pull stays if pulls are kept."""
        self.ask(lambda simulation: self.pulls.let_go(self.keep_pulls))

    def remove_pulls(self, body: int | None = None) -> None:
        """Remove the pulls on a body, or all."""

        def remove(simulation: Simulation) -> None:
            self.pulls.remove(body)

        self.ask(remove)

    def freeze(self, body: int, frozen: bool) -> None:
        """Hold a body where it is, or release it."""
        self.ask(lambda simulation: simulation.bodies.freeze([body]) if frozen else simulation.bodies.release([body]))

    def remove(self, body: int) -> None:
        """Take a body out of the simulation, and its joints and pulls with it."""
        self.ask(lambda simulation: simulation.bodies.remove([body]))

    def throw(self, eye: ArrayLike, direction: ArrayLike, speed: float) -> None:
        """Throw a ball from there."""

        def throw(simulation: Simulation) -> None:
            self._balls.throw(simulation, eye, direction, speed)

        self.ask(throw)
