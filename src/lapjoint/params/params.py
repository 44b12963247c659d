"""Every number a user can set for a run, with its default, unit and trade-off beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError, shortened
from ..scene import Scene
from ..scene.content import LONGEST_TIMESTEP
from . import coupling_choice, solver_choice
from .blend import Blend
from .checked import check_values, unknown, with_named_keywords
from .coupling_choice import COUPLINGS, CouplingChoice, choose_coupling
from .engine_choice import PRECISIONS, EngineChoice
from .failures import Failures
from .fields import (
    COUPLING,
    FAILURES,
    SIMULATED,
    SLEEP,
    SOLVER,
    WORKERS,
    Count,
    InPythonOnly,
    OneOf,
    Positive,
    Unset,
    ZeroOrAboveOne,
)
from .options import Field, fields_of
from .partition_choice import PartitionLike, checked_partition
from .sequential import Sequential
from .sleep import Sleep
from .solver_choice import AUTO, SolverChoice, choose_solver, is_uniform, parse_solvers, solvers_of_workers
from .substeps import Substeps
from .units import Units


@with_named_keywords
@dataclass(frozen=True)
class Params:
    """What a run is made of besides the scene. None means: the scene's.

    What one coupling or solver alone has, and what belongs together, is in a class of its own:

    >>> Params(workers=4, blend=Blend(growth_depth=3), failures=Failures(quarantine=True))

    Every field, those of these classes included, is an option of `lapjoint run`, unless it is marked InPythonOnly. The
    first paragraph below a field is the help of its option; an option's name in backticks gets its dashes there.
    """

    workers: Annotated[int, WORKERS, Count(1, 1024)] = 1
    """How many workers share the scene.

    With one, the result is bit for bit that of the plain engine. The default of `lapjoint run` is auto: as many as pay
    on this machine, which trials of the first steps find (see docs/workers.md)."""
    max_workers: Annotated[int | None, WORKERS, InPythonOnly(), Count(1, 1024)] = None
    """With this, the number of workers follows the load, from `workers` to this (docs/failures.md). None: it stays. On
    the command line: `--workers 2..16`."""
    runtime: Annotated[str, WORKERS] = "process"
    """Where workers live: process (their own processes), inline (all in this one), or ray (processes on many
    machines)."""
    address: Annotated[str | None, WORKERS, Unset("one for this run alone")] = None
    """host:port of a Ray cluster that this machine is part of, or auto, for `runtime` ray.

    None: one on this machine alone, started for this program."""
    partition: Annotated[PartitionLike, WORKERS] = "auto"
    """The first partition: auto, labels, metis, curve, boxes, equal, or a file with a worker for each body.

    auto: labels if the scene has them, else metis, or curve (Hilbert's) beyond four million bodies. In Python also an
    array: the worker of each body."""
    detect: Annotated[str, WORKERS, OneOf("workers", "server")] = "workers"
    """Who finds contacts: workers, or server (the paper's way, slower).

    With workers each finds its own, and the server only those between workers. With server it finds all of them, which
    takes a third of a step with few iterations."""
    load: Annotated[str, WORKERS, OneOf("contacts", "bodies", "time")] = "contacts"
    """What balancing evens out: contacts, bodies (the paper), or time (for machines of unequal speed; results differ
    from run to run).

    Contacts counts bodies, their joints and contacts. Time is the workers' measured CPU time: the one choice that gives
    up reproducible results."""
    repartition: Annotated[float, WORKERS, ZeroOrAboveOne()] = 1.05
    """Largest load over mean load from which the scene is repartitioned; 0: never, as in the paper.

    By METIS, for the scene as it is then; also when the overlap has become wide. Loads become more even, and many
    bodies may migrate at once."""
    coupling: Annotated[str, COUPLING, OneOf("auto", *COUPLINGS)] = "auto"
    """How workers' results become one. blend, the paper's: one exchange a step, any engine, an error that falls with
    `growth_depth`. tight: workers solve the constraints between them together, within every substep, with the error of
    one worker. auto: tight, or blend where something is asked for that only blend has. See docs/coupling.md.

    Blend takes the weighted mean of bodies that several workers simulate. With tight coupling every body has one
    worker: nothing is simulated twice. `coupling_reason` is why auto takes blend."""
    blend: Blend = Blend()
    """Options that blend coupling alone has: its overlap and weights."""
    timestep: Annotated[float | None, SIMULATED, Positive(LONGEST_TIMESTEP), Unset("the scene's")] = None
    """Seconds per step. Smaller: smaller gaps and penetration, more steps."""
    engine: Annotated[str, SOLVER] = "bullet"
    """Physics engine (see `lapjoint engines`), with a precision as in bullet:float64, or one for each worker as in
    bullet,1=rapier."""
    precision: Annotated[str, SOLVER, OneOf(*PRECISIONS)] = "float32"
    """float32, or float64: slower, less rounding.

    31 to 40% slower on the bowl, twice as slow on the net's hulls."""
    solver: Annotated[str, SOLVER] = "auto"
    """substeps: a step in parts, each with two sweeps; sequential: the paper's, `iterations` sweeps of a whole step; or
    dantzig, a direct solver. One for each worker as in substeps,1=dantzig, or for a label as in
    substeps,label:1=dantzig. auto: substeps, or sequential where something is asked for that only sequential has. See
    docs/solvers.md.

    A direct solver is exact where masses differ a thousandfold, but the time grows with the third power of a group's
    contacts."""
    substeps: Substeps = Substeps()
    """Options that the substep solver alone has, the default: how many, how exact, and how joints are solved."""
    sequential: Sequential = Sequential()
    """Options of the sequential solver and of direct ones: iterations and how errors are corrected."""
    units: Units = Units()
    """What the engine calculates in."""
    sleep: Annotated[bool | Sleep, SLEEP] = False
    """Leave bodies at rest alone until something wakes them.

    They cost no time then. Results are as reproducible as without it, but not the same (docs/sleep.md). In Python also
    a Sleep, which says how still they must be and how long; True is Sleep()."""
    keep_forces: Annotated[bool, SOLVER, InPythonOnly()] = False
    """Keep the forces of joints and the impulses of contacts of the last step, to be read (docs/reading.md)."""
    slide_speed: Annotated[float | None, SOLVER, Positive(), Unset("none are looked for")] = None
    """Report contacts that start to slide faster than this [m/s].

    They are in `simulation.events.reported(Slides)` (docs/reading.md). Solver substeps."""
    failures: Failures = Failures()
    """What to do when a worker fails, and when bodies run away."""
    algorithms: Annotated[str, WORKERS, OneOf("native", "reference")] = "native"
    """native, or reference: the readable Python, for study."""
    validate: Annotated[bool, FAILURES] = False
    """Check every invariant in every step."""

    def __post_init__(self) -> None:
        if isinstance(self.sleep, bool | np.bool_):
            object.__setattr__(self, "sleep", Sleep() if self.sleep else False)
        elif not isinstance(self.sleep, Sleep):
            raise LapjointError(f"sleep is {shortened(repr(self.sleep))}, expected True or False, or a Sleep")
        for name, part in PARTS.items():
            if not isinstance(value := getattr(self, str(name)), part):
                first = f", as in {part.__name__}(count={value})" if name == "substeps" else ""
                raise LapjointError(f"{name} is {shortened(repr(value))}, expected {part.__name__}{first}")
        check_values(self)
        object.__setattr__(self, "partition", checked_partition(self.partition))
        EngineChoice.parse(self.engine)
        parse_solvers(self.solver)
        if self.max_workers is not None:
            self._require_uniform_solver(f"max_workers is {self.max_workers}")
        if self.address is not None and self.runtime != "ray":
            raise LapjointError(f"address is {self.address!r}, but the runtime is {self.runtime}, expected ray")
        if self.max_workers is not None and self.max_workers < self.workers:
            raise LapjointError(f"max_workers is {self.max_workers}, expected at least workers, {self.workers}")
        # A resolved tight coupling has the scene's depths: `resolved` checks those.
        self._check_coupling(self.coupling, but=("growth_depth", "search_depth"))

    def resolved(self, scene: Scene) -> Params:
        """The same, with everything the scene decides filled in. An option that the coupling has no use for is
        refused."""
        choice, solver = self.coupling_choice(scene), self.solver_choice(scene)
        of_scene = {name: getattr(scene, name) for name in ("growth_depth", "search_depth")}
        as_scene = [name for name, value in of_scene.items() if getattr(self.blend, name) == value]
        self._check_coupling(choice.coupling, choice.reason, as_scene)
        self._check_solver(solver, scene)
        unset = {
            **of_scene,
            "timestep": scene.timestep,
            "iterations": scene.iterations,
            "length_unit": typical_length(scene),
            "mass_unit": typical_mass(scene),
            "speed_limit": self._speed_limit(scene),
        }
        filled_in = {name: value for name, value in unset.items() if self.option(name) is None}
        return self.with_options(coupling=choice.coupling, solver=solver.solver, **filled_in)

    # ---- coupling ------------------------------------------------------------------------------------------------

    def coupling_choice(self, scene: Scene) -> CouplingChoice:
        """The coupling that a simulation of the scene takes, and why where `coupling` is auto."""
        if self.coupling != "auto":
            return CouplingChoice(self.coupling, None)
        is_open = set(EngineChoice.parse(self.engine).names) == {"bullet"}
        obstacles = {
            "engine": not is_open,
            "solver": self.solver not in (AUTO, "substeps"),
            **dict.fromkeys(self.given("sequential"), True),
        }
        set_here = [name for name, is_set in obstacles.items() if is_set]
        # Sleep is of one coupling: a run that goes on with more workers has it already.
        most = 2 if self.sleep else max(self.workers, self.max_workers or 0)
        return choose_coupling(most, self.given("blend"), set_here)

    def coupling_reason(self, scene: Scene) -> str | None:
        """Why auto takes the coupling that it takes for this scene; None where `coupling` is not auto."""
        return self.coupling_choice(scene).reason

    def given(self, part: str) -> list[str]:
        """Options of a class in Params that are not at their defaults."""
        return [field.name for field in fields_of(Params) if field.part == part and self._value(field) != field.default]

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
        return choose_solver(self.given("sequential"), set_here)

    def solver_reason(self, scene: Scene) -> str | None:
        """Why auto does not take the substep solver for this scene; None where it does, or `solver` is not auto."""
        return self.solver_choice(scene).reason

    def _check_solver(self, choice: SolverChoice, scene: Scene) -> None:
        """Raise a LapjointError for a parameter of another solver. Direct solvers have those of the sequential one:
        they correct errors as it does, and leave large groups to its sweeps."""
        solvers = parse_solvers(choice.solver)
        named = {str(solvers.default), *solvers.by_worker.values(), *solvers.by_label.values()}
        unused = {"substeps": "substeps" not in named, "sequential": named == {"substeps"}}
        for solver, is_unused in unused.items():
            for name in self.given(solver) if is_unused else ():
                if name != "iterations" or self.sequential.iterations != scene.iterations:  # those of a resolved one
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
            if field.name in names and field.part in COUPLINGS and field.part != self.coupling:
                raise LapjointError(f"{what}: coupling is {self.coupling}, expected {field.part}")

    @property
    def sweeps(self) -> int:
        """Of the solver in a step, once resolved."""
        return 2 * self.substeps.count if self.solver == "substeps" else self.sequential.iterations or 1

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
        if not self.failures.quarantine or not scene.body_count:
            return None
        reach = scene.bounding_radii()[:, None]
        corners = (scene.states[:, :3] - reach).min(axis=0), (scene.states[:, :3] + reach).max(axis=0)
        return float(np.linalg.norm(corners[1] - corners[0])) / (self.timestep or scene.timestep)

    # ---- options -------------------------------------------------------------------------------------------------

    @staticmethod
    def from_options(**values: Any) -> Params:
        """Params from the values of options, as `options` returns them; those left out are at their defaults."""
        return Params().with_options(**values)

    def options(self) -> dict[str, Any]:
        """Values by the names of options, in one list: what the command line, files and tables have. There
        `blend.growth_depth` is `growth_depth`."""
        return {field.name: self._value(field) for field in fields_of(Params)}

    def option(self, name: str) -> Any:
        """The value of an option."""
        return self._value(FIELDS[name])

    def with_options(self, **values: Any) -> Params:
        """The same with other values for some options."""
        own: dict[str, Any] = {}
        within: dict[str, dict[str, Any]] = {}
        for name, value in values.items():
            if name not in FIELDS:
                raise LapjointError(unknown(name, list(FIELDS)))
            part = FIELDS[name].part
            (own if part is None else within.setdefault(part, {}))[FIELDS[name].attribute] = value
        for part, changed in within.items():
            before = own.get(part, getattr(self, part))
            if part != "sleep" or isinstance(before, Sleep):
                own[part] = replace(before, **changed)
            elif before is True:
                own[part] = replace(self._sleep, **changed)
        return replace(self, **own)

    @property
    def _sleep(self) -> Sleep:
        return self.sleep if isinstance(self.sleep, Sleep) else Sleep()

    def _value(self, field: Field) -> Any:
        if field.name == "sleep":
            return bool(self.sleep)
        owner = self if field.part is None else self._sleep if field.part == "sleep" else getattr(self, field.part)
        return getattr(owner, field.attribute)


PARTS = {field.part: field.owner for field in fields_of(Params) if field.part not in (None, "sleep")}
"""Fields that are a class, and the class."""
FIELDS = {field.name: field for field in fields_of(Params)}
"""By the names of options."""
CHOICES: dict[str, tuple[str, ...]] = {
    name: field.rule.values for name, field in FIELDS.items() if isinstance(field.rule, OneOf) and field.type is str
}
"""Fields with a few values to choose from."""


def others(coupling: str) -> dict[str, str]:
    """Options that a coupling has no use for, and the couplings they belong to."""
    return {name: field.part for name, field in FIELDS.items() if field.part in COUPLINGS and field.part != coupling}


def typical_length(scene: Scene) -> float:
    """The power of two nearest to the median body's bounding diameter [m]: exact to convert by."""
    if scene.body_count == 0:
        return 1.0
    return float(2.0 ** np.round(np.log2(2 * np.median(scene.bounding_radii()))))


def typical_mass(scene: Scene) -> float:
    """The power of two nearest to the median body's mass [kg]."""
    return float(2.0 ** np.round(np.log2(np.median(scene.bodies.mass)))) if scene.body_count else 1.0
