"""Glue: what becomes of a body that comes apart when something hits it hard enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from ..arrays.columns import Columns
from .bonds import DIRECTIONS, Bonds
from .file import describe_shape, restore_shape
from .materials import COMBINE_RULES, Material
from .shapes import STATIC_ONLY, MovingShape

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

PIECE_ARRAYS: dict[str, tuple[int, ...]] = {"places": (3,), "masses": ()}
BOND_ARRAYS: dict[str, tuple[int, ...]] = {
    "pairs": (2,),
    "anchors": (3,),
    "turns": (4,),
    "stiffness": (4,),
    "section": (4,),
    "reach": (DIRECTIONS,),
    "strength": (3,),
}
GLUED_ARRAYS = (*PIECE_ARRAYS, *BOND_ARRAYS)
"""Of each glued body in a file."""
BOND_VALUES = ("is_elastic", "damping_time", "load_time")


@dataclass(frozen=True, eq=False)
class Glued:
    """A body that is made of pieces, and what becomes of it. Each piece has the body's surface, group and label."""

    body: int
    """Its number."""
    impulse: float
    """What a contact has to do within a step for it to come apart [N s]."""
    shapes: tuple[MovingShape, ...]
    """The pieces'."""
    places: Array
    """(n, 3) their centres of mass, from that of the body, in its frame."""
    masses: Array
    """(n,) of the pieces [kg]."""
    pairs: Ids
    """(m, 2) pieces that bonds hold together from then on."""
    anchors: Array
    """(m, 3) middles of these bonds, from the body's centre of mass, in its frame."""
    turns: Array
    """(m, 4) quaternions of their frames, in the body's."""
    bonds: Bonds

    def __len__(self) -> int:
        return len(self.shapes)

    def pieces(self, state: Array, bodies: Columns) -> dict[str, Any]:
        """The pieces where the body is, each with the velocity that it has as a part of it: options of add_bodies."""
        turn = state[3:7] / np.linalg.norm(state[3:7])
        arms = _turned(turn, self.places)
        own = {name: column[self.body] for name, column in bodies.views().items()}
        material = Material(
            **{name: float(own[name]) for name in ("friction", "restitution", "rolling_friction")},
            **{name: float(own[name]) for name in ("linear_damping", "angular_damping")},
            friction_combine=COMBINE_RULES[int(own["friction_combine"])],
            restitution_combine=COMBINE_RULES[int(own["restitution_combine"])],
        )
        return {
            "shape": list(self.shapes),
            "positions": state[:3] + arms,
            "quaternions": turn,
            "linear_velocities": state[7:10] + np.cross(state[10:], arms),
            "angular_velocities": state[10:],
            "mass": self.masses,
            "material": material,
            **{name: own[name] for name in ("group", "mask", "hit_speed", "touch_events")},
            "labels": own["label"],
        }

    def joints(self, state: Array, first: int) -> dict[str, Any]:
        """The bonds of pieces that are numbered from `first` on: options of add_joints."""
        turn = state[3:7] / np.linalg.norm(state[3:7])
        return {
            "bodies_a": first + self.pairs[:, 1],
            "bodies_b": first + self.pairs[:, 0],
            "anchors": state[:3] + _turned(turn, self.anchors),
            "quaternions": rotation.multiply(np.broadcast_to(turn, (len(self.turns), 4)), self.turns),
            "bonds": self.bonds,
        }


def _turned(turn: Array, vectors: Array) -> Array:
    return np.asarray(rotation.rotate(np.broadcast_to(turn, (len(vectors), 4)), vectors))


def pack_glued(every: Sequence[Glued], arrays: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """Glued bodies as JSON; their arrays are added to `arrays`."""
    found = []
    for i, one in enumerate(every):
        for name in GLUED_ARRAYS:
            arrays[f"glued/{i}/{name}"] = getattr(one if hasattr(one, name) else one.bonds, name)
        shapes = [describe_shape(shape, f"glued/{i}/shape/{k}", arrays) for k, shape in enumerate(one.shapes)]
        values = {name: getattr(one.bonds, name) for name in BOND_VALUES}
        found.append({"body": one.body, "impulse": one.impulse, "shapes": shapes, **values})
    return found


def unpack_glued(
    entries: Sequence[Mapping[str, Any]], arrays: Mapping[str, NDArray[Any]], trusted: bool
) -> list[Glued]:
    """What `pack_glued` has packed; a ValueError, TypeError or KeyError if it is nothing of the kind."""
    found = []
    for i, entry in enumerate(entries):
        shapes = tuple(restore_shape(one, dict(arrays), trusted) for one in entry["shapes"])
        own = {name: arrays[f"glued/{i}/{name}"] for name in GLUED_ARRAYS}
        for name, columns in {**PIECE_ARRAYS, **BOND_ARRAYS}.items():
            rows = len(shapes) if name in PIECE_ARRAYS else len(own["pairs"])
            if own[name].shape != (rows, *columns) or not np.isfinite(own[name]).all():
                raise ValueError(f"glued/{i}/{name}")
        bonds = Bonds(own["stiffness"], own["section"], own["reach"], own["strength"], **_values(entry))
        rest = {name: own[name] for name in (*PIECE_ARRAYS, "pairs", "anchors", "turns")}
        found.append(Glued(int(entry["body"]), float(entry["impulse"]), shapes, bonds=bonds, **rest))  # type: ignore[arg-type]
    return found


def _values(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "is_elastic": bool(entry["is_elastic"]),
        "damping_time": float(entry["damping_time"]),
        "load_time": float(entry["load_time"]),
    }


def check_glued(every: Sequence[Glued], body_count: int) -> None:
    """Refuse, with a ValueError, what cannot have been glued."""
    for i, one in enumerate(every):
        count, bonds = len(one.shapes), one.bonds
        numbers = (one.impulse, one.masses, bonds.stiffness, bonds.section[:, :1], bonds.strength)
        pairs_fit = not len(one.pairs) or (one.pairs.min() >= 0 and one.pairs.max() < count)
        if (
            not (0 <= one.body < body_count and count and pairs_fit)
            or any(isinstance(shape, STATIC_ONLY) for shape in one.shapes)
            or not all((np.asarray(values) > 0).all() for values in numbers)
            or not 0 <= min(bonds.damping_time, bonds.load_time) <= max(bonds.damping_time, bonds.load_time) < np.inf
            or not (one.pairs[:, 0] != one.pairs[:, 1]).all()
        ):
            raise ValueError(f"glued body {i}")
