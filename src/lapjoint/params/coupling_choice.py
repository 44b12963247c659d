"""Which coupling `auto` takes for a scene, and why; and what is wrong with an option of another coupling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class CouplingTraits:
    """What those need to know of a coupling who only show or keep its numbers."""

    overlaps: bool
    """Whether bodies can have several workers: there are overlap bodies and weights."""
    exchanges: bool
    """Whether workers exchange messages within a step: there are exchanges and an interface."""


COUPLINGS = {"blend": CouplingTraits(True, False), "tight": CouplingTraits(False, True)}
"""Every coupling; server/coupling/registry.py has the classes."""


def traits(coupling: str) -> CouplingTraits:
    """The traits of a coupling; blend's for one that is still to be chosen, and for a name in a file of another
    version."""
    return COUPLINGS.get(coupling, COUPLINGS["blend"])


@dataclass(frozen=True)
class CouplingChoice:
    """A coupling and, where `auto` chose it, the reason. Names of fields are in backticks there."""

    coupling: str
    reason: str | None


def choose_coupling(worker_count: int, of_blend: Sequence[str], without_tight: Sequence[str]) -> CouplingChoice:
    """What auto takes. Tight is better in everything, for engines that have it.

    `of_blend` are fields of blend that are set, `without_tight` those with a value that tight coupling does not have.
    """
    if worker_count == 1:
        return CouplingChoice("blend", "one worker has nothing to couple")
    if of_blend:
        return CouplingChoice("blend", f"`{of_blend[0]}` is given, which only blend has")
    if without_tight:
        return CouplingChoice("blend", f"`{without_tight[0]}` is given, with which only blend works")
    return CouplingChoice("tight", None)


def mismatch(name: str, coupling: str, of: str, reason: str | None) -> str:
    """What is wrong with an option of one coupling, `of`, where the coupling is another, for this reason."""
    what = ", which has no overlap" if coupling == "tight" else f", expected {of}"
    why = "" if reason is None else f" ({reason})"
    choose = f"leave `{name}` out, or {'take' if reason is None else 'add'} `coupling` {of}"
    return f"`{name}` is given, but the coupling is {coupling}{what}{why}: {choose}"
