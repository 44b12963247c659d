"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import LapjointError
from ...system.shortage import reason


def checked_file(path: str | Path, kind: str, endings: Sequence[str]) -> Path:
    """The path, if a file of this kind can be written there."""
    path = Path(path)
    if path.suffix.lower() not in endings:
        wanted = " or ".join([", ".join(endings[:-1]), endings[-1]] if len(endings) > 1 else endings)
        raise LapjointError(f"{path}: unknown kind of {kind} {path.suffix!r}, expected a name that ends in {wanted}")
    if path.is_dir():
        raise LapjointError(f"{path}: is a directory, expected the name of a file")
    if not path.parent.is_dir():
        raise LapjointError(f"{path}: there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise LapjointError(f"{path}: cannot be written, permission denied")
    return path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to. It takes the place of `path` when all went well, else it is removed."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, path)
    except OSError as error:
        raise LapjointError(f"{path}: cannot be written: {reason(error)}") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
