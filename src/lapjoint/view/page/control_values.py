"""What a control of a page is set to."""

from __future__ import annotations

from typing import Any

import viser


def value_of(control: viser.GuiDropdownHandle[Any] | viser.GuiSliderHandle[Any] | viser.GuiNumberHandle[Any]) -> Any:
    """The value that a browser has chosen. Whatever it has sent, it is one that the control offers."""
    value = control.value
    if isinstance(control, viser.GuiDropdownHandle):
        return value if value in control.options else control.options[0]
    low, high = control.min, control.max
    assert low is not None
    assert high is not None
    return min(max(value, low), high) if value == value else low  # which not a number is not
