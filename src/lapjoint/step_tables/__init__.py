"""What is reported of single steps: each module of this folder has a kind of table, and is found by itself."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from .base import Combine, Of, StepTable, check_range, column, limits

for _module in iter_modules(__path__):
    import_module(f".{_module.name}", __name__)

TABLES: dict[str, type[StepTable]] = {
    kind.name: kind for kind in sorted(StepTable.__subclasses__(), key=lambda k: k.name)
}
"""All kinds, by name."""
KEPT = tuple(kind for kind in TABLES.values() if kind.kept)
"""Those of which all rows so far are kept, recorded and counted."""
FEATURES = tuple(sorted({kind.feature for kind in TABLES.values() if kind.feature is not None}))
"""What engines declare that report tables which scenes or parameters ask for."""

__all__ = ["FEATURES", "KEPT", "TABLES", "Combine", "Of", "StepTable", "check_range", "column", "limits"]
