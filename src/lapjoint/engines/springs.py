"""Springs that the substep solver can follow."""

from __future__ import annotations

import numpy as np

from ..errors import LapjointError
from ..params import Params
from ..scene import WORLD, Scene
from .support import joint_title

FASTEST = 1.0
"""Angular frequency of a spring times the substep, at most: about six substeps in a swing. Native code has it too."""


def check_springs(scene: Scene, params: Params) -> None:
    """Refuse the first spring that would swing, and faster than substeps show. Its frequency is that of its two bodies
    alone, about the axis in which they turn hardest."""
    joints, timestep = scene.joints, params.timestep or scene.timestep
    joint, axis = np.nonzero(joints.spring_stiffness > 0)
    if len(joint) == 0:
        return
    hardest = np.linalg.eigvalsh(scene.bodies.inertia)[:, -1]
    weights = np.stack([scene.bodies.mass, hardest], axis=1)
    responses = np.vstack([1 / weights, np.zeros(2)])  # the last row: the world's
    kind = (axis >= 3).astype(int)
    response = responses[joints.body_a[joint], kind] + responses[joints.body_b[joint], kind]
    assert WORLD == -1
    stiffness, damping = joints.spring_stiffness[joint, axis], joints.spring_damping[joint, axis]
    omega = np.sqrt(stiffness * response)
    swings = damping * response < 2 * omega
    wrong = np.flatnonzero(swings & (omega * timestep > FASTEST * params.substeps.count))
    if len(wrong) == 0:
        return
    i = int(wrong[0])
    most = (FASTEST * params.substeps.count / timestep) ** 2 / response[i]
    least, damped = np.ceil(omega[i] * timestep / FASTEST), 2 * omega[i] / response[i]
    unit = "N/m" if axis[i] < 3 else "N m/rad"
    raise LapjointError(
        f"{joint_title(scene, int(joint[i]))} with a spring of {stiffness[i]:g} {unit} on axis {axis[i]}, which swings "
        f"faster than {params.substeps.count} substeps of {timestep:g} s can show, expected at most {most:.3g} {unit}, "
        f"or at least {least:.0f} substeps, or damping above {damped:.3g}"
    )
