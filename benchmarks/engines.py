"""Engines behind the same protocol, on 1, 2 and 4 workers: joint gaps, penetration, energy, and what their interfaces
take.

    python benchmarks/engines.py scenes [SCENE...] [--engine NAME...] [--workers N...] [--csv FILE] [--pictures DIR]
    python benchmarks/engines.py interface [--csv FILE]
    python benchmarks/engines.py away [--csv FILE]

`scenes`: errors and energy, beside those of the same engine with one worker. Penetration and gaps of the last states
are measured in the same way for all engines, by `lapjoint.studies.peers.state_error`.
`interface`: milliseconds of CPU time to read and write all states and to list the contacts, by engine.
`away`: milliseconds of CPU time that bodies cost an engine that are not active in it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from tables import append_row, show

from lapjoint import Engine, EngineWarning, Params, Scene, Simulation, make_engine, scenes
from lapjoint.engines import supports
from lapjoint.measures import kinetic_energy, potential_energy
from lapjoint.run import run
from lapjoint.studies.peers.error import state_error

SIZES = {"two-way-bridge": 466, "four-way-bridge": 200, "bowl": 1000, "building": 403, "chain-net": 200}
"""About how many bodies, where the paper's are too many for a script of minutes."""
Row = dict[str, object]


def params_of(engine: str, **others: object) -> Params:
    precision = "float32" if "," in engine or "float32" in supports(engine).precisions else "float64"
    return Params.of(engine=engine, precision=precision, **others)


def energy(scene: Scene, states: np.ndarray) -> float:
    return kinetic_energy(scene, states) + potential_energy(scene, states)


def measure_scene(name: str, engine: str, workers: int, steps: int, pictures: Path | None) -> Row:
    scene = scenes.build(name, SIZES.get(name))
    with Simulation(scene, params_of(engine, workers=workers, runtime="inline", validate=True)) as simulation:
        summary = run(simulation, steps)
        states = simulation.states
        if pictures is not None:
            from lapjoint.view.draw.colors import blend_colors, worker_colors
            from lapjoint.view.draw.picture import picture

            colors = blend_colors(simulation.weights(), worker_colors(workers)) if workers > 1 else None
            file = pictures / f"{name}-{engine.replace(',', '-').replace('=', '-')}-{workers}.png"
            picture(scene, file, states, colors=colors)
    error = state_error(scene, states)
    return {
        "scene": name,
        "bodies": scene.body_count,
        "joints": scene.joint_count,
        "engine": engine,
        "workers": workers,
        "steps": steps,
        "joint_gap_max_mm": round(1e3 * summary.joint_gap_max, 3),
        "joint_gap_mean_mm": round(1e3 * summary.joint_gap_sum_mean / max(scene.joint_count, 1), 4),
        "penetration_max_mm": round(1e3 * summary.penetration_max, 3),
        "last_joint_gap_max_mm": round(1e3 * error.joint_gap_max, 3),
        "last_penetration_max_mm": round(1e3 * error.penetration_max, 3),
        "energy_change_J": float(f"{energy(scene, states) - energy(scene, scene.states):.5g}"),
        "overlap_count_mean": round(summary.overlap_count_mean, 1),
        "activation_count_mean": round(summary.activation_count_mean, 2),
        "contact_count_mean": round(summary.contact_count_mean, 1),
        "state_hash": summary.state_hash,
    }


def measure_scenes(arguments: argparse.Namespace) -> Iterator[Row]:
    for name in arguments.scene or scenes.names():
        for engine in arguments.engine:
            alone: float | None = None
            for workers in arguments.workers:
                row = measure_scene(name, engine, workers, arguments.steps, arguments.pictures)
                change = row["energy_change_J"]
                assert isinstance(change, float)
                alone = change if workers == 1 else alone
                row["energy_change_of_one"] = round(change / alone, 4) if alone else ""
                yield row


def median_ms(call: Callable[[], object], repetitions: int = 7) -> float:
    """Median CPU time of a call [ms]."""
    taken = []
    for _ in range(repetitions):
        start = time.process_time()
        call()
        taken.append(1e3 * (time.process_time() - start))
    return round(float(np.median(taken)), 3)


def measure_interface(arguments: argparse.Namespace) -> Iterator[Row]:
    for size in (1000, 5040):
        scene = scenes.build("bowl", size)
        settled = make_engine(scene, Params(iterations=10))
        settled.activate(np.arange(scene.body_count), scene.states)
        settled.step(250)
        start = settled.get_states()
        for name in arguments.engine:
            if name == "mujoco" and size > 2000:
                continue
            engine = make_engine(scene, params_of(name, iterations=20))
            ids = np.arange(scene.body_count)
            began = time.process_time()
            engine.activate(ids, start)
            activate_ms = 1e3 * (time.process_time() - began)
            steps, reads, lists, writes = [], [], [], []
            for _ in range(15):
                marks = [time.process_time()]
                engine.step()
                marks.append(time.process_time())
                states = engine.get_states()
                marks.append(time.process_time())
                count = len(engine.contacts())
                marks.append(time.process_time())
                states[:, 0] += 1e-6
                engine.set_states(ids, states)
                marks.append(time.process_time())
                for kept, ms in zip((steps, reads, lists, writes), 1e3 * np.diff(marks), strict=True):
                    kept.append(ms)
            row: Row = {"engine": name, "bodies": scene.body_count, "contacts": count}
            row["step_ms"] = round(float(np.median(steps)), 2)
            if name == "rapier":  # its step reads all states too, to see that they are finite
                bodies = list(engine._bodies.values())  # type: ignore[attr-defined]
                from lapjoint.engines.rapier_states import read_slowly

                row["read_ms"] = median_ms(partial(engine.read, ids))  # type: ignore[attr-defined]
                row["step_ms"] = round(float(np.median(steps)) - row["read_ms"], 2)
                row["read_by_property_ms"] = median_ms(partial(read_slowly, bodies))
            else:
                row["read_ms"], row["read_by_property_ms"] = round(float(np.median(reads)), 3), ""
            row["write_ms"] = round(float(np.median(writes)), 3)
            row["contacts_ms"] = round(float(np.median(lists)), 3)
            row["activate_ms"] = round(activate_ms, 1)
            yield row


def out_and_in(engine: Engine, scene: Scene) -> None:
    engine.deactivate([99])
    engine.activate([99], scene.states[[99]])


def measure_away(arguments: argparse.Namespace) -> Iterator[Row]:
    """A step with 100 active bodies in scenes of growing size."""
    for size in (100, 500, 1000, 2000, 5040):
        scene = scenes.build("bowl", size)
        for name in arguments.engine:
            began = time.process_time()
            try:
                engine = make_engine(scene, params_of(name, iterations=20))
            except ValueError as error:
                print(error)
                continue
            start_ms = 1e3 * (time.process_time() - began)
            ids = np.arange(100)
            engine.activate(ids, scene.states[ids])
            engine.step(5)
            change_ms = median_ms(partial(out_and_in, engine, scene))
            yield {
                "engine": name,
                "bodies": scene.body_count,
                "active": 100,
                "start_ms": round(start_ms, 1),
                "step_ms": median_ms(engine.step, 25),
                "out_and_in_ms": change_ms,
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("scenes", "interface", "away"))
    parser.add_argument("scene", nargs="*")
    parser.add_argument("--engine", nargs="+", default=["bullet", "rapier"])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", EngineWarning)
    measures = {"scenes": measure_scenes, "interface": measure_interface, "away": measure_away}
    for row in measures[arguments.what](arguments):
        show(row)
        if arguments.csv:
            append_row(row, arguments.csv)


if __name__ == "__main__":
    main()
