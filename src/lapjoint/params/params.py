"""Every number a user can set for a run, with its default, unit and trade-off beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.checks import is_finite
from ..errors import LapjointError
from ..scene import WORLD, Scene
from .engine_choice import PRECISIONS, EngineChoice
from .solver_choice import is_uniform, parse_solvers, solvers_of_workers

CHOICES = {
    "coupling": ("auto", "blend", "tight"),
    "detect": ("workers", "server"),
    "balance": ("pruned", "guarded", "printed"),
    "load": ("contacts", "bodies", "time"),
    "weights": ("depth", "computed", "equal"),
    "algorithms": ("native", "reference"),
    "on_failure": ("replace", "stop"),
    "placement": ("spread", "pack"),
    "send": ("all", "border"),
}


OF_BLEND = ("growth_depth", "search_depth", "weights", "balance", "linger")
"""Parameters of overlap, which tight coupling does not have."""
ROUNDS = 10
"""Exchanges in a tight step, if nothing else is said."""


@dataclass(frozen=True)
class Params:
    """What a run is made of besides the scene. None means: as the scene says."""

    workers: int = 1
    """How many workers share the scene. With one, the result is bit for bit that of the plain engine."""
    runtime: str = "process"
    """Where workers live: process (their own processes), inline (all in this one) or ray (actors, on many machines)."""
    address: str | None = None
    """Of a Ray cluster that this machine is part of, host:port, for the ray runtime. None: one on this machine alone,
    started for this program."""
    placement: str = "spread"
    """Where Ray's workers go: spread over the machines by their CPUs, or pack: this machine first, then the next; fewer
    messages go over the network, more workers share a machine's memory bandwidth."""
    send: str = "all"
    """Which states come back from workers on other machines with every step: all, or only those of the border, where
    they may matter to other workers. All: a worker that is lost can be replaced. Border: a fraction of the bytes, all
    states are fetched when somebody looks at them; a lost worker ends the run. Results are the same."""
    coupling: str = "auto"
    """How workers' results become one: blend, the paper's weighted mean of bodies that several workers simulate; or
    tight: every body has one worker, and constraints between workers are solved with all others, in rounds within the
    step. Tight is exact as rounds grow, and simulates nothing twice; blend needs one exchange a step. auto:
    tight for several workers of a scene with joints, unless something is asked for that only blend has; else blend."""
    rounds: int | None = None
    """Tight: exchanges within a step, among which the iterations are divided. More: smaller error, more messages. With
    a tolerance: the most. None: ROUNDS."""
    tolerance: float = 0.0
    """Tight: m/s. Rounds end once one changes no constraint's velocity by more than this. 0: once nothing changes."""
    acceleration: bool = True
    """Tight: extrapolate impulses from round to round (Anderson acceleration). Without it a step is plain sweeps."""
    joints_together: bool = True
    """Tight: solve joints without limits at once, by a sparse factorization in each step, instead of by sweeps. Joints
    then hold as if sweeps had gone on forever."""
    joint_warm_start: float = 0.0
    """Tight: share of the last step's joint impulses that sweeps start from, 0 to 1. For joints that are not solved
    together; much of it gives long structures energy that they should not have."""
    partition: str = "auto"
    """The first division: labels, metis, boxes, equal, or a file. auto: labels if the scene has them, else metis."""
    growth_depth: int | None = None
    """Gamma: how many edges the overlap grows from an interface. More: smaller gaps there, more bodies simulated
    twice."""
    search_depth: int | None = None
    """Beta: how many edges weights search for a worker's own bodies. At least the width of the overlap is useful."""
    detect: str = "workers"
    """Who finds contacts: workers (each its own; the server only those between workers), or server (all of them, as in
    the paper, which takes a third of a step with few iterations)."""
    balance: str = "pruned"
    """How bodies leave workers: pruned, guarded (pruned without tidying up), or printed (the paper's text, which can
    leave constraints without a worker)."""
    load: str = "contacts"
    """What balancing evens out: contacts (bodies, their joints and contacts), bodies (the paper), or time: the workers'
    measured CPU time. Time suits machines of unequal speed; it is the one choice that gives up reproducible results."""
    linger: int = 20
    """A body that comes back to a worker within so many steps has to be free to leave for as many before it leaves
    again: against bodies that flicker between workers while nothing moves. 0 is the paper's."""
    repartition: float = 1.05
    """Largest load over mean load from which the scene is divided anew by METIS, as it is then; also when the overlap
    has become wide. Loads are evener, and a few bodies change workers at once. 0: never, as in the paper."""
    weights: str = "depth"
    """depth (the same as Algorithm 5 between two workers, sound among more), computed (Algorithm 5), or equal."""
    algorithms: str = "native"
    """native, or reference: the readable Python, for study."""
    validate: bool = False
    """Check every invariant in every step."""
    engine: str = "bullet"
    """Which physics engine: one for all workers (rapier, bullet:float64), or others for some (bullet,1=rapier)."""
    precision: str = "float32"
    """float32, or float64: 31 to 40% slower on the bowl, twice as slow on the net's hulls; less rounding."""
    timestep: float | None = None
    """Seconds per step. Smaller: smaller gaps and penetration, more steps."""
    solver: str = "sequential"
    """How constraints are solved: sequential (impulses, sweep after sweep), or directly by dantzig or lemke: exact
    where masses differ a thousandfold, but the time grows with the third power of a group's contacts. One for all
    workers, others for some (sequential,1=dantzig), or for workers of a label (sequential,label:1=dantzig)."""
    solver_rows: int = 300
    """The most rows with bounds (contacts, friction, limits) that a direct solver takes on in one group of connected
    bodies; larger groups are swept, and counted in `fallback_count`."""
    iterations: int | None = None
    """Sweeps of the solver per step. More: smaller residual, joint gap and penetration; time grows with it."""
    residual_threshold: float = 0.0
    """m/s. Sweeps end early once none changes a constraint's velocity by more than this. 0: never."""
    length_unit: float | None = None
    """Metres per engine length. None: a power of two near the scene's typical body size, because Bullet's margins
    (0.02 and 0.04) are absolute: bodies much smaller than the unit are slow, much larger ones are stiff."""
    joint_erp: float = 0.2
    """Share of a joint's gap that one step tries to close, 0 to 1. More: smaller gaps, more jerk."""
    contact_erp: float = 0.05
    """Share of a penetration that one step tries to resolve, 0 to 1. More: less sinking, more shaking. The default
    suits timesteps of a few milliseconds: at 0.2 the standing building moves eight times as much."""
    warm_start: float = 0.85
    """Share of the last step's contact impulses that the solver starts from, 0 to 1."""
    split_impulse: bool = True
    """Resolve deep penetration by moving bodies without giving them velocity."""
    friction_directions: int = 2
    """Friction rows per contact point: 2 holds on every slope; 1 follows the sliding direction alone, is about
    a third faster per sweep, and lets resting bodies creep on slopes."""
    sleeping: bool = False
    """Let resting bodies sleep. Saves time; results then depend on the order of arrival."""

    max_workers: int | None = None
    """With this, the number of workers follows the load, from `workers` to this (see elastic.py). None: it stays."""
    on_failure: str = "replace"
    """What happens when a worker dies, hangs, fails or answers with numbers that are not finite: replace it by a fresh
    one that takes the step again, or stop."""
    hang_limit: float = 5.0
    """s. A worker counts as hung after so long without an answer, or after 20 times the slowest of its recent steps if
    that is longer; in its first step after 12 times this."""
    quarantine: bool = False
    """Freeze bodies whose states do not stay finite, or that pass the speed limit, where they were before the step, and
    go on with the rest. Otherwise a state that does not stay finite ends the run."""
    speed_limit: float | None = None
    """m/s. With quarantine, faster bodies are runaways. None: the speed that crosses the scene, as it began, in one
    step."""

    def __post_init__(self) -> None:
        for name, top in (
            ("workers", 1024),
            ("max_workers", 1024),
            ("iterations", 1_000_000),
            ("rounds", 1_000_000),
            ("solver_rows", 10_000),
        ):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, np.integer)) and 1 <= value <= top):
                raise LapjointError(f"{name} is {value}, expected 1 to {top}")
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise LapjointError(f"{name} is {getattr(self, name)!r}, expected one of {', '.join(known)}")
        if not (is_finite(self.repartition) and (self.repartition == 0 or self.repartition > 1)):
            raise LapjointError(f"repartition is {self.repartition}, expected 0 or a number above 1")
        for name in ("growth_depth", "search_depth", "linger"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, np.integer)) and 0 <= value <= 1000):
                raise LapjointError(f"{name} is {value}, expected 0 to 1000")
        EngineChoice.parse(self.engine)
        parse_solvers(self.solver)
        if self.max_workers is not None:
            self._require_uniform_solver(f"max_workers is {self.max_workers}")
        if self.precision not in PRECISIONS:
            raise LapjointError(f"precision is {self.precision!r}, expected float32 or float64")
        if self.friction_directions not in (1, 2):
            raise LapjointError(f"friction_directions is {self.friction_directions}, expected 1 or 2")
        if self.address is not None and self.runtime != "ray":
            raise LapjointError(f"address is {self.address!r}, but the runtime is {self.runtime}, expected ray")
        if self.send == "border" and self.runtime in ("inline", "process"):
            raise LapjointError(f"send is 'border', but the runtime is {self.runtime}, expected ray")
        if self.send == "border" and self.coupling == "tight":
            raise LapjointError("send is 'border' and coupling is tight, which needs all states, expected send 'all'")
        if self.send == "border" and self.quarantine:
            raise LapjointError("send is 'border' and quarantine is on, which looks at all states, expected send 'all'")
        if self.max_workers is not None and self.max_workers < self.workers:
            raise LapjointError(f"max_workers is {self.max_workers}, expected at least workers, {self.workers}")
        for name in ("timestep", "length_unit", "hang_limit", "speed_limit"):
            value = getattr(self, name)
            if value is not None and not (is_finite(value) and value > 0):
                raise LapjointError(f"{name} is {value}, expected a positive number")
        for name in ("joint_erp", "contact_erp", "warm_start", "joint_warm_start"):
            if not (is_finite(getattr(self, name)) and 0 <= getattr(self, name) <= 1):
                raise LapjointError(f"{name} is {getattr(self, name)}, expected a number from 0 to 1")
        for name in ("residual_threshold", "tolerance"):
            if not (is_finite(getattr(self, name)) and getattr(self, name) >= 0):
                raise LapjointError(f"{name} is {getattr(self, name)}, expected zero or more")

    def resolved(self, scene: Scene) -> Params:
        """The same, with everything the scene decides filled in."""
        return replace(
            self,
            coupling=self._coupling(scene),
            growth_depth=scene.growth_depth if self.growth_depth is None else self.growth_depth,
            search_depth=scene.search_depth if self.search_depth is None else self.search_depth,
            timestep=scene.timestep if self.timestep is None else self.timestep,
            iterations=scene.iterations if self.iterations is None else self.iterations,
            rounds=ROUNDS if self.rounds is None else self.rounds,
            length_unit=typical_length(scene) if self.length_unit is None else self.length_unit,
            speed_limit=self._speed_limit(scene),
        )

    def _coupling(self, scene: Scene) -> str:
        """With joints, tight is better in everything. Contacts alone leave its server much to do where workers are
        many, and blend looks as right."""
        if self.coupling != "auto":
            return self.coupling
        several = max(self.workers, self.max_workers or 0) > 1
        has_joints = bool((scene.joints.body_b != WORLD).any())
        as_ever = all(getattr(self, name) == getattr(Params, name) for name in OF_BLEND)
        is_able = set(EngineChoice.parse(self.engine).names) == {"bullet"} and not self.sleeping
        is_able = is_able and self.solver == "sequential" and self.send == "all"
        return "tight" if several and has_joints and as_ever and is_able else "blend"

    def with_solvers(self, scene: Scene, partition: NDArray[np.int32]) -> Params:
        """The same, with labels in `solver` replaced by the workers that have them. Where workers differ in their
        solvers, the scene is not divided anew: METIS knows nothing of solvers."""
        if is_uniform(self.solver):
            return self
        solver = solvers_of_workers(self.solver, scene, partition, self.workers)
        return replace(self, solver=solver, repartition=0.0)

    @property
    def solver_labels(self) -> list[int]:
        """Labels that have a solver of their own."""
        return sorted(parse_solvers(self.solver).by_label)

    def check_coupling_of(self, names: Any, what: str) -> None:
        """Refuse parameters that the coupling does not have."""
        for name in names:
            own = "blend" if name in OF_BLEND else "tight" if name == "rounds" else self.coupling
            if own != self.coupling:
                raise LapjointError(f"{what}: coupling is {self.coupling}, expected {own}")

    def check_worker_count(self, worker_count: int) -> None:
        """Refuse what is no count, and another one where workers differ in their solvers."""
        replace(self, workers=worker_count)
        if worker_count != self.workers:
            self._require_uniform_solver(f"{worker_count} workers are asked for in place of {self.workers}")

    def _require_uniform_solver(self, why: str) -> None:
        if not is_uniform(self.solver):
            raise LapjointError(f"{why}, and solver is {self.solver!r}, expected one solver for all workers")

    def _speed_limit(self, scene: Scene) -> float | None:
        if self.speed_limit is not None or not self.quarantine or not scene.body_count:
            return self.speed_limit
        reach = scene.bounding_radii()[:, None]
        corners = (scene.states[:, :3] - reach).min(axis=0), (scene.states[:, :3] + reach).max(axis=0)
        return float(np.linalg.norm(corners[1] - corners[0])) / (self.timestep or scene.timestep)

    @staticmethod
    def of(**given: Any) -> Params:
        """Params from keywords; an unknown one is an error that lists the known ones."""
        known = list(Params.__dataclass_fields__)
        for name in given:
            if name not in known:
                raise LapjointError(f"no parameter named {name!r}; known parameters: {', '.join(known)}")
        return Params(**given)


def typical_length(scene: Scene) -> float:
    """The power of two nearest to the median body's bounding diameter [m]: exact to convert by."""
    if scene.body_count == 0:
        return 1.0
    return float(2.0 ** np.round(np.log2(2 * np.median(scene.bounding_radii()))))
