"""Who may touch whom: groups and masks as collision groups, one for each pair of a group and a mask in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pxr import Sdf

from ....files import usd_words as words
from ....scene import Compound, Scene
from ....scene.content import ignored_explicitly
from ..filters import DEFAULT, Filter, may_touch
from .layer import Prim, Types, add_apis, add_prim, numbered, put, relate
from .shapes import part_names


def filters_of(scene: Scene, body_count: int, bodies: Sequence[Any], statics: Sequence[Any]) -> dict[Filter, list[Any]]:
    """What has which group and mask: paths of bodies, or of their colliders where these differ."""
    found: dict[Filter, list[Any]] = {}
    for table, paths, count in ((scene.bodies, bodies, body_count), (scene.statics, statics, scene.static_count)):
        groups, masks, shape_ids = table.group.tolist(), table.mask.tolist(), table.shape_id.tolist()
        for i in range(count):
            shape, own = scene.shapes[shape_ids[i]], (groups[i], masks[i])
            if not (isinstance(shape, Compound) and shape.has_filters):
                found.setdefault(own, []).append(paths[i])
                continue
            for name, part in zip(part_names(shape), shape.parts, strict=True):
                mine = tuple(
                    had if given is None else given for had, given in zip(own, (part.group, part.mask), strict=True)
                )
                found.setdefault((mine[0], mine[1]), []).append(paths[i].AppendChild(name))
    return found


def add_filters(parent: Prim, found: dict[Filter, list[Any]]) -> None:
    """Collision groups: all may touch unless they are filtered. None where all may."""
    if set(found) <= {DEFAULT}:
        return
    kinds = sorted(found)
    prims = {
        kind: add_prim(parent, numbered("group", k, len(kinds)), "PhysicsCollisionGroup", ["CollectionAPI:colliders"])
        for k, kind in enumerate(kinds)
    }
    for kind, prim in prims.items():
        relate(prim, "collection:colliders:includes", found[kind])
        apart = [prims[other].path for other in kinds if not may_touch(kind, other)]
        if apart:
            relate(prim, "physics:filteredGroups", apart)
        put(prim, words.GROUP, Types.UInt, kind[0], uniform=True)
        put(prim, words.MASK, Types.UInt, kind[1], uniform=True)


def add_filtered_pairs(layer: Sdf.Layer, scene: Scene, bodies: Sequence[Any], count: int) -> None:
    """Pairs of bodies that pass through each other."""
    pairs = np.sort(ignored_explicitly(scene), axis=1)
    apart: dict[int, list[int]] = {}
    for a, b in np.unique(pairs, axis=0).tolist():
        if b < count:
            apart.setdefault(a, []).append(b)
    for a, others in apart.items():
        prim = layer.GetPrimAtPath(bodies[a])
        add_apis(prim, ["PhysicsFilteredPairsAPI"])
        relate(prim, "physics:filteredPairs", [bodies[b] for b in others])
