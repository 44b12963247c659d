"""Checkpoints of earlier versions resume, and go on bit for bit as they did then; those of tight coupling in rounds go
on from their states."""

from __future__ import annotations

import json
import platform
import sys
from typing import Any

import numpy as np
import pytest

from lapjoint import Checkpoint, make_engine
from old_files import CHECKPOINTS, DATA, EXPECTED, MORE_STEPS, WORKER_COUNTS, resumed_hashes

CASES: dict[str, dict[str, Any]] = json.loads((DATA / EXPECTED).read_text())["checkpoints"]
IN_ROUNDS = [name for name in CASES if name.startswith("tight")]
# Elsewhere, compilers and mathematical libraries round in other places.
HERE = sys.platform == "linux" and platform.machine() == "x86_64"


def test_every_file_has_its_case() -> None:
    files = {path.name.removeprefix("checkpoint-v1-") for path in DATA.glob("checkpoint-v1-*")}
    assert files == set(CASES) == set(CHECKPOINTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in IN_ROUNDS])
def test_a_checkpoint_of_version_1_goes_on_as_it_did_then(name: str) -> None:
    """With the workers it had, and with others."""
    expected = dict(CASES[name])
    path = DATA / f"checkpoint-v1-{name}"
    assert Checkpoint(path).params.workers == expected.pop("workers")
    hashes = resumed_hashes(path)
    assert hashes["0"] == expected["0"]
    assert len(hashes) == 1 + len(WORKER_COUNTS)
    if HERE:
        assert hashes == expected


@pytest.mark.slow
@pytest.mark.parametrize("workers", WORKER_COUNTS)
@pytest.mark.parametrize("name", IN_ROUNDS)
def test_a_checkpoint_of_rounds_goes_on_from_its_states(name: str, workers: int) -> None:
    checkpoint = Checkpoint(DATA / f"checkpoint-v1-{name}")
    assert checkpoint.params.workers == CASES[name]["workers"]
    assert (checkpoint.params.coupling, checkpoint.params.solver) == ("tight", "substeps")
    with pytest.warns(UserWarning, match="written with tight coupling in rounds, .* the run goes on from its states"):
        simulation = checkpoint.resume(workers=workers)
    with simulation:
        assert simulation.state_hash == CASES[name]["0"]
        assert simulation.step_count == checkpoint.step_count
        assert simulation.frozen_ids.tolist() == ([5] if name == "tight-by-hand" else [])
        assert list(simulation.forces) == ([9] if name == "tight-by-hand" else [])
        scene, start, params = simulation.scene, simulation.states, simulation.params
        simulation.step(MORE_STEPS)
        assert simulation.step_count == checkpoint.step_count + MORE_STEPS
        if name == "tight-by-hand":
            assert np.array_equal(simulation.states[5], start[5]), "it is frozen"
            return
        engine = make_engine(scene, params)
        engine.activate(np.arange(scene.body_count), start)
        engine.step(MORE_STEPS)
        # With several workers as far as rounding goes: all begin without warm-start data.
        close = 0.0 if workers == 1 else 1e-12 if params.precision == "float64" else 1e-5
        np.testing.assert_allclose(simulation.states[:, :7], engine.get_states()[:, :7], rtol=0, atol=close)
