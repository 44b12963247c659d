"""What a click on a page may be."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from lapjoint.view.page.picking import is_camera, is_ray, is_rectangle


@pytest.mark.parametrize(
    ("origin", "direction"),
    [((0, 0), (0, 0, 1)), ((0, 0, 0), 1), ((0, 0, 0), (0, 0, 0)), ((0, 0, np.nan), (0, 0, 1)), ("abc", (0, 0, 1))],
)
def test_what_is_no_ray(origin: object, direction: object) -> None:
    """Browsers may send anything."""
    assert not is_ray(origin, direction)
    assert is_ray((0, 0, 1), [0, 0.5, -1])


def test_what_is_no_rectangle() -> None:
    assert is_rectangle((0.1, 0.2), [0.9, 0.8])
    for wrong in ("x", (0.1,), (0.1, np.inf), None, (0.1, "b")):
        assert not is_rectangle((0.1, 0.2), wrong)


def test_what_is_no_camera() -> None:
    good = {"position": (0, 0, 1), "look_at": (0, 0, 0), "wxyz": (1, 0, 0, 0), "fov": 1.0, "aspect": 1.5}
    assert is_camera(SimpleNamespace(**good))
    for changed in ({"position": "abc"}, {"look_at": (0, 0)}, {"wxyz": None}, {"fov": 4.0}, {"aspect": "x"}):
        assert not is_camera(SimpleNamespace(**{**good, **changed}))
