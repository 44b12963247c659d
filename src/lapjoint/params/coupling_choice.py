"""Which coupling `auto` takes for a scene, and why; and what is wrong with an option of another coupling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..scene import WORLD, Scene


@dataclass(frozen=True)
class CouplingTraits:
    """What those need to know of a coupling who only show or keep its numbers."""

    overlaps: bool
    """Whether bodies can have several workers: there are overlap bodies and weights."""
    exchanges: bool
    """Whether workers and server exchange messages within a step: there are rounds and an interface."""


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


def choose_coupling(
    scene: Scene, worker_count: int, of_blend: Sequence[str], without_tight: Sequence[str]
) -> CouplingChoice:
    """What auto takes. With joints, tight is better in everything. Contacts alone leave its server much to do where
    workers are many, and blend looks as right.

    `of_blend` are fields of blend that are set, `without_tight` those with a value that tight coupling does not have.
    """
    if worker_count == 1:
        return CouplingChoice("blend", "one worker has nothing to couple")
    if not (scene.joints.body_b != WORLD).any():
        return CouplingChoice("blend", "the scene has no joints between bodies")
    if of_blend:
        return CouplingChoice("blend", f"`{of_blend[0]}` is given, which only blend has")
    if without_tight:
        return CouplingChoice("blend", f"`{without_tight[0]}` is given, with which only blend works")
    return CouplingChoice("tight", "the scene has joints")


def mismatch(name: str, coupling: str, of: str, reason: str | None) -> str:
    """What is wrong with an option of one coupling, `of`, where the coupling is another, for this reason."""
    what = ", which has no overlap" if coupling == "tight" else f", expected {of}"
    why = "" if reason is None else f" ({reason})"
    choose = f"leave `{name}` out, or {'take' if reason is None else 'add'} `coupling` {of}"
    return f"`{name}` is given, but the coupling is {coupling}{what}{why}: {choose}"
