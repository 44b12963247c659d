"""Page: one scene in browsers. It paints snapshots and knows who holds the controls; what controls there are, and what
they do, its owner decides (`live.py`, `playback.py`).

Snapshots are painted by a thread of their own, always the newest one: whoever offers them never waits for a browser,
and a browser that is slow is sent fewer.
"""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np
import viser
from numpy.typing import NDArray
from viser import _messages
from viser.infra import WebsockClientConnection

from ...forks import belongs_here, drop_exit_callbacks
from ...scene import Scene
from ...waits import join
from .access import PASS_HEADER, Access
from .batch import Drag
from .bodies import BodyNodes, add_camera, first_camera
from .by_hand import Draft
from .controls import Controls
from .describe import body_text
from .foreign_messages import log_in_one_line
from .front import END_S, Front
from .highlight import Highlight
from .overlays import Overlays, Wanted
from .panels import Panels
from .picking import Picker, is_camera, is_ray
from .snapshot import Snapshot
from .tints import BY_HAND, Tints, emphasised

PANEL_S = 0.25
"""How often numbers and plots change."""
WIDE = 16 / 9
_MARKED, _FROZEN = (1.0, 1.0, 1.0), (0.45, 0.80, 1.0)


@dataclass
class Look:
    """What the holder of the controls wants to see."""

    mode: str
    wanted: Wanted = field(default_factory=Wanted)
    opacity: float = 1.0


@dataclass
class Visitor:
    """A browser."""

    client: viser.ClientHandle
    info: viser.GuiMarkdownHandle
    highlight: Highlight
    notice: viser.GuiMarkdownHandle | None = None
    """That another one holds the controls."""
    body: int | None = None
    """The body that was clicked in it last."""

    def chosen(self, snapshot: Snapshot) -> int | None:
        """That body, if it is there."""
        return self.body if self.body is not None and snapshot.has(self.body) else None


class Page:
    """A scene that browsers look at, over time if it `moves`. Its bodies come and go with the snapshots."""

    def __init__(
        self,
        first: Snapshot,
        draft: Draft,
        *,
        access: Access,
        port: int = 8080,
        mode: str = "label",
        moves: bool = True,
        has_contacts: bool = True,
        coupling: str = "blend",
    ) -> None:
        self.draft, self.look = draft, Look(mode)
        self.has_contacts, self.coupling = has_contacts, coupling
        self.marked: NDArray[np.intp] = np.empty(0, np.intp)
        """Bodies in the last rectangle."""
        self.status: Callable[[Snapshot], str] = lambda snapshot: ""
        self.build_controls: list[Callable[[viser.ClientHandle], None]] = []
        """Make the controls of the browser that gets them."""
        self.sync_look: Callable[[], None] = lambda: None
        """Makes the controls show what the look is."""
        self.on_repaint: list[Callable[[Snapshot], None]] = []
        """Called with every snapshot that was painted, a few times a second."""
        self.drag: Drag | None = None
        """Called when a body is dragged, from the next snapshot on; with None the camera turns."""
        self.painted_count = self.dropped_count = 0
        self.controls = Controls()
        self._visitors: dict[int, Visitor] = {}
        self._picker = Picker(first.scene)
        self._tints = Tints(draft.worker_count)
        self._news = threading.Condition()
        self._next: Snapshot | None = first
        self.snapshot = first
        """The last one painted."""
        self._stale = self._ended = False
        self._described: Snapshot | None = None
        self._described_at = 0.0
        with _quiet():
            self.server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
        self._front: Front | None = None
        try:
            self._guard(access)
            self.server.gui.configure_theme(show_logo=False, show_share_button=False, control_width="large")
            self.server.gui.main_panel.dock_right()
            self.server.gui.set_panel_label(f"lapjoint · {first.scene.name}")
            self.server.scene.world_axes.visible = False
            self.nodes = BodyNodes(self.server, first.scene)
            self._camera = first_camera(first.scene, first.states, first.alive)
            add_camera(self.server, self._camera)
            self._overlays = Overlays(self.server)
            self._panels = Panels(self.server, draft.worker_count, moves, coupling)
            self.server.scene.on_click()(self._click)
            self._front = Front(access, port, self.server.get_port())
        except BaseException:
            self.close()
            raise
        self.address = access.address(self._front.port)
        self.port = self._front.port
        belongs_here(self, "the page", lambda _: drop_exit_callbacks("viser"))
        self._painter = threading.Thread(target=self._paint_forever, name="lapjoint-page", daemon=True)

    def open(self) -> None:
        """Let browsers in. All of `build_controls` must be in place."""
        self.server.on_client_connect(self._meet)
        self.server.on_client_disconnect(self._miss)
        self._painter.start()

    def close(self) -> None:
        """Send browsers away."""
        with self._news:
            self._ended = True
            self._news.notify_all()
        if self._front is not None:
            self._front.close()
            self._front = None
        painter = getattr(self, "_painter", None)
        if painter is not None and painter.is_alive():
            join(painter, END_S, "the thread that paints the view")
        with _quiet():
            self.server.stop()
            # It waits 6 s; a browser that does not answer has 10 s, and the event loop is closed after that.
            thread = self.server._websock_server._server_thread
            if thread is not None:
                join(thread, END_S, "the server of the view's page")

    def __enter__(self) -> Page:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- snapshots -------------------------------------------------------------------------------------------------

    @property
    def scene(self) -> Scene:
        """Of the last snapshot painted."""
        return self.snapshot.scene

    @property
    def wants_snapshot(self) -> bool:
        """Whether a browser is there, and the last snapshot has been painted."""
        return bool(self._visitors) and self._next is None

    def offer(self, snapshot: Snapshot) -> None:
        """Paint this next, and drop what was not painted yet. Returns at once."""
        with self._news:
            self.dropped_count += self._next is not None
            self._next = snapshot
            self._news.notify_all()

    def repaint(self) -> None:
        """Paint the last snapshot again: something else has changed."""
        with self._news:
            self._stale = True
            self._news.notify_all()

    def _paint_forever(self) -> None:
        while True:
            with self._news:
                news = self._news.wait_for(
                    lambda: self._ended or self._stale or self._next is not None,
                    None if self._described is self.snapshot else PANEL_S,
                )
                if self._ended:
                    return
                snapshot = self.snapshot if self._next is None else self._next
                at_once, self._stale = self._stale, False
            if news:
                self._paint(snapshot)
            if at_once or time.monotonic() - self._described_at >= PANEL_S:
                self._update_panels(snapshot)
            with self._news:
                self.painted_count += news
                if self._next is snapshot:
                    self._next = None

    def _paint(self, snapshot: Snapshot) -> None:
        self._follow(snapshot)
        look, draft = self.look, self.draft.partition
        colors = self._tints.colors(look.mode, snapshot, draft)
        # A little light more or less sets neighbours of one colour apart.
        shade = 1.0 + 0.12 * (np.arange(len(colors))[:, None] * 0.618034 % 1.0 - 0.5)
        colors = np.clip(colors * shade, 0.0, 1.0)
        colors = emphasised(colors, snapshot.frozen, _FROZEN, 0.5)
        colors = emphasised(colors, self.marked, _MARKED, 0.6)
        with self.server.atomic():
            self.nodes.update(snapshot.scene, snapshot.alive, snapshot.states, colors)
            if snapshot.static_poses is not None:
                self.nodes.move_statics(snapshot.static_poses, snapshot.scene.kinematic_ids)
            self.nodes.set_opacity(look.opacity)
            self.nodes.set_drag(self.drag)
            self._overlays.update(snapshot, look.wanted, draft if look.mode == BY_HAND else None)
        for visitor in self.visitors():
            with visitor.client.atomic():
                visitor.highlight.update(visitor.chosen(snapshot), snapshot.states)
        self.snapshot = snapshot

    def _follow(self, snapshot: Snapshot) -> None:
        """Let what is kept of bodies be of those that there are now."""
        if snapshot.start_number != self.snapshot.start_number:
            self.nodes.clear()
            self.draft.restart()
            for visitor in self.visitors():
                visitor.body = visitor.chosen(snapshot)
        if len(self.draft.partition) < len(snapshot.alive):
            self.draft.add(snapshot.weights[len(self.draft.partition) :].argmax(axis=1))
        marked = [body for body in self.marked.tolist() if snapshot.has(body)]
        if len(marked) < len(self.marked):
            self.marked = np.array(marked, np.intp)

    def _update_panels(self, snapshot: Snapshot) -> None:
        """Write numbers, plots and texts of this moment."""
        self._described, self._described_at = snapshot, time.monotonic()
        legend = self._tints.legend(self.look.mode, snapshot.contacts is not None)
        self._panels.update(snapshot, legend, self.status(snapshot))
        for visitor in self.visitors():
            self._describe(visitor)
        for callback in self.on_repaint:
            callback(snapshot)

    # ---- browsers --------------------------------------------------------------------------------------------------

    @property
    def visitor_count(self) -> int:
        return len(self._visitors)

    def visitors(self) -> list[Visitor]:
        """All browsers, in the order in which they came."""
        return list(self._visitors.values())

    @property
    def watching(self) -> str:
        """How many browsers watch, as the end of a line."""
        count = self.controls.watcher_count
        return f" · {count} watching" if count else ""

    def holder(self) -> Visitor | None:
        """Who holds the controls."""
        return next((v for v in self.visitors() if self.controls.has(v.client.client_id)), None)

    def holds(self, client: viser.ClientHandle) -> bool:
        """Whether this browser holds the controls; it is notified if not."""
        if self.controls.has(client.client_id):
            return True
        self.notify(client, "You are watching", "Another browser holds the controls.")
        return False

    def notify(self, client: viser.ClientHandle | None, title: str, text: str) -> None:
        """Show a note in one browser, or in that with the controls."""
        if client is None:
            holder = self.holder()
            client = None if holder is None else holder.client
        if client is not None:
            client.add_notification(title, text, auto_close_seconds=6.0)

    async def _meet(self, client: viser.ClientHandle) -> None:
        gui = client.gui
        with gui.add_folder("Body", order=20):
            info = gui.add_markdown("Click a body.")
        self._visitors[client.client_id] = Visitor(client, info, Highlight(client, self.nodes))
        self._follow_window(client)
        if self.controls.join(client.client_id):
            self._give_controls(client)
        else:
            notice = "**You are watching.** Another browser holds the controls; you get them when it leaves."
            self._visitors[client.client_id].notice = gui.add_markdown(notice, order=1)
        self.repaint()

    async def _miss(self, client: viser.ClientHandle) -> None:
        self._visitors.pop(client.client_id, None)
        heir_id = self.controls.leave(client.client_id)
        heir = None if heir_id is None else self._visitors.get(heir_id)
        if heir is not None:
            if heir.notice is not None:
                heir.notice.remove()
                heir.notice = None
            self._give_controls(heir.client)
            self.repaint()
            self.notify(heir.client, "You have the controls", "The browser that had them has left.")

    def _follow_window(self, client: viser.ClientHandle) -> None:
        """Cameras are made for wide pictures: in a narrow window they step back, until the user moves them."""
        eye, target = np.array(self._camera.eye), np.array(self._camera.target)
        camera, placed = client.camera, [eye]

        async def place(_: viser.CameraHandle) -> None:
            if not is_camera(camera):
                return
            wanted = target + max(1.0, WIDE / camera.aspect) * (eye - target)
            untouched = np.linalg.norm(camera.position - placed[0]) < 1e-3 * self._camera.distance
            if untouched and not np.allclose(wanted, placed[0]):
                placed[0] = wanted
                camera.position = wanted
                camera.look_at = target

        camera.on_update(place)

    def _give_controls(self, client: viser.ClientHandle) -> None:
        for build in self.build_controls:
            build(client)

    def _click(self, event: viser.SceneClickEvent) -> None:
        visitor = self._visitors.get(event.client_id)
        if visitor is None or not is_ray(event.ray_origin, event.ray_direction):
            return
        snapshot = self.snapshot
        if self._picker.scene is not snapshot.scene:
            self._picker = Picker(snapshot.scene)
        body, _ = self._picker.pick(
            snapshot.states, event.ray_origin, event.ray_direction, snapshot.static_poses, alive=snapshot.alive
        )
        visitor.body = body if body >= 0 else None
        self.repaint()

    def _describe(self, visitor: Visitor) -> None:
        """Write what is known of the clicked body."""
        body = visitor.chosen(self.snapshot)
        visitor.info.content = "Click a body." if body is None else body_text(self.snapshot, body)

    # ---- safety ----------------------------------------------------------------------------------------------------

    def _guard(self, access: Access) -> None:
        """Close websockets that did not come through the front, and open no tunnel to the outside on request."""
        log_in_one_line()
        inner = self.server._websock_server
        inner.unregister_handler(_messages.ShareUrlRequest)
        inner.unregister_handler(_messages.ShareUrlDisconnect)

        async def check(connection: WebsockClientConnection) -> None:
            socket = inner._live_connections[connection.client_id]
            if socket.request is None or socket.request.headers.get(PASS_HEADER) != access.secret:
                await socket.close(1008, "not through the front")

        inner.on_client_connect(check)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress what viser prints: the address it listens at, which is not the one to open."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
