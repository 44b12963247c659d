"""Front: a proxy before a view. It reads the head of each connection, refuses or relays it, and changes nothing else.

The server of the page listens on this machine at a port of its own and knows nothing of tokens, so the front stands
before it. It serves one request per connection: what the server behind it does as well.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress

from ...errors import LapjointError
from ...forks import belongs_here
from ...system.shortage import reason
from ...waits import join
from .access import COOKIE, PASS_HEADER, Access, Request

HEAD_SIZE = 32 << 10
HEAD_S = 20.0
"""How long a connection may take to send its head [s]."""
END_S = 30.0
"""What a thread of the view may take to end [s]."""
MOST_STRANGERS = 128
"""How many connections may be open that have not been let in. One more closes the oldest of them: browsers send their
heads at once, so it is silent ones that are closed, and they keep nobody out."""


class Front:
    """Listens on a host and port, in a thread of its own, until closed."""

    def __init__(self, access: Access, port: int, inner_port: int) -> None:
        self._access, self._inner_port = access, inner_port
        self._socket = _listen(access.host, port)
        self.port = int(self._socket.getsockname()[1])
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._links: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        """All connections, by the tasks that serve them."""
        self._strangers: dict[asyncio.StreamWriter, None] = {}
        """Connections that have not been let in, oldest first."""
        self._thread = threading.Thread(target=self._work, name="lapjoint-front", daemon=True)
        self._thread.start()
        belongs_here(self, "the front", lambda own: own._socket.close())

    def close(self) -> None:
        """Stop listening, and close all connections."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ended.set)
            join(self._thread, END_S, "the thread that serves the view")

    def _work(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._arrive, sock=self._socket, limit=HEAD_SIZE)
        await self._ended.wait()
        # Accept no more; the server is closed last, else those that are just being accepted are never closed.
        self._loop.remove_reader(self._socket)
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in self._links:
                task.cancel()
            await asyncio.wait(others, timeout=1.0)
        server.close()
        for _ in range(3):  # so many turns of the loop until all sockets are closed
            await asyncio.sleep(0)

    def _arrive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection in a task of its own. asyncio's would print a traceback when cancelled."""
        task = self._loop.create_task(self._meet(reader, writer))
        self._links[task] = writer
        task.add_done_callback(lambda task: self._links.pop(task).transport.abort())

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        if len(self._strangers) >= MOST_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.transport.abort()
        self._strangers[writer] = None
        try:
            # A connection ends as it ends; cancelled, it is because the view is closed.
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_S)
                request = Request.parse(head)
                refusal = None if request is None else self._access.refusal(request)
                if request is None:
                    writer.write(_answer("400 Bad Request", "not an HTTP request"))
                elif refusal is not None:
                    writer.write(_answer("403 Forbidden", refusal))
                else:
                    self._strangers.pop(writer, None)
                    await self._relay(request, head, reader, writer)
        finally:
            await _close(writer)
            self._strangers.pop(writer, None)

    async def _relay(
        self, request: Request, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        back_reader, back_writer = await asyncio.open_connection("127.0.0.1", self._inner_port, limit=HEAD_SIZE)
        try:
            passed = f"{PASS_HEADER}: {self._access.secret}\r\n\r\n".encode()
            back_writer.write(head.removesuffix(b"\r\n") + passed)
            answer = await back_reader.readuntil(b"\r\n\r\n")
            if self._access.token is not None and not request.is_websocket:
                # The page opens its websocket without the token of its address; the cookie goes with it.
                cookie = f"Set-Cookie: {COOKIE}={self._access.token}; Path=/; HttpOnly; SameSite=Strict\r\n\r\n"
                answer = answer.removesuffix(b"\r\n") + cookie.encode()
            writer.write(answer)
            ways = [asyncio.create_task(_pump(reader, back_writer)), asyncio.create_task(_pump(back_reader, writer))]
            try:
                # A page that has been sent is done; a websocket is done when either side is.
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            await _close(back_writer)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 18):
        writer.write(data)
        await writer.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError, asyncio.CancelledError):
        await writer.wait_closed()


def _answer(status: str, reason: str) -> bytes:
    text = f"lapjoint: {reason}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + text


def _listen(host: str, port: int) -> socket.socket:
    """A socket at that address; with port 0 at any free port."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise LapjointError(f"--host {host}: {reason(error)}, expected an address of this machine") from None
    # "localhost" may be an IPv6 address too; browsers try both, and IPv4 is always there.
    family, _, _, _, place = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    door = socket.socket(family, socket.SOCK_STREAM)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind(place)
        door.listen()
    except OSError as error:
        door.close()
        raise LapjointError(f"--host {host} --port {port}: {reason(error)}, expected a free port") from None
    return door
