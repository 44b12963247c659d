"""A scene of a model: links become bodies, static bodies or kinematic ones, their colliders one shape each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import Compound, Gear, Material, Part, Scene, Sphere
from ..scene.filters import ALL_GROUPS
from ..scene.joints import WORLD
from ..scene.shapes import STATIC_ONLY, MovingShape, mass_properties
from .groups import Groups, assign_groups
from .model import Array, Collider, Link, LinkJoint, Mass, Model, Motion
from .notes import Notes

_T = TypeVar("_T")
WATER = 1000.0
"""kg/m^3, of colliders without a density of their own, as for bodies of a scene."""
ASIDE = 1e-6
"""A collider is where the centre of mass is if it is no farther from it than this share of the link's size: files have
numbers of seven digits."""
UNSEEN = 0x80000000
"""The group of bodies without colliders, which touch nothing: their mask is empty."""


def build_scene(model: Model, notes: Notes) -> Scene:
    """The scene that a model describes; `notes` names links in errors, and counts what is there."""
    timestep = {} if model.timestep is None else {"timestep": model.timestep}
    try:
        scene = Scene(model.name, gravity=model.gravity, **timestep, **model.settings)  # type: ignore[arg-type]
    except LapjointError as error:
        raise notes.refuse("", str(error)) from None
    scene.camera = model.camera
    _separate_still_links(model)
    groups = given_groups(model) or assign_groups(model.may_touch, _label_counts(model))
    bodies = _add_bodies(scene, model, groups, notes)
    statics = np.full(len(model.links), -1)  # the first of each link
    for number, link in enumerate(model.links):
        if link.motion is not Motion.MOVING:
            statics[number] = scene.static_count
            try:
                _add_static(scene, link, groups)
            except LapjointError as error:
                raise notes.refuse(link.where or link.name, str(error)) from None
    _add_joints(scene, model, bodies, notes)
    _add_sensors(scene, model, groups, bodies, statics, notes)
    _ignore(scene, model, groups, bodies, notes)
    _set_start(scene, model, bodies, notes)
    kinematic = len(scene.motions)
    notes.count("bodies", scene.body_count)
    notes.count("static bodies", scene.static_count - kinematic)
    notes.count("kinematic bodies", kinematic)
    notes.count("colliders", sum(len(link.colliders) for link in model.links))
    notes.count("joints", len(model.joints))
    notes.count("sensors", len(model.sensors))
    return scene


# ---- links ---------------------------------------------------------------------------------------------------------


def mass_of_colliders(link: Link) -> Mass:
    """Mass, centre of mass and inertia of a link's colliders, by their densities."""
    found = [_collider_mass(collider) for collider in link.colliders]
    if not found:
        raise LapjointError("has neither a mass nor a collider that it would follow from")
    return joined_masses(found)


def _collider_mass(collider: Collider) -> Mass:
    if isinstance(collider.shape, STATIC_ONLY):
        raise LapjointError(f"{collider.where or 'a collider'} is a {type(collider.shape).__name__}: it cannot move")
    volume, unit = mass_properties(collider.shape)
    density = WATER if collider.density is None else collider.density
    turn = rotation.to_matrix(collider.quaternion)
    return Mass(density * volume, np.asarray(collider.position, float), density * turn @ unit @ turn.T)


def joined_masses(masses: list[Mass]) -> Mass:
    """Of all of them together."""
    total = sum(one.mass for one in masses)
    centre = sum(one.mass * one.centre for one in masses) / total
    inertia = np.zeros((3, 3))
    for one in masses:
        way = one.centre - centre
        inertia += one.inertia + one.mass * (way @ way * np.eye(3) - np.outer(way, way))
    return Mass(total, np.asarray(centre), inertia)


def _mass(link: Link) -> Mass:
    """A link's mass; what the file leaves open follows from its colliders."""
    given = link.mass
    if given is None:
        return mass_of_colliders(link)
    if not (np.isnan(given.mass) or np.isnan(given.centre).any() or np.isnan(given.inertia).any()):
        return given
    solid = mass_of_colliders(link)
    mass = solid.mass if np.isnan(given.mass) else given.mass
    centre = solid.centre if np.isnan(given.centre).any() else given.centre
    if not np.isnan(given.inertia).any():
        return Mass(mass, centre, given.inertia)
    way = solid.centre - centre
    moved = solid.inertia + solid.mass * (way @ way * np.eye(3) - np.outer(way, way))
    return Mass(mass, centre, moved * mass / solid.mass)


def _add_bodies(scene: Scene, model: Model, groups: Groups, notes: Notes) -> NDArray[np.int64]:
    """Links that move; the bodies' numbers by the links', WORLD where these do not."""
    bodies, made = np.full(len(model.links), WORLD), []
    for number, link in enumerate(model.links):
        if link.motion is not Motion.MOVING:
            continue
        try:
            mass = _mass(link)
            made.append(_Body(link, mass, *_shape_about(link, mass, groups)))
        except LapjointError as error:
            raise notes.refuse(link.where or link.name, str(error)) from None
        bodies[number] = len(made) - 1
    # Bodies of one material, with names or without, are added at once.
    for _, run in groupby(made, lambda body: (body.material, bool(body.link.name))):
        together = list(run)
        _all_at_once(together, lambda some: _add_together(scene, some, groups), lambda one: one.link, notes)
    return bodies


def _all_at_once(
    things: list[_T], add: Callable[[list[_T]], None], named: Callable[[_T], Link | LinkJoint], notes: Notes
) -> None:
    """Add all of them together; where that is refused, one by one, to name the one that it is."""
    try:
        add(things)
    except LapjointError:
        for one in things:
            try:
                add([one])
            except LapjointError as error:
                raise notes.refuse(named(one).where or named(one).name, str(error)) from None


@dataclass(frozen=True)
class _Body:
    """A link with its mass, its shape about its centre, and how that is turned in the link's frame."""

    link: Link
    mass: Mass
    shape: MovingShape
    turn: Array

    @property
    def material(self) -> Material:
        first, (linear, angular) = self.link.colliders[:1], self.link.damping
        surface = first[0].material if first else Material()
        if not (linear or angular):
            return surface
        return replace(surface, linear_damping=linear, angular_damping=angular)

    def bits(self, groups: Groups) -> tuple[int, int]:
        """Group and mask."""
        if not self.link.colliders:
            return UNSEEN, 0
        label = self.link.colliders[0].label
        return int(groups.group[label]), int(groups.mask[label])


def _add_together(scene: Scene, made: list[_Body], groups: Groups) -> None:
    links = [body.link for body in made]
    turns = np.array([link.quaternion for link in links], float)
    centres = np.array([link.position for link in links], float)
    centres += rotation.rotate(turns, np.array([body.mass.centre for body in made], float))
    # A body's frame is that of its one shape, or the link's.
    own = np.array([body.turn for body in made], float)
    axes = rotation.to_matrix(own)
    inertia = axes.transpose(0, 2, 1) @ np.array([body.mass.inertia for body in made], float) @ axes
    group, mask = zip(*(body.bits(groups) for body in made), strict=True)
    scene.add_bodies(
        [body.shape for body in made],
        centres,
        rotation.multiply(turns, own),
        mass=[body.mass.mass for body in made],
        inertia=(inertia + inertia.transpose(0, 2, 1)) / 2,
        material=made[0].material,
        group=group,  # type: ignore[arg-type]
        mask=mask,  # type: ignore[arg-type]
        labels=[link.label for link in links],
        hit_impulse=[link.hit_impulse for link in links],
        hit_speed=[link.hit_speed for link in links],
        touch_events=[link.touch_events for link in links],
        names=[link.name for link in links] if links[0].name else None,
    )


def _shape_about(link: Link, mass: Mass, groups: Groups) -> tuple[MovingShape, Array]:
    """A link's shape about its centre of mass, and how that is turned in the link's frame."""
    straight = np.array([1.0, 0.0, 0.0, 0.0])
    if not link.colliders:
        radius = np.sqrt(2.5 * max(np.trace(mass.inertia) / 3, 0.0) / mass.mass)
        return Sphere(float(max(radius, 1e-3))), straight
    for collider in link.colliders:
        if isinstance(collider.shape, STATIC_ONLY):
            raise LapjointError(f"{collider.where or 'a collider'} is a {type(collider.shape).__name__}: cannot move")
    if len(link.colliders) == 1 and not link.is_whole:
        only = link.colliders[0]
        size = (max(float(np.trace(mass.inertia)), 0.0) / mass.mass) ** 0.5 if mass.mass > 0 else 0.0
        if np.abs(only.position - mass.centre).max() <= ASIDE * max(size, 1e-3):
            return only.shape, np.asarray(only.quaternion, float)  # type: ignore[return-value]
    return Compound.centred(tuple(_parts(link, mass.centre, groups))), straight


def _parts(link: Link, origin: Array, groups: Groups) -> list[Part]:
    """A link's colliders as parts of a compound with this origin. The body has surface and filter of the first; parts
    that have others have their own."""
    found, first = [], link.colliders[0]
    for collider in link.colliders:
        own: dict[str, Any] = {"relative_density": collider.relative_density}
        if collider.material != first.material:
            own["material"] = collider.material
        for name, bits in (("group", groups.group), ("mask", groups.mask)):
            if bits[collider.label] != bits[first.label]:
                own[name] = int(bits[collider.label])
        inner = collider.shape.parts if isinstance(collider.shape, Compound) else (Part(collider.shape),)  # type: ignore[arg-type]
        for part in inner:
            place = collider.position + rotation.rotate(collider.quaternion, part.position) - origin
            turn = rotation.multiply(collider.quaternion, part.quaternion)
            found.append(replace(part, position=tuple(place), quaternion=tuple(turn), **own))
    return found


def _add_static(scene: Scene, link: Link, groups: Groups) -> None:
    """Its colliders one by one: each may be of any shape, and has its own material and filter. What moves as one is
    one compound, where that can be."""
    convex = not any(isinstance(collider.shape, STATIC_ONLY) for collider in link.colliders)
    moves_as_one = link.motion is Motion.KINEMATIC and len(link.colliders) > 1
    if link.colliders and convex and (link.is_whole or moves_as_one):
        first = link.colliders[0]
        shape = Compound.centred(tuple(_parts(link, np.zeros(3), groups)))
        _add_one_static(scene, link, Collider(shape, material=first.material, label=first.label), groups)
        return
    for collider in link.colliders:
        _add_one_static(scene, link, collider, groups)


def _add_one_static(scene: Scene, link: Link, collider: Collider, groups: Groups) -> None:
    place = link.position + rotation.rotate(link.quaternion, collider.position)
    turn = rotation.multiply(link.quaternion, collider.quaternion)
    options: dict[str, Any] = {
        "material": collider.material,
        "group": int(groups.group[collider.label]),
        "mask": int(groups.mask[collider.label]),
        "surface_velocity": link.surface_velocity,
    }
    if link.motion is not Motion.KINEMATIC:
        scene.add_static(collider.shape, place, turn, **options)
        return
    number = scene.add_kinematic(collider.shape, place, turn, **options)
    if link.given_motion is not None:
        scene.motions[number] = link.given_motion


# ---- joints, groups, start ----------------------------------------------------------------------------------------


def _add_joints(scene: Scene, model: Model, bodies: NDArray[np.int64], notes: Notes) -> None:
    for one in model.joints:
        if bodies[one.a] == WORLD:
            raise notes.refuse(one.where or one.name, "holds nothing that moves, expected at least one moving body")
        for link in (one.a, one.b):
            if link != WORLD and model.links[link].motion is Motion.KINEMATIC:
                raise notes.refuse(one.where or one.name, "holds a kinematic body, which no joint can")
    # Equal joints that follow each other are added at once.
    alike = [(one.joint, one.collide, one.anchor_b is None, one.quaternion_b is None) for one in model.joints]
    for _, run in groupby(zip(alike, model.joints, strict=True), lambda pair: pair[0]):
        together = [one for _, one in run]
        _all_at_once(together, lambda some: _join(scene, some, bodies), lambda one: one, notes)


def _join(scene: Scene, joints: list[LinkJoint], bodies: NDArray[np.int64]) -> None:
    first = joints[0]
    # A gear's axes are its own, unless it has frames on both sides.
    has_axes = isinstance(first.joint, Gear) and first.quaternion_b is None
    scene.add_joints(
        first.joint,
        [bodies[one.a] for one in joints],
        [WORLD if one.b == WORLD else bodies[one.b] for one in joints],
        np.array([one.anchor for one in joints]),
        quaternions=None if has_axes else np.array([one.quaternion for one in joints]),
        anchors_b=None if first.anchor_b is None else np.array([one.anchor_b for one in joints]),
        quaternions_b=None if first.quaternion_b is None else np.array([one.quaternion_b for one in joints]),
        collide=first.collide,
    )


def _add_sensors(
    scene: Scene,
    model: Model,
    groups: Groups,
    bodies: NDArray[np.int64],
    statics: NDArray[np.int64],
    notes: Notes,
) -> None:
    for one in model.sensors:
        on, place, turn = None, one.position, one.quaternion
        if one.link != WORLD:
            link = model.links[one.link]
            place = link.position + rotation.rotate(link.quaternion, one.position)
            turn = rotation.multiply(link.quaternion, one.quaternion)
            if link.motion is Motion.MOVING:
                on, table, row = int(bodies[one.link]), scene.bodies, int(bodies[one.link])
            elif link.motion is Motion.KINEMATIC and link.colliders:
                on, table, row = -1 - int(statics[one.link]), scene.statics, int(statics[one.link])
            if on is not None:  # in the body's frame
                back = rotation.conjugate(table.quaternion[row])
                place, turn = rotation.rotate(back, place - table.position[row]), rotation.multiply(back, turn)
        mask = ALL_GROUPS if one.mask is None else one.mask
        if one.mask is None and one.senses is not None:
            mask = int(np.bitwise_or.reduce(groups.group[one.senses], initial=0))
        try:
            scene.add_sensor(one.shape, place, turn, body=on, mask=mask, name=one.name or None)
        except LapjointError as error:
            raise notes.refuse(one.where or one.name, str(error)) from None


def _separate_still_links(model: Model) -> None:
    """Give labels of their own to links that may not touch each other if one of them does not move: only pairs of
    bodies can be ignored."""
    moves = [link.motion is Motion.MOVING for link in model.links]
    apart = [(a, b) for a, b in model.ignored if moves[a] != moves[b]]
    if not apart:
        return
    model.ignored = [(a, b) for a, b in model.ignored if moves[a] and moves[b]]
    before = list(range(len(model.may_touch)))  # of each label, the one that it had
    labels: dict[int, list[int]] = {}
    for number in sorted({link for pair in apart for link in pair}):
        own: dict[int, int] = {}
        for collider in model.links[number].colliders:
            if collider.label not in own:
                own[collider.label] = len(before)
                before.append(collider.label)
            collider.label = own[collider.label]
        labels[number] = list(own.values())
    model.may_touch, model.bits = model.may_touch[np.ix_(before, before)], None
    for a, b in apart:
        for one, other in ((a, b), (b, a)):
            model.may_touch[np.ix_(labels[one], labels[other])] = False
    for sensor in model.sensors:
        sensor.senses = None if sensor.senses is None else sensor.senses[before]


def given_groups(model: Model) -> Groups | None:
    """The groups and masks that the file has, if they let those touch that may."""
    if model.bits is None or len(model.bits) != len(model.may_touch):
        return None
    group, mask = (np.array(bits, np.uint32) for bits in zip(*model.bits, strict=True))
    seen = (group[:, None] & mask[None, :]).astype(bool)
    if not np.array_equal(seen & seen.T, model.may_touch):
        return None
    return Groups(group, mask, np.empty((0, 2), np.int32))


def _label_counts(model: Model) -> NDArray[np.float64]:
    """How many colliders have each label. Those of static bodies count as many: pairs with them cannot be ignored."""
    counts = np.zeros(len(model.may_touch))
    for link in model.links:
        for collider in link.colliders:
            counts[collider.label] += 1.0 if link.motion is Motion.MOVING else 1e6
    return counts


def _ignore(scene: Scene, model: Model, groups: Groups, bodies: NDArray[np.int64], notes: Notes) -> None:
    pairs = {tuple(sorted((int(bodies[a]), int(bodies[b])))) for a, b in model.ignored}
    pairs = {(a, b) for a, b in pairs if a != b and a != WORLD}
    links_of: dict[int, set[int]] = {}
    for number, link in enumerate(model.links):
        for collider in link.colliders:
            links_of.setdefault(collider.label, set()).add(number)
    for one, other in groups.ignored.tolist():
        for a in links_of.get(one, ()):
            for b in links_of.get(other, ()):
                if a == b:
                    continue
                labels = [[collider.label for collider in model.links[link].colliders] for link in (a, b)]
                if model.may_touch[np.ix_(*labels)].any() or WORLD in (bodies[a], bodies[b]):
                    where = model.links[a].where or model.links[a].name
                    raise notes.refuse(
                        where,
                        "the file has more classes of who may touch whom than the 32 that a scene can tell apart; "
                        "expected fewer, or pairs that are excluded one by one",
                    )
                pairs.add(tuple(sorted((int(bodies[a]), int(bodies[b])))))
    if pairs:
        rows = np.array(sorted(pairs))
        scene.ignore(rows[:, 0], rows[:, 1])


def _set_start(scene: Scene, model: Model, bodies: NDArray[np.int64], notes: Notes) -> None:
    """Bodies where they start, with their velocities."""
    states, changed = np.array(scene.states), []
    for number, link in enumerate(model.links):
        body = bodies[number]
        if body == WORLD:
            continue
        moves = link.linear_velocity.any() or link.angular_velocity.any()
        if link.start is None and not moves:
            continue
        changed.append(body)
        if not (np.isfinite(link.linear_velocity).all() and np.isfinite(link.angular_velocity).all()):
            raise notes.refuse(link.where or link.name, "its velocity is not finite, expected numbers")
        if link.start is not None:
            position, quaternion = link.start
            change = rotation.multiply(quaternion, rotation.conjugate(link.quaternion))
            states[body, :3] = position + rotation.rotate(change, states[body, :3] - link.position)
            states[body, 3:7] = rotation.multiply(change, states[body, 3:7])
        states[body, 7:10], states[body, 10:] = link.linear_velocity, link.angular_velocity
    if changed:
        scene.set_states(changed, states[changed])
