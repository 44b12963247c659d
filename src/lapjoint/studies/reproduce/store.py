"""Parts that are complete, kept in files: what is there and was made the same way is not run again."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...errors import LapjointError
from ...params import Params
from ...recording import Recording
from ...recording.origin import core_count, machine, versions
from ...system.foreign import MOST_DESCRIPTION, read_foreign
from ...system.shortage import reason
from ..bench.rows import changed_params
from .plan import Part, RunPart

FORMAT = 1
"""Of the files; another one is as good as none."""


@dataclass(frozen=True)
class Origin:
    """Where results come from, and so which of them can be compared."""

    versions: dict[str, str]
    machine: dict[str, str | int]
    cores: int
    """That this process may use."""


class PartStore:
    """A directory with a JSON file for each complete part, and a recording beside it where there was a run."""

    def __init__(self, folder: Path, params: Params) -> None:
        self.folder = folder
        self._params = params
        self.origin = Origin(versions(params.engine), machine(), core_count())

    def recording(self, part: Part) -> Path:
        return self.folder / f"{part.name}.zarr"

    def find(self, part: Part) -> dict[str, Any] | None:
        """The result of a part that is complete and was made with the same parameters and versions on this machine."""
        try:
            kept = json.loads(read_foreign(self._file(part), MOST_DESCRIPTION, self.folder))
        except (OSError, ValueError):
            return None
        if not isinstance(kept, dict) or kept.get("key") != self._key(part) or not isinstance(kept.get("result"), dict):
            return None
        if isinstance(part, RunPart):
            try:
                if not Recording(self.recording(part)).complete:
                    return None
            except LapjointError:
                return None
        return dict(kept["result"])

    def start(self, part: Part) -> Path:
        """Take away what is there of a part; returns where its recording may be made."""
        self._file(part).unlink(missing_ok=True)
        making = self.folder / f"{part.name}.part"
        for left in (making, self.recording(part)):
            if left.exists():
                shutil.rmtree(left)
        return making

    def put(self, part: Part, result: dict[str, Any]) -> dict[str, Any]:
        """Keep a result; the file is there whole or not at all, and comes last. Returns it as it will be read."""
        making = self.folder / f"{part.name}.part"
        if making.exists():
            making.replace(self.recording(part))
        kept = {"key": self._key(part), "origin": asdict(self.origin), "result": result}
        text = json.dumps(kept, indent=1, default=_plain)
        write_whole(self._file(part), text)
        return dict(json.loads(text)["result"])

    def _file(self, part: Part) -> Path:
        return self.folder / f"{part.name}.json"

    def _key(self, part: Part) -> dict[str, Any]:
        key = {
            "format": FORMAT,
            "part": {"kind": part.kind, **asdict(part)},
            "params": {"precision": self._params.precision, "runtime": self._params.runtime}
            | changed_params(self._params),
            "lapjoint": self.origin.versions["lapjoint"],
            "engine": self.origin.versions["engine"],
            "cpu": self.origin.machine["cpu"],
            "cores": self.origin.cores,
        }
        return dict(json.loads(json.dumps(key, default=_plain)))  # as it is read back: tuples are lists


def write_whole(path: Path, text: str) -> None:
    """Write a file under another name and move it into place."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text)
        os.replace(part, path)
    except OSError as error:
        raise LapjointError(f"{path}: cannot be written: {reason(error)}") from None


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item() if hasattr(value, "item") else str(value)
