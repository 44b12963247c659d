"""A whole run: steps with progress, and what came of it as one flat record."""

from __future__ import annotations

import math
import signal
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from .checkpoint import CheckpointWriter
from .errors import LapjointError, SimulationStopped
from .measures.interfaces import InterfaceErrors
from .measures.means import Means, Measured
from .measures.step import ALWAYS, Measures, checked_names
from .params import Params
from .params.coupling_choice import traits
from .recording import RecordingWriter
from .server.profile import PHASES
from .simulation import Simulation
from .step_tables import KEPT


@dataclass(frozen=True)
class RunSummary:
    """What a run did. These are the keys of `--json`; once here, they stay. Means are over the steps taken.

    What was not measured is None, null in the file.
    """

    scene: str
    engine: str
    precision: str
    solver: str
    workers: int
    runtime: str
    coupling: str
    partition: str
    growth_depth: int
    search_depth: int
    steps: int
    """Steps taken; fewer than asked for if the run was interrupted."""
    timestep: float
    """s"""
    iterations: int
    """Sweeps of a solver that has them; the substep solver has none, and this is the scene's number then."""
    length_unit: float
    """m"""
    body_count: int
    """That the scene began with, as the next."""
    joint_count: int
    contact_count_mean: float
    """Touching pairs, pairs with static bodies included."""
    contact_point_count_mean: float
    step_ms_mean: float
    """Wall time of a step, measuring excluded."""
    step_cpu_ms_mean: float
    """CPU time of a step, server and workers together."""
    steps_per_second: float
    real_time_factor: float
    """Simulated seconds per second."""
    phases_ms: dict[str, float]
    """Wall time of a step by phase: reset, detect, balance, weigh, step, blend."""
    joint_gap_max: float
    """Largest joint gap after any step [m]."""
    joint_gap_sum_mean: float
    """Sum of all joint gaps [m]."""
    penetration_max: float
    """Deepest penetration at the start of any step [m]."""
    residual_mean: float | None
    """The solver's residual, largest of all workers [m/s]; null where no engine reports it."""
    fallback_count_mean: float
    """Groups of bodies that direct solvers left to sweeps."""
    sleeping_count: int
    """Bodies that sleep after the last step."""
    overlap_count_mean: float
    """Bodies with more than one worker."""
    duplicated_share: float
    """Active bodies of all workers over the bodies that are there, minus one."""
    activation_count_mean: float
    """Bodies put into a worker after the first step."""
    uncovered_count_mean: float
    """Constraints without a worker; zero unless balance is `printed`."""
    byte_count_mean: float
    """Bytes that server and workers exchange."""
    worker_body_count_mean: list[float]
    """Of all workers that there were; one that was not there in a step counts as nothing. So do the next two."""
    worker_contact_count_mean: list[float]
    worker_cpu_ms_mean: list[float]
    state_hash: str
    """Of the last states."""
    divided_count: int
    """How often the scene was repartitioned."""
    penetration_sum_mean: float
    """Sum of all penetrations at the start of a step [m]."""
    worker_residual_mean: list[float]
    """The solver's residual of each worker [m/s]."""
    kinetic_energy: float | None
    """After the last step [J]; so are the next three."""
    potential_energy: float | None
    linear_momentum: list[float] | None
    """kg m/s"""
    angular_momentum: list[float] | None
    """About the world's origin [kg m^2/s]."""
    disagreement_position_max: float | None
    """Largest distance between two workers' positions of an overlap body after any step, before blending [m]."""
    disagreement_position_mean: float | None
    """Mean over the overlap bodies and steps [m]."""
    disagreement_velocity_max: float | None
    """The same of velocities [m/s]."""
    disagreement_velocity_mean: float | None
    one_step_error_mean: float | None
    """How far a step's velocities are from those that one engine makes of the same start, over the change that it
    makes; mean over the steps that were compared."""
    one_step_error_max: float | None
    one_step_difference_mean: float | None
    """The same per body, root of the mean square [m/s]."""
    failure_count: int
    """How often a worker died, hung, failed or answered with numbers that are not finite."""
    frozen_ids: list[int]
    """Bodies that are held at the end, by quarantine or by the user."""
    events: list[dict[str, object]]
    """Failures, quarantines, surges and changes of the number of workers: step_count, kind, text, worker, body_ids and
    recovery_s of each (see docs/failures.md)."""
    stopped: str | None
    """Why the run could not go on, where it could not."""
    exchanges_mean: float | None
    """Messages that two workers sent each other in a step, one after the other. This and what follows is of tight
    coupling, and None with another."""
    exchanges_max: int | None
    """The most of any step."""
    residual_max: float | None
    """Largest velocity change of any constraint in the last sweep of any step [m/s]; `residual_mean` is its mean."""
    interface_count_mean: float | None
    """Interface bodies: those that several workers have, because they are near bodies of another worker or jointed to
    them."""
    cut_share_mean: float | None
    """Share of joints and contacts between bodies that are between workers."""
    coupling_reason: str | None = None
    """Why the coupling is what it is, where the command line chose it."""
    penetration_interface: float | None = None
    """Penetration of bodies at interfaces: root mean square over contacts, mean over steps [m]; so are the next three.
    None where nothing is at an interface, or nothing inside a worker (see measures/interfaces.py)."""
    penetration_interior: float | None = None
    """Of bodies inside workers: what one engine has in the same scene, in the same steps."""
    joint_gap_interface: float | None = None
    """Of joints with a body at an interface."""
    joint_gap_interior: float | None = None
    solver_reason: str | None = None
    """Why the solver is not the substep solver, where the command line chose it."""
    substeps: int | None = None
    """Parts of a step; null with a solver that has none."""
    joints: str | None = None
    """How the substep solver solves joints: auto, direct or swept; null with another solver."""
    substeps_mean: float | None = None
    """Substeps that a step took: more than `substeps` with a tolerance; null with a solver that has none."""
    substeps_max: int | None = None
    """The most of any step."""
    workers_reason: str | None = None
    """Why there are so many workers, where `--workers auto` chose; null where the user gave a number."""
    broken_joint_count: int = 0
    """Joints that have broken since the scene's start, or were removed."""
    reported: dict[str, int] = field(default_factory=dict)
    """How many rows each kept step table has since the scene's start, by its name: breaks, hits, touches and others."""
    made_count: int = 0
    """Bodies that were added since the scene's start."""
    removed_count: int = 0
    """Bodies that were removed since."""

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


class _Interrupt:
    """Within it, Ctrl-C is noted and the step at hand ends whole; a second one interrupts at once.

    So is SIGTERM where the program has made it an interrupt too, by a handler that raises KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self.came = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Interrupt:
        if threading.current_thread() is threading.main_thread():
            # One that is ignored stays so: that of a background job of a script.
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._note)
            if callable(signal.getsignal(signal.SIGTERM)):
                self._before[signal.SIGTERM] = signal.signal(signal.SIGTERM, self._note_termination)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.came:
            raise KeyboardInterrupt
        self.came = True

    def _note_termination(self, number: int, frame: FrameType | None) -> None:
        try:
            self._before[number](number, frame)
        except KeyboardInterrupt:
            self._note(number, frame)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


Gate = Callable[[Callable[[], bool]], bool]
"""Called before each step with a function that returns whether Ctrl-C came; returns when the step may be taken, True,
or when the run ends, False."""


def run(
    simulation: Simulation,
    steps: int | None,
    on_step: Callable[[int], None] | None = None,
    *,
    measure: str | Sequence[str] = (),
    one_step_every: int = 1,
    record: str | Path | None = None,
    record_every: int = 1,
    record_contacts: bool = False,
    checkpoints: CheckpointWriter | None = None,
    gate: Gate | None = None,
) -> RunSummary:
    """Take `steps` steps, or any number, and measure each. Ctrl-C ends the run after the step at hand; what was done is
    summed up, and so it is where the run cannot go on: `stopped` has the reason.

    `measure` names measures besides those of every run (see Measures). `record` is a directory for a recording of all
    that is measured, with a frame of every `record_every`-th step, and its contacts with `record_contacts`.
    `checkpoints` are written when they are due and at the end, also at that of an interrupted run; one that cannot be
    written is a warning, and the run goes on. `gate` waits until the next step may be taken; if it restarts the
    simulation, the run begins again too, and its summary is of the steps since.
    """
    measures = Measures(simulation, (*ALWAYS, *checked_names(measure)), one_step_every)
    means, measured, interfaces = Means(), Measured(), InterfaceErrors()
    stopped: str | None = None
    options = {"every": record_every, "contacts": record_contacts, "steps": steps}
    done = 0
    with _Interrupt() as interrupt, _recorder(simulation, record, measures, options) as recorder:
        while steps is None or done < steps:
            if interrupt.came or (gate is not None and not gate(lambda: interrupt.came)):
                break
            if done and simulation.step_count == 0:  # restarted at the gate
                if recorder is not None or checkpoints is not None:
                    raise LapjointError("run: the simulation was restarted, and a recording or checkpoints cannot be")
                measures = Measures(simulation, (*ALWAYS, *checked_names(measure)), one_step_every)
                means, measured, done = Means(), Measured(), 0
            measures.before_step(simulation)
            left = [interfaces.most_steps] if steps is None else [steps - done, interfaces.most_steps]
            if recorder is not None:
                left.append(recorder.most_steps)
            if checkpoints is not None:
                left.append(checkpoints.most_steps(simulation))
            if gate is not None or measures.need_every_state or simulation.params.solver != "substeps":
                left = [1]  # somebody looks at every step
            start = time.thread_time()
            try:
                taken = simulation.step_at_once(min(left))
            except SimulationStopped as error:
                stopped = "\n".join([str(error), *getattr(error, "__notes__", [])])
                break
            server_cpu_ms = 1e3 * (time.thread_time() - start)
            values = measures.after_steps(simulation)
            for of_step in values:
                measured.add(of_step)
            interfaces.after_step(simulation)
            _count(simulation, server_cpu_ms, means, measured)
            if recorder is not None:
                recorder.add_steps(simulation, values)
            if checkpoints is not None:
                _checkpoint(checkpoints.after_step, simulation)
            done += taken
            if on_step is not None:
                on_step(done)
        if checkpoints is not None and checkpoints.saved_step != simulation.step_count:
            _checkpoint(checkpoints.save, simulation)
    params, scene = simulation.params, simulation.scene
    assert params.timestep is not None
    assert params.sequential.iterations is not None
    assert params.units.length is not None
    step_s = means.mean("step_ms") / 1e3
    return RunSummary(
        scene=scene.name,
        engine=params.engine,
        precision=params.precision,
        solver=params.solver,
        workers=params.workers,
        runtime=params.runtime,
        coupling=params.coupling,
        partition=params.partition_name,
        growth_depth=simulation.workers.growth_depth,
        search_depth=simulation.workers.search_depth,
        steps=means.count,
        timestep=params.timestep,
        iterations=params.sequential.iterations,
        length_unit=params.units.length,
        body_count=scene.began_with[1],
        joint_count=scene.began_with[2],
        contact_count_mean=means.mean("contact_count"),
        contact_point_count_mean=means.mean("contact_point_count"),
        step_ms_mean=means.mean("step_ms"),
        step_cpu_ms_mean=means.mean("cpu_ms"),
        steps_per_second=1 / step_s if step_s else 0.0,
        real_time_factor=params.timestep / step_s if step_s else 0.0,
        phases_ms=dict(zip(PHASES, means.means("phases_ms"), strict=False)),
        joint_gap_max=measured.max("joint_gap_max") or 0.0,
        joint_gap_sum_mean=measured.mean("joint_gap_sum") or 0.0,
        penetration_max=measured.max("penetration_max") or 0.0,
        residual_mean=None if math.isnan(residual := means.mean("residual")) else residual,
        fallback_count_mean=means.mean("fallback_count"),
        sleeping_count=simulation.profile.sleeping_count,
        overlap_count_mean=means.mean("overlap_count"),
        duplicated_share=sum(means.means("worker_body_count")) / max(means.mean("body_count"), 1) - 1
        if means.count
        else 0.0,
        activation_count_mean=means.mean("activation_count"),
        uncovered_count_mean=means.mean("uncovered_count"),
        byte_count_mean=means.mean("byte_count"),
        worker_body_count_mean=means.means("worker_body_count"),
        worker_contact_count_mean=means.means("worker_contact_count"),
        worker_cpu_ms_mean=means.means("worker_cpu_ms"),
        state_hash=simulation.state_hash,
        divided_count=round(means.sums.get("divided", 0)),
        penetration_sum_mean=measured.mean("penetration_sum") or 0.0,
        worker_residual_mean=measured.mean("worker_residual") or [],
        kinetic_energy=measured.last("kinetic_energy"),
        potential_energy=measured.last("potential_energy"),
        linear_momentum=measured.last("linear_momentum"),
        angular_momentum=measured.last("angular_momentum"),
        disagreement_position_max=measured.max("disagreement_position_max"),
        disagreement_position_mean=measured.mean("disagreement_position_mean"),
        disagreement_velocity_max=measured.max("disagreement_velocity_max"),
        disagreement_velocity_mean=measured.mean("disagreement_velocity_mean"),
        one_step_error_mean=measured.mean("one_step_error"),
        one_step_error_max=measured.max("one_step_error"),
        one_step_difference_mean=measured.mean("one_step_difference"),
        failure_count=sum(event.is_failure for event in simulation.incidents),
        frozen_ids=simulation.bodies.frozen_ids.tolist(),
        events=[event.to_dict() for event in simulation.incidents],
        stopped=stopped,
        **_tight_part(params, means, measured),
        **interfaces.values(),
        substeps=params.substeps.count if params.solver == "substeps" else None,
        joints=params.substeps.joints if params.solver == "substeps" else None,
        substeps_mean=means.mean("substeps") if params.solver == "substeps" else None,
        substeps_max=measured.max("substeps") if params.solver == "substeps" else None,
        broken_joint_count=len(simulation.joints.broken_ids),
        reported={kind.name: len(simulation.events.reported(kind)) for kind in KEPT},
        made_count=len(simulation.events.all.of("made")),
        removed_count=len(simulation.events.all.of("removed")),
    )


def _tight_part(params: Params, means: Means, measured: Measured) -> dict[str, Any]:
    """What a summary has of tight coupling."""
    found: dict[str, Any] = {f"{name}_mean": means.mean(name) for name in ("exchanges", "interface_count", "cut_share")}
    found |= {f"{name}_max": measured.max(name) for name in ("exchanges", "residual")}
    return found if traits(params.coupling).exchanges else dict.fromkeys(found)


def _checkpoint(write: Callable[[Simulation], object], simulation: Simulation) -> None:
    try:
        write(simulation)
    except LapjointError as error:  # a worker that has failed is noticed, and replaced, in the next step
        warnings.warn(str(error), stacklevel=3)


def _recorder(
    simulation: Simulation, path: str | Path | None, measures: Measures, options: dict[str, Any]
) -> RecordingWriter | nullcontext[None]:
    if path is None:
        return nullcontext()
    return RecordingWriter(path, simulation, measures=measures.counts, **options)


def _count(simulation: Simulation, server_cpu_ms: float, means: Means, measured: Measured) -> None:
    """Add the steps just taken to what a summary has of all."""
    profile = simulation.profile
    series, steps = profile.series, profile.steps
    # With inline workers the server's CPU time holds theirs.
    apart = simulation.params.runtime != "inline"
    first = simulation.step_count == 1  # everything is activated before the first step; that is no change
    of_all = {
        "cpu_ms": server_cpu_ms + (steps * float(profile.worker_cpu_ms.sum()) if apart else 0.0),
        "activation_count": 0.0 if first else profile.activation_count,
        "divided": profile.divided,
        "byte_count": profile.byte_count,
    }
    of_each = {
        "phases_ms": np.array(list(profile.phases_ms.values())),
        "body_count": profile.body_count,
        **{
            name: getattr(profile, name)
            for name in (
                "step_ms",
                "fallback_count",
                "overlap_count",
                "interface_count",
                "cut_share",
                "uncovered_count",
                "worker_body_count",
                "worker_contact_count",
                "worker_cpu_ms",
            )
        },
    }
    for name in ("contact_count", "contact_point_count", "residual", "substeps", "exchanges"):
        values = [getattr(profile, name)] if series is None else getattr(series, name)
        of_all[name] = float(np.sum(values))
        largest = float(np.max(values))
        measured.add({name: int(largest) if name in ("substeps", "exchanges") else largest})
    means.add(steps, **of_all, **{name: steps * value for name, value in of_each.items()})
