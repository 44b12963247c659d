"""Shapes: what a body is made of. Lengths in metres; every shape is centred on its centre of mass.

Capsules, cylinders and cones stand along z. A shape is checked when it is made, never later.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import rotation
from ..arrays.checks import is_finite
from ..errors import LapjointError
from .filters import filter_rows
from .height_field import HeightField
from .lengths import number_rows, positive_length, positive_lengths
from .materials import Material, part_material
from .solids import Cone, Ellipsoid

Array = NDArray[np.float64]


Shape = TypeVar("Shape")


def _snap(centre: Array, places: Array) -> Array:
    """A centre that is the origin but for rounding is the origin: centring twice changes nothing."""
    return np.zeros(3) if np.abs(centre).max() <= 1e-9 * np.abs(places).max() else centre


def _unchecked(kind: type[Shape], **values: object) -> Shape:
    """A shape that was checked before, with its fields as they are."""
    shape = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(shape, name, value)
    return shape


@dataclass(frozen=True)
class Sphere:
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive_length("Sphere", "radius", self.radius))


@dataclass(frozen=True)
class Box:
    """A box with full edge lengths `size` along x, y and z."""

    size: tuple[float, float, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", positive_lengths("Box", "size", self.size, 3))


@dataclass(frozen=True)
class Capsule:
    """A cylinder of `length` along z with half a sphere on each end (so it is length + 2 radius long)."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive_length("Capsule", "radius", self.radius))
        object.__setattr__(self, "length", positive_length("Capsule", "length", self.length))


@dataclass(frozen=True)
class Cylinder:
    radius: float
    length: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive_length("Cylinder", "radius", self.radius))
        object.__setattr__(self, "length", positive_length("Cylinder", "length", self.length))


@dataclass(frozen=True, eq=False)
class ConvexHull:
    """The convex hull of points. The points are moved so that the centre of mass is the origin; `centre` is
    where it was, so a body at `position + rotate(quaternion, shape.centre)` has its points where they were given."""

    points: Array
    centre: Array = field(init=False)

    def __post_init__(self) -> None:
        points = number_rows("ConvexHull", "points", self.points, 3)
        centre = _snap(_hull_mass(points, "ConvexHull")[0], points)
        moved = points - centre
        moved.setflags(write=False)
        object.__setattr__(self, "points", moved)
        object.__setattr__(self, "centre", centre)

    @staticmethod
    def centred(points: Array) -> ConvexHull:
        """The hull that has these points. They are those of a hull, and nothing is checked or computed again."""
        return _unchecked(ConvexHull, points=points, centre=np.zeros(3))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConvexHull) and np.array_equal(self.points, other.points)

    def __hash__(self) -> int:
        return hash(("ConvexHull", self.points.tobytes()))


@dataclass(frozen=True)
class Part:
    """One shape of a compound, placed in the compound's frame. Material, group and mask are the body's where none is
    given."""

    shape: Sphere | Box | Capsule | Cylinder | ConvexHull | Ellipsoid | Cone
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    material: Material | None = None
    group: int | None = None
    mask: int | None = None
    relative_density: float = 1.0
    """In multiples of the body's density."""

    def __post_init__(self) -> None:
        if not isinstance(self.shape, (Sphere, Box, Capsule, Cylinder, ConvexHull, Ellipsoid, Cone)):
            raise LapjointError(f"Compound: a part is a {type(self.shape).__name__}, expected a convex shape")
        try:
            position, quaternion = np.asarray(self.position, float), np.asarray(self.quaternion, float)
        except (TypeError, ValueError):
            raise LapjointError(f"Compound: a part's place is {self.position}, {self.quaternion}") from None
        if position.shape != (3,) or not np.isfinite(position).all():
            raise LapjointError(f"Compound: a part's position is {self.position}, expected three finite numbers")
        if quaternion.shape != (4,) or not abs(np.linalg.norm(quaternion) - 1) < 1e-3:
            raise LapjointError(f"Compound: a part's quaternion is {self.quaternion}, expected a unit w x y z")
        object.__setattr__(self, "position", tuple(map(float, position)))
        unit = quaternion / np.linalg.norm(quaternion)
        object.__setattr__(self, "quaternion", tuple(map(float, unit)))
        part_material(self.material)
        for name in ("group", "mask"):
            if (bits := getattr(self, name)) is not None:
                object.__setattr__(self, name, int(filter_rows(name, bits, 1, "Compound: a part")[0]))
        if not (is_finite(self.relative_density) and self.relative_density > 0):
            raise LapjointError(
                f"Compound: a part's relative density is {self.relative_density}, expected a positive number"
            )
        object.__setattr__(self, "relative_density", float(self.relative_density))


@dataclass(frozen=True)
class Compound:
    """Several convex shapes that move as one. The parts are moved so that the common centre of mass (overlaps
    counted twice) is the origin; `centre` is where it was."""

    parts: tuple[Part, ...]
    centre: Array = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not self.parts:
            raise LapjointError("Compound: no parts, expected at least one")
        for part in self.parts:
            if not isinstance(part, Part):
                raise LapjointError(f"Compound: {part!r} is not a Part")
        volumes = np.array([part.relative_density * mass_properties(part.shape)[0] for part in self.parts])
        places = np.array([part.position for part in self.parts])
        centre = _snap(volumes @ places / volumes.sum(), places)
        moved = tuple(replace(part, position=tuple(np.subtract(part.position, centre))) for part in self.parts)
        object.__setattr__(self, "parts", moved)
        object.__setattr__(self, "centre", centre)

    @property
    def has_surfaces(self) -> bool:
        """Whether a part has a material of its own."""
        return any(part.material is not None for part in self.parts)

    @property
    def has_filters(self) -> bool:
        """Whether a part has a group or a mask of its own."""
        return any(part.group is not None or part.mask is not None for part in self.parts)

    @staticmethod
    def centred(parts: tuple[Part, ...]) -> Compound:
        """The compound that has these parts. They are those of a compound, and nothing is checked or computed again."""
        return _unchecked(Compound, parts=parts, centre=np.zeros(3))


@dataclass(frozen=True)
class Plane:
    """Static only: everything below the plane through the body's position, with z up, is solid."""


@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """Static only: a surface of triangles (vertex indices)."""

    vertices: Array
    triangles: NDArray[np.int32]

    def __post_init__(self) -> None:
        vertices = number_rows("TriangleMesh", "vertices", self.vertices, 3)
        triangles = number_rows("TriangleMesh", "triangles", self.triangles, 3, np.int32)
        if len(triangles) == 0:
            raise LapjointError("TriangleMesh: no triangles")
        if triangles.min() < 0 or triangles.max() >= len(vertices):
            worst = triangles.min() if triangles.min() < 0 else triangles.max()
            raise LapjointError(
                f"TriangleMesh: a triangle names vertex {worst}, but there are {len(vertices)} vertices"
            )
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "triangles", triangles)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TriangleMesh)
            and np.array_equal(self.vertices, other.vertices)
            and np.array_equal(self.triangles, other.triangles)
        )

    def __hash__(self) -> int:
        return hash(("TriangleMesh", self.vertices.tobytes(), self.triangles.tobytes()))


ConvexShape = Sphere | Box | Capsule | Cylinder | ConvexHull | Ellipsoid | Cone
MovingShape = ConvexShape | Compound
StaticShape = MovingShape | Plane | TriangleMesh | HeightField
STATIC_ONLY = (Plane, TriangleMesh, HeightField)


def check_shape(shape: object, title: str) -> None:
    """Refuse what is not a shape; `title` is whose shape it would be."""
    if not isinstance(shape, (Sphere, Box, Capsule, Cylinder, ConvexHull, Ellipsoid, Cone, Compound, *STATIC_ONLY)):
        raise LapjointError(f"{title}: {shape!r} is not a shape")


def hull_faces(points: ArrayLike) -> tuple[Array, NDArray[np.int32]]:
    """Corners and outward triangles of the convex hull of points."""
    from scipy.spatial import ConvexHull as Qhull

    hull = Qhull(np.asarray(points, float))
    corners, index = np.unique(hull.simplices, return_inverse=True)
    vertices = hull.points[corners]
    faces = index.reshape(hull.simplices.shape).astype(np.int32)
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    faces[inward] = faces[inward][:, ::-1]
    return vertices, faces


def _hull_mass(points: Array, owner: str) -> tuple[Array, float, Array]:
    """Centre of mass, volume and inertia per unit density (about the centre) of a convex hull."""
    from scipy.spatial import QhullError

    try:
        vertices, faces = hull_faces(points)
    except (QhullError, ValueError):
        raise LapjointError(
            f"{owner}: the {len(points)} points have no volume (flat, or fewer than four); "
            "expected a hull with a volume"
        ) from None
    # Sum over the tetrahedra between the triangles and a point inside.
    origin = vertices.mean(axis=0)
    a, b, c = (vertices[faces[:, k]] - origin for k in range(3))
    six_volumes = np.einsum("ij,ij->i", a, np.cross(b, c))
    volume = six_volumes.sum() / 6
    extent = np.ptp(vertices, axis=0).max()
    if volume < 1e-9 * extent**3:
        raise LapjointError(f"{owner}: the hull's volume is {volume:.3g} m^3 at a size of {extent:.3g} m: degenerate")
    sums = a + b + c
    centre = (six_volumes[:, None] * sums).sum(axis=0) / (24 * volume)
    # Second moments of a tetrahedron with one corner at the origin.
    second = np.einsum("n,ni,nj->ij", six_volumes, sums, sums)
    for corner in (a, b, c):
        second += np.einsum("n,ni,nj->ij", six_volumes, corner, corner)
    second = second / 120 - volume * np.outer(centre, centre)
    return centre + origin, volume, np.trace(second) * np.eye(3) - second


def mass_properties(shape: MovingShape) -> tuple[float, Array]:
    """Volume [m^3] and inertia tensor per unit density [m^5] about the centre of mass, in the shape's frame. Parts of
    a compound count as often as they are denser than it."""
    if isinstance(shape, Sphere):
        volume = 4 / 3 * np.pi * shape.radius**3
        return volume, np.eye(3) * (0.4 * volume * shape.radius**2)
    if isinstance(shape, Box):
        x, y, z = np.square(shape.size)
        volume = float(np.prod(shape.size))
        return volume, np.diag([y + z, x + z, x + y]) * (volume / 12)
    if isinstance(shape, Cylinder):
        r2, volume = shape.radius**2, np.pi * shape.radius**2 * shape.length
        side = volume * (3 * r2 + shape.length**2) / 12
        return volume, np.diag([side, side, volume * r2 / 2])
    if isinstance(shape, Capsule):
        r, length = shape.radius, shape.length
        tube, ends = np.pi * r**2 * length, 4 / 3 * np.pi * r**3
        side = tube * (3 * r**2 + length**2) / 12 + ends * (0.4 * r**2 + length**2 / 4 + 3 * length * r / 8)
        return tube + ends, np.diag([side, side, tube * r**2 / 2 + ends * 0.4 * r**2])
    if isinstance(shape, ConvexHull):
        _, volume, inertia = _hull_mass(shape.points, "ConvexHull")
        return volume, inertia
    if isinstance(shape, Compound):
        total, inertia = 0.0, np.zeros((3, 3))
        for part in shape.parts:
            volume, own = mass_properties(part.shape)
            volume, own = part.relative_density * volume, part.relative_density * own
            turn, offset = rotation.to_matrix(part.quaternion), np.asarray(part.position)
            inertia += turn @ own @ turn.T + volume * (offset @ offset * np.eye(3) - np.outer(offset, offset))
            total += volume
        return total, inertia
    if isinstance(shape, (Ellipsoid, Cone)):
        return shape.mass_properties()
    raise LapjointError(f"a {type(shape).__name__} can only be static: it has no mass")


def bounding_radius(shape: MovingShape) -> float:
    """Radius of the smallest sphere about the centre of mass that holds the shape."""
    if isinstance(shape, Sphere):
        return shape.radius
    if isinstance(shape, Box):
        return float(np.linalg.norm(shape.size)) / 2
    if isinstance(shape, Cylinder):
        return float(np.hypot(shape.radius, shape.length / 2))
    if isinstance(shape, Capsule):
        return shape.radius + shape.length / 2
    if isinstance(shape, ConvexHull):
        return float(np.linalg.norm(shape.points, axis=1).max())
    if isinstance(shape, (Ellipsoid, Cone)):
        return shape.bounding_radius()
    return max(float(np.linalg.norm(part.position)) + bounding_radius(part.shape) for part in shape.parts)


def bounding_box(shape: MovingShape) -> tuple[Array, Array]:
    """Centre and half edges of the smallest box along the shape's axes that holds it."""
    if isinstance(shape, Sphere):
        return np.zeros(3), np.full(3, shape.radius)
    if isinstance(shape, Box):
        return np.zeros(3), np.asarray(shape.size) / 2
    if isinstance(shape, Cylinder):
        return np.zeros(3), np.array([shape.radius, shape.radius, shape.length / 2])
    if isinstance(shape, Capsule):
        return np.zeros(3), np.array([shape.radius, shape.radius, shape.length / 2 + shape.radius])
    if isinstance(shape, ConvexHull):
        low, high = shape.points.min(axis=0), shape.points.max(axis=0)
        return (low + high) / 2, (high - low) / 2
    if isinstance(shape, (Ellipsoid, Cone)):
        return shape.bounding_box()
    lows, highs = [], []
    for part in shape.parts:
        center, half = bounding_box(part.shape)
        turn = rotation.to_matrix(part.quaternion)
        middle, reach = turn @ center + part.position, np.abs(turn) @ half
        lows.append(middle - reach)
        highs.append(middle + reach)
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    return (low + high) / 2, (high - low) / 2
