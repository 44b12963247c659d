"""Every number a user can set for a run, with its default, unit and trade-off beside it."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError, did_you_mean, shortened
from ..scene import Scene
from ..scene.content import LONGEST_TIMESTEP
from . import coupling_choice, solver_choice
from .coupling_choice import COUPLINGS, CouplingChoice, choose_coupling
from .engine_choice import PRECISIONS, EngineChoice
from .fields import (
    COUPLING,
    FAILURES,
    SIMULATED,
    SOLVER,
    WORKERS,
    Count,
    InPythonOnly,
    NotNegative,
    Of,
    OfSolver,
    OneOf,
    Positive,
    Share,
    Unset,
    ZeroOrAboveOne,
)
from .options import fields_of
from .partition_choice import PartitionLike, checked_partition
from .solver_choice import AUTO, SolverChoice, choose_solver, is_uniform, parse_solvers, solvers_of_workers

Class = TypeVar("Class", bound=type)


def _with_named_keywords(cls: Class) -> Class:
    """Class decorator of Params: a keyword that is no field raises a LapjointError, where Python has a TypeError."""
    plain = cls.__init__  # type: ignore[misc]

    @functools.wraps(plain)
    def init(self: Any, *values: Any, **given: Any) -> None:
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                hint = did_you_mean(name, known)
                raise LapjointError(f"no parameter named {name!r}{hint}; known parameters: {', '.join(known)}")
        plain(self, *values, **given)

    cls.__init__ = init  # type: ignore[misc]
    return cls


@_with_named_keywords
@dataclass(frozen=True)
class Params:
    """What a run is made of besides the scene. None means: the scene's.

    Every field is an option of `lapjoint run`, unless it is marked InPythonOnly. The first paragraph below a field is
    the help of its option; a field's name in backticks becomes the option's there.
    """

    workers: Annotated[int, WORKERS, Count(1, 1024)] = 1
    """How many workers share the scene.

    With one, the result is bit for bit that of the plain engine. The default of `lapjoint run` is auto: as many as pay
    on this machine, which trials of the first steps find (see docs/workers.md)."""
    runtime: Annotated[str, WORKERS] = "process"
    """Where workers live: process (their own processes), inline (all in this one), or ray (processes on many
    machines)."""
    address: Annotated[str | None, WORKERS, Unset("one for this run alone")] = None
    """host:port of a Ray cluster that this machine is part of, or auto, for `runtime` ray.

    None: one on this machine alone, started for this program."""
    coupling: Annotated[str, COUPLING, OneOf("auto", *COUPLINGS)] = "auto"
    """How workers' results become one. blend, the paper's: one exchange a step, any engine, an error that falls with
    `growth_depth`. tight: workers solve the constraints between them together, within every substep, with the error of
    one worker. auto: tight, or blend where something is asked for that only blend has. See docs/coupling.md.

    Blend takes the weighted mean of bodies that several workers simulate. With tight coupling every body has one
    worker: nothing is simulated twice. `coupling_reason` is why auto takes blend."""
    partition: Annotated[PartitionLike, WORKERS] = "auto"
    """The first partition: auto, labels, metis, curve, boxes, equal, or a file with a worker for each body.

    auto: labels if the scene has them, else metis, or curve (Hilbert's) beyond four million bodies. In Python also an
    array: the worker of each body."""
    growth_depth: Annotated[int | None, COUPLING, Of("blend"), Count(0, 1000), Unset("the scene's")] = None
    """Blend: how many edges the overlap grows from an interface. More: smaller gaps there, slower.

    Gamma of the paper. With more, more bodies are simulated twice."""
    search_depth: Annotated[int | None, COUPLING, Of("blend"), Count(0, 1000), Unset("the scene's")] = None
    """Blend: how many edges far weights search for a worker's own bodies.

    Beta of the paper. It should be at least the width of the overlap."""
    detect: Annotated[str, WORKERS, OneOf("workers", "server")] = "workers"
    """Who finds contacts: workers, or server (the paper's way, slower).

    With workers each finds its own, and the server only those between workers. With server it finds all of them, which
    takes a third of a step with few iterations."""
    balance: Annotated[str, COUPLING, Of("blend"), OneOf("pruned", "printed")] = "pruned"
    """Blend: how bodies leave workers: pruned, or printed (the paper's text).

    Printed can leave constraints without a worker."""
    load: Annotated[str, WORKERS, OneOf("contacts", "bodies", "time")] = "contacts"
    """What balancing evens out: contacts, bodies (the paper), or time (for machines of unequal speed; results differ
    from run to run).

    Contacts counts bodies, their joints and contacts. Time is the workers' measured CPU time: the one choice that gives
    up reproducible results."""
    linger: Annotated[int, COUPLING, Of("blend"), Count(0, 1000)] = 20
    """Blend: steps for which a body that came back to a worker stays before it leaves again; 0 is the paper's.

    A body that comes back to a worker within so many steps must be free to leave for as many before it does. This keeps
    bodies from flickering between workers while nothing moves."""
    repartition: Annotated[float, WORKERS, ZeroOrAboveOne()] = 1.05
    """Largest load over mean load from which the scene is repartitioned; 0: never, as in the paper.

    By METIS, for the scene as it is then; also when the overlap has become wide. Loads become more even, and many
    bodies may migrate at once."""
    weights: Annotated[str, COUPLING, Of("blend"), OneOf("depth", "computed")] = "depth"
    """Blend: weights of workers: depth, or computed (Algorithm 5).

    Depth equals Algorithm 5 between two workers that both have bodies of their own within the search depth, and does
    not give a worker zero weight where an overlap covers all of its bodies."""
    algorithms: Annotated[str, WORKERS, OneOf("native", "reference")] = "native"
    """native, or reference: the readable Python, for study."""
    validate: Annotated[bool, FAILURES] = False
    """Check every invariant in every step."""
    engine: Annotated[str, SOLVER] = "bullet"
    """Physics engine (see `lapjoint engines`), with a precision as in bullet:float64, or one for each worker as in
    bullet,1=rapier."""
    precision: Annotated[str, SOLVER, OneOf(*PRECISIONS)] = "float32"
    """float32, or float64: slower, less rounding.

    31 to 40% slower on the bowl, twice as slow on the net's hulls."""
    timestep: Annotated[float | None, SIMULATED, Positive(LONGEST_TIMESTEP), Unset("the scene's")] = None
    """Seconds per step. Smaller: smaller gaps and penetration, more steps."""
    solver: Annotated[str, SOLVER] = "auto"
    """substeps: a step in parts, each with two sweeps; sequential: the paper's, `iterations` sweeps of a whole step; or
    dantzig, a direct solver. One for each worker as in substeps,1=dantzig, or for a label as in
    substeps,label:1=dantzig. auto: substeps, or sequential where something is asked for that only sequential has. See
    docs/solvers.md.

    A direct solver is exact where masses differ a thousandfold, but the time grows with the third power of a group's
    contacts."""
    substeps: Annotated[int, SOLVER, OfSolver("substeps"), Count(1, 1000)] = 4
    """Substeps: parts of a step. Twice as many: a quarter of the penetration and of the gaps of swept joints, in twice
    the time of the sweeps."""
    tolerance: Annotated[float, SOLVER, OfSolver("substeps"), NotNegative()] = 0.0
    """Substeps: metres of penetration that contacts may have after a step. Where one is deeper, the step is solved
    again with twice as many substeps, until none is or there are `max_substeps`. 0: never.

    Swept joints do not count, and stay as stiff as with `substeps`."""
    max_substeps: Annotated[int, SOLVER, OfSolver("substeps"), Count(1, 1000)] = 64
    """Substeps: the most that a step takes with a `tolerance`."""
    joints: Annotated[str, SOLVER, OfSolver("substeps"), OneOf("auto", "direct", "swept")] = "auto"
    """Substeps: direct solves whole structures of joints at once, without gaps; swept goes joint by joint. auto: direct
    for structures where that is little work (chains, bridges), not for dense ones (wide grids). Pieces that are bonded
    are always solved at once, and swept is refused for them."""
    solver_rows: Annotated[int, SOLVER, InPythonOnly(), Count(1, 10_000)] = 300
    """Direct solvers: the most rows with bounds (contacts, friction, limits) in one group of connected bodies.

    Larger groups are swept, and counted in `fallback_count`."""
    iterations: Annotated[int | None, SOLVER, OfSolver("sequential"), Count(1, 1_000_000), Unset("the scene's")] = None
    """Sequential: sweeps of the solver per step. More: smaller residual, joint gap and penetration, slower."""
    length_unit: Annotated[float | None, SOLVER, InPythonOnly(), Positive()] = None
    """Metres per length unit of the engine. None: a power of two near the scene's typical body size, because Bullet's
    margins (0.02 and 0.04) are absolute: bodies much smaller than the unit are slow, much larger ones are stiff."""
    mass_unit: Annotated[float | None, SOLVER, InPythonOnly(), Positive()] = None
    """Kilograms per mass unit of the engine. None: a power of two near the scene's typical body mass, because Bullet's
    thresholds for masses are absolute too: it takes very heavy bodies for static ones."""
    joint_erp: Annotated[float, SOLVER, OfSolver("sequential"), InPythonOnly(), Share()] = 0.2
    """Sequential: share of a joint's gap that one step tries to close, 0 to 1. More: smaller gaps, more jerk."""
    contact_erp: Annotated[float, SOLVER, OfSolver("sequential"), InPythonOnly(), Share()] = 0.05
    """Sequential: share of a penetration that one step tries to resolve, 0 to 1. More: less sinking, more shaking. The
    default suits timesteps of a few milliseconds: at 0.2 the standing building moves eight times as much."""
    split_impulse: Annotated[bool, SOLVER, OfSolver("sequential"), InPythonOnly()] = True
    """Sequential: resolve deep penetration by moving bodies without giving them velocity."""
    sleep: Annotated[bool, SOLVER] = False
    """Leave bodies at rest alone until something wakes them.

    They cost no time then. Results are as reproducible as without it, but not the same (docs/sleep.md)."""
    sleep_after: Annotated[float, SOLVER, InPythonOnly(), Positive()] = 0.5
    """With sleep: seconds for which all bodies of an island, which contacts and joints connect, must be still."""
    sleep_speed: Annotated[float, SOLVER, InPythonOnly(), Positive()] = 0.02
    """With sleep: the speed below which a body is still, in length units a second; one is about the size of a body."""
    sleep_spin: Annotated[float, SOLVER, InPythonOnly(), Positive()] = 0.1
    """With sleep: the same for the angular velocity [rad/s]."""
    keep_forces: Annotated[bool, SOLVER, InPythonOnly()] = False
    """Keep the forces of joints and the impulses of contacts of the last step, to be read (docs/reading.md)."""
    slide_speed: Annotated[float | None, SOLVER, Positive(), Unset("none are looked for")] = None
    """Report contacts that start to slide faster than this [m/s].

    They are in `simulation.events.reported(Slides)` (docs/reading.md). Solver substeps."""

    max_workers: Annotated[int | None, WORKERS, InPythonOnly(), Count(1, 1024)] = None
    """With this, the number of workers follows the load, from `workers` to this (docs/failures.md). None: it stays. On
    the command line: `--workers 2..16`."""
    on_failure: Annotated[str, FAILURES, OneOf("replace", "stop")] = "replace"
    """When a worker dies, hangs or fails: replace it and repeat its step, or stop.

    The same when it answers with numbers that are not finite."""
    hang_limit: Annotated[float, FAILURES, Positive()] = 5.0
    """Seconds without an answer after which a worker counts as hung, at least.

    If 20 times the slowest of its recent steps is longer, that counts, up to 12 times this plus 0.3 ms for each body of
    the scene. In its first step a worker has that maximum."""
    quarantine: Annotated[bool, FAILURES] = False
    """Freeze bodies that run away or become NaN, and go on with the rest.

    They are put back to where they were before the step. Without it, a state that does not stay finite ends the run."""
    on_surge: Annotated[str, FAILURES, OneOf("report", "stop", "quarantine", "ignore")] = "report"
    """When bodies gain energy from nowhere in a step: report it, stop, quarantine them, or ignore it.

    A surge is a step in which bodies that joints and contacts connect gain more kinetic energy than forces, motors,
    springs and moving bodies give them, by more than a tenth of gravity times their mass times their size. With stop
    and quarantine, states are those before that step; workers then take one step at a time. Solver substeps."""
    speed_limit: Annotated[float | None, FAILURES, Positive(), Unset("the scene in one step")] = None
    """m/s from which `quarantine` freezes a body.

    None: the speed that crosses the scene, as it was at the start, in one step."""

    def __post_init__(self) -> None:
        for field in fields_of(Params):
            value = getattr(self, field.name)
            if isinstance(value, np.generic):  # messages and checkpoints have plain numbers alone
                value = value.item()
                object.__setattr__(self, field.name, value)
            if isinstance(field.default, bool) and not isinstance(value, bool):
                raise LapjointError(f"{field.name} is {shortened(repr(value))}, expected True or False")
            if field.rule is not None and not (value is None and field.default is None):
                field.rule.check(field.name, value)
        object.__setattr__(self, "partition", checked_partition(self.partition))
        EngineChoice.parse(self.engine)
        parse_solvers(self.solver)
        if self.max_workers is not None:
            self._require_uniform_solver(f"max_workers is {self.max_workers}")
        if self.address is not None and self.runtime != "ray":
            raise LapjointError(f"address is {self.address!r}, but the runtime is {self.runtime}, expected ray")
        if self.tolerance > 0 and self.max_substeps < self.substeps:
            raise LapjointError(f"max_substeps is {self.max_substeps}, expected at least substeps, {self.substeps}")
        if self.tolerance == 0 and "max_substeps" in self.given_of_solver("substeps"):
            raise LapjointError(f"max_substeps is {self.max_substeps} and tolerance is 0, expected a tolerance")
        if self.max_workers is not None and self.max_workers < self.workers:
            raise LapjointError(f"max_workers is {self.max_workers}, expected at least workers, {self.workers}")
        # A resolved tight coupling has the scene's depths: `resolved` checks those.
        self._check_coupling(self.coupling, but=("growth_depth", "search_depth"))

    def resolved(self, scene: Scene) -> Params:
        """The same, with everything the scene decides filled in. An option that the coupling has no use for is
        refused."""
        choice, solver = self.coupling_choice(scene), self.solver_choice(scene)
        of_scene = {name: getattr(scene, name) for name in ("growth_depth", "search_depth")}
        as_scene = [name for name, value in of_scene.items() if getattr(self, name) == value]
        self._check_coupling(choice.coupling, choice.reason, as_scene)
        self._check_solver(solver, scene)
        return replace(
            self,
            coupling=choice.coupling,
            solver=solver.solver,
            growth_depth=scene.growth_depth if self.growth_depth is None else self.growth_depth,
            search_depth=scene.search_depth if self.search_depth is None else self.search_depth,
            timestep=scene.timestep if self.timestep is None else self.timestep,
            iterations=scene.iterations if self.iterations is None else self.iterations,
            length_unit=typical_length(scene) if self.length_unit is None else self.length_unit,
            mass_unit=typical_mass(scene) if self.mass_unit is None else self.mass_unit,
            speed_limit=self._speed_limit(scene),
        )

    # ---- coupling ------------------------------------------------------------------------------------------------

    def coupling_choice(self, scene: Scene) -> CouplingChoice:
        """The coupling that a simulation of the scene takes, and why where `coupling` is auto."""
        if self.coupling != "auto":
            return CouplingChoice(self.coupling, None)
        is_open = set(EngineChoice.parse(self.engine).names) == {"bullet"}
        obstacles = {
            "engine": not is_open,
            "solver": self.solver not in (AUTO, "substeps"),
            **dict.fromkeys(self.given_of_solver("sequential"), True),
        }
        set_here = [name for name, is_set in obstacles.items() if is_set]
        # Sleep is of one coupling: a run that goes on with more workers has it already.
        most = 2 if self.sleep else max(self.workers, self.max_workers or 0)
        return choose_coupling(most, self.given("blend"), set_here)

    def coupling_reason(self, scene: Scene) -> str | None:
        """Why auto takes the coupling that it takes for this scene; None where `coupling` is not auto."""
        return self.coupling_choice(scene).reason

    def given(self, coupling: str) -> list[str]:
        """Fields of a coupling that are not at their defaults."""
        own = (field for field in fields_of(Params) if field.coupling == coupling)
        return [field.name for field in own if getattr(self, field.name) != field.default]

    def _check_coupling(self, coupling: str, reason: str | None = None, but: Iterable[str] = ()) -> None:
        """Raise a LapjointError for a parameter of another coupling."""
        if coupling == "auto":
            return
        for name, of in others(coupling).items():
            if name in self.given(of) and name not in but:
                raise LapjointError(coupling_choice.mismatch(name, coupling, of, reason))

    # ---- solver --------------------------------------------------------------------------------------------------

    def solver_choice(self, scene: Scene) -> SolverChoice:
        """The solver that a simulation of the scene takes, and where `solver` is auto, why if it is not the substep
        solver."""
        if self.solver != AUTO:
            return SolverChoice(self.solver, None)
        obstacles = {
            "engine": set(EngineChoice.parse(self.engine).names) != {"bullet"},
        }
        set_here = [name for name, is_set in obstacles.items() if is_set]
        return choose_solver(self.given_of_solver("sequential"), set_here)

    def solver_reason(self, scene: Scene) -> str | None:
        """Why auto does not take the substep solver for this scene; None where it does, or `solver` is not auto."""
        return self.solver_choice(scene).reason

    def given_of_solver(self, solver: str) -> list[str]:
        """Fields of a solver that are not at their defaults."""
        own = (field for field in fields_of(Params) if field.solver == solver)
        return [field.name for field in own if getattr(self, field.name) != field.default]

    def _check_solver(self, choice: SolverChoice, scene: Scene) -> None:
        """Raise a LapjointError for a parameter of another solver. Direct solvers have those of the sequential one:
        they correct errors as it does, and leave large groups to its sweeps."""
        solvers = parse_solvers(choice.solver)
        named = {str(solvers.default), *solvers.by_worker.values(), *solvers.by_label.values()}
        unused = {"substeps": "substeps" not in named, "sequential": named == {"substeps"}}
        for solver, is_unused in unused.items():
            for name in self.given_of_solver(solver) if is_unused else ():
                if name != "iterations" or self.iterations != scene.iterations:  # those of a resolved one
                    raise LapjointError(solver_choice.mismatch(name, choice, solver))

    # ---- workers -------------------------------------------------------------------------------------------------

    def with_solvers(self, scene: Scene, partition: NDArray[np.int32]) -> Params:
        """The same, with labels in `solver` replaced by the workers that have them. Where workers differ in their
        solvers, the scene is not repartitioned: METIS knows nothing of solvers."""
        if is_uniform(self.solver):
            return self
        solver = solvers_of_workers(self.solver, scene, partition, self.workers)
        return replace(self, solver=solver, repartition=0.0)

    @property
    def solver_labels(self) -> list[int]:
        """Labels that have a solver of their own."""
        return sorted(parse_solvers(self.solver).by_label)

    def check_own(self, names: Iterable[str], what: str) -> None:
        """Raise a LapjointError that begins with `what` if the coupling has no use for one of these parameters."""
        for field in fields_of(Params):
            if field.name in names and field.coupling not in (None, self.coupling):
                raise LapjointError(f"{what}: coupling is {self.coupling}, expected {field.coupling}")

    @property
    def sweeps(self) -> int:
        """Of the solver in a step, once resolved."""
        return 2 * self.substeps if self.solver == "substeps" else self.iterations or 1

    @property
    def partition_name(self) -> str:
        """The partition's kind or file; `array` where it was given as one."""
        return self.partition if isinstance(self.partition, str) else "array"

    def check_worker_count(self, worker_count: int) -> int:
        """The count; refuses what is none, and another one where workers differ in their solvers."""
        worker_count = replace(self, workers=worker_count).workers
        if worker_count != self.workers:
            self._require_uniform_solver(f"{worker_count} workers are asked for in place of {self.workers}")
        return worker_count

    def _require_uniform_solver(self, why: str) -> None:
        if not is_uniform(self.solver):
            raise LapjointError(f"{why}, and solver is {self.solver!r}, expected one solver for all workers")

    def _speed_limit(self, scene: Scene) -> float | None:
        if self.speed_limit is not None or not self.quarantine or not scene.body_count:
            return self.speed_limit
        reach = scene.bounding_radii()[:, None]
        corners = (scene.states[:, :3] - reach).min(axis=0), (scene.states[:, :3] + reach).max(axis=0)
        return float(np.linalg.norm(corners[1] - corners[0])) / (self.timestep or scene.timestep)

    # ---- making them ---------------------------------------------------------------------------------------------

    @staticmethod
    def of(**given: Any) -> Params:
        """Params from keywords."""
        return Params(**given)


def others(coupling: str) -> dict[str, str]:
    """Parameters that a coupling has no use for, and the couplings they belong to."""
    return {field.name: field.coupling for field in fields_of(Params) if field.coupling not in (None, coupling)}


CHOICES: dict[str, tuple[str, ...]] = {
    field.name: field.rule.values for field in fields_of(Params) if isinstance(field.rule, OneOf) and field.type is str
}
"""Fields with a few values to choose from."""


def typical_length(scene: Scene) -> float:
    """The power of two nearest to the median body's bounding diameter [m]: exact to convert by."""
    if scene.body_count == 0:
        return 1.0
    return float(2.0 ** np.round(np.log2(2 * np.median(scene.bounding_radii()))))


def typical_mass(scene: Scene) -> float:
    """The power of two nearest to the median body's mass [kg]."""
    return float(2.0 ** np.round(np.log2(np.median(scene.bodies.mass)))) if scene.body_count else 1.0
