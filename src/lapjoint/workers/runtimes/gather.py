"""Waiting for the hosts' answers to a step, and finding out who hangs if they do not come."""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import Any

from ...waits import LOOK_S, RunningTime
from .fleet import Fleet
from .link import Letter, core_count, wait_for_any
from .remote_host import HostLost, RemoteHost


class Gathering:
    """Of answers to a step, or to an attempt at one that workers take together: who waits for another is not late
    then, and if one fails all others abandon it. `hang_limit` is what a host may take to say who is late."""

    def __init__(self, fleet: Fleet, answers: list[Any], hang_limit: float, attempt: int | None) -> None:
        self._fleet, self._answers, self._hang_limit, self._attempt = fleet, answers, hang_limit, attempt

    def run(self, hosts: Sequence[RemoteHost], limit_s: float) -> float:
        """Wait until all these hosts have answered. Workers that take longer are given up. Returns how long the whole
        program was paused meanwhile [s]."""
        waiting = {host.link.fileno(): host for host in hosts if host.link is not None}
        poll = select.poll()
        for fd in waiting:
            poll.register(fd, select.POLLIN)
        running, is_asking, end_s = RunningTime(), False, limit_s
        here = sum(worker.node.is_server for worker in self._fleet.workers)
        is_core_free = here < core_count()
        while waiting:
            ready = wait_for_any(poll, LOOK_S, is_core_free)
            is_over = running.look() >= end_s and not ready
            for fd in ready:
                host = waiting[fd]
                if self._receive(host):
                    del waiting[fd]
                    poll.unregister(fd)
            if is_over and not is_asking:
                # Late, or not: a worker may wait for another one, elsewhere, or its machine was paused.
                for host in waiting.values():
                    host.report = None
                    self._fleet.send_or_lose(host, "who", self._attempt)
                is_asking, end_s = True, running.seconds + self._hang_limit
            elif is_asking and (is_over or all(host.report for host in waiting.values())):
                has_given_up = self._give_up(list(waiting.values()), limit_s)
                is_asking, end_s = False, running.seconds + (self._hang_limit if has_given_up else LOOK_S)
            for fd in [fd for fd, host in waiting.items() if host.is_lost]:
                del waiting[fd]
                poll.unregister(fd)
        return running.paused_s

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

    def _give_up(self, hosts: Sequence[RemoteHost], limit_s: float) -> bool:
        """Give up who hangs: hosts that do not even say who is late, or else workers that wait for nobody and could
        have answered for so long; False, if these have had no such time."""
        silent = [host for host in hosts if host.report is None]
        for host in silent:
            self._fleet.lose(host, self._attempt, "hung")
        if silent:
            return True
        reports = [(host, host.report.values) for host in hosts if host.report is not None]
        blocking = {host: {w: s for w, s in found["late"] if w not in found["waiting"]} for host, found in reports}
        if any(blocking.values()):
            hanging = {host: [w for w, s in found.items() if s >= limit_s] for host, found in blocking.items()}
        else:
            hanging = {host: [w for w, _ in found["late"]] for host, found in reports}
            if not any(hanging.values()):
                for host, found in reports:
                    if found["sending"]:  # copies, which its neighbour does not take
                        self._fleet.send_or_lose(host, "keep alone", self._attempt)
        for host, workers in hanging.items():
            if workers:
                self._fleet.send_or_lose(host, "give up", self._attempt, workers=workers, seconds=limit_s)
        return any(hanging.values()) or not any(blocking.values())
