"""The stubs of the compiled modules, which mypy checks every call with, are those that nanobind makes of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import lapjoint._measures

ROOT = Path(__file__).parents[2]


def test_stubs_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools/make-stubs", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_compiled_module_has_a_stub() -> None:
    compiled = {path.name.partition(".")[0] for path in Path(lapjoint._measures.__file__).parent.glob("_*.so")}
    assert compiled == {"_algorithms", "_bullet_float32", "_bullet_float64", "_measures", "_queries"}
    assert compiled <= {path.stem for path in (ROOT / "src/lapjoint").glob("_*.pyi")}
