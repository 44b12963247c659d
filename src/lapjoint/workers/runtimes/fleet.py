"""The hosts that are there and the workers on them: how they start and end, and who is given up."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ...errors import WorkerError
from ...waits import Patience
from ..codec import from_bytes
from ..messages import OwnStates
from .cluster import LOCALHOST, Cluster, NodeError
from .digest import source_digest
from .entrance import Entrance
from .host import where
from .host_links import ask, link_hosts
from .link import Link
from .neighbours import link_neighbours
from .placement import Node
from .ray_remains import is_running
from .remote_host import HostedWorker, HostLost, RemoteHost
from .shared import SharedMemory

START_S = 60.0
"""What a host may take at least to start [s]: Ray itself takes most of a minute on a busy machine."""
LEAVE_S = 5.0
"""How long all workers together may take to be gone [s]."""


class Fleet:
    """`start_s` is what a worker may take to start."""

    def __init__(self, cluster: Cluster, start_s: float) -> None:
        self.workers: list[HostedWorker] = []
        self.hosts: list[RemoteHost] = []
        self._cluster, self._start_s = cluster, start_s
        self._machine_count = 0  # that there have been

    # ---- who is given up ---------------------------------------------------------------------------------------------

    def send_or_lose(self, host: RemoteHost, kind: str, attempt: int | None, **values: Any) -> None:
        try:
            host.send(kind, **values)
        except HostLost:
            self.lose(host, attempt)

    def lose(self, host: RemoteHost, attempt: int | None = None, kind: str = "gone") -> None:
        """A host is given up, and its workers with it."""
        if host.is_lost:
            return
        why = host.lose()
        for worker in self.workers:
            if worker.host is host:
                worker.fail(kind, f"on {host.node.address}: {why}")
        if host.is_shared:
            self._end_processes([worker.pid for worker in self.workers if worker.host is host])
        if attempt is not None:
            self.abandon(attempt)
        for other in self.hosts:
            if other.neighbour is host and not other.is_lost:
                other.neighbour = None
                self.send_or_lose(other, "keep alone", attempt)

    def abandon(self, attempt: int) -> None:
        """Let all workers leave this attempt at a step."""
        for host in self.hosts:
            if not host.is_lost:
                try:
                    host.send("abandon", number=attempt)
                except HostLost:
                    self.lose(host, attempt)

    # ---- hosts -------------------------------------------------------------------------------------------------------

    def hosts_on(
        self, chosen: Sequence[Node], nodes: Sequence[Node], memory: Sequence[SharedMemory], check_s: float
    ) -> dict[str, RemoteHost]:
        """The hosts of these nodes, of all that there are; those that are missing are started, with the server's memory
        where they can have it."""
        there = {host.node.node_id: host for host in self.hosts if not host.is_lost}
        missing = list({node.node_id: node for node in chosen if node.node_id not in there}.values())
        self._cluster.check(missing, check_s)
        return there | {host.node.node_id: host for host in self._open_hosts(missing, nodes, memory)}

    def _open_hosts(
        self, new: Sequence[Node], nodes: Sequence[Node], memory: Sequence[SharedMemory]
    ) -> list[RemoteHost]:
        """Start a host on each of these nodes."""
        if not new:
            return []
        own = next((node for node in nodes if node.is_server), nodes[0])
        patience = Patience(max(START_S, self._start_s))
        entrance = Entrance(_address(own, nodes))
        fresh = []
        try:
            for node in new:
                machine = self._machine_count
                self._machine_count += 1
                fresh.append(RemoteHost(machine, node, self._cluster.start_host(node, entrance.ticket(machine))))
                self.hosts.append(fresh[-1])
            if not patience.wait(lambda seconds: self._have_come(fresh, entrance, seconds)):
                host = next(host for host in fresh if host.link is None)
                raise NodeError(host.node, f"its host has not started within {max(START_S, self._start_s):.3g} s")
            return self._begin(fresh, memory, patience.left_s)
        except BaseException:
            for host in fresh:
                self.hosts.remove(host)
                host.end()
            raise
        finally:
            entrance.close()

    def _have_come(self, hosts: Sequence[RemoteHost], entrance: Entrance, seconds: float) -> bool:
        """Whether all these hosts have connected, after so long at most. A NodeError, if one has ended."""
        for machine, link in entrance.receive(seconds).items():
            (host,) = [host for host in hosts if host.machine == machine]
            host.link = Link(link, self._start_s)
        for host in hosts:
            if host.link is None and (ended := host.process.how_it_ended(0.0)):
                raise NodeError(host.node, ended)
        return not entrance.missing

    def _begin(self, hosts: Sequence[RemoteHost], memory: Sequence[SharedMemory], limit_s: float) -> list[RemoteHost]:
        """Give them the server's memory where they can have it."""
        places = [where(block) for block in memory]
        values = {host: {"machine": host.machine, "memory": places if host.node.is_server else []} for host in hosts}
        for host, letter in ask(values, "open", limit_s, self.lose).items():
            host.pid, host.is_shared = letter.values["pid"], letter.values["shared"]
            if letter.values["digest"] != source_digest():
                raise WorkerError(
                    f"node {host.node.address} has a lapjoint of the same version whose files differ from those here, "
                    "expected the same"
                )
        for host in hosts:
            if host.is_lost:
                raise NodeError(host.node, "its host is gone")
        return list(hosts)

    def drop_idle_hosts(self) -> None:
        """End hosts that have no workers any more, and forget those that are lost."""
        used = {id(worker.host) for worker in self.workers}
        gone = [host for host in self.hosts if host.is_lost or id(host) not in used]
        if not gone:
            return
        for host in gone:
            self.hosts.remove(host)
            host.end()
        self.tell("disconnect", {"machines": [host.machine for host in gone]})

    def link(self, nodes: Sequence[Node]) -> None:
        """Let all hosts reach each other. A WorkerError, if they cannot."""
        link_hosts(self.hosts, lambda node: _address(node, nodes), self.lose)

    def link_neighbours(self, nodes: Sequence[Node]) -> bool:
        """Have every host that does not share the server's memory send copies to a neighbour. False: one has none."""
        return link_neighbours(self.hosts, lambda node: _address(node, nodes), self.lose)

    def recall(self, worker: HostedWorker, number: int) -> OwnStates | None:
        """The copy of a worker's states after the command of this number; None if nobody has it."""
        for host in (worker.host, worker.host.neighbour):
            if host is None or host.is_lost:
                continue
            try:
                host.send("recall", number=number, worker=worker.index)
                letter = host.expect("recall", Patience(START_S))
            except HostLost:
                self.lose(host)
                continue
            try:
                copy = from_bytes(letter.parts[0]) if letter.parts else None
            except ValueError:
                self.lose(host)
                continue
            if isinstance(copy, OwnStates) and len(copy.bodies) == len(copy.states):
                return copy
        return None

    # ---- workers -----------------------------------------------------------------------------------------------------

    def start_workers(
        self, started: Mapping[RemoteHost, list[int]], scene: SharedMemory, values: Mapping[str, Any]
    ) -> None:
        """Start workers of these numbers, and wait until they are there. A WorkerError, if one is not."""
        patience, errors = Patience(2 * max(START_S, self._start_s)), []
        for host, indices in started.items():
            content = [] if host.is_shared else [memoryview(scene.map)]
            place = where(scene) if host.is_shared else None
            try:
                host.send("start", content, workers=indices, seconds=self._start_s, scene=place, **values)
            except HostLost:
                self.lose(host)
        for host in started:
            try:
                letter = host.expect("start", patience)
            except HostLost:
                self.lose(host)
                errors.append(str(host.start_error("its host is gone")))
                continue
            for index, pid in letter.values["pids"]:
                if index in started[host]:
                    self.workers[index].pid = pid
            errors += letter.values["errors"]
        if errors:
            for indices in started.values():
                for index in indices:
                    self.workers[index].fail("gone", "did not start")
            raise WorkerError(errors[0])

    def stop(self, workers: Sequence[HostedWorker]) -> None:
        """End these workers, however they fare."""
        hosts = {
            host: {"workers": [worker.index for worker in workers if worker.host is host]}
            for host in self.hosts
            if not host.is_lost and any(worker.host is host for worker in workers)
        }
        ask(hosts, "stop", LEAVE_S + START_S, self.lose)
        for worker in workers:
            worker.fail("gone", "was ended by the server")

    def tell(self, kind: str, values: Mapping[str, Any]) -> None:
        """Send all hosts the same, and wait until they have done it."""
        ask({host: values for host in self.hosts if not host.is_lost}, kind, START_S, self.lose)

    def end(self) -> None:
        """End hosts, whatever they are doing, and with them their workers; wait until those of this machine are
        gone."""
        here = [worker.pid for worker in self.workers if worker.node.is_server]
        for host in self.hosts:
            host.end()
            if host.node.is_server:
                here.append(host.pid)
        self._wait_for_end(here)
        self.workers.clear()
        self.hosts.clear()
        self._cluster.leave()

    @staticmethod
    def _end_processes(pids: Sequence[int]) -> None:
        """Of this machine: they must not write into the server's memory any more."""
        for pid in filter(None, pids):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        Fleet._wait_for_end(pids)

    @staticmethod
    def _wait_for_end(pids: Sequence[int]) -> None:
        end = time.monotonic() + LEAVE_S
        for pid in pids:
            while pid and is_running(pid) and time.monotonic() < end:
                time.sleep(0.002)


def _address(node: Node, nodes: Sequence[Node]) -> str:
    """Where a process of a node listens: where no other machine is, nowhere that one could reach."""
    return node.address if len(nodes) > 1 else LOCALHOST
