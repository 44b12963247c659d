"""The interface: constraints between bodies of different owners, in an engine of the server's.

The server's engine has the bodies at the interface, and of their joints and contacts those between owners alone. It
solves them together with the workers' own, in rounds of an exchange within the step. docs/coupling.md has the
mathematics.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...algorithms.exchange import RoundPlan, RoundResult
from ...engines import Contacts, EngineState, RoundEngine, make_engine
from ...engines.exchange import Links
from ...errors import LapjointError
from ...params import Params
from ...scene import WORLD, Scene

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

LINGER = 10
"""Steps that a body stays at the interface after its last constraint between workers."""

SMALL_CUT = 0.25
"""Where a smaller share of the contacts is between workers, the server sweeps once a round: as good, and less work."""


class Interface:
    """`owner` is the worker of every body, as the server's engine has it."""

    def __init__(self, scene: Scene, params: Params, owner: Ids) -> None:
        engine = make_engine(scene, params)
        if not isinstance(engine, RoundEngine):
            raise LapjointError(f"coupling is tight, which the engine {params.engine} does not have")
        self._engine = engine
        self._joints = np.stack([scene.joints.body_a, scene.joints.body_b], axis=1)
        self._joints = self._joints[self._joints[:, 1] != WORLD]
        self.owner: Ids = np.zeros(scene.body_count, np.int32)
        self._is_jointed = np.zeros(scene.body_count, bool)  # has a joint with a body of another owner
        self.set_owner(owner)
        engine.set_owners(self.owner)  # reads it in place
        self.bodies: Ids = np.empty(0, np.int32)
        """Bodies that the server's engine has, ascending."""
        self._leaving = self._entering = self.bodies
        self.needed_at = np.full(scene.body_count, -LINGER - 1, np.int64)
        """Step in which each body last had a constraint between workers."""
        self.result = RoundResult(0, 0.0)
        """Of the last step."""
        self.contacts = Contacts.none()
        """Between workers, of the last step."""
        self.exchange_cpu_s = 0.0
        """CPU time of the server in the exchange of the last step [s]."""
        self.begin_cpu_s = 0.0
        """CPU time before it, while the workers begin their steps too [s]."""

    # ---- who is at the interface -------------------------------------------------------------------------------------

    def set_owner(self, owner: Ids) -> None:
        """Set the owners. A body whose owner changes must not be in the server's engine."""
        self.owner[:] = owner
        a, b = self._joints.T
        self._is_jointed[:] = False
        self._is_jointed[self._joints[owner[a] != owner[b]]] = True

    def jointed_places(self, bodies: Ids) -> Ids:
        """Which of these have a joint with a body of another owner, by their places."""
        return np.flatnonzero(self._is_jointed[bodies]).astype(np.int32)

    def choose(self, contacts: Ids, step_count: int, removed: Ids) -> None:
        """Choose the bodies that have, or lately had, a joint or a contact with a body of another owner."""
        self.needed_at[self._is_jointed] = step_count
        a, b = contacts[contacts[:, 1] >= 0].T
        apart = self.owner[a] != self.owner[b]
        self.needed_at[a[apart]] = self.needed_at[b[apart]] = step_count
        wanted = self.needed_at >= step_count - LINGER
        wanted[removed] = False
        wanted_ids = np.flatnonzero(wanted).astype(np.int32)
        if np.array_equal(wanted_ids, self.bodies):
            self._leaving = self._entering = self.bodies[:0]
            return
        self._leaving = np.setdiff1d(self.bodies, wanted_ids, assume_unique=True)
        self._entering = np.setdiff1d(wanted_ids, self.bodies, assume_unique=True)
        self.bodies = wanted_ids

    def change_members(self, states: Array) -> None:
        """Activate and deactivate bodies in the server's engine as chosen."""
        if len(self._leaving):
            self._engine.deactivate(self._leaving)
        if len(self._entering):
            self._engine.activate(self._entering, states[self._entering])
        self._leaving = self._entering = self.bodies[:0]

    def leave_out(self, bodies: Ids) -> None:
        """Take these out of the server's engine."""
        gone = np.intersect1d(bodies, self.bodies)
        if len(gone):
            self._engine.deactivate(gone)
            self.bodies = np.setdiff1d(self.bodies, gone)

    # ---- the contact cache -------------------------------------------------------------------------------------------

    def take_cache(self, bodies: Ids) -> EngineState:
        """Return the contact cache of bodies that change owners, and take them out of the server's engine."""
        wanted = np.zeros(len(self.owner), bool)
        wanted[bodies] = True
        cache = self._engine.state().about(wanted)
        self.leave_out(bodies)
        return cache

    def merge_cache(self, cache: EngineState) -> None:
        """Merge the part of a contact cache that is about constraints between workers."""
        here = np.zeros(len(self.owner), bool)
        here[self.bodies] = True
        self._engine.merge_cache(cache.between(self.owner).part(here))

    def engine_state(self) -> EngineState:
        return self._engine.state()

    def restore_engine(self, state: EngineState) -> None:
        self._engine.restore(state)

    # ---- the exchange ------------------------------------------------------------------------------------------------

    def run_exchange(
        self, plan: RoundPlan, cut_share: float, states: Array, forces: dict[int, Array], links: Links
    ) -> None:
        """Run the server's part of a step, while the workers take theirs. `states` are the interface's before the
        step."""
        start = time.thread_time()
        engine, bodies = self._engine, self.bodies
        pushed = np.intersect1d(bodies, list(forces)).astype(np.int32) if forces else bodies[:0]
        with suppress(LapjointError):  # what this engine refuses, that of the owner refuses too, and reports it
            engine.set_states(bodies, states)
            if len(pushed):
                rows = np.array([forces[body] for body in pushed.tolist()])
                engine.add_forces(pushed, rows[:, :3], rows[:, 3:])
        engine.begin_step(bodies)
        self.begin_cpu_s = time.thread_time() - start
        owner = self.owner[bodies]
        links.rows = [np.flatnonzero(owner == worker).astype(np.int32) for worker in range(len(links.downs))]
        if cut_share < SMALL_CUT and not self._is_jointed.any():
            plan = replace(plan, server_sweeps=1)
        start = time.thread_time()
        self.result = engine.run_rounds(plan, links)
        self.exchange_cpu_s = time.thread_time() - start - links.worker_cpu_s()
        for worker in self.result.late:
            links.give_up(worker)
        if self.result.failed:
            engine.abandon_step()
        else:
            engine.finish_step(moves=False)
            self.contacts = engine.contacts()
