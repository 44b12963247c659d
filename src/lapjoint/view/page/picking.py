"""Picking: which body a ray meets first, and which bodies lie in a rectangle of the screen.

Bounding spheres sort out nearly all bodies at once; the few that are left are tested by their true shape, all bodies of
one shape together.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import rotation
from ...scene import (
    Box,
    Capsule,
    Compound,
    Cone,
    ConvexHull,
    Cylinder,
    Ellipsoid,
    HeightField,
    Plane,
    Scene,
    Sphere,
    TriangleMesh,
)
from ...scene.shapes import StaticShape

Array = NDArray[np.float64]
FAR = np.inf
"""The distance of what a ray does not meet."""


class Picker:
    """Finds bodies of one scene by rays."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    @cached_property
    def _radii(self) -> Array:
        return self.scene.bounding_radii()

    def pick(
        self,
        states: Array,
        origin: ArrayLike,
        direction: ArrayLike,
        static_poses: Array | None = None,
        *,
        alive: NDArray[np.bool_],
    ) -> tuple[int, float]:
        """The first living body on the ray and its distance [m]; body -1 where the ray meets none, or a static body
        first."""
        start, ahead = np.asarray(origin, float), np.asarray(direction, float)
        ahead = ahead / np.linalg.norm(ahead)
        near = np.flatnonzero(alive & (sphere_distances(states[:, :3] - start, ahead, self._radii) < FAR))
        bodies = self.scene.bodies
        found = self._distances(bodies.shape_id[near], states[near, :3], states[near, 3:7], start, ahead)
        if not (found < FAR).any():
            return -1, FAR
        row = int(np.argmin(found))
        statics = self.scene.statics
        poses = static_poses
        if poses is None:
            poses = np.concatenate([statics.position, statics.quaternion], axis=1)
        hidden = self._distances(statics.shape_id, poses[:, :3], poses[:, 3:], start, ahead)
        if hidden.min(initial=FAR) < found[row]:
            return -1, float(hidden.min())
        return int(near[row]), float(found[row])

    def _distances(
        self, shape_ids: NDArray[np.int32], places: Array, turns: Array, start: Array, ahead: Array
    ) -> Array:
        back = rotation.conjugate(turns)
        starts = rotation.rotate(back, start - places)
        directions = rotation.rotate(back, np.broadcast_to(ahead, places.shape))
        found = np.full(len(places), FAR)
        for shape_id in np.unique(shape_ids):
            rows = np.flatnonzero(shape_ids == shape_id)
            found[rows] = self._shape_distances(self.scene.shapes[shape_id], starts[rows], directions[rows])
        return found

    def _shape_distances(self, shape: StaticShape, starts: Array, directions: Array) -> Array:
        """Along rays in the shape's frame."""
        if isinstance(shape, Sphere):
            return _entry(*_sphere_span(starts, directions, shape.radius))
        if isinstance(shape, Box):
            return _entry(*_slab_span(starts, directions, np.asarray(shape.size) / 2))
        if isinstance(shape, Cylinder):
            side = _tube_span(starts, directions, shape.radius)
            ends = _slab_span(starts[:, 2:], directions[:, 2:], np.array([shape.length / 2]))
            return _entry(np.maximum(side[0], ends[0]), np.minimum(side[1], ends[1]))
        if isinstance(shape, Ellipsoid):
            radii = np.asarray(shape.radii)
            start, ahead = starts / radii, directions / radii
            a, half_b, c = (np.einsum("ij,ij->i", *two) for two in ((ahead, ahead), (start, ahead), (start, start)))
            return _entry(*_roots(half_b, c - 1, a))
        if isinstance(shape, Cone):
            return _cone_distances(starts, directions, shape)
        if isinstance(shape, Capsule):
            half = np.array([0.0, 0.0, shape.length / 2])
            tube = self._shape_distances(Cylinder(shape.radius, shape.length), starts, directions)
            caps = [_entry(*_sphere_span(starts + side * half, directions, shape.radius)) for side in (-1, 1)]
            return np.minimum(tube, np.minimum(*caps))
        if isinstance(shape, ConvexHull):
            return _entry(*_face_span(starts, directions, _faces(shape)))
        if isinstance(shape, Compound):
            found = np.full(len(starts), FAR)
            for part in shape.parts:
                back = rotation.conjugate(part.quaternion)
                own = rotation.rotate(back, starts - part.position), rotation.rotate(back, directions)
                found = np.minimum(found, self._shape_distances(part.shape, *own))
            return found
        if isinstance(shape, Plane):
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = -starts[:, 2] / directions[:, 2]
            return np.where(np.isfinite(reach) & (reach >= 0), reach, FAR)
        assert isinstance(shape, (TriangleMesh, HeightField))
        return np.array([_mesh_distance(shape, *ray) for ray in zip(starts, directions, strict=True)])


# ---- rays against shapes: where a ray is inside, from and to, along unit directions --------------------------------


def is_ray(origin: Any, direction: Any) -> bool:
    """Whether these are a point and a direction: browsers may send anything."""
    return _are_numbers([origin, direction], (2, 3)) and bool(np.any(direction))


def is_rectangle(one: object, other: object) -> bool:
    """Whether these are two points of a screen."""
    return _are_numbers([one, other], (2, 2))


def is_camera(camera: Any) -> bool:
    """Whether a browser looks from somewhere to somewhere."""
    return (
        _are_numbers([camera.position, camera.look_at], (2, 3))
        and _are_numbers(camera.wxyz, (4,))
        and _are_numbers([camera.fov, camera.aspect], (2,))
        and 0 < camera.fov < np.pi
        and camera.aspect > 0
    )


def _are_numbers(value: object, shape: tuple[int, ...]) -> bool:
    try:
        numbers = np.array(value, float)
    except (TypeError, ValueError, OverflowError):
        return False
    return numbers.shape == shape and bool(np.isfinite(numbers).all())


def sphere_distances(centres: Array, ahead: Array, radii: Array) -> Array:
    """How far along a ray from the origin each sphere begins, FAR where it is missed or behind."""
    along = centres @ ahead
    squared = radii**2 - np.einsum("ij,ij->i", centres, centres) + along**2
    reach = np.sqrt(np.maximum(squared, 0.0))
    return np.where((squared >= 0) & (along + reach >= 0), np.maximum(along - reach, 0.0), FAR)


def _entry(enter: Array, leave: Array) -> Array:
    return np.where((enter <= leave) & (leave >= 0), np.maximum(enter, 0.0), FAR)


def _roots(half_b: Array, c: Array, a: Array | float = 1.0) -> tuple[Array, Array]:
    """Where a t^2 + 2 half_b t + c is not positive, from and to."""
    inside = half_b**2 - a * c
    root = np.sqrt(np.maximum(inside, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        spans = (-half_b - root) / a, (-half_b + root) / a
    missed = inside < 0
    return np.where(missed, FAR, spans[0]), np.where(missed, -FAR, spans[1])


def _sphere_span(starts: Array, directions: Array, radius: float) -> tuple[Array, Array]:
    half_b = np.einsum("ij,ij->i", starts, directions)
    return _roots(half_b, np.einsum("ij,ij->i", starts, starts) - radius**2)


def _tube_span(starts: Array, directions: Array, radius: float) -> tuple[Array, Array]:
    """Where rays enter and leave the endless cylinder about z."""
    flat, ahead = starts[:, :2], directions[:, :2]
    a = np.einsum("ij,ij->i", ahead, ahead)
    c = np.einsum("ij,ij->i", flat, flat) - radius**2
    enter, leave = _roots(np.einsum("ij,ij->i", flat, ahead), c, np.maximum(a, 1e-18))
    along_axis = a < 1e-18
    enter = np.where(along_axis, np.where(c <= 0, -FAR, FAR), enter)
    return enter, np.where(along_axis, np.where(c <= 0, FAR, -FAR), leave)


def _cone_distances(starts: Array, directions: Array, cone: Cone) -> Array:
    """The nearest of where rays cross the side and the base, or 0 for those that begin inside."""
    base, slope = -cone.length / 4, cone.radius / cone.length
    flat = np.array([1.0, 1.0, -(slope**2)])
    from_tip = starts - [0.0, 0.0, 0.75 * cone.length]
    a, half_b, c = (
        np.einsum("ij,ij,j->i", *two, flat)
        for two in ((directions, directions), (from_tip, directions), (from_tip, from_tip))
    )
    inside = (c <= 0) & (starts[:, 2] >= base) & (from_tip[:, 2] <= 0)
    found = np.where(inside, 0.0, FAR)
    with np.errstate(divide="ignore", invalid="ignore"):
        for reach in _roots(half_b, c, a):
            height = starts[:, 2] + reach * directions[:, 2]
            on_side = (reach >= 0) & (height >= base) & (height <= 0.75 * cone.length)
            found = np.where(on_side, np.minimum(found, reach), found)
        reach = (base - starts[:, 2]) / directions[:, 2]
        across = np.linalg.norm(starts[:, :2] + reach[:, None] * directions[:, :2], axis=1)
        return np.where((reach >= 0) & (across <= cone.radius), np.minimum(found, reach), found)


def _slab_span(starts: Array, directions: Array, half: Array) -> tuple[Array, Array]:
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = (-half - starts) / directions, (half - starts) / directions
    low, high = np.minimum(one, other), np.maximum(one, other)
    # A ray along a slab is inside all the way or nowhere.
    still, inside = directions == 0, np.abs(starts) <= half
    low = np.where(still, np.where(inside, -FAR, FAR), low)
    high = np.where(still, np.where(inside, FAR, -FAR), high)
    return low.max(axis=1), high.min(axis=1)


def _faces(hull: ConvexHull) -> Array:
    """Of each face: outward normal and offset, (faces, 4)."""
    from scipy.spatial import ConvexHull as Qhull

    return np.asarray(Qhull(hull.points).equations)


def _face_span(starts: Array, directions: Array, faces: Array) -> tuple[Array, Array]:
    """Where rays enter and leave a convex shape, which is inside of all its faces."""
    rise, above = directions @ faces[:, :3].T, starts @ faces[:, :3].T + faces[:, 3]
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = -above / rise
    outside = (rise == 0) & (above > 0)
    enter = np.where(rise < 0, cross, np.where(outside, FAR, -FAR)).max(axis=1)
    return enter, np.where(rise > 0, cross, FAR).min(axis=1)


def _mesh_distance(mesh: TriangleMesh | HeightField, start: Array, ahead: Array) -> float:
    """The nearest triangle of a mesh, from either side."""
    vertices, triangles = mesh.vertices, mesh.triangles
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.einsum("ij,ij->i", a - start, normals) / (normals @ ahead)
        points = start + reach[:, None] * ahead
    corners = (a, b, c, a)
    sides = [np.einsum("ij,ij->i", np.cross(q - p, points - p), normals) for p, q in pairwise(corners)]
    hit = np.isfinite(reach) & (reach >= 0) & (np.min(sides, axis=0) >= 0)
    return float(reach[hit].min(initial=FAR))


# ---- the screen ----------------------------------------------------------------------------------------------------


def project(points: Array, place: ArrayLike, turn: ArrayLike, fov: float, aspect: float) -> tuple[Array, Array]:
    """Where points appear on a screen, from (0, 0) top left to (1, 1) bottom right, and their depths [m].

    `turn` is the quaternion of a camera that looks along its z axis, with y down; `fov` is vertical [rad].
    """
    seen = rotation.rotate(rotation.conjugate(turn), np.asarray(points, float) - np.asarray(place, float))
    tall = np.tan(fov / 2)
    depth = seen[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        flat = seen[:, :2] / (depth[:, None] * np.array([tall * aspect, tall]))
    return (flat + 1) / 2, depth


def in_rectangle(screen: Array, depth: Array, one: ArrayLike, other: ArrayLike) -> NDArray[np.intp]:
    """Numbers of the points within a rectangle of the screen, in front of the camera."""
    low, high = np.minimum(one, other), np.maximum(one, other)
    with np.errstate(invalid="ignore"):
        return np.flatnonzero((depth > 0) & ((screen >= low) & (screen <= high)).all(axis=1))
