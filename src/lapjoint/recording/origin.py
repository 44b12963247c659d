"""Where a recording comes from: versions and machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

import numpy as np

from ..engines import engine_version, supports
from ..errors import LapjointError
from ..params.engine_choice import EngineChoice


def versions(engine: str) -> dict[str, str]:
    """Versions of what made the recording. An engine has its name and the package that provides it."""
    own = f"lapjoint {importlib.metadata.version('lapjoint')}"
    engines = [f"{name} of {_package(name) or own}" for name in EngineChoice.parse(engine).names]
    return {
        "lapjoint": own.split()[1],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "engine": ", ".join(engines),
    }


def _package(engine: str) -> str | None:
    try:
        support = supports(engine)
    except LapjointError:
        return None
    return None if support.package == "lapjoint" else f"{support.package} {engine_version(support)}"


def machine() -> dict[str, str | int]:
    return {"cpu": _cpu_model(), "core_count": os.cpu_count() or 1, "platform": platform.platform()}


def core_count() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:  # not Linux
        pass
    return platform.processor() or platform.machine()
