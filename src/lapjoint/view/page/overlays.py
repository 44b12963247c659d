"""Overlays: joints, contacts, the constraint graph and pulls, as lines between bodies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import viser
from numpy.typing import NDArray

from ...scene import WORLD
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

    def __init__(self, server: viser.ViserServer) -> None:
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
        self._show("joints", joint_lines(snapshot) if wanted.joints else None)
        self._show("contacts", center_lines(states, snapshot.touching()) if wanted.contacts else None)
        inner, interface = None, None
        if wanted.graph:
            edges = graph_edges(snapshot)
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


def joint_edges(snapshot: Snapshot) -> Ids:
    """Pairs of bodies with a joint between them that holds, (n, 2)."""
    joints = snapshot.scene.joints
    inner = snapshot.joint_alive & (joints.body_b != WORLD)
    return np.stack([joints.body_a[inner], joints.body_b[inner]], axis=1)


def graph_edges(snapshot: Snapshot) -> Ids:
    """Edges of the constraint graph, (n, 2), each once."""
    both = np.concatenate([joint_edges(snapshot), snapshot.touching()])
    return np.unique(np.sort(both, axis=1), axis=0)


def edge_is_interface(snapshot: Snapshot, draft: Ids | None, edges: Ids) -> NDArray[np.bool_]:
    """Which edges have ends with different workers."""
    if draft is not None:
        return is_interface(draft, edges)
    member = snapshot.is_member
    return np.asarray((member[edges[:, 0]] != member[edges[:, 1]]).any(axis=1))


def joint_lines(snapshot: Snapshot) -> Array:
    """From body a's centre to the joint, and from there to body b's, (n, 2, 3) [m], of joints that hold."""
    joints, states = snapshot.scene.joints, snapshot.states
    ids = np.flatnonzero(snapshot.joint_alive)
    at_a, at_b = anchors(snapshot.scene, states, ids)
    inner = joints.body_b[ids] != WORLD
    first = np.stack([states[joints.body_a[ids], :3], at_a], axis=1)
    return np.concatenate([first, np.stack([at_b[inner], states[joints.body_b[ids[inner]], :3]], axis=1)])


def center_lines(states: Array, edges: Ids) -> Array:
    """From centre to centre, (n, 2, 3) [m]."""
    return states[edges, :3]
