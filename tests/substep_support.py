"""What the tests of the substep solver share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lapjoint import Engine, Params, Scene, make_engine
from lapjoint.measures import kinetic_energy, potential_energy

G = 9.81
WEIGHTLESS = (0.0, 0.0, 0.0)
PRECISIONS = ("float32", "float64")
JOINTS = ("direct", "swept")


def started(scene: Scene, precision: str = "float64", solver: str = "substeps", **params: object) -> Engine:
    """An engine with every body active."""
    engine = make_engine(scene, Params.from_options(solver=solver, precision=precision, **params))
    engine.activate(np.arange(scene.body_count), scene.states)
    return engine


def energy(scene: Scene, states: NDArray[np.float64]) -> float:
    """Kinetic and potential energy [J]."""
    return float(kinetic_energy(scene, states)) + float(potential_energy(scene, states))


def top_speed(engine: Engine) -> float:
    """The largest linear velocity [m/s]."""
    return float(np.linalg.norm(engine.get_states()[:, 7:10], axis=1).max())
