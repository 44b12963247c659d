"""What the tests of tight coupling share."""

from __future__ import annotations

from typing import Any

import numpy as np

from lapjoint import Box, Params, Plane, Scene, Simulation, scenes
from lapjoint.engines import join_states
from lapjoint.measures import kinetic_energy
from lapjoint.server.coupling.tight import Tight, own_part
from lapjoint.workers import engine_states
from lapjoint.workers.runtimes.process import ProcessRuntime

SIZES = {"bowl": 120, "building": 110, "two-way-bridge": 106, "chain-net": 60}


def tight(scene: Scene | str, **params: Any) -> Simulation:
    if isinstance(scene, str):
        scene = scenes.build(scene, SIZES[scene])
    settings: dict[str, Any] = {"coupling": "tight", "workers": 3, "runtime": "inline", "validate": True}
    settings |= {"timestep": 0.005, "solver": "substeps"}
    return Simulation(scene, Params.from_options(**{**settings, **params}))


def wall(columns: int = 6, rows: int = 5) -> Scene:
    """Boxes on boxes, each on two, at rest. Every row has one box less."""
    scene = Scene("wall", timestep=0.002)
    scene.add_static(Plane())
    places = [(c + 0.5 * r, 0.0, r + 0.5) for r in range(rows) for c in range(columns - r)]
    scene.add_bodies(Box((0.99, 1.0, 1.0)), places)
    return scene


def energy(simulation: Simulation) -> float:
    return kinetic_energy(simulation.scene, simulation.states)


def jump(states: np.ndarray, wanted: np.ndarray) -> float:
    """Largest distance between positions [m]."""
    return float(np.linalg.norm(states[:, :3] - wanted[:, :3], axis=1).max())


def pids(simulation: Simulation) -> list[int]:
    assert isinstance(simulation._core.runtime, ProcessRuntime)
    return simulation._core.runtime.process_ids


def tight_coupling(simulation: Simulation) -> Tight:
    assert isinstance(simulation._core.coupling, Tight)
    return simulation._core.coupling


def owner_of(simulation: Simulation) -> np.ndarray:
    return tight_coupling(simulation).owner


def interface(simulation: Simulation) -> np.ndarray:
    """Bodies that several workers have."""
    return tight_coupling(simulation).interface


def inner_body(simulation: Simulation, worker: int = 1) -> int:
    """A body of a worker that is not at an interface."""
    mine = simulation.workers.membership.active(worker)
    return int(np.setdiff1d(mine, interface(simulation))[0])


def caches(simulation: Simulation) -> list[np.ndarray]:
    """Contact points and joint impulses in the owners' caches, in the order of bodies and joints."""
    owner, count = owner_of(simulation), simulation.workers.membership.worker_count
    read = engine_states.read_states(simulation._core.runtime.step, count, simulation.scene.body_count)
    states = [own_part(engine_states.from_bytes(data), owner, worker) for worker, data in enumerate(read)]
    cache = join_states(states)
    points = np.lexsort((cache.point_numbers[:, 0], cache.point_bodies[:, 1], cache.point_bodies[:, 0]))
    joints = np.argsort(cache.joint_ids, kind="stable")
    impulses = cache.joint_ids[joints], cache.joint_impulses[joints]
    return [cache.point_bodies[points], cache.points[points], *impulses]
