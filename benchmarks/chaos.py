"""Faults on purpose at random moments: what becomes of runs that are recorded and have checkpoints.

    python benchmarks/chaos.py [--faults 1000] [--csv FILE] [--runtimes process hosts inline ray] [--seed 0]

Each fault has a run of its own (chaos_run.py), in all runtimes and both couplings in turn. What can happen:

    survived  all steps are taken, the recording is whole, every body is there
    stopped   one error or none, no traceback; recording and newest checkpoint open, and the run goes on from there
    lost      anything less: a traceback, a file that does not open, a body or a checkpoint that is gone, a process
              that is left behind
    hung      neither ended nor went on for five minutes

Rows are appended to the file as they are made, and a run with the same file goes on after the last. Lost networks and
machines need root (network namespaces), delay and loss a kernel with netem; a slow disk and a jumping clock a C
compiler (chaos.c, which is preloaded). Clocks that jump are those of the day: the monotonic one, which lapjoint waits
by, does not jump on any machine.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from tables import append_row

from lapjoint import Checkpoint, LapjointError, Recording, scenes

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from ray_support import HEAD, OTHER, Namespaces, why_not

STEPS, EVERY, WORKERS = 160, 20, 3
SCENE, SIZE = "bridge", 60
HUNG_S = 300.0
LEAVE_S = {"inline": 20.0, "process": 20.0, "hosts": 20.0, "ray": 150.0}
"""How long processes may stay after a run. Ray's agents look seldom whether the process they belong to is there."""
OUTCOMES = ("survived", "stopped", "lost", "hung")


@dataclass
class Run:
    """A run under way, and what it has."""

    process: subprocess.Popen[str]
    folder: Path
    progress: Path
    chaos: Path
    pids: list[int]
    machines: Namespaces | None
    names: list[str]
    ended_by: int | None = None
    """The signal that it was sent by the fault itself."""
    notes: list[str] = field(default_factory=list)

    @property
    def steps(self) -> int:
        return int.from_bytes(self.progress.read_bytes()[:8], "little")

    def everybody(self) -> list[psutil.Process]:
        """All processes of the run, those included whose parents have ended: they have its environment."""
        found, mark = [], f"LAPJOINT_CHAOS={self.chaos}\0".encode()
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if mark in Path(f"/proc/{process.pid}/environ").read_bytes():
                    found.append(process)
        return found

    def one(self, chance: random.Random, name: str) -> int:
        """A process of the run whose name begins so."""
        return chance.choice([process.pid for process in self.everybody() if process.name().startswith(name)])

    def set_chaos(self, write_ms: int, ahead_s: int) -> None:
        with open(self.chaos, "r+b", buffering=0) as file:  # in place: it is mapped, and must never be shorter
            file.write(write_ms.to_bytes(8, "little", signed=True) + ahead_s.to_bytes(8, "little", signed=True))


# ---- faults ----------------------------------------------------------------------------------------------------------

Fault = Callable[[Run, random.Random], None]


def to_server(number: int) -> Fault:
    def fault(run: Run, chance: random.Random) -> None:
        run.ended_by = number
        run.process.send_signal(number)

    return fault


def to_worker(number: int) -> Fault:
    def fault(run: Run, chance: random.Random) -> None:
        workers = [pid for pid in run.pids if psutil.pid_exists(pid)]
        with suppress(ProcessLookupError):
            os.kill(chance.choice(workers), number)

    return fault


def to_process(name: str, number: int) -> Fault:
    def fault(run: Run, chance: random.Random) -> None:
        with suppress(ProcessLookupError):
            os.kill(run.one(chance, name), number)

    return fault


def pause_server(run: Run, chance: random.Random) -> None:
    """Stopped for longer than the limit after which workers count as hung, then woken."""
    run.process.send_signal(signal.SIGSTOP)
    time.sleep(chance.uniform(0.5, 3.0))
    run.process.send_signal(signal.SIGCONT)


def fill_disk(run: Run, chance: random.Random) -> None:
    """No space is left, for a while or for good."""
    filler = run.folder / "filler"
    with suppress(OSError), open(filler, "wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
    if chance.random() < 0.5:
        time.sleep(chance.uniform(0.0, 1.0))
        filler.unlink()
    else:
        run.notes.append("for good")


def slow_disk(run: Run, chance: random.Random) -> None:
    run.set_chaos(chance.choice([5, 20, 100]), 0)
    time.sleep(chance.uniform(0.5, 3.0))
    run.set_chaos(0, 0)


def jump_clock(run: Run, chance: random.Random) -> None:
    for _ in range(chance.randrange(1, 5)):
        run.set_chaos(0, chance.choice([-10 * 365 * 86400, -3600, -1, 1, 3600, 20 * 365 * 86400]))
        time.sleep(chance.uniform(0.0, 0.5))


def network(*discipline: str) -> Fault:
    """Of the other machine, for a while."""

    def fault(run: Run, chance: random.Random) -> None:
        where = ["tc", "-n", run.names[1], "qdisc"]
        subprocess.run([*where, "add", "dev", "veth0", "root", *discipline], check=True, capture_output=True)
        time.sleep(chance.uniform(0.5, 4.0))
        subprocess.run([*where, "del", "dev", "veth0", "root"], check=True, capture_output=True)

    return fault


def partition(run: Run, chance: random.Random) -> None:
    """The cable is out, for a while or for good."""
    subprocess.run(["ip", "-n", run.names[1], "link", "set", "veth0", "down"], check=True)
    if chance.random() < 0.5:
        time.sleep(chance.uniform(0.5, 5.0))
        subprocess.run(["ip", "-n", run.names[1], "link", "set", "veth0", "up"], check=True)
    else:
        run.notes.append("for good")


def lose_machine(run: Run, chance: random.Random) -> None:
    assert run.machines is not None
    run.machines.kill(OTHER)


ANYWHERE: dict[str, Fault] = {
    "SIGKILL server": to_server(signal.SIGKILL),
    "SIGTERM server": to_server(signal.SIGTERM),
    "SIGSTOP server": pause_server,
    "no space": fill_disk,
    "slow disk": slow_disk,
    "clock jump": jump_clock,
}
TO_WORKERS: dict[str, Fault] = {
    "SIGKILL worker": to_worker(signal.SIGKILL),
    "SIGSTOP worker": to_worker(signal.SIGSTOP),
    "SIGTERM worker": to_worker(signal.SIGTERM),
}
TO_NETWORK: dict[str, Fault] = {
    "delay 200 ms": network("netem", "delay", "200ms"),
    "loss 30%": network("netem", "loss", "30%"),
    "256 kbit/s": network("tbf", "rate", "256kbit", "burst", "4kb", "latency", "200ms"),
    "partition": partition,
    "lost machine": lose_machine,
}
FAULTS: dict[str, dict[str, Fault]] = {
    "inline": ANYWHERE,
    "process": {**ANYWHERE, **TO_WORKERS, "SIGKILL fork server": to_process("lapjoint-fork", signal.SIGKILL)},
    "hosts": {**ANYWHERE, **TO_WORKERS, **TO_NETWORK},
    "ray": {**ANYWHERE, **TO_WORKERS},
}


NEEDS_NETEM = ("delay 200 ms", "loss 30%")


def has_netem() -> bool:
    """Whether the kernel has what delays and loses packets."""
    with Namespaces() as machines:
        words = machines.command(OTHER, "tc", "qdisc", "add", "dev", "veth0", "root", "netem", "delay", "1ms")
        return subprocess.run(words, capture_output=True).returncode == 0


# ---- a trial ---------------------------------------------------------------------------------------------------------


@contextmanager
def small_disk() -> Iterator[Path]:
    """A folder with room for a run and little more."""
    folder = Path(tempfile.mkdtemp(prefix="lapjoint-chaos-"))
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "lapjoint-chaos", folder], capture_output=True)
    try:
        yield folder
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "--lazy", folder], check=True)
        shutil.rmtree(folder, ignore_errors=True)


def try_fault(
    name: str, runtime: str, coupling: str, seed: int, preloaded: Path, address: str | None
) -> dict[str, Any]:
    chance = random.Random(seed)
    at_step = chance.randrange(1, STEPS - 10)
    start = time.monotonic()
    with ExitStack() as stack:
        folder = stack.enter_context(small_disk())
        machines = stack.enter_context(Namespaces()) if runtime == "hosts" else None
        names = [] if machines is None else [machines._names[at] for at in (HEAD, OTHER)]
        progress, chaos = folder / "progress", folder / "chaos"
        progress.write_bytes(bytes(16))
        chaos.write_bytes(bytes(16))
        trial = {
            "folder": str(folder),
            "progress": str(progress),
            "runtime": runtime,
            "coupling": coupling,
            "workers": WORKERS,
            "steps": STEPS,
            "every": EVERY,
            "scene": SCENE,
            "size": SIZE,
            "address": address,
            "machines": list(zip((HEAD, OTHER), names, strict=True)) if names else [],
        }
        words = [sys.executable, str(Path(__file__).with_name("chaos_run.py")), json.dumps(trial)]
        errors = stack.enter_context(tempfile.TemporaryFile("w+"))
        process = subprocess.Popen(
            words if machines is None else machines.command(HEAD, *words),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "LD_PRELOAD": str(preloaded), "LAPJOINT_CHAOS": str(chaos)},
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("{"):
            process.wait()
            errors.seek(0)
            raise RuntimeError(f"the run did not start: {errors.read()}")
        run = Run(process, folder, progress, chaos, json.loads(line)["pids"], machines, names)
        while run.steps < at_step and process.poll() is None:
            time.sleep(0.002)
        time.sleep(chance.uniform(0.0, 0.02))
        harmed_at = run.steps
        if process.poll() is None:
            with suppress(ProcessLookupError):
                FAULTS[runtime][name](run, chance)
        outcome, why = wait_for(run)
        errors.seek(0)
        printed = errors.read()
        if outcome != "hung":
            outcome, why = judge(run, printed, harmed_at, LEAVE_S[runtime])
        return {
            "seed": seed,
            "runtime": runtime,
            "coupling": coupling,
            "fault": name,
            "at_step": harmed_at,
            "outcome": outcome,
            "seconds": f"{time.monotonic() - start:.1f}",
            "why": " ".join([*run.notes, why]).replace("\n", " | ")[:400],
        }


def wait_for(run: Run) -> tuple[str, str]:
    """Until the run has ended, or has not moved for long: then it is killed."""
    steps, since = run.steps, time.monotonic()
    while run.process.poll() is None:
        time.sleep(0.05)
        if run.steps != steps:
            steps, since = run.steps, time.monotonic()
        if time.monotonic() - since > HUNG_S:
            for process in run.everybody():
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            run.process.wait()
            return "hung", f"after step {steps}"
    return "", ""


def judge(run: Run, printed: str, harmed_at: int, leave_s: float) -> tuple[str, str]:
    """What has become of it; the reason."""
    left = run.everybody()
    end = time.monotonic() + leave_s
    while left and time.monotonic() < end:
        time.sleep(0.1)
        left = run.everybody()
    if left:
        names = [process.name() for process in left]
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        return "lost", f"processes left behind: {names}"
    if "Traceback" in printed:
        return "lost", printed[-400:]
    code = run.process.returncode
    ended = printed.strip().splitlines()[-1] if printed.strip() else f"exit code {code}"
    (run.folder / "filler").unlink(missing_ok=True)
    try:
        what_is_left(run, code == 0, harmed_at)
    except (LapjointError, AssertionError) as error:
        return "lost", f"{type(error).__name__}: {error} (exit code {code}, {ended})"
    if code == 0:
        return "survived", ""
    if code == 1 or (run.ended_by is not None and code == -run.ended_by):
        return "stopped", ended
    return "lost", f"exit code {code}: {ended}"


def what_is_left(run: Run, is_whole: bool, harmed_at: int) -> None:
    """Recording and checkpoints open, every body is there, and the run can go on."""
    count = scenes.build(SCENE, SIZE).body_count
    if is_whole or (run.folder / "run" / "zarr.json").exists():
        recording = Recording(run.folder / "run")
        assert recording.body_count == count, "the recording has other bodies"
        assert all(np.isfinite(frame.states).all() for frame in recording), "a body of a frame is not finite"
        if is_whole and "for good" not in run.notes and not (run.folder / "filler").exists():
            assert recording.complete, "the recording is not complete"
            assert int(recording.steps[-1]) == STEPS, f"the recording ends with step {recording.steps[-1]}"
    kept = run.folder / "kept"
    if harmed_at < EVERY and not any(kept.glob("*.checkpoint")):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checkpoint = Checkpoint(kept)
        last = harmed_at - harmed_at % EVERY
        assert checkpoint.step_count >= last - EVERY, f"the newest checkpoint is of step {checkpoint.step_count}"
        with checkpoint.resume(runtime="inline") as simulation:
            simulation.step(2)
            assert np.isfinite(simulation.states).all(), "a body is not finite"
            assert len(simulation.states) == count, "a body is gone"


# ---- all of them -----------------------------------------------------------------------------------------------------


def plan(count: int, runtimes: list[str], first_seed: int) -> Iterator[tuple[int, str, str, str]]:
    """Seed, runtime, coupling and fault: each in turn, so that any number of them is of all kinds."""
    kinds = [(r, c, fault) for r in runtimes for fault in FAULTS[r] for c in ("tight", "blend")]
    random.Random(first_seed).shuffle(kinds)
    for number in range(count):
        runtime, coupling, fault = kinds[number % len(kinds)]
        yield first_seed + number, runtime, coupling, fault


def show_table(file: Path) -> None:
    with file.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    print(f"{'runtime':9}{'fault':22}{'tried':>6}" + "".join(f"{outcome:>10}" for outcome in OUTCOMES))
    for runtime, fault in sorted({(row["runtime"], row["fault"]) for row in rows}):
        found = Counter(row["outcome"] for row in rows if (row["runtime"], row["fault"]) == (runtime, fault))
        print(f"{runtime:9}{fault:22}{found.total():6}" + "".join(f"{found[outcome]:10}" for outcome in OUTCOMES))
    found = Counter(row["outcome"] for row in rows)
    print(f"{'all':31}{found.total():6}" + "".join(f"{found[outcome]:10}" for outcome in OUTCOMES))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--csv", type=Path, default=Path("chaos.csv"))
    parser.add_argument("--runtimes", nargs="+", default=["process", "hosts", "inline"], choices=list(FAULTS))
    parser.add_argument("--only", nargs="+", help="faults of these names alone")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if "hosts" in given.runtimes and why_not():
        sys.exit(f"no machines: {why_not()}")
    if "hosts" in given.runtimes and not has_netem():
        print(f"this kernel has no netem: without {', '.join(NEEDS_NETEM)}")
        for name in NEEDS_NETEM:
            del FAULTS["hosts"][name]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        preloaded = folder / "chaos.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(
            [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-o", preloaded, source, "-ldl"], check=True
        )
        done = set()
        if given.csv.exists():
            with given.csv.open(newline="") as opened:
                done = {(int(row["seed"]), row["runtime"]) for row in csv.DictReader(opened)}
        for seed, runtime, coupling, fault in plan(given.faults, given.runtimes, given.seed):
            if (seed, runtime) in done or (given.only and fault not in given.only):
                continue
            row = try_fault(fault, runtime, coupling, seed, preloaded, None)
            append_row(row, given.csv)
            print("  ".join(str(value) for value in row.values()), flush=True)
    show_table(given.csv)


if __name__ == "__main__":
    main()
