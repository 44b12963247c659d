"""The nodes of a glTF scene: a tree, and where each of them is in the world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from .notes import Notes

Array = NDArray[np.float64]
UP = rotation.from_axis_angle((1.0, 0.0, 0.0), np.pi / 2)
"""From y up to z up."""


class Nodes:
    """The nodes that a scene has, parents before children. A node of no size is not there, nor what is below it: the
    standard has it so."""

    def __init__(self, entries: list[dict[str, Any]], roots: Sequence[int], notes: Notes) -> None:
        self.entries, self._notes = entries, notes
        self._local = _local_transforms(entries, self.where, notes)
        self.parent: dict[int, int] = {}
        depths = self._find(roots)
        self.order = [node for depth in depths for node in depth]
        count = len(entries)
        self.position, self.scale = np.zeros((count, 3)), np.ones((count, 3))
        self.quaternion = np.tile(UP, (count, 1))
        for depth, nodes in enumerate(depths):
            self._place(np.array(nodes, int), depth > 0)

    def __contains__(self, node: int) -> bool:
        return node in self.parent

    def where(self, node: int) -> str:
        """How messages call a node."""
        name = self.entries[node].get("name")
        return f"node {node} ({name!r})" if name else f"node {node}"

    def _find(self, roots: Sequence[int]) -> list[list[int]]:
        """Nodes by depth."""
        depths, level = [], [(int(root), -1) for root in roots]
        while level:
            found = []
            for node, parent in level:
                if not 0 <= node < len(self.entries):
                    raise self._notes.refuse(f"node {parent}", f"names node {node}, and there are {len(self.entries)}")
                if node in self.parent:
                    raise self._notes.refuse(self.where(node), "is below two nodes, or below itself: expected a tree")
                if self._local[2][node].any():
                    self.parent[node] = parent
                    found.append(node)
            depths.append(found)
            level = [(int(child), node) for node in found for child in self.entries[node].get("children", [])]
        return depths

    def _place(self, nodes: NDArray[np.int64], has_parents: bool) -> None:
        if not len(nodes):
            return
        position, quaternion, scale = (column[nodes] for column in self._local)
        bad = nodes[~(scale > 0).all(axis=1)]
        if len(bad):
            values = self._local[2][bad[0]].tolist()
            raise self._notes.refuse(self.where(int(bad[0])), f"its scale is {values}, expected positive numbers")
        above = np.array([self.parent[int(node)] for node in nodes])
        size = self.scale[above] if has_parents else np.ones((len(nodes), 3))
        turn = self.quaternion[above] if has_parents else np.tile(UP, (len(nodes), 1))
        base = self.position[above] if has_parents else np.zeros((len(nodes), 3))
        stretched = np.ptp(size, axis=1) > 1e-6 * size.max(axis=1)
        skew = nodes[stretched & (np.abs(quaternion[:, 1:]).max(axis=1) > 1e-6)]
        if len(skew):
            where = self.where(int(skew[0]))
            raise self._notes.refuse(where, "is turned within a frame that is stretched, expected even scales")
        self.position[nodes] = base + rotation.rotate(turn, size * position)
        self.quaternion[nodes] = rotation.multiply(turn, quaternion)
        self.scale[nodes] = size * scale


def _local_transforms(entries: list[dict[str, Any]], where: Any, notes: Notes) -> tuple[Array, Array, Array]:
    """Positions, quaternions w x y z and scales of all nodes in their parents' frames."""
    count = len(entries)
    positions, turns, scales = np.zeros((count, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (count, 1)), np.ones((count, 3))
    for node, entry in enumerate(entries):
        if "matrix" in entry:
            matrix = np.array(entry["matrix"], float).reshape(4, 4).T
            scale = np.linalg.norm(matrix[:3, :3], axis=0)
            if scale.any() and not (scale > 0).all():
                raise notes.refuse(where(node), f"its scale is {scale.tolist()}, expected positive numbers")
            turn = matrix[:3, :3] / np.where(scale > 0, scale, 1.0)
            if scale.any() and (np.abs(turn.T @ turn - np.eye(3)).max() > 1e-4 or np.linalg.det(turn) < 0):
                raise notes.refuse(where(node), "its matrix shears or mirrors, expected a turn and positive scales")
            positions[node], scales[node] = matrix[:3, 3], scale
            turns[node] = np.roll(rotation.from_matrix(turn), -1) if scale.any() else turns[node]
            continue
        for table, name in ((positions, "translation"), (turns, "rotation"), (scales, "scale")):
            if name in entry:
                table[node] = entry[name]
    lengths = np.linalg.norm(turns, axis=1)
    for node in np.flatnonzero(~(np.abs(lengths - 1) < 1e-3)).tolist():
        raise notes.refuse(where(node), f"its rotation is {turns[node].tolist()}, expected a unit quaternion")
    for node in np.flatnonzero(~(np.isfinite(positions).all(axis=1) & np.isfinite(scales).all(axis=1))).tolist():
        raise notes.refuse(where(node), "its place is not finite")
    return positions, np.roll(turns / lengths[:, None], 1, axis=1), scales
