"""The controls of the partition by hand: mark bodies with a rectangle, give them to a worker, apply, save."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import viser
from numpy.typing import NDArray

from ...errors import LapjointError
from .button_help import add_button_help
from .by_hand import interface_counts
from .control_values import value_of
from .overlays import joint_edges
from .page import Page
from .picking import in_rectangle, is_camera, is_rectangle, project
from .tints import BY_HAND

Apply = Callable[[NDArray[np.int32], Callable[[], None]], None]
"""Repartitions a running simulation, and then calls the function."""


class PartitionPanel:
    """Folder "Partition by hand". Files are saved in `folder`; `apply` repartitions the simulation, if one runs."""

    def __init__(self, page: Page, folder: Path, apply: Apply | None = None) -> None:
        self._page, self._folder, self._apply = page, folder, apply
        self._text: viser.GuiMarkdownHandle | None = None
        page.server.scene.on_rect_select(modifier="shift")(self._mark)
        page.build_controls.append(self._build)
        page.on_repaint.append(lambda snapshot: self._update())

    def _build(self, client: viser.ClientHandle) -> None:
        page, gui = self._page, client.gui
        count = page.draft.worker_count
        with gui.add_folder("Partition by hand", order=40, expand_by_default=False):
            self._text = gui.add_markdown("")
            worker = gui.add_dropdown(
                "Worker", [str(w) for w in range(count)], hint="Which worker the marked bodies are given to."
            )
            give = gui.add_button(
                "Give marked bodies to this worker", hint="Changes the draft; the colours show it at once."
            )
            undo = gui.add_button("Undo", hint="Take back the last change of the draft.")
            running = [] if self._apply is None else self._build_apply(client, self._apply)
            name = gui.add_text("File", "partition.txt", hint="A plain name that ends in .txt.")
            save = gui.add_button("Save", hint=f"Write the draft as a file for --partition into {self._folder}.")
            add_button_help(gui, give, undo, *running, save)

        def on_give(_: object) -> None:
            if not len(page.marked):
                page.notify(client, "No bodies marked", "Hold Shift and drag a rectangle around some.")
            page.draft.give(page.marked, int(value_of(worker)))
            page.marked = page.marked[:0]
            self._show(BY_HAND)

        def on_undo(_: object) -> None:
            if not page.draft.undo():
                page.notify(client, "Nothing to undo", "The partition is as it was at first.")
            page.repaint()

        def on_save(_: object) -> None:
            try:
                path = page.draft.save(self._folder, name.value)
            except LapjointError as error:
                page.notify(client, "Not saved", str(error))
                return
            page.notify(client, "Saved", f"{path}: lapjoint run ... --workers {count} --partition {path.name}")

        give.on_click(on_give)
        undo.on_click(on_undo)
        save.on_click(on_save)

    def _build_apply(self, client: viser.ClientHandle, apply: Apply) -> list[viser.GuiButtonHandle]:
        """Add and return the buttons that only a running simulation has."""
        page, gui = self._page, client.gui
        copy = gui.add_button(
            "Copy the present partition", hint="Let the draft begin from the workers that bodies have now."
        )
        button = gui.add_button(
            "Apply to the run",
            icon=viser.Icon.CHECK,
            hint="Repartition the running simulation so, in its next step. Balancing goes on from there; a run with "
            "--repartition 0 keeps the partition.",
        )

        def applied() -> None:
            page.notify(client, "Applied", "Bodies migrate to their workers in the next step.")
            self._show("worker")

        def on_copy(_: object) -> None:
            page.draft.replace(page.snapshot.weights.argmax(axis=1))
            self._show(BY_HAND)

        button.on_click(lambda _: apply(page.draft.partition, applied))
        copy.on_click(on_copy)
        return [copy, button]

    def _show(self, mode: str) -> None:
        """Colour bodies in this way."""
        self._page.look.mode = mode
        self._page.sync_look()
        self._page.repaint()

    def _mark(self, event: viser.SceneRectSelectEvent) -> None:
        page = self._page
        camera, snapshot = event.client.camera, page.snapshot
        if not (page.holds(event.client) and is_camera(camera) and is_rectangle(event.screen_min, event.screen_max)):
            return
        screen, depth = project(snapshot.states[:, :3], camera.position, camera.wxyz, camera.fov, camera.aspect)
        inside = in_rectangle(screen, depth, event.screen_min, event.screen_max)
        page.marked = inside[snapshot.alive[inside]]
        page.repaint()

    def _update(self) -> None:
        if self._text is not None and self._page.holder() is not None:
            self._text.content = self._summary()

    def _summary(self) -> str:
        page, draft, snapshot = self._page, self._page.draft, self._page.snapshot
        joints, contacts = interface_counts(draft.partition, joint_edges(snapshot), snapshot.touching())
        counts = ", ".join(f"{w}: {count:,}" for w, count in enumerate(draft.body_counts(snapshot.alive).tolist()))
        return (
            f"Shift-drag a rectangle to mark bodies: **{len(page.marked):,} marked**.\n\n"
            f"Bodies per worker: {counts}.\n\n"
            f"Interface edges: **{joints + contacts:,}** ({joints:,} joints, {contacts:,} contacts)."
        )
