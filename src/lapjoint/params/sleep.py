"""When bodies fall asleep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from .checked import check_values, with_named_keywords
from .fields import SLEEP, Group, InPythonOnly, Named, Positive


@with_named_keywords
@dataclass(frozen=True)
class Sleep:
    """How still bodies must be before they are left alone, and how long."""

    GROUP: ClassVar[Group] = SLEEP

    after: Annotated[float, Named("sleep_after"), InPythonOnly(), Positive()] = 0.5
    """Seconds for which all bodies of an island, which contacts and joints connect, must be still."""
    speed: Annotated[float, Named("sleep_speed"), InPythonOnly(), Positive()] = 0.02
    """The speed below which a body is still, in length units a second; one is about the size of a body."""
    spin: Annotated[float, Named("sleep_spin"), InPythonOnly(), Positive()] = 0.1
    """The same for the angular velocity [rad/s]."""

    def __post_init__(self) -> None:
        check_values(self)
