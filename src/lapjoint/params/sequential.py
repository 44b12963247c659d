"""What the sequential solver has, and direct solvers with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from .checked import check_values, with_named_keywords
from .fields import SEQUENTIAL, Count, Group, InPythonOnly, Share, Unset


@with_named_keywords
@dataclass(frozen=True)
class Sequential:
    """Options of the sequential solver. Direct solvers have them too: they correct errors as it does, and leave large
    groups to its sweeps."""

    GROUP: ClassVar[Group] = SEQUENTIAL

    iterations: Annotated[int | None, Count(1, 1_000_000), Unset("the scene's")] = None
    """Sweeps of the solver per step. More: smaller residual, joint gap and penetration, slower."""
    joint_erp: Annotated[float, InPythonOnly(), Share()] = 0.2
    """Share of a joint's gap that one step tries to close, 0 to 1. More: smaller gaps, more jerk."""
    contact_erp: Annotated[float, InPythonOnly(), Share()] = 0.05
    """Share of a penetration that one step tries to resolve, 0 to 1. More: less sinking, more shaking. The default
    suits timesteps of a few milliseconds: at 0.2 the standing building moves eight times as much."""
    split_impulse: Annotated[bool, InPythonOnly()] = True
    """Resolve deep penetration by moving bodies without giving them velocity."""
    solver_rows: Annotated[int, InPythonOnly(), Count(1, 10_000)] = 300
    """Direct solvers: the most rows with bounds (contacts, friction, limits) in one group of connected bodies.

    Larger groups are swept, and counted in `fallback_count`."""

    def __post_init__(self) -> None:
        check_values(self)
