"""The readable twin of native/queries/: one shape, many rays or points, in the shape's own frame. A test compares both
on random shapes.

Rays: shapes are solid, so one that begins inside is hit at once, against its direction. Touching is a hit; leaving from
the surface is none. A triangle mesh is a surface, hit from both sides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lapjoint.arrays import rotation
from lapjoint.scene import (
    Box,
    Capsule,
    Compound,
    Cone,
    ConvexHull,
    Cylinder,
    Ellipsoid,
    HeightField,
    Plane,
    Sphere,
    TriangleMesh,
)
from lapjoint.scene.shapes import StaticShape, hull_faces

Array = NDArray[np.float64]
Cast = tuple[Array, Array]
"""Distance of each ray's hit, infinite where there is none; normal there."""
Near = tuple[Array, Array, Array]
"""Of each point: signed distance, nearest point of the surface, outward normal there."""

# ---- rays ----------------------------------------------------------------------------------------------------------


def cast(shape: StaticShape, origins: Array, directions: Array) -> Cast:
    """Where rays, of directions of length 1, first meet a shape."""
    if isinstance(shape, Sphere):
        return _cast_ball(np.zeros(3), shape.radius, origins, directions)
    if isinstance(shape, Box):
        half = np.asarray(shape.size) / 2
        return _cast_halfspaces(np.concatenate([np.eye(3), -np.eye(3)]), np.tile(half, 2), origins, directions)
    if isinstance(shape, ConvexHull):
        vertices, faces = hull_faces(shape.points)
        normals = _normals(vertices[faces])
        return _cast_halfspaces(normals, (vertices @ normals.T).max(axis=0), origins, directions)
    if isinstance(shape, Cylinder):
        return _first_inside(_in_cylinder(shape, origins, directions), directions)
    if isinstance(shape, Capsule):
        return _cast_capsule(shape, origins, directions)
    if isinstance(shape, Ellipsoid):
        return _cast_ellipsoid(np.asarray(shape.radii), origins, directions)
    if isinstance(shape, Cone):
        return _first_inside(_in_cone(shape, origins, directions), directions)
    if isinstance(shape, Plane):
        return _cast_halfspaces(np.array([[0.0, 0.0, 1.0]]), np.zeros(1), origins, directions)
    if isinstance(shape, TriangleMesh | HeightField):
        return _cast_triangles(shape.vertices[shape.triangles], origins, directions)
    assert isinstance(shape, Compound)
    return _nearest(
        [_cast_part(part.shape, part.position, part.quaternion, origins, directions) for part in shape.parts]
    )


Inside = tuple[Array, Array, Array]
"""Where each ray enters a convex shape and where it leaves, and the normal where it enters."""


def _first_inside(inside: Inside, directions: Array) -> Cast:
    enter, leave, normal = inside
    starts_inside = (enter < 0) & (leave > 0)
    misses = ~(enter <= leave) | (leave < 0) | ((enter < 0) & (leave == 0))
    distance = np.where(misses, np.inf, np.where(starts_inside, 0.0, enter))
    return distance, np.where(misses[:, None], 0.0, np.where(starts_inside[:, None], -directions, normal))


def _cast_ball(centre: Array, radius: float, origins: Array, directions: Array) -> Cast:
    start = origins - centre
    along = np.einsum("ij,ij->i", start, directions)
    aside = start - along[:, None] * directions
    left = radius**2 - np.einsum("ij,ij->i", aside, aside)
    half = np.sqrt(np.where(left >= 0, left, np.nan))
    enter = -along - half
    return _first_inside((enter, -along + half, (start + enter[:, None] * directions) / radius), directions)


def _cast_halfspaces(normals: Array, offsets: Array, origins: Array, directions: Array) -> Cast:
    """Against the points that are below all planes."""
    towards, above = directions @ normals.T, origins @ normals.T - offsets
    with np.errstate(divide="ignore", invalid="ignore"):
        at = -above / towards
    enters = np.where(towards < 0, at, -np.inf)
    leave = np.where(towards > 0, at, np.inf).min(axis=1)
    leave[((towards == 0) & (above > 0)).any(axis=1)] = -np.inf  # along a plane, and above it
    first = enters.argmax(axis=1)
    return _first_inside((enters.max(axis=1), leave, normals[first]), directions)


def _in_tube(radius: float, origins: Array, directions: Array) -> Inside:
    """The endless tube about z."""
    (ox, oy), (dx, dy) = origins[:, :2].T, directions[:, :2].T
    a = dx**2 + dy**2
    with np.errstate(divide="ignore", invalid="ignore"):
        half = np.sqrt(radius**2 * a - (ox * dy - oy * dx) ** 2) / a
        middle = -(ox * dx + oy * dy) / a
    endless = np.where(ox**2 + oy**2 <= radius**2, np.inf, np.nan)  # along z
    enter, leave = np.where(a == 0, -endless, middle - half), np.where(a == 0, endless, middle + half)
    at = np.where(np.isfinite(enter), enter, 0.0)
    normal = np.stack([ox + at * dx, oy + at * dy, 0 * ox], axis=1) / radius
    return enter, leave, normal


def _in_cylinder(shape: Cylinder, origins: Array, directions: Array) -> Inside:
    enter, leave, normal = _in_tube(shape.radius, origins, directions)
    o, d = origins[:, 2], directions[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = ((np.sign(d) * end * shape.length / 2 - o) / d for end in (-1, 1))
    outside = (d == 0) & (np.abs(o) > shape.length / 2)
    low, high = np.where(d == 0, -np.inf, low), np.where(d == 0, np.inf, high)
    by_end = low > enter
    normal = np.where(by_end[:, None], -np.sign(d)[:, None] * [0.0, 0.0, 1.0], normal)
    return np.maximum(enter, low), np.where(outside, -np.inf, np.minimum(leave, high)), normal


def _cast_capsule(shape: Capsule, origins: Array, directions: Array) -> Cast:
    half = shape.length / 2
    enter, leave, normal = _in_tube(shape.radius, origins, directions)
    at = np.where(np.isfinite(enter), np.maximum(enter, 0), 0.0)
    between = np.abs(origins[:, 2] + at * directions[:, 2]) <= half
    side = _first_inside((np.where(between, enter, np.nan), leave, normal), directions)
    ends = [_cast_ball(np.array([0, 0, end]), shape.radius, origins, directions) for end in (-half, half)]
    return _nearest([side, *ends])


def _cast_ellipsoid(radii: Array, origins: Array, directions: Array) -> Cast:
    """As a ball of radius 1 in space that is scaled."""
    scaled = directions / radii
    length = np.linalg.norm(scaled, axis=1)
    distance, normal = _cast_ball(np.zeros(3), 1.0, origins / radii, scaled / length[:, None])
    out = normal / radii
    with np.errstate(invalid="ignore"):
        out = np.where(distance[:, None] > 0, out / np.linalg.norm(out, axis=1)[:, None], -directions)
    inside = (np.square(origins / radii).sum(axis=1) < 1)[:, None]
    normal = np.where(inside, -directions, out)
    return distance / length, np.where(np.isfinite(distance)[:, None], normal, 0.0)


def _in_cone(shape: Cone, origins: Array, directions: Array) -> Inside:
    """By the points where a ray meets the base or the mantle: the first and the last of them."""
    low, tip, slope = -shape.length / 4, 0.75 * shape.length, shape.radius / shape.length
    (ox, oy, oz), (dx, dy, dz) = origins.T, directions.T
    a = dx**2 + dy**2 - slope**2 * dz**2
    b = ox * dx + oy * dy + slope**2 * (tip - oz) * dz
    c = ox**2 + oy**2 - slope**2 * (tip - oz) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(b**2 - a * c)
        places = np.stack([(low - oz) / dz, (-b - root) / a, (-b + root) / a])
        at = origins + places[..., None] * directions
        on = (
            np.hypot(at[0, :, 0], at[0, :, 1]) <= shape.radius + 1e-12,
            *((at[k, :, 2] >= low - 1e-12) & (at[k, :, 2] <= tip + 1e-9) for k in (1, 2)),
        )
        places = np.where(np.array(on) & np.isfinite(places), places, np.nan)
    enter, leave = np.fmin.reduce(places), np.fmax.reduce(places)
    first = np.where(np.isnan(places), np.inf, places).argmin(axis=0)
    point = at[first, np.arange(len(origins))]
    r = np.hypot(point[:, 0], point[:, 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        side = np.stack([point[:, 0] / r, point[:, 1] / r, np.full(len(r), slope)], axis=1) / np.hypot(1, slope)
    side[~(r > 0)] = (0.0, 0.0, 1.0)
    return enter, leave, np.where((first == 0)[:, None], [0.0, 0.0, -1.0], side)


def _cast_triangles(corners: Array, origins: Array, directions: Array) -> Cast:
    """Every ray against every triangle: Moeller and Trumbore."""
    a, b, c = corners.transpose(1, 0, 2)
    normals = _normals(corners)
    across = np.cross(directions[:, None], (c - a)[None])
    scale = np.einsum("ntj,tj->nt", across, b - a)
    start = origins[:, None] - a[None]
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.einsum("ntj,ntj->nt", start, across) / scale
        q = np.cross(start, (b - a)[None])
        v = np.einsum("nj,ntj->nt", directions, q) / scale
        at = np.einsum("tj,ntj->nt", c - a, q) / scale
        hits = (scale != 0) & (u >= 0) & (v >= 0) & (u + v <= 1) & (at >= 0)
    distances = np.where(hits, at, np.inf)
    first = distances.argmin(axis=1)
    distance, normal = distances[np.arange(len(origins)), first], normals[first]
    away = np.einsum("ij,ij->i", normal, directions) > 0
    normal = np.where(away[:, None], -normal, normal)
    return distance, np.where(np.isfinite(distance)[:, None], normal, 0.0)


def _cast_part(shape: StaticShape, position: tuple[float, ...], turn: tuple[float, ...], o: Array, d: Array) -> Cast:
    back = rotation.conjugate(turn)
    distance, normal = cast(shape, rotation.rotate(back, o - position), rotation.rotate(back, d))
    return distance, rotation.rotate(turn, normal)


def _nearest(casts: list[Cast]) -> Cast:
    distances, normals = (np.array(values) for values in zip(*casts, strict=True))
    first, rays = distances.argmin(axis=0), np.arange(distances.shape[1])
    return distances[first, rays], normals[first, rays]


# ---- points --------------------------------------------------------------------------------------------------------


def nearest(shape: StaticShape, points: Array) -> Near:
    """The points of a shape's surface that are nearest to points. Inside a compound that is the surface of the part
    that a point is deepest in."""
    if isinstance(shape, Sphere):
        return _around(np.zeros_like(points), shape.radius, points, [0.0, 0.0, 1.0])
    if isinstance(shape, Capsule):
        middle = np.zeros_like(points)
        middle[:, 2] = points[:, 2].clip(-shape.length / 2, shape.length / 2)
        return _around(middle, shape.radius, points, [1.0, 0.0, 0.0])
    if isinstance(shape, Box):
        return _near_box(np.asarray(shape.size) / 2, points)
    if isinstance(shape, Cylinder):
        return _near_cylinder(shape, points)
    if isinstance(shape, Plane):
        up = np.tile([0.0, 0.0, 1.0], (len(points), 1))
        return points[:, 2].copy(), points * [1.0, 1.0, 0.0], up
    if isinstance(shape, Ellipsoid):
        return _near_ellipsoid(np.asarray(shape.radii), points)
    if isinstance(shape, Cone):
        return _near_cone(shape, points)
    if isinstance(shape, TriangleMesh | HeightField):
        on, which = _on_triangles(shape.vertices[shape.triangles], points)
        return _outside(points, on, _normals(shape.vertices[shape.triangles])[which])
    if isinstance(shape, ConvexHull):
        return _near_hull(shape, points)
    assert isinstance(shape, Compound)
    found = []
    for part in shape.parts:
        local = rotation.rotate(rotation.conjugate(part.quaternion), points - part.position)
        distance, on, normal = nearest(part.shape, local)
        turned = (rotation.rotate(part.quaternion, vectors) for vectors in (on, normal))
        found.append((distance, next(turned) + part.position, next(turned)))
    distances, ons, normals = (np.array(values) for values in zip(*found, strict=True))
    first, rows = distances.argmin(axis=0), np.arange(len(points))
    return distances[first, rows], ons[first, rows], normals[first, rows]


def _around(middle: Array, radius: float, points: Array, upright: list[float]) -> Near:
    out = points - middle
    length = np.linalg.norm(out, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        normal = np.where(length[:, None] > 0, out / length[:, None], upright)
    return length - radius, middle + radius * normal, normal


def _outside(points: Array, on: Array, where_it_touches: Array) -> Near:
    out = points - on
    length = np.linalg.norm(out, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return length, on, np.where(length[:, None] > 0, out / length[:, None], where_it_touches)


def _either(inside: NDArray[np.bool_], one: Near, other: Near) -> Near:
    """One result where the points are inside, and the other elsewhere."""
    distance, point, normal = (
        np.where(inside if a.ndim == 1 else inside[:, None], a, b) for a, b in zip(one, other, strict=True)
    )
    return distance, point, normal


def _near_box(half: Array, points: Array) -> Near:
    out = np.abs(points) - half
    axis, rows = out.argmax(axis=1), np.arange(len(points))
    normal = np.zeros_like(points)
    normal[rows, axis] = np.where(points[rows, axis] < 0, -1.0, 1.0)
    on = points.copy()
    on[rows, axis] = normal[rows, axis] * half[axis]
    inside = out[rows, axis], on, normal
    return _either(out.max(axis=1) <= 0, inside, _outside(points, points.clip(-half, half), normal))


def _near_cylinder(shape: Cylinder, points: Array) -> Near:
    r, half = np.hypot(points[:, 0], points[:, 1]), shape.length / 2
    side, end = r - shape.radius, np.abs(points[:, 2]) - half
    radial = np.zeros_like(points)
    with np.errstate(divide="ignore", invalid="ignore"):
        radial[:, :2] = np.where(r[:, None] > 0, points[:, :2] / r[:, None], [1.0, 0.0])
    up = np.where(points[:, 2] < 0, -1.0, 1.0)[:, None] * [0.0, 0.0, 1.0]
    flat, high = points * [1.0, 1.0, 0.0], points * [0.0, 0.0, 1.0]
    by_side = (side >= end)[:, None]
    normal = np.where(by_side, radial, up)
    on = np.where(by_side, high + radial * shape.radius, flat + up * half)
    inside = np.maximum(side, end), on, normal
    rim = radial * np.minimum(r, shape.radius)[:, None] + up * np.minimum(np.abs(points[:, 2]), half)[:, None]
    return _either((side <= 0) & (end <= 0), inside, _outside(points, rim, normal))


def _near_ellipsoid(radii: Array, points: Array) -> Near:
    """Where the normal of the surface leads to the point: at r^2 y / (s + r^2), for the s that puts it on the surface,
    found by halving. Points in planes of symmetry are moved a little out of them."""
    y = np.maximum(np.abs(points), 1e-10 * radii)
    squares = radii**2
    more = squares - squares.min()  # s is counted from where the smallest term would be infinite
    low, high = np.where(more == 0, radii * y, 0.0).max(axis=1), np.linalg.norm(radii * y, axis=1) + squares.min()
    for _ in range(200):
        middle = (low + high) / 2
        beyond = np.square(radii * y / (middle[:, None] + more)).sum(axis=1) > 1
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    on = np.copysign(squares * y / (middle[:, None] + more), points)
    out = on / squares
    inside = np.square(points / radii).sum(axis=1) < 1
    distance = np.linalg.norm(points - on, axis=1)
    return np.where(inside, -distance, distance), on, out / np.linalg.norm(out, axis=1)[:, None]


def _near_cone(shape: Cone, points: Array) -> Near:
    low, length = -shape.length / 4, shape.length
    r, z = np.hypot(points[:, 0], points[:, 1]), points[:, 2]
    radial = np.zeros_like(points)
    with np.errstate(divide="ignore", invalid="ignore"):
        radial[:, :2] = np.where(r[:, None] > 0, points[:, :2] / r[:, None], [1.0, 0.0])
    slant = np.hypot(shape.radius, length)
    share = (((shape.radius - r) * shape.radius + (z - low) * length) / slant**2).clip(0, 1)
    mantle = radial * (shape.radius * (1 - share))[:, None] + (low + share * length)[:, None] * [0.0, 0.0, 1.0]
    base = radial * np.minimum(r, shape.radius)[:, None] + np.array([0.0, 0.0, low])
    side = (radial * length + np.array([0.0, 0.0, shape.radius])) / slant
    by_side = (np.linalg.norm(points - mantle, axis=1) <= np.linalg.norm(points - base, axis=1))[:, None]
    on, normal = np.where(by_side, mantle, base), np.where(by_side, side, [0.0, 0.0, -1.0])
    inside = (z >= low) & (r <= shape.radius * (low + length - z) / length)
    distance = np.linalg.norm(points - on, axis=1)
    return _either(inside, (-distance, on, normal), _outside(points, on, normal))


def _near_hull(shape: ConvexHull, points: Array) -> Near:
    vertices, faces = hull_faces(shape.points)
    normals = _normals(vertices[faces])
    above = points @ normals.T - (vertices @ normals.T).max(axis=0)
    first, out = above.argmax(axis=1), above.max(axis=1)
    inside = out, points - out[:, None] * normals[first], normals[first]
    on, _ = _on_triangles(vertices[faces], points)
    return _either(out <= 0, inside, _outside(points, on, normals[first]))


def _on_triangles(corners: Array, points: Array) -> tuple[Array, NDArray[np.int64]]:
    """The nearest point of all triangles, and on which it is: above the triangle, or on one of its edges."""
    a, b, c = corners.transpose(1, 0, 2)
    normals = _normals(corners)
    height = np.einsum("ntj,tj->nt", points[:, None] - a[None], normals)
    candidates = [points[:, None] - height[..., None] * normals[None]]
    is_over = np.ones(height.shape, bool)
    for start, end in ((a, b), (b, c), (c, a)):
        edge = end - start
        is_over &= np.einsum("ntj,tj->nt", candidates[0] - start[None], np.cross(normals, edge)) >= 0
        along = np.einsum("ntj,tj->nt", points[:, None] - start[None], edge) / np.einsum("tj,tj->t", edge, edge)
        candidates.append(start[None] + along.clip(0, 1)[..., None] * edge[None])
    away = np.array([np.linalg.norm(points[:, None] - candidate, axis=2) for candidate in candidates])
    away[0, ~is_over] = np.inf
    kind, which = np.divmod(away.transpose(1, 0, 2).reshape(len(points), 4 * len(corners)).argmin(axis=1), len(corners))
    return np.array(candidates)[kind, np.arange(len(points)), which], which


def _normals(corners: Array) -> Array:
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return np.asarray(across / np.linalg.norm(across, axis=1)[:, None])
