"""Detection on the server: the contacts of the whole scene, as the paper's main server finds them (section 5.4)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .engines import Contacts, make_engine
from .errors import PenetrationWarning
from .messages import StepReply
from .params import Params
from .scene import Scene

Array = NDArray[np.float64]

DEEP = 0.1
"""Share of a body's bounding radius beyond which a penetration at the start is worth a warning."""


class ServerDetector:
    """An engine that holds all bodies and never steps."""

    def __init__(self, scene: Scene, params: Params) -> None:
        self._engine = make_engine(scene, params)
        self._all = np.arange(scene.body_count, dtype=np.int32)
        self._engine.activate(self._all, scene.states)

    def detect(self, states: Array) -> Contacts:
        self._engine.set_states(self._all, states)
        self._engine.detect()
        return self._engine.contacts()


def merge_contacts(replies: Sequence[StepReply]) -> Contacts:
    """The workers' contacts as one list; a contact that two workers have counts once."""
    bodies = np.concatenate([reply.contact_bodies for reply in replies])
    points = np.concatenate([reply.contact_point_count for reply in replies])
    depth = np.concatenate([reply.contact_depth for reply in replies])
    if len(replies) > 1:
        _, first = np.unique(bodies, axis=0, return_index=True)
        bodies, points, depth = bodies[first], points[first], depth[first]
    return Contacts(bodies, points, depth)


def warn_of_penetration(scene: Scene, contacts: Contacts) -> None:
    """Warn if bodies start deep inside each other, and name the worst pair."""
    if len(contacts) == 0:
        return
    radii = scene.bounding_radii()
    a, b = contacts.bodies.T
    smaller = np.where(b >= 0, np.minimum(radii[a], radii[np.maximum(b, 0)]), radii[a])
    share = contacts.depth / smaller
    worst = int(np.argmax(share))
    if share[worst] <= DEEP:
        return
    other = scene.body_title(b[worst]) if b[worst] >= 0 else f"static body {-1 - b[worst]}"
    count = int((share > DEEP).sum())
    warnings.warn(
        f"scene {scene.name!r}: {scene.body_title(a[worst])} starts {contacts.depth[worst]:.3g} m deep inside {other}"
        + (f" ({count} pairs are deep inside each other)" if count > 1 else "")
        + "; they will be pushed apart",
        PenetrationWarning,
        stacklevel=4,
    )
