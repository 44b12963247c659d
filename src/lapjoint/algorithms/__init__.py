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

from importlib import import_module
from typing import TYPE_CHECKING, cast

from ..errors import LapjointError
from .balance import Balance
from .graph import ConstraintGraph
from .membership import Membership
from .near_pairs import NearPairFinder
from .protocol import Algorithms

if TYPE_CHECKING:
    from . import native, reference

    # mypy names what is missing here where one of them no longer satisfies the protocol.
    _NATIVE: Algorithms = native
    _REFERENCE: Algorithms = reference

# Loaded by name, so that the readable algorithms work where nothing is compiled.
_MODULES = {"native": ".native", "reference": ".reference"}

KINDS = tuple(_MODULES)

__all__ = ["KINDS", "Algorithms", "Balance", "ConstraintGraph", "Membership", "NearPairFinder", "load_algorithms"]


def load_algorithms(kind: str) -> Algorithms:
    """The algorithms of a kind: native, or reference, their readable twins."""
    if kind not in _MODULES:
        raise LapjointError(f"algorithms are {kind!r}, expected one of {', '.join(KINDS)}")
    return cast(Algorithms, import_module(_MODULES[kind], __package__))
