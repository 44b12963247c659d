"""Files that are read and written whole. What the system refuses is a LapjointError that names the path."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ..errors import LapjointError
from .foreign import LARGEST, check_foreign, read_foreign
from .shortage import reason


def read_file(path: str | Path, most: int = LARGEST) -> bytes:
    """The content of a regular file of at most so many bytes."""
    try:
        return read_foreign(path, most)
    except (OSError, MemoryError) as error:
        raise _refused(path, error) from None


def check_file(path: str | Path, most: int = LARGEST) -> None:
    """Refuse what `read_file` would, before a library opens the file by its name."""
    try:
        check_foreign(path, most)
    except OSError as error:
        raise _refused(path, error) from None


def read_text(path: str | Path, most: int = LARGEST) -> str:
    """The same of a text in UTF-8."""
    try:
        return read_file(path, most).decode()
    except UnicodeDecodeError as error:
        raise LapjointError(f"{path}: is no text: {error}") from None


def write_file(path: str | Path, content: bytes | str) -> Path:
    """Write a file; a text in UTF-8. Nothing is left of a new one that cannot be written whole."""
    path = Path(path)
    is_new = not path.exists()
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        if is_new:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        raise LapjointError(f"{path}: cannot be written: {reason(error)}") from None
    return path


def _refused(path: str | Path, error: OSError | MemoryError) -> LapjointError:
    why = "there is no such file" if isinstance(error, FileNotFoundError) else reason(error)
    return LapjointError(f"{path}: {why}")
