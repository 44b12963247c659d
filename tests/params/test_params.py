"""Numbers that stand alone - materials, motors, springs, parameters - are checked where they are made."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lapjoint import LapjointError, Material, Motor, Params, Scene, Sphere, Spring, make_engine
from lapjoint.params.params import typical_length

NAN = np.nan

NUMBER_MISTAKES: dict[str, Callable[[], object]] = {
    "Material: friction": lambda: Material(friction=-1.0),
    "Material: restitution": lambda: Material(restitution=1.1),
    "Material: rolling_friction": lambda: Material(rolling_friction=NAN),
    "Material: linear_damping": lambda: Material(linear_damping="much"),  # type: ignore[arg-type]
    "Motor: velocity": lambda: Motor(NAN, 1.0),
    "Motor: max_force": lambda: Motor(1.0, 0.0),
    "Spring: stiffness": lambda: Spring(0.0),
    "Spring: damping": lambda: Spring(1.0, -1.0),
    "Spring: rest": lambda: Spring(1.0, 0.0, "soft"),  # type: ignore[arg-type]
    "name is 5": lambda: Scene(5),  # type: ignore[arg-type]
    "gravity is (0, 0)": lambda: Scene(gravity=(0, 0)),
    "gravity is nan": lambda: Scene(gravity=NAN),
    "timestep is 0": lambda: Scene(timestep=0),
    "timestep is soon": lambda: Scene(timestep="soon"),  # type: ignore[arg-type]
    "iterations is 0": lambda: Scene(iterations=0),
    "iterations is 1.5": lambda: Scene(iterations=1.5),  # type: ignore[arg-type]
    "growth_depth is -1": lambda: Scene(growth_depth=-1),
    "search_depth is -1": lambda: Scene(search_depth=-1),
    "iterations is 2.5": lambda: Params(iterations=2.5),  # type: ignore[arg-type]
    "iterations is 0, expected 1": lambda: Params(iterations=0),
    "timestep is -1": lambda: Params(timestep=-1.0),
    "length_unit is long": lambda: Params(length_unit="long"),  # type: ignore[arg-type]
    "precision is 'float16'": lambda: Params(precision="float16"),
    "friction_directions is 3": lambda: Params(friction_directions=3),
    "warm_start is nan": lambda: Params(warm_start=NAN),
    "joint_erp is 2": lambda: Params(joint_erp=2.0),
    "residual_threshold is -1": lambda: Params(residual_threshold=-1.0),
    "no parameter named 'speed'; known parameters: ": lambda: Params.of(speed=1.0),
    "no engine named 'warp'; known engines: bullet": lambda: make_engine(Scene(), Params(engine="warp")),
}


@pytest.mark.parametrize("message", NUMBER_MISTAKES)
def test_a_wrong_number_is_refused_by_name(message: str) -> None:
    with pytest.raises(LapjointError) as caught:
        NUMBER_MISTAKES[message]()
    assert message in str(caught.value)


def test_the_length_unit_is_a_power_of_two_near_the_typical_body() -> None:
    scene = Scene()
    assert typical_length(scene) == 1.0
    scene.add_bodies([Sphere(0.1), Sphere(0.1), Sphere(50.0)], np.eye(3) * 200)
    assert typical_length(scene) == 0.25
    assert Params().resolved(scene).length_unit == 0.25
    assert Params(length_unit=3.0).resolved(scene).length_unit == 3.0
