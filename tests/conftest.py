"""Fixtures that every test file shares. One line more in ENGINES puts another engine through the whole suite."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from lapjoint import Engine, LapjointError, Params, Scene, make_engine
from lapjoint.engines import Support, engine_version, supports
from lapjoint.engines.registry import load_engine
from lapjoint.engines.support import check_support
from parallel_support import has_children, shared_memory_names, worker_processes
from plugin_support import register_example

TESTS = Path(__file__).parent
PLUG_IN = register_example()
BULLET = [("bullet", "float32"), ("bullet", "float64")]
ENGINES = [*BULLET, ("rapier", "float32"), ("mujoco", "float64"), ("springs", "float64")]

# The same examples on every machine, and no deadline on a busy one.
settings.register_profile(
    "lapjoint", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("lapjoint")

# A background job of a script starts with Ctrl-C ignored, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Groups that start first, the longest one at the head; two Rays, or two browsers, never run at once.
FIRST = ("ray", "browser")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test the group of its file, if it has none, and order the groups: each is run by one process, so that
    fixtures of a module are made once."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.relative_to(TESTS).as_posix()))
    items.sort(key=lambda item: FIRST.index(name) if (name := group_of(item)) in FIRST else len(FIRST))


def group_of(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    assert mark is not None
    return str(mark.args[0])


class Make:
    """`make(scene, **params)`: an engine, with nothing or everything active. A test whose scene or parameters are
    beyond what the engine says it supports is skipped, and the reason names it."""

    def __init__(self, kind: tuple[str, str], start: bool) -> None:
        self.kind, self._start = kind, start
        self.supports: Support = supports(kind[0])

    def __call__(self, scene: Scene, **params: Any) -> Engine:
        given = Params(engine=self.kind[0], precision=self.kind[1], **params)
        try:
            check_support(self.kind[0], self.supports, scene, given.resolved(scene))
            load_engine(self.kind[0]).check(scene, given.resolved(scene))
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


@pytest.fixture(params=ENGINES, ids="-".join)
def kind(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Engine and precision."""
    pair: tuple[str, str] = request.param
    if engine_version(supports(pair[0])) is None:
        pytest.skip(f"the engine {pair[0]} is not installed")
    return pair


@pytest.fixture
def make(kind: tuple[str, str]) -> Make:
    """`make(scene, **params)`: an engine with nothing active."""
    return Make(kind, start=False)


@pytest.fixture
def start(kind: tuple[str, str]) -> Make:
    """`start(scene, **params)`: an engine with every body active, where the scene has it."""
    return Make(kind, start=True)


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
