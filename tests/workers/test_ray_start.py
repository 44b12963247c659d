"""A Ray cluster that cannot be started or joined: one error that says what to try, and nothing is left behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lapjoint import LapjointError
from ray_support import LIMIT_S

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


def test_no_cluster_without_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    from lapjoint.workers.runtimes.ray_cluster import join_cluster

    monkeypatch.setattr(ray, "__version__", "2.59.1")
    with pytest.raises(LapjointError, match=r"Ray 2\.59\.1 demands no token.*give the address of a cluster"):
        join_cluster(None)


FAILS = """
import os, sys, time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch
from lapjoint import LapjointError
from lapjoint.workers.runtimes.ray_cluster import find_nodes, join_cluster, leave_cluster
from ray_support import ray_processes

folder = f"/tmp/lapjoint-ray-{os.getpid()}"

def not_found(*_):
    raise RuntimeError("no such node")

def fails():
    try:
        join_cluster(None)
    except LapjointError as error:
        print(error)
    assert ray_processes(folder) == [] and not Path(folder).exists()

hurried = SimpleNamespace(**{**vars(time), "monotonic": lambda: 1000 * time.monotonic()})
with (
    patch("ray._private.services.RAYLET_EXECUTABLE", "/bin/false"),
    patch("ray._private.node.time", hurried),  # Ray would look for it for half a minute
    patch("ray._private.services.get_node", not_found),
):
    fails()
with patch("lapjoint.workers.runtimes.ray_remains.FOLDER", Path(sys.argv[1])):
    fails()
join_cluster(None)
print(len(find_nodes()))
leave_cluster()
assert ray_processes(folder) == [] and not Path(folder).exists()
"""


def test_a_start_that_fails_leaves_nothing_and_can_be_tried_again(tmp_path: Path) -> None:
    """In a program of its own: Ray lets go of processes that it started, and Python warns of them at any time later."""
    tmp_path.joinpath("file").touch()
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-c", FAILS, str(tmp_path / "file")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    first, second, count = done.stdout.splitlines()
    assert re.fullmatch(NOT_STARTED.format("The current node timed out during startup") + ".*", first)
    assert re.fullmatch(NOT_STARTED.format(".*Not a directory.*") + ".*", second)
    assert count == "1"


def test_remains_of_another_user_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody can make a folder of that name in /tmp."""
    from lapjoint.workers.runtimes import ray_remains

    monkeypatch.setattr(ray_remains, "FOLDER", tmp_path)
    folder = tmp_path / f"{ray_remains.PREFIX}999999999"
    folder.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
        ray_remains.remove_remains()
    assert folder.exists()
    ray_remains.remove_remains()
    assert not folder.exists()
