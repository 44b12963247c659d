"""What a Ray cluster of our own has on this machine, and how it goes: processes and a folder."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections import defaultdict
from contextlib import suppress
from functools import partial
from pathlib import Path

from ...waits import Patience
from .starter import KILL_S

FOLDER = Path("/tmp")  # short, for Ray puts sockets there, whose paths may have 107 characters
PREFIX = "lapjoint-ray-"


def folder_of(pid: int) -> Path:
    """Where the cluster of program `pid` keeps its files."""
    return FOLDER / f"{PREFIX}{pid}"


def remove(folder: Path) -> None:
    """Remove the folder of a cluster whose processes have ended."""
    shutil.rmtree(folder, ignore_errors=True)


def remove_remains() -> None:
    """Remove what clusters of programs that were killed have left. Their processes leave by themselves."""
    for folder in FOLDER.glob(f"{PREFIX}*"):
        number = folder.name.removeprefix(PREFIX)
        if not (number.isdigit() and _is_ours(folder)):
            continue
        if not is_running(int(number)) and not _processes_of(folder):
            remove(folder)


def _is_ours(folder: Path) -> bool:
    """Whether this user made it: anybody can make a folder of that name, and name processes in it."""
    with suppress(OSError):
        return folder.lstat().st_uid == os.getuid()
    return False


def end_processes(folder: Path) -> None:
    """Kill what this program has started for the cluster: after a start that failed nobody else does."""
    children = defaultdict(list)
    for pid in _all_processes():
        children[_parent_of(pid)].append(pid)
    direct = [pid for pid in _processes_of(folder) if pid in children[os.getpid()]]
    doomed = list(direct)
    for pid in doomed:  # it grows
        doomed.extend(children[pid])
    for pid in doomed:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    patience = Patience(KILL_S)
    for pid in direct:
        patience.wait(partial(_is_reaped, pid))


def _is_reaped(pid: int, seconds: float) -> bool:
    """Whether a child has ended and nothing is left of it, after so long at most."""
    with suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG)[0] == 0:
            time.sleep(seconds)
            return False
    return True


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _processes_of(folder: Path) -> list[int]:
    """Processes whose command line names the folder; where the system has no /proc, none."""
    name = re.compile(re.escape(os.fsencode(folder)) + rb"(?!\d)")
    return [pid for pid in _all_processes() if pid != os.getpid() and name.search(_read(pid, "cmdline"))]


def _all_processes() -> list[int]:
    with suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return []


def _parent_of(pid: int) -> int:
    words = _read(pid, "stat").rpartition(b")")[2].split()  # the name before it may have blanks and brackets
    return int(words[1]) if words else 0


def _read(pid: int, what: str) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/{what}").read_bytes()
    return b""
