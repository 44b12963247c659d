"""Fields of scenes: what is refused, and what files keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from field_functions import push_at_times, spring
from lapjoint import (
    Attractor,
    BoxRegion,
    Buoyancy,
    Drag,
    Field,
    Gravity,
    LapjointError,
    Params,
    Scene,
    Simulation,
    Sphere,
    SphereRegion,
    Wind,
)
from lapjoint.scene.fields import FUNCTION
from lapjoint.scene.serialize import describe_scene, scene_from_bytes


def scene_with(*fields: Any) -> Scene:
    scene = Scene("fields")
    scene.add_bodies(Sphere(0.1), [(0, 0, 1.0 + k) for k in range(3)])
    for field in fields:
        scene.add_field(field, bodies=[2, 0, 2] if isinstance(field, Drag) else None)
    return scene


ALL = (
    Gravity((1, 2, 3), BoxRegion((0, 0, 0), (1, 1, 1))),
    Drag(1.0, 2.0, 3.0, SphereRegion((1, 2, 3), 4.0)),
    Wind((1, 0, 0), 2.0),
    Buoyancy(),
    Attractor((0, 0, 0), 5.0),
)


def test_a_file_keeps_fields(tmp_path: Path) -> None:
    scene = scene_with(*ALL)
    again = Scene.load(scene.save(tmp_path / "scene.npz"))
    assert again == scene
    assert [one.kind for one in again.fields] == [1, 2, 2, 3, 4]
    for one, other in zip(again.fields, scene.fields, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
    assert again.fields[1].bodies is not None
    assert again.fields[1].bodies.tolist() == [0, 2]


def test_a_scene_without_fields_is_the_file_that_it_was() -> None:
    assert not any("field" in name for part in describe_scene(scene_with()) for name in part)


def test_a_file_has_the_names_of_functions_alone(tmp_path: Path) -> None:
    path = scene_with(Field(spring), Field(push_at_times, "mine")).save(tmp_path / "scene.npz")
    scene = Scene.load(path)
    assert [one.field.name for one in scene.fields if one.field] == ["field_functions:spring", "mine"]
    with pytest.raises(LapjointError, match=r"field 0 \(field_functions:spring\) is a function, which a file has by"):
        Simulation(scene, Params(runtime="inline"))
    with pytest.raises(LapjointError, match=r"no field has a function named 'other'; those that are there: field_f"):
        scene.give_functions({"other": spring})
    scene.give_functions({"field_functions:spring": spring, "mine": push_at_times})
    with Simulation(scene, Params(runtime="inline")) as simulation:
        simulation.step(2)


def not_at_the_top() -> Any:
    def inner(positions: Any, velocities: Any, time: float) -> Any:
        return -positions

    return inner


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (Gravity((1, 2)), "field 0: acceleration"),
        (Drag(-1.0), "field 0: linear is -1, expected 0 or more"),
        (Wind((0, 0, np.nan), 1.0), "field 0: velocity"),
        (Buoyancy(normal=(0, 0, 0)), "field 0: normal"),
        (Attractor((0, 0, 0), 1.0, core=-1.0), "field 0: core is -1"),
        (Gravity((0, 0, 1), BoxRegion((1, 0, 0), (0, 1, 1))), "field 0: its region is from"),
        (Gravity((0, 0, 1), Sphere(1.0)), "field 0: its region is Sphere"),
        (Sphere(1.0), "field 0: it is Sphere"),
        (Field(not_at_the_top()), "cannot be imported by workers, expected a function at the top level"),
        (Field(lambda x, v, t: x), "cannot be imported by workers"),
    ],
)
def test_wrong_fields_are_refused(field: Any, message: str) -> None:
    with pytest.raises(LapjointError, match=message.replace("(", r"\(")):
        scene_with(field)


def test_wrong_bodies_are_refused() -> None:
    with pytest.raises(LapjointError, match="field 0: body 7 does not exist"):
        scene_with().add_field(Gravity((0, 0, 1)), bodies=[7])
    with pytest.raises(LapjointError, match="Field: its function is 3"):
        Field(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("damage", ["kinds", "values", "bodies"])
def test_a_damaged_file_is_refused(damage: str) -> None:
    description, arrays = describe_scene(scene_with(*ALL))
    arrays[f"fields/{damage}"] = {
        "kinds": np.full(5, FUNCTION, np.int32),
        "values": np.full(len(arrays["fields/values"]), np.nan),
        "bodies": np.array([0, 900], np.int32),
    }[damage]
    from lapjoint.scene.file import pack_scene

    with pytest.raises(LapjointError, match="damaged scene file"):
        scene_from_bytes(Scene, pack_scene(description, arrays), "file")
