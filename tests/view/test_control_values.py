"""What a control of a page is set to, whatever a browser has sent."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
import viser

from lapjoint.view.page.control_values import value_of


@pytest.mark.parametrize(("sent", "value"), [("fast", "fast"), ("nan", "slow"), (7, "slow"), (None, "slow")])
def test_a_choice_is_one_of_those_offered(sent: Any, value: str) -> None:
    assert value_of(Mock(spec=viser.GuiDropdownHandle, value=sent, options=("slow", "fast"))) == value


@pytest.mark.parametrize(("sent", "value"), [(3, 3), (-1, 1), (1e300, 9), (float("nan"), 1), (float("inf"), 9)])
@pytest.mark.parametrize("kind", [viser.GuiSliderHandle, viser.GuiNumberHandle])
def test_a_number_is_within_its_bounds(kind: type, sent: float, value: int) -> None:
    assert value_of(Mock(spec=kind, value=sent, min=1, max=9)) == value
