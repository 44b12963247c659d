"""The paper's algorithms: readable Python, one file each, and native code of the same names.

| paper | here | native |
|---|---|---|
| constraint graph G | graph.py | graph.cpp |
| W_b, P_i, O | membership.py | membership.h |
| Algorithms 2, 3 | overlap.py | overlap.cpp |
| Algorithm 4 | blend.py | blend.cpp |
| Algorithm 5 | weights.py | weights.cpp |
| Algorithms 6, 7 | balance.py | balance.cpp |
"""

from __future__ import annotations

from types import ModuleType

from ..errors import LapjointError
from .balance import Balance
from .membership import Membership

KINDS = ("native", "reference")

__all__ = ["KINDS", "Balance", "Membership", "load_algorithms"]


def load_algorithms(kind: str) -> ModuleType:
    """The module with Graph, assign_overlap, balance, blend and compute_weights: native, or the readable twins."""
    if kind == "native":
        from . import native

        return native
    if kind == "reference":
        from . import reference

        return reference
    raise LapjointError(f"algorithms are {kind!r}, expected one of {', '.join(KINDS)}")
