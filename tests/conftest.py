"""Fixtures that every test file shares, and the groups in which tests are run."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from engine_support import ENGINES, Kind, Make, is_installed
from lapjoint.algorithms import Balance, native
from lapjoint.cli import shared
from parallel_support import has_workers, shared_memory_names, worker_processes
from plugin_support import register_example

PLUG_IN = register_example()

# A console that is made while COLUMNS is set keeps that width, whatever COLUMNS a test sets.
os.environ.pop("COLUMNS", None)
shared.console._width = None

# The same examples on every machine, and no deadline on a busy one.
settings.register_profile(
    "lapjoint",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("lapjoint")

# A background job of a script starts with Ctrl-C ignored, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What all tests share stays: to look through it takes a second each time that a test collects garbage."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    PLUG_IN.cleanup()


# ---- groups of tests, each run by one process ------------------------------------------------------------------------

# Those that start first, the longest one at the head: the others fill up what is left. Two Rays never run at once, and
# nor do two browsers.
FIRST = (
    "ray",
    "browser",
    "tests/workers/test_hosts.py",
    "tests/fuzzing/test_fuzzing.py",
    "tests/test_examples.py",
    "tests/test_pages.py",
    "tests/studies/test_reproduce.py",
)


def group_of(node_id: str) -> str:
    """Return the group of a test: its file, so that fixtures of a module are made once, unless it needs Ray or a
    browser.

    The process that hands out tests knows their ids alone. (xdist 3.8 appends the group of its own marks to the id, in
    a field that pytest 9.2 no longer reads: they have no effect.)
    """
    path, _, name = node_id.partition("::")
    if "_ray" in path or "[ray" in name or "-ray" in name:
        return "ray"
    return "browser" if path.endswith(("test_view_browser.py", "test_export.py")) else path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: FIRST.index(group) if (group := group_of(item.nodeid)) in FIRST else len(FIRST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return Groups(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.fixture(params=ENGINES, ids="-".join)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Engine, precision and solver."""
    kind: Kind = request.param
    if not is_installed(kind[0]):
        pytest.skip(f"the engine {kind[0]} is not installed")
    return kind


@pytest.fixture
def make(kind: Kind) -> Make:
    """`make(scene, **params)`: an engine with nothing active."""
    return Make(kind, start=False)


@pytest.fixture
def start(kind: Kind) -> Make:
    """`start(scene, **params)`: an engine with every body active, where the scene has it."""
    return Make(kind, start=True)


@pytest.fixture
def rounding(kind: Kind) -> float:
    """How far a number of size one may be off."""
    return {"float32": 1e-5, "float64": 1e-12}[kind[1]]


@pytest.fixture
def unpruned(monkeypatch: pytest.MonkeyPatch) -> None:
    """With blend, bodies leave workers only as contacts come and go: those that a test activates stay."""
    balance = native.balance

    def guarded(*given: Any, mode: Balance = Balance.PRUNED, **more: Any) -> Any:
        return balance(*given, mode=Balance.GUARDED if mode is Balance.PRUNED else mode, **more)

    monkeypatch.setattr(native, "balance", guarded)


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many steps are taken at once does not depend on how long they took, on a machine that is busy."""
    monkeypatch.setattr("lapjoint.server.steps_at_once.TOGETHER_MS", 1e9)


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """After every test: no worker process of ours is left, and no shared memory of ours has a name."""
    before = shared_memory_names()
    yield
    left = worker_processes() if has_workers() else []
    assert left == [], "the test left processes behind"
    names = {name for name in shared_memory_names() - before if "lapjoint" in name}
    assert names == set(), "the test left shared memory behind"
