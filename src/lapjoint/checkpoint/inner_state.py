"""All that decides how a simulation goes on: taken out of it as arrays, and put into another one.

`KEPT` and `MADE_ANEW` name every attribute of a Simulation; a test sees to it. Whoever adds one says here which it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines import Contacts, EngineState
from ..server.coupling.tight import TightCoupling, owners
from ..server.detect import ServerDetector, merge_contacts
from ..server.recovery import MOST
from ..simulation import Simulation
from ..workers.messages import StepReply
from ..workers.worker_memory import give_memories, read_memories

Arrays = dict[str, NDArray[Any]]

KEPT = {
    *("params", "step_count", "growth_depth", "search_depth", "membership", "graph", "replies", "overlap"),
    *("weight_offset", "weight_worker", "weight", "_commands", "_loads", "_division", "_elastic", "_settled"),
    *("_same_contacts", "_frozen", "_runtime", "_recovery", "_detector", "_tight", "_balancing"),
}
MADE_ANEW = {
    *("scene", "_given", "timestep", "_algorithms", "_joint_edges", "_jointed"),  # of the scene and the parameters
    *("profile", "_told", "events"),  # of what was, for those who look
    *("_callbacks", "before_stop", "_closed", "_stopped", "resumed_from"),
}
MEMBERSHIP = ("bits", "load", "cost", "rate", "since_left", "must_wait")
REPLY = ("contact_bodies", "contact_point_count", "contact_depth", "measures")


def take_inner_state(simulation: Simulation) -> tuple[Arrays, dict[str, Any]]:
    """Between two steps. The workers are asked for their memories; nothing changes.

    Of a simulation that has stopped, workers have no memories of the states it stopped with: they start from these."""
    s, runtime, commands, loads = simulation, simulation._runtime, simulation._commands, simulation._loads
    division = s._division
    arrays: Arrays = {
        "states": np.array(runtime.states),
        "worker_states": s.worker_states,
        "graph/contacts": s.graph.contacts,
        "overlap": s.overlap,
        "weight_offset": s.weight_offset,
        "weight_worker": s.weight_worker,
        "weight": s.weight,
        "commands/known": np.zeros_like(commands.known) if s.is_stopped else commands.known,
        "commands/moved": np.array(sorted(commands._moved), np.int32),
        "commands/iterations": commands._iterations,
        "commands/removed": commands._removed,
        "forces/ids": np.array(list(commands.forces), np.int32),
        "forces/rows": np.array(list(commands.forces.values())).reshape(-1, 6),
        "frozen/ids": np.array(list(s._frozen), np.int32),
        "frozen/rows": np.array(list(s._frozen.values())).reshape(-1, 13),
    }
    optional = {"division/partition": division.partition, "division/bits": division.bits, "loads/cpu_ms": loads._cpu_ms}
    arrays |= {name: array for name, array in optional.items() if array is not None}
    arrays |= {f"membership/{name}": getattr(s.membership, name) for name in MEMBERSHIP}
    for i, reply in enumerate(s.replies):
        arrays |= {f"reply/{i}/{name}": getattr(reply, name) for name in REPLY}
    if not s.is_stopped:
        memories = read_memories(runtime.step, s.membership.worker_count, s.scene.body_count)
        arrays |= {f"worker/{i}": memory for i, memory in enumerate(memories)}
    if isinstance(s._detector, ServerDetector):
        arrays |= {f"detector/{name}": array for name, array in vars(s._detector._engine.state()).items()}
    if s._tight is not None:
        arrays |= _tight_arrays(s._tight, has_memory=not s.is_stopped)
    description = {
        "step_count": s.step_count,
        "reply_count": len(s.replies),
        "settled": bool(s._settled),
        "same_contacts": bool(s._same_contacts),
        "last_division": int(loads._last_division),
        "duplicated": float(loads._duplicated),
        "division_counts": [division.worker_count, division.count],
        "elastic": [s._elastic.least, s._elastic.most, s._elastic._looks],
        "failed_at": [[worker, list(steps)] for worker, steps in s._recovery._failed_at.items()],
        "quarantined": sorted(s._recovery._quarantined),
    }
    if s._tight is not None:
        description["cut_share"] = s._tight.cut_share
    return arrays, description


def put_inner_state(simulation: Simulation, arrays: Arrays, description: dict[str, Any]) -> None:
    """Into a new simulation of the same scene, parameters and number of workers. It goes on bit for bit."""
    s, commands, loads = simulation, simulation._commands, simulation._loads
    put_common(s, arrays, description)
    for name in MEMBERSHIP:
        getattr(s.membership, name)[:] = arrays[f"membership/{name}"]
    s.graph = s._algorithms.Graph(s.scene.body_count, s._joint_edges, [arrays["graph/contacts"]])
    s.overlap, s.weight_offset = arrays["overlap"].copy(), arrays["weight_offset"].copy()
    s.weight_worker, s.weight = arrays["weight_worker"].copy(), arrays["weight"].copy()
    s._runtime.worker_states[: len(s.weight_worker)] = arrays["worker_states"]
    s.replies = replies_of(arrays, description)
    s._division.partition, s._division.bits = (
        arrays[name].copy() if name in arrays else None for name in ("division/partition", "division/bits")
    )
    s._division.worker_count, s._division.count = description["division_counts"]
    s._elastic.least, s._elastic.most, s._elastic._looks = description["elastic"]
    for worker, steps in description["failed_at"]:
        s._recovery._failed_at[worker] = deque(steps, MOST)
    s._settled, s._same_contacts = description["settled"], description["same_contacts"]
    commands.known = arrays["commands/known"].copy()
    commands._moved = set(arrays["commands/moved"].tolist())
    loads._last_division, loads._duplicated = description["last_division"], description["duplicated"]
    loads._cpu_ms = arrays["loads/cpu_ms"].copy() if "loads/cpu_ms" in arrays else None
    if commands.known.any():
        give_memories(s._runtime.step, memories_of(arrays, s.membership.worker_count), s.scene.body_count)
    if s.step_count:
        s.profile.find_contacts = partial(merge_contacts, s.replies, commands.known)
    if s._tight is not None:
        _put_tight(s, s._tight, arrays, description)


def put_common(simulation: Simulation, arrays: Arrays, description: dict[str, Any]) -> None:
    """What does not depend on the number of workers."""
    s, commands = simulation, simulation._commands
    s.step_count = description["step_count"]
    s._runtime.states[:] = arrays["states"]
    commands._iterations = arrays["commands/iterations"].copy()
    commands._removed = arrays["commands/removed"].copy()
    s._recovery._removed = set(commands._removed.tolist())
    s._recovery._quarantined = set(description["quarantined"])
    commands.forces = dict(zip(arrays["forces/ids"].tolist(), arrays["forces/rows"].copy(), strict=True))
    s._frozen = dict(zip(arrays["frozen/ids"].tolist(), arrays["frozen/rows"].copy(), strict=True))
    if isinstance(s._detector, ServerDetector) and "detector/body_ids" in arrays:
        s._detector._engine.restore(memory_of("detector", arrays))


def replies_of(arrays: Arrays, description: dict[str, Any]) -> list[StepReply]:
    """What the workers said of the last step."""
    count = description["reply_count"]
    return [StepReply(**{name: arrays[f"reply/{i}/{name}"].copy() for name in REPLY}) for i in range(count)]


def memories_of(arrays: Arrays, worker_count: int) -> Sequence[NDArray[np.uint8]]:
    return [arrays[f"worker/{i}"] for i in range(worker_count)]


def memory_of(whose: str, arrays: Arrays) -> EngineState:
    """Of an engine of the server's."""
    return EngineState(**{field.name: arrays[f"{whose}/{field.name}"] for field in fields(EngineState)})


# ---- tight coupling ------------------------------------------------------------------------------------------------


def _tight_arrays(tight: TightCoupling, has_memory: bool) -> Arrays:
    """What the server knows of constraints between workers."""
    arrays: Arrays = {"tight/interface": tight.interface, "tight/needed_at": tight.needed_at}
    arrays |= {f"tight/contacts/{name}": array for name, array in vars(tight.contacts).items()}
    if has_memory:
        arrays |= {f"tight/memory/{name}": array for name, array in vars(tight.engine.state()).items()}
    return arrays


def _put_tight(s: Simulation, tight: TightCoupling, arrays: Arrays, description: dict[str, Any]) -> None:
    tight.cut_share = description["cut_share"]
    tight.set_owner(owners(s.membership))
    tight.needed_at[:] = arrays["tight/needed_at"]
    tight.contacts = contacts_between(arrays)
    if "tight/memory/body_ids" in arrays:
        tight.engine.restore(memory_of("tight/memory", arrays))
        tight.interface = arrays["tight/interface"].copy()
    if s.step_count and len(s.replies) > 1:
        s.profile.find_contacts = partial(tight.all_contacts, s.replies, s._commands.known)


def contacts_between(arrays: Arrays) -> Contacts:
    """Of the last step, between workers."""
    return Contacts(**{field.name: arrays[f"tight/contacts/{field.name}"].copy() for field in fields(Contacts)})
