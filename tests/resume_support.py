"""A run, gone on from after each of its steps: every reading must be that of the run that never stopped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from lapjoint import Checkpoint, CheckpointWriter, Simulation, SimulationStopped
from lapjoint.arrays.state import PartState
from lapjoint.engines import EngineState
from lapjoint.server import loads
from lapjoint.step_tables import KEPT
from lapjoint.workers.engine_states import from_bytes, to_bytes
from living_scenes import LivingScene

AHEAD = 40
"""Steps that a resumed run goes on."""
impatient = patch.object(loads, "PATIENCE", 15)
"""With repartitions so many steps apart, for which a living scene would end too soon else."""
Readings = dict[str, bytes | str | int]
Parts = dict[str, PartState]


def readings(simulation: Simulation, *, has_stepped: bool = True) -> Readings:
    """All that can be read after a step, to the last bit, or of what goes on and has not stepped yet."""
    found: Readings = {"hash": simulation.state_hash, "steps": simulation.step_count}
    arrays: dict[str, Any] = {
        "states": simulation.states,
        "alive": simulation.alive,
        "broken": simulation.joints.broken_ids,
        "membership": simulation.workers.membership.bits,
        "touching": simulation.contacts.touching,
        "kinematic": simulation.kinematic.states,
        "frozen": simulation.bodies.frozen_ids,
        "gaps": simulation.joints.gaps(),
        "lives": [*simulation.scene.steps.values()],
        "worker states": simulation.workers.overlap_states,
        "replies": [
            (reply.body_count, reply.fallback_count, reply.substeps, reply.residual) for reply in simulation.replies
        ],
    }
    if has_stepped:
        arrays["profile"] = [simulation.profile.sleeping_count, simulation.profile.residual]
        arrays["cut share"] = simulation.profile.cut_share
        arrays["measures"] = [reply.step_measures[:, :8] for reply in simulation.replies]
    if simulation.scene.joint_count:
        arrays["joint positions"] = simulation.joints.positions(np.flatnonzero(simulation.scene.joint_alive))
    if simulation.scene.glued:
        arrays["pieces"] = [simulation.bodies.pieces_of(one.body) is not None for one in simulation.scene.glued]
    tables = {"contacts": simulation.contacts.pairs(), "events": simulation.events.all}
    tables |= {kind.name: simulation.events.reported(kind) for kind in KEPT}
    if simulation.params.keep_forces and has_stepped:
        tables["contact points"] = simulation.contacts.points()
        arrays["joint forces"] = simulation.joints.forces(np.arange(simulation.scene.joint_count))
    for name, table in tables.items():
        arrays |= {f"{name}: {column}": values for column, values in vars(table).items()}
    return found | {name: _to_bytes(value) for name, value in arrays.items()}


def _to_bytes(value: Any) -> bytes:
    return b"".join(map(_to_bytes, value)) if isinstance(value, list) else np.asarray(value).tobytes()


@dataclass
class Difference:
    """What a resumed run had otherwise, and when."""

    resumed_at: int
    after_changes: bool
    step: int
    names: list[str]

    def __str__(self) -> str:
        when = "after changes before the next step" if self.after_changes else "after the step"
        return f"resumed at {self.resumed_at} ({when}), step {self.step}: {', '.join(self.names)}"


@dataclass
class Saved:
    step: int
    after_changes: bool
    path: Path


@impatient
def run_and_save(case: LivingScene, folder: Path, only: Callable[[int], bool]) -> tuple[list[Readings], list[Saved]]:
    """The readings after every step, and checkpoints of those that `only` says: of before and after changes."""
    found: list[Readings] = []
    saved: list[Saved] = []
    simulation = case.start()
    try:
        while simulation.step_count <= case.step_count:
            step = simulation.step_count
            if only(step):
                saved.append(Saved(step, False, _save(simulation, folder / f"{step}")))
            if step in case.changes:
                _change(case, simulation)
                if only(step):
                    saved.append(Saved(step, True, _save(simulation, folder / f"{step}-changed")))
            if step == case.step_count:
                break
            found.append(_next(simulation))
            if "stopped" in found[-1]:
                break
    finally:
        simulation.close()
    return found, saved


def _next(simulation: Simulation) -> Readings:
    """The readings after the next step, or with what words there was none."""
    try:
        simulation.step()
    except SimulationStopped as error:
        return {"stopped": str(error)}
    return readings(simulation)


def _save(simulation: Simulation, folder: Path) -> Path:
    writer = CheckpointWriter(folder, simulation)
    simulation.before_stop.remove(writer.save)  # else a failure in the next step would replace this one
    return writer.save(simulation)


def _change(case: LivingScene, simulation: Simulation) -> None:
    for _, change in case.changes.get(simulation.step_count, []):
        change(simulation)


@impatient
def difference(
    case: LivingScene, expected: list[Readings], saved: Saved, resume: Callable[[Path], Simulation]
) -> Difference | None:
    """Of a run that goes on from a checkpoint for `AHEAD` steps, or to the end."""
    simulation = resume(saved.path)
    try:
        changed = saved.after_changes
        if saved.step and not changed:
            own = readings(simulation, has_stepped=False)
            names = [name for name in own if expected[saved.step - 1][name] != own[name]]
            if names:
                return Difference(saved.step, False, saved.step, names)
        for step, wanted in enumerate(expected[saved.step : saved.step + AHEAD], saved.step + 1):
            if not changed:
                _change(case, simulation)
            changed = False
            own = _next(simulation)
            names = [name for name in wanted | own if wanted.get(name) != own.get(name)]
            if names:
                return Difference(saved.step, saved.after_changes, step, names)
    finally:
        simulation.close()
    return None


def resume(path: Path) -> Simulation:
    return Checkpoint(path).resume()


# ---- fields of the state -------------------------------------------------------------------------------------------


def field_names(path: Path) -> list[str]:
    """Every field of a checkpoint's state, as `part/name`; numbers of workers are left out."""
    return sorted({name for name, _, _ in _fields(Checkpoint(path)._parts)})


def filled_fields(path: Path) -> list[str]:
    """Those that are not as in a simulation that has not begun."""
    return sorted({name for name, holder, key in _fields(Checkpoint(path)._parts) if _is_filled(holder[key])})


def resume_without(field: str) -> Callable[[Path], Simulation]:
    """As `resume`, but that the field is as in a simulation that has not begun: zeros, or nothing."""

    def resume_so(path: Path) -> Simulation:
        checkpoint = Checkpoint(path)
        for name, holder, key in _fields(checkpoint._parts):
            if name == field:
                holder[key] = _nothing(holder[key])
        for worker, state in checkpoint._parts["workers"].arrays.items():
            if isinstance(state, dict):
                checkpoint._parts["workers"].arrays[worker] = to_bytes(EngineState(**state))
        return checkpoint.resume()

    return resume_so


def _fields(parts: Parts) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Each with where it is held. Engine states are unpacked in place."""
    for part, state in parts.items():
        if part == "workers":
            for worker, data in state.arrays.items():
                unpacked = vars(from_bytes(data)).copy() if isinstance(data, np.ndarray) else data
                state.arrays[worker] = unpacked
                for key in unpacked:
                    yield f"workers/{key}", unpacked, key
            continue
        for key in state.arrays:
            yield f"{part}/{re.sub('^[0-9]+/', '', key)}", state.arrays, key
        for key, value in state.values.items():
            if key == "replies":
                for reply in value:
                    yield from ((f"{part}/{name}", reply, name) for name in reply)
            else:
                yield f"{part}/{key}", state.values, key


def _nothing(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return np.zeros_like(value)
    return None if value is None else type(value)()


def _is_filled(value: Any) -> bool:
    return (
        bool(value.any()) if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" else value != _nothing(value)
    )


def differences(
    case: LivingScene, folder: Path, only: Callable[[int], bool] = lambda step: True
) -> Iterator[Difference]:
    """Of resuming after every step that `only` says."""
    expected, saved = run_and_save(case, folder, only)
    for one in saved:
        found = difference(case, expected, one, resume)
        if found is not None:
            yield found
