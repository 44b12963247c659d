"""Glue: pieces that are one rigid body until something hits it hard enough, and bodies of their own from then on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import rotation
from ..arrays.checks import is_finite
from ..errors import LapjointError
from ..scene import Compound, Fixed, Part, Scene
from ..scene.shapes import mass_properties
from .bonds import bond_strength
from .pieces import Pieces

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Glued:
    """A body that is made of pieces, and what becomes of it."""

    body: int
    """Its number."""
    pieces: Pieces
    density: float
    strength: float | None
    """Of the bonds that hold the pieces then [N/m^2]; None: nothing does."""
    impulse: float
    """What a contact has to do within a step for that [N s]."""
    options: dict[str, Any]
    """Of the body, and of the pieces too."""

    @property
    def masses(self) -> Array:
        """Of the pieces [kg]."""
        return self.density * np.array([mass_properties(shape)[0] for shape in self.pieces.shapes])

    @property
    def places(self) -> Array:
        """Centres of mass of the pieces, from that of the body, in its frame."""
        masses = self.masses
        return np.asarray(self.pieces.positions - masses @ self.pieces.positions / masses.sum())


def add_glued(
    scene: Scene,
    pieces: Pieces,
    *,
    impulse: float,
    strength: float | None = None,
    position: ArrayLike = (0.0, 0.0, 0.0),
    quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    density: float = 1000.0,
    linear_velocity: ArrayLike = (0.0, 0.0, 0.0),
    angular_velocity: ArrayLike = (0.0, 0.0, 0.0),
    **options: Any,
) -> Glued:
    """Add pieces to a scene as one rigid body, the shape's frame at `position` and `quaternion`. It comes apart after a
    step in which one contact did `impulse` [N s] or more, once `Glue` has it; with a `strength` [N/m^2] the pieces are
    then held by bonds as `add_pieces` makes them, and these break by what they bear. Options are those of add_bodies.
    """
    for name, value in (
        ("impulse", impulse),
        ("strength", 1.0 if strength is None else strength),
        ("density", density),
    ):
        if not (is_finite(value) and value > 0):
            raise LapjointError(f"add_glued: {name} is {value}, expected a positive number")
    parts = [
        Part(inner.shape, tuple(place + inner.position), inner.quaternion)
        for shape, place in zip(pieces.shapes, pieces.positions, strict=True)
        for inner in (shape.parts if isinstance(shape, Compound) else (Part(shape),))
    ]
    glued = Glued(scene.body_count, pieces, density, strength, impulse, options)
    masses, places = glued.masses, glued.places
    inertia = np.zeros((3, 3))
    for shape, mass, place in zip(pieces.shapes, masses, places, strict=True):
        volume, tensor = mass_properties(shape)
        inertia += tensor * (mass / volume) + mass * (place @ place * np.eye(3) - np.outer(place, place))
    turn = np.asarray(quaternion, float)
    centre = np.asarray(position, float) + rotation.rotate(turn, pieces.positions[0] - places[0])
    scene.add_body(
        Compound(tuple(parts)),
        centre,
        turn,
        mass=float(masses.sum()),
        inertia=inertia,
        linear_velocity=linear_velocity,
        angular_velocity=angular_velocity,
        hit_impulse=impulse,
        **options,
    )
    return glued


class Living(Protocol):
    """A simulation, as far as glue needs one."""

    @property
    def alive(self) -> NDArray[np.bool_]: ...
    @property
    def hits(self) -> Any: ...
    def states_of(self, body_ids: ArrayLike) -> Array: ...
    def add_bodies(self, shape: Any, positions: ArrayLike, quaternions: ArrayLike, **options: Any) -> range: ...
    def add_joints(
        self, joint: Any, bodies_a: ArrayLike, bodies_b: ArrayLike, anchors: ArrayLike, **options: Any
    ) -> range: ...
    def remove_bodies(self, body_ids: ArrayLike) -> None: ...
    def on_step(self, callback: Callable[[Any], None]) -> None: ...


class Glue:
    """Lets glued bodies of a simulation come apart when they are hit.

    >>> glue = fracture.Glue(simulation, [glued])
    >>> simulation.step(100)
    >>> glue.pieces_of(glued)  # numbers of its pieces; None while it is whole
    """

    def __init__(self, simulation: Living, glued: Sequence[Glued]) -> None:
        self._glued = {one.body: one for one in glued if simulation.alive[one.body]}
        self._pieces: dict[int, range] = {}
        self._seen = len(simulation.hits)
        simulation.on_step(self._after_step)

    def pieces_of(self, glued: Glued) -> range | None:
        """Numbers of the pieces of a body that has come apart."""
        return self._pieces.get(glued.body)

    def _after_step(self, simulation: Living) -> None:
        hits = simulation.hits
        if len(hits) < self._seen:  # it was restarted
            self._seen = 0
            self._pieces.clear()
        new, self._seen = hits.taken(slice(self._seen, None)), len(hits)
        for body in np.unique(new.bodies[new.bodies >= 0]).tolist():
            one = self._glued.get(body)
            if one is not None and body not in self._pieces and simulation.alive[body]:
                largest = new.impulse[(new.bodies == body).any(axis=1)].max()
                if largest >= one.impulse:
                    self._pieces[body] = take_apart(simulation, one)


def take_apart(simulation: Living, glued: Glued) -> range:
    """Replace a glued body by its pieces, each with the velocity that it had as a part of it: mass, momentum and
    angular momentum stay. Returns their numbers."""
    state = simulation.states_of([glued.body])[0]
    turn = state[3:7] / np.linalg.norm(state[3:7])
    pieces, places = glued.pieces, glued.places
    arms = rotation.rotate(np.broadcast_to(turn, (len(places), 4)), places)
    bodies = simulation.add_bodies(
        list(pieces.shapes),
        state[:3] + arms,
        turn,
        linear_velocities=state[7:10] + np.cross(state[10:], arms),
        angular_velocities=state[10:],
        mass=glued.masses,
        **glued.options,
    )
    if glued.strength is not None and len(pieces.bonds):
        anchors = pieces.anchors - pieces.positions[0] + places[0]
        anchors = state[:3] + rotation.rotate(np.broadcast_to(turn, (len(anchors), 4)), anchors)
        a, b = bodies[0] + pieces.bonds.astype(np.int64).T
        bears = [bond_strength(area, glued.strength) for area in pieces.areas.tolist()]
        simulation.add_joints(Fixed(), b, a, anchors, breaks=bears)
    simulation.remove_bodies([glued.body])
    return bodies
