"""Overlays: joints, contacts, the constraint graph and pulls, as lines between bodies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import viser
from numpy.typing import NDArray

from ...scene import WORLD, Scene
from .bodies import anchors
from .by_hand import is_interface
from .snapshot import Snapshot

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
COLORS = {
    "joints": (0.05, 0.45, 0.55),
    "contacts": (0.90, 0.45, 0.05),
    "graph": (0.30, 0.33, 0.38),
    "interface": (0.85, 0.05, 0.12),
    "pulls": (0.80, 0.05, 0.55),
}
_WIDTH = {"joints": 2.5, "contacts": 2.5, "graph": 1.5, "interface": 3.5, "pulls": 4.0}


@dataclass
class Wanted:
    """Which overlays are shown."""

    joints: bool = False
    contacts: bool = False
    graph: bool = False

    def any(self) -> bool:
        return self.joints or self.contacts or self.graph


class Overlays:
    """Lines on a page."""

    def __init__(self, server: viser.ViserServer, scene: Scene, body_count: int) -> None:
        self._scene, self._body_count = scene, body_count
        self._handles = {
            name: server.scene.add_line_segments(
                f"/overlays/{name}",
                np.zeros((1, 2, 3)),
                COLORS[name],
                thickness=_WIDTH[name],
                thickness_units="screen",
                visible=False,
            )
            for name in COLORS
        }

    def update(self, snapshot: Snapshot, wanted: Wanted, draft: Ids | None) -> None:
        """Show the lines of this moment. Interface edges are those of the draft, if it is shown, else edges whose ends
        have different workers."""
        states = snapshot.states
        self._show("joints", joint_lines(self._scene, states) if wanted.joints else None)
        touching = snapshot.touching()
        self._show("contacts", center_lines(states, touching) if wanted.contacts else None)
        inner, interface = None, None
        if wanted.graph:
            edges = graph_edges(self._scene, touching)
            across = edge_is_interface(snapshot, draft, edges)
            inner, interface = center_lines(states, edges[~across]), center_lines(states, edges[across])
        self._show("graph", inner)
        self._show("interface", interface)
        self._show("pulls", snapshot.pull_lines)

    def _show(self, name: str, lines: Array | None) -> None:
        handle = self._handles[name]
        if lines is not None and len(lines):
            handle.points = lines.astype(np.float32)
            handle.visible = True
        else:
            handle.visible = False


def joint_edges(scene: Scene) -> Ids:
    """Pairs of bodies with a joint between them, (n, 2)."""
    joints = scene.joints
    inner = joints.body_b != WORLD
    return np.stack([joints.body_a[inner], joints.body_b[inner]], axis=1)


def graph_edges(scene: Scene, touching: Ids) -> Ids:
    """Edges of the constraint graph, (n, 2), each once."""
    both = np.concatenate([joint_edges(scene), touching])
    return np.unique(np.sort(both, axis=1), axis=0)


def edge_is_interface(snapshot: Snapshot, draft: Ids | None, edges: Ids) -> NDArray[np.bool_]:
    """Which edges have ends with different workers."""
    if draft is not None:
        inside = (edges < len(draft)).all(axis=1)
        across = np.zeros(len(edges), bool)
        across[inside] = is_interface(draft, edges[inside])
        return across
    member = snapshot.is_member
    return np.asarray((member[edges[:, 0]] != member[edges[:, 1]]).any(axis=1))


def joint_lines(scene: Scene, states: Array) -> Array:
    """From body a's centre to the joint, and from there to body b's, (n, 2, 3) [m]."""
    at_a, at_b = anchors(scene, states)
    inner = scene.joints.body_b != WORLD
    first = np.stack([states[scene.joints.body_a, :3], at_a], axis=1)
    return np.concatenate([first, np.stack([at_b[inner], states[scene.joints.body_b[inner], :3]], axis=1)])


def center_lines(states: Array, edges: Ids) -> Array:
    """From centre to centre, (n, 2, 3) [m]."""
    return states[edges, :3]
