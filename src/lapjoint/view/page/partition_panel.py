"""The controls of the partition by hand: mark bodies with a rectangle, give them to a worker, save."""

from __future__ import annotations

from pathlib import Path

import viser

from ...errors import LapjointError
from .by_hand import interface_counts
from .overlays import joint_edges
from .page import Page
from .picking import in_rectangle, project


class PartitionPanel:
    """Belongs to a page; `folder` is where files are saved."""

    def __init__(self, page: Page, folder: Path) -> None:
        self._page, self._folder = page, folder
        self._text: viser.GuiMarkdownHandle | None = None
        page.server.scene.on_rect_select(modifier="shift")(self._mark)
        page.build_controls.append(self._build)
        page.on_repaint.append(lambda snapshot: self._tell())

    def _build(self, client: viser.ClientHandle) -> None:
        page, gui = self._page, client.gui
        count = page.draft.worker_count
        with gui.add_folder("Partition by hand", order=40, expand_by_default=False):
            self._text = gui.add_markdown(self._summary())
            worker = gui.add_dropdown("Worker", [str(w) for w in range(count)])
            give = gui.add_button("Give marked bodies to this worker")
            undo = gui.add_button("Undo")
            name = gui.add_text("File", "partition.txt")
            save = gui.add_button("Save")

        def on_give(_: object) -> None:
            page.draft.give(page.marked, int(worker.value))
            page.marked = page.marked[:0]
            page.look.mode = "partition by hand"
            page.sync_look()
            page.repaint()

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

    def _mark(self, event: viser.SceneRectSelectEvent) -> None:
        page = self._page
        if not page.holds(event.client):
            return
        camera = event.client.camera
        places = page.snapshot.states[: page.body_count, :3]
        screen, depth = project(places, camera.position, camera.wxyz, camera.fov, camera.aspect)
        page.marked = in_rectangle(screen, depth, event.screen_min, event.screen_max)
        page.repaint()

    def _tell(self) -> None:
        if self._text is not None and self._page.holder() is not None:
            self._text.content = self._summary()

    def _summary(self) -> str:
        page, draft = self._page, self._page.draft
        touching = page.snapshot.touching()
        touching = touching[(touching < page.body_count).all(axis=1)]
        joints, contacts = interface_counts(draft.partition, joint_edges(page.scene), touching)
        counts = ", ".join(f"{w}: {count:,}" for w, count in enumerate(draft.body_counts().tolist()))
        return (
            f"Shift-drag a rectangle to mark bodies: **{len(page.marked):,} marked**.\n\n"
            f"Bodies per worker: {counts}.\n\n"
            f"Interface edges: **{joints + contacts:,}** ({joints:,} joints, {contacts:,} contacts)."
        )
