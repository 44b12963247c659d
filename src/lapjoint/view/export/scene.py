"""What a player needs of a scene besides the frames: surfaces, static bodies, planes, light and camera."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import rotation
from ..draw.colors import to_linear
from ..draw.light import lights
from ..draw.renderer import STATIC_COLOR
from ..draw.stage import Stage

_ASPECT = 16 / 9


def scene_parts(stage: Stage, tables: Sequence[ArrayLike]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What is written in words, and what is written as arrays; the page opens with a view of these states."""
    scene, batch, count = stage.scene, stage.batch, stage.body_count
    opening = [stage.places(states) for states in tables]
    focus = [stage.focus(places) for places in opening]
    near = np.concatenate([places.positions[wanted] for places, wanted in zip(opening, focus, strict=True)])
    radii = batch.radii[np.any(focus, axis=0)]
    wanted = np.any(focus, axis=0) | ~np.any([places.shown for places in opening], axis=0)  # or will be there
    camera = stage.default_camera(tables, _ASPECT)
    key, fill = lights(stage.default_camera([scene.states], _ASPECT))
    near = near if len(near) else np.zeros((1, 3))
    middle = (near.min(axis=0) + near.max(axis=0)) / 2
    radius = np.linalg.norm(np.ptp(near, axis=0)) / 2 + radii.max(initial=0.0 if len(radii) else 1.0)
    surfaces = batch.surfaces()
    # A browser draws without a first vertex: indices count from the first of all vertices.
    firsts = np.repeat(surfaces[:, 3], surfaces[:, 1])
    head = {
        "body_count": count,
        "row_count": len(batch.models),
        "surfaces": [
            {"kind": kind, "first_index": first, "index_count": size} for kind, size, first, _ in surfaces.tolist()
        ],
        "models": [{"first": first, "sizes": sizes} for first, sizes in batch.levels()],
        "camera": {
            "eye": list(camera.eye),
            "target": list(camera.target),
            "fov": camera.fov,
            "narrowest": stage.narrowest(camera, tables, _ASPECT),
        },
        "light": key.tolist(),
        "fill_light": fill.tolist(),
        "static_color": to_linear(STATIC_COLOR).tolist(),
        "focus": {"middle": middle.tolist(), "radius": float(radius)},
        "planes": [_plane(scene.statics.position[row], scene.statics.quaternion[row]) for row in batch.plane_ids],
    }
    arrays: dict[str, NDArray[Any]] = {
        "vertices": batch.vertices.astype("<f4"),
        "indices": (batch.indices.reshape(-1) + firsts).astype("<u4"),
        "scales": batch.scales.astype("<f4"),
        "models": batch.models.astype("<u4"),
        "radii": batch.radii.astype("<f4"),
        "wanted": wanted.astype(np.uint8),
        "static_positions": opening[0].positions[count:].astype("<f8"),
        "static_quaternions": opening[0].quaternions[count:].astype("<f4"),
    }
    return head, arrays


def _plane(position: NDArray[np.float64], quaternion: NDArray[np.float64]) -> dict[str, list[float]]:
    normal = rotation.rotate(quaternion, [0.0, 0.0, 1.0])
    return {"position": position.tolist(), "quaternion": quaternion.tolist(), "normal": normal.tolist()}
