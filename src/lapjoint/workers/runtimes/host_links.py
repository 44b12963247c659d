"""How machines come to reach each other, for what their workers send each other within a step: one connection for each
two of them. The one with the lower number listens, and the other connects with the token that it was given through the
server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import WorkerError
from ...waits import Patience
from .entrance import CONNECT_S
from .link import Letter
from .placement import Node
from .remote_host import HostLost, RemoteHost

Lose = Callable[[RemoteHost], None]


def ask(
    hosts: Mapping[RemoteHost, Mapping[str, Any]], kind: str, limit_s: float, lose: Lose
) -> dict[RemoteHost, Letter]:
    """The answers of all hosts to letters with these values. `lose` is called for those that give none."""
    answers, patience = {}, Patience(limit_s)
    for host, values in hosts.items():
        try:
            host.send(kind, **values)
        except HostLost:
            lose(host)
    for host in hosts:
        if host.is_lost:
            continue
        try:
            answers[host] = host.expect(kind, patience)
        except HostLost:
            lose(host)
    return answers


def link_hosts(hosts: Sequence[RemoteHost], address: Callable[[Node], str], lose: Lose) -> None:
    """Let hosts that cannot yet, and all others, reach each other; `address` is where that of a node listens. A
    WorkerError, if that fails."""
    callers: dict[RemoteHost, list[RemoteHost]] = {host: [] for host in hosts}
    for host in hosts:
        callers[host] = [
            other for other in hosts if other.machine > host.machine and not (other.is_linked and host.is_linked)
        ]
    listening = {
        host: {"address": address(host.node), "machines": [other.machine for other in others]}
        for host, others in callers.items()
        if others
    }
    tickets = ask(listening, "listen", CONNECT_S, lose)
    given: dict[RemoteHost, list[Any]] = {host: [] for host in hosts}
    by_machine = {host.machine: host for host in hosts}
    for host, answer in tickets.items():
        for machine, ticket in answer.values["tickets"]:
            if machine in by_machine:
                given[by_machine[machine]].append([host.machine, host.node.address, ticket])
    connecting = {host: {"tickets": found} for host, found in given.items() if found and not host.is_lost}
    connected = ask(connecting, "connect", 2 * CONNECT_S, lose)
    errors = [
        f"{host.node.address} cannot reach {error}"
        for host, answer in connected.items()
        for error in answer.values["errors"]
    ]
    # Whatever has happened, nobody listens after it. Who connects has done so by now.
    seconds = 0.0 if errors or any(host.is_lost for host in hosts) else CONNECT_S
    let_in = ask({host: {"seconds": seconds} for host in tickets if not host.is_lost}, "let in", 2 * CONNECT_S, lose)
    errors += [
        f"{by_machine[machine].node.address} did not connect to {host.node.address}"
        for host, answer in let_in.items()
        for machine in answer.values["missing"]
        if machine in by_machine and not by_machine[machine].is_lost
    ]
    if errors:
        raise WorkerError(errors[0])
    for host in hosts:
        host.is_linked = True
