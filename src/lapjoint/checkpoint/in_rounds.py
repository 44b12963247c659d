"""Checkpoints of tight coupling as it was before workers solved what is between them: a server of its own solved it, in
rounds. Such a run goes on from its states; what solvers had kept of contacts and joints is not carried over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..arrays.state import PartState
from ..params import Params
from ..params.options import fields_of

FIRST_DECISION = {"next_decision": 0, "apart": 1, "upward": True}
"""When owners are chosen: at once, for those that there are were chosen by other rules."""


def is_in_rounds(parts: Mapping[str, PartState]) -> bool:
    """Whether these are the parts of a simulation that was coupled so."""
    return "interface" in parts["coupling"].arrays


def parts_of_rounds(parts: Mapping[str, PartState]) -> dict[str, PartState]:
    """The parts that a simulation has now. Workers have acted on nothing, and start from the states."""
    coupling, commands, last = parts["coupling"], parts["commands"], parts["last_step"]
    replies = dict(last.arrays)
    names = {"bodies": "contact_bodies", "point_count": "contact_point_count", "depth": "contact_depth"}
    for old, new in names.items():  # what the server had of them is the first worker's
        replies[f"0/{new}"] = np.concatenate([replies[f"0/{new}"], coupling.arrays[f"contacts/{old}"]])
    a, b = replies["0/contact_bodies"].T
    order = np.lexsort((b, a))
    replies |= {f"0/{new}": replies[f"0/{new}"][order] for new in names.values()}
    known = np.zeros_like(commands.arrays["known"])
    return {
        **parts,
        "coupling": PartState({"turns": np.empty((0, 0), np.int32)}, coupling.values | FIRST_DECISION),
        "commands": PartState({**commands.arrays, "known": known}, commands.values),
        "last_step": PartState(replies, last.values),
        "workers": PartState(),
    }


def params_of_rounds(params: Params) -> Params:
    """With the solver that tight coupling has now, without options of the one that it had."""
    defaults = {field.name: field.default for field in fields_of(Params) if field.solver == "sequential"}
    return replace(params, solver="substeps", **defaults)
