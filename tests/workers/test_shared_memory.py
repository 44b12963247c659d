"""Memory that processes share, where Linux makes it without a name and where it does not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import psutil
import pytest

from lapjoint import LapjointError, Params, Simulation, scenes
from lapjoint.measures import state_hash
from lapjoint.workers.runtimes.shared import KINDS, VARIABLE, SharedMemory
from parallel_support import shared_memory_names


@pytest.fixture(params=["memfd", "named", "file"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    if name not in KINDS:
        pytest.skip(f"no {name} on this machine")
    monkeypatch.setenv(VARIABLE, name)
    return name


def test_a_block_is_zeros_grows_and_leaves_nothing(kind: str) -> None:
    names, descriptors = shared_memory_names(), psutil.Process().num_fds()
    block = SharedMemory(16)
    other = SharedMemory(16, os.dup(block.fd))  # as a worker sees it
    block.array((2,), float)[:] = 1.0, 2.0
    assert other.array((2,), float).tolist() == [1.0, 2.0]
    block.grow(8000)
    block.array((1000,), float)[-1] = 3.0
    assert other.look_again()
    np.testing.assert_array_equal(other.array((1000,), float), [1.0, 2.0, *np.zeros(997), 3.0])
    assert shared_memory_names() == names, "its name, if it ever had one, is gone"
    if Path("/proc/self/fd").is_dir():
        place = os.readlink(f"/proc/self/fd/{block.fd}")
        assert place.startswith({"memfd": "/memfd:lapjoint", "named": "/dev/shm/lapjoint-", "file": "/"}[kind])
        assert place.endswith("(deleted)")
    block.close()
    other.close()
    del block, other  # a mapping has a descriptor of its own
    assert psutil.Process().num_fds() == descriptors


@pytest.mark.slow
def test_a_run_has_the_same_bits_on_any_kind(kind: str) -> None:
    scene = scenes.build("chain", 12)

    def final_hash(runtime: str) -> str:
        with Simulation(scene, Params(workers=2, runtime=runtime)) as simulation:
            simulation.step(5)
            simulation.workers.set_count(3)  # which makes blocks larger
            simulation.step(5)
            return state_hash(simulation.states)

    assert final_hash("process") == final_hash("inline")


def test_an_unknown_kind_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "nmed")
    with pytest.raises(
        LapjointError, match=r"LAPJOINT_SHARED_MEMORY is 'nmed' \(did you mean 'named'\?\), expected memfd or"
    ):
        SharedMemory(1)
