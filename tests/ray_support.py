"""A Ray cluster of two nodes on this machine: two network namespaces that see nothing but each other."""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import psutil

from parallel_support import poll, running

# Addresses for documentation (RFC 5737); they exist inside the namespaces only.
HEAD, OTHER = "192.0.2.1", "192.0.2.2"
ADDRESS = f"{HEAD}:6379"
LIMIT_S = 240.0  # Ray takes seconds on a machine that is free, a minute on one that is busy


@cache
def why_not() -> str:
    """Why there can be no namespaces here; empty if there can."""
    if sys.platform != "linux" or shutil.which("ip") is None:
        return "needs `ip` of Linux's iproute2"
    name = f"lapjoint-try-{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if done.returncode:
        return f"network namespaces are not permitted here: {done.stderr.strip()}"
    link = ["ip", "-n", name, "link", "add", "veth0", "type", "veth", "peer", "name", "veth1"]
    linked = subprocess.run(link, capture_output=True, text=True)
    subprocess.run(["ip", "netns", "del", name], check=True)
    return f"veth links are not permitted here: {linked.stderr.strip()}" if linked.returncode else ""


class Namespaces:
    """Two machines with a cable between them, as far as the network goes."""

    _numbers = itertools.count()

    def __init__(self) -> None:
        number = next(self._numbers)
        self._names = {at: f"lapjoint-{os.getpid()}-{number}{letter}" for at, letter in ((HEAD, "a"), (OTHER, "b"))}

    def __enter__(self) -> Namespaces:
        a, b = self._names.values()
        try:
            for name in (a, b):
                self._ip("netns", "add", name)
            self._ip("-n", a, "link", "add", "veth0", "type", "veth", "peer", "name", "veth0", "netns", b)
            for address, name in self._names.items():
                self._ip("-n", name, "address", "add", f"{address}/24", "dev", "veth0")
                for device in ("lo", "veth0"):
                    self._ip("-n", name, "link", "set", device, "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for address, name in self._names.items():
            self.kill(address)
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        names = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
        assert not any(name in names for name in self._names.values())

    def command(self, address: str, *words: str) -> list[str]:
        """The command that runs these words on that machine."""
        return ["ip", "netns", "exec", self._names[address], *words]

    def run(self, address: str, code: str, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """A Python program on that machine; returns what it printed."""
        words = self.command(address, sys.executable, "-c", textwrap.dedent(code), *arguments)
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, env=environment)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def processes(self, address: str) -> list[psutil.Process]:
        """All that runs on a machine."""
        done = subprocess.run(["ip", "netns", "pids", self._names[address]], capture_output=True, text=True)
        found = []
        for pid in done.stdout.split():
            with suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(int(pid)))
        return found

    def kill(self, address: str) -> None:
        """As when a machine loses its power."""
        while found := running(self.processes(address)):
            for process in found:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)
            time.sleep(0.05)

    @staticmethod
    def _ip(*arguments: str) -> None:
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
        assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"


class TwoNodes:
    """The server's node and another."""

    def __init__(self, folder: Path, path: str = "", other_environment: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._namespaces = Namespaces()
        self._started: list[subprocess.Popen[bytes]] = []
        self._other_environment = other_environment or {}
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(16),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_prestart_worker_first_driver": "0",
            "PYTHONPATH": os.pathsep.join(filter(None, (path, os.environ.get("PYTHONPATH")))),
        }

    def start(self) -> None:
        self._namespaces.__enter__()
        common = ["--num-cpus=2", "--object-store-memory=100000000", "--disable-usage-stats", "--block"]
        self.start_ray(
            HEAD, "--head", "--port=6379", "--include-dashboard=false", f"--temp-dir={self._folder}", *common
        )
        self.wait_for_the_head()
        self.start_other()

    def start_other(self) -> None:
        self.start_ray(
            OTHER, f"--address={ADDRESS}", "--num-cpus=2", "--object-store-memory=100000000", "--block",
            environment=self._other_environment,
        )  # fmt: skip
        self.wait_for_nodes(2)

    def start_ray(self, address: str, *options: str, environment: Mapping[str, str] | None = None) -> None:
        ray = str(Path(sys.executable).with_name("ray"))
        log = (self._folder / f"start-{len(self._started)}.log").open("wb")
        with log:
            self._started.append(
                subprocess.Popen(
                    self._namespaces.command(address, ray, "start", f"--node-ip-address={address}", *options),
                    env={**self.environment, **(environment or {})},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    def wait_for_the_head(self) -> None:
        """Until it answers: it is asked without Ray, which takes seconds to import."""
        self.run(f"""
            import socket, time
            end = time.monotonic() + {LIMIT_S}
            while True:
                try:
                    socket.create_connection(("{HEAD}", 6379)).close()
                    break
                except OSError:
                    assert time.monotonic() < end
                    time.sleep(0.1)
        """)

    def wait_for_nodes(self, count: int) -> None:
        code = f"""
            import sys, time
            from lapjoint.workers.runtimes.ray_cluster import find_nodes, join_cluster
            end = time.monotonic() + {LIMIT_S}
            while True:
                try:
                    join_cluster("{ADDRESS}")
                    break
                except Exception:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.2)
            while len(find_nodes()) < {count}:
                assert time.monotonic() < end
                time.sleep(0.1)
        """
        self.run(code)

    def run(self, code: str, *arguments: str, seconds: float = LIMIT_S) -> str:
        """A Python program on the server's node; returns what it printed."""
        process = self.popen(code, *arguments)
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            raise AssertionError(f"still not done: {output}\n{errors}\n{self.logs()}") from None
        assert process.returncode == 0, f"{output}\n{errors}\n{self.logs()}"
        return output

    def popen(self, code: str, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._namespaces.command(HEAD, sys.executable, "-c", textwrap.dedent(code), *arguments),
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def logs(self) -> str:
        return "\n".join(file.read_text() for file in sorted(self._folder.glob("start-*.log")))

    def processes(self, address: str) -> list[psutil.Process]:
        """All that runs on a node."""
        return self._namespaces.processes(address)

    def kill(self, address: str) -> None:
        """As when a machine loses its power."""
        self._namespaces.kill(address)

    def stop(self) -> None:
        self._namespaces.__exit__()
        for process in self._started:
            process.wait(LIMIT_S)


@contextmanager
def two_nodes(path: str = "", other_environment: Mapping[str, str] | None = None) -> Iterator[TwoNodes]:
    folder = Path(tempfile.mkdtemp(prefix="lapjoint-nodes-", dir="/tmp"))
    nodes = TwoNodes(folder, path, other_environment)
    try:
        nodes.start()
        yield nodes
    finally:
        nodes.stop()
        shutil.rmtree(folder, ignore_errors=True)


def ray_processes(folder: str) -> list[psutil.Process]:
    """Processes of the Ray cluster that keeps its files there."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if any(folder in word for word in process.cmdline()):
                found.append(process)
    return running(found)


def gone(folder: str, seconds: float) -> bool:
    return bool(poll(lambda: not ray_processes(folder), seconds))
