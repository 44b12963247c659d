"""Files that fuzzing changes: scenes, files of other programs, checkpoints, recordings."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
from numpy.typing import NDArray

from fuzz_changes import Content, changed, changed_bytes
from fuzz_scenes import DATA, MOST_SWEEPS, Changes, Target, every_joint, every_shape, pile, use
from lapjoint import (
    Checkpoint,
    CheckpointWriter,
    Params,
    Recording,
    RecordingWriter,
    Scene,
    Simulation,
    Sphere,
)
from lapjoint.arrays.packing import pack_arrays, unpack_arrays
from lapjoint.checkpoint.layout import FORMAT, HEAD_SIZE, VERSION, read_checkpoint
from lapjoint.files.read import read_scene
from lapjoint.recording.description import seal, with_checksum
from lapjoint.scene.file import pack_scene, unpack_scene
from lapjoint.scene.serialize import describe_scene, scene_from_bytes


class SceneFiles(Target):
    def __init__(self) -> None:
        self.seeds = [Content(*describe_scene(scene)) for scene in (every_shape(), every_joint(), pile())]

    def attempt(self, seed: int, changes: Changes, folder: Path) -> None:
        content = changed(self.seeds[seed], changes)
        data = changed_bytes(pack_any_scene(content), changes)
        use(scene_from_bytes(Scene, data, "case"))


def pack_any_scene(content: Content) -> bytes:
    description = content.description if isinstance(content.description, dict) else {}
    return pack_scene(description, {name.replace("\0", "0"): array for name, array in content.arrays.items()})


class OtherFiles(Target):
    """glTF is read here alone; MJCF and URDF are read by their own libraries, and then here."""

    def __init__(self) -> None:
        self.seeds = [DATA / "files" / name for name in ("rig.gltf", "kinds.gltf", "rig.xml", "rig.urdf", "arm.xml")]

    def attempt(self, seed: int, changes: Changes, folder: Path) -> None:
        source: Path = self.seeds[seed]
        path, data = folder / f"case{source.suffix}", source.read_bytes()
        if source.suffix == ".gltf":
            content = changed(Content(json.loads(data)), changes)
            data = json.dumps(content.description).encode()
        else:
            data = changed_words(data, changes, IN_QUOTES)
        path.write_bytes(changed_bytes(data, changes))
        use(read_scene(path))


class UsdFiles(Target):
    """Layers of USD as text: read by its own library, and then here."""

    def __init__(self) -> None:
        self.seeds = [(DATA / "files" / name).read_bytes() for name in ("rig.usda", "kinds.usda")]
        os.environ["PXR_WORK_THREAD_LIMIT"] = "1"  # for this process is forked
        use(read_scene(DATA / "files" / "rig.usda"))  # the library maps much before anything is read

    def attempt(self, seed: int, changes: Changes, folder: Path) -> None:
        path = folder / "case.usda"
        path.write_bytes(changed_bytes(changed_words(self.seeds[seed], changes, WORDS_OF_USD), changes))
        use(read_scene(path))


IN_QUOTES = re.compile(rb'(?<=")[^"]*(?=")')
WORDS_OF_USD = re.compile(rb'(?<=")[^"\n]*(?=")|(?<=<)/[^>\n]*(?=>)|-?\b\d[\d.e+-]*|[A-Za-z]+:[A-Za-z:]+|\bdef \w+')
WORDS = [b"0", b"-1", b"1e308", b"nan", b"inf", b"", b"x", b"1 2 3", b"mesh", b"0 0 0", b"2147483648", b"../../etc"]
WORDS += [b"true", b"(0, 0, 0)", b"[]", b"1e-30", b"/", b"None"]


def changed_words(data: bytes, changes: Changes, pattern: re.Pattern[bytes]) -> bytes:
    """A text with words put in place of others, and with lines dropped or moved."""
    for kind, where, what, _ in changes:
        found = list(pattern.finditer(data))
        if kind in ("set", "shift", "copy") and found:
            place = found[where % len(found)]
            word = found[what % len(found)].group() if kind == "copy" else WORDS[what % len(WORDS)]
            data = data[: place.start()] + word + data[place.end() :]
        elif kind in ("drop", "rename"):
            lines = data.split(b"\n")
            line = lines.pop(where % len(lines))
            if kind == "rename":
                lines.insert(what % (len(lines) + 1), line)
            data = b"\n".join(lines)
    return data


# ---- checkpoints -----------------------------------------------------------------------------------------------------


def nested(arrays: dict[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays with those within: of the scene, and of the engines' states; and their descriptions."""
    found: dict[str, NDArray[Any]] = {}
    descriptions: dict[str, Any] = {}
    for name, array in arrays.items():
        if name == "scene":
            descriptions[name], inner = unpack_scene(array.tobytes(), "seed")
        elif name.startswith("workers/") and array.dtype == np.uint8:
            inner, descriptions[name] = unpack_arrays(array.tobytes())
        else:
            found[name] = array
            continue
        found |= {f"{name}|{key}": value for key, value in inner.items()}
    return found, descriptions


def joined(content: Content) -> tuple[dict[str, NDArray[Any]], Any]:
    """The arrays and the description of a checkpoint out of what `nested` made of it."""
    whole = content.description if isinstance(content.description, dict) else {}
    descriptions = whole.get("within")
    descriptions = descriptions if isinstance(descriptions, dict) else {}
    arrays = {name: array for name, array in content.arrays.items() if "|" not in name}
    groups: dict[str, dict[str, NDArray[Any]]] = {name: {} for name in descriptions}
    for name, array in content.arrays.items():
        if "|" in name:
            holder, _, key = name.partition("|")
            groups.setdefault(holder, {})[key] = array
    for name, inner in groups.items():
        if name == "scene":
            data = pack_any_scene(Content(descriptions.get(name), inner))
        else:
            data = b"".join(bytes(part) for part in pack_arrays(inner, descriptions.get(name)))
        arrays[name] = np.frombuffer(data, np.uint8)
    return arrays, whole.get("own")


class CheckpointFiles(Target):
    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for coupling, scene in (("tight", pile()), ("blend", pile()), ("tight", every_joint())):
                with Simulation(scene, Params(workers=2, runtime="inline", coupling=coupling)) as simulation:
                    simulation.step(3)
                    files.append(
                        CheckpointWriter(Path(folder) / f"{coupling}{len(files)}", simulation).save(simulation)
                    )
            self.seeds = [self._content(path) for path in files]

    @staticmethod
    def _content(path: Path) -> Content:
        arrays, description = read_checkpoint(path)
        found, within = nested({name: array.copy() for name, array in arrays.items()})
        return Content({"own": description, "within": within}, found)

    def attempt(self, seed: int, changes: Changes, folder: Path) -> None:
        arrays, description = joined(changed(self.seeds[seed], changes))
        data = b"".join(bytes(part) for part in pack_arrays(arrays, description))
        if not any(kind in ("flip", "cut") for kind, *_ in changes):
            data = changed_bytes(data, changes)  # and the checksum is right
        head = f"{FORMAT} {VERSION} sha256 {hashlib.sha256(data).hexdigest()} size {len(data)}".encode()
        path = folder / "step-000000003.checkpoint"
        path.write_bytes(head.ljust(HEAD_SIZE - 1) + b"\n" + data)
        if any(kind in ("flip", "cut") for kind, *_ in changes):
            path.write_bytes(changed_bytes(path.read_bytes(), changes))
        checkpoint = Checkpoint(path)
        if checkpoint.params.sweeps > MOST_SWEEPS or checkpoint.params.workers > 16:
            return
        with checkpoint.resume(runtime="inline") as simulation:
            simulation.step(2)


# ---- recordings ------------------------------------------------------------------------------------------------------


class Recordings(Target):
    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="lapjoint-fuzz-"))
        self.seeds = [self._made(name) for name in ("blend", "tight", "changing")]
        self._contents = [self._content(path) for path in self.seeds]

    def _made(self, name: str) -> Path:
        """A run with each coupling, and one in which bodies come and go."""
        params = Params(workers=2, runtime="inline", coupling="tight" if name == "tight" else "blend")
        with (
            Simulation(pile(), params) as simulation,
            RecordingWriter(self._folder / name, simulation, contacts=True) as writer,
        ):
            for step in range(6):
                simulation.step()
                writer.add(simulation)
                if step == 2 and name == "changing":
                    simulation.bodies.add(Sphere(0.2), [(5.0, 0.0, 1.0)])
                    simulation.bodies.remove([5])
        return self._folder / name

    def close(self) -> None:
        shutil.rmtree(self._folder)

    @staticmethod
    def _content(path: Path) -> Content:
        description: dict[str, Any] = {}
        arrays: dict[str, NDArray[Any]] = {}
        for file in sorted(path.rglob("*")):
            name = str(file.relative_to(path))
            if file.name == "zarr.json":
                description[name] = json.loads(file.read_bytes())
            elif file.is_file():
                about = json.loads((file.parent / "zarr.json").read_bytes())
                stored = file.read_bytes()[:-4]  # without the checksum
                arrays[name] = np.frombuffer(numcodecs.Blosc().decode(stored), about["data_type"])
        return Content(description, arrays)

    def attempt(self, seed: int, changes: Changes, folder: Path) -> None:
        content = changed(self._contents[seed], changes)
        place = folder / "run"
        written = content.description if isinstance(content.description, dict) else {}
        for name, about in written.items():
            if isinstance(name, str) and name.endswith("zarr.json"):
                if name == "zarr.json" and isinstance(about, dict) and isinstance(about.get("attributes"), dict):
                    about["attributes"] = seal({k: v for k, v in about["attributes"].items() if k != "checksum"})
                self._write(place / name, json.dumps(about).encode(), changes, len(name))
        for name, array in content.arrays.items():
            data = numcodecs.Blosc("lz4", 5, 1).encode(np.ascontiguousarray(array))
            inner = changed_bytes(data, changes) if changes and changes[0][1] % 9 == len(name) % 9 else data
            self._write(place / name, with_checksum(inner), (), 0)  # where bytes are changed, the checksum is right
        look_through(place)

    @staticmethod
    def _write(path: Path, data: bytes, changes: Changes, number: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(changed_bytes(data, changes) if changes and changes[0][1] % 9 == number % 9 else data)


def look_through(path: Path) -> None:
    """Everything that a recording has, as views and reports ask for it."""
    recording = Recording(path)
    scene = recording.scene
    repr(recording.params)
    for i in range(min(recording.frame_count, 3)):
        recording.frame(i), recording.membership(i), recording.weights(i), recording.interface(i)
        recording.static_poses(i), recording.alive(i), recording.joint_alive(i), recording.events(i)
        recording.joint_breaks(i), recording.hits(i), recording.touches(i)
        if recording.has_contacts:
            recording.contacts(i), recording.contacts(i, worker=0)
    if recording.frame_count and scene.body_count:
        recording.track(0), recording.at_time(0.1)
    for columns in (recording.profile, recording.measures):
        for name in columns:
            columns[name].sum()
    recording.living_counts([1, 2])
    repr(recording.incidents)
