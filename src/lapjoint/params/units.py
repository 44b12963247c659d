"""Units within an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from .checked import check_values, with_named_keywords
from .fields import SOLVER, Group, InPythonOnly, Named, Positive


@with_named_keywords
@dataclass(frozen=True)
class Units:
    """What the engine calculates in: Bullet's margins and thresholds are absolute."""

    GROUP: ClassVar[Group] = SOLVER

    length: Annotated[float | None, Named("length_unit"), InPythonOnly(), Positive()] = None
    """Metres per length unit of the engine. None: a power of two near the scene's typical body size, because Bullet's
    margins (0.02 and 0.04) are absolute: bodies much smaller than the unit are slow, much larger ones are stiff."""
    mass: Annotated[float | None, Named("mass_unit"), InPythonOnly(), Positive()] = None
    """Kilograms per mass unit of the engine. None: a power of two near the scene's typical body mass, because Bullet's
    thresholds for masses are absolute too: it takes very heavy bodies for static ones."""

    def __post_init__(self) -> None:
        check_values(self)
