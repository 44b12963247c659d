"""Sensing: who is inside of the scene's sensors, and who came and left, step by step.

Workers find it themselves where their states are what a step ends with and no sensor moves with a body, so that they
can take many steps at once. They are told who was inside, so a body that migrates neither leaves nor enters. Elsewhere,
and for what is changed between two steps, the server looks at the table of states.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..arrays.state import PartState
from ..engines import supports
from ..params.coupling_choice import traits
from ..params.engine_choice import EngineChoice
from ..queries.sensors import SensorSet
from ..step_tables.sensor_events import SensorEvents
from ..workers.runtimes import Runtime
from .coupling import StepContext
from .kinematic import KinematicBodies
from .step_log import StepLog

Ids = NDArray[np.int32]
NOBODY = np.empty((0, 2), np.int32)
ENTER, LEAVE = 0, 1


class Sensing:
    """What is sensed. `is_held` returns whether bodies are put back after every step."""

    def __init__(
        self, now: StepContext, runtime: Runtime, kinematic: KinematicBodies, is_held: Callable[[], bool]
    ) -> None:
        self._now, self._runtime, self._kinematic, self._is_held = now, runtime, kinematic, is_held
        self.is_used = len(now.scene.sensors) > 0
        names = EngineChoice.parse(now.params.engine).names
        self._by_engines = bool((now.scene.sensors.body < 0).all()) and all(
            "sensors" in supports(name).features for name in names if self.is_used
        )
        self._set: SensorSet | None = None
        self._log = StepLog(SensorEvents)
        self._inside = NOBODY  # ascending
        self._seen = self._expected = -1  # what had changed when it was looked, and will have after the step

    @property
    def one_by_one(self) -> bool:
        """Whether workers have to take steps one by one, for the server to look after each."""
        return self.is_used and not self._by_workers

    @property
    def _by_workers(self) -> bool:
        alone = self._now.membership.worker_count == 1
        return self._by_engines and (alone or not traits(self._now.params.coupling).overlaps) and not self._is_held()

    @property
    def inside(self) -> Ids:
        """Who is inside now: sensors and bodies, (n, 2), ascending."""
        self._look(self._now.step_count, self._now.step_count)
        return self._inside

    @property
    def events(self) -> SensorEvents:
        """All so far."""
        self._look(self._now.step_count, self._now.step_count)
        return self._log.all

    def begin_step(self) -> None:
        """Steps are about to be taken."""
        self._now.commands.inside = self.inside if self._by_workers else None
        self._expected = self._now.commands.change_count + 1  # the step

    def end_step(self, steps: int) -> None:
        """So many steps were taken, and nothing was changed since."""
        now = self._now
        if now.commands.inside is None:
            self._look(now.step_count, now.step_count + steps)
            return
        found = SensorEvents.joined(reply.table(SensorEvents) for reply in now.replies)
        if len(found):
            self._log.add(found, now.step_count)
            last = found.ordered().taken(slice(None, None, -1))  # of each pair the last event counts
            pairs, first = np.unique(last.pair, axis=0, return_index=True)
            kept = _without(self._inside, pairs)
            self._inside = _sorted(np.concatenate([kept, pairs[last.kind[first] == ENTER]]))
        if now.commands.change_count == self._expected:  # else bodies were taken out, or put back
            self._seen = self._expected

    def _look(self, step: int, step_count: int) -> None:
        """See who is inside after so many steps, if anything has changed; events are those of `step`."""
        now = self._now
        if not self.is_used or self._seen == now.commands.change_count:
            return
        self._seen = now.commands.change_count
        self._set = self._set or SensorSet(now.scene)
        inside = self._set.find(now.scene.alive, self._runtime.states, self._kinematic.static_poses(step_count))
        entered, left = _without(inside, self._inside), _without(self._inside, inside)
        pairs = np.concatenate([entered, left])
        kind = np.repeat(np.array([ENTER, LEAVE], np.uint8), [len(entered), len(left)])
        self._log.add(SensorEvents(np.zeros(len(pairs), np.int32), pairs, kind), step)
        self._inside = inside

    # ---- state -------------------------------------------------------------------------------------------------------

    def state(self) -> PartState:
        return PartState({"inside": self._inside, **self._log.state().arrays})

    def restore(self, state: PartState) -> None:
        self._inside, self._seen = state.array("inside"), -1
        self._log.restore(state)


def _without(pairs: Ids, others: Ids) -> Ids:
    """Pairs that are not among the others."""
    return pairs[~np.isin(_keys(pairs), _keys(others))]


def _sorted(pairs: Ids) -> Ids:
    return pairs[np.argsort(_keys(pairs))]


def _keys(pairs: Ids) -> NDArray[np.int64]:
    return pairs[:, 0].astype(np.int64) << 32 | pairs[:, 1].astype(np.int64)
