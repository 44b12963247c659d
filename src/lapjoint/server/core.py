"""Core: what a simulation consists of while it runs. Its facets share it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError, SimulationStopped
from ..forks import belongs_here
from ..params import Params
from ..scene.living import LivingScene
from ..step_tables.sensor_events import SensorEvents
from ..whole import Use, whole
from ..workers.messages import StepReply
from ..workers.runtimes import Runtime
from .coupling import Coupling, StepContext
from .distributed_queries import DistributedQueries
from .elastic import Elastic
from .frozen import Frozen
from .glued import GluedBodies
from .incidents import Incident
from .kinematic import KinematicBodies
from .last_contacts import fetch_contacts
from .profile import StepProfile
from .recovery import Recovery
from .sensing import Sensing
from .step_reports import StepReports

Array = NDArray[np.float64]

CONTACTS_ARE_GONE = "contacts: of a step before the last one, expected to be asked for before the next"


class Core:
    """Its parts. `start` makes them, and makes them anew at a restart: whoever holds the core has the present ones."""

    now: StepContext
    runtime: Runtime
    coupling: Coupling
    elastic: Elastic
    frozen: Frozen
    reports: StepReports
    glued: GluedBodies
    kinematic: KinematicBodies
    queries: DistributedQueries
    sensing: Sensing
    recovery: Recovery
    profile: StepProfile
    """Of the last step."""
    last_step_ms: float
    """How long it took; 0 before the first."""
    has_stepped: bool
    """Whether a step was taken since it was started, or goes on."""
    stopped: SimulationStopped | None
    """The failure that has ended the run."""
    is_closed: bool
    unlock_scene: Callable[[], object]

    _prefix = ""

    def __init__(self, given: Params) -> None:
        self.given = given
        """Parameters as they were given."""
        self.incidents: list[Incident] = []
        self.use = Use("the simulation")
        """One thread at a time, in the simulation and all its facets."""

    def lock(self, unlock: Callable[[], None]) -> None:
        """Have the scene unlocked at the end, whichever comes first: closing, or the last reference to this."""
        self.unlock_scene = weakref.finalize(self, unlock)
        belongs_here(self, "the simulation", lambda own: own.unlock_scene())

    @property
    def scene(self) -> LivingScene:
        return self.now.scene

    @property
    def params(self) -> Params:
        return self.now.params

    @property
    def _use(self) -> Use:
        return self.use

    def check_open(self, what: str) -> None:
        """Raise if nothing can be called any more, or only what begins again."""
        if self.is_closed:
            raise LapjointError("the simulation is closed")
        if self.use.broken_off is not None and what not in ("restart", "close"):
            raise LapjointError(
                f"{what}: the simulation was broken off in the middle of {self.use.broken_off}() and cannot go on, "
                "expected a new one, or restart()"
            )

    _check_open = check_open

    # ---- what workers and server have of the last step -----------------------------------------------------------

    def states(self, what: str) -> Array:
        """The table of states. One in memory that is shared can be read while another thread takes a step."""
        self.check_open(what)
        return self.runtime.states if self.runtime.byte_count is None else self._fetch_states()

    @whole
    def _fetch_states(self) -> Array:
        return self.runtime.states

    def fetch_contacts(self, replies: Sequence[StepReply]) -> None:
        """Complete the replies of the last step with its contacts."""
        if all(reply.has_contacts for reply in replies):
            return
        if replies is not self.now.replies or self.is_closed or self.stopped is not None:
            raise LapjointError(CONTACTS_ARE_GONE)
        self._ask_for_contacts(replies)

    @whole
    def _ask_for_contacts(self, replies: Sequence[StepReply]) -> None:
        fetch_contacts(replies, self.runtime.step, self.params.workers, self.scene.body_count)

    @whole
    def sensor_events(self) -> SensorEvents:
        return self.sensing.events

    def new_profile(self) -> StepProfile:
        """The profile of the next step; reading contacts from it does not keep the simulation."""
        own = weakref.ref(self)

        def fetch(replies: Sequence[StepReply]) -> None:
            core = own()
            if core is not None:
                core.fetch_contacts(replies)
            elif not all(reply.has_contacts for reply in replies):
                raise LapjointError(CONTACTS_ARE_GONE)

        self.profile = StepProfile(fetch_contacts=fetch)
        return self.profile
