"""Limits of the system on a process, reached: one line says what is short, and nothing is left behind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lapjoint import Recording

MAIN = """
import contextlib, io, json, resource, sys
sys.path.insert(0, sys.argv[1])
from lapjoint.cli import main

for name, more, words in json.loads(sys.argv[2]):
    limit = getattr(resource, name)
    low, high = resource.getrlimit(limit)
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            resource.setrlimit(limit, (more, high))
            sys.argv[1:] = words
            main()
        except SystemExit as end:
            code = end.code
        finally:
            resource.setrlimit(limit, (low, high))
    print(json.dumps([code, err.getvalue()]))
"""
"""Commands in one process, each under a limit of its own that is raised again."""


def outcomes(folder: Path, *cases: tuple[str, int, list[str]]) -> list[tuple[int, str]]:
    """Exit code and errors of each command."""
    before = set(os.listdir("/dev/shm"))
    command = [sys.executable, "-c", MAIN, str(Path(__file__).parents[1]), json.dumps(cases)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, start_new_session=True)
    assert done.returncode == 0, done.stderr
    assert not [name for name in set(os.listdir("/dev/shm")) - before if "lapjoint" in name]
    found: list[Any] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(found) == len(cases)
    return [(code, text) for code, text in found]


RUN = ["run", "chain", "--size", "8", "--steps", "40"]
INLINE = [*RUN, "--workers", "1", "--runtime", "inline"]
PROCESSES = [*RUN, "--workers", "2", "--runtime", "process"]


def refused(outcome: tuple[int, str], pattern: str) -> None:
    code, text = outcome
    assert code == 2
    assert text.count("\n") == 1
    assert re.search(pattern, text), text


@pytest.mark.slow
def test_files_that_are_too_large(tmp_path: Path) -> None:
    words = r"a file is too large: this process may write [\d,]+ bytes into one \(`ulimit -f` raises that\)"
    run = [*INLINE, "--record", "r", "--checkpoint", "c", "--checkpoint-every", "20"]
    started, larger, *written = outcomes(
        tmp_path,
        ("RLIMIT_FSIZE", 100, [*INLINE, "--record", "none"]),
        ("RLIMIT_FSIZE", 10_000, run),
        ("RLIMIT_FSIZE", 10_000_000, [*INLINE, "--record", "whole"]),
        ("RLIMIT_FSIZE", 1000, ["export", "whole", "a.glb"]),
        ("RLIMIT_FSIZE", 1000, ["export", "whole", "a.html"]),
        ("RLIMIT_FSIZE", 1000, ["export", "chain", "a.usdc"]),
    )
    refused(started, f"the simulation cannot be started: .* bytes of memory for server and workers: {words}")
    assert larger[0] == 2
    assert re.search(rf"warning: c/step-.*: the checkpoint cannot be written: {words}; there is none", larger[1])
    assert re.search(rf"error: r: the recording cannot be written: {words}; its first 0 frames are kept\n$", larger[1])
    assert Recording(tmp_path / "r").frame_count == 0
    assert written[0] == (0, "")
    for outcome, name in zip(written[1:], ("glb", "html", "usdc"), strict=True):
        refused(outcome, rf"a\.{name}: cannot be written: {words}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r", "whole"]


@pytest.mark.slow
def test_too_few_open_files(tmp_path: Path) -> None:
    words = r"too many files are open: this process may have \d+ \(`ulimit -n` raises that\)"
    record = [*PROCESSES, "--record", "r", "--checkpoint", "c"]
    found = outcomes(tmp_path, *(("RLIMIT_NOFILE", most, record) for most in (10, 16, 22)))
    refused(found[0], f"error: {words}, expected at least 16")
    refused(found[1], words)
    refused(found[2], words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_too_few_addresses(tmp_path: Path) -> None:
    words = r"memory is short: this process may use \d+ MiB of addresses \(`ulimit -v` raises that\)"
    found = outcomes(
        tmp_path,
        ("RLIMIT_AS", 200 << 20, INLINE),
        ("RLIMIT_AS", 400 << 20, ["export", "chain", "a.usdc"]),
        ("RLIMIT_AS", 400 << 20, ["picture", "chain", "a.png"]),
    )
    refused(found[0], f"error: {words}, expected at least 384")
    refused(found[1], f"lapjoint export to USD: {words}")
    refused(found[2], f"pictures: {words}")
    assert list(tmp_path.iterdir()) == []
