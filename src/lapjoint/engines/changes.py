"""What an engine is told before a step, and what it reports after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..scene.fields import GivenField
from ..scene.motions import GivenMotion
from ..step_tables import StepTable

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

STEP_MEASURES = (
    "contact_count",
    "contact_point_count",
    "penetration_sum",
    "penetration_max",
    "joint_gap_sum",
    "joint_gap_max",
    "residual",
    "substeps",
    "exchanges",
    "sent_bytes",
)
"""What engines with substeps measure of every step, in this order. Those up to the joint gaps are of the state that it
begins with. A contact or joint between two workers counts in the first of them."""
NOT_MEASURED = np.empty((0, len(STEP_MEASURES)))


@dataclass(frozen=True)
class DriveTargets:
    """Other targets for drives and motors, on these axes of these joints: a row each with a position and a velocity.
    One that is not driven: LapjointError, nothing changes."""

    joints: ArrayLike
    axes: ArrayLike
    targets: ArrayLike


@dataclass(frozen=True)
class HalfTurnsSet:
    """Half turns that the counted angles of these joints are next to."""

    joints: ArrayLike
    half_turns: ArrayLike


@dataclass
class Changes:
    """What is otherwise from the next step on; what is None stays as it is. In brackets the feature that an engine has
    for it: it gets no other."""

    grown: bool = False
    """The scene has more bodies and joints than before, none of them active [added bodies]."""
    breaks: bool | None = None
    """Whether a joint that a step was too much for breaks before the next one. If not, it is only reported, as
    JointBreaks; so it is in any case [breaks]."""
    broken: ArrayLike | None = None
    """Joints that are broken, besides those that are: they hold nothing, and their bodies may touch [breaks]."""
    all_broken: ArrayLike | None = None
    """Joints that are broken, and no others are [breaks]."""
    motions: Mapping[int, GivenMotion] | None = None
    """How these static bodies move, in place of what they did [kinematic bodies]."""
    fields: Sequence[GivenField] | None = None
    """Force fields in place of those of before [fields]."""
    step_count: int | None = None
    """So many steps have been taken, each step adds one by itself: kinematic bodies are where their motions have them
    then, functions of fields are given that time, bodies fall asleep in steps of some numbers."""
    senses: bool | None = None
    """Whether to find who enters and leaves sensors in the next call of `step`. SensorEvents has, of active bodies, who
    overlaps a sensor at the end of a step and did not at the end of the one before, and the other way round
    [sensors]."""
    inside: ArrayLike = ()
    """With `senses`: pairs of a sensor and a body that are inside already, (n, 2), ascending. Those of bodies that are
    not active are left alone."""
    drive_targets: DriveTargets | None = None
    """[drives]"""
    half_turns: HalfTurnsSet | None = None
    """[counted angles]"""
    forgets_contacts: bool = False
    """Empty the contact cache: impulses that contacts are warm started from."""
    iterations: int | None = None
    """Sweeps of the solver per step."""


@dataclass(frozen=True)
class StepReport:
    """What an engine reports of the steps of the last call, once."""

    residual: float = float("nan")
    """Largest velocity change of a constraint in the last sweep of the last step [m/s]; not a number where the engine
    does not report it (feature "residual")."""
    tables: tuple[StepTable, ...] = ()
    """Events of single steps, of each kind one table, where it has rows. Of a contact or joint between two workers, the
    first of them reports, unless the kind is one that several may report."""
    measures: Array = field(default_factory=lambda: NOT_MEASURED)
    """A row for each step, with the columns STEP_MEASURES; none where an engine does not measure them."""
    substeps: int = 0
    """Substeps of the last step; 0 where it had none."""
    fallback_count: int = 0
    """Groups of bodies that a direct solver left to sweeps (feature "direct solvers")."""
    sleeping_count: int = 0
    """Active bodies that sleep."""
    moved: Ids | None = None
    """Where bodies may sleep: active ones whose states may be others than when this was last reported."""
