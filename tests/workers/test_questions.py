"""Questions between two steps: their parts, their answers, and workers that do not answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapjoint import Params, Scene, Simulation, Sphere
from lapjoint.errors import WorkerError
from lapjoint.workers import questions
from lapjoint.workers.messages import Ask, WorkerFailure
from lapjoint.workers.questions import Answers, Question, ask


@pytest.fixture(autouse=True)
def _doubling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        questions.ANSWERS, "double", lambda engine, arrays: {name: 2 * array for name, array in arrays.items()}
    )
    monkeypatch.setitem(questions.ANSWERS, "states", lambda engine, arrays: {"states": engine.get_states()})


@given(lengths=st.lists(st.none() | st.integers(0, 3000), min_size=1, max_size=4), body_count=st.integers(0, 2))
def test_parts_are_joined(lengths: list[int | None], body_count: int) -> None:
    workers = [Answers(None) for _ in lengths]  # type: ignore[arg-type]

    def send(commands: Sequence[Any]) -> list[Any]:
        assert all(command is None or len(command.data) <= 2048 * (1 + body_count) for command in commands)
        return [None if c is None else worker.part(c) for worker, c in zip(workers, commands, strict=True)]

    asked = [
        None if length is None else Question("double", {"a": np.arange(length), "b": np.ones((length, 3))})
        for length in lengths
    ]
    for length, answer in zip(lengths, ask(send, asked, body_count), strict=True):
        assert (answer is None) == (length is None)
        if answer is not None:
            np.testing.assert_array_equal(answer["a"], 2 * np.arange(length))
            np.testing.assert_array_equal(answer["b"], 2 * np.ones((length, 3)))


def test_a_worker_that_fails_is_named() -> None:
    def send(commands: Sequence[Ask | None]) -> list[object]:
        return [None, WorkerFailure(1, "gone", "it ended with exit code 9")]

    with pytest.raises(
        WorkerError, match="worker 1 is gone: it ended with exit code 9; it is replaced in the next step"
    ):
        ask(send, [None, Question("double", {})], 1)


@pytest.mark.parametrize("coupling", ["blend", "tight"])
def test_nothing_of_the_next_step_depends_on_a_question(coupling: str) -> None:
    scene = Scene("row")
    scene.add_bodies(Sphere(0.5), [(0.999 * k, 0, 0) for k in range(6)])
    hashes = []
    for asked in (False, True):
        with Simulation(scene, Params(workers=2, coupling=coupling, runtime="inline")) as simulation:
            for _ in range(5):
                simulation.step()
                if asked:
                    questions_ = [Question("states", {}, simulation.workers.overlap) for _ in range(2)]
                    answers = ask(simulation._core.runtime.step, questions_, scene.body_count)
                    states = simulation.states
                    for worker, answer in enumerate(answers):
                        assert answer is not None
                        active = simulation.workers.membership.active(worker)
                        np.testing.assert_allclose(answer["states"], states[active], rtol=1e-6)  # float32
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]
