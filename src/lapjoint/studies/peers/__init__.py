"""Peers: other engines from the registry on the same scene, side by side with lapjoint, by speed and error.

>>> from lapjoint import scenes
>>> from lapjoint.studies.bench import BenchPlan
>>> from lapjoint.studies.peers import PeerPlan, measure_peers
>>> plan = BenchPlan([scenes.build("bowl", 1000)], workers=[1, 2], iterations=[50])
>>> for row in measure_peers(PeerPlan(plan, ["mujoco", "rapier"])):
...     print(row.side, row.cpu_ms, row.error)
"""

from __future__ import annotations

from .base import PEER_NAMES, Peer, Setting, load_peer
from .error import StateError, state_error
from .plan import PeerPlan
from .repetitions import measure_peers
from .rows import ComparedRow, Side

__all__ = [
    "PEER_NAMES",
    "ComparedRow",
    "Peer",
    "PeerPlan",
    "Setting",
    "Side",
    "StateError",
    "load_peer",
    "measure_peers",
    "state_error",
]
