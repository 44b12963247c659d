"""One-step error: how far the result of many workers is from that of one engine, after one step from the same states.

Runs of many workers and of one diverge, as any two runs of a chaotic scene do. Over one step from the same states the
difference is what partitioning the scene causes. docs/measures.md explains why the engine follows the run.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..engines import Changes, DriveTargets, HalfTurnsSet, make_worker_engine
from ..engines.follow import follow
from ..errors import LapjointError
from ..simulation import Simulation

Array = NDArray[np.float64]

WARM_STEPS = 8
"""Steps that the engine takes with the run before one that is compared: they fill its contact cache as the workers' is.
Where `every` is no larger than this and one more, it takes every step."""
NOT_COMPARED = float("nan"), float("nan")
_LINEAR = slice(7, 10)


class OneStep:
    """Takes the steps of a simulation again with a plain engine that holds all bodies; compares every `every`-th."""

    def __init__(self, simulation: Simulation, every: int) -> None:
        if not isinstance(every, int | np.integer) or every < 1:
            raise LapjointError(f"one_step_every is {every}, expected a whole number of steps, at least 1")
        self._every = int(every)
        self._bodies = np.empty(0, np.int32)
        self._known: tuple[object, ...] = ()  # of the scene, as the engine has it
        self._engine = make_worker_engine(simulation.scene, simulation.params)
        self._iterations = simulation.params.sequential.iterations
        self._start: Array | None = None
        self._forces: dict[int, Array] = {}
        self._motions = simulation.kinematic.motions

    def before_step(self, simulation: Simulation) -> None:
        """Keep what the step starts from, if the engine is to take it too."""
        self._start = None
        if -(simulation.step_count + 1) % self._every <= WARM_STEPS:
            self._start = simulation.states
            self._forces, self._motions = simulation.bodies.forces, simulation.kinematic.motions
            self._targets = simulation.joints.all_targets
            self._follow(simulation, self._start)

    def after_step(self, simulation: Simulation, states: Array) -> tuple[float, float]:
        """Error and difference of the step just taken, as `compare` has them, of bodies that are there before and after
        it; not numbers where it is not compared."""
        start, self._start = self._start, None
        if start is None:
            return NOT_COMPARED
        one = self._take_step(simulation, start)
        if simulation.step_count % self._every:
            return NOT_COMPARED
        left = simulation.alive[self._bodies]
        rows = self._bodies[left]
        return compare(start[rows, _LINEAR], states[rows, _LINEAR], one[left, _LINEAR])

    def _follow(self, simulation: Simulation, states: Array) -> None:
        """Let the engine have the bodies and joints that are there."""
        scene = simulation.scene
        known = scene.extent, int(scene.alive.sum()), int(scene.joint_alive.sum())  # none comes back
        if known != self._known:
            self._bodies, self._known = follow(self._engine, scene, self._bodies, states), known

    def _take_step(self, simulation: Simulation, start: Array) -> Array:
        engine, bodies = self._engine, self._bodies
        iterations = simulation.params.sequential.iterations
        changes, features = Changes(step_count=simulation.step_count - 1), engine.supports.features
        if iterations is not None and iterations != self._iterations:
            changes.iterations = self._iterations = iterations
        if self._motions and "kinematic bodies" in features:
            changes.motions = self._motions
        if (told := self._targets) is not None and "drives" in features:
            changes.drive_targets = DriveTargets(told.axes // 6, told.axes % 6, told.targets)
            changes.half_turns = HalfTurnsSet(told.turned, told.half_turns)
        engine.change(changes)
        # Setting a state rounds it to the engine's precision. Bodies that are where the run has them stay untouched:
        # with one worker, all.
        moved = bodies[(engine.get_states(bodies) != start[bodies]).any(axis=1)]
        engine.set_states(moved, start[moved])
        if self._forces:
            push = np.array(list(self._forces.values()))
            engine.add_forces(list(self._forces), push[:, :3], push[:, 3:])
        engine.step()
        return engine.get_states(bodies)


def compare(start: Array, many: Array, one: Array) -> tuple[float, float]:
    """How far velocities `many` are from `one`: relative to how far `one` went from `start`, and per body [m/s] (root
    of the mean square). Both are 0 where they are equal."""
    difference = float(np.linalg.norm(many - one))
    if difference == 0:
        return 0.0, 0.0
    change = float(np.linalg.norm(one - start))
    return difference / change if change else float("inf"), difference / len(one) ** 0.5
