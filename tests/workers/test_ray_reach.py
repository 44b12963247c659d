"""Who can reach a Ray cluster of our own: this program, and no other machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ray_support import HEAD, LIMIT_S, OTHER, Namespaces, why_not

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

PROGRAM = """
import sys
from lapjoint import Params, Simulation, scenes
from lapjoint.workers.runtimes.ray_cluster import ray
with Simulation(scenes.build("bowl", 60), Params(workers=2, runtime="ray")) as simulation:
    simulation.step(3)
    print(ray.get_runtime_context().gcs_address, flush=True)
    sys.stdin.readline()
"""
LISTENING = """
import psutil
for connection in psutil.net_connections("tcp"):
    if connection.status == psutil.CONN_LISTEN:
        print(connection.laddr.port)
"""
KNOCK = """
import socket, sys
for port in sys.argv[2:]:
    try:
        socket.create_connection((sys.argv[1], int(port)), 10).close()
        print(port)
    except ConnectionRefusedError:
        pass
"""
STRANGER = """
import sys
import ray
try:
    ray._raylet.GcsClient(address=sys.argv[1])  # the first that ray.init does
    print("taken")
except ray.exceptions.AuthenticationError:
    print("refused")
"""


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_another_machine_and_who_has_no_token_are_refused(tmp_path: Path) -> None:
    """The user has switched tokens off, for clusters of his own perhaps: not for this one."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    with Namespaces() as namespaces:
        # Where there is a way out, Ray takes the address of that for its own.
        subprocess.run(namespaces.command(HEAD, "ip", "route", "add", "default", "via", OTHER), check=True)
        program = subprocess.Popen(
            namespaces.command(HEAD, sys.executable, "-c", PROGRAM),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**plain, "RAY_AUTH_MODE": "disabled"},
        )
        try:
            assert program.stdout is not None
            gcs = program.stdout.readline().strip()
            assert gcs, program.communicate()[1]
            ports = namespaces.run(HEAD, LISTENING).split()
            assert gcs.rpartition(":")[2] in ports
            for address in (HEAD, OTHER):
                assert namespaces.run(address, KNOCK, HEAD, *ports) == ""
            assert namespaces.run(HEAD, KNOCK, "127.0.0.1", *ports).split() == ports
            for token in ({}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": 64 * "f"}):
                stranger = {**plain, **token, "HOME": str(tmp_path)}
                assert namespaces.run(HEAD, STRANGER, gcs, environment=stranger).strip() == "refused"
            _, errors = program.communicate("\n", timeout=LIMIT_S)
            assert (program.returncode, errors) == (0, "")
        finally:
            program.kill()
            program.communicate()
