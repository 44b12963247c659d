"""A scene from a file of any format that lapjoint reads; its ending says which."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..errors import FileWarning, LapjointError, shortened
from ..scene import Scene
from ..scene.bonds import is_bond
from ..system.files import check_file
from .build import build_scene
from .gltf import read_gltf
from .mjcf import read_mjcf
from .model import Model
from .notes import Notes
from .usd import read_usd

READERS: dict[str, Callable[[Path, Notes], Model]] = {
    ".xml": read_mjcf,
    ".mjcf": read_mjcf,
    ".urdf": read_mjcf,
    ".usd": read_usd,
    ".usda": read_usd,
    ".usdc": read_usd,
    ".usdz": read_usd,
    ".gltf": read_gltf,
    ".glb": read_gltf,
}
"""By ending, in lower case. All other files are scenes of lapjoint's own."""
WITH_KEYFRAMES = (".xml", ".mjcf")
MOST_TEXT = 1000
"""Letters of an error: names and values in it are the file's own."""


def read_scene(path: str | Path, *, keyframe: str | int | None = None) -> Scene:
    """The scene in a file: MJCF, URDF, USD, glTF, or one that `Scene.save` has written. What could not be read exactly
    is a warning each; `read_with_notes` returns it instead."""
    scene, notes = read_with_notes(path, keyframe=keyframe)
    for line in notes.lines():
        warnings.warn(f"{notes.path}: {line}", FileWarning, stacklevel=2)
    return scene


def read_with_notes(path: str | Path, *, keyframe: str | int | None = None) -> tuple[Scene, Notes]:
    """The scene in a file, and what was read, approximated and left out."""
    path = Path(path)
    notes, ending = Notes(path), path.suffix.lower()
    if keyframe is not None and ending not in WITH_KEYFRAMES:
        raise LapjointError(f"{path}: a keyframe is given, expected an MJCF file: others have none")
    check_file(path)
    if ending not in READERS:
        scene = Scene.load(path)
        bonds = int(is_bond(scene.joints).sum())
        counts = {
            "bodies": scene.body_count,
            "joints": scene.joint_count,
            "bonds": bonds,
            "glued bodies": len(scene.glued),
        }
        for what, count in counts.items():
            notes.count(what, count)
        return scene, notes
    try:
        with np.errstate(all="ignore"):  # numbers that are too large are refused where they are used
            model = READERS[ending](path, notes) if keyframe is None else read_mjcf(path, notes, keyframe)
            return build_scene(model, notes), notes
    except LapjointError as error:
        text = shortened(error, MOST_TEXT)
        raise (LapjointError(text) if path.name in text else notes.refuse("", text)) from None
