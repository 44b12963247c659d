"""Forces of fields on bodies, in NumPy. Its native twin runs in the Bullet engine: native/fields/fields.cpp.

Drag is taken last and as a whole: with all other forces held for the step, its differential equation is solved exactly,
for the coefficients that it has as the step begins. So a body in any drag comes to its terminal velocity, and never
beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import Scene, Sphere
from ..scene.fields import FUNCTION, IN_BOX, NO_REGION, REGION_SIZE, GivenField, field_title
from ..scene.shapes import STATIC_ONLY, bounding_radius, mass_properties
from ..scene.surfaces import surface_triangles, volume_of

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
GRAVITY, DRAG, BUOYANCY, ATTRACTOR = 1, 2, 3, 4


class FieldShapes:
    """Shapes of a scene as buoyancy needs them, found when they are first asked for."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._triangles: dict[int, Array] = {}
        self._sizes: dict[int, tuple[float, float]] = {}

    def is_sphere(self, shape_id: int) -> bool:
        return isinstance(self._scene.shapes[shape_id], Sphere)

    def sizes(self, shape_id: int) -> tuple[float, float]:
        """Volume and bounding radius."""
        if shape_id not in self._sizes:
            shape = self._scene.shapes[shape_id]
            assert not isinstance(shape, STATIC_ONLY)
            self._sizes[shape_id] = mass_properties(shape)[0], bounding_radius(shape)
        return self._sizes[shape_id]

    def triangles(self, shape_id: int) -> Array:
        """Of its surface; those of a round shape are scaled to its volume."""
        if shape_id not in self._triangles:
            shape = self._scene.shapes[shape_id]
            assert not isinstance(shape, STATIC_ONLY)
            own = surface_triangles(shape)
            self._triangles[shape_id] = own * np.cbrt(self.sizes(shape_id)[0] / volume_of(own))
        return self._triangles[shape_id]


def ahead_share(substeps: int) -> float:
    """Share of a step's way by which fields are looked at ahead of where it begins. A force that is held for a step of
    n substeps moves a body by (n + 1) / 2n of its acceleration times the square of the step; at this place it feeds
    no energy into orbits and oscillations, nor takes any."""
    return (substeps - 1) / (2 * substeps)


def function_forces(given: Sequence[GivenField], ids: Ids, states: Array, time: float, title: str = "") -> Array | None:
    """What the functions among the fields do to these bodies, (n, 6); None if there are no functions."""
    total: Array | None = None
    for number, one in enumerate(given):
        if one.kind != FUNCTION:
            continue
        assert one.field is not None
        assert one.field.function is not None
        total = np.zeros((len(ids), 6)) if total is None else total
        inside = np.flatnonzero(one.acts_on(ids))
        if len(inside) == 0:
            continue
        positions, velocities = states[inside, :3].copy(), states[inside, 7:10].copy()
        found = np.asarray(one.field.function(positions, velocities, time))
        if found.shape not in ((len(inside), 3), (len(inside), 6)) or found.dtype.kind not in "fiu":
            raise LapjointError(
                f"{title}{field_title(number, one)}: it returned {found.dtype} {found.shape} for {len(inside)} bodies, "
                f"expected numbers, {(len(inside), 3)} or {(len(inside), 6)}"
            )
        wrong = np.flatnonzero(~np.isfinite(found).all(axis=1))
        if len(wrong):
            raise LapjointError(
                f"{title}{field_title(number, one)}: its force on body {ids[inside[wrong[0]]]} is {found[wrong[0]]}, "
                "expected finite numbers"
            )
        total[inside, : found.shape[1]] += found
    return total


def field_forces(
    scene: Scene,
    shapes: FieldShapes,
    given: Sequence[GivenField],
    ids: Ids,
    states: Array,
    others: Array,
    timestep: float,
) -> Array:
    """Forces and torques of the built-in fields, (n, 6) [N, N m]. `others` are all other forces, (n, 3), gravity's
    too: drag depends on them."""
    bodies = scene.bodies
    mass, place, velocity = bodies.mass[ids], states[:, :3], states[:, 7:10]
    out = np.zeros((len(ids), 6))
    drag, angular, flow = np.zeros(len(ids)), np.zeros(len(ids)), np.zeros((len(ids), 3))
    for one in given:
        if one.kind == FUNCTION:
            continue
        inside = np.flatnonzero(one.acts_on(ids) & is_inside(one.values, place))
        v = one.values[REGION_SIZE:]
        if one.kind == GRAVITY:
            out[inside, :3] += mass[inside, None] * v
        elif one.kind == ATTRACTOR:
            out[inside, :3] += mass[inside, None] * _attraction(v, place[inside])
        elif one.kind == DRAG:
            grip = v[3] + v[4] * np.linalg.norm(velocity[inside] - v[:3], axis=1)
            drag[inside] += grip
            flow[inside] += grip[:, None] * v[:3]
            angular[inside] += v[5]
        else:
            volume, middle = submerged(shapes, bodies.shape_id[ids[inside]], states[inside], v[:3], v[3])
            share = volume / np.array([shapes.sizes(shape_id)[0] for shape_id in bodies.shape_id[ids[inside]]])
            lift = volume[:, None] * v[4:7]
            out[inside, :3] += lift
            out[inside, 3:] += np.cross(middle - place[inside], lift)
            drag[inside] += v[10] * share
            flow[inside] += (v[10] * share)[:, None] * v[7:10]
            angular[inside] += v[12] * share
    held = np.flatnonzero(drag > 0)
    if len(held):
        out[held, :3] += drag_force(
            mass[held], velocity[held], drag[held], flow[held], others[held] + out[held, :3], timestep
        )
    turned = np.flatnonzero(angular > 0)
    if len(turned):
        out[turned, 3:] += _drag_torque(scene, ids[turned], states[turned], angular[turned], timestep)
    return out


def is_inside(values: Array, places: Array) -> NDArray[np.bool_]:
    """Which places are in a field's region."""
    kind, region = values[0], values[1:REGION_SIZE]
    if kind == NO_REGION:
        return np.ones(len(places), bool)
    if kind == IN_BOX:
        return np.asarray(((places >= region[:3]) & (places <= region[3:])).all(axis=1))
    away = places - region[:3]
    return np.asarray((away * away).sum(axis=1) <= region[3] ** 2)


def _attraction(v: Array, place: Array) -> Array:
    way = v[:3] - place
    far = np.maximum(np.linalg.norm(way, axis=1), v[5])
    with np.errstate(divide="ignore"):
        scale = np.where(far > 0, v[3] * far ** -(v[4] + 1), 0.0)
    return np.asarray(scale[:, None] * way)


def drag_force(mass: Array, velocity: Array, drag: Array, flow: Array, others: Array, timestep: float) -> Array:
    """The constant force that leads to the velocity that drag and the other forces lead to."""
    rate = drag / mass
    acceleration = others / mass[:, None]
    end = flow / drag[:, None] + acceleration / rate[:, None]  # the velocity that it comes to
    change = (end - velocity) * -np.expm1(-rate * timestep)[:, None]
    return np.asarray(mass[:, None] * (change / timestep - acceleration))


def _drag_torque(scene: Scene, ids: Ids, states: Array, drag: Array, timestep: float) -> Array:
    """The same about each principal axis, without other torques."""
    moments, axes = np.linalg.eigh(scene.bodies.inertia[ids])
    axes = rotation.to_matrix(states[:, 3:7]) @ axes
    along = np.einsum("nij,ni->nj", axes, states[:, 10:13])
    lost = moments * along * np.expm1(-drag[:, None] * timestep / moments) / timestep
    return np.asarray(np.einsum("nij,nj->ni", axes, lost))


# ---- what is below a plane -------------------------------------------------------------------------------------------


def submerged(
    shapes: FieldShapes, shape_ids: NDArray[np.int32], states: Array, normal: Array, level: float
) -> tuple[Array, Array]:
    """Volume of each body below a plane, and the middle of that part in the world."""
    height = states[:, :3] @ normal - level
    volume, middle = np.zeros(len(states)), states[:, :3].copy()
    for shape_id in np.unique(shape_ids):
        own = np.flatnonzero(shape_ids == shape_id)
        whole, radius = shapes.sizes(shape_id)
        volume[own[height[own] <= -radius]] = whole
        cut = own[np.abs(height[own]) < radius]
        if len(cut) == 0:
            continue
        if shapes.is_sphere(shape_id):
            volume[cut], down = _cut_sphere(radius, height[cut])
            middle[cut] -= down[:, None] * normal
        else:
            turn = rotation.to_matrix(states[cut, 3:7])
            corners = np.einsum("nij,tkj->ntki", turn, shapes.triangles(shape_id)) + states[cut, None, None, :3]
            foot = states[cut, :3] - height[cut, None] * normal
            volume[cut], middle[cut] = cut_surface(corners, corners @ normal - level, foot)
    return volume, middle


def _cut_sphere(radius: float, height: Array) -> tuple[Array, Array]:
    """Volume of the cap below, and how far its middle is below the centre."""
    depth = radius - height
    volume = np.pi * depth**2 * (3 * radius - depth) / 3
    return volume, 0.75 * (2 * radius - depth) ** 2 / (3 * radius - depth)


def cut_surface(corners: Array, heights: Array, foot: Array) -> tuple[Array, Array]:
    """Volume and its middle of what closed surfaces, (n, triangles, 3, 3), enclose below a plane.

    A sum over tetrahedra with a tip at `foot`, which lies in the plane: so the cut itself adds nothing."""
    below = heights < 0
    count = below.sum(axis=2)
    # First the corner that is alone on its side.
    odd = np.where(count == 1, np.argmax(below, axis=2), np.argmin(below, axis=2))
    order = (odd[..., None] + np.arange(3)) % 3
    a, b, c = np.moveaxis(np.take_along_axis(corners, order[..., None], axis=2), 2, 0)
    high_a, high_b, high_c = np.moveaxis(np.take_along_axis(heights, order, axis=2), 2, 0)

    def at_plane(to: Array, high: Array) -> Array:
        crosses = (high_a < 0) != (high < 0)
        return np.asarray(
            a + np.where(crosses, high_a / np.where(crosses, high_a - high, 1.0), 0.0)[..., None] * (to - a)
        )

    at_b, at_c = at_plane(b, high_b), at_plane(c, high_c)
    tip = foot[:, None]
    volume, moment = np.zeros(len(corners)), np.zeros((len(corners), 3))
    pieces = ((count == 3, a, b, c), (count == 1, a, at_b, at_c), (count == 2, at_b, b, c), (count == 2, at_b, c, at_c))
    for wanted, p, q, r in pieces:
        own = np.where(wanted, np.einsum("nti,nti->nt", p - tip, np.cross(q - tip, r - tip)) / 6, 0.0)
        volume += own.sum(axis=1)
        moment += np.einsum("nt,nti->ni", own, (p + q + r - 3 * tip) / 4)
    some = volume > 0
    middle = foot + np.where(some[:, None], moment / np.where(some, volume, 1.0)[:, None], 0.0)
    return np.where(some, volume, 0.0), middle
