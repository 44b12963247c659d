"""The arrays of a glTF file: buffers within the file or its folder, and meshes made of them."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from ..system.foreign import read_foreign
from ..system.shortage import reason
from .gltf_entries import entry_of
from .notes import Notes

COMPONENTS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
COLUMNS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
TRIANGLES = 4


class Buffers:
    """Read when they are asked for; no file outside the folder is."""

    def __init__(self, root: dict[str, Any], binary: bytes, notes: Notes) -> None:
        self._root, self._binary, self._notes = root, binary, notes
        self._read: dict[int, bytes] = {}

    def mesh(self, number: int, where: str) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """All triangles of a mesh: points, and the three of each."""
        points, triangles, count = [], [], 0
        for part in entry_of(self._root, "meshes", number, where, self._notes)["primitives"]:
            if part.get("mode", TRIANGLES) != TRIANGLES:
                raise self._notes.refuse(where, "a mesh that is not made of triangles")
            own = self.accessor(part["attributes"]["POSITION"], where).astype(float)
            corners = (
                np.arange(len(own)) if "indices" not in part else self.accessor(part["indices"], where).reshape(-1)
            )
            if len(corners) % 3 or (len(corners) and corners.max() >= len(own)):
                raise self._notes.refuse(where, "a mesh whose triangles name points that it does not have")
            points.append(own)
            triangles.append(corners.astype(np.int64).reshape(-1, 3) + count)
            count += len(own)
        return np.concatenate(points), np.concatenate(triangles).astype(np.int32)

    def accessor(self, number: int, where: str) -> NDArray[Any]:
        """A table of numbers."""
        accessor = entry_of(self._root, "accessors", number, where, self._notes)
        if "sparse" in accessor or "bufferView" not in accessor:
            raise self._notes.refuse(f"accessor {number}", "is sparse, expected a plain one")
        view = entry_of(self._root, "bufferViews", accessor["bufferView"], f"accessor {number}", self._notes)
        data = self._buffer(view["buffer"], f"bufferView {accessor['bufferView']}")
        dtype, columns = np.dtype(COMPONENTS[accessor["componentType"]]), COLUMNS[accessor["type"]]
        count, row = int(accessor["count"]), dtype.itemsize * columns
        stride = int(view.get("byteStride", row)) or row
        begin, offset = int(view.get("byteOffset", 0)), int(accessor.get("byteOffset", 0))
        end = min(begin + int(view["byteLength"]), len(data))
        if min(count, begin, offset) < 0 or stride < row or begin + offset + stride * max(count - 1, 0) + row > end:
            raise self._notes.refuse(f"accessor {number}", "reaches beyond its buffer")
        return np.ndarray((count, columns), dtype, data, begin + offset, (stride, dtype.itemsize)).copy()

    def _buffer(self, number: int, where: str) -> bytes:
        if number not in self._read:
            entry = entry_of(self._root, "buffers", number, where, self._notes)
            self._read[number] = self._load(entry, f"buffer {number}")
        return self._read[number]

    def _load(self, entry: dict[str, Any], where: str) -> bytes:
        uri = entry.get("uri")
        if uri is None:
            return self._binary
        if uri.startswith("data:"):
            try:
                return base64.b64decode(uri.partition(",")[2], validate=True)
            except binascii.Error:
                raise self._notes.refuse(where, "its data is not base64") from None
        folder = self._notes.path.resolve().parent
        found = (folder / unquote(uri)).resolve()
        if "://" in uri or not found.is_relative_to(folder):
            raise self._notes.refuse(where, f"names {uri!r}, which is outside the folder {folder}")
        try:
            return read_foreign(found, within=folder)
        except OSError as error:
            raise self._notes.refuse(where, f"{uri}: {reason(error)}") from None
