"""`lapjoint run --picture`: a picture of the last state."""

from __future__ import annotations

from pathlib import Path

from ..params.coupling_choice import traits
from ..simulation import Simulation
from ..view.draw.coloring import body_colors
from ..view.draw.context import open_context
from ..view.draw.picture import picture
from .shared import console, make_parents


def check() -> None:
    """Refuse a machine that cannot draw, before anything starts."""
    open_context().release()


def draw_last_state(simulation: Simulation, file: Path) -> None:
    """Coloured by worker, overlap bodies mixed by their weights (Figure 1), or with tight coupling bodies inside paler
    than those at the interface; by label with one worker."""
    mode = "interface" if traits(simulation.params.coupling).exchanges else "worker"
    colors = None
    if simulation.workers.membership.worker_count > 1:
        colors = body_colors(mode, weights=simulation.workers.weights(), interface=simulation.workers.interface)
    make_parents(file)
    picture(simulation.scene, file, simulation.states, colors=colors, static_poses=simulation.kinematic.static_poses)
    console.print(f"picture of the last state: {file}", markup=False)
