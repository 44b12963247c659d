"""Messages between server and workers that fuzzing changes."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fuzz_changes import Content, changed, changed_bytes
from fuzz_scenes import Changes, Target, pile
from lapjoint import (
    Params,
    Simulation,
)
from lapjoint.arrays.packing import pack_arrays, unpack_arrays
from lapjoint.workers import codec, messages
from lapjoint.workers.replies import reply_of
from lapjoint.workers.runtimes.inline import InlineRuntime
from lapjoint.workers.runtimes.remote_worker import RemoteSide, table
from lapjoint.workers.runtimes.shared import SharedMemory
from lapjoint.workers.worker import Worker


def full_messages() -> list[Any]:
    """One of each message, with something in every field."""
    rng = np.random.default_rng(4)
    made: dict[type, Any] = {}
    for kind in messages.MESSAGES:
        values: dict[str, Any] = {}
        for field in fields(kind):
            if field.metadata:
                shape = (3, *field.metadata["shape"])
                dtype = field.metadata["dtype"]
                values[field.name] = rng.integers(0, 3, shape).astype(dtype)
        if kind is messages.WorkerFailure:
            values = {"worker": 1, "kind": "gone", "text": "process 7 was killed", "body_ids": (1, 2)}
        if kind is messages.StepCommand or kind is messages.NeighbourCommand:
            values = {"activate": np.arange(3, dtype=np.int32), "force_ids": np.array([1], np.int32)}
            values |= {"forces": rng.random((1, 6)), "number": 1}
        made[kind] = kind(**values)
    step = made[messages.StepCommand]
    moving = messages.StepCommand(
        activate=np.arange(6, dtype=np.int32),
        overlap=np.array([1, 2], np.int32),
        slot=np.array([0, 1], np.int32),
        iterations=3,
        steps=2,
        joint_targets=messages.JointTargets(np.array([0], np.int32), np.zeros((1, 2))),
    )
    remote = messages.RemoteCommand("all", step, np.tile(np.eye(1, 13, 3), (3, 1)))
    return [*made.values(), moving, remote, messages.RemoteReply(made[messages.StepReply])]


class WorkerMessages(Target):
    """What a worker is sent, taken out of bytes and executed as its process does. What it cannot execute it reports as
    a failure of its own, with the traceback: that is how a worker refuses."""

    refusals = (Exception,)
    is_shown = False

    def __init__(self) -> None:
        self.seeds = []
        for message in full_messages():
            arrays, description = unpack_arrays(codec.to_bytes(message))
            self.seeds.append(Content(description, {name: array.copy() for name, array in arrays.items()}))

    def attempt(self, seed: int, changes: Changes, folder: Path) -> None:

        content = changed(self.seeds[seed], changes)
        data = changed_bytes(
            b"".join(bytes(part) for part in pack_arrays(content.arrays, content.description)), changes
        )
        scene, params = pile(), Params(runtime="inline", workers=1)
        params = params.resolved(scene) if hasattr(params, "resolved") else params
        states, worker_states = (SharedMemory(8 * 13 * 6 * n) for n in (1, 2))
        try:
            table(states)[:] = scene.states
            worker = Worker(0, scene, params, table(states), table(worker_states))
            remote = RemoteSide(worker, scene, params, states, worker_states, False)
            message = codec.from_bytes(np.frombuffer(data, np.uint8))
            if getattr(getattr(message, "command", message), "steps", 1) not in range(20):
                return  # as many as it is told, however long that takes
            if isinstance(message, messages.RemoteCommand):
                remote.answer(message)
            elif isinstance(message, messages.Command):
                codec.to_bytes(worker.execute(message))
                worker.prepare()
        finally:
            for block in (states, worker_states):
                block.close()


class WorkerReplies(Target):
    """What workers answer, as the server of worker processes takes it: it refuses it or goes on. What is within an
    answer to a question, which no step depends on, stays as it is."""

    def __init__(self) -> None:
        self.seeds = [Params(workers=2, runtime="inline", coupling=c) for c in ("tight", "blend")]

    def attempt(self, seed: int, changes: Changes, folder: Path) -> None:
        step, count = InlineRuntime.step, [0]
        turn = changes[0][3] % 4 if changes else 0

        def changed_step(runtime: Any, commands: Any, meanwhile: Any = None) -> Any:
            answers = step(runtime, commands, meanwhile)
            count[0] += any(isinstance(command, messages.StepCommand) for command in commands)
            if count[0] == 1 + turn:
                count[0] += 1
                answers[0] = reply_of(0, partial(_changed_message, answers[0], changes), runtime._scene, 1)
                if isinstance(answers[0], messages.WorkerFailure):
                    runtime._failures[0] = answers[0]
            return answers

        InlineRuntime.step = changed_step  # type: ignore[method-assign]
        try:
            with Simulation(pile(), self.seeds[seed]) as simulation:
                for _ in range(4):
                    simulation.step()
                simulation.contacts.pairs()
        finally:
            InlineRuntime.step = step  # type: ignore[method-assign]


def _changed_message(message: Any, changes: Changes) -> Any:
    arrays, description = unpack_arrays(codec.to_bytes(message))
    content = changed(Content(description, {name: array.copy() for name, array in arrays.items()}), changes)
    data = b"".join(bytes(part) for part in pack_arrays(content.arrays, content.description))
    return codec.from_bytes(np.frombuffer(changed_bytes(data, changes), np.uint8))
