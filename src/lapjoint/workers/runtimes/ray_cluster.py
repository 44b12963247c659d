"""A Ray cluster: one that is there already, or one of our own on this machine alone, for as long as it is needed."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...errors import LapjointError
from ...forks import drop_exit_callbacks
from .cluster import CHECK_S, LOCALHOST, NodeError
from .placement import Node
from .ray_remains import FOLDER, end_processes, folder_of, remove, remove_remains

try:
    import ray as ray  # the other modules take it from here, so that the error below is theirs too
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError as error:
    raise LapjointError("the ray runtime needs Ray: pip install 'lapjoint[ray]'") from error

DEMANDS_TOKENS = (2, 60)
"""Versions of Ray from this one on demand a token where nobody says otherwise. Some before it have none at all."""
_TOKEN = secrets.token_hex(32)

_users = 0
_joined: str | None = None
_ours = False
_is_of_parent = False


def join_cluster(address: str | None) -> None:
    """Connect this process to the cluster at `address`, or start one here; once for all who need it.

    A cluster of our own listens at 127.0.0.1 only, takes no one without its token, and leaves nothing behind.
    """
    global _users, _joined, _ours
    if _is_of_parent:
        raise LapjointError(
            f"runtime is ray, but Ray cannot be used in process {os.getpid()}, which was forked from one that uses it, "
            "expected a program of its own, or another runtime"
        )
    if _users == 0 and not ray.is_initialized():
        _connect(address) if address else _start()
        _ours = True
    elif _users and address != _joined:
        there = f"that at {_joined}" if _joined else "one of its own"
        raise LapjointError(f"address is {address}, but this program uses another Ray cluster already: {there}")
    if _users == 0:
        _joined = address
    _users += 1


def leave_cluster() -> None:
    """The last who leaves disconnects, and stops what was started here."""
    global _users, _ours
    _users -= 1
    if _users == 0 and _ours:
        _ours = False
        with _quiet():
            ray.shutdown()
        remove(folder_of(os.getpid()))


def _leave_to_parent() -> None:
    """In a process that was forked off: a cluster of our own would end with it, for Ray ends what it has started."""
    global _is_of_parent
    _is_of_parent = ray.is_initialized()
    if _ours:
        drop_exit_callbacks("ray")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _connect(address: str) -> None:
    try:
        with _quiet():
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except BaseException as error:
        _undo()
        _pass_on(error)
        raise LapjointError(
            f"address is {address!r}, but no Ray cluster can be joined there, expected one that this machine is part "
            f"of (see docs/cluster.md): {first_line(error)}"
        ) from error


def _start() -> None:
    found = tuple(int(part) for part in ray.__version__.split(".")[:2])
    if found < DEMANDS_TOKENS:
        raise LapjointError(
            f"Ray {ray.__version__} demands no token, so that other users of this machine could run programs as you, "
            "expected 2.60 or later: give the address of a cluster, or use the process runtime"
        )
    remove_remains()
    folder = folder_of(os.getpid())
    try:
        _init_here(folder)
        if (found := ray.util.get_node_ip_address()) != LOCALHOST:
            raise LapjointError(
                f"Ray {ray.__version__} listens at {found}, where other machines reach it, expected {LOCALHOST}: give "
                "the address of a cluster, or use the process runtime"
            )
    except BaseException as error:
        _undo()
        end_processes(folder)
        remove(folder)
        _pass_on(error)
        # Of many kinds, down to Exception itself; its first sentence has what failed.
        reason = first_line(error).partition(". ")[0]
        raise LapjointError(
            f"no Ray cluster can be started on this machine: {reason}. Try it again when the machine has "
            f"less to do and room in {FOLDER} and /dev/shm, without RAY_ variables in the environment; or use the "
            "process runtime, which needs no Ray"
        ) from error


def _undo() -> None:
    """Disconnect after Ray has failed halfway, so that it can be tried again."""
    with suppress(Exception), _quiet():
        ray.shutdown()


def _pass_on(error: BaseException) -> None:
    """Raise what is no failure of Ray's. SIGTERM, which it handles while it starts, goes to who handles it else."""
    if isinstance(error, SystemExit) and error.code == signal.SIGTERM:
        signal.raise_signal(signal.SIGTERM)
    if isinstance(error, LapjointError) or not isinstance(error, Exception):
        raise error


def _init_here(folder: Path) -> None:
    settings: dict[str, str | None] = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_enable_metrics_collection": "0",
        # By itself Ray starts a process for every core before it answers; one hosts all workers of a machine.
        "RAY_prestart_worker_first_driver": "0",
    }
    # With a token of its own in the environment, Ray writes none into the home directory.
    if "RAY_AUTH_TOKEN_PATH" not in os.environ:
        settings["RAY_AUTH_TOKEN"] = os.environ.get("RAY_AUTH_TOKEN", _TOKEN)
    # Other users of this machine reach 127.0.0.1 too. Where no mode is set, Ray demands the token.
    settings["RAY_AUTH_MODE"] = None
    with _quiet(), _environment(settings), _on_loopback():
        ray.init(
            address="local",
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
            _node_ip_address=LOCALHOST,
            _temp_dir=str(folder),
        )


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Let Ray take 127.0.0.1 for this machine's address; then all that it starts listens there and nowhere else.

    By itself it replaces that address by one that other machines reach, except on systems where it has no clusters of
    many machines. This is one of them for as long as our own cluster starts.
    """
    constants = ray._private.ray_constants
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


@contextmanager
def _environment(settings: Mapping[str, str | None]) -> Iterator[None]:
    """Within it the environment has these variables; it does not have those that are None."""
    before = {name: os.environ.get(name) for name in settings}
    _set(settings)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Ray from logging and from handling SIGTERM."""
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM) if in_main else None
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
        logging.getLogger("ray").setLevel(logging.CRITICAL)


def find_nodes() -> list[Node]:
    """Nodes that are alive."""
    here = ray.get_runtime_context().get_node_id()
    return [
        Node(
            node["NodeID"],
            node["NodeManagerAddress"],
            node["Resources"].get("CPU", 0.0),
            node["NodeID"] == here,
        )
        for node in ray.nodes()
        if node["Alive"]
    ]


def on_node(node: Node) -> dict[str, Any]:
    """Options of a task or an actor that shall run there. Which worker goes where is our own decision."""
    return {"num_cpus": 0, "scheduling_strategy": NodeAffinitySchedulingStrategy(node.node_id, soft=False)}


def own_version() -> str:
    """Of the lapjoint that runs here."""
    return version("lapjoint")


def check_versions(nodes: Sequence[Node], limit_s: float = CHECK_S) -> None:
    """Every node has the lapjoint that runs here, or it is an error that names the node."""
    own, ask = own_version(), ray.remote(version)  # of the standard library: nodes without lapjoint have that too
    others = {node.node_id: node for node in nodes if not node.is_server}.values()
    asked = {node: ask.options(max_retries=0, **on_node(node)).remote("lapjoint") for node in others}
    for node, answer in asked.items():
        try:
            found = ray.get(answer, timeout=limit_s)
        except ray.exceptions.RayTaskError as error:
            raise LapjointError(
                f"node {node.address} has no lapjoint, expected version {own}, as here: {last_line(error)}"
            ) from None
        except ray.exceptions.RayError as error:
            raise NodeError(node, last_line(error)) from None
        if found != own:
            raise LapjointError(f"node {node.address} has lapjoint {found}, expected {own}, as here")


def first_line(error: BaseException) -> str:
    """The first line of an error, which has what failed."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def last_line(error: BaseException) -> str:
    """The last line of an error, which has its cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def kill(actor: Any) -> None:
    """End an actor's process, whatever it is doing."""
    with suppress(Exception):
        ray.kill(actor)
