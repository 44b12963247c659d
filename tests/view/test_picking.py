"""What a click on a page may be."""

from __future__ import annotations

import numpy as np
import pytest

from lapjoint.view.page.picking import is_ray


@pytest.mark.parametrize(
    ("origin", "direction"),
    [((0, 0), (0, 0, 1)), ((0, 0, 0), 1), ((0, 0, 0), (0, 0, 0)), ((0, 0, np.nan), (0, 0, 1)), ("abc", (0, 0, 1))],
)
def test_what_is_no_ray(origin: object, direction: object) -> None:
    """Browsers may send anything."""
    assert not is_ray(origin, direction)
    assert is_ray((0, 0, 1), [0, 0.5, -1])
