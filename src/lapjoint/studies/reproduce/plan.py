"""What is run: parts, each of which is complete or not there. A plan is a list of them; two are ready-made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ...errors import LapjointError
from ...params import Params
from ..bench.plan import SETTLE_STEPS, WARMUP_ITERATIONS
from ..titles import count_of
from .paper import COUNTS, ITERATIONS, JOINTED_SCENES, SCENES, TABLE_2, TIMESTEP

GROWTH_DEPTHS = tuple(range(7))
BOWL_COUNTS = (1, 2, 4, 8)
"""Of the extra figure on how errors grow with the workers."""

STEP_MS = {
    "bowl": (15.0, 0.4),
    "building": (7.0, 0.5),
    "chain-net": (285.0, 1.1),
    "four-way-bridge": (8.0, 0.35),
    "two-way-bridge": (7.0, 0.3),
}
"""What a step and a sweep take, roughly, at the paper's sizes. Only the time left depends on it."""


@dataclass(frozen=True)
class SpeedupPart:
    """Step times on several counts of workers, side by side (Table 2, Figure 10)."""

    scene: str
    size: int | None
    """About how many bodies; None: the paper's."""
    growth_depth: int
    iterations: int
    counts: tuple[int, ...]
    warmup: int
    """Steps before anything is measured, with few iterations."""
    steps: int
    """Measured ones per repetition."""
    repetitions: int

    @property
    def kind(self) -> str:
        return "speedup"

    @property
    def name(self) -> str:
        return f"{self.scene}-speedup"

    @property
    def title(self) -> str:
        return f"{self.scene}: speed-up"

    @property
    def work(self) -> float:
        """Rough time, in ms."""
        measured = SETTLE_STEPS + self.repetitions * self.steps
        warmup = self.warmup * step_ms(self.scene, self.size, min(WARMUP_ITERATIONS, self.iterations))
        return sum(_share(n) for n in self.counts) * (
            warmup + measured * step_ms(self.scene, self.size, self.iterations)
        )


@dataclass(frozen=True)
class RunPart:
    """One recorded run."""

    scene: str
    size: int | None
    growth_depth: int
    iterations: int
    workers: int
    steps: int
    """Recorded ones."""
    one_step_every: int | None
    """The one-step error is measured in every so many-th step; None: never."""
    kind: str = "run"
    """run (Figures 11 to 14), depth (errors over growth depth) or count (errors over workers)."""
    warmup: int = 0
    """Steps before the recording, with few iterations."""
    skip: int = 0
    """Recorded steps at the start that do not count in means."""
    frame_every: int = 10

    @property
    def name(self) -> str:
        depth = f"-{self.growth_depth}" if self.kind == "depth" else ""
        return f"{self.scene}-{self.workers}-{self.kind}{depth}"

    @property
    def title(self) -> str:
        workers = count_of(self.workers, "worker")
        depth = f", growth depth {self.growth_depth}" if self.kind == "depth" else ""
        return f"{self.scene}: {'run' if self.kind == 'run' else 'errors'} on {workers}{depth}"

    @property
    def work(self) -> float:
        """Rough time, in ms."""
        share = _share(self.workers)
        warmup = self.warmup * share * step_ms(self.scene, self.size, min(WARMUP_ITERATIONS, self.iterations))
        if self.one_step_every is not None:
            share += min(1.0, 9 / self.one_step_every)
        return warmup + self.steps * share * step_ms(self.scene, self.size, self.iterations)


Part = SpeedupPart | RunPart


@dataclass(frozen=True)
class Plan:
    """What to run, at which fidelity."""

    fidelity: str
    """quick or full; parts of each are kept apart."""
    parts: tuple[Part, ...]
    params: Params = field(default_factory=lambda: Params(timestep=TIMESTEP, coupling="blend", solver="sequential"))
    """What all parts have in common; a part has the rest."""

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        for part in self.parts:
            if part.scene not in SCENES:
                raise LapjointError(f"scene {part.scene!r} is not in Table 2, expected one of {', '.join(SCENES)}")
            if names.count(part.name) > 1:
                raise LapjointError(f"part {part.name!r} is in the plan more than once")

    @property
    def scenes(self) -> list[str]:
        """Names of the scenes, in the order of Table 2."""
        return [scene for scene in SCENES if any(part.scene == scene for part in self.parts)]

    @property
    def speedups(self) -> list[SpeedupPart]:
        return [part for part in self.parts if isinstance(part, SpeedupPart)]

    def runs(self, kind: str, scene: str | None = None) -> list[RunPart]:
        """Of one kind, of all scenes or one."""
        runs = [part for part in self.parts if isinstance(part, RunPart) and part.kind == kind]
        return [part for part in runs if scene in (None, part.scene)]

    def only(self, scenes: Sequence[str]) -> Plan:
        """The parts of these scenes."""
        for scene in scenes:
            if scene not in SCENES:
                raise LapjointError(f"no scene {scene!r} in Table 2, expected some of {', '.join(SCENES)}")
        return replace(self, parts=tuple(part for part in self.parts if part.scene in scenes))


def step_ms(scene: str, size: int | None, iterations: int) -> float:
    """What a step takes on one worker, roughly."""
    fixed, sweep = STEP_MS[scene]
    return (fixed + sweep * iterations) * (1.0 if size is None else size / SCENES[scene].body_count)


def _share(workers: int) -> float:
    """How long workers take, against one, on two cores."""
    return 1.0 if workers == 1 else 0.65


# ---- ready-made --------------------------------------------------------------------------------------------------


def full() -> Plan:
    """The paper's sizes, iterations and counts of workers: hours."""
    steps = {"bowl": 2000, "building": 2000, "chain-net": 1000, "four-way-bridge": 2000, "two-way-bridge": 2000}
    warmup = {"bowl": 500}
    parts: list[Part] = []
    for scene in TABLE_2:
        parts.append(
            SpeedupPart(
                scene.name,
                None,
                scene.growth_depth,
                ITERATIONS,
                COUNTS,
                warmup.get(scene.name, 200),
                steps=20,
                repetitions=3,
            )
        )
        counts = sorted({1, 2, 4, scene.workers})
        parts += _runs(scene.name, None, counts, ITERATIONS, steps[scene.name], 50 if scene.name == "bowl" else 9)
    for name in JOINTED_SCENES:
        parts += _depths(name, SCENES[name].workers, ITERATIONS, steps=200)
    parts += _counts(ITERATIONS, warmup=500, steps=200)
    return Plan("full", tuple(parts))


def quick() -> Plan:
    """Fewer steps, fewer counts, fewer iterations in recorded runs, and there a smaller net: minutes."""
    warmup = {"bowl": 500, "chain-net": 120}
    sizes = {"chain-net": 600}
    iterations = {"bowl": 50, "building": 50, "chain-net": 50, "four-way-bridge": 100, "two-way-bridge": 100}
    steps = {"bowl": 900, "building": 450, "chain-net": 250, "four-way-bridge": 250, "two-way-bridge": 250}
    parts: list[Part] = []
    for scene in TABLE_2:
        name, size = scene.name, sizes.get(scene.name)
        counts = tuple(sorted({1, 2, scene.workers} | ({4} if size is None else set())))
        parts.append(
            SpeedupPart(
                name, None, scene.growth_depth, ITERATIONS, counts, warmup.get(name, 200), steps=3, repetitions=3
            )
        )
        parts += _runs(name, size, [1, scene.workers], iterations[name], steps[name], 50 if name == "bowl" else 9)
    for name in JOINTED_SCENES:
        parts += _depths(name, 2, 50, steps=200)
    parts += _counts(50, warmup=400, steps=50)
    return Plan("quick", tuple(parts))


def _runs(
    scene: str, size: int | None, counts: Sequence[int], iterations: int, steps: int, one_step_every: int
) -> list[Part]:
    """Runs of Figures 11 to 14. With the paper's count errors are measured too."""
    paper = SCENES[scene]
    return [
        RunPart(
            scene,
            size,
            paper.growth_depth,
            iterations,
            workers,
            steps,
            one_step_every if workers == paper.workers else None,
        )
        for workers in counts
    ]


def _depths(scene: str, workers: int, iterations: int, steps: int) -> list[Part]:
    """Growth depths on a jointed scene, and one worker for comparison. The last steps count: the bridges fall into
    their joints first, and until the load arrives there is nothing at an interface to be wrong about."""
    one = RunPart(scene, None, 0, iterations, 1, steps, None, "depth", 0, steps - 60, steps)
    many = [replace(one, workers=workers, growth_depth=depth, one_step_every=1) for depth in GROWTH_DEPTHS]
    return [one, *many]


def _counts(iterations: int, warmup: int, steps: int) -> list[Part]:
    """Counts of workers on the bowl. The first steps fill the contact cache of the engine of the one-step error."""
    return [
        RunPart("bowl", None, 0, iterations, workers, steps, 1, "count", warmup, 10, steps) for workers in BOWL_COUNTS
    ]
