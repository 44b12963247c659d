"""What a peer must offer: another engine from the registry that runs the same scene.

A peer is made with a scene, the states to start from, the parameters of the run (it takes the timestep from them) and
one setting of its ladder. `check` raises for what it cannot map, by name, before anything starts; `unfair` lists what
it leaves out or does differently.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ...engines.mapping import pieces
from ...engines.support import surface_features
from ...errors import LapjointError, did_you_mean
from ...params import Params
from ...scene import Scene
from ...scene.bonds import can_break
from ...scene.joints import JointKind, counts_turns
from ...scene.shapes import StaticShape

Array = NDArray[np.float64]

_PEERS = {"mujoco": "MujocoPeer", "rapier": "RapierPeer", "box3d": "Box3DPeer"}
PEER_NAMES = tuple(_PEERS)


@dataclass(frozen=True)
class Setting:
    """One rung of a peer's ladder: how much work it puts into a step."""

    title: str
    work: int
    """About how many sweeps a step takes; only the time left depends on it."""
    values: dict[str, Any] = field(default_factory=dict)
    threads: int = 1
    """That share a step."""


class Peer(Protocol):
    """One world of another engine, with all bodies of the scene."""

    name: ClassVar[str]
    package: ClassVar[str]
    """In the registry, and the module that is imported."""
    precision: ClassVar[str]
    most_threads: ClassVar[int]
    """How many threads can share a step."""

    def __init__(self, scene: Scene, states: Array, params: Params, setting: Setting) -> None: ...

    @staticmethod
    def check(scene: Scene) -> None:
        """Refuse a scene that cannot be mapped, by the joint's or the shape's name."""
        ...

    @staticmethod
    def ladder(scene: Scene, params: Params) -> list[Setting]:
        """Settings from the cheapest to the most accurate. `params` are those of the run, resolved."""
        ...

    @staticmethod
    def unfair(scene: Scene) -> list[str]:
        """What makes the comparison unfair, to either side, on this scene."""
        ...

    def step(self, count: int = 1) -> None:
        """Go on by `count` timesteps."""
        ...

    def states(self) -> Array:
        """States of all bodies, (body_count, 13), as a scene has them."""
        ...

    def penetration(self) -> float:
        """The deepest penetration by the engine's own contacts of the last step [m]."""
        ...

    def close(self) -> None:
        """Free the world."""
        ...


# ---- by name -----------------------------------------------------------------------------------------------------


def load_peer(name: str) -> type[Peer]:
    """The peer of that name. Unknown or not installed: LapjointError."""
    if name not in _PEERS:
        hint = did_you_mean(name, PEER_NAMES)
        raise LapjointError(f"no peer named {name!r}{hint}; known peers: {', '.join(PEER_NAMES)}")
    peer: type[Peer] = getattr(importlib.import_module(f".{name}", __package__), _PEERS[name])
    if importlib.util.find_spec(peer.package) is None:
        missing = f"peer {name} needs the package {peer.package}, which is not installed"
        raise LapjointError(f"{missing}: pip install {peer.package}")
    return peer


# ---- refusals ----------------------------------------------------------------------------------------------------


def refuse_shapes(peer: str, scene: Scene, reason: Callable[[StaticShape], str | None]) -> None:
    """Refuse the first body whose shape has a reason against it."""
    for title, shape_ids in (("body", scene.bodies.shape_id), ("static body", scene.statics.shape_id)):
        for shape_id in np.unique(shape_ids):
            shape = scene.shapes[shape_id]
            if (why := reason(shape)) is not None:
                first = int(np.flatnonzero(shape_ids == shape_id)[0])
                raise LapjointError(
                    f"scene {scene.name!r}: {title} {first} is a {type(shape).__name__}, which the peer {peer} "
                    f"cannot take: {why}"
                )


def missing_shape(shape: StaticShape, *missing: type) -> str | None:
    """The reason against a shape, or a compound of one, that a peer does not have."""
    kinds = {type(piece) for piece, _, _ in pieces(shape)}
    found = sorted(kind.__name__ for kind in kinds & {*missing})
    return f"it has no {found[0]}" if found else None


def refuse_surfaces(peer: str, scene: Scene) -> None:
    """Refuse parts with something of their own, and rules by which contacts combine surfaces."""
    for _, what in surface_features(scene):
        raise LapjointError(f"scene {scene.name!r}: {what}, which the peer {peer} does not map")


def refuse_joints(peer: str, scene: Scene, kinds: Collection[JointKind], limits: bool = False) -> None:
    """Refuse the first joint that is of another kind, or has a motor, a spring or (unless `limits`) limits."""
    joints, counted = scene.joints, counts_turns(scene.joints)
    known = ", ".join(joint_title(kind) for kind in kinds)
    for joint in range(scene.joint_count):
        kind = JointKind(joints.kind[joint])
        title = f"scene {scene.name!r}: joint {joint} is a {joint_title(kind)}"
        if kind not in kinds:
            raise LapjointError(f"{title}, which the peer {peer} does not have; it has {known}")
        lower, upper = joints.lower[joint], joints.upper[joint]
        limited = (lower < upper) & (np.isfinite(lower) | np.isfinite(upper))
        for has, what in (
            ((joints.motor_max_force[joint] > 0).any(), "a motor"),
            ((joints.spring_stiffness[joint] > 0).any(), "a spring"),
            ((joints.drive_max_force[joint] > 0).any(), "a drive"),
            ((joints.friction[joint] > 0).any(), "friction"),
            (kind is JointKind.BALL and limited.any(), "limits"),
            (counted[joint], "an angle counted over turns"),
            (not limits and limited.any(), "limits"),
        ):
            if has:
                raise LapjointError(f"{title} with {what}, which the peer {peer} does not map")


def joint_title(kind: JointKind) -> str:
    """Ball, Hinge and so on."""
    return kind.name.title().replace("_", "")


# ---- notes -------------------------------------------------------------------------------------------------------


def left_out_notes(scene: Scene) -> list[str]:
    """What no peer is given."""
    rolling = int((scene.bodies.rolling_friction > 0).sum() + (scene.statics.rolling_friction > 0).sum())
    breaking = int(can_break(scene.joints).sum())
    notes = [f"rolling friction of {rolling} bodies is left out"] if rolling else []
    return [*notes, f"{breaking} joints that can break do not"] if breaking else notes


def hinge_note(scene: Scene) -> list[str]:
    """For peers that hold a hinge by two ball joints."""
    count = int((scene.joints.kind == JointKind.HINGE).sum())
    return [f"{count} hinges are two ball joints each, on the hinge's axis"] if count else []
