"""A timestep that is absurd for a scene is said before anything starts, and no other."""

from __future__ import annotations

import warnings

import pytest

from lapjoint import AccuracyWarning, Box, Params, Plane, Scene, Simulation, Sphere, scenes


def tower(timestep: float, size: float = 1.0, gravity: float = 9.81) -> Scene:
    scene = Scene("tower", timestep=timestep, gravity=(0, 0, -gravity))
    scene.add_static(Plane())
    scene.add_bodies(Box((size, size, size)), [(0, 0, size * (k + 0.5)) for k in range(10)], mass=1.0)
    return scene


def said(scene: Scene, **params: object) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", AccuracyWarning)
        Simulation(scene, Params.from_options(runtime="inline", **params)).close()
    return [str(one.message) for one in found if one.category is AccuracyWarning]


def test_a_second_is_too_long_for_a_tower() -> None:
    (text,) = said(tower(1.0))
    assert "a timestep of 1 s is long for body 0, which is 1.73 m across and falls 9.81 m in the first step" in text
    assert text.endswith("0.09 s and less holds them")
    assert said(tower(1 / 60), timestep=1.0)
    assert not said(tower(1.0), timestep=1 / 60)


@pytest.mark.parametrize(("timestep", "size"), [(1 / 20, 1.0), (1 / 60, 0.1), (1 / 240, 0.02)])
def test_others_are_not(timestep: float, size: float) -> None:
    assert not said(tower(timestep, size))
    assert not said(tower(1.0, gravity=0.0))


def test_no_scene_of_the_library_is_warned_of() -> None:
    for name in ("chain", "plank", "pane", "drum"):
        assert not said(scenes.build(name))


def test_a_body_that_is_added_is_looked_at() -> None:
    with Simulation(tower(1 / 30), Params(runtime="inline")) as simulation:
        with pytest.warns(AccuracyWarning, match="body 10"):
            simulation.bodies.add_one(Sphere(0.01), (0, 0, 20), mass=1.0)
        simulation.step()
