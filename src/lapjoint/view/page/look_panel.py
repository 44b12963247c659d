"""The controls of what is shown: colours, overlays, opacity."""

from __future__ import annotations

import viser

from ..draw.coloring import modes_of
from .control_values import value_of
from .page import Page
from .tints import BY_HAND, MODE_NAMES

THROUGH = 0.25
"""Opacity of bodies while lines between their centres are shown, at first."""


def build_look_panel(page: Page, client: viser.ClientHandle) -> None:
    """Folder "Colours and overlays" in the browser that holds the controls."""
    gui, look = client.gui, page.look
    shared = ("worker", "overlap", "interface", BY_HAND)
    known = (*modes_of(page.coupling), BY_HAND)
    modes = [mode for mode in MODE_NAMES if mode in known and (page.draft.worker_count > 1 or mode not in shared)]
    with gui.add_folder("Colours and overlays", order=10):
        mode = gui.add_dropdown(
            "Colour by", modes, initial_value=look.mode, hint="What a body's colour shows; the legend is below."
        )
        joints = gui.add_checkbox("Joints", look.wanted.joints, hint="Lines from body to anchor to body.")
        contacts = gui.add_checkbox(
            "Contacts",
            look.wanted.contacts,
            disabled=not page.has_contacts,
            hint="Lines between the centres of touching bodies."
            if page.has_contacts
            else "This recording has none: it was made without --record-contacts.",
        )
        graph = gui.add_checkbox(
            "Constraint graph", look.wanted.graph, hint="Joints and contacts between bodies; interface edges are red."
        )
        opacity = gui.add_slider(
            "Opacity", 0.05, 1.0, 0.05, look.opacity, hint="Of bodies; lower it to see the lines inside them."
        )

    def change(_: object) -> None:
        before = look.wanted.any()
        look.mode = value_of(mode)
        look.wanted.joints, look.wanted.contacts, look.wanted.graph = joints.value, contacts.value, graph.value
        # Lines between centres are inside the bodies.
        if look.wanted.any() != before:
            opacity.value = THROUGH if look.wanted.any() else 1.0  # type: ignore[misc]
        look.opacity = value_of(opacity)
        page.repaint()

    def sync() -> None:
        if mode.value != look.mode:
            mode.value = look.mode  # type: ignore[misc]

    page.sync_look = sync
    for control in (mode, joints, contacts, graph, opacity):
        control.on_update(change)
