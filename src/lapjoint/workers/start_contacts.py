"""Contacts of the scene as it starts: every worker finds those of its own bodies, in an engine that it drops then."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines import Contacts, make_worker_engine
from ..errors import LapjointError
from ..params import Params
from ..scene import Scene

Arrays = dict[str, NDArray[Any]]

START_CONTACTS = "start contacts"
"""The question. `bodies` are to be looked at, ascending; of those `guests` are other workers', ascending."""


def start_contacts(scene: Scene, params: Params, states: NDArray[np.float64], asked: Arrays) -> Arrays:
    """Contacts whose first body is no guest. Or what is wrong with the bodies, as `error`. The engine is that of the
    first worker, whoever is asked: the answer is that of one engine with all bodies."""
    bodies = asked["bodies"]
    try:
        engine = make_worker_engine(scene, params)
        engine.activate(bodies, states[bodies])
        found = engine.contacts(now=True)
    except LapjointError as error:
        return {"error": np.frombuffer(str(error).encode(), np.uint8)}
    is_own = ~np.isin(found.bodies[:, 0], asked["guests"])
    return {name: column[is_own] for name, column in vars(found).items()}


def contacts_in(answer: Arrays) -> Contacts:
    """The contacts that a worker has answered; LapjointError, if something is wrong."""
    if "error" in answer:
        raise LapjointError(answer["error"].tobytes().decode())
    return Contacts(**answer)
