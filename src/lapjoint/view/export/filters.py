"""Groups and masks as exporters see them: the pairs of both that are in use."""

from __future__ import annotations

from ...scene import Compound, Scene
from ...scene.filters import ALL_GROUPS

Filter = tuple[int, int]
"""A group and a mask."""
DEFAULT: Filter = (1, ALL_GROUPS)


def may_touch(one: Filter, other: Filter) -> bool:
    return bool(one[0] & other[1]) and bool(other[0] & one[1])


def filters_in_use(scene: Scene, body_count: int) -> list[Filter]:
    """All pairs of a group and a mask that the first bodies, static bodies, or parts of them have."""
    found: set[Filter] = set()
    for table, count in ((scene.bodies, body_count), (scene.statics, scene.static_count)):
        rows = zip(
            table.group[:count].tolist(), table.mask[:count].tolist(), table.shape_id[:count].tolist(), strict=True
        )
        for group, mask, shape_id in set(rows):
            shape = scene.shapes[shape_id]
            if not (isinstance(shape, Compound) and shape.has_filters):
                found.add((group, mask))
                continue
            for part in shape.parts:
                found.add((group if part.group is None else part.group, mask if part.mask is None else part.mask))
    masks = scene.sensors.mask[exported_sensors(scene)].tolist()
    return sorted(found | {(ALL_GROUPS, mask) for mask in masks if mask != ALL_GROUPS})


def exported_sensors(scene: Scene) -> list[int]:
    """Numbers of sensors that files can have: those of one shape."""
    shapes = [scene.shapes[number] for number in scene.sensors.shape_id]
    return [number for number, shape in enumerate(shapes) if not isinstance(shape, Compound)]
