"""Unequal masses in a structure of joints: what they cost is said before anything starts."""

from __future__ import annotations

import warnings
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from ..errors import AccuracyWarning
from ..params import Params
from ..scene import WORLD, Scene
from ..scene.bonds import is_bond
from .coupling.structures import row_counts, structure_labels

SWEPT = 100.0
"""Ratio of masses from which swept joints are warned of."""
DIRECT, LONG_SUBSTEP = 1000.0, 1 / 800
"""The same of structures that are solved at once, and the substep [s] from which on: an arm of six links that whips
around with a light end has gaps of 15% of a link with substeps of 1/240 s, 3% with 1/480 and 0.5% with 1/960."""


def check_mass_ratios(scene: Scene, params: Params) -> None:
    """Warn of the structure with the most unequal masses, where its joints will give way."""
    if params.solver != "substeps" or not scene.joint_count:
        return
    joints = scene.joints
    counts = np.where(scene.joint_alive, row_counts(scene), 0)
    inner = (counts > 0) & (joints.body_b != WORLD)
    pairs = np.stack([joints.body_a[inner], joints.body_b[inner]], axis=1)
    if len(pairs) == 0:
        return
    bonded = is_bond(joints)[inner]
    label = structure_labels(pairs, scene.body_count)
    tied = np.unique(pairs)
    mass = scene.bodies.mass
    order = tied[np.lexsort([mass[tied], label[tied]])]
    firsts = np.flatnonzero(np.diff(label[order], prepend=-1))
    lightest, heaviest = order[firsts], order[np.append(firsts[1:], len(order)) - 1]
    ratio = mass[heaviest] / mass[lightest]
    for k in np.argsort(-ratio).tolist():
        if ratio[k] < 0.999 * SWEPT:  # rounding
            return
        here = label[pairs[:, 0]] == label[lightest[k]]
        row_count = int(counts[label[joints.body_a] == label[lightest[k]]].sum())
        direct = bool(bonded[here].any()) or params.substeps.joints == "direct"
        swept = not direct and (params.substeps.joints == "swept" or not _fits(pairs[here], row_count))
        if not swept and (ratio[k] <= DIRECT or scene.timestep / params.substeps.count < LONG_SUBSTEP):
            continue
        ends = [f"{scene.body_title(body)} of {mass[body]:.3g} kg" for body in (lightest[k], heaviest[k])]
        text = f"scene {scene.name!r}: joints tie {ends[0]} to {ends[1]}, a mass ratio of 1:{ratio[k]:,.0f}, and are "
        if swept:
            text += f"swept: expect gaps, and from 1:{DIRECT:,.0f} on that it flies apart; joints=direct holds it"
        else:
            text += (
                f"solved {params.substeps.count / scene.timestep:.0f} times a second: expect gaps of some percent of a "
                "link where light bodies whip around; a shorter timestep or more substeps closes them"
            )
        warnings.warn(text, AccuracyWarning, stacklevel=4)
        return


def _fits(pairs: NDArray[np.int32], row_count: int) -> bool:
    """Whether `joints` auto solves a structure at once."""
    native = import_module("lapjoint._algorithms")  # readable algorithms need no compiled code until here
    used, ends = np.unique(pairs, return_inverse=True)
    places = [(int(a), int(b)) for a, b in ends.reshape(-1, 2)]
    return bool(native.structure_fits(len(used), places, row_count))
