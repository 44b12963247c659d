"""What a live view costs the step, with a client that takes every frame it is sent.

    python benchmarks/view.py [SCENE] [--workers N] [--iterations N...] [--fps N] [--csv FILE]

One simulation, from the state after `--warmup` steps, with a view that has one client: a process that speaks the
browser's protocol over a socket and reads all that comes, but draws nothing, as if the browser ran on another machine.
Blocks of steps at the view's gate and without it take turns; a ratio is of a block and the mean of its two neighbours.
The CPU time of the page is that of all threads but the simulation's own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from statistics import mean, median

from tables import write_table

from lapjoint import Params, Sequential, Simulation, scenes
from lapjoint.view.page.live import LiveView

CLIENT = """
import sys, msgspec, viser, websockets.sync.client
from viser import _messages
port = int(sys.argv[1])
camera = _messages.ViewerCameraMessage(
    wxyz=(1.0, 0.0, 0.0, 0.0), position=(0.0, -9.0, 3.0), fov=0.8, near=0.1, far=100.0, image_height=600,
    image_width=900, look_at=(0.0, 0.0, 0.0), up_direction=(0.0, 0.0, 1.0))
with websockets.sync.client.connect(f"ws://127.0.0.1:{port}/", subprotocols=[f"viser-v{viser.__version__}"],
                                    max_size=None, proxy=None) as socket:
    socket.send(msgspec.msgpack.encode(camera.as_serializable_dict([])))
    count = size = 0
    try:
        for message in socket:
            count, size = count + 1, size + len(message)
            print(count, size, flush=True)
    except Exception:
        pass
"""


def block(simulation: Simulation, steps: int, view: LiveView | None) -> tuple[float, float]:
    """ms per step, and cores that the page takes."""
    start, cpu, own = time.perf_counter(), time.process_time(), time.thread_time()
    for _ in range(steps):
        if view is not None:
            view.gate(lambda: False)
        simulation.step()
    wall = time.perf_counter() - start
    page = time.process_time() - cpu - (time.thread_time() - own)
    return 1e3 * wall / steps, page / wall


def measure(
    name: str, workers: int, iterations: int, fps: float, warmup: int, steps: int, repetitions: int
) -> dict[str, object]:
    with Simulation(scenes.build(name), Params(workers=workers, sequential=Sequential(iterations=10))) as simulation:
        simulation.step(warmup)
        simulation.workers.set_iterations(iterations)
        with LiveView(simulation, port=0, fps=fps, wait=False) as view:
            view.steering.speed = None
            client = subprocess.Popen(
                [sys.executable, "-c", CLIENT, str(view.page.port)], stdout=subprocess.PIPE, text=True
            )
            try:
                while view.page.visitor_count == 0:
                    time.sleep(0.05)
                block(simulation, steps, view)
                plain, viewed, ratios, cores, frames, seconds = [block(simulation, steps, None)[0]], [], [], [], 0, 0.0
                for _ in range(repetitions):
                    painted = view.page.painted_count
                    ms, core = block(simulation, steps, view)
                    frames += view.page.painted_count - painted
                    seconds += ms * steps / 1e3
                    plain.append(block(simulation, steps, None)[0])
                    viewed.append(ms)
                    cores.append(core)
                    ratios.append(2 * ms / (plain[-2] + plain[-1]))
            finally:
                client.terminate()
                told, _ = client.communicate()
    received = told.strip().splitlines()[-1].split()
    return {
        "scene": name,
        "workers": workers,
        "iterations": iterations,
        "plain_ms": round(median(plain), 3),
        "view_ms": round(median(viewed), 3),
        "ratio_mean": round(mean(ratios), 4),
        "ratio_lowest": round(min(ratios), 4),
        "ratio_highest": round(max(ratios), 4),
        "frames_per_second": round(frames / seconds, 1),
        "page_cores": round(mean(cores), 3),
        "client_messages": int(received[0]),
        "client_megabytes": round(int(received[1]) / 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", nargs="?", default="bowl")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--iterations", type=int, nargs="+", default=[10, 50])
    parser.add_argument("--fps", type=float, default=30.0)
    parser.add_argument("--warmup", type=int, default=500)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--repetitions", type=int, default=6)
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    rows = []
    for iterations in given.iterations:
        rows.append(
            measure(given.scene, given.workers, iterations, given.fps, given.warmup, given.steps, given.repetitions)
        )
        print(rows[-1], flush=True)
    if given.csv is not None:
        write_table(rows, given.csv)


if __name__ == "__main__":
    main()
