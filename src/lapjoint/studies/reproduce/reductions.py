"""In what a plan is less than the paper's evaluation, or other than it, in words."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from ..bench.plan import WARMUP_ITERATIONS
from ..titles import count_of
from .paper import COUNTS, ITERATIONS, JOINTED_SCENES, SCENES, TIMESTEP
from .plan import Part, Plan

P = TypeVar("P", bound=Part)


def reductions(plan: Plan) -> list[str]:
    """A sentence for each thing that is less than in the paper."""
    found = []
    if plan.params.timestep != TIMESTEP:
        found.append(f"The timestep is {1e3 * (plan.params.timestep or 0):g} ms; the paper's is {1e3 * TIMESTEP:g} ms.")
    speedups, runs = plan.speedups, plan.runs("run")
    for what, parts in (("Speed-up", speedups), ("Recorded runs", runs)):
        sized = [part for part in parts if part.size is not None]
        for scenes, size in _grouped(sized, lambda part: (part.scene, part.size)):
            of = SCENES[size[0]].body_count
            found.append(f"{what} with about {size[1]:,} bodies: {scenes}. The paper has {of:,}.")
    for scenes, counts in _grouped(speedups, lambda part: part.counts):
        if tuple(counts) != COUNTS:
            found.append(f"Speed-up with {_listed(counts)} workers: {scenes}. The paper has all of 1 to 8.")
    for scenes, iterations in _grouped(speedups, lambda part: part.iterations):
        if iterations != ITERATIONS:
            found.append(f"Speed-up at {iterations:,} iterations: {scenes}. The paper has {ITERATIONS:,}.")
    for scenes, (repetitions, steps, warmup) in _grouped(
        speedups, lambda part: (part.repetitions, part.steps, part.warmup)
    ):
        found.append(
            f"Speed-up over {repetitions * steps} steps after {warmup} of at most {WARMUP_ITERATIONS} iterations: "
            f"{scenes}. The paper's is over the whole simulation."
        )
    for scenes, iterations in _grouped(runs, lambda part: part.iterations):
        if iterations != ITERATIONS:
            found.append(f"Recorded runs at {iterations:,} iterations: {scenes}. The paper has {ITERATIONS:,}.")
    for scenes, steps in _grouped(runs, lambda part: part.steps):
        found.append(f"Recorded runs of {steps:,} steps: {scenes}. The paper does not say how many it took.")
    depths = [part for part in plan.runs("depth") if part.workers > 1]
    for scenes, workers in _grouped(depths, lambda part: part.workers):
        named = [part.scene for part in depths if part.workers == workers]
        if any(SCENES[name].workers != workers for name in named if name in JOINTED_SCENES):
            found.append(
                f"Errors over growth depth with {workers} workers instead of the paper's best count: {scenes}."
            )
    return found


def differences(cores: int) -> list[str]:
    """What is other than in the paper, whatever the plan."""
    return [
        "The paper ran on two machines of eight cores each, over a network with Ray (the net on one of them). Here all "
        f"workers are processes of one machine with {count_of(cores, 'core')}.",
        "Scenes have the paper's counts of bodies and joints, but shapes and masses are our own: the paper does not "
        "give them. A ring of the net is ten hulls here, and how many contacts a pair has depends on that.",
        "Ours is this project at its defaults: it balances contacts, repartitions a scene when loads are uneven, "
        "and finds contacts in the workers. The paper balances bodies and finds contacts in the server.",
    ]


T = TypeVar("T", bound=Hashable)


def _grouped(parts: Sequence[P], key: Callable[[P], T]) -> list[tuple[str, T]]:
    """Scenes with the same value, named together."""
    found: dict[T, list[str]] = {}
    for part in parts:
        names = found.setdefault(key(part), [])
        if part.scene not in names:
            names.append(part.scene)
    return [(_listed(names), value) for value, names in found.items()]


def _listed(things: Sequence[object]) -> str:
    words = [str(thing) for thing in things]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
