"""How many steps workers take by themselves, and what they send of the last one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .core import Core

TOGETHER_MS = 500.0
"""What steps that workers take by themselves may take, about: so long nobody is asked, not by Ctrl-C either."""


def most_steps(core: Core, left: int, is_watched: bool) -> int:
    """How many of the steps that are left the workers take by themselves: as many as nobody looks into, decides about
    or changes anything in. Results do not depend on it. `is_watched`: somebody looks after every step."""
    now = core.now
    if is_watched or now.params.validate or now.commands.forces or core.frozen.is_used:
        return 1
    if core.sensing.one_by_one or core.glued.is_any_whole:
        return 1
    limits = [left, core.recovery.most_steps(now.step_count), core.elastic.most_steps(now.step_count)]
    if now.membership.worker_count > 1:
        limits.append(core.coupling.most_steps(now))
    if core.last_step_ms:
        limits.append(int(TOGETHER_MS / core.last_step_ms))
    return max(1, min(limits)) if now.step_count else 1


def wants_contacts(core: Core, steps: int, wanted: Sequence[Callable[[int], bool]]) -> bool:
    """Whether workers send the contacts of the last of so many steps. Others are sent to who asks; where workers
    measure nothing, everybody does. `wanted` are called with the number of the step."""
    now, after = core.now, core.now.step_count + steps
    measured = all(len(reply.step_measures) for reply in now.replies)
    if now.params.validate or not measured or core.elastic.is_time_to_look(after):
        return True
    if any(one(after) for one in wanted):
        return True
    return now.membership.worker_count > 1 and core.coupling.needs_contacts(now, after)
