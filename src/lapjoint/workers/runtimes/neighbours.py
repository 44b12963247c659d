"""Which host keeps copies (copies.py) for which: the next one, by the numbers of their machines, of all that have
workers. Hosts that share the server's memory need nobody, but keep copies for others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .entrance import CONNECT_S
from .host_links import Lose, ask
from .placement import Node
from .remote_host import RemoteHost


def link_neighbours(hosts: Sequence[RemoteHost], address: Callable[[Node], str], lose: Lose) -> bool:
    """Give every host a neighbour that needs one and has none; `address` is where that of a node listens. False: one
    has none, for there is no other, or it cannot be reached."""
    ring = sorted((host for host in hosts if not host.is_lost), key=lambda host: host.machine)
    following = dict(zip(ring, [*ring[1:], *ring[:1]], strict=True))
    alone = [host for host in ring if host.is_alone and following[host] is not host]
    asked = {following[host]: {"address": address(following[host].node)} for host in alone}
    offers = ask(asked, "offer", CONNECT_S, lose)
    tickets = {host: offers[following[host]].values for host in alone if following[host] in offers}
    for host, answer in ask(tickets, "keep at", 2 * CONNECT_S, lose).items():
        if not answer.values["error"]:
            host.neighbour = following[host]
    return not any(host.is_alone for host in ring)
