"""The checkpoints and recordings of tests/data/checkpoint-v1-* and recording-v1-*: small files that stay as they are.

They were written by the lapjoint of commit 157f0ff, with `python tests/old_files.py DIRECTORY`, and are never written
again: today's code opens what users have kept from then. `old_files.json` holds what that lapjoint computed from them.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from lapjoint import (
    Checkpoint,
    CheckpointWriter,
    LapjointError,
    Measures,
    Params,
    Recording,
    RecordingWriter,
    Simulation,
    SimulationStopped,
    scenes,
)
from lapjoint.engines.bullet import BulletEngine

DATA = Path(__file__).parent / "data"
EXPECTED = "old_files.json"
MORE_STEPS = 10
WORKER_COUNTS = (1, 2, 3)


# ---- checkpoints -------------------------------------------------------------------------------------------------


@contextmanager
def one_failure() -> Iterator[None]:
    """The next step of an engine fails; those after it do not."""
    step, failed = BulletEngine.step, []

    def fail_once(engine: BulletEngine) -> None:
        if not failed:
            failed.append(True)
            raise LapjointError("the engine failed, to be recorded")
        step(engine)

    with patch.object(BulletEngine, "step", fail_once), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def by_hand(simulation: Simulation) -> None:
    """What a user changes: some of it takes effect only in the step after the checkpoint."""
    simulation.step(8)
    simulation.freeze([5, 20])
    simulation.set_iterations(20)
    simulation.step(4)
    states = simulation.states[[7]].copy()
    states[:, 9] += 1.0
    simulation.set_states([7], states)
    simulation.add_forces([9], [[20.0, 0.0, 10.0]])


def by_hand_tight(simulation: Simulation) -> None:
    simulation.step(8)
    simulation.freeze([5])
    simulation.set_rounds(7)
    simulation.step(4)
    simulation.add_forces([9], [[20.0, 0.0, 10.0]])


def dividing(simulation: Simulation) -> None:
    """Between the two steps of a repartitioning, which is considered every 100 steps."""
    simulation.step()


def more_workers(simulation: Simulation) -> None:
    """Between the two steps in which a third worker joins."""
    simulation.step(11)
    simulation.set_worker_count(3)
    simulation.step()


def quarantined(simulation: Simulation) -> None:
    """A body that was too fast is frozen, and a worker has been replaced."""
    simulation.step(5)
    states = simulation.states[[3]].copy()
    states[:, 7:10] = 1e6
    simulation.set_states([3], states)
    simulation.step(3)
    with one_failure():
        simulation.step()
    simulation.step(3)


def stopped(simulation: Simulation) -> None:
    """A worker failed: the states before the step, and no warm-start data."""
    simulation.step(12)
    with one_failure():
        try:
            simulation.step()
        except SimulationStopped:
            return
    raise AssertionError("the run did not stop")


def twelve_steps(simulation: Simulation) -> None:
    simulation.step(12)


CHECKPOINTS: dict[str, tuple[str, int, int, dict[str, Any], Callable[[Simulation], None]]] = {
    # name: scene, about how many bodies, steps until bodies touch, parameters, what happens before the checkpoint
    "tight": ("bridge", 34, 0, {"workers": 2}, twelve_steps),
    "tight-by-hand": ("bowl", 40, 300, {"workers": 3, "coupling": "tight", "rounds": 5}, by_hand_tight),
    "tight-more-workers": ("chain", 20, 0, {"workers": 2}, more_workers),
    "tight-joint-warm-start": (
        "chain",
        20,
        0,
        {"workers": 2, "joints_together": False, "joint_warm_start": 0.5, "precision": "float64"},
        twelve_steps,
    ),
    "blend": ("plank", 21, 150, {"workers": 2}, twelve_steps),
    "blend-joints": ("chain", 20, 0, {"workers": 3, "coupling": "blend"}, twelve_steps),
    "blend-by-hand": ("bowl", 30, 300, {"workers": 3}, by_hand),
    "blend-dividing": ("bowl", 40, 200, {"workers": 3, "repartition": 1.000001}, dividing),
    "blend-more-workers": ("bowl", 30, 300, {"workers": 2, "max_workers": 5}, more_workers),
    "blend-quarantined": ("bowl", 30, 300, {"workers": 2, "detect": "server", "quarantine": True}, quarantined),
    "blend-stopped": ("plank", 21, 150, {"workers": 2, "on_failure": "stop"}, stopped),
}


def write_checkpoint(path: Path, name: str) -> str:
    """Write the checkpoint; the state hash of the run that wrote it, some steps later."""
    scene, size, settle, params, happen = CHECKPOINTS[name]
    with Simulation(scenes.build(scene, size), Params(runtime="inline", validate=True, **params)) as simulation:
        writer = CheckpointWriter(path, simulation)
        simulation.step(settle)
        happen(simulation)
        assert len(simulation.overlap) + len(simulation.interface), "workers that never meet prove nothing"
        if simulation.is_stopped:
            return ""
        writer.save(simulation)
        simulation.step(MORE_STEPS)
        return simulation.state_hash


def resumed_hashes(path: Path) -> dict[str, str]:
    """State hashes after some more steps, by worker count, and `0`: of the states in the checkpoint."""
    checkpoint, hashes = Checkpoint(path), {}
    for workers in WORKER_COUNTS:
        with checkpoint.resume(workers=workers) as simulation:
            hashes["0"] = simulation.state_hash
            simulation.step(MORE_STEPS)
            hashes[str(workers)] = simulation.state_hash
    return hashes


# ---- recordings --------------------------------------------------------------------------------------------------

RECORDINGS: dict[str, tuple[str, int, int, dict[str, Any]]] = {
    "tight": ("bridge", 34, 0, {"workers": 2}),
    "blend": ("bowl", 30, 300, {"workers": 3}),
}


def write_recording(path: Path, name: str) -> None:
    scene, size, settle, params = RECORDINGS[name]
    with Simulation(scenes.build(scene, size), Params(runtime="inline", **params)) as simulation:
        simulation.step(settle)
        measures = Measures(simulation, "all", one_step_every=2)
        with RecordingWriter(path, simulation, every=4, contacts=True, measures=measures.counts) as writer:
            for step in range(16):
                measures.before_step(simulation)
                with one_failure() if name == "blend" and step == 6 else nullcontext():
                    simulation.step()
                writer.add(simulation, measures.after_step(simulation))


def array_hash(array: Any) -> str:
    """Type, shape and a hash of the bytes of an array."""
    values = np.ascontiguousarray(array)
    return f"{values.dtype} {values.shape} {hashlib.blake2b(values.tobytes(), digest_size=8).hexdigest()}"


def contents(path: Path) -> dict[str, Any]:
    """All that can be read of a recording, as hashes where it is long."""
    recording = Recording(path)
    frames = [
        {
            "step_count": frame.step_count,
            "time": frame.time,
            "states": array_hash(frame.states),
            "membership": array_hash(recording.membership(i)),
            "weights": array_hash(recording.weights(i)),
            "interface": array_hash(recording.interface(i)),
            "contacts": [array_hash(column) for column in vars(recording.contacts(i)).values()],
            "contacts of worker 0": [array_hash(column) for column in vars(recording.contacts(i, 0)).values()],
        }
        for i, frame in enumerate(recording)
    ]
    scene = recording.scene
    return {
        "complete": recording.complete,
        "counts": [recording.body_count, recording.worker_count, recording.every, scene.joint_count],
        "scene": [scene.name, array_hash(scene.states), scene.body_count],
        "params": {name: value for name, value in vars(recording.params).items() if value is not None},
        "events": [event.to_dict() for event in recording.incidents],
        "phases": recording.phases,
        "frames": frames,
        "track": array_hash(recording.track(3)),
        "profile": {name: array_hash(values) for name, values in recording.profile.items()},
        "measures": {name: array_hash(values) for name, values in recording.measures.items()},
    }


# ---- once, by the lapjoint of then -------------------------------------------------------------------------------


def write_all(folder: Path) -> None:
    expected: dict[str, Any] = {"checkpoints": {}, "recordings": {}}
    for name in CHECKPOINTS:
        path = folder / f"checkpoint-v1-{name}"
        later = write_checkpoint(path, name)
        hashes = expected["checkpoints"][name] = resumed_hashes(path)
        assert len(set(hashes.values())) == 1 + len(WORKER_COUNTS), f"{name}: {hashes}"
        workers = str(Checkpoint(path).params.workers)
        assert later in ("", hashes[workers]), f"{name}: the resumed run differs from the one that went on"
        expected["checkpoints"][name]["workers"] = int(workers)
    for name in RECORDINGS:
        path = folder / f"recording-v1-{name}"
        write_recording(path, name)
        expected["recordings"][name] = contents(path)
    (folder / EXPECTED).write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
