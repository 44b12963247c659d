"""Engines by name, registered through the entry point group `lapjoint.engines`."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint, PackageNotFoundError, version
from typing import Any

from ..errors import LapjointError, did_you_mean
from ..params import Params
from ..params.engine_choice import EngineChoice
from ..params.solver_choice import parse_solvers
from ..plug_ins import entries, load
from ..scene import Scene
from .base import Engine, NeighbourEngine
from .readings import ReadingEngine
from .support import Support, check_support, warn_of_left_out

GROUP = "lapjoint.engines"
READINGS = ("joint forces", "contact impulses")


def engine_names() -> list[str]:
    """All engines that are registered; the package behind one may be missing."""
    return sorted({entry.name for entry in entries(GROUP)})


def load_engine(name: str) -> type[Engine]:
    """The class of an engine. Unknown, broken or not installed: LapjointError."""
    for entry in entries(GROUP):
        if entry.name == name:
            engine = _load(entry)
            if engine_version(engine.supports) is None:
                how = f": pip install lapjoint[{engine.supports.extra}]" if engine.supports.extra else ""
                raise LapjointError(
                    f"engine {name} needs the package {engine.supports.package}, which is not installed{how}"
                )
            return engine
    raise _unknown(name)


def _load(entry: EntryPoint) -> type[Engine]:
    engine: type[Engine] = load(entry, "engine")
    if not isinstance(getattr(engine, "supports", None), Support):
        raise LapjointError(
            f"engine {entry.name} ({entry.value}) does not declare what it supports: see docs/engines.md"
        )
    _check_methods(engine, f"engine {entry.name} ({entry.value})")
    return engine


def _check_methods(engine: type[Engine], title: str) -> None:
    """Refuse an engine without the methods of the protocol, or of those that it declares to have besides."""
    support = engine.supports
    wanted: list[tuple[type[Any], str]] = [(Engine, "every engine has")]
    wanted += [(ReadingEngine, f"the feature {one} needs") for one in READINGS if one in support.features]
    wanted += [(NeighbourEngine, "the coupling tight needs")] if "tight" in support.couplings else []
    for protocol, why in wanted:
        for name in vars(protocol):
            if not name.startswith("_") and name != "supports" and not hasattr(engine, name):
                raise LapjointError(f"{title} has no {name}, which {why}: see docs/engines.md")


def supports(name: str) -> Support:
    """What an engine can do, installed or not."""
    for entry in entries(GROUP):
        if entry.name == name:
            return _load(entry).supports
    raise _unknown(name)


def _unknown(name: str) -> LapjointError:
    known = engine_names()
    return LapjointError(f"no engine named {name!r}{did_you_mean(name, known)}; known engines: {', '.join(known)}")


def engine_version(support: Support) -> str | None:
    """The version of what is behind an engine; None where it is not installed."""
    try:
        return support.version or version(support.package)
    except PackageNotFoundError:
        return None


def check_engines(scene: Scene, params: Params, warn: bool = True) -> None:
    """Before anything starts: every worker has an engine, it is installed, and it can do what the scene asks for.

    What an engine leaves out of the scene is a warning."""
    choice = EngineChoice.parse(params.engine)
    count = max(params.workers, params.max_workers or 0)
    choice.check_workers(count)
    solvers = parse_solvers(params.solver_choice(scene).solver)
    solvers.check_workers(count)
    warned = set()
    every = {(*choice.of(worker, params.precision), solvers.of(worker)) for worker in range(count)}
    precisions = sorted({precision for _, precision, _ in every})
    if params.coupling_choice(scene).coupling == "tight" and len(precisions) > 1:
        raise LapjointError(f"coupling is tight and workers have {' and '.join(precisions)}, expected one precision")
    settings = [
        (name, replace(params, engine=name, precision=precision, solver=solver))
        for name, precision, solver in sorted(every)
    ]
    for name, own in settings:
        check_support(name, load_engine(name).supports, scene, own)
    for name, own in settings:
        engine = load_engine(name)
        engine.check(scene, own)
        if warn and name not in warned:
            warn_of_left_out(name, engine.supports, scene)
            warned.add(name)


def make_engine(scene: Scene, params: Params | None = None, worker: int = 0) -> Engine:
    """The engine that `params` names for a worker, empty but for the scene's static bodies."""
    engine, own = _of_worker(scene, params or Params(), worker)
    check_support(own.engine, engine.supports, scene, own)
    engine.check(scene, own)
    return engine(scene, own)


def make_worker_engine(scene: Scene, params: Params, worker: int = 0) -> Engine:
    """The same within a run, where `check_engines` has passed: no worker looks through all joints once more."""
    engine, own = _of_worker(scene, params, worker)
    return engine(scene, own)


def _of_worker(scene: Scene, params: Params, worker: int) -> tuple[type[Engine], Params]:
    """Its engine, and the parameters with its own engine, precision and solver."""
    params = params.resolved(scene)
    name, precision = EngineChoice.parse(params.engine).of(worker, params.precision)
    solver = parse_solvers(params.solver).of(worker)
    return load_engine(name), replace(params, engine=name, precision=precision, solver=solver)
