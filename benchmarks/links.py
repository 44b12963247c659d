"""What a message between two machines takes: transports side by side, and what lapjoint does with the one it uses.

    python benchmarks/links.py [--size BYTES...] [--csv FILE] [--priority]

The two machines are network namespaces of this one, made and removed here (needs root): what they show is what software
adds, not what a real network does. A row's transports take turns, in repetitions; times are of one exchange: each side
sends the other a message and goes on once the other's has come.

- tcp: Python's sockets, that sleep until something comes; tcp-spin: that look for it before they sleep.
- zeromq, nng: the same from Python, where pyzmq and pynng are installed (no part of lapjoint).
- workers: two workers' mailboxes, with all that is between them; workers-spin: where each has a core and looks.
- step: an empty command from the server to a worker on the other machine, and its reply.

With --priority all run ahead of whatever else the machine does, which makes it as good as idle.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path += [str(Path(__file__).parent.parent / "tests"), str(Path(__file__).parent)]

from tables import show, write_table

COUNT, WARMUP = 2000, 200
PORT = 7801
Exchange = Callable[[bytes], None]


def tcp_link(side: int, at: str) -> socket.socket:
    if side == 0:
        with socket.create_server((at, PORT)) as door:
            link = door.accept()[0]
    else:
        link = retry(lambda: socket.create_connection((at, PORT)))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def retry(action: Callable[[], Any]) -> Any:
    end = time.monotonic() + 30
    while True:
        try:
            return action()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def tcp(side: int, at: str, spin_s: float = 0.0) -> Exchange:
    link = tcp_link(side, at)
    poll = select.poll()
    poll.register(link, select.POLLIN)

    def exchange(message: bytes) -> None:
        link.sendall(message)
        left = len(message)
        while left:
            if spin_s:
                end = time.perf_counter() + spin_s
                while not poll.poll(0) and time.perf_counter() < end:
                    os.sched_yield()
            left -= len(link.recv(left))

    return exchange


def zeromq(side: int, at: str) -> Exchange:
    import zmq

    link = zmq.Context.instance().socket(zmq.PAIR)
    link.bind(f"tcp://{at}:{PORT}") if side == 0 else link.connect(f"tcp://{at}:{PORT}")

    def exchange(message: bytes) -> None:
        link.send(message)
        link.recv()

    return exchange


def nng(side: int, at: str) -> Exchange:
    import pynng

    link = pynng.Pair0()
    link.listen(f"tcp://{at}:{PORT}") if side == 0 else retry(lambda: link.dial(f"tcp://{at}:{PORT}", block=True))

    def exchange(message: bytes) -> None:
        link.send(message)
        link.recv()

    return exchange


def workers(side: int, at: str, spins: int = 0, spin_us: int = 0) -> Exchange:
    from lapjoint.engines.bullet_module import load_bullet
    from lapjoint.engines.mailboxes import memory_size

    native, room = load_bullet("float32"), 1 << 20
    memory = np.zeros(memory_size(2, room), np.uint8)
    links = native.MachineLinks(side, spin_us)
    links.set_workers(memory, room, [0, 1])
    links.connect(1 - side, tcp_link(side, at).detach())
    mail = native.Mailboxes(memory, 2, room, side, spins, links.bell)
    mail.begin_step(1)

    def exchange(message: bytes) -> None:
        mail.send(1 - side, message)
        mail.receive(1 - side, len(message))

    exchange.kept = links  # type: ignore[attr-defined]
    return exchange


TRANSPORTS: dict[str, Callable[[int, str], Exchange]] = {
    "tcp": tcp,
    "tcp-spin": lambda side, at: tcp(side, at, 50e-6),
    "zeromq": zeromq,
    "nng": nng,
    "workers": workers,
    "workers-spin": lambda side, at: workers(side, at, 2000, 50),
}


def measure(name: str, side: int, at: str, size: int) -> list[float]:
    """Microseconds of each exchange."""
    exchange, message = TRANSPORTS[name](side, at), bytes(size)
    times = []
    for turn in range(WARMUP + COUNT):
        start = time.perf_counter()
        exchange(message)
        if turn >= WARMUP:
            times.append(1e6 * (time.perf_counter() - start))
    time.sleep(0.5)  # the other side may not have read the last one
    return times


def measure_steps(at: str) -> list[float]:
    """Microseconds of an empty command to a worker on the other machine, and its reply."""
    from lapjoint import Params, Scene, Sphere
    from lapjoint.workers.codec import to_bytes
    from lapjoint.workers.messages import RemoteCommand
    from lapjoint.workers.runtimes.hosts import HostsRuntime
    from lapjoint.workers.runtimes.placement import Node

    class Started:
        def how_it_ended(self, limit_s: float) -> str | None:
            return None

        def kill(self) -> None:
            pass

    class Other:
        def nodes(self) -> list[Node]:
            return [Node("here", at, 0, True), Node("other", "", 1)]

        def check(self, nodes: Any, limit_s: float) -> None:
            pass

        def start_host(self, node: Node, ticket: Any) -> Started:
            print(json.dumps(ticket), flush=True)  # who has started this starts the host there
            return Started()

        def leave(self) -> None:
            pass

    scene = Scene("one")
    scene.add_bodies(Sphere(0.5), [[0, 0, 0]])
    runtime = HostsRuntime(scene, Params(coupling="blend").resolved(scene), 1, 0, Other())
    times = []
    for turn in range(WARMUP + COUNT):
        start = time.perf_counter()
        runtime._exchange([to_bytes(RemoteCommand())], None)
        if turn >= WARMUP:
            times.append(1e6 * (time.perf_counter() - start))
    runtime.close()
    return times


HOST = "import json, sys\nfrom lapjoint.workers.runtimes.host import serve\nserve(json.loads(sys.argv[1]))"


def run(transport: str, size: int, given: argparse.Namespace) -> list[float]:
    """One repetition, in two namespaces."""
    from ray_support import HEAD, OTHER, Namespaces

    before = ["chrt", "-f", "10"] if given.priority else []
    with Namespaces() as machines:

        def start(address: str, *words: str) -> subprocess.Popen[str]:
            command = machines.command(address, *before, sys.executable, *words)
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

        words = [os.path.abspath(__file__), "--size", str(size), "--transport", transport, "--at", HEAD, "--side"]
        first = start(HEAD, *words, "0")
        assert first.stdout is not None
        second = start(OTHER, "-c", HOST, first.stdout.readline()) if transport == "step" else start(OTHER, *words, "1")
        output = first.communicate(timeout=60)[0]
        second.communicate(timeout=60)
        found: list[float] = json.loads(output.splitlines()[-1])
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, nargs="+", default=[64, 4096, 65536])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--priority", action="store_true")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--transport", choices=[*TRANSPORTS, "step"], help=argparse.SUPPRESS)
    parser.add_argument("--side", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--at", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.transport:
        if given.transport == "step":
            times = measure_steps(given.at)
        else:
            times = measure(given.transport, given.side, given.at, given.size[0])
        print(json.dumps(times), flush=True)
        os._exit(0)  # whatever threads the transport has
    rows = []
    for size in given.size:
        found: dict[str, list[float]] = {}
        for _ in range(given.repetitions):
            for name in TRANSPORTS if size != given.size[0] else [*TRANSPORTS, "step"]:
                try:
                    found.setdefault(name, []).extend(run(name, size, given))
                except (IndexError, json.JSONDecodeError, subprocess.TimeoutExpired) as error:
                    print(f"{name}: not here, or it hangs: {type(error).__name__}", flush=True)
        for name, times in found.items():
            if not times:
                continue
            tenth, half, nine_tenths = np.percentile(times, [10, 50, 90])
            rows.append(
                {
                    "transport": name,
                    "bytes": size,
                    "us_p10": round(tenth, 1),
                    "us_median": round(half, 1),
                    "us_p90": round(nine_tenths, 1),
                }
            )
            show(rows[-1])
    if given.csv:
        write_table(rows, given.csv)


if __name__ == "__main__":
    main()
