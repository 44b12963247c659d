"""Functions of users, by reference: a module's name, the function's name, and where the module was found.

Workers in other processes import them. A file has the name alone and nothing is imported because of it: what strangers
wrote into a file runs nothing.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError

FieldFunction = Callable[[NDArray[np.float64], NDArray[np.float64], float], NDArray[np.float64]]


def name_of(function: Any) -> str:
    return f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', repr(function))}"


def reference_of(function: Any, title: str) -> dict[str, str]:
    """How another process finds a function. One that it could not find raises a LapjointError that begins with
    `title`."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not module or module == "__main__" or "<" in name or _find(module, name) is not function:
        raise LapjointError(
            f"{title}: {name_of(function)} cannot be imported by workers, expected a function at the top level of a "
            "module of its own"
        )
    file = getattr(sys.modules[module], "__file__", None)
    # Where its outermost package lies.
    folder = Path(file).resolve().parents[module.count(".") + Path(file).name.startswith("__init__.")] if file else ""
    return {"module": module, "name": name, "folder": str(folder)}


def find_function(reference: dict[str, str]) -> FieldFunction:
    """The function that another process has a reference to."""
    module, name, folder = reference["module"], reference["name"], reference["folder"]
    try:
        importlib.import_module(module)
    except ModuleNotFoundError:
        if not folder or folder in sys.path:
            raise
        sys.path.append(folder)
        importlib.invalidate_caches()
        importlib.import_module(module)
    found: FieldFunction = _find(module, name)
    return found


def _find(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
