"""What blend coupling alone has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from .checked import check_values, with_named_keywords
from .fields import BLEND, Count, Group, OneOf, Unset


@with_named_keywords
@dataclass(frozen=True)
class Blend:
    """Options of blend coupling: of its overlap, and of its weights."""

    GROUP: ClassVar[Group] = BLEND

    growth_depth: Annotated[int | None, Count(0, 1000), Unset("the scene's")] = None
    """How many edges the overlap grows from an interface. More: smaller gaps there, slower.

    Gamma of the paper. With more, more bodies are simulated twice."""
    search_depth: Annotated[int | None, Count(0, 1000), Unset("the scene's")] = None
    """How many edges far weights search for a worker's own bodies.

    Beta of the paper. It should be at least the width of the overlap."""
    balance: Annotated[str, OneOf("pruned", "printed")] = "pruned"
    """How bodies leave workers: pruned, or printed (the paper's text).

    Printed can leave constraints without a worker."""
    linger: Annotated[int, Count(0, 1000)] = 20
    """Steps for which a body that came back to a worker stays before it leaves again; 0 is the paper's.

    A body that comes back to a worker within so many steps must be free to leave for as many before it does. This keeps
    bodies from flickering between workers while nothing moves."""
    weights: Annotated[str, OneOf("depth", "computed")] = "depth"
    """Weights of workers: depth, or computed (Algorithm 5).

    Depth equals Algorithm 5 between two workers that both have bodies of their own within the search depth, and does
    not give a worker zero weight where an overlap covers all of its bodies."""

    def __post_init__(self) -> None:
        check_values(self)
