"""What a step would take on many machines, from parts that were measured on this one.

    python benchmarks/projection.py [--machines N] [--sizes N...] [--gigabits N]

One worker on each machine. From scale.csv: CPU time of a worker per body (the case with most bodies and eight workers
at most), exchanges a step and the bytes that they carry between as many workers (of the largest scene that was measured
with so many, scaled by the surface of a part: the power 2/3 of its bodies), and the server's time with so many workers.
From links.csv: an exchange between two machines, and a command of the server and its reply. Copies that machines keep
for each other are sent once a turn, here after every step. A part that a real network makes longer is not in it.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

from tables import show

RESULTS = Path(__file__).parent / "results" / "2-core-x86-64"
SENT_BYTES = 56
"""Of a body in a copy: thirteen numbers of four bytes, and which body it is."""


def rows_of(name: str) -> list[dict[str, str]]:
    with (RESULTS / name).open(newline="") as opened:
        return list(csv.DictReader(opened))


def project(scene: str, size: int, machines: int, gigabits: float) -> dict[str, Any]:
    cases = [row for row in rows_of("scale.csv") if row["scene"] == scene]
    few = max((row for row in cases if int(row["workers"]) <= 8), key=lambda row: (int(row["size"]), row["workers"]))
    many = max((row for row in cases if int(row["workers"]) == 64), key=lambda row: int(row["size"]))
    us = {(row["transport"], int(row["bytes"])): float(row["us_median"]) for row in rows_of("links.csv")}
    per_body_us = 1e3 * float(few["worker_ms_mean"]) * int(few["workers"]) / int(few["bodies"])
    own = size / machines
    surface = (own / (int(many["bodies"]) / 64)) ** (2 / 3)
    kilobytes = float(many["exchange_kb"]) / 64 * surface
    exchanges = float(many["exchanges"])
    per_kb_ms = 8e-3 / gigabits
    parts = {
        "worker_ms": 1e-3 * per_body_us * own,
        "latency_ms": 1e-3 * exchanges * us["workers", 64],
        "exchange_bytes_ms": kilobytes * per_kb_ms,
        "copy_ms": 1e-3 * us["tcp", 65536] + SENT_BYTES * own / 1e3 * per_kb_ms,
        "server_ms": float(many["server_ms"]) + 1e-3 * (us["step", 64] + (machines - 1) * us["tcp", 64]),
    }
    return {
        "scene": scene,
        "bodies": size,
        "machines": machines,
        **{name: round(value, 2) for name, value in parts.items()},
        "step_ms": round(sum(parts.values()), 2),
        "one_worker_ms": round(1e-3 * per_body_us * size, 1),
        "speed_up": round(1e-3 * per_body_us * size / sum(parts.values()), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=64)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50_000, 200_000, 1_000_000, 10_000_000])
    parser.add_argument("--scenes", nargs="+", default=["bowl", "walls", "joint-grid"])
    parser.add_argument("--gigabits", type=float, default=10.0, help="of the network, a second")
    arguments = parser.parse_args()
    for scene in arguments.scenes:
        for size in arguments.sizes:
            show(project(scene, size, arguments.machines, arguments.gigabits))


if __name__ == "__main__":
    main()
