"""A Ray cluster that cannot be started or joined: one error that says what to try, and nothing is left behind."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from lapjoint import LapjointError
from ray_support import ray_processes

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow
NOT_STARTED = r"no Ray cluster can be started on this machine: {}\. Try it again .* use the process runtime"


@pytest.mark.parametrize("address", [None, "192.0.2.7:1"])
@pytest.mark.parametrize(
    "error",
    [Exception("it broke"), TimeoutError(), OSError(28, "no space"), ray.exceptions.RaySystemError("it broke")],
    ids=lambda error: type(error).__name__,
)
def test_every_kind_of_error(monkeypatch: pytest.MonkeyPatch, address: str | None, error: Exception) -> None:
    from lapjoint.workers.runtimes.ray_cluster import join_cluster

    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(ray, "init", fail)
    wanted = NOT_STARTED.format(".*") if address is None else "address is '192.0.2.7:1', but no Ray cluster can be"
    with pytest.raises(LapjointError, match=wanted) as caught:
        join_cluster(address)
    assert "\n" not in str(caught.value)


def not_found(*_: object) -> None:
    raise RuntimeError("no such node")


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_start_that_fails_leaves_nothing_and_can_be_tried_again(tmp_path: Path) -> None:
    """Ray has let go of the processes that it started: Python warns that nobody has waited for them."""
    from lapjoint.workers.runtimes.ray_cluster import find_nodes, join_cluster, leave_cluster

    folder = f"/tmp/lapjoint-ray-{os.getpid()}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ray._private.services.RAYLET_EXECUTABLE", "/bin/false")
        # Ray would look for it for half a minute.
        hurried = SimpleNamespace(**{**vars(time), "monotonic": lambda: 1000 * time.monotonic()})
        patch.setattr("ray._private.node.time", hurried)
        patch.setattr("ray._private.services.get_node", not_found)
        with pytest.raises(LapjointError, match=NOT_STARTED.format("The current node timed out during startup")):
            join_cluster(None)
    assert ray_processes(folder) == []
    assert not Path(folder).exists()
    tmp_path.joinpath("file").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lapjoint.workers.runtimes.ray_remains.FOLDER", tmp_path / "file")
        with pytest.raises(LapjointError, match=NOT_STARTED.format(".*Not a directory.*")):
            join_cluster(None)
    join_cluster(None)
    assert len(find_nodes()) == 1
    leave_cluster()
    assert ray_processes(folder) == []
    assert not Path(folder).exists()
