"""Groups and masks: which bodies may touch. Two may when each one's group has a bit in the other's mask."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.checks import integer_rows, short
from ..errors import LapjointError

ALL_GROUPS = 0xFFFFFFFF


def filter_rows(name: str, value: ArrayLike, count: int, title: Callable[[int], str] | str) -> NDArray[np.int64]:
    """`value` as `count` groups or masks. One that needs more than 32 bits raises an error that names the way out."""
    try:
        given = np.atleast_1d(np.asarray(value))
        beyond = given[given > ALL_GROUPS]
    except (TypeError, ValueError):
        beyond = np.empty(0)  # no numbers: refused as such
    if len(beyond):
        raise LapjointError(
            f"{title if isinstance(title, str) else title(0)}: {name} is {short(int(beyond[0]))}, which has more than "
            "32 bits: there are 32 groups. Let bodies share groups and keep single pairs apart with Scene.ignore"
        )
    return integer_rows(name, value, count, title, 0, ALL_GROUPS)
