"""Fixtures that every test file shares. One line more in ENGINES puts another engine through the whole suite."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from lapjoint import Engine, Params, Scene, make_engine
from parallel_support import has_children, shared_memory_names, worker_processes

ENGINES = [("bullet", "float32"), ("bullet", "float64")]

# The same examples on every machine, and no deadline on a busy one.
settings.register_profile(
    "lapjoint", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("lapjoint")

# A background job of a script starts with Ctrl-C ignored, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

Make = Callable[..., Engine]


@pytest.fixture(params=ENGINES, ids="-".join)
def kind(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Engine and precision."""
    pair: tuple[str, str] = request.param
    return pair


@pytest.fixture
def make(kind: tuple[str, str]) -> Make:
    """`make(scene, **params)`: an engine with nothing active."""

    def build(scene: Scene, **params: Any) -> Engine:
        return make_engine(scene, Params(engine=kind[0], precision=kind[1], **params))

    return build


@pytest.fixture
def start(make: Make) -> Make:
    """`start(scene, **params)`: an engine with every body active, where the scene has it."""

    def build(scene: Scene, **params: Any) -> Engine:
        engine = make(scene, **params)
        engine.activate(np.arange(scene.body_count), scene.states)
        return engine

    return build


@pytest.fixture
def rounding(kind: tuple[str, str]) -> float:
    """How far a number of size one may be off."""
    return {"float32": 1e-5, "float64": 1e-12}[kind[1]]


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """After every test: no worker process of ours is left, and no shared memory of ours has a name."""
    before = shared_memory_names()
    yield
    left = worker_processes() if has_children() else []
    assert left == [], "the test left processes behind"
    names = {name for name in shared_memory_names() - before if "lapjoint" in name}
    assert names == set(), "the test left shared memory behind"
