"""Whether tight coupling is as right as one worker: penetration, joint gaps, energy, drift, one-step error.

    python benchmarks/as_one.py [CASE...] [--csv FILE]

A case is a scene or a study, and its rows are appended to the file as they are made: a run looked at after some steps.

- Scenes (`pyramid`, `wall`, ...) run on 1, 2, 4 and 8 workers from how they are built. Penetration, gaps, residual and
  one-step error are means over the second half of the steps, kinetic energy is the median, and `drift` is the root mean
  square of how far bodies are from where one worker has them in the end, where the scene is not chaotic. A `ratio` is
  to one worker's.
- `building-scatter`: the building again, hit by cannon balls of 98 to 102% of their speed, and with speeds of a
  micrometre a second added to all bodies: how much is chance.
- `long-...`: small scenes with owners at random on 4 workers, for 10,000 steps: energy must not grow.
- `bad-start`: the two-way bridge from states with gaps of 11 mm; `dragged`: a shorter one, a body of which is pulled
  by a spring or set aside, and let go. `energy_gain` is how much more kinetic and potential energy there is than
  before, without the work of the pull.
- `cut`: a curtain of 60 x 59 balls, cut in the middle by METIS; `cut-20`: one that a single worker solves at once.

Everything is in this process, in float32, and gives the same figures every time, CPU times excepted.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tables import append_row, show

from lapjoint import Box, Params, Plane, Scene, Sequential, Simulation, scenes
from lapjoint.measures import joint_gaps, kinetic_energy, motion, potential_energy
from lapjoint.measures.one_step import OneStep

Array = NDArray[np.float64]
Row = dict[str, Any]

WORKERS = (1, 2, 4, 8)
COLUMNS = (
    "case",
    "division",
    "joints",
    "workers",
    "body_count",
    "step",
    "cut_share",
    "penetration_sum_mm",
    "penetration_ratio",
    "joint_gap_sum_m",
    "joint_gap_ratio",
    "joint_gap_max_m",
    "kinetic_energy_j",
    "energy_gain_j",
    "drift_m",
    "one_step_error",
    "one_step_difference_m_s",
    "residual_m_s",
    "worker_cpu_ms",
)
ONE_STEP_EVERY = 5


def row(case: str, scene: Scene, params: Params, step: int, **figures: float | str) -> Row:
    """A row with all columns; those that were not measured are empty."""
    named = params.partition if isinstance(params.partition, str) else "given"
    found = dict.fromkeys(COLUMNS, "") | {
        "case": case,
        "division": "" if params.workers == 1 else named,
        "joints": params.substeps.joints if scene.joint_count else "",
        "workers": params.workers,
        "body_count": scene.body_count,
        "step": step,
    }
    return found | {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in figures.items()}


def params_of(workers: int, **more: Any) -> Params:
    if workers > 1:
        more = {"coupling": "tight", "partition": "metis"} | more
    return Params.from_options(workers=workers, runtime="inline", **more)


def penetration(simulation: Simulation) -> float:
    return float(np.maximum(simulation.contacts.pairs().depth, 0.0).sum())


def at_random(count: int, workers: int) -> NDArray[np.int32]:
    return np.random.default_rng(0).permutation(np.arange(count, dtype=np.int32) % workers)


# ---- scenes, on one worker and on several ----------------------------------------------------------------------------


def wall(rows: int = 10, columns: int = 10) -> Scene:
    """Bricks in bond, with closers at every other end."""
    scene = Scene("wall")
    scene.add_static(Plane())
    shapes, places = [], []
    for row in range(rows):
        sizes = [0.5] * columns if row % 2 == 0 else [0.25, *[0.5] * (columns - 1), 0.25]
        for end, size in zip(np.cumsum(sizes), sizes, strict=True):
            shapes.append(Box((size - 0.01, 0.25, 0.25)))
            places.append((float(end - size / 2), 0.0, 0.125 + 0.25 * row))
    scene.add_bodies(shapes, places, density=1000.0)
    return scene


@dataclass(frozen=True)
class Case:
    """A scene and how long it runs."""

    make: Callable[[], Scene]
    steps: int
    divisions: tuple[str, ...] = ("metis",)
    chaotic: bool = False
    joints: str = "auto"


def stack(count: int = 20) -> Scene:
    scene = Scene("stack")
    scene.add_static(Plane())
    scene.add_bodies(Box((0.5, 0.5, 0.5)), [(0.0, 0.0, 0.25 + 0.5 * k) for k in range(count)], density=1000.0)
    return scene


CASES = {
    "pyramid-30": Case(lambda: scenes.build("pyramid", 30), 500, ("metis", "random", "turns")),
    "pyramid": Case(lambda: scenes.build("pyramid"), 200),
    "wall": Case(lambda: wall(12, 12), 500, ("metis", "random")),
    "stack": Case(stack, 500, ("turns",)),
    "bowl-1000": Case(lambda: scenes.build("bowl", 1000), 800, chaotic=True),
    "building": Case(lambda: scenes.build("building"), 300, chaotic=True),
    "chain-net-300": Case(lambda: scenes.build("chain-net", 300), 80, chaotic=True),
    "chain": Case(lambda: scenes.build("chain"), 400, ("metis", "turns")),
    "bridge": Case(lambda: scenes.build("bridge"), 300, ("metis", "random")),
    "bridge-swept": Case(lambda: scenes.build("bridge"), 300, ("metis", "random"), joints="swept"),
    "two-way-bridge": Case(lambda: scenes.build("two-way-bridge"), 120),
    "four-way-bridge": Case(lambda: scenes.build("four-way-bridge"), 120),
}


def run(case: Case, scene: Scene, params: Params) -> tuple[dict[str, float], Array]:
    """Figures of a run, and the states that it ends with."""
    kept: dict[str, list[float]] = {"penetration": [], "gap": [], "gap_max": [], "energy": [], "residual": []}
    errors, cpu = [], []
    with Simulation(scene, params) as simulation:
        one_step = OneStep(simulation, ONE_STEP_EVERY)
        for step in range(case.steps):
            one_step.before_step(simulation)
            simulation.step()
            states = simulation.states
            error = one_step.after_step(simulation, states)
            if step < case.steps // 2:
                continue
            if np.isfinite(error).all():
                errors.append(error)
            cpu.append(float(np.max(simulation.profile.worker_cpu_ms)))
            kept["penetration"].append(penetration(simulation))
            kept["energy"].append(kinetic_energy(scene, states))
            kept["residual"].append(simulation.profile.residual)
            if scene.joint_count:
                gaps = joint_gaps(scene, states)
                kept["gap"].append(float(gaps.sum()))
                kept["gap_max"].append(float(gaps.max()))
        cut = simulation.profile.cut_share
    figures = {name: float(np.mean(values)) for name, values in kept.items() if values}
    figures |= {"energy": float(np.median(kept["energy"])), "cut": cut, "cpu": float(np.median(cpu))}
    figures["error"], figures["difference"] = (float(value) for value in np.mean(errors, axis=0))
    return figures, states


def case_rows(name: str) -> Iterator[Row]:
    case = CASES[name]
    scene, one, exact = case.make(), dict[str, float](), np.empty(0)
    divisions: dict[str, Any] = {
        "metis": {},
        "random": {"partition": at_random(scene.body_count, 4), "repartition": 0.0},
        "turns": {"partition": np.arange(scene.body_count) % 4, "repartition": 0.0},
    }
    runs: list[tuple[str, int]] = [("", 1)]
    for division in case.divisions:
        runs += [(division, count) for count in (WORKERS[1:] if division == "metis" else (4,))]
    for division, workers in runs:
        params = params_of(workers, joints=case.joints, **divisions.get(division, {}))
        found, states = run(case, scene, params)
        if workers == 1:
            one, exact = found, states
        figures = {
            "division": division,
            "cut_share": found["cut"],
            "penetration_sum_mm": 1e3 * found["penetration"],
            "kinetic_energy_j": found["energy"],
            "one_step_error": found["error"],
            "one_step_difference_m_s": found["difference"],
            "residual_m_s": found["residual"],
            "worker_cpu_ms": found["cpu"],
        }
        if one["penetration"]:
            figures["penetration_ratio"] = found["penetration"] / one["penetration"]
        if scene.joint_count:
            figures |= {"joint_gap_sum_m": found["gap"], "joint_gap_max_m": found["gap_max"]}
            figures["joint_gap_ratio"] = found["gap"] / one["gap"]
        if not case.chaotic:
            figures["drift_m"] = float(np.sqrt(((states - exact)[:, :3] ** 2).sum(axis=1).mean()))
        yield row(name, scene, params, case.steps, **figures)


SPEEDS = (0.98, 0.99, 1.0, 1.01, 1.02)
SEEDS = 6


def scattered_starts(scene: Scene) -> Iterator[tuple[str, Array]]:
    """With cannon balls a little slower or faster; and with speeds of a micrometre a second added to all bodies."""
    balls = np.flatnonzero(np.linalg.norm(scene.states[:, 7:10], axis=1) > 1.0)
    for speed in SPEEDS:
        start = scene.states.copy()
        start[balls, 7:10] *= speed
        yield f"speed-{speed}", start
    for seed in range(SEEDS):
        start = scene.states.copy()
        start[:, 7:10] += 1e-6 * np.random.default_rng(seed).normal(size=(scene.body_count, 3))
        yield f"seed-{seed}", start


def scatter_rows(case: str) -> Iterator[Row]:
    """The building as it falls, from several starts: how much of a ratio is chance. Ratios are to one worker's run from
    the same start."""
    name, one = case.removesuffix("-scatter"), dict[str, float]()
    scene, steps = CASES[name].make(), CASES[name].steps
    for workers in (1, 8):
        for label, start in scattered_starts(scene):
            params, depth = params_of(workers), []
            with Simulation(scene, params) as simulation:
                simulation.set_states(np.arange(scene.body_count), start)
                simulation.step(steps // 2)
                for _ in range(steps - steps // 2):
                    simulation.step()
                    depth.append(penetration(simulation))
                energy = kinetic_energy(scene, simulation.states)
            found = float(np.mean(depth))
            one.setdefault(label, found)
            figures = {"penetration_sum_mm": 1e3 * found, "penetration_ratio": found / one[label]}
            yield row(f"{case}-{label}", scene, params, steps, kinetic_energy_j=energy, **figures)


# ---- owners at random, for long --------------------------------------------------------------------------------------

LONG: dict[str, Callable[[], Scene]] = {
    "long-pyramid": lambda: scenes.build("pyramid", 8),
    "long-wall": lambda: wall(6, 5),
    "long-stack": lambda: stack(10),
    "long-bridge": lambda: scenes.build("bridge", 106),
}
LONG_STEPS = (100, 1000, 10_000)


def long_rows(name: str) -> Iterator[Row]:
    """Kinetic energy is the mean over the ten steps before."""
    scene = LONG[name]()
    params = params_of(4, partition=at_random(scene.body_count, 4), repartition=0.0)
    with Simulation(scene, params) as simulation:
        before = sum(energies(scene, simulation.states))
        for step in LONG_STEPS:
            simulation.step(step - 10 - simulation.step_count)
            kinetic, depth = [], []
            for _ in range(10):
                simulation.step()
                kinetic.append(kinetic_energy(scene, simulation.states))
                depth.append(penetration(simulation))
            gaps = joint_gaps(scene, simulation.states)
            yield row(
                name,
                scene,
                params,
                step,
                division="random",
                cut_share=simulation.profile.cut_share,
                penetration_sum_mm=1e3 * float(np.mean(depth)),
                kinetic_energy_j=float(np.mean(kinetic)),
                energy_gain_j=sum(energies(scene, simulation.states)) - before,
                residual_m_s=simulation.profile.residual,
                **({"joint_gap_sum_m": float(gaps.sum()), "joint_gap_max_m": float(gaps.max())} if len(gaps) else {}),
            )


def energies(scene: Scene, states: Array) -> tuple[float, float]:
    """Kinetic and potential."""
    return kinetic_energy(scene, states), potential_energy(scene, states)


# ---- bad starts ------------------------------------------------------------------------------------------------------

GAP = 0.011  # m
LOOKED_AT = (1, 10, 100)


def torn_bridge() -> tuple[Scene, Array]:
    """The two-way bridge, badly solved until its largest gap is as wide."""
    scene = scenes.build("two-way-bridge")
    with Simulation(
        scene, Params(runtime="inline", solver="sequential", sequential=Sequential(iterations=10))
    ) as simulation:
        while simulation.joints.gaps().max() < GAP:
            simulation.step()
        return scene, simulation.states


def looked_at(case: str, simulation: Simulation, step: int, before: float, work: float = 0.0) -> Row:
    scene, gaps = simulation.scene, simulation.joints.gaps()
    kinetic, potential = energies(scene, simulation.states)
    return row(
        case,
        scene,
        simulation.params,
        step,
        penetration_sum_mm=1e3 * penetration(simulation) if step else "",
        joint_gap_sum_m=float(gaps.sum()),
        joint_gap_max_m=float(gaps.max()),
        kinetic_energy_j=kinetic,
        energy_gain_j=kinetic + potential - before - work,
        residual_m_s=simulation.profile.residual if step else "",
    )


def bad_start_rows(case: str) -> Iterator[Row]:
    scene, states = torn_bridge()
    before = sum(energies(scene, states))
    for workers in WORKERS[:3]:
        with Simulation(scene, params_of(workers)) as simulation:
            simulation.set_states(np.arange(scene.body_count), states)
            yield looked_at(case, simulation, 0, before)
            for step in LOOKED_AT:
                simulation.step(step - simulation.step_count)
                yield looked_at(case, simulation, step, before)


def dragged_rows(case: str) -> Iterator[Row]:
    """A body in the middle, 0.3 m to the side: by a spring as in the live view, and by setting its state."""
    for how in ("pulled", "set"):
        for workers in WORKERS[:3]:
            scene = scenes.build("two-way-bridge", 400)
            body = int(np.argmin(np.linalg.norm(scene.states[:, :2] - scene.states[:, :2].mean(axis=0), axis=1)))
            with Simulation(scene, params_of(workers)) as simulation:
                simulation.step(20)
                before, work = sum(energies(scene, simulation.states)), 0.0
                start = simulation.states[body, :3]
                for step in range(100):
                    place = start + np.array([0.0, 0.3 * min(1.0, (step + 1) / 10), 0.0])
                    state = simulation.states[body]
                    if how == "set":
                        if step < 10:
                            simulation.set_states([body], [[*place, *state[3:7], *np.zeros(6)]])
                        simulation.step()
                        continue
                    mass = float(scene.bodies.mass[body])
                    force = 50 * mass * ((place - state[:3]) * 400 - 2 * 20 * state[7:10])
                    simulation.bodies.add_forces([body], [force])
                    simulation.step()
                    work += float(force @ (simulation.states[body, :3] - state[:3]))
                yield looked_at(f"{case}-{how}", simulation, 0, before, work)
                for step in LOOKED_AT:
                    simulation.step(step + 120 - simulation.step_count)
                    yield looked_at(f"{case}-{how}", simulation, step, before, work)


# ---- wide cuts -------------------------------------------------------------------------------------------------------

CUTS: dict[str, tuple[int, tuple[str, ...], tuple[int, ...]]] = {  # columns, joints, workers
    "cut": (60, ("auto", "swept", "direct"), (1, 2)),
    "cut-20": (20, ("auto",), WORKERS),
}
CUT_STEPS = (30, 100, 300)


def cut_rows(case: str) -> Iterator[Row]:
    size, choices, counts = CUTS[case]
    scene = scenes.build("joint-grid", size)
    for joints in choices:
        for workers in counts:
            with Simulation(scene, params_of(workers, joints=joints)) as simulation:
                cpu: list[float] = []
                for step in CUT_STEPS[: 1 if joints == "direct" else 3]:
                    while simulation.step_count < step:
                        simulation.step()
                        cpu.append(float(np.max(simulation.profile.worker_cpu_ms)))
                    gaps = simulation.joints.gaps()
                    yield row(
                        case,
                        scene,
                        simulation.params,
                        step,
                        cut_share=simulation.profile.cut_share,
                        joint_gap_sum_m=float(gaps.sum()),
                        joint_gap_max_m=float(gaps.max()),
                        kinetic_energy_j=motion(scene, simulation.states)[0],
                        residual_m_s=simulation.profile.residual,
                        worker_cpu_ms=float(np.median(cpu)),
                    )


STUDIES: dict[str, Callable[[str], Iterator[Row]]] = {
    **dict.fromkeys(CASES, case_rows),
    "building-scatter": scatter_rows,
    **dict.fromkeys(LONG, long_rows),
    "bad-start": bad_start_rows,
    "dragged": dragged_rows,
    **dict.fromkeys(CUTS, cut_rows),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help=f"{', '.join(STUDIES)}; default: all of them")
    parser.add_argument("--csv", type=Path, metavar="FILE")
    options = parser.parse_args()
    for name in options.cases or STUDIES:
        if name not in STUDIES:
            parser.error(f"no case {name!r}; known: {', '.join(STUDIES)}")
    for name in options.cases or STUDIES:
        for found in STUDIES[name](name):
            show({key: value for key, value in found.items() if value != ""})
            if options.csv:
                append_row(found, options.csv)


if __name__ == "__main__":
    main()
