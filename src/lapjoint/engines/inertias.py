"""Inertias that an engine's numbers can hold."""

from __future__ import annotations

import numpy as np

from ..errors import LapjointError
from ..params import Params
from ..params.engine_choice import EngineChoice
from ..scene import Scene
from ..scene.shapes import STATIC_ONLY, MovingShape, bounding_radius, mass_properties

LEAST = {"float32": 1e-9, "float64": 1e-18}
"""Share of a solid body's moment of inertia that one has about any axis, at least. What friction does to a ball with
less turns it by more than all other numbers of its contacts can express: it spins ever faster."""


def check_inertias(scene: Scene, params: Params, first: int = 0) -> None:
    """Refuse the first body, from number `first` on, with an inertia that is too small for its shape and mass."""
    inertia, mass = scene.bodies.inertia[first:], scene.bodies.mass[first:]
    if len(mass) == 0:
        return
    precision = min(own or params.precision for _, own in EngineChoice.parse(params.engine).choice.values)
    used, place = np.unique(scene.bodies.shape_id[first:], return_inverse=True)
    shapes = [_moving(scene, shape_id) for shape_id in used.tolist()]
    radius = np.array([bounding_radius(shape) for shape in shapes])[place]
    size = np.trace(inertia, axis1=1, axis2=2)
    with np.errstate(invalid="ignore"):  # of bodies that were removed, and are zeros
        lower_bound = 4 * size * np.linalg.det(inertia / size[:, None, None])
    for row in np.flatnonzero(lower_bound < LEAST[precision] * mass * radius**2).tolist():
        volume, unit_inertia = mass_properties(shapes[place[row]])
        root = np.linalg.inv(np.linalg.cholesky(unit_inertia * (mass[row] / volume)))
        share = float(np.linalg.eigvalsh(root @ inertia[row] @ root.T)[0])
        if share < LEAST[precision]:
            raise LapjointError(
                f"{scene.body_title(first + row)}: its inertia about some axis is {share:.2g} times that of a solid "
                f"body of its shape and mass, expected at least {LEAST[precision]:g} with {precision}"
            )


def _moving(scene: Scene, shape_id: int) -> MovingShape:
    shape = scene.shapes[shape_id]
    assert not isinstance(shape, STATIC_ONLY)
    return shape
