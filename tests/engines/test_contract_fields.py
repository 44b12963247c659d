"""What every engine with fields promises: they push its bodies, in every step, by the readable formulas."""

from __future__ import annotations

import numpy as np
import pytest

from engine_support import Make
from field_functions import push_at_times
from lapjoint import Attractor, Buoyancy, Drag, Field, Gravity, LapjointError, Scene, Sphere, Wind
from lapjoint.engines import Changes
from lapjoint.engines.support import FEATURES, Support, check_support
from lapjoint.params import Params


def scene_of(*fields: object) -> Scene:
    scene = Scene("field", gravity=(0, 0, -2.0), timestep=0.01)
    scene.add_bodies(Sphere(0.1), [(k, 0, 0) for k in range(3)], mass=2.0)
    for field in fields:
        scene.add_field(field)  # type: ignore[arg-type]
    return scene


def test_an_engine_says_so_or_has_them(make: Make) -> None:
    make(scene_of(Gravity((0, 0, 0)))).change(Changes(fields=[]))


def test_forces_act_in_every_step(make: Make) -> None:
    engine = make(scene_of(Gravity((0, 1.0, 2.0)), Wind((1.0, 0, 0), 2.0)))
    engine.activate([0, 2], engine.scene.states[[0, 2]])  # type: ignore[attr-defined]
    engine.step(50)
    rate = 2.0 / 2.0
    expected = [-np.expm1(-rate * 0.5), 1.0 / rate * -np.expm1(-rate * 0.5), 0.0]
    np.testing.assert_allclose(engine.get_states()[:, 7:10], [expected, expected], atol=2e-4)


def test_functions_are_given_the_time(make: Make) -> None:
    engine = make(scene_of(Field(push_at_times)))
    engine.activate([1], engine.scene.states[[1]])  # type: ignore[attr-defined]
    engine.change(Changes(step_count=7))
    engine.step(3)
    wanted = sum(np.sin(50 * 0.01 * step) for step in (7, 8, 9)) * 0.01 / 2.0
    assert engine.get_states()[0, 7] == pytest.approx(wanted, rel=1e-4)


def test_fields_are_replaced(make: Make) -> None:
    scene = scene_of(Attractor((0, 0, 5.0), 10.0), Buoyancy(100.0), Drag(3.0))
    engine = make(scene)
    engine.activate([0], scene.states[[0]])
    engine.change(Changes(fields=[]))
    engine.step(10)
    np.testing.assert_allclose(engine.get_states()[0, 7:10], [0, 0, -0.2], rtol=1e-4)


def test_an_engine_without_fields_refuses_them() -> None:
    without = Support("none", ("float32",), features=tuple(one for one in FEATURES if one != "fields"))
    with pytest.raises(LapjointError, match="scene 'field' has field 0, which the engine other does not have"):
        check_support("other", without, scene_of(Drag(1.0)), Params())
