"""What the tests of limits, motors and friction share: arms of links, and how they move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lapjoint import WORLD, Box, Params, Scene
from lapjoint.scene.joints import Joint
from substep_support import JOINTS, PRECISIONS, G, started

Array = NDArray[np.float64]
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
GHOST: dict[str, Any] = {"group": 2, "mask": 0}
"""Of bodies that touch nothing."""
TIMESTEPS = (1 / 60, 1 / 240, 1 / 1000)
every_precision = pytest.mark.parametrize("precision", PRECISIONS)
every_choice = pytest.mark.parametrize("joints", JOINTS)
every_timestep = pytest.mark.parametrize("timestep", TIMESTEPS, ids=lambda timestep: f"{round(1 / timestep)} Hz")


def params_of(workers: int, bodies: int, joints: str = "auto", precision: str = "float64", **more: Any) -> Params:
    """Of a run in this process; several workers have equal parts of the arm, from its base to its end."""
    given: dict[str, Any] = {"runtime": "inline", "precision": precision, "workers": workers, "joints": joints}
    if workers > 1:
        owners = (np.arange(bodies) * workers // bodies).astype(np.int32)
        given |= {"coupling": "tight", "partition": owners, "repartition": 0}
    return Params.from_options(**(given | more))


def moved(scene: Scene, seconds: float, joints: str = "direct", precision: str = "float64", **more: Any) -> Array:
    """States at the start and after every step, of one worker."""
    engine = started(scene, precision, joints=joints, **more)
    states = [scene.states.copy()]
    for _ in range(round(seconds / scene.timestep)):
        engine.step()
        states.append(engine.get_states().copy())
    return np.array(states)


def pitch(states: Array) -> Array:
    """How far bodies are turned about y, where they turn about y alone."""
    return np.asarray(np.unwrap(2 * np.arctan2(states[..., 5], states[..., 3]), axis=0))


def link(timestep: float, joint: Joint, mass: float = 2.0) -> Scene:
    """A beam of a metre and 2 kg that lies level on one joint to the world: its weight pulls with 9.81 N m."""
    scene = Scene(timestep=timestep)
    scene.add_body(Box((1.0, 0.1, 0.1)), (0.5, 0.0, 0.0), mass=mass, **GHOST)
    scene.add_joint(joint, 0, WORLD, (0.0, 0.0, 0.0))
    return scene


def arm_of(timestep: float, joint: Joint, masses: Any, gravity: Any = (0.0, 0.0, -G)) -> Scene:
    """Links of a metre in a row, the first one jointed to the world."""
    scene = Scene(timestep=timestep, gravity=gravity)
    scene.add_bodies(Box((0.8, 0.1, 0.1)), [(0.5 + k, 0, 0) for k in range(len(masses))], mass=masses, **GHOST)
    count = len(masses)
    scene.add_joints(joint, range(count), [WORLD, *range(count - 1)], [(k, 0, 0) for k in range(count)])
    return scene
