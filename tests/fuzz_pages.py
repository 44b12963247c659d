"""What browsers send a view, that fuzzing changes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import viser
import websockets.exceptions
import websockets.sync.client
from viser import _messages

from fuzz_changes import Content, changed, changed_bytes
from fuzz_scenes import Changes, Target, pile
from lapjoint import Params
from lapjoint.view.page.access import Access, Request
from view_support import live_view

CAMERA = _messages.ViewerCameraMessage(
    (1.0, 0.0, 0.0, 0.0), (0.0, -9.0, 3.0), 0.8, 0.1, 100.0, 600, 900, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)
)


class PageHeads(Target):
    """The head of a request to a view."""

    def __init__(self) -> None:
        head = b"GET /?token=abc HTTP/1.1\r\nHost: localhost:8080\r\nOrigin: http://localhost:8080\r\n"
        self.seeds = [head + b"Upgrade: websocket\r\nCookie: a=b; lapjoint_token=abc\r\n\r\n"]

    def attempt(self, seed: int, changes: Changes, folder: Path) -> None:

        pieces = [b":", b"\r\n", b" ", b"//[", b"%00", b"\xff", b"[::1]", b"localhost", b"abc", b"=", b";", b"?"]
        data = self.seeds[seed]
        for _, where, what, more in changes:
            place = where % (len(data) + 1)
            data = data[:place] + pieces[what % len(pieces)] + data[place + more % 12 :]
        request = Request.parse(changed_bytes(data, changes))
        if request is not None:
            for access in (Access("localhost"), Access("192.0.2.1", "abc")):
                access.refusal(request)


class PageMessages(Target):
    """What a browser sends a live view: the page and the simulation go on, and nobody prints a traceback."""

    def __init__(self) -> None:
        self.seeds = [Content(None)] * 8
        self._view: Any = None
        self._folder = TemporaryDirectory(prefix="lapjoint-fuzz-")  # a partition by hand may be written

    def close(self) -> None:
        self._folder.cleanup()

    def _open(self) -> None:
        self._stack = ExitStack()  # for as long as the process
        params = Params(workers=2, runtime="inline")
        self._view = self._stack.enter_context(live_view(pile(), params, folder=Path(self._folder.name)))
        self._view.steering.speed = None
        # It is not the simulation's own time that counts.
        self._view.steering.ask(lambda simulation: simulation.on_step(lambda _: time.sleep(0.01)))
        self._connect()

    def _connect(self) -> None:
        """Be a browser, the only one: it has the controls."""
        page = self._view.page
        self._wait_for(lambda: page.visitor_count == 0)
        self._link = websockets.sync.client.connect(
            f"ws://localhost:{page.port}/",
            subprotocols=[websockets.Subprotocol(f"viser-v{viser.__version__}")],
            max_size=None,
            proxy=None,
            open_timeout=100,
        )
        camera = {**vars(CAMERA), "type": "ViewerCameraMessage"}
        self._link.send(msgspec.msgpack.encode(camera))
        self._wait_for(lambda: page.visitor_count == 1 and len(self._controls()) > 5)
        ray = {"ray_origin": [0.0, -9.0, 3.0], "ray_direction": [0.0, 1.0, -0.2], "screen_pos": [[0.5, 0.5]]}
        pointer = {"type": "ScenePointerMessage", "event_type": "click", "modifier": None, **ray}
        corners = [[0.1, 0.1], [0.9, 0.9]]
        self._messages = [
            camera,
            pointer,
            {**pointer, "event_type": "rect-select", "modifier": "shift", "screen_pos": corners},
            *({"type": "GuiUpdateMessage", "uuid": uuid, "updates": {"value": 1}} for uuid in self._controls()),
        ]

    def _controls(self) -> list[str]:
        clients = self._view.page.server.get_clients().values()
        return [uuid for client in clients for uuid in client.gui._gui_input_handle_from_uuid]

    @staticmethod
    def _wait_for(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 100
        while not condition() and time.monotonic() < end:
            time.sleep(0.005)

    def attempt(self, seed: int, changes: Changes, folder: Path) -> None:
        if self._view is None:
            self._open()
        before = os.fstat(2).st_size
        message = self._messages[(8 * changes[0][1] + seed) % len(self._messages)]
        content = changed(Content(message), changes)
        try:
            data = changed_bytes(msgspec.msgpack.encode(content.description), changes)
        except (TypeError, OverflowError, RecursionError):  # nothing that the protocol has
            return
        try:
            self._link.send(data)
            if not self._link.ping().wait(0.3):  # most likely nobody listens to this browser any more
                self._link.close()
                self._connect()
        except websockets.exceptions.ConnectionClosed:
            self._connect()
        done = threading.Event()
        self._view.steering.ask(lambda simulation: done.set())
        assert done.wait(100), "the simulation does not go on"
        if os.fstat(2).st_size > before:
            with open("/proc/self/fd/2", "rb") as printed:
                printed.seek(before)
                text = printed.read().decode(errors="replace")
            assert "Traceback" not in text, text
