"""Checkpoints of version 1, which had flat names: their arrays and values by the parts that have them now."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.state import Arrays, PartState

MEMBERSHIP = ("bits", "load", "cost", "rate", "since_left", "must_wait")
REPLY = ("contact_bodies", "contact_point_count", "contact_depth")
MEASURES = ("cpu_s", "residual", "body_count", "prepare_cpu_s", "fallback_count", "exchanges", "begin_cpu_s")
"""What the numbers of a reply's `measures` were, in their order."""
COUNTS = ("body_count", "fallback_count", "exchanges")


def parts_of_version1(arrays: Arrays, values: dict[str, Any]) -> dict[str, PartState]:
    """The parts of a simulation, from the arrays and the description of a checkpoint of version 1."""

    def renamed(names: dict[str, str]) -> Arrays:
        return {new: arrays[old] for new, old in names.items() if old in arrays}

    iterations = arrays["commands/iterations"]
    wanted_count, last_count = values["division_counts"]
    least, most, looks = values["elastic"]
    commands = {"known": "commands/known", "set": "commands/moved", "removed": "commands/removed"}
    return {
        "last_step": _last_step(arrays, values),
        "table": PartState(renamed({name: name for name in ("states", "worker_states")})),
        "membership": PartState(renamed({name: f"membership/{name}" for name in MEMBERSHIP})),
        "detection": PartState({"contacts": arrays["graph/contacts"], **_under("detector", "engine", arrays)}),
        "commands": PartState(
            renamed(commands | {"force_ids": "forces/ids", "forces": "forces/rows"}),
            {"iterations": int(iterations[0]) if len(iterations) else None},
        ),
        "loads": PartState(
            renamed({"cpu_ms": "loads/cpu_ms"}),
            {"last_repartition": values["last_division"], "duplicated": values["duplicated"]},
        ),
        "repartition": PartState(
            renamed({"requested": "division/partition", "bits": "division/bits"}),
            {"wanted_count": wanted_count, "last_count": last_count},
        ),
        "elastic": PartState(values={"least": least, "most": most, "looks": looks}),
        "frozen": PartState(renamed({"ids": "frozen/ids", "rows": "frozen/rows"})),
        "recovery": PartState(values={name: values[name] for name in ("failed_at", "quarantined")}),
        "coupling": _coupling(arrays, values),
        "workers": PartState(_under("worker", "", arrays)),
    }


def _last_step(arrays: Arrays, values: dict[str, Any]) -> PartState:
    replies = []
    for i in range(values["reply_count"]):
        measures = dict(zip(MEASURES, arrays[f"reply/{i}/measures"].tolist(), strict=False))
        replies.append({name: int(value) if name in COUNTS else value for name, value in measures.items()})
    rows = {f"{i}/{name}": arrays[f"reply/{i}/{name}"] for i in range(len(replies)) for name in REPLY}
    return PartState(rows, {"step_count": values["step_count"], "replies": replies})


def _coupling(arrays: Arrays, values: dict[str, Any]) -> PartState:
    """Of tight coupling, where the checkpoint has a share of the cut, else of blend."""
    if "cut_share" in values:
        own = {name: arrays[f"tight/{name}"] for name in ("interface", "needed_at")}
        contacts = _under("tight/contacts", "contacts", arrays)
        return PartState(
            own | contacts | _under("tight/memory", "engine", arrays), {"cut_share": float(values["cut_share"])}
        )
    weights = {"bodies": "overlap", "offset": "weight_offset", "worker": "weight_worker", "weight": "weight"}
    return PartState({new: arrays[old] for new, old in weights.items()}, {"is_settled": values["settled"]})


def _under(old: str, new: str, arrays: Arrays) -> Arrays:
    """Arrays whose names begin with `old/`, under `new/` or, where that is empty, alone."""
    found = {name.removeprefix(f"{old}/"): array for name, array in arrays.items() if name.startswith(f"{old}/")}
    return {f"{new}/{name}" if new else name: np.asarray(array) for name, array in found.items()}
