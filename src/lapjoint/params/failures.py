"""What happens when workers fail or bodies run away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from .checked import check_values, with_named_keywords
from .fields import FAILURES, Group, OneOf, Positive, Unset


@with_named_keywords
@dataclass(frozen=True)
class Failures:
    """What to do when a worker fails, and when bodies do what no body can."""

    GROUP: ClassVar[Group] = FAILURES

    on_failure: Annotated[str, OneOf("replace", "stop")] = "replace"
    """When a worker dies, hangs or fails: replace it and repeat its step, or stop.

    The same when it answers with numbers that are not finite."""
    hang_limit: Annotated[float, Positive()] = 5.0
    """Seconds without an answer after which a worker counts as hung, at least.

    If 20 times the slowest of its recent steps is longer, that counts, up to 12 times this plus 0.3 ms for each body of
    the scene. In its first step a worker has that maximum."""
    quarantine: bool = False
    """Freeze bodies that run away or become NaN, and go on with the rest.

    They are put back to where they were before the step. Without it, a state that does not stay finite ends the run."""
    on_surge: Annotated[str, OneOf("report", "stop", "quarantine", "ignore")] = "report"
    """When bodies gain energy from nowhere in a step: report it, stop, quarantine them, or ignore it.

    A surge is a step in which bodies that joints and contacts connect gain more kinetic energy than forces, motors,
    springs and moving bodies give them, by more than a tenth of gravity times their mass times their size. With stop
    and quarantine, states are those before that step; workers then take one step at a time. Solver substeps."""
    speed_limit: Annotated[float | None, Positive(), Unset("the scene in one step")] = None
    """m/s from which `quarantine` freezes a body.

    None: the speed that crosses the scene, as it was at the start, in one step."""

    def __post_init__(self) -> None:
        check_values(self)
