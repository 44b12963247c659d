"""Changes of a scene in motion: bodies and joints that are added, removed or break, and who has to know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from ..arrays.pages import trim
from ..engines import check_engines, check_inertias, supports
from ..errors import LapjointError
from ..params.engine_choice import EngineChoice
from ..scene.content import states_from
from ..scene.living import LivingScene
from ..step_tables import TABLES
from ..system.shortage import short_of
from .added_bodies import nearest_workers
from .core import Core
from .coupling import coupling_type
from .crowds import check_crowds
from .long_steps import check_timestep
from .mass_ratios import check_mass_ratios

Ids = NDArray[np.int32]


@contextmanager
def adding(core: Core, what: str) -> Iterator[LivingScene]:
    """Where the scene gets more bodies or joints: it, or nothing changes."""
    require_engine(core, "added bodies", f"{what}: scenes stay as they are")
    scene, params = core.scene, core.params
    _, first, first_joint = scene.extent
    with scene.open(core.now.step_count):
        yield scene
        check_inertias(scene, params, first)
        check_crowds(scene, first)
        asked = [kind.asked_by(scene, params, first, first_joint) for kind in TABLES.values() if kind.feature]
        if scene.joint_count > first_joint or any(asked):
            check_engines(scene, params, warn=False)
    if scene.extent[1:] == (first, first_joint):
        return
    if scene.joint_count > first_joint:
        check_mass_ratios(scene, params)
    if scene.body_count > first:
        check_timestep(scene, params, first)
    with core.use.to_the_end(what):
        if scene.body_count > first:
            _give_workers(core, first)
        note_changes(core)


def _give_workers(core: Core, first: int) -> None:
    """Give bodies from number `first` on, which are new, to the workers that they are nearest to."""
    now, scene = core.now, core.scene
    with short_of(f"{scene.body_count:,} bodies"):
        core.runtime.set_body_count(scene.body_count, mail_room(core))
    states = core.runtime.states
    workers = nearest_workers(states_from(scene, first), states[:first], now.membership, scene.spans)
    states[first:] = states_from(scene, first)
    now.membership.add(workers)
    now.commands.add_bodies()
    now.repartition.add_bodies(now.membership)
    core.coupling.add_bodies(workers)
    note_placed(core, np.arange(first, scene.body_count, dtype=np.int32))


def remove_bodies(core: Core, body_ids: Ids) -> None:
    """Take bodies out, and their joints with them."""
    now, scene = core.now, core.scene
    core.frozen.release(body_ids.tolist())
    core.reports.touches.remove(body_ids, scene.bodies, now.step_count)
    core.runtime.states[body_ids] = 0.0
    joints = scene.remove(body_ids, now.step_count)
    if len(joints):
        now.commands.break_joints(joints)
    now.membership.remove(body_ids)
    now.commands.remove(body_ids)
    blocks = scene.release()
    for block in blocks:
        core.runtime.release(block)
        now.commands.release(block)
    if blocks:
        trim()
    note_changes(core)


def break_joints(core: Core, joint_ids: Ids, step_count: int | Ids) -> None:
    """Have joints hold nothing any more, for all workers."""
    core.scene.remove_joints(joint_ids, step_count)
    core.now.commands.break_joints(joint_ids)
    note_changes(core)


def note_changes(core: Core) -> None:
    """Bodies or joints have come or gone."""
    core.now.detection.note_changes()
    core.now.loads.note_changes()
    core.coupling.note_changes()


def note_placed(core: Core, body_ids: Ids) -> None:
    """These bodies are where they were not before."""
    if core.now.membership.worker_count > 1 and core.now.loads.may_migrate:
        core.now.repartition.placed.add(body_ids)


def require_engine(core: Core, feature: str, what: str) -> None:
    """Raise where an engine of the simulation lacks a feature."""
    for name in EngineChoice.parse(core.params.engine).names:
        if feature not in supports(name).features:
            raise LapjointError(f"{what} with the engine {name}, expected bullet")


def mail_room(core: Core) -> int:
    """Bytes that a message between two workers can have, for as many bodies as there are."""
    return coupling_type(core.params).mail_room(core.scene.living_count, core.params)
