"""Button help: what buttons do, in words. viser 1.1 shows the hints of all controls but buttons."""

from __future__ import annotations

import viser

from .escape import escaped

TITLE = "What the buttons do"


def add_button_help(gui: viser.GuiApi, *buttons: viser.GuiButtonHandle) -> None:
    """Add a closed folder with the label and the hint of each button."""
    with gui.add_folder(TITLE, expand_by_default=False):
        # A hint may name a path.
        lines = [f"**{escaped(button.label)}**: {escaped(button.hint or '')}" for button in buttons]
        gui.add_markdown("\n\n".join(lines))
