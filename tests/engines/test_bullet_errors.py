"""Errors of the compiled Bullet carry the body's number as data; the engine answers with its name."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest

from lapjoint import LapjointError, Params, Scene, Sphere
from lapjoint.engines.bullet import BulletEngine
from lapjoint.errors import NotFiniteError


def make(precision: str, coupling: str = "blend") -> BulletEngine:
    scene = Scene("two")
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 0.0), (3.0, 0.0, 0.0)], names=["body 7 has a state", "bob"])
    return BulletEngine(scene, Params(precision=precision, coupling=coupling))


CALLS: dict[str, tuple[Callable[[BulletEngine], object], str]] = {
    "missing": (lambda engine: engine.deactivate([2]), "body 2 does not exist, the scene has 2 bodies"),
    "not active": (lambda engine: engine.get_states([1]), "body 1 ('bob') is not active"),
    "active": (lambda engine: engine.activate([0], engine.scene.states[:1]), "is already active"),
    "twice in": (lambda engine: engine.activate([1, 1], engine.scene.states), "body 1 ('bob') is activated twice"),
    "twice out": (lambda engine: engine.deactivate([0, 0]), "body 0 ('body 7 has a state') is deactivated twice"),
}


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("call", CALLS)
def test_errors_name_the_body(call: str, precision: str) -> None:
    act, message = CALLS[call]
    engine = make(precision)
    engine.activate([0], engine.scene.states[:1])
    with pytest.raises(LapjointError) as caught:
        act(engine)
    assert message in str(caught.value)
    assert not isinstance(caught.value, NotFiniteError)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("coupling", ["blend", "tight"])
def test_a_state_that_is_not_finite_is_an_error_of_its_own_with_its_bodies(precision: str, coupling: str) -> None:
    engine = make(precision, coupling)
    states = engine.scene.states.copy()
    states[1, 7] = 1e-7 * float(np.finfo(precision).max)  # a number, and its square is not
    engine.activate([0, 1], states)
    with pytest.raises(NotFiniteError, match=r"body 1 \('bob'\): not finite after the step") as caught:
        engine.step()
    assert caught.value.body_ids == (1,)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_compiled_error_has_the_number(precision: str) -> None:
    engine = make(precision)
    with pytest.raises(engine._native.BodyError, match=r"^is not active$") as caught:
        engine._world.deactivate(np.array([1], np.int32))
    assert caught.value.body_id == 1
    assert issubclass(engine._native.NotFiniteError, engine._native.BodyError)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_world_may_outlive_its_scene(precision: str) -> None:
    """A traceback may have the last reference to it; it reads the scene's tables until its end."""
    engine = make(precision)
    engine.activate([0, 1], engine.scene.states)
    world = engine._world
    del engine
    gc.collect()
    world.step(0.01, 1)
    del world


def test_a_precision_that_was_not_built_is_named_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make demo` builds float32 alone."""
    built = {"lapjoint._bullet_float32": object()}
    monkeypatch.setattr("lapjoint.engines.bullet_module.importlib.util.find_spec", built.get)
    params = Params(precision="float64")
    with pytest.raises(
        LapjointError, match="precision is float64, which lapjoint was built without here: `make setup`"
    ):
        BulletEngine.check(Scene(), params)
    BulletEngine.check(Scene(), Params())
