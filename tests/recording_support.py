"""What the tests of recordings share: made-up simulations, and recordings of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapjoint import Ball, Blend, Box, Contacts, Params, Plane, RecordingWriter, Scene, Sequential, Simulation, Sphere
from lapjoint.algorithms import Membership
from lapjoint.scene.living import LivingScene
from lapjoint.server.incidents import Incident
from lapjoint.server.profile import StepProfile
from lapjoint.workers.messages import StepReply


def balls(count: int) -> Scene:
    scene = Scene("balls")
    if count:
        scene.add_bodies(Sphere(0.1), positions=[(0.3 * i, 0, 1) for i in range(count)])
    return scene


def write_example(path: Path) -> Path:
    """A recording of five boxes on two workers, two of them jointed: every other step, with contacts and measures."""
    scene = Scene("example")
    scene.add_static(Plane())
    boxes = [scene.add_body(Box((1.0, 1.0, 0.5)), (0, 0, 0.25 + 0.5 * level)) for level in range(5)]
    scene.add_joint(Ball(), boxes[3], boxes[4], (0, 0, 2.0))
    with Simulation(
        scene, Params(workers=2, runtime="inline", blend=Blend(growth_depth=0), sequential=Sequential(iterations=50))
    ) as simulation:
        options: dict[str, Any] = {"every": 2, "contacts": True, "measures": {"gap": 1, "ends": 2}}
        with RecordingWriter(path, simulation, **options) as recorder:
            for _ in range(9):
                simulation.step()
                recorder.add(simulation, {"gap": simulation.joints.gaps().max(), "ends": simulation.states[[0, -1], 2]})
    return path


@dataclass
class Made:
    """What a recording takes from a simulation, made up."""

    scene: LivingScene
    params: Params
    membership: Membership
    states: NDArray[np.float64]
    overlap: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    weight_offset: NDArray[np.int32] = field(default_factory=lambda: np.zeros(1, np.int32))
    weight_worker: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    weight: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    profile: StepProfile = field(default_factory=StepProfile)
    step_count: int = 0
    timestep: float = 0.002
    incidents: list[Incident] = field(default_factory=list)
    contacts_wanted: list[Any] = field(default_factory=list)
    resumed_from: dict[str, str | int] | None = None
    interface: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))

    @property
    def time(self) -> float:
        return self.step_count * self.timestep

    @property
    def workers(self) -> Made:
        """Its facet: nothing has a name twice."""
        return self


def made(scene: Scene, step_count: int = 0, seed: int = 0, workers: int = 1, most_contacts: int = 5) -> Any:
    """A step of a made-up simulation, different for every seed."""
    rng = np.random.default_rng(seed)
    count = scene.body_count
    membership = Membership(rng.integers(0, workers, count), workers)
    for body in range(count):
        if rng.random() < 0.4:
            membership.activate(rng.integers(0, workers, 2).tolist(), body)
    overlap = membership.overlap()
    own = [sorted(membership.workers(body)) for body in overlap.tolist()]
    weight = [rng.dirichlet(np.ones(len(w))) for w in own]
    contact_count = int(rng.integers(0, most_contacts + 1)) if count else 0
    contacts = Contacts(
        rng.integers(0, max(count, 1), (contact_count, 2)).astype(np.int32),
        rng.integers(1, 5, contact_count).astype(np.int32),
        rng.random(contact_count, np.float32).astype(float),
    )
    byte_count = int(rng.integers(0, 2**60))
    profile = StepProfile(
        phases_ms=dict(zip(StepProfile().phases_ms, rng.random(6).tolist(), strict=True)),
        replies=[StepReply(contacts)],
        residual=float(rng.random()),
        overlap_count=len(overlap),
        exchange_bytes=byte_count,
        worker_body_count=membership.load.copy(),
        worker_contact_count=rng.integers(0, 9, workers),
        worker_cpu_ms=rng.random(workers),
        worker_prepare_ms=rng.random(workers),
    )
    states = rng.normal(size=(count, 13))
    return Made(
        scene if isinstance(scene, LivingScene) else LivingScene(scene, lambda: states),
        Params(workers=workers),
        membership,
        states,
        overlap,
        np.cumsum([0, *map(len, own)]).astype(np.int32),
        np.concatenate([np.empty(0, np.int32), *own]).astype(np.int32),
        np.concatenate([np.empty(0), *weight]),
        profile,
        step_count,
    )


def table(membership: Membership) -> NDArray[np.bool_]:
    return np.stack([membership.column(w) for w in range(membership.worker_count)], axis=1)


def record(path: Path, scene: Scene, count: int, **options: Any) -> list[Any]:
    """Record so many made-up steps."""
    steps = [made(scene, i + 1, seed=i) for i in range(count)]
    with RecordingWriter(path, made(scene), **options) as recorder:
        for step in steps:
            recorder.add(step)
    return steps
