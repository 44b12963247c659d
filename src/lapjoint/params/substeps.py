"""What the substep solver alone has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ..errors import LapjointError
from .checked import check_values, with_named_keywords
from .fields import SUBSTEPS, Count, Group, Named, NotNegative, OneOf

MOST = 64


@with_named_keywords
@dataclass(frozen=True)
class Substeps:
    """Options of the substep solver: how many, how exact, and how joints are solved."""

    GROUP: ClassVar[Group] = SUBSTEPS

    count: Annotated[int, Named("substeps"), Count(1, 1000)] = 4
    """Parts of a step. Twice as many: a quarter of the penetration and of the gaps of swept joints, in twice the time
    of the sweeps."""
    tolerance: Annotated[float, NotNegative()] = 0.0
    """Metres of penetration that contacts may have after a step. Where one is deeper, the step is solved again with
    twice as many substeps, until none is or there are `max_substeps`. 0: never.

    Swept joints do not count, and stay as stiff as with `count` substeps."""
    max_count: Annotated[int, Named("max_substeps"), Count(1, 1000)] = MOST
    """The most substeps that a step takes with a `tolerance`."""
    joints: Annotated[str, OneOf("auto", "direct", "swept")] = "auto"
    """direct solves whole structures of joints at once, without gaps; swept goes joint by joint. auto: direct for
    structures where that is little work (chains, bridges), not for dense ones (wide grids). Pieces that are bonded are
    always solved at once, and swept is refused for them."""

    def __post_init__(self) -> None:
        check_values(self)
        if self.tolerance > 0 and self.max_count < self.count:
            raise LapjointError(f"max_substeps is {self.max_count}, expected at least substeps, {self.count}")
        if self.tolerance == 0 and self.max_count != MOST:
            raise LapjointError(f"max_substeps is {self.max_count} and tolerance is 0, expected a tolerance")
