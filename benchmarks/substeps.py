"""Box3D's substeps and lapjoint's own ladder on one core, side by side from the same states.

    python benchmarks/substeps.py [SCENE...] [--steps N] [--repetitions N] [--csv FILE]

A scene is settled by lapjoint's sequential solver (SETTLE steps, the pyramid none). From these states Box3D with stiff
contacts and joints, contacts recycled and fresh, and lapjoint's engine with each of its own rungs take `--steps` steps
that are not measured, then as many in turn, repetition by repetition. CPU milliseconds are a step's, the least of the
repetitions' means; penetration and joint gaps are lapjoint's measure of the states (`state_error`), medians over the
repetitions, for they change as a scene moves. Needs `pip install --group peers`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from tables import show, write_table

from lapjoint import Params, Scene, Sequential, Substeps, make_engine, scenes
from lapjoint.studies.bench.repetitions import rotated
from lapjoint.studies.peers import StateError, load_peer, state_error
from lapjoint.studies.peers.own_ladder import own_ladder

SETTLE = {"bowl": 300, "building": 150, "pyramid": 0, "bridge": 300, "two-way-bridge": 300, "joint-grid": 150}
"""Steps before the common states. The building is hit by its cannon balls 200 steps after its start."""
SETTLE_ITERATIONS = 50
Row = dict[str, object]


@dataclass
class Contestant:
    """One engine with one setting, and what was measured of it."""

    engine: str
    setting: str
    step: Callable[[int], None]
    states: Callable[[], Any]
    cpu_ms: list[float] = field(default_factory=list)
    errors: list[StateError] = field(default_factory=list)

    def take_turn(self, scene: Scene, steps: int) -> None:
        before = time.process_time()
        self.step(steps)
        self.cpu_ms.append(1e3 * (time.process_time() - before) / steps)
        self.errors.append(state_error(scene, self.states()))

    def row(self, scene: Scene, steps: int) -> Row:
        columns = [median(column) for column in zip(*(error.values for error in self.errors), strict=True)]
        scales = {"penetration_max_mm": 1e3, "penetration_sum_m": 1, "joint_gap_max_mm": 1e3, "joint_gap_sum_m": 1}
        return {
            "scene": scene.name,
            "body_count": scene.body_count,
            "joint_count": scene.joint_count,
            "engine": self.engine,
            "setting": self.setting,
            "steps": steps,
            "repetitions": len(self.cpu_ms),
            "step_cpu_ms": float(f"{min(self.cpu_ms):.4g}"),
            **{name: float(f"{k * value:.4g}") for (name, k), value in zip(scales.items(), columns, strict=True)},
        }


def settled(scene: Scene) -> np.ndarray:
    engine = make_engine(scene, Params(solver="sequential", sequential=Sequential(iterations=SETTLE_ITERATIONS)))
    engine.activate(np.arange(scene.body_count), scene.states)
    engine.step(SETTLE.get(scene.name, 150))
    return engine.get_states()


def contestants(scene: Scene, states: np.ndarray) -> Iterator[Contestant]:
    peer, params = load_peer("box3d"), Params().resolved(scene)
    for setting in peer.ladder(scene, params):
        world = peer(scene, states, params, setting)
        yield Contestant("box3d", setting.title, world.step, world.states)
    for rung in own_ladder(Params()):
        engine = make_engine(scene, rung.params)
        engine.activate(np.arange(scene.body_count), states)
        yield Contestant("lapjoint", rung.title, engine.step, engine.get_states)
    for substeps in (2, 4, 8) if scene.joint_count else ():
        engine = make_engine(scene, Params(substeps=Substeps(substeps, joints="swept")))
        engine.activate(np.arange(scene.body_count), states)
        yield Contestant("lapjoint", f"{substeps} substeps swept", engine.step, engine.get_states)


def measure(name: str, steps: int, repetitions: int) -> list[Row]:
    scene = scenes.build(name)
    sides = list(contestants(scene, settled(scene)))
    for side in sides:
        side.step(steps)
    for repetition in range(repetitions):
        for side in rotated(sides, repetition):
            side.take_turn(scene, steps)
    rows = [side.row(scene, steps) for side in sides]
    for row in rows:
        show(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", nargs="*", default=list(SETTLE))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    rows = [row for name in arguments.scene for row in measure(name, arguments.steps, arguments.repetitions)]
    if arguments.csv:
        write_table(rows, arguments.csv)


if __name__ == "__main__":
    main()
