"""A step in substeps. Readable, one row after the other; native/substeps/ does the same for four constraints at once,
in coordinates in which every body has the mass one.

What a step begins with stays for all of it: arms and normals of contacts, inertia along the world's axes, inverses but
those of joints. In each of S substeps of h = dt / S:

    1. impacts: restitution, pair after pair, where a gap is about to close
    2. v += h a, damping; and all impulses of the last substep again (warm start). A body that carries none of them, as
       in free flight, gets half of h a here and half after it has moved
    3. solve: one sweep over all rows, each a spring that a substep can follow
    4. move: how far bodies have moved and turned since the step began; arms of joints turn with their bodies, and
       the inverses of their matrices are made anew
    5. relax: one sweep over all rows without springs, which takes back the velocity they gave; friction is here only

In a step whose contacts are mostly new there are sixteen sweeps instead of one: there is nothing to start from. Within
each sweep, joints are swept several times where the masses of a structure are unequal, then contacts. With a
tolerance, a step after which contacts overlap by more is solved again from its beginning, in twice as many substeps.
A spring of frequency f and damping ratio z, omega = 2 pi f, takes back the error C
of a row with the mass m:

    a1 = 2 z + h omega;  a2 = h omega a1
    impulse += -m a2 / (1 + a2) (J v + C omega / a1) - impulse / (1 + a2)

Macklin et al. 2019, "Small Steps in Physics Simulation"; Catto 2024, "Solver2D". docs/solvers.md has the method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import cos, pi, sin, sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FIXED = -1
"""In place of a body: what cannot move."""
COLOURS = 64
COLD_SWEEPS = 16  # in a step whose contacts are mostly new
JOINT_SWEEPS = ((90.0, 4), (25.0, 2))  # from which ratio of masses in a structure joints are swept so often
HIT_PASSES, BOUNCE_PASSES = 8, 16  # over a manifold's points
CARRIES = 1 / 64  # of what forces do: a body that carries less is in free flight
IMPACT_PASSES = 8  # over all pairs, until none approaches
TOUCHING = 1e-12  # a gap that has just closed is zero but for rounding: it counts as closed
FAST_SPIN = 1e-3  # [rad] in a substep, from which gyroscopic torques of a body that is held come in each of them
TURN_AT_ONCE, MOST_TURNS = 0.1, 64  # [rad] by which gyroscopic motion is taken at once, and how many of them


def _zeros() -> Array:
    return np.zeros(3)


# ---- what there is -----------------------------------------------------------------------------------------------


@dataclass
class Body:
    """A body's state, and what does not change in a step."""

    position: Array
    axes: Array
    """(3, 3): columns are the principal axes in the world."""
    linear: Array
    angular: Array
    inverse_mass: float
    inverse_inertia: Array
    """(3,) along the principal axes."""
    force: Array = field(default_factory=_zeros)
    torque: Array = field(default_factory=_zeros)
    linear_kept: float = 1.0
    """Share of its velocity that damping leaves after a second."""
    angular_kept: float = 1.0
    gyroscopic: bool = True


@dataclass
class Surface:
    """What cannot be moved, but moves: a kinematic body within a step."""

    position: Array
    linear: Array
    angular: Array
    surface_linear: Array = field(default_factory=_zeros)
    """Of its surface, relative to the body: across normals only. So is the next."""
    surface_angular: Array = field(default_factory=_zeros)

    def velocity_at(self, place: Array) -> Array:
        return np.asarray(self.linear + np.cross(self.angular, place - self.position))

    def along_velocity_at(self, place: Array) -> Array:
        """That of its surface."""
        relative = self.surface_linear + np.cross(self.surface_angular, place - self.position)
        return np.asarray(self.velocity_at(place) + relative)


@dataclass
class Contact:
    """Points of two bodies that touch, or nearly, with one normal."""

    a: int
    b: int
    normal: Array
    """From b to a."""
    places: Array
    """(n, 3), one to four of them."""
    distances: Array
    friction: float
    restitution: float = 0.0
    rolling: float = 0.0
    """Arm of rolling friction."""
    impulses: Array = field(default_factory=lambda: np.zeros(0))
    """(n,) of the last step, and then of this one: sums over its substeps. So are the next two."""
    tangential: Array = field(default_factory=_zeros)
    angular: Array = field(default_factory=_zeros)
    """Of twist and rolling friction."""
    is_new: bool = False
    """Whether it was not there in the last step."""
    surface: Surface | None = None
    """Of the body that cannot be moved, if it moves."""
    shift: Array = field(default_factory=_zeros)
    """Of a contact that a fast body comes to within the step: from where a is to where its places take it to be."""


@dataclass
class BallJoint:
    a: int
    b: int
    place_a: Array
    """The anchor along a's principal axes."""
    place_b: Array
    impulse: Array = field(default_factory=_zeros)
    """Of the last step, and then of this one; along the world's axes."""


@dataclass(frozen=True)
class Softness:
    """A spring that a substep takes in one go."""

    rate: float
    """Share of the error that is taken back as velocity [1/s]."""
    mass_scale: float
    impulse_scale: float

    @staticmethod
    def of(share: float, damping_ratio: float, h: float) -> Softness:
        """`share`: the frequency, as a share of 1 / h."""
        omega_h = 2 * pi * share
        a1 = 2 * damping_ratio + omega_h
        a2 = omega_h * a1
        return Softness(omega_h / (h * a1), a2 / (1 + a2), 1 / (1 + a2))


@dataclass(frozen=True)
class Settings:
    substeps: int = 4
    tolerance: float = 0.0
    """Overlap from which a step takes more substeps [m]; 0: never."""
    max_substeps: int = 64
    contact_share: float = 0.25
    contact_damping: float = 1.0
    joint_share: float = 0.25
    joint_damping: float = 2.0
    push_speed: float = 1.0
    """Most that an overlap is taken back by [m/s]."""
    bounce_speed: float = 0.2
    """From which there is restitution [m/s]."""

    def with_substeps(self, substeps: int) -> Settings:
        """For a step that takes so many. Joints stay as stiff as they were."""
        return replace(self, substeps=substeps, joint_share=self.joint_share * self.substeps / substeps)


# ---- order -------------------------------------------------------------------------------------------------------


def scattered_key(number: int) -> int:
    """A constraint's place in the order: numbers that belong together come out far apart. A sweep that runs along a
    structure feeds slow waves in it."""
    mask = 2**64 - 1
    number = (number + 0x9E3779B97F4A7C15) & mask
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & mask
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & mask
    return number ^ (number >> 31)


def sweep_order(ends: Sequence[tuple[int, int]], kinds: Sequence[int]) -> list[int]:
    """In which order constraints are swept: by colour, then by kind, then as they are given.

    Each has the first colour that none of its bodies has yet, so those of one colour share no body, and native code
    solves four of them side by side. What has no colour left comes last.
    """
    taken: dict[int, set[int]] = {}
    buckets: dict[tuple[int, int], list[int]] = {}
    for i, (pair, kind) in enumerate(zip(ends, kinds, strict=True)):
        movers = [body for body in pair if body != FIXED]
        used = set().union(*(taken.setdefault(body, set()) for body in movers))
        colour = next(c for c in range(COLOURS + 1) if c == COLOURS or c not in used)
        if colour < COLOURS:
            for body in movers:
                taken[body].add(colour)
        buckets.setdefault((colour, kind if colour < COLOURS else 0), []).append(i)
    return [i for _, bucket in sorted(buckets.items()) for i in bucket]


def joint_sweeps(joints: Sequence[BallJoint], bodies: Sequence[Body]) -> int:
    """How often these joints are swept before contacts are: by the heaviest body of a structure of them, against its
    lightest one. Impulses come to what a heavy body at the end of light ones needs only as fast as the light ones'
    masses let them. The structure that needs most decides for all."""
    structures: list[set[int]] = []
    for joint in joints:
        ends = {joint.a, joint.b} - {FIXED}
        met = [structure for structure in structures if structure & ends]
        structures = [structure for structure in structures if not structure & ends] + [ends.union(*met)]
    most = 1
    for structure in structures:
        inverse = [bodies[body].inverse_mass for body in structure if bodies[body].inverse_mass > 0]
        ratio = max(inverse, default=1.0) / min(inverse, default=1.0)
        most = max(most, next((count for above, count in JOINT_SWEEPS if ratio > above), 1))
    return most


def contact_kind(contact: Contact) -> int:
    """Contacts with as many points are swept together; three count as four."""
    special = contact.rolling > 0 or contact.restitution > 0
    return (0, 1, 2, 2)[len(contact.places) - 1] + 4 * special


@dataclass(frozen=True)
class Group:
    """Joints and contacts, by their places in the lists, that are swept one after the other."""

    joints: Sequence[int]
    contacts: Sequence[int]


def groups_of_workers(
    contacts: Sequence[Contact], joints: Sequence[BallJoint], owner: Sequence[int], turns: dict[tuple[int, int], int]
) -> list[Group]:
    """What workers sweep together is what one solver would in this order: what is between two workers comes first, pair
    by pair in their turns, then what each worker has for itself. `owner` is the worker of each body. Contacts and
    joints are in the order of their keys.

    Pairs that have a body in common have different turns. So no other order of pairs in a turn, and of workers, would
    change anything: they can all sweep at the same time.
    """

    def workers(ends: Contact | BallJoint) -> tuple[int, ...]:
        return tuple(sorted({owner[body] for body in (ends.a, ends.b) if body != FIXED}))

    def ordered(members: list[int], ends: Sequence[Contact | BallJoint], kinds: list[int]) -> list[int]:
        order = sweep_order([(ends[i].a, ends[i].b) for i in members], kinds)
        return [members[k] for k in order]

    pairs = sorted(turns, key=lambda pair: (turns[pair], pair))
    groups = []
    for who in [*pairs, *((worker,) for worker in sorted(set(owner)))]:
        touching = [i for i, contact in enumerate(contacts) if workers(contact) == who]
        joined = [i for i, joint in enumerate(joints) if workers(joint) == who]
        kinds = [contact_kind(contacts[i]) for i in touching]
        groups.append(Group(ordered(joined, joints, [0] * len(joined)), ordered(touching, contacts, kinds)))
    return groups


# ---- bodies ------------------------------------------------------------------------------------------------------


def turn_freely(inverse_inertia: Array, duration: float, spin: Array) -> Array:
    """Euler's equations along principal axes: Runge and Kutta's method of fourth order, scaled to keep the energy."""
    inertia = 1 / inverse_inertia
    before = inertia @ spin**2
    if not before > 0:
        return spin
    count = min(MOST_TURNS, int(min(MOST_TURNS, float(np.linalg.norm(spin)) * duration / TURN_AT_ONCE)) + 1)
    h = duration / count

    def change(w: Array) -> Array:
        return -np.cross(w, inertia * w) * inverse_inertia

    for _ in range(count):
        k1 = change(spin)
        k2 = change(spin + h / 2 * k1)
        k3 = change(spin + h / 2 * k2)
        k4 = change(spin + h * k3)
        spin = spin + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.asarray(spin * sqrt(before / (inertia @ spin**2)))


def rotation(turn: Array) -> Array:
    """The matrix of a rotation by a vector."""
    angle = float(np.linalg.norm(turn))
    if angle == 0:
        return np.eye(3)
    x, y, z = turn / angle
    across = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + sin(angle) * across + (1 - cos(angle)) * across @ across)


class _Motion:
    """A body within a step. One that cannot move takes impulses too, and stays."""

    def __init__(self, body: Body | None) -> None:
        self.linear, self.angular = np.zeros(3), np.zeros(3)
        self.moved, self.turned = np.zeros(3), np.zeros(3)  # since the step began
        self.carried = np.zeros((2, 3))  # what constraints did in the last substep
        self.turned_impulses = np.zeros(3)  # what they do more in the next one, since arms have turned
        self.before = np.zeros((2, 3))
        self.late = np.zeros((2, 3))  # what forces do after it has moved
        self.spins = False  # fast, and is held
        self.body = body
        self.position, self.inverse_mass, self.inverse_inertia = np.zeros(3), 0.0, np.zeros((3, 3))
        if body is None:
            return
        self.position, self.inverse_mass = body.position, body.inverse_mass
        self.inverse_inertia = body.axes @ np.diag(body.inverse_inertia) @ body.axes.T
        self.linear, self.angular = body.linear.copy(), body.angular.copy()

    def push(self, impulse: Array, moment: Array) -> None:
        self.linear += self.inverse_mass * impulse
        self.angular += self.inverse_inertia @ moment

    def take_carried(self, timestep: float, h: float) -> None:
        """What rows did so far is taken back, and comes again with each substep. Of a body that turns freely, half of
        what gyroscopic torques do comes here and half after the step: so it keeps its energy."""
        self.end_substep()
        self.linear, self.angular = self.before.copy()
        body = self.body
        if body is None or not body.gyroscopic:
            return
        self.spins = self.carries(h) and float(np.linalg.norm(self.angular)) * h > FAST_SPIN
        if not self.spins:
            self.angular = body.axes @ turn_freely(body.inverse_inertia, timestep / 2, body.axes.T @ self.angular)

    def spin(self, h: float) -> None:
        """Its angular momentum stays in the world, for the axes that it has by now. What that changes its velocity by
        is found with the inertia that all impulses of the step are taken with: so an axle takes away just what is
        across it."""
        if self.body is None or not self.spins:
            return
        axes = rotation(self.turned) @ self.body.axes
        momentum = axes @ ((axes.T @ self.angular) / self.body.inverse_inertia)
        self.angular = self.angular + self.inverse_inertia @ (rotation(-h * self.angular) @ momentum - momentum)

    def pushed(self, h: float) -> Array:
        """What forces do in a substep."""
        if self.body is None:
            return np.zeros((2, 3))
        push = (self.inverse_mass * self.body.force, self.inverse_inertia @ self.body.torque)
        return h * np.stack(push)

    def share_after(self, h: float) -> float:
        """Of what forces do, that comes after the body has moved. In free flight half: so it keeps its energy. A body
        that carries something would creep with it, and a pendulum would gain energy: its arms have turned by then."""
        return 0.0 if self.carries(h) else 0.5

    def carries(self, h: float) -> bool:
        return self.energy(self.carried) > CARRIES**2 * self.energy(self.pushed(h))

    def energy(self, change: Array) -> float:
        """Twice that of a body at rest, when its velocities change so."""
        if self.body is None:
            return 0.0
        along_axes = self.body.axes.T @ change[1]
        mass, inertia = (1 / np.maximum(one, 1e-300) for one in (self.inverse_mass, self.body.inverse_inertia))
        return float(mass * change[0] @ change[0] + inertia @ along_axes**2)

    def coming(self, h: float) -> Array:
        """What velocities change by before the body moves, without new impulses; and in the whole substep."""
        pushed = self.pushed(h)
        return np.stack([(1 - self.share_after(h)) * pushed + self.carried, pushed + self.carried])

    def begin_substep(self, h: float) -> None:
        if self.body is None:
            return
        self.spin(h / 2)
        pushed = self.pushed(h)
        self.late = self.share_after(h) * pushed
        kept = np.array([[self.body.linear_kept**h], [self.body.angular_kept**h]])
        self.before = (np.stack([self.linear, self.angular]) + pushed - self.late) * kept
        self.linear, self.angular = self.before + self.carried

    def move(self, h: float) -> None:
        self.moved += h * self.linear
        self.turned += h * self.angular
        was = self.angular
        self.spin(h / 2)
        self.before[1] += self.angular - was
        self.linear, self.angular = self.linear + self.late[0], self.angular + self.late[1]
        self.before = self.before + self.late

    def end_substep(self) -> None:
        self.carried = np.stack([self.linear, self.angular + self.turned_impulses]) - self.before
        self.turned_impulses = np.zeros(3)

    def finish(self, timestep: float) -> None:
        body = self.body
        if body is None:
            return
        body.position = body.position + self.moved
        body.axes = rotation(self.turned) @ body.axes
        body.linear, body.angular = self.linear, self.angular
        if body.gyroscopic and not self.spins:
            body.angular = body.axes @ turn_freely(body.inverse_inertia, timestep / 2, body.axes.T @ body.angular)


class _Row:
    """One direction in which two bodies must not move apart, or about which they must not turn."""

    def __init__(self, a: _Motion, b: _Motion, along: Array, about_a: Array, about_b: Array) -> None:
        self.a, self.b, self.along, self.about_a, self.about_b = a, b, along, about_a, about_b
        self.inertia = self.response_to(self)
        self.mass = 1 / self.inertia if self.inertia > 0 else 0.0
        self.impulse = 0.0
        self.drift = 0.0  # velocity of a surface that cannot be moved

    @staticmethod
    def at(a: _Motion, b: _Motion, place: Array, along: Array, shift: Array | float = 0.0) -> _Row:
        """Where both are at one place, if body a is shifted."""
        return _Row(a, b, along, np.cross(place - (a.position + shift), along), np.cross(place - b.position, along))

    @staticmethod
    def about(a: _Motion, b: _Motion, axis: Array) -> _Row:
        return _Row(a, b, np.zeros(3), axis, axis)

    def response_to(self, other: _Row) -> float:
        """What this row's velocity changes by when the other one has a unit impulse."""
        straight = (self.a.inverse_mass + self.b.inverse_mass) * (self.along @ other.along)
        turning = self.about_a @ self.a.inverse_inertia @ other.about_a
        return float(straight + turning + self.about_b @ self.b.inverse_inertia @ other.about_b)

    def change_by(self, a: Array, b: Array) -> float:
        """What its velocity changes by when those of the bodies do so."""
        return float(self.along @ (a[0] - b[0]) + self.about_a @ a[1] - self.about_b @ b[1])

    def velocity(self) -> float:
        straight = self.along @ (self.a.linear - self.b.linear)
        return float(straight + self.about_a @ self.a.angular - self.about_b @ self.b.angular) + self.drift

    def displacement(self) -> float:
        """The same of how far bodies have moved since the step began."""
        straight = self.along @ (self.a.moved - self.b.moved)
        return float(straight + self.about_a @ self.a.turned - self.about_b @ self.b.turned)

    def apply(self, impulse: float) -> None:
        self.a.push(impulse * self.along, impulse * self.about_a)
        self.b.push(-impulse * self.along, -impulse * self.about_b)

    def set_impulse(self, impulse: float) -> None:
        self.apply(impulse - self.impulse)
        self.impulse = impulse


class _Across:
    """Two rows with one bound on both: friction, or rolling friction."""

    def __init__(self, first: _Row, second: _Row) -> None:
        self.rows = (first, second)
        matrix = np.array([[one.response_to(other) for other in self.rows] for one in self.rows])
        self.inverse = np.linalg.inv(matrix) if np.linalg.det(matrix) > 0 else np.zeros((2, 2))

    def wanted(self, before: Array, limit: float) -> Array:
        wanted = before - self.inverse @ [row.velocity() for row in self.rows]
        size = float(np.linalg.norm(wanted))
        return np.asarray(wanted * (limit / size if size > limit else 1.0))

    def sweep(self, limit: float) -> None:
        wanted = self.wanted(np.array([row.impulse for row in self.rows]), limit)
        for row, impulse in zip(self.rows, wanted, strict=True):
            row.set_impulse(float(impulse))

    def apply(self, limit: float) -> None:
        """Beside what their impulses are."""
        for row, impulse in zip(self.rows, self.wanted(np.zeros(2), limit), strict=True):
            row.apply(float(impulse))


# ---- constraints -------------------------------------------------------------------------------------------------


def tangent_of(normal: Array) -> Array:
    """A direction across a normal; which one does not matter, if it is the same for the same normal."""
    x, y, z = normal
    tangent = np.array([0.0, z, -y] if abs(x) < 0.6 else [-z, 0.0, x])
    return np.asarray(tangent / np.linalg.norm(tangent))


class _ContactRows:
    def __init__(self, contact: Contact, a: _Motion, b: _Motion, settings: Settings, h: float) -> None:
        self.contact, self.settings, self.h = contact, settings, h
        fixed = FIXED in (contact.a, contact.b)
        share, damping = settings.contact_share, settings.contact_damping
        self.soft = Softness.of(2 * share, damping / 2, h) if fixed else Softness.of(share, damping, h)
        normal = contact.normal
        self.points = [_Row.at(a, b, place, normal, contact.shift) for place in contact.places]
        self.gaps = np.array(contact.distances, float)
        middle = contact.places.mean(axis=0)
        self.lever = float(np.linalg.norm(contact.places - middle, axis=1).mean()) if len(self.points) > 1 else 0.0
        first = tangent_of(normal)
        across = (first, np.cross(normal, first))
        self.slide = _Across(*(_Row.at(a, b, middle, direction, contact.shift) for direction in across))
        self.twist = _Row.about(a, b, normal)
        self.roll = _Across(*(_Row.about(a, b, direction) for direction in across))
        if contact.surface is not None:
            self._let_drift(contact.surface, middle)
        # Impulses are those of the last substep.
        for point, impulse in zip(self.points, contact.impulses, strict=True):
            point.impulse = impulse / settings.substeps
        for row in self.slide.rows:
            row.impulse = float(row.along @ contact.tangential) / settings.substeps
        if self.lever > 0:
            self.twist.impulse = float(self.twist.about_a @ contact.angular) / settings.substeps
        if contact.rolling > 0:
            for row in self.roll.rows:
                row.impulse = float(row.about_a @ contact.angular) / settings.substeps

    def _let_drift(self, surface: Surface, middle: Array) -> None:
        """Have rows see how the surface moves. Rolling friction does not see what only its surface does."""
        sign = -1.0 if self.contact.b == FIXED else 1.0
        for point, place in zip(self.points, self.contact.places, strict=True):
            point.drift = sign * float(point.along @ surface.velocity_at(place))
        for row in self.slide.rows:
            row.drift = sign * float(row.along @ surface.along_velocity_at(middle))
        self.twist.drift = sign * float(self.twist.about_a @ (surface.angular + surface.surface_angular))
        for row in self.roll.rows:
            row.drift = sign * float(row.about_a @ surface.angular)

    def move(self, h: float) -> None:
        """The surface moves on by a substep: gaps to it change by themselves."""
        self.gaps += [h * point.drift for point in self.points]

    @property
    def rows(self) -> list[_Row]:
        return [*self.points, *self.slide.rows, self.twist, *self.roll.rows]

    def sweep_points(self, has_bias: bool, order: int = 1) -> float:
        """Sweep its points there (1) or back (-1): the largest change of a point's velocity."""
        largest = 0.0
        for point, distance in list(zip(self.points, self.gaps, strict=True))[::order]:
            gap = distance + point.displacement()
            speed, before = point.velocity(), point.impulse
            if not has_bias and before == 0 and self.contact.restitution > 0 and self.is_hit(speed):
                continue  # an impact of the next substep, which needs its speed
            if has_bias and gap <= TOUCHING:
                # What the load on it has pushed it in by is no overlap to be slow about.
                held = self.soft.impulse_scale / self.soft.mass_scale * point.inertia * before
                bias = max(self.soft.rate * gap, -(self.settings.push_speed + held))
                change = -self.soft.mass_scale * point.mass * (speed + bias)
                after = before + change - self.soft.impulse_scale * before
            else:  # an open gap may close within the substep
                after = before - point.mass * (speed + max(gap, 0.0) / self.h)
            point.set_impulse(max(after, 0.0))
            largest = max(largest, abs(point.impulse - before) * point.inertia)
        return largest

    def sweep_normals(self, has_bias: bool) -> None:
        largest = self.sweep_points(has_bias)
        # A hit has nothing to start from, and the first points would take it all: there and back until it is even.
        for _ in range(HIT_PASSES if len(self.points) > 1 else 0):
            if largest <= self.settings.bounce_speed / 2:
                break
            largest = max(self.sweep_points(has_bias, order) for order in (-1, 1))

    def sweep_friction(self) -> None:
        pressure = sum(point.impulse for point in self.points)
        limit = self.contact.friction * pressure
        if self.lever > 0:
            most = limit * self.lever
            wanted = self.twist.impulse - self.twist.mass * self.twist.velocity()
            self.twist.set_impulse(min(max(wanted, -most), most))
        if self.contact.rolling > 0:
            self.roll.sweep(self.contact.rolling * pressure)
        self.slide.sweep(limit)

    def solve(self) -> None:
        self.sweep_normals(has_bias=True)

    def relax(self) -> None:
        self.sweep_normals(has_bias=False)
        self.sweep_friction()

    def is_hit(self, speed: float) -> bool:
        return -speed > self.settings.bounce_speed

    def impact(self) -> bool:
        """Restitution, where points come fast and their gaps close within the substep; whether there was any."""
        speeds = np.array([point.velocity() for point in self.points])
        fast = np.array([self.is_hit(speed) for speed in speeds])
        if not self.contact.restitution > 0 or not fast.any():
            return False
        gaps = self.gaps + [point.displacement() for point in self.points]
        a, b = self.points[0].a.coming(self.h), self.points[0].b.coming(self.h)
        at_once, whole = (np.array([point.change_by(a[k], b[k]) for point in self.points]) for k in range(2))
        closes = gaps + self.h * (speeds + at_once) < 0
        if not (closes & fast).any():
            return False
        # As fast as it will be at the surface, a share of that back, and up to where it is now.
        square, fall = self.contact.restitution**2, 2 / self.h * whole * np.maximum(gaps, 0)
        after = np.sqrt(np.maximum(square * np.maximum(speeds**2 - fall, 0) + fall, 0))
        wanted = np.where(fast, after, -self.contact.restitution * speeds)
        impulses = self.part(closes, speeds, wanted)
        self.rub(float(impulses.sum()))
        return True

    def part(self, closes: NDArray[np.bool_], speeds: Array, wanted: Array) -> Array:
        """Impulses after which points have these velocities, or larger ones."""
        impulses = np.zeros(len(self.points))
        for turn in range(BOUNCE_PASSES if len(self.points) > 1 else 1):
            for k in list(np.flatnonzero(closes))[:: -1 if turn % 2 else 1]:
                point = self.points[k]
                before = impulses[k]
                impulses[k] = max(before + point.mass * (wanted[k] - point.velocity()), 0.0)
                point.apply(impulses[k] - before)
        if len(self.points) == 1:
            return impulses
        # Passes leave something undone. As a whole the impact has the restitution that it should; energy never rises.
        now = np.array([point.velocity() for point in self.points])
        change = float(impulses @ (now - speeds))
        if not change > 0:
            return impulses
        scale = min(float(impulses @ (wanted - speeds)), -2 * float(impulses @ speeds)) / change
        for point, impulse in zip(self.points, impulses, strict=True):
            point.apply((scale - 1) * float(impulse))
        return scale * impulses

    def rub(self, pressure: float) -> None:
        """Friction of an impact: what its impulse allows, and nothing of it stays."""
        limit = self.contact.friction * pressure
        if self.lever > 0:
            most = limit * self.lever
            self.twist.apply(min(max(-self.twist.mass * self.twist.velocity(), -most), most))
        if self.contact.rolling > 0:
            self.roll.apply(self.contact.rolling * pressure)
        self.slide.apply(limit)

    def overlap(self) -> float:
        """The deepest of its points, now."""
        gaps = zip(self.points, self.gaps, strict=True)
        return max(-(float(gap) + point.displacement()) for point, gap in gaps)

    def store(self) -> None:
        contact, substeps = self.contact, self.settings.substeps
        contact.impulses = substeps * np.array([point.impulse for point in self.points])
        contact.tangential = substeps * sum((row.impulse * row.along for row in self.slide.rows), np.zeros(3))
        contact.angular = substeps * sum(
            (row.impulse * row.about_a for row in (self.twist, *self.roll.rows)), np.zeros(3)
        )


class _BallRows:
    """Three rows along the world's axes, solved together."""

    def __init__(self, joint: BallJoint, a: _Motion, b: _Motion, settings: Settings, h: float) -> None:
        self.joint, self.a, self.b, self.substeps = joint, a, b, settings.substeps
        self.soft = Softness.of(settings.joint_share, settings.joint_damping, h)
        self.arm_a, self.arm_b = (
            place if motion.body is None else motion.body.axes @ place
            for motion, place in ((a, joint.place_a), (b, joint.place_b))
        )
        self.rows = [_Row(a, b, x, np.cross(self.arm_a, x), np.cross(self.arm_b, x)) for x in np.eye(3)]
        self.inverse = self.find_inverse()
        for row, impulse in zip(self.rows, joint.impulse, strict=True):
            row.impulse = impulse / settings.substeps

    def find_inverse(self) -> Array:
        """For the arms as they are. An arm across which a light body turns easily has another direction soon: with the
        inverse of a moment before, an update would go too far."""
        return np.asarray(np.linalg.inv([[one.response_to(other) for other in self.rows] for one in self.rows]))

    def error(self) -> Array:
        """How far the anchors are apart; they turn with their bodies, exactly."""
        ends = [
            motion.position + motion.moved + rotation(motion.turned) @ arm
            for motion, arm in ((self.a, self.arm_a), (self.b, self.arm_b))
        ]
        return np.asarray(ends[0] - ends[1])

    def turn(self) -> None:
        """Turn arms with their bodies; the inverse is made anew. Impulses come again with the new arms. With the old
        ones, whatever turns would lose speed to its joints."""
        arm_a, arm_b = (rotation(end.turned) @ arm for end, arm in ((self.a, self.arm_a), (self.b, self.arm_b)))
        for row, direction in zip(self.rows, np.eye(3), strict=True):
            about_a, about_b = np.cross(arm_a, direction), np.cross(arm_b, direction)
            self.a.turned_impulses += self.a.inverse_inertia @ (row.impulse * (about_a - row.about_a))
            self.b.turned_impulses -= self.b.inverse_inertia @ (row.impulse * (about_b - row.about_b))
            row.about_a, row.about_b = about_a, about_b
        self.inverse = self.find_inverse()

    def change(self, by: Array) -> None:
        for row, one in zip(self.rows, by, strict=True):
            row.set_impulse(row.impulse + float(one))

    def solve(self) -> None:
        impulse = np.array([row.impulse for row in self.rows])
        speed = np.array([row.velocity() for row in self.rows])
        wanted = self.inverse @ (speed + self.soft.rate * self.error())
        self.change(-self.soft.mass_scale * wanted - self.soft.impulse_scale * impulse)

    def relax(self) -> None:
        self.change(-self.inverse @ [row.velocity() for row in self.rows])

    def store(self) -> None:
        self.joint.impulse = self.substeps * np.array([row.impulse for row in self.rows])


# ---- a step ------------------------------------------------------------------------------------------------------


def step(
    bodies: Sequence[Body],
    contacts: Sequence[Contact],
    joints: Sequence[BallJoint],
    timestep: float,
    settings: Settings | None = None,
    groups: Sequence[Group] = (),
) -> int:
    """Take one step: bodies get their states after it, contacts and joints their impulses. Returns how many substeps it
    took.

    Joints and contacts are swept in the order they are given in, joints first: see `sweep_order`; joints as often as
    `joint_sweeps` says. With groups, one group after the other is swept so: see `groups_of_workers`.
    """
    settings = settings or Settings()
    groups = groups or [Group(range(len(joints)), range(len(contacts)))]
    substeps = settings.substeps
    solved = _Solved(bodies, contacts, joints, timestep, settings, groups)
    while 0 < settings.tolerance < solved.overlap() and substeps < settings.max_substeps:
        substeps = min(2 * substeps, settings.max_substeps)
        solved = _Solved(bodies, contacts, joints, timestep, settings.with_substeps(substeps), groups)
    solved.finish()
    return substeps


class _Solved:
    """A step, solved. Bodies, contacts and joints are what they were until it is finished."""

    def __init__(
        self,
        bodies: Sequence[Body],
        contacts: Sequence[Contact],
        joints: Sequence[BallJoint],
        timestep: float,
        settings: Settings,
        groups: Sequence[Group],
    ) -> None:
        h = timestep / settings.substeps
        motions = [_Motion(body) for body in bodies]
        fixed = _Motion(None)

        def motion(number: int) -> _Motion:
            return fixed if number == FIXED else motions[number]

        balls = [_BallRows(joint, motion(joint.a), motion(joint.b), settings, h) for joint in joints]
        touching = [_ContactRows(contact, motion(contact.a), motion(contact.b), settings, h) for contact in contacts]
        constraints: list[_BallRows | _ContactRows] = []
        for group in groups:
            constraints += [balls[i] for i in group.joints] * joint_sweeps([joints[i] for i in group.joints], bodies)
            constraints += [touching[i] for i in group.contacts]
        new_count = sum(contact.is_new for contact in contacts)
        sweep_count = COLD_SWEEPS if 2 * new_count > len(touching) else 1

        for each in motions:
            each.before = np.stack([each.linear, each.angular])
        every: list[_BallRows | _ContactRows] = [*balls, *touching]
        for constraint in every:
            for row in constraint.rows:
                row.apply(row.impulse)
        for each in motions:
            each.take_carried(timestep, h)

        self.touching = [touching[i] for group in groups for i in group.contacts]
        for _ in range(settings.substeps):
            for _ in range(IMPACT_PASSES):
                hits = [contact.impact() for contact in self.touching]  # of all of them: each changes what others see
                if not any(hits):
                    break
            for each in motions:
                each.begin_substep(h)
            for _ in range(sweep_count):
                for constraint in constraints:
                    constraint.solve()
            for each in motions:
                each.move(h)
            for contact in touching:
                contact.move(h)
            for ball in balls:
                ball.turn()
            for _ in range(sweep_count):
                for constraint in constraints:
                    constraint.relax()
            for each in motions:
                each.end_substep()
        self.timestep, self.motions, self.constraints = timestep, motions, every

    def overlap(self) -> float:
        """The deepest of any contact."""
        return max((contact.overlap() for contact in self.touching), default=0.0)

    def finish(self) -> None:
        for constraint in self.constraints:
            constraint.store()
        for each in self.motions:
            each.finish(self.timestep)
