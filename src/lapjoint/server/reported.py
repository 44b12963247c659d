"""What is done about the tables that workers report of their last steps."""

from __future__ import annotations

from ..step_tables.breaks import JointBreaks
from ..step_tables.half_turns import HalfTurns
from ..step_tables.hits import Hits
from .core import Core
from .scene_changes import break_joints


def keep_reported(core: Core) -> None:
    """Keep what was reported of the last steps, and act on it: joints that broke are broken for all workers, and for
    good."""
    now = core.now
    found = core.coupling.tables(now) if any(reply.tables for reply in now.replies) else []
    core.reports.add(found, now.scene.bodies, now.step_count)
    for table in found:
        if isinstance(table, JointBreaks) and len(table):
            break_joints(core, table.joint, table.step + now.step_count)
        if isinstance(table, Hits):
            core.glued.note_hits(table)
        if isinstance(table, HalfTurns):
            now.commands.drives.note_turned(table)
