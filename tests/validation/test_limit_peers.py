"""Arms with limits, motors and friction move as in other engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from arm_support import Array, Y, arm_of, moved, pitch
from lapjoint import Hinge, Motor
from lapjoint.scene.joints import Joint
from substep_support import G

MUJOCO_STEP = 5e-5
SOFTNESS, NEARLY_HARD = "2e-4 20", ".999 .9999 1e-5"
"""Of its constraints: a time [s] and a damping ratio. Damped critically, a limit would throw back."""


def in_mujoco(limits: str, friction: str, velocity: float, torques: Any, masses: Any, times: Array) -> Array:
    """Angles of a double pendulum of beams at these times, finely stepped, with limits that are nearly hard."""
    mujoco = pytest.importorskip("mujoco")
    beams = [
        f"<joint name='j{k}' axis='0 1 0' {limits} {friction} solreflimit='{SOFTNESS}' solimplimit='{NEARLY_HARD}' "
        f"solreffriction='{SOFTNESS}' solimpfriction='{NEARLY_HARD}'/>"
        f"<geom type='box' size='.4 .05 .05' pos='.5 0 0' mass='{mass}' contype='0' conaffinity='0'/>"
        for k, mass in enumerate(masses)
    ]
    motors = "".join(
        f"<velocity joint='j{k}' kv='1e5' ctrllimited='false' forcelimited='true' forcerange='{-torque} {torque}'/>"
        for k, torque in enumerate(torques)
    )
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><compiler angle='radian'/><option timestep='{MUJOCO_STEP}' gravity='0 0 {-G}' "
        f"integrator='implicitfast' tolerance='1e-12' iterations='200'/><worldbody><body>{beams[0]}"
        f"<body pos='1 0 0'>{beams[1]}</body></body></worldbody><actuator>{motors}</actuator></mujoco>"
    )
    data, angles = mujoco.MjData(model), []
    data.ctrl[:] = velocity
    for time in times:
        while data.time < time - MUJOCO_STEP / 2:
            mujoco.mj_step(model, data)
        angles.append(data.qpos.copy())
    return np.array(angles)


PENDULUMS: dict[str, tuple[Callable[[float], Joint], dict[str, Any]]] = {
    "limits": (
        lambda load: Hinge(Y, (-0.3, 0.3)),
        {"limits": "limited='true' range='-.3 .3'", "friction": "", "velocity": 0.0, "torques": []},
    ),
    "friction": (
        lambda load: Hinge(Y, friction=15.0),
        {"limits": "", "friction": "frictionloss='15'", "velocity": 0.0, "torques": []},
    ),
    "motors and limits": (
        lambda load: Hinge(Y, (-0.6, 0.6), motor=Motor(-1.0, 20.0)),
        {"limits": "limited='true' range='-.6 .6'", "friction": "", "velocity": -1.0, "torques": [20.0, 20.0]},
    ),
}


HEAVY_END, LIGHT_END = (1.0, 10.0), (10.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "masses"),
    [
        ("limits", HEAVY_END),
        ("limits", LIGHT_END),
        ("friction", HEAVY_END),
        ("friction", LIGHT_END),
        (
            "motors and limits",
            HEAVY_END,
        ),  # a light end: its motor pushes on for as long as a limit of MuJoCo's stops it
    ],
)
def test_a_double_pendulum_moves_as_in_mujoco(kind: str, masses: tuple[float, float]) -> None:
    """Both stop without a bounce."""
    joint, options = PENDULUMS[kind]
    states = moved(arm_of(1 / 1000, joint(0.0), masses), 1.0)
    turns = np.diff(pitch(states), axis=1, prepend=0.0)[::20]
    expected = in_mujoco(**options, masses=masses, times=np.arange(len(turns)) * 0.02)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(turns, expected, atol=2e-3)
