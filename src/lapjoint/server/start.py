"""What a simulation does before its first step: the partition, the checks, the workers, the first contacts."""

from __future__ import annotations

import weakref
from dataclasses import replace

import numpy as np

from ..algorithms import Membership, load_algorithms
from ..arrays.pages import trim
from ..engines import Contacts, check_engines, check_inertias, make_worker_engine
from ..scene import Scene
from ..scene.fields import check_functions
from ..scene.living import Life, LivingScene
from ..step_tables.sensor_events import SensorEvents
from ..workers.messages import StepReply
from ..workers.runtimes import make_runtime
from .commands import CommandBuilder
from .core import Core
from .coupling import StepContext, make_coupling
from .crowds import check_crowds
from .detect import Detection, warn_of_penetration
from .distributed_queries import DistributedQueries
from .elastic import Elastic
from .frozen import Frozen
from .glued import GluedBodies
from .kinematic import KinematicBodies
from .loads import Loads
from .long_steps import check_timestep
from .mass_ratios import check_mass_ratios
from .partition import make_partition
from .profile import StepProfile
from .recovery import Recovery
from .repartition import Repartition
from .scene_changes import mail_room, remove_bodies
from .sensing import Sensing
from .start_contacts import find_start_contacts
from .step_reports import StepReports


def start(core: Core, began_with: Scene, life: Life | None = None) -> None:
    """Begin with the scene as it is, and start the workers."""
    check_functions(began_with)
    own = weakref.proxy(core)  # so that nothing here keeps the simulation once nobody else does
    scene = LivingScene(began_with, lambda: own.runtime.states, life)
    states = scene.states if life is None else life.states
    params = core.given.resolved(scene)
    partition = make_partition(scene, params.workers, params.partition, params.solver_labels)
    params = params.with_solvers(scene, partition)
    check_engines(scene, params)
    check_inertias(scene, params)
    is_crowded = life is None and check_crowds(scene)
    if life is None:
        check_mass_ratios(scene, params)
        check_timestep(scene, params)
    make_worker_engine(scene, params)  # what is wrong with its shapes is found before anything starts
    algorithms = load_algorithms(params.algorithms)
    detection = Detection(scene, params, algorithms, states)
    membership = Membership(partition, params.workers)
    membership.remove(np.flatnonzero(~scene.alive).astype(np.int32))
    core.now = now = StepContext(
        scene,
        params,
        algorithms,
        membership,
        detection,
        Loads(scene, params),
        Repartition(scene, params.workers),
        CommandBuilder(scene, params.workers, algorithms.command_lists),
        [],
    )
    # Workers have no use for the partition, which may be as long as the scene.
    core.runtime = make_runtime(scene, replace(params, partition="auto"), params.workers, mail_room(core))
    core.runtime.states[:] = states
    contacts = Contacts.none()
    if life is None:
        contacts = _start_contacts(core)
        if not is_crowded:
            warn_of_penetration(scene, contacts)
    now.replies = [StepReply(contacts)]
    core.coupling = make_coupling(now)
    core.elastic = Elastic(params, scene.body_count)
    core.frozen, core.glued = Frozen(), GluedBodies(scene)
    core.kinematic = KinematicBodies(scene, params)
    core.queries = DistributedQueries(now, core.runtime, core.kinematic)
    core.sensing = Sensing(now, core.runtime, core.kinematic, lambda: own.frozen.is_used)
    core.reports = StepReports({SensorEvents: lambda: own.sensor_events()})
    core.recovery = Recovery(
        scene, params, core.runtime, now.commands, core.frozen, core.incidents, lambda ids: remove_bodies(own, ids)
    )
    core.profile, core.last_step_ms = StepProfile(), 0.0
    core.has_stepped = core.is_closed = False
    core.stopped = None
    trim()  # of what was needed to start: 400 to 550 bytes of a body


def _start_contacts(core: Core) -> Contacts:
    """Contacts of the scene as it starts."""
    now, states = core.now, core.runtime.states
    if now.params.detect == "server":
        return now.detection.all_contacts(states)
    return find_start_contacts(now.scene, now.params, now.algorithms, now.membership, states, core.runtime.step)
