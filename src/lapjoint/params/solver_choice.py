"""Which solver each worker has, from one text: `dantzig`, `substeps,1=dantzig`, `substeps,label:1=dantzig`; and which
one `auto` takes, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError
from ..scene import Scene
from .worker_choice import WorkerChoice, parse_choice

SOLVERS = ("substeps", "sequential", "dantzig")
AUTO = "auto"
EXPECTED = f"expected {', '.join((AUTO, *SOLVERS))}, or several as in substeps,1=dantzig or substeps,label:1=dantzig"


@dataclass(frozen=True)
class SolverChoice:
    """A solver and, where `auto` chose it, the reason if it is not the substep solver. Names of fields are in
    backticks there."""

    solver: str
    reason: str | None


def choose_solver(of_sequential: Sequence[str], without_substeps: Sequence[str]) -> SolverChoice:
    """What auto takes. `of_sequential` are fields of the sequential solver that are set, `without_substeps` those with
    a value that the substep solver does not have."""
    if of_sequential:
        return SolverChoice("sequential", f"`{of_sequential[0]}` is given, which only sequential has")
    if without_substeps:
        return SolverChoice("sequential", f"`{without_substeps[0]}` is given, with which only sequential works")
    return SolverChoice("substeps", None)


def mismatch(name: str, choice: SolverChoice, of: str) -> str:
    """What is wrong with an option of one solver, `of`, where the solver is another."""
    why = "" if choice.reason is None else f" ({choice.reason})"
    choose = f"leave `{name}` out, or {'take' if choice.reason is None else 'add'} `solver` {of}"
    return f"`{name}` is given, but the solver is {choice.solver}, expected {of}{why}: {choose}"


def parse_solvers(text: str) -> WorkerChoice[str]:
    """The choice that a text makes; without a solver for all workers, the rest have the first of SOLVERS. auto is for
    all workers or for none."""
    known = (AUTO,) if text == AUTO else SOLVERS
    choice = parse_choice("solver", text, EXPECTED, lambda word: word if word in known else None, labels=True)
    if choice.default is not None:
        return choice
    return WorkerChoice("solver", text, SOLVERS[0], choice.by_worker, choice.by_label)


def is_uniform(text: str) -> bool:
    """Whether all workers have the same solver, whatever bodies they have."""
    choice = parse_solvers(text)
    return not choice.by_worker and not choice.by_label


def solvers_of_workers(text: str, scene: Scene, partition: NDArray[np.int32], worker_count: int) -> str:
    """The same choice without labels: a worker has a label's solver where more than half of its bodies are of it. A
    solver that is given to a worker by its number goes before."""
    choice = parse_solvers(text)
    choice.check_workers(worker_count)
    if not choice.by_label:
        return text
    of_worker: dict[int, str] = {}
    total = np.bincount(partition, minlength=worker_count)
    for label, solver in choice.by_label.items():
        has = scene.bodies.label == label
        if not has.any():
            known = ", ".join(map(str, np.unique(scene.bodies.label)[:20]))
            raise LapjointError(f"solver is {text!r}: no body has label {label}; labels of {scene.name!r}: {known}")
        most = np.flatnonzero(2 * np.bincount(partition[has], minlength=worker_count) > total)
        if len(most) == 0:
            raise LapjointError(
                f"solver is {text!r}: no worker has mostly bodies of label {label}, expected more workers than "
                f"{worker_count} or the partition labels"
            )
        of_worker |= dict.fromkeys(most.tolist(), solver)
    of_worker |= choice.by_worker
    return ",".join([str(choice.default), *(f"{worker}={of_worker[worker]}" for worker in sorted(of_worker))])
