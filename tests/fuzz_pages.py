"""What browsers send a view, that fuzzing changes."""

from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from fuzz_changes import Content, changed, changed_bytes
from fuzz_scenes import Changes, Target, pile
from lapjoint import (
    Params,
)
from lapjoint.view.page.access import Access, Request


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

    def _open(self) -> None:
        import msgspec
        import viser
        import websockets.sync.client
        from viser import _messages

        from view_support import live_view

        self._stack = ExitStack()
        params = Params(workers=2, runtime="inline")
        self._view = self._stack.enter_context(live_view(pile(), params))
        self._view.steering.speed = None
        camera = _messages.ViewerCameraMessage(
            (1.0, 0.0, 0.0, 0.0), (0.0, -9.0, 3.0), 0.8, 0.1, 100.0, 600, 900, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)
        )
        self._link = websockets.sync.client.connect(
            f"ws://localhost:{self._view.page.port}/",
            subprotocols=[websockets.Subprotocol(f"viser-v{viser.__version__}")],
            max_size=None,
            proxy=None,
            open_timeout=100,
        )
        self._encode = msgspec.msgpack.encode
        self._link.send(self._encode(camera.as_serializable_dict([])))
        end = time.monotonic() + 100
        while self._view.page.visitor_count == 0 and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.5)
        ray = {"ray_origin": [0.0, -9.0, 3.0], "ray_direction": [0.0, 1.0, -0.2], "screen_pos": [[0.5, 0.5]]}
        controls = [
            h
            for client in self._view.page.server.get_clients().values()
            for h in client.gui._gui_input_handle_from_uuid
        ]
        self._messages = [
            camera.as_serializable_dict([]),
            {"type": "ScenePointerMessage", "event_type": "click", **ray},
            {"type": "ScenePointerMessage", "event_type": "rect-select", **ray, "screen_pos": [[0.1, 0.1], [0.9, 0.9]]},
            *({"type": "GuiUpdateMessage", "uuid": uuid, "updates": {"value": 1}} for uuid in controls),
        ]

    def attempt(self, seed: int, changes: Changes, folder: Path) -> None:
        if self._view is None:
            self._open()
        before = os.fstat(2).st_size
        message = self._messages[(8 * changes[0][1] + seed) % len(self._messages)]
        content = changed(Content(message), changes)
        with suppress(TypeError, OverflowError, RecursionError):  # nothing that the protocol has
            self._link.send(changed_bytes(self._encode(content.description), changes))
        steering, done = self._view.steering, threading.Event()
        steering.ask(lambda simulation: done.set())
        assert done.wait(100), "the simulation does not go on"
        if os.fstat(2).st_size > before:
            with open("/proc/self/fd/2", "rb") as printed:
                printed.seek(before)
                text = printed.read().decode(errors="replace")
            if "Traceback" in text:
                raise AssertionError(text)
