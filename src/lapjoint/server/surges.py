"""Surges: steps in which the energy of an island rose beyond what anything explains, as incidents."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..params import Params
from ..scene.living import LivingScene
from ..scene.titles import body_titles
from ..step_tables.surges import Surges
from .incidents import Incident

Ids = NDArray[np.int32]
UNEQUAL = 10.0
"""Ratio of masses from which a surge may come of it."""


class SurgeReports:
    """Which surges are news: where one has begun, it goes on in the steps that follow, with more bodies."""

    def __init__(self, scene: LivingScene, params: Params) -> None:
        self._scene, self._params = scene, params
        self.named: set[int] = set()
        """Bodies of all surges so far."""

    def incidents(self, found: Surges, step_count: int) -> list[Incident]:
        """Of surges in steps that were taken at once from `step_count` on: those whose bodies were in none before."""
        new = []
        for rows in _islands(found):
            bodies = np.unique(found.body[rows])
            if self.named.isdisjoint(bodies.tolist()):
                energy, limit = found.energy[rows].max(), found.limit[rows[0]]
                text = self._text(bodies, float(energy), float(limit))
                new.append(Incident(step_count + int(found.step[rows[0]]), "surge", text, body_ids=(*bodies.tolist(),)))
            self.named.update(bodies.tolist())
        return new

    def _text(self, bodies: Ids, energy: float, limit: float) -> str:
        return (
            f"energy from nowhere: {energy:.3g} J in one step, of which {limit:.3g} J may be error, at "
            f"{body_titles(self._scene, bodies)}: {self._advice(bodies)} may help"
        )

    def _advice(self, bodies: Ids) -> str:
        scene, params = self._scene, self._params
        joints = scene.joints
        tied = np.isin(joints.body_a, bodies) | np.isin(joints.body_b, bodies)
        at_ends = np.concatenate([joints.body_a[tied], joints.body_b[tied]])
        mass = scene.bodies.mass[np.union1d(bodies, at_ends[at_ends >= 0])]
        advice = ["a shorter timestep", "more substeps"]
        if tied.any() and params.substeps.joints != "direct":
            advice.append("joints=direct")
        if mass.max() > UNEQUAL * mass.min():
            advice.append(f"masses that differ less than 1:{mass.max() / mass.min():,.0f}")
        return f"{', '.join(advice[:-1])} or {advice[-1]}"


def _islands(found: Surges) -> Iterator[NDArray[np.intp]]:
    """Rows of each step and island; those of several workers are of one island if they have a body in common."""
    for step in np.unique(found.step):
        rows = np.flatnonzero(found.step == step)
        while len(rows):
            island = np.isin(found.island[rows], found.island[rows[0]])
            shared = np.isin(found.body[rows], found.body[rows[island]])
            island |= np.isin(found.island[rows], found.island[rows[shared]])
            yield rows[island]
            rows = rows[~island]
