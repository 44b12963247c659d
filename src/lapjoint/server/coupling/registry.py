"""The couplings by name."""

from __future__ import annotations

from ...errors import LapjointError
from ...params import Params
from .base import Coupling, StepContext
from .blend import Blend
from .tight import Tight

COUPLINGS: dict[str, type[Coupling]] = {kind.name: kind for kind in (Blend, Tight)}


def make_coupling(now: StepContext) -> Coupling:
    """The coupling that the parameters name, with the first partition."""
    return coupling_type(now.params)(now)


def coupling_type(params: Params) -> type[Coupling]:
    if params.coupling not in COUPLINGS:
        raise LapjointError(f"no coupling named {params.coupling!r}; known couplings: {', '.join(COUPLINGS)}")
    return COUPLINGS[params.coupling]
