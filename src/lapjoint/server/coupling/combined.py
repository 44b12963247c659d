"""Step tables of several workers as one, by the rule of their kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...step_tables import Combine, StepTable
from ...workers.messages import StepReply

Decided = Callable[[Sequence[StepTable]], Sequence[StepTable]]
"""Of a kind's tables of all workers, the rows of each that count."""


def combined_tables(replies: Sequence[StepReply], decided: Decided | None = None) -> list[StepTable]:
    """One table of each kind that any worker has reported. `decided` is where workers overlap."""
    kinds = sorted({type(table) for reply in replies for table in reply.tables}, key=lambda kind: kind.name)
    return [_combined(kind, [reply.table(kind) for reply in replies], decided) for kind in kinds]


def _combined(kind: type[StepTable], found: Sequence[StepTable], decided: Decided | None) -> StepTable:
    if len(found) == 1:
        return found[0]
    if kind.combine is Combine.HEAVIEST and decided is not None:
        found = decided(found)
    joined = kind.joined(found)
    if kind.combine is Combine.FIRST:
        _, first = np.unique(np.column_stack([joined.step, joined.who]), axis=0, return_index=True)
        joined = joined.taken(np.sort(first))
    return joined
