"""Force fields: what pushes bodies by where they are and how they move, in every step, where they are simulated.

A field acts on all bodies, those that are added later too, or on those that it is given. Forces of all fields add up,
and add to the scene's gravity. docs/fields.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.checks import as_rows, unit_vectors
from ..errors import LapjointError
from .field_functions import FieldFunction, name_of, reference_of

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
Vector = tuple[float, float, float]

ZERO: Vector = (0.0, 0.0, 0.0)
UP: Vector = (0.0, 0.0, 1.0)


# ---- where -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BoxRegion:
    """A box along the world's axes. A body is inside if its position is."""

    low: Vector
    high: Vector


@dataclass(frozen=True)
class SphereRegion:
    """A ball. A body is inside if its position is."""

    centre: Vector
    radius: float


Region = BoxRegion | SphereRegion


# ---- what ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gravity:
    """An acceleration [m/s^2] besides the scene's gravity."""

    acceleration: Vector
    region: Region | None = None


@dataclass(frozen=True)
class Drag:
    """A force against the velocity v: `linear v + quadratic |v| v` [N], and a torque against the angular velocity w:
    angular w [N m]. Whatever the coefficients, it stops a body and never turns it back."""

    linear: float = 0.0
    """N s/m"""
    quadratic: float = 0.0
    """N s^2/m^2"""
    angular: float = 0.0
    """N m s"""
    region: Region | None = None


@dataclass(frozen=True)
class Wind:
    """Drag against air that moves: it carries bodies up to its velocity [m/s]."""

    velocity: Vector
    drag: float
    """N s/m"""
    quadratic: float = 0.0
    """N s^2/m^2"""
    region: Region | None = None


@dataclass(frozen=True)
class Buoyancy:
    """Water below a plane. It lifts what of a body is below: by its weight, at the middle of that part, so that bodies
    right themselves. Spheres, boxes and hulls are cut exactly, round shapes as prisms of many sides."""

    density: float = 1000.0
    """kg/m^3"""
    level: float = 0.0
    """Where its surface is along `normal` [m]."""
    normal: Vector = UP
    gravity: Vector | None = None
    """What makes it heavy [m/s^2]; None: the scene's gravity."""
    linear_drag: float = 0.0
    """N s/m, of a body that is wholly below; of others that share of it."""
    angular_drag: float = 0.0
    """N m s, in the same way."""
    velocity: Vector = ZERO
    """Of the water [m/s], for the drag."""
    region: Region | None = None


@dataclass(frozen=True)
class Attractor:
    """An acceleration towards a place: strength / distance^exponent [m/s^2], away from it where the strength is
    negative. With exponent 2 the strength is G M of a mass there [m^3/s^2]."""

    position: Vector
    strength: float
    exponent: float = 2.0
    core: float = 0.0
    """Distance below which it falls off to nothing, in a straight line [m]."""
    region: Region | None = None


@dataclass(frozen=True)
class Field:
    """A function of yours: called once a step in every worker, with positions and velocities of its bodies, (n, 3)
    each, and the time [s]; returns forces, (n, 3) [N], or forces and torques, (n, 6) [N, N m].

    It must be at the top level of a module that workers can import. Files have its name alone: who opens one gives the
    function again (Scene.give_functions)."""

    function: FieldFunction | None
    name: str = ""
    """By which files know it; the module's and the function's name, unless given."""

    def __post_init__(self) -> None:
        if self.function is None and not self.name:
            raise LapjointError("Field: it has neither a function nor a name, expected a function")
        if self.function is not None and not callable(self.function):
            raise LapjointError(f"Field: its function is {self.function!r}, expected a function")
        if not isinstance(self.name, str):
            raise LapjointError(f"Field: its name is {self.name!r}, expected a text")
        if not self.name:
            object.__setattr__(self, "name", name_of(self.function))


BuiltIn = Gravity | Drag | Wind | Buoyancy | Attractor
AnyField = BuiltIn | Field
BUILT_IN: tuple[type[Any], ...] = (Gravity, Drag, Wind, Buoyancy, Attractor)


# ---- as numbers, for files, messages and compiled code ---------------------------------------------------------------

FUNCTION = 0
KINDS: dict[type[Any], int] = {Gravity: 1, Drag: 2, Wind: 2, Buoyancy: 3, Attractor: 4}
"""Of what is computed; wind is a drag that moves."""
REGION_SIZE = 7
VALUE_COUNT = {FUNCTION: 0, 1: REGION_SIZE + 3, 2: REGION_SIZE + 6, 3: REGION_SIZE + 13, 4: REGION_SIZE + 6}
NO_REGION, IN_BOX, IN_SPHERE = 0, 1, 2


@dataclass(frozen=True, eq=False)
class GivenField:
    """A field as numbers, and the bodies that it acts on."""

    kind: int
    values: Array
    """Its region, and what it is computed from: see `_values`."""
    bodies: Ids | None
    """Ascending; None: all."""
    field: Field | None = None
    """Of a function."""

    @staticmethod
    def of(field: AnyField, title: str, gravity: Array, bodies: Ids | None) -> GivenField:
        """Checked: what is no field raises a LapjointError that begins with `title`."""
        if isinstance(field, Field):
            if field.function is not None:
                reference_of(field.function, title)
            return GivenField(FUNCTION, np.empty(0), bodies, field)
        if not isinstance(field, BUILT_IN):
            known = ", ".join(kind.__name__ for kind in (*BUILT_IN, Field))
            raise LapjointError(f"{title}: it is {field!r}, expected one of {known}")
        values = np.concatenate([_region(field.region, title), _values(field, title, gravity)])
        return GivenField(KINDS[type(field)], values, bodies)

    def acts_on(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of these bodies it acts on, wherever they are."""
        return np.ones(len(ids), bool) if self.bodies is None else np.isin(ids, self.bodies)


def _number(name: str, value: Any, title: str, least: float = -np.inf) -> float:
    number = float(as_rows(name, value, 1, (), title)[0])
    if number < least:
        raise LapjointError(f"{title}: {name} is {number:g}, expected {least:g} or more")
    return number


def _vector(name: str, value: Any, title: str) -> Array:
    return np.asarray(as_rows(name, value, 1, (3,), title)[0])


def _region(region: Region | None, title: str) -> Array:
    if region is None:
        return np.zeros(REGION_SIZE)
    if isinstance(region, BoxRegion):
        low, high = _vector("region's low", region.low, title), _vector("region's high", region.high, title)
        if not (low <= high).all():
            raise LapjointError(f"{title}: its region is from {region.low} to {region.high}, expected low before high")
        return np.concatenate([[IN_BOX], low, high])
    if isinstance(region, SphereRegion):
        radius = _number("region's radius", region.radius, title, 0.0)
        return np.concatenate([[IN_SPHERE], _vector("region's centre", region.centre, title), [radius, 0.0, 0.0]])
    raise LapjointError(f"{title}: its region is {region!r}, expected a BoxRegion or a SphereRegion")


def _values(field: BuiltIn, title: str, gravity: Array) -> Array:
    if isinstance(field, Gravity):
        return _vector("acceleration", field.acceleration, title)
    if isinstance(field, Drag):
        names = ("linear", "quadratic", "angular")
        return np.array([*ZERO, *(_number(name, getattr(field, name), title, 0.0) for name in names)])
    if isinstance(field, Wind):
        drag, quadratic = (_number(name, getattr(field, name), title, 0.0) for name in ("drag", "quadratic"))
        return np.array([*_vector("velocity", field.velocity, title), drag, quadratic, 0.0])
    if isinstance(field, Attractor):
        strength, exponent = (_number(name, getattr(field, name), title) for name in ("strength", "exponent"))
        core = _number("core", field.core, title, 0.0)
        return np.array([*_vector("position", field.position, title), strength, exponent, core])
    pull = gravity if field.gravity is None else _vector("gravity", field.gravity, title)
    normal = unit_vectors("normal", field.normal, 1, lambda _: title)[0]
    numbers = {name: _number(name, getattr(field, name), title, 0.0) for name in ("linear_drag", "angular_drag")}
    density, level = _number("density", field.density, title, 0.0), _number("level", field.level, title)
    flow = _vector("velocity", field.velocity, title)
    return np.array([*normal, level, *(-density * pull), *flow, numbers["linear_drag"], 0.0, numbers["angular_drag"]])


# ---- many of them ----------------------------------------------------------------------------------------------------

FIELD_ARRAYS = ("kinds", "value_counts", "values", "body_counts", "bodies")
"""`body_counts` is -1 where a field acts on all bodies."""


def pack_fields(given: Sequence[GivenField]) -> dict[str, NDArray[Any]]:
    """Fields as arrays; functions have their names elsewhere."""
    nobody = np.empty(0, np.int32)
    return {
        "kinds": np.array([one.kind for one in given], np.int32),
        "value_counts": np.array([len(one.values) for one in given], np.int32),
        "values": np.concatenate([np.empty(0), *(one.values for one in given)]),
        "body_counts": np.array([-1 if one.bodies is None else len(one.bodies) for one in given], np.int32),
        "bodies": np.concatenate([nobody, *(nobody if one.bodies is None else one.bodies for one in given)]),
    }


def unpack_fields(
    arrays: Mapping[str, NDArray[Any]], names: Sequence[str], function_of: Callable[[int], FieldFunction | None]
) -> list[GivenField]:
    """The fields that were packed; `names` are those of functions, in their order, and `function_of` returns the
    function of the i-th name. A ValueError where they can be none."""
    if any(arrays[name].ndim != 1 for name in FIELD_ARRAYS):
        raise ValueError("fields are in tables, expected single numbers")
    count = len(arrays["kinds"])
    sizes = arrays["value_counts"], np.maximum(arrays["body_counts"], 0)
    if any(len(arrays[name]) != count for name in ("value_counts", "body_counts")):
        raise ValueError("fields have different numbers of rows")
    if any(int(size.sum()) != len(arrays[name]) for size, name in zip(sizes, ("values", "bodies"), strict=True)):
        raise ValueError("fields have other values or bodies than they say")
    if int((arrays["kinds"] == FUNCTION).sum()) != len(names) or not all(isinstance(one, str) and one for one in names):
        raise ValueError("functions of fields have other names than there are functions")
    values, bodies = (
        np.split(arrays[name], np.cumsum(size)[:-1]) if count else []
        for size, name in zip(sizes, ("values", "bodies"), strict=True)
    )
    found: list[GivenField] = []
    function_count = 0
    for i in range(count):
        kind, own = int(arrays["kinds"][i]), np.array(values[i], float)
        if VALUE_COUNT.get(kind) != len(own) or not np.isfinite(own).all():
            raise ValueError(f"a field of kind {kind} has {len(own)} values")
        field = None
        if kind == FUNCTION:
            field = Field(function_of(function_count), names[function_count])
            function_count += 1
        acts_on = None if arrays["body_counts"][i] < 0 else np.array(bodies[i], np.int32)
        found.append(GivenField(kind, own, acts_on, field))
    return found


def with_functions(given: Sequence[GivenField], functions: Mapping[str, FieldFunction], what: str) -> list[GivenField]:
    """The same fields, with these functions by name."""
    names = {one.field.name for one in given if one.field is not None}
    for name in functions.keys() - names:
        known = ", ".join(sorted(names)) or "none"
        raise LapjointError(f"{what}: no field has a function named {name!r}; those that are there: {known}")
    found = []
    for one in given:
        if one.field is not None and one.field.name in functions:
            reference_of(functions[one.field.name], what)
            one = replace(one, field=Field(functions[one.field.name], one.field.name))
        found.append(one)
    return found


def check_functions(scene: Any) -> None:
    """Refuse a scene with fields whose functions are not there: it is from a file."""
    for number, one in enumerate(scene.fields):
        if one.field is not None and one.field.function is None:
            raise LapjointError(
                f"scene {scene.name!r}: {field_title(number, one)} is a function, which a file has by name alone: "
                f"give_functions({{{one.field.name!r}: ...}}) gives it again"
            )


def field_title(number: int, given: GivenField) -> str:
    """How messages call a field."""
    return f"field {number} ({given.field.name})" if given.field is not None else f"field {number}"
