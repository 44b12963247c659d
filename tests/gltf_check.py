"""A strict reading of glTF files, by the rules of the standard, and where nodes are in time."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np

SIZES = {5120: 1, 5121: 1, 5122: 2, 5123: 2, 5125: 4, 5126: 4}
TYPES = {5121: "<u1", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
COLUMNS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}
TOP = {
    *("asset", "scene", "scenes", "nodes", "meshes", "materials", "accessors", "bufferViews", "buffers", "animations"),
    *("extensions", "extensionsUsed", "extensionsRequired", "extras"),
}
NODE = {"name", "children", "translation", "rotation", "scale", "mesh", "extensions", "extras"}


class CheckedGltf:
    """A file whose every rule was checked when it was opened."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        if path.suffix == ".glb":
            self.root, self.binary = self._unpack(content)
        else:
            self.root = json.loads(content, parse_constant=self._no_constant)
            uri = self.root["buffers"][0]["uri"] if "buffers" in self.root else "data:,"
            assert uri.startswith("data:")
            self.binary = base64.b64decode(uri.partition(",")[2], validate=True)
        self._check_top()
        self._check_arrays()
        self._check_nodes()
        self._check_meshes()
        self._check_animations()
        self._check_physics()

    @staticmethod
    def _no_constant(word: str) -> None:
        raise AssertionError(f"{word} in JSON")

    def _unpack(self, content: bytes) -> tuple[dict[str, Any], bytes]:
        magic, version, length = np.frombuffer(content, "<u4", 3).tolist()
        assert (magic, version, length) == (0x46546C67, 2, len(content))
        chunks, place = [], 12
        while place < len(content):
            size, kind = np.frombuffer(content, "<u4", 2, place).tolist()
            assert size % 4 == 0
            chunks.append((kind, content[place + 8 : place + 8 + size]))
            place += 8 + size
        assert place == len(content)
        assert [kind for kind, _ in chunks] in ([0x4E4F534A], [0x4E4F534A, 0x004E4942])
        root = json.loads(chunks[0][1], parse_constant=self._no_constant)
        binary = chunks[1][1] if len(chunks) > 1 else b""
        if binary:
            assert "uri" not in root["buffers"][0]
            assert 0 <= len(binary) - root["buffers"][0]["byteLength"] <= 3
        return root, binary

    def _check_top(self) -> None:
        root = self.root
        assert root["asset"]["version"] == "2.0"
        assert set(root) <= TOP
        for name, value in root.items():
            if isinstance(value, list):
                assert value, f"{name} is empty"
        assert 0 <= root["scene"] < len(root["scenes"])
        used = set(root.get("extensionsUsed", []))
        assert set(root.get("extensions", {})) <= used
        assert set(root.get("extensionsRequired", [])) <= used
        for node in root["nodes"]:
            assert set(node.get("extensions", {})) <= used

    def _check_arrays(self) -> None:
        root = self.root
        assert len(root.get("buffers", [])) <= 1
        for view in root.get("bufferViews", []):
            assert view["buffer"] == 0
            assert view["byteLength"] > 0
            assert view["byteOffset"] + view["byteLength"] <= root["buffers"][0]["byteLength"]
            assert view.get("target", 34962) in (34962, 34963)
        for number, accessor in enumerate(root.get("accessors", [])):
            view = root["bufferViews"][accessor["bufferView"]]
            size = SIZES[accessor["componentType"]]
            start = accessor.get("byteOffset", 0)
            assert accessor["count"] >= 1
            assert (view["byteOffset"] + start) % size == 0, "aligned"
            assert start + accessor["count"] * size * COLUMNS[accessor["type"]] <= view["byteLength"]
            values = self.array(number)
            if accessor["componentType"] == 5126:
                assert np.isfinite(values).all()
            for name, wanted in (("min", values.min(axis=0)), ("max", values.max(axis=0))):
                if name in accessor:
                    assert accessor[name] == wanted.tolist()

    def array(self, number: int) -> np.ndarray:
        accessor = self.root["accessors"][number]
        view = self.root["bufferViews"][accessor["bufferView"]]
        columns, start = COLUMNS[accessor["type"]], view["byteOffset"] + accessor.get("byteOffset", 0)
        flat = np.frombuffer(self.binary, TYPES[accessor["componentType"]], accessor["count"] * columns, start)
        return flat.reshape(-1, columns)

    def _check_nodes(self) -> None:
        nodes = self.root["nodes"]
        self.parent: dict[int, int] = {}
        for number, node in enumerate(nodes):
            assert set(node) <= NODE
            assert node.get("children", [0]), "no empty list"
            for child in node.get("children", []):
                assert 0 <= child < len(nodes)
                assert child not in self.parent, "one parent"
                self.parent[child] = number
            for name, size in (("translation", 3), ("rotation", 4), ("scale", 3)):
                assert len(node.get(name, [0] * size)) == size
            if "rotation" in node:
                assert abs(np.linalg.norm(node["rotation"]) - 1) < 1e-5
            if "mesh" in node:
                assert 0 <= node["mesh"] < len(self.root["meshes"])
        for number in range(len(nodes)):
            above, steps = number, 0
            while above in self.parent:
                above, steps = self.parent[above], steps + 1
                assert steps <= len(nodes), "no cycle"
        for scene in self.root["scenes"]:
            assert all(node not in self.parent for node in scene["nodes"])

    def _check_meshes(self) -> None:
        for mesh in self.root.get("meshes", []):
            for primitive in mesh["primitives"]:
                places = self.root["accessors"][primitive["attributes"]["POSITION"]]
                assert places["type"] == "VEC3"
                assert {"min", "max"} <= set(places)
                indices = self.array(primitive["indices"])
                assert len(indices) % 3 == 0
                assert indices.max() < places["count"]
                views = self.root["bufferViews"]
                assert views[self.root["accessors"][primitive["indices"]]["bufferView"]]["target"] == 34963
                assert views[places["bufferView"]]["target"] == 34962
                if "NORMAL" in primitive["attributes"]:
                    normals = self.array(primitive["attributes"]["NORMAL"])
                    assert len(normals) == places["count"]
                    assert np.abs(np.linalg.norm(normals, axis=1) - 1).max() < 1e-4
                if "material" in primitive:
                    assert 0 <= primitive["material"] < len(self.root["materials"])
        for material in self.root.get("materials", []):
            color = material["pbrMetallicRoughness"]["baseColorFactor"]
            assert len(color) == 4
            assert all(0 <= one <= 1 for one in color)

    def _check_animations(self) -> None:
        for animation in self.root.get("animations", []):
            targets = [(one["target"]["node"], one["target"]["path"]) for one in animation["channels"]]
            assert len(set(targets)) == len(targets), "one channel for each"
            for channel in animation["channels"]:
                sampler = animation["samplers"][channel["sampler"]]
                path = channel["target"]["path"]
                times, values = self.array(sampler["input"]), self.array(sampler["output"])
                assert {"min", "max"} <= set(self.root["accessors"][sampler["input"]])
                assert "target" not in self.root["bufferViews"][self.root["accessors"][sampler["output"]]["bufferView"]]
                assert times[0, 0] >= 0
                assert (np.diff(times[:, 0]) > 0).all()
                assert sampler["interpolation"] in ("LINEAR", "STEP")
                assert values.shape == (len(times), 4 if path == "rotation" else 3)
                if path == "rotation":
                    assert np.abs(np.linalg.norm(values, axis=1) - 1).max() < 1e-5

    def _check_physics(self) -> None:
        extensions = self.root.get("extensions", {})
        rigid = extensions.get("KHR_physics_rigid_bodies", {})
        shapes = extensions.get("KHR_implicit_shapes", {}).get("shapes", [])
        for shape in shapes:
            assert set(shape) == {"type", shape["type"]}
            assert shape["type"] in ("sphere", "box", "capsule", "cylinder", "plane")
        for node in self.root["nodes"]:
            own = node.get("extensions", {}).get("KHR_physics_rigid_bodies", {})
            assert set(own) <= {"motion", "collider", "joint", "trigger"}
            if "collider" in own:
                geometry = own["collider"]["geometry"]
                assert ("shape" in geometry) != ("node" in geometry)
                if "shape" in geometry:
                    assert 0 <= geometry["shape"] < len(shapes)
                else:
                    assert "mesh" in self.root["nodes"][geometry["node"]]
                assert 0 <= own["collider"].get("physicsMaterial", 0) < len(rigid["physicsMaterials"])
            if "joint" in own:
                assert 0 <= own["joint"]["connectedNode"] < len(self.root["nodes"])
                assert 0 <= own["joint"]["joint"] < len(rigid["physicsJoints"])

    # ---- in time -----------------------------------------------------------------------------------------------------

    def matrices(self, time: float) -> np.ndarray:
        """Where nodes are, in the world, (nodes, 4, 4)."""
        local = [
            {name: np.array(node.get(name, default), float) for name, default in DEFAULTS.items()}
            for node in self.root["nodes"]
        ]
        for animation in self.root.get("animations", []):
            for channel in animation["channels"]:
                sampler = animation["samplers"][channel["sampler"]]
                value = self._at(sampler, time, channel["target"]["path"] == "rotation")
                local[channel["target"]["node"]][channel["target"]["path"]] = value
        made: dict[int, np.ndarray] = {}

        def matrix(number: int) -> np.ndarray:
            if number not in made:
                own = _matrix(**local[number])
                made[number] = matrix(self.parent[number]) @ own if number in self.parent else own
            return made[number]

        return np.array([matrix(number) for number in range(len(local))])

    def _at(self, sampler: dict[str, Any], time: float, is_rotation: bool) -> np.ndarray:
        times, values = self.array(sampler["input"])[:, 0].astype(float), self.array(sampler["output"]).astype(float)
        # Times are of single precision.
        before = int(np.clip(np.searchsorted(times, time + 1e-6, side="right") - 1, 0, len(times) - 1))
        after = min(before + 1, len(times) - 1)
        if sampler["interpolation"] == "STEP" or after == before:
            return values[before]
        share = np.clip((time - times[before]) / (times[after] - times[before]), 0, 1)
        mixed = (1 - share) * values[before] + share * values[after]
        return mixed / np.linalg.norm(mixed) if is_rotation else mixed


DEFAULTS = {"translation": [0, 0, 0], "rotation": [0, 0, 0, 1], "scale": [1, 1, 1]}


def _matrix(translation: np.ndarray, rotation: np.ndarray, scale: np.ndarray) -> np.ndarray:
    x, y, z, w = rotation
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    whole = np.eye(4)
    whole[:3, :3], whole[:3, 3] = turn * scale, translation
    return whole
