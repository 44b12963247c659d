"""Who listens: `ss -ltnp` of every mode of lapjoint, from its start on.

    python benchmarks/listening.py [MODE...]

Each mode runs for some seconds. A line for each socket that any of its processes listened at: the address (a port that
the system chose is `*`), the process, and whether it was there all the time or only while the mode started.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

LAPJOINT = (
    [sys.executable, "-m", "lapjoint.cli"]
    if not (found := Path(sys.executable).with_name("lapjoint")).exists()
    else [str(found)]
)
SMALL = ["bowl", "--size", "60", "--workers", "2"]
ENDLESS = ["--steps", "10000000"]
HOSTS = """
import sys
sys.path.append(sys.argv[1])
from host_support import MachinesRuntime
from lapjoint import Params, Simulation, scenes
from lapjoint.workers.runtimes import base
base._RUNTIMES["hosts"] = "host_support:MachinesRuntime"
with Simulation(scenes.build("bowl", 60), Params(workers=3, runtime="hosts")) as simulation:
    while True:
        simulation.step()
"""


def modes(folder: Path) -> dict[str, list[str]]:
    tests = str(Path(__file__).parent.parent / "tests")
    return {
        "run": [*LAPJOINT, "run", *SMALL, *ENDLESS],
        "run --runtime inline": [*LAPJOINT, "run", *SMALL, *ENDLESS, "--runtime", "inline"],
        "resume": [*LAPJOINT, "resume", str(folder / "kept"), *ENDLESS],
        "run --view": [*LAPJOINT, "run", *SMALL, *ENDLESS, "--view", "--no-browser", "--no-wait"],
        "view": [*LAPJOINT, "view", str(folder / "run"), "--no-browser"],
        "view --host": [*LAPJOINT, "view", str(folder / "run"), "--no-browser", "--host", "0.0.0.0"],
        "hosts": [sys.executable, "-c", HOSTS, tests],
        "run --runtime ray": [*LAPJOINT, "run", *SMALL, *ENDLESS, "--runtime", "ray"],
    }


def listening(process: subprocess.Popen[bytes]) -> set[tuple[str, str]]:
    """Addresses and processes, of this process and all that it has started."""
    try:
        of_mode = psutil.Process(process.pid)
        pids = {of_mode.pid, *(child.pid for child in of_mode.children(recursive=True))}
    except psutil.NoSuchProcess:
        return set()
    found = set()
    for line in subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=True).stdout.splitlines():
        _, _, _, local, _, *users = line.split()
        for name, pid in re.findall(r'"([^"]+)",pid=(\d+)', " ".join(users)):
            if int(pid) in pids:
                found.add((local, name))
    return found


def watch(words: list[str], seconds: float) -> list[str]:
    seen: dict[tuple[str, str], int] = {}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(words, stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd="/tmp")
        end, now = time.monotonic() + seconds, set()
        while time.monotonic() < end and process.poll() is None:
            now = listening(process)
            for socket in now:
                seen[socket] = seen.get(socket, 0) + 1
            time.sleep(0.02)
        if process.poll() is not None:
            output.seek(0)
            sys.exit(f"{' '.join(words)} has ended: {output.read().decode()}")
        process.terminate()
        process.wait()
    fixed = {re.sub(r":(\d{5})$", ":*", address): set[str]() for address, _ in seen}
    for socket in seen:
        when = "all the time" if socket in now else "while it starts"
        fixed[re.sub(r":(\d{5})$", ":*", socket[0])].add(f"{socket[1]}, {when}")
    return [f"{address:22} {who}" for address, users in sorted(fixed.items()) for who in sorted(users)] or [
        "nobody listens"
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", nargs="*")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each mode is watched")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = ["run", *SMALL, "--steps", "20", "--record", str(folder / "run"), "--checkpoint", str(folder / "kept")]
        subprocess.run([*LAPJOINT, *made], check=True, capture_output=True, env={**os.environ, "TERM": "dumb"})
        for mode, words in modes(folder).items():
            if not given.mode or mode in given.mode:
                print(f"{mode}:", flush=True)
                print("\n".join(f"    {line}" for line in watch(words, given.seconds)), flush=True)


if __name__ == "__main__":
    main()
