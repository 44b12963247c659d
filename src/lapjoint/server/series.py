"""StepSeries: what was measured of every step that workers took by themselves, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..engines import STEP_MEASURES
from ..workers.messages import NeighbourCommand, StepCommand, StepReply

Array = NDArray[np.float64]

LARGEST = ("penetration_max", "joint_gap_max", "residual", "substeps", "exchanges")
"""Measures of which the largest of all workers counts; of all others, their sum."""


@dataclass(frozen=True)
class StepSeries:
    """One number for each step, of all workers together; each contact and joint counts once."""

    contact_count: Array
    """Touching pairs as the step begins; so are all up to the joint gaps."""
    contact_point_count: Array
    penetration_sum: Array
    """m"""
    penetration_max: Array
    joint_gap_sum: Array
    """m"""
    joint_gap_max: Array
    residual: Array
    """Largest of all workers [m/s]."""
    substeps: Array
    exchanges: Array
    """Messages that two workers sent each other, one after the other, at most."""
    sent_bytes: Array
    """What workers sent each other."""
    worker_residual: Array
    """(steps, workers)"""

    @staticmethod
    def of(commands: Sequence[StepCommand], replies: Sequence[StepReply]) -> StepSeries | None:
        """From the workers' replies. None where they measure nothing, or where bodies have several workers, so that
        what each has counted does not add up."""
        apart = len(commands) == 1 or all(isinstance(command, NeighbourCommand) for command in commands)
        if not apart or not all(len(reply.step_measures) for reply in replies):
            return None
        table = np.stack([reply.step_measures for reply in replies])  # workers, steps, measures
        own = {name: table[:, :, column] for column, name in enumerate(STEP_MEASURES)}
        found = {name: values.max(axis=0) if name in LARGEST else values.sum(axis=0) for name, values in own.items()}
        return StepSeries(**found, worker_residual=own["residual"].T)

    def __len__(self) -> int:
        return len(self.residual)
