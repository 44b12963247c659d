"""Waiting for the hosts' answers to a step, and finding out who hangs if they do not come."""

from __future__ import annotations

import select
import time
from collections.abc import Sequence
from typing import Any

from .fleet import Fleet
from .link import Letter, core_count, wait_for_any
from .remote_host import HostLost, RemoteHost


class Gathering:
    """Of answers to a step, or to an attempt at one that workers take together: who waits for another is not late
    then, and if one fails all others abandon it. `hang_limit` is what a host may take to say who is late."""

    def __init__(self, fleet: Fleet, answers: list[Any], hang_limit: float, attempt: int | None) -> None:
        self._fleet, self._answers, self._hang_limit, self._attempt = fleet, answers, hang_limit, attempt

    def run(self, hosts: Sequence[RemoteHost], since: float, limit_s: float) -> None:
        """Wait until all these hosts have answered. Workers that take too long since `since` are given up."""
        waiting = {host.link.fileno(): host for host in hosts if host.link is not None}
        poll = select.poll()
        for fd in waiting:
            poll.register(fd, select.POLLIN)
        is_asking, waited_s = False, limit_s
        here = sum(worker.node.is_server for worker in self._fleet.workers)
        is_core_free = here < core_count()
        while waiting:
            left_s = since + limit_s - time.monotonic()
            ready = wait_for_any(poll, max(0.0, left_s), is_core_free)
            for fd in ready:
                host = waiting[fd]
                if self._receive(host):
                    del waiting[fd]
                    poll.unregister(fd)
            if not ready and not is_asking:
                # Late, or not: a worker may wait for another one, elsewhere.
                for host in waiting.values():
                    host.report = None
                    self._fleet.send_or_lose(host, "who", self._attempt)
                is_asking, since, limit_s = True, time.monotonic(), self._hang_limit
            elif is_asking and (not ready or all(host.report for host in waiting.values())):
                self._give_up(list(waiting.values()), waited_s)
                is_asking, since = False, time.monotonic()
            for fd in [fd for fd, host in waiting.items() if host.is_lost]:
                del waiting[fd]
                poll.unregister(fd)

    def _receive(self, host: RemoteHost) -> bool:
        """Take what a host sends. Returns whether it has answered."""
        try:
            letter = host.receive()
        except HostLost:
            self._fleet.lose(host, self._attempt)
            return False
        if letter.kind == "who":
            host.report = letter
        if letter.kind != "answers":
            return False
        if letter.values["alone"]:
            host.neighbour = None
        try:
            self._take(letter)
        except (ValueError, IndexError):  # of no worker, or no answer
            self._fleet.lose(host, self._attempt)
            return False
        return True

    def _take(self, letter: Letter) -> None:
        for index, part in zip(letter.values["workers"], letter.parts, strict=True):
            if index in letter.values["failed"]:
                self._fleet.workers[index].note_failure(part)
            else:
                self._answers[index] = part

    def _give_up(self, hosts: Sequence[RemoteHost], seconds: float) -> None:
        """Give up who hangs: hosts that do not even say who is late, or else workers that are late and wait for
        nobody."""
        silent = [host for host in hosts if host.report is None]
        for host in silent:
            self._fleet.lose(host, self._attempt, "hung")
        if silent:
            return
        reports = [(host, host.report.values) for host in hosts if host.report is not None]
        blocking = {host: [w for w in found["late"] if w not in found["waiting"]] for host, found in reports}
        if not any(blocking.values()):
            blocking = {host: found["late"] for host, found in reports}
        if not any(blocking.values()):
            for host, found in reports:
                if found["sending"]:  # copies, which its neighbour does not take
                    self._fleet.send_or_lose(host, "keep alone", self._attempt)
        for host, workers in blocking.items():
            if workers:
                self._fleet.send_or_lose(host, "give up", self._attempt, workers=workers, seconds=seconds)
