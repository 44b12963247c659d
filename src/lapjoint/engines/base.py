"""What an engine must offer: the black box of the paper, in arrays.

Bodies go by their numbers in the scene. States are (n, 13) float64 arrays: position, quaternion w x y z, linear
velocity, angular velocity, world frame, SI. Static bodies are in every engine from the start.
`tests/engines/test_contract*.py` check every rule below on every engine, as far as it `supports` it.
docs/engines.md walks through an engine of one's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..params import Params
from ..scene import Scene
from ..step_tables import Of, column
from .changes import Changes, StepReport
from .state import EngineState
from .support import Support

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

CONTACT_MARGIN = 0.02
"""In length units, the same for all engines, for they may share a scene: bodies that are farther apart than this are no
contact. Nearer ones may be, before they touch; that is the engine's choice. Fast bodies, which an engine may stop at
what they come to within a step from farther away, are no contact before that either: their hits are reported, and
`clearances` are 0 for them."""


@dataclass(frozen=True)
class Contacts:
    """Contacts of one moment, one row per pair of touching bodies, in ascending order of body numbers."""

    bodies: Ids = column(np.int32, 2, of=Of.CONTACT)
    """(n, 2). The second is -1 - s where it is the static body s."""
    point_count: Ids = column(np.int32)
    """(n,) contact points of the pair."""
    depth: Array = column(float)
    """(n,) depth of the deepest point [m]; negative for a pair that is near but apart."""

    @staticmethod
    def none() -> Contacts:
        """No contacts."""
        return Contacts(np.empty((0, 2), np.int32), np.empty(0, np.int32), np.empty(0))

    def __len__(self) -> int:
        return len(self.bodies)

    @property
    def between_bodies(self) -> NDArray[np.bool_]:
        """Which rows are edges of the constraint graph: neither body is static."""
        return self.bodies[:, 1] >= 0

    @property
    def penetration(self) -> float:
        """The deepest penetration [m], 0 where nothing touches."""
        return float(max(self.depth.max(initial=0.0), 0.0))


@runtime_checkable
class Engine(Protocol):
    """One world. It starts empty but for the static bodies."""

    supports: ClassVar[Support]
    """What it can do; the rest is refused by name before one is made."""

    def __init__(self, scene: Scene, params: Params) -> None:
        """`params` are resolved, with this engine's precision; scene and params are checked."""
        ...

    @staticmethod
    def check(scene: Scene, params: Params) -> None:
        """Before anything starts: refuse by name what cannot be mapped, beyond what `supports` declares."""
        ...

    @property
    def active_ids(self) -> Ids:
        """Bodies in the world, ascending."""
        ...

    @property
    def live_joint_ids(self) -> Ids:
        """Joints in force, ascending: both bodies active, or one active and the other the world."""
        ...

    def activate(self, body_ids: ArrayLike, states: ArrayLike) -> None:
        """Put bodies into the world. Active already, doubled or unknown: LapjointError, nothing changes."""
        ...

    def deactivate(self, body_ids: ArrayLike) -> None:
        """Take bodies out of the world, with their joints, contacts and warm-start data."""
        ...

    def set_states(self, body_ids: ArrayLike, states: ArrayLike) -> None:
        """Move active bodies. Values that are not finite: LapjointError, nothing changes."""
        ...

    def get_states(
        self, body_ids: ArrayLike | None = None, out: Array | None = None, rows: ArrayLike | None = None
    ) -> Array:
        """States of active bodies (all, ascending, if not named), written to `out` where given: row by row, or with
        the i-th body in row `rows[i]`, the other rows untouched."""
        ...

    def add_forces(self, body_ids: ArrayLike, forces: ArrayLike, torques: ArrayLike | None = None) -> None:
        """Add external forces [N] at the centres of mass and torques [N m], for the next step only."""
        ...

    def step(self, count: int = 1) -> None:
        """Take `count` timesteps. A state that is not finite afterwards: NotFiniteError that names the bodies; the
        engine cannot be used any more."""
        ...

    def change(self, changes: Changes) -> None:
        """What is otherwise from the next step on, in the order of its fields. Invalid: LapjointError."""
        ...

    def report(self) -> StepReport:
        """What is reported of the steps of the last call of `step`, asked for once after it."""
        ...

    def clearances(self, pairs: ArrayLike, states: ArrayLike) -> Array:
        """How far pairs of bodies, active or not, are from a contact [m] at the given states (one row per body of the
        scene): 0 where a step would find one there, else at least so much; any positive number will do, but a small
        one means that the pair is asked about again soon. 0 where a step would find none is allowed for pairs that are
        near: their bodies come to share a worker too early, which costs time and nothing else.

        Groups, masks and ignored pairs are the caller's business.
        """
        ...

    def contacts(self, now: bool = False) -> Contacts:
        """Contacts of the last step (as it began); or, with `now`, those of the present states, found without stepping.
        What was found last is returned until the next step."""
        ...

    def state(self) -> EngineState:
        """A copy of all that the next step depends on besides the scene and the parameters. Without the feature
        "contact cache": states alone."""
        ...

    def restore(self, state: EngineState) -> None:
        """Go on from the state of an engine of the same scene, parameters and build: from here on both do the same,
        with the feature "contact cache" to the last bit. What was active before is dropped."""
        ...


@runtime_checkable
class PreparingEngine(Protocol):
    """What an engine offers besides that can do a part of a step before the server has sent its command."""

    def prepare(self, moving: ArrayLike) -> None:
        """Do now what the next step can do already if, of the active bodies, only `moving` are set to other states
        before it. Results are the same to the last bit."""
        ...


@dataclass(frozen=True)
class Mail:
    """Messages of a worker within a step."""

    waited_s: float
    """Wall time that was waited for those of others [s]; and CPU time."""
    waited_cpu_s: float
    between_meetings_s: NDArray[np.float64]
    """CPU time from one place within a step where all workers wait for each other to the next, of all steps [s]."""


@runtime_checkable
class NeighbourEngine(Protocol):
    """What an engine offers besides whose steps are taken together with those of other workers: constraints between
    them are solved by both, within the step (docs/coupling.md)."""

    @staticmethod
    def mail_bytes(precision: str) -> int:
        """Bytes that a message within a step has for each body, at most."""
        ...

    @property
    def ghost_ids(self) -> Ids:
        """Bodies of other workers that are here because they are near the engine's own or jointed to them, ascending.
        They are not active."""
        ...

    def set_turns(self, worker: int, turns: ArrayLike, whole: ArrayLike) -> None:
        """Set when this engine, that of `worker`, sweeps what is between it and each other worker, and which structures
        across workers may be solved at once: see messages.NeighbourCommand."""
        ...

    def open_mailboxes(
        self, memory: NDArray[np.uint8], worker_count: int, room: int, worker: int, bell: int = -1
    ) -> None:
        """Send to the other workers through this memory from now on; `room` is how many bytes a message can have.
        `bell`: a descriptor that wakes who carries messages to other machines."""
        ...

    def step_with_neighbours(self, attempt: int, count: int = 1, choose: bool = True) -> bool:
        """Take steps together with all other workers, who do the same. They choose among themselves who has which
        ghosts: before the first step with `choose`, and whenever a body has moved far. False if one is abandoned:
        nothing has moved in it, or in those after it."""
        ...

    def mail(self) -> Mail:
        """What the last such steps took of messages, all of them."""
        ...

    def hand_over(self, body_ids: ArrayLike) -> None:
        """Deactivate bodies that migrate to other workers: what sleeps with them has no reason to move."""
        ...

    def merge_cache(self, state: EngineState) -> None:
        """Merge the warm-start data that another engine has of contacts and joints of active bodies. What is about
        bodies that are not here waits until ghosts are chosen, and is dropped if they are none."""
        ...
