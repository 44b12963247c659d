"""What the tests of engines share. One line more in ENGINES puts another engine through the whole suite."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from lapjoint import Engine, LapjointError, Params, Scene, make_engine
from lapjoint.engines import Support, engine_version, supports
from lapjoint.engines.registry import load_engine
from lapjoint.engines.support import check_support
from lapjoint.scene import STATE_SIZE
from lapjoint.scene.measures import joint_gaps
from lapjoint.step_tables import StepTable

Table = TypeVar("Table", bound=StepTable)

Kind = tuple[str, ...]
"""Engine, precision and, of an engine with several, the solver."""
BULLET: list[Kind] = [
    ("bullet", precision, solver) for solver in ("substeps", "sequential") for precision in ("float32", "float64")
]
ENGINES: list[Kind] = [*BULLET, ("rapier", "float32"), ("mujoco", "float64"), ("springs", "float64")]


def reported(engine: Any, kind: type[Table]) -> Table:
    """What an engine reports of a kind after the steps of the last call."""
    return next((one for one in engine.report().tables if isinstance(one, kind)), kind.none())


def gaps_of(engine: Any) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Live joints and their gaps [m]: how far their anchors are apart along the directions they hold."""
    states = np.zeros((engine.scene.body_count, STATE_SIZE))
    states[engine.active_ids] = engine.get_states()
    return engine.live_joint_ids, joint_gaps(engine.scene, states, engine.live_joint_ids)


def params_of(kind: Kind, **more: Any) -> Params:
    """Params with the engine, precision and solver of a kind."""
    solver = {"solver": kind[2]} if len(kind) > 2 else {}
    return Params.from_options(**{"engine": kind[0], "precision": kind[1], **solver, **more})


# To look an engine up goes through everything that is installed: once is enough for thousands of tests.
supports_of = cache(supports)
class_of = cache(load_engine)


@cache
def is_installed(name: str) -> bool:
    return engine_version(supports_of(name)) is not None


class Make:
    """`make(scene, **params)`: an engine, with nothing or everything active. A test whose scene or parameters are
    beyond what the engine says it supports is skipped, and the reason names it."""

    def __init__(self, kind: Kind, start: bool) -> None:
        self.kind, self._start = kind, start
        self.solver = kind[2] if len(kind) > 2 else None
        self.supports: Support = supports_of(kind[0])

    def __call__(self, scene: Scene, **params: Any) -> Engine:
        given = params_of(self.kind, **params)
        try:
            check_support(self.kind[0], self.supports, scene, given.resolved(scene))
            class_of(self.kind[0]).check(scene, given.resolved(scene))
        except LapjointError as error:
            pytest.skip(str(error))
        engine = make_engine(scene, given)
        if self._start:
            engine.activate(np.arange(scene.body_count), scene.states)
        return engine

    def needs(self, *features: str) -> None:
        """Skip the test if the engine does not have them."""
        for feature in features:
            if feature not in self.supports.features:
                pytest.skip(f"the engine {self.kind[0]} does not have {feature}")
            if feature == "iterations" and self.solver == "substeps":
                pytest.skip("the substep solver does not have iterations")
