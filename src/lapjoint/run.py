"""A whole run: steps with progress, and what came of it as one flat record."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from .simulation import Simulation


@dataclass(frozen=True)
class RunSummary:
    """What a run did. These are the keys of `--json`; once here, they stay."""

    scene: str
    """Name of the scene."""
    engine: str
    precision: str
    workers: int
    steps: int
    """Steps taken; fewer than asked for if the run was interrupted."""
    timestep: float
    """s"""
    iterations: int
    body_count: int
    joint_count: int
    contact_count_mean: float
    """Touching pairs per step, pairs with static bodies included."""
    contact_point_count_mean: float
    step_ms_mean: float
    """Wall time per step, measuring excluded."""
    step_cpu_ms_mean: float
    """CPU time per step of this process, measuring excluded."""
    steps_per_second: float
    real_time_factor: float
    """Simulated seconds per second."""
    joint_gap_max: float
    """Largest joint gap after any step [m]."""
    penetration_max: float
    """Deepest penetration at the start of any step [m]."""
    residual_mean: float
    """Mean over the steps of the solver's residual [m/s]."""
    length_unit: float
    """m"""
    state_hash: str
    """Of the last states."""

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def run(simulation: Simulation, steps: int, on_step: Callable[[int], None] | None = None) -> RunSummary:
    """Take `steps` steps and measure each. An interrupt (Ctrl-C) ends the run early; what was done is summed up."""
    wall = cpu = 0.0
    contact_count = point_count = residual = 0.0
    gap = depth = 0.0
    done = 0
    try:
        for done in range(1, steps + 1):
            wall_start, cpu_start = time.perf_counter(), time.process_time()
            simulation.step()
            wall += time.perf_counter() - wall_start
            cpu += time.process_time() - cpu_start
            contacts = simulation.contacts()
            contact_count += len(contacts)
            point_count += float(contacts.point_count.sum())
            depth = max(depth, contacts.penetration)
            gap = max(gap, float(simulation.joint_gaps().max(initial=0.0)))
            residual += simulation.residual()
            if on_step is not None:
                on_step(done)
    except KeyboardInterrupt:
        done = simulation.step_count
    params, scene = simulation.params, simulation.scene
    assert params.timestep is not None
    assert params.iterations is not None
    assert params.length_unit is not None
    per_step = 1.0 / max(done, 1)
    mean_s = wall * per_step
    return RunSummary(
        scene=scene.name,
        engine=params.engine,
        precision=params.precision,
        workers=1,
        steps=done,
        timestep=params.timestep,
        iterations=params.iterations,
        body_count=scene.body_count,
        joint_count=scene.joint_count,
        contact_count_mean=contact_count * per_step,
        contact_point_count_mean=point_count * per_step,
        step_ms_mean=1e3 * mean_s,
        step_cpu_ms_mean=1e3 * cpu * per_step,
        steps_per_second=float(np.divide(1.0, mean_s)) if mean_s else 0.0,
        real_time_factor=float(np.divide(params.timestep, mean_s)) if mean_s else 0.0,
        joint_gap_max=gap,
        penetration_max=depth,
        residual_mean=residual * per_step,
        length_unit=params.length_unit,
        state_hash=simulation.state_hash,
    )
