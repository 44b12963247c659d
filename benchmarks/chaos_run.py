"""The run that benchmarks/chaos.py harms: a small scene, recorded, with checkpoints, on any runtime.

It reads one line of JSON, the trial, from its arguments; and writes how many steps it has taken into the trial's
progress file, where the other side sees it. A LapjointError is printed and is exit code 1, as on the command line.
"""

from __future__ import annotations

import json
import mmap
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from lapjoint import CheckpointWriter, Failures, LapjointError, Params, Scene, Simulation, scenes
from lapjoint.cli.termination import ended_in_order_by_sigterm
from lapjoint.run import run
from lapjoint.workers.runtimes import base
from lapjoint.workers.runtimes.entrance import Ticket
from lapjoint.workers.runtimes.hosts import HostsRuntime
from lapjoint.workers.runtimes.placement import Node

SERVE = "import json, sys; from lapjoint.workers.runtimes.host import serve; serve(json.loads(sys.argv[1]))"


class HostProgram:
    """A host that is a program of its own, on a machine that is a network namespace."""

    def __init__(self, words: Sequence[str]) -> None:
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL)

    def how_it_ended(self, limit_s: float) -> str | None:
        with suppress(subprocess.TimeoutExpired):
            return f"its host ended with exit code {self._process.wait(limit_s)}"
        return None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Machines:
    """The server's, and others that are network namespaces: address and name of each."""

    places: Sequence[tuple[str, str]] = ()

    def nodes(self) -> list[Node]:
        return [Node(name, address, 2, number == 0) for number, (address, name) in enumerate(self.places)]

    def check(self, nodes: Sequence[Node], limit_s: float) -> None:
        pass

    def start_host(self, node: Node, ticket: Ticket) -> HostProgram:
        return HostProgram(["ip", "netns", "exec", node.node_id, sys.executable, "-c", SERVE, json.dumps(ticket)])

    def leave(self) -> None:
        pass


class MachinesRuntime(HostsRuntime):
    def __init__(self, scene: Scene, params: Params, worker_count: int, mail_room: int = 0) -> None:
        super().__init__(scene, params, worker_count, mail_room, Machines())


def main(trial: dict[str, Any]) -> None:
    folder = Path(trial["folder"])
    Machines.places = trial["machines"]
    base._RUNTIMES["hosts"] = "chaos_run:MachinesRuntime"
    sys.modules["chaos_run"] = sys.modules[__name__]
    params = Params(
        workers=trial["workers"],
        runtime=trial["runtime"],
        failures=Failures(hang_limit=5.0),
        coupling=trial["coupling"],
    )
    if trial["runtime"] == "ray":
        params = replace(params, address=trial["address"])
    with open(trial["progress"], "r+b") as file, mmap.mmap(file.fileno(), 16) as progress:
        scene = scenes.build(trial["scene"], trial["size"])
        with Simulation(scene, params) as simulation:
            pids = [pid for pid in getattr(simulation._core.runtime, "process_ids", []) if pid]
            print(json.dumps({"pids": pids}), flush=True)

            def on_step(done: int) -> None:
                progress[:8] = done.to_bytes(8, "little")

            checkpoints = CheckpointWriter(folder / "kept", simulation, every=trial["every"], end=trial["steps"])
            summary = run(
                simulation, trial["steps"], on_step, record=folder / "run", record_every=5, checkpoints=checkpoints
            )
        print(json.dumps({"steps": summary.steps, "stopped": summary.stopped, "failures": summary.failure_count}))
        if summary.stopped:
            raise LapjointError(summary.stopped)


if __name__ == "__main__":
    try:
        with ended_in_order_by_sigterm():
            main(json.loads(sys.argv[1]))
    except LapjointError as error:
        sys.exit(f"error: {error}")
