"""Where a recording comes from: versions and machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

import numpy as np


def versions(engine: str) -> dict[str, str]:
    """What made the recording. An engine goes by its name and the package that brings it."""
    own = f"lapjoint {importlib.metadata.version('lapjoint')}"
    found = importlib.metadata.entry_points(group="lapjoint.engines", name=engine)
    packages = [f"{entry.dist.name} {entry.dist.version}" for entry in found if entry.dist is not None]
    return {
        "lapjoint": own.split()[1],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "engine": f"{engine} of {packages[0] if packages else own}",
    }


def machine() -> dict[str, str | int]:
    return {"cpu": _cpu_model(), "core_count": os.cpu_count() or 1, "platform": platform.platform()}


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:  # not Linux
        pass
    return platform.processor() or platform.machine()
