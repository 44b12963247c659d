"""What all facets have."""

from __future__ import annotations

from ..errors import LapjointError
from ..server.core import Core
from ..whole import Use


class Facet:
    """A group of a simulation's methods. They are `whole` together with all others of the simulation."""

    _prefix = ""

    def __init__(self, core: Core) -> None:
        self._core = core

    @property
    def _use(self) -> Use:
        return self._core.use

    def _check_open(self, what: str) -> None:
        self._core.check_open(what)


def require_kept_forces(core: Core, what: str) -> None:
    """Raise where the forces of the last step are not known."""
    if not core.params.keep_forces:
        raise LapjointError(f"{what}: forces are not kept, expected Params(keep_forces=True)")
    if not core.has_stepped:
        raise LapjointError(f"{what}: no step has been taken yet, or none since the simulation goes on")
