"""Detection: which bodies touch, and the constraint graph that decides who simulates what (section 5.4)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Algorithms, ConstraintGraph, Membership, NearPairFinder
from ..algorithms.membership import shared_before
from ..arrays.state import PartState
from ..engines import CONTACT_MARGIN, Changes, Contacts, EngineState, make_worker_engine
from ..engines.follow import follow
from ..errors import PenetrationWarning
from ..params import Params
from ..scene import WORLD, Scene
from ..workers.messages import StepReply
from ..workers.runtimes import Runtime

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

FinderMaker = Callable[[Scene, float, float], NearPairFinder]
"""Makes one for a scene as it is, a margin, and how far to look ahead for fast bodies [s]."""
NO_PAIRS: Ids = np.empty((0, 2), np.int32)
DEEP = 0.1
"""Share of a body's bounding radius beyond which a penetration at the start is worth a warning."""


class Detector(Protocol):
    """Finds the contacts that decide who simulates what, as lists of pairs of bodies, (n, 2)."""

    needs_all_states: ClassVar[bool]
    """Whether it looks at bodies far from any of another worker too."""

    met: Ids
    """Of the last `find`: pairs of a fast body and what it comes to within the step, whose workers differ, (n, 2)."""

    def find(self, states: Array, membership: Membership, last: Sequence[StepReply]) -> list[Ids]:
        """Contacts of the present states, in any order, perhaps twice, perhaps with static bodies (negative); `last`
        is what the workers reported of the step before."""
        ...

    def find_lost(self, changed: Ids, membership: Membership) -> Ids:
        """After bodies left workers: contacts that `find` did not report and that have lost their last worker."""
        ...

    def prepare(self, membership: Membership) -> None:
        """While the workers step: whatever can be done already for the next `find`."""
        ...

    def renew(self, states: Array) -> None:
        """Bodies or joints of the scene have come or gone, since `renew` was last called; these are the states."""
        ...

    def engine_state(self) -> EngineState | None:
        """State of the detecting engine, where what it finds depends on its contact cache; else None."""
        ...

    def restore_engine(self, state: EngineState) -> None: ...


class ServerDetector:
    """The paper's way: the server holds all bodies in an engine of its own and finds every contact itself."""

    needs_all_states: ClassVar[bool] = True

    def __init__(
        self, scene: Scene, params: Params, states: Array | None = None, make_finder: FinderMaker | None = None
    ) -> None:
        """`states` are those of all bodies now; the scene's, unless given. The finder looks ahead for fast bodies."""
        self._scene, self._engine = scene, make_worker_engine(scene, params)
        ahead = looks_ahead(params) if make_finder is not None else 0.0
        self._make_finder = (
            partial(make_finder, scene, contact_margin(params), ahead) if ahead and make_finder else None
        )
        self._finder = self._make_finder() if self._make_finder else None
        self._there = np.flatnonzero(scene.alive).astype(np.int32)
        self.met = NO_PAIRS
        self._engine.activate(self._there, (scene.states if states is None else states)[self._there])

    def contacts(self, states: Array) -> Contacts:
        self._engine.set_states(self._there, states[self._there])
        return self._engine.contacts(now=True)

    def find(self, states: Array, membership: Membership, last: Sequence[StepReply]) -> list[Ids]:
        if self._finder is None or not self._finder.has_fast(states):
            self.met = NO_PAIRS
            return [self.contacts(states).bodies]
        pairs = self._finder.find(states, membership)
        pairs = pairs[self._finder.have_fast(pairs, states)]
        self.met = pairs[self._engine.clearances(pairs, states) == 0]
        return [self.contacts(states).bodies, self.met]

    def find_lost(self, changed: Ids, membership: Membership) -> Ids:
        return np.empty((0, 2), np.int32)

    def prepare(self, membership: Membership) -> None:
        pass

    def renew(self, states: Array) -> None:
        self._there = follow(self._engine, self._scene, self._there, states)
        self._finder = self._make_finder() if self._make_finder else None

    def engine_state(self) -> EngineState | None:
        return self._engine.state()

    def restore_engine(self, state: EngineState) -> None:
        self._engine.restore(state)


class WorkerDetector:
    """Detection by the workers. A worker knows the contacts of its own bodies from its last step; the server
    looks only for pairs that no worker sees, over a grid, and tests those few exactly.

    A contact within one worker that is new in this step is not known yet. It needs no decision, for its bodies share
    that worker; only a body that leaves a worker can break it, and is looked at again when it does.
    """

    needs_all_states: ClassVar[bool] = False

    def __init__(self, scene: Scene, params: Params, make_finder: FinderMaker) -> None:
        self._scene, self._engine = scene, make_worker_engine(scene, params)
        self._make_finder = partial(make_finder, scene, contact_margin(params), looks_ahead(params))
        self._finder = self._make_finder()
        self.met = NO_PAIRS
        self._states = scene.states

    def find(self, states: Array, membership: Membership, last: Sequence[StepReply]) -> list[Ids]:
        self._states = states
        between = self._touching(self._finder.find(states, membership))
        self.met = between[self._finder.have_fast(between, states)]
        return [*(reply.contacts.bodies for reply in last), between]

    def find_lost(self, changed: Ids, membership: Membership) -> Ids:
        return self._touching(self._finder.find_again(changed, membership))

    def prepare(self, membership: Membership) -> None:
        self._finder.prepare(membership)

    def renew(self, states: Array) -> None:
        if "added bodies" in self._engine.supports.features:
            self._engine.change(Changes(grown=True))
        self._finder = self._make_finder()

    def engine_state(self) -> EngineState | None:
        return None

    def restore_engine(self, state: EngineState) -> None:
        pass

    def _touching(self, pairs: Ids) -> Ids:
        if len(pairs) == 0:
            return pairs
        clearances = self._engine.clearances(pairs, self._states)
        self._finder.keep_apart(clearances)
        return np.asarray(pairs[clearances == 0])


def contact_margin(params: Params) -> float:
    """Between bodies that may be a contact [m]."""
    return CONTACT_MARGIN * (params.units.length or 1.0)


def looks_ahead(params: Params) -> float:
    """How far to look ahead for fast bodies [s]; 0 with a solver that does not."""
    return (params.timestep or 0.0) if params.solver == "substeps" else 0.0


NOTHING = np.empty((0, 2), np.int32)


class Detection:
    """The constraint graph of the present states: joints, and the contacts that the detector finds."""

    def __init__(self, scene: Scene, params: Params, algorithms: Algorithms, states: Array) -> None:
        self._scene, self._params, self._algorithms = scene, params, algorithms
        self._detector: Detector | None = None
        if params.detect == "server":
            self._detector = ServerDetector(scene, params, states, algorithms.PairFinder)
        self._knows_joints = self._knows_bodies = True  # as they are now; and so does the detector
        self._find_joint_edges()
        self._made: ConstraintGraph | None = self._graph([])
        self._contacts: Ids = NOTHING
        self.is_unchanged = False
        """Whether the contacts are those of the step before."""

    @property
    def graph(self) -> ConstraintGraph:
        if self._made is None:
            self._made = self._graph([self._contacts])
        return self._made

    def fold(self) -> None:
        """Keep of the graph its contacts alone, until somebody wants it: it is several times as large."""
        self._contacts = np.array(self.graph.contacts)
        self._made = None

    @property
    def detector(self) -> Detector:
        """What finds contacts. One that asks workers is made when it is needed first: not every coupling does."""
        if self._detector is None:
            self._detector = WorkerDetector(self._scene, self._params, self._algorithms.PairFinder)
        return self._detector

    def all_contacts(self, states: Array) -> Contacts:
        """All contacts of these states, where the server finds them."""
        assert isinstance(self._detector, ServerDetector)
        return self._detector.contacts(states)

    def _find_joint_edges(self) -> None:
        joints = self._scene.joints
        inner = (joints.body_b != WORLD) & self._scene.joint_alive
        self._joint_edges = np.stack([joints.body_a[inner], joints.body_b[inner]], axis=1)
        self.jointed = np.zeros(self._scene.body_count, bool)
        """Which bodies have a joint with another."""
        self.jointed[self._joint_edges] = True
        self._knows_joints = True

    def note_changes(self) -> None:
        """Bodies or joints of the scene have come or gone: what depends on them is found anew when it is needed."""
        self._knows_joints = self._knows_bodies = False

    def update(self, runtime: Runtime, membership: Membership, last: Sequence[StepReply]) -> None:
        """The graph of the present states. `last` is what the workers reported of the step before."""
        states = runtime.states if self.detector.needs_all_states else runtime.border_states
        is_same_scene, self._knows_bodies = self._knows_bodies, True
        if not is_same_scene:
            self.detector.renew(states)
        graph = self._graph(self.detector.find(states, membership, last))
        self.is_unchanged = is_same_scene and np.array_equal(graph.contacts, self.graph.contacts)
        if not self.is_unchanged:
            self._made = graph

    def set_contacts(self, contacts: Sequence[Ids]) -> None:
        """The graph that these contacts make with the joints."""
        self._made = self._graph(contacts)

    def _graph(self, contacts: Sequence[Ids]) -> ConstraintGraph:
        """Without contacts of bodies that were removed since."""
        if not self._knows_joints:
            self._find_joint_edges()
        alive = self._scene.alive
        if not alive.all():
            contacts = [pairs[alive[pairs[:, 0]] & (alive[pairs[:, 1]] | (pairs[:, 1] < 0))] for pairs in contacts]
        return self._algorithms.Graph(self._scene.body_count, self._joint_edges, contacts)

    def state(self) -> PartState:
        arrays = {"contacts": self._contacts if self._made is None else self._made.contacts}
        engine = None if self._detector is None else self._detector.engine_state()
        if engine is not None:
            arrays |= {f"engine/{name}": array for name, array in vars(engine).items()}
        return PartState(arrays)

    def restore(self, state: PartState) -> None:
        self.restore_engine(state)
        self.set_contacts([state.arrays["contacts"]])

    def restore_engine(self, state: PartState) -> None:
        """Restore the detector alone: it does not depend on the number of workers."""
        engine = state.under("engine")
        if engine:
            self.detector.restore_engine(EngineState(**engine))


def merge_contacts(lists: Sequence[Contacts], bits: NDArray[np.uint64]) -> Contacts:
    """The workers' contacts as one list, ascending; of a contact that several workers have, that of the first.

    `bits` is the membership of that step. A list beyond those of the workers is the server's: of contacts that no
    worker has."""
    if len(lists) == 1:
        return lists[0]
    kept = []
    for worker, contacts in enumerate(lists):
        earlier = shared_before(worker, bits, contacts.bodies)
        kept.append([part[~earlier] for part in (contacts.bodies, contacts.point_count, contacts.depth)])
    bodies, points, depth = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    keys = (bodies[:, 0].astype(np.int64) << 32) + bodies[:, 1]
    order = np.argsort(keys, kind="stable")  # merges the workers' lists, which are ascending already
    return Contacts(bodies[order], points[order], depth[order])


def warn_of_penetration(scene: Scene, contacts: Contacts) -> None:
    """Warn if bodies start deep inside each other, and name the worst pair."""
    if len(contacts) == 0:
        return
    radii = scene.bounding_radii()
    a, b = contacts.bodies.T
    smaller = np.where(b >= 0, np.minimum(radii[a], radii[np.maximum(b, 0)]), radii[a])
    share = contacts.depth / smaller
    worst = int(np.argmax(share))
    if share[worst] <= DEEP:
        return
    other = scene.body_title(b[worst]) if b[worst] >= 0 else f"static body {-1 - b[worst]}"
    count = int((share > DEEP).sum())
    warnings.warn(
        f"scene {scene.name!r}: {scene.body_title(a[worst])} starts {contacts.depth[worst]:.3g} m deep inside {other}"
        + (f" ({count} pairs are deep inside each other)" if count > 1 else "")
        + "; they will be pushed apart",
        PenetrationWarning,
        stacklevel=4,
    )
