"""`lapjoint run --workers auto`: what it says before, while and after it tries workers."""

from __future__ import annotations

from dataclasses import replace

from ..params import Params
from ..params.count_choice import CountChoice
from ..scene import Scene
from ..trials import known_count, tried_count
from .params_options import Given
from .shared import console, counted


def auto_workers(given: Given, params: Params, scene: Scene, steps: int | None) -> CountChoice:
    """How many workers a run of so many steps has; the reason names options. What trials found is printed at once, for
    they take time and the run may take long."""
    with given.naming_options():
        choice = known_count(scene, params, steps)
    if choice is None:
        given.coupling(replace(params, workers=2), scene)  # what is refused then is refused before anything starts
        with console.status("", refresh_per_second=4) as status, given.naming_options():
            choice = tried_count(
                scene, params, steps, lambda count: status.update(f"trying {counted(count, 'worker')}")
            )
        console.print(f"{counted(choice.workers, 'worker')}: {choice.reason}", markup=False, soft_wrap=True)
    return replace(choice, reason=given.in_options(choice.reason))
