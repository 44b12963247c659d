"""The same bits today, tomorrow, and wherever the workers live.

The goldens change when the scenes, the engine or the algorithms change what they compute. Whoever means to do that
prints the new ones with `python tests/simulation/test_determinism.py`.
"""

from __future__ import annotations

import platform
import sys
from typing import Any

import pytest

from lapjoint import Params, Simulation, scenes

STEPS, TIMESTEP = 100, 0.005
CASES = {
    # scene: about how many bodies, workers, growth depth
    "bridge": (106, 2, 1),
    "bowl": (120, 3, 0),
    "plank": (81, 2, 0),
}
GOLDEN = {
    "bridge": "763c2bb6d1b203ae",
    "bowl": "8c59e2093fb1d726",
    "plank": "d6a99b50fec52f29",
}
DEFAULT_GOLDEN = {
    # scene: about how many bodies, hash
    "bowl": (120, "ae73faea38f2df4f"),
    "building": (120, "e151ebab06330a64"),
    "bridge": (106, "4a5abaf30fa89a70"),
}
"""Of a run without options: substeps, two workers, tight."""
PAPER = {"load": "bodies", "linger": 0, "repartition": 0}
PAPER_BOWL = "eb5aa46f4380ee2c"
# Elsewhere, compilers and mathematical libraries round in other places.
HERE = sys.platform == "linux" and platform.machine() == "x86_64"


def final_hash(name: str, runtime: str, **more: Any) -> str:
    size, workers, growth_depth = CASES[name]
    settings = {"timestep": TIMESTEP, "growth_depth": growth_depth, "validate": True, "solver": "sequential", **more}
    params = Params.from_options(workers=workers, runtime=runtime, **settings)
    with Simulation(scenes.build(name, size), params) as simulation:
        overlap = 0
        for _ in range(STEPS):
            simulation.step()
            overlap += len(simulation.workers.overlap)
        assert overlap > 0, "workers that never meet prove nothing"
        return simulation.state_hash


@pytest.mark.parametrize(
    "name", [name if name == "plank" else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
@pytest.mark.parametrize("solver", ["substeps", "sequential"])
def test_golden(name: str, solver: str) -> None:
    """Goldens are of the sequential solver, which computes what Bullet does."""
    hashes = [final_hash(name, runtime, solver=solver) for runtime in ("inline", "process")]
    assert len(set(hashes)) == 1, f"runs and runtimes differ: {hashes}"
    if HERE and solver == "sequential":
        assert hashes[0] == GOLDEN[name]


def default_hash(name: str, runtime: str) -> str:
    size, _ = DEFAULT_GOLDEN[name]
    with Simulation(scenes.build(name, size), Params(workers=2, runtime=runtime, validate=True)) as simulation:
        simulation.step(STEPS)
        assert simulation.profile.exchanges > 0, "workers that never meet prove nothing"
        return simulation.state_hash


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFAULT_GOLDEN)
def test_golden_of_the_default(name: str) -> None:
    hashes = [default_hash(name, runtime) for runtime in ("inline", "process")]
    assert len(set(hashes)) == 1, f"runtimes differ: {hashes}"
    assert not HERE or hashes[0] == DEFAULT_GOLDEN[name][1]


def test_a_thin_wall_that_moves_slowly_is_not_fast() -> None:
    """Grains in a turning drum, which is a mesh: contacts are those of where they are, as before there were others."""
    with Simulation(scenes.build("drum", 100), Params(workers=1, runtime="inline")) as simulation:
        simulation.step(60)
        assert not HERE or simulation.state_hash == "4ecb056f1b267f08"


@pytest.mark.slow
def test_the_paper_s_own_balancing_stays_as_it_was() -> None:
    for more in ({}, {"algorithms": "reference"}):
        found = final_hash("bowl", "inline", **PAPER, **more)
        assert not HERE or found == PAPER_BOWL


if __name__ == "__main__":
    for scene_name in CASES:
        print(f'    "{scene_name}": "{final_hash(scene_name, "process")}",')
    for scene_name, (body_count, _) in DEFAULT_GOLDEN.items():
        print(f'    "{scene_name}": ({body_count}, "{default_hash(scene_name, "process")}"),')
