"""Who may connect to a worker that listens for others."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from lapjoint.workers.runtimes.ray_link import CONNECT_S, MOST_SILENT, Entrance, connect
from ray_support import LIMIT_S


@pytest.mark.parametrize("address", [None, "127.0.0.1"])
def test_only_tickets_are_let_in(address: str | None) -> None:
    entrance = Entrance(address)
    first, second = entrance.ticket(4), entrance.ticket(2)
    strangers = [connect(first["at"], b"x" * 32), connect(first["at"], b"short")]
    strangers[1].shutdown(socket.SHUT_WR)
    links = [connect(**second), connect(**first), connect(**first)]  # the last once more than allowed
    found = entrance.receive(LIMIT_S)
    assert sorted(found) == [2, 4]
    found[2].sendall(b"two")
    assert links[0].recv(3) == b"two"
    entrance.close()
    for stranger in (*strangers, links[2]):
        stranger.settimeout(LIMIT_S)
        with suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
        stranger.close()
    with pytest.raises(OSError, match="refused"):
        connect(**second)
    for link in (*links[:2], *found.values()):
        link.close()


@pytest.mark.parametrize("address", [None, "127.0.0.1"])
def test_silent_connections_cost_nothing(address: str | None) -> None:
    """Each once took a second, one after the other, so that a few kept all workers out."""
    entrance = Entrance(address)
    ticket = entrance.ticket(0)
    with ThreadPoolExecutor(1) as pool:
        received = pool.submit(entrance.receive, CONNECT_S)
        silent = [connect(ticket["at"], part) for part in [b"", b"x"] * (MOST_SILENT // 2 + 20)]
        worker = connect(ticket["at"], ticket["token"][:16])
        silent[0].settimeout(LIMIT_S)
        assert silent[0].recv(1) == b"", "the oldest are closed"
        worker.sendall(ticket["token"][16:] + b"more")
        found = received.result()
    assert list(found) == [0]
    assert found[0].recv(9) == b"more", "nothing beyond the token was read"
    for link in (*silent, worker, found[0]):
        link.close()
    entrance.close()
