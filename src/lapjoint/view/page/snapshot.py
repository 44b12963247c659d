"""Snapshot: all that a page shows of one moment, copied once, so that the simulation can go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from ...algorithms.membership import WORD
from ...engines import Contacts
from ...errors import WorkerError
from ...params import Params
from ...params.coupling_choice import traits
from ...recording import Recording
from ...scene import Scene
from ...simulation import Simulation
from ..draw.recorded import exchange_text

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]


@dataclass
class Snapshot:
    """One moment. Tables have a row for every body of the scene, those that were removed included."""

    scene: Scene
    """With all that was added up to this moment. It does not change."""
    alive: Mask
    """Which bodies are there."""
    joint_alive: Mask
    """Which joints hold."""
    step_count: int
    time: float
    """s"""
    states: Array
    find_weights: Callable[[], Array] = field(repr=False)
    contacts: Contacts | None = None
    """Of the last step; None where they are not known."""
    phases_ms: Mapping[str, float] = field(default_factory=dict)
    exchanges: int | None = None
    """Of the last step, with tight coupling; so are the next two."""
    residual: float = 0.0
    """m/s"""
    interface: Ids = field(default_factory=lambda: np.empty(0, np.int32))
    """Bodies with constraints between workers."""
    frozen: Ids = field(default_factory=lambda: np.empty(0, np.int32))
    pulled: Ids = field(default_factory=lambda: np.empty(0, np.int32))
    pull_lines: Array = field(default_factory=lambda: np.empty((0, 2, 3)))
    """From where each pull holds its body to where it pulls, (n, 2, 3) [m]."""
    static_poses: Array | None = None
    """Positions and quaternions of static bodies, where some are kinematic."""
    start_number: int = 0
    """How many times the simulation had been restarted. Bodies of different starts have nothing to do with each other,
    beyond those that the scene begins with."""

    def has(self, body: int) -> bool:
        """Whether this body is there."""
        return body < len(self.alive) and bool(self.alive[body])

    @cached_property
    def weights(self) -> Array:
        """Blend weight of each worker for each body, (body_count, workers); -1 where it does not simulate the body."""
        table = self.find_weights()
        table[~self.alive] = -1.0
        return table

    @cached_property
    def is_member(self) -> NDArray[np.bool_]:
        """Which workers simulate which bodies, (body_count, workers)."""
        return self.weights >= 0

    def touching(self) -> Ids:
        """Pairs of bodies in contact, (n, 2), static bodies left out."""
        if self.contacts is None:
            return np.empty((0, 2), np.int32)
        return self.contacts.bodies[self.contacts.between_bodies]

    def contact_counts(self) -> NDArray[np.int64]:
        """Contacts of each body, those with static bodies included."""
        if self.contacts is None:
            return np.zeros(len(self.states), np.int64)
        ends = self.contacts.bodies.ravel()
        return np.bincount(ends[ends >= 0], minlength=len(self.states))


def of_simulation(simulation: Simulation) -> Snapshot:
    """The present moment of a simulation: its own thread calls this."""
    find = partial(
        weight_table,
        simulation.workers.membership.bits.copy(),
        most_workers(simulation.params),
        simulation.workers.overlap,
        simulation.workers.weight_offset,
        simulation.workers.weight_worker,
        simulation.workers.weight,
    )
    profile, scene, alive = simulation.profile, simulation.scene, simulation.alive.copy()
    return Snapshot(
        scene.so_far(),
        alive,
        scene.joint_alive.copy(),
        simulation.step_count,
        simulation.time,
        simulation.states,
        find,
        _contacts(simulation, alive),
        dict(profile.phases_ms),
        profile.exchanges if traits(simulation.params.coupling).exchanges else None,
        profile.residual,
        simulation.workers.interface,
        simulation.bodies.frozen_ids,
        static_poses=simulation.kinematic.static_poses if simulation.scene.motions else None,
    )


def most_workers(params: Params) -> int:
    """How many workers there can be."""
    return params.max_workers or params.workers


def of_recording(recording: Recording, number: int) -> Snapshot:
    """A frame of a recording."""
    frame = recording.frame(number)
    contacts = recording.contacts(number) if recording.has_contacts else None
    weights = partial(_recorded_weights, recording, number)
    alive, joint_alive = recording.alive(number), recording.joint_alive(number)
    shown = Snapshot(recording.scene, alive, joint_alive, frame.step_count, frame.time, frame.states, weights, contacts)
    shown.static_poses = recording.static_poses(number) if recording.kinematic_count else None
    shown.interface = recording.interface(number)
    return shown


def of_partition(scene: Scene, partition: Ids, worker_count: int, contacts: Contacts) -> Snapshot:
    """A scene as it starts, before any overlap."""
    table = np.where(partition[:, None] == np.arange(worker_count), 1.0, -1.0)
    return Snapshot(scene, scene.alive, scene.joint_alive, 0, 0.0, scene.states, lambda: table, contacts)


def weight_table(
    bits: NDArray[np.uint64], worker_count: int, overlap: Ids, offset: Ids, worker: Ids, weight: Array
) -> Array:
    """Weights of all bodies and workers; -1 where a worker does not simulate the body."""
    table = np.full((len(bits), worker_count), -1.0)
    for w in range(worker_count):
        if w // WORD >= bits.shape[1]:
            break  # these do not exist now
        has = (bits[:, w // WORD] >> np.uint64(w % WORD)) & np.uint64(1)
        table[has.astype(bool), w] = 1.0
    table[np.repeat(overlap, np.diff(offset)), worker] = weight
    return table


def counts(snapshot: Snapshot) -> str:
    """How many bodies and joints there are, as part of a page's status."""
    return f"{int(snapshot.alive.sum()):,} bodies, {int(snapshot.joint_alive.sum()):,} joints"


def exchange_line(snapshot: Snapshot) -> str:
    """Exchanges, residual and interface as a line of a page's status; empty unless coupling is tight."""
    if snapshot.exchanges is None:
        return ""
    return f"\n\n{exchange_text(snapshot.exchanges, snapshot.residual)}, {len(snapshot.interface):,} interface bodies"


def _contacts(simulation: Simulation, alive: Mask) -> Contacts | None:
    """Contacts of the last step between bodies that are there: some may have been removed since."""
    if not simulation.step_count:
        return None
    try:
        contacts = simulation.contacts.pairs()
    except WorkerError:  # a worker is gone, and its contacts with it: it is replaced in the next step
        return None
    first, second = contacts.bodies.T
    there = alive[first] & (alive[np.maximum(second, 0)] | (second < 0))
    if there.all():
        return contacts
    return replace(
        contacts,
        bodies=contacts.bodies[there],
        point_count=contacts.point_count[there],
        depth=contacts.depth[there],
    )


def _recorded_weights(recording: Recording, number: int) -> Array:
    return np.where(recording.membership(number), recording.weights(number), -1.0)
