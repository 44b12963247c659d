"""Checkpoints with a right checksum and wrong contents: refused before anything is restored."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lapjoint import Checkpoint, CheckpointWriter, LapjointError, Params, Simulation, scenes
from lapjoint.checkpoint.layout import read_checkpoint, write_checkpoint
from lapjoint.engines import EngineState
from lapjoint.engines.bullet import BulletEngine

Arrays = dict[str, NDArray[Any]]
BODIES, WORKERS = 61, 3


@pytest.fixture(scope="module", params=["blend", "tight"])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Arrays, dict[str, Any]]:
    """Arrays and description of a checkpoint of a bridge on three workers."""
    params = Params(workers=WORKERS, runtime="inline", coupling=request.param)
    with Simulation(scenes.build("two-way-bridge", 60), params) as simulation:
        assert simulation.scene.body_count == BODIES
        simulation.step(20)
        path = CheckpointWriter(tmp_path_factory.mktemp("saved"), simulation).save(simulation)
    arrays, description = read_checkpoint(path)
    return arrays, description


def resume(folder: Path, arrays: Arrays, description: dict[str, Any], **changed: Any) -> None:
    path = folder / "step-000000020.checkpoint"
    write_checkpoint(path, description, arrays)
    with Checkpoint(path).resume(**changed) as simulation:
        simulation.step(2)


def wrong(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """An array as it cannot be: of another shape or type."""
    yield np.concatenate([array, array[:1]]) if len(array) else np.zeros((1, *array.shape[1:]), array.dtype)
    yield array.reshape(-1) if array.ndim > 1 else array[:, None]
    yield array.astype(np.int16)


OF_ANY_LENGTH = (
    "contact_bodies",
    "loads/cpu_ms",
    "/contacts",
    "/set",
    "/broken",
    "/requested",
    "/touching",
)
"""What may be longer by a row and make sense."""


@pytest.mark.slow
def test_every_array_is_checked(saved: tuple[Arrays, dict[str, Any]], tmp_path: Path) -> None:
    arrays, description = saved
    resume(tmp_path, arrays, description)
    for name, array in arrays.items():
        if name == "scene":
            continue
        for number, changed in enumerate(wrong(array)):
            if number == 0 and name.endswith(OF_ANY_LENGTH):
                continue
            with pytest.raises(
                LapjointError, match=rf"damaged checkpoint \(missing or wrong .*{name.partition('/')[0]}"
            ):
                resume(tmp_path, {**arrays, name: changed}, description)
        rest = {key: value for key, value in arrays.items() if key != name}
        if name != "loads/cpu_ms":
            with pytest.raises(LapjointError, match="damaged checkpoint"):
                resume(tmp_path, rest, description)


def put(row: Any, value: int) -> Callable[[NDArray[Any]], None]:
    return lambda array: array.__setitem__(row, value)


NUMBERS: list[tuple[str, Callable[[NDArray[Any]], None], str]] = [
    ("membership/bits", put((5, 0), 1 << 40), "membership/bits names workers beyond 2"),
    ("membership/bits", put((5, 0), 0), "membership/bits has no worker for body 5"),
    ("commands/known", put((5, 0), 1 << WORKERS), "commands/known names workers beyond 2"),
    ("detection/contacts", put((0, 1), BODIES), "detection/contacts has numbers"),
    ("detection/contacts", put(0, 7), "detection/contacts has 7 with 7, expected two bodies"),
    ("last_step/0/contact_bodies", put(0, -1), "contact_bodies has -1 with -1, expected two bodies"),
    ("last_step/1/contact_bodies", put((0, 0), 1 << 30), "contact_bodies has numbers"),
    ("last_step/0/contact_bodies", put((0, 0), -(1 << 30)), "contact_bodies has numbers"),
    ("membership/load", put(0, -1), "membership/load has numbers"),
]


@pytest.mark.parametrize(("name", "change", "text"), NUMBERS, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("workers", [WORKERS, 2])
def test_bodies_and_workers_that_do_not_exist(
    saved: tuple[Arrays, dict[str, Any]], name: str, change: Any, text: str, workers: int, tmp_path: Path
) -> None:
    """Compiled code would write beyond its arrays."""
    arrays, description = saved
    changed = arrays[name].copy()
    change(changed)
    with pytest.raises(LapjointError, match=text):
        resume(tmp_path, {**arrays, name: changed}, description, workers=workers)


@pytest.mark.parametrize(
    ("turns", "text"),
    [
        ([[0, 0, 1], [0, 0, 2]], "coupling/turns"),
        ([[0, 0, 1], [1, 0, 2], [1, 2, 0]], "coupling/turns has two turns for one pair"),
        ([[0, 0, 1], [0, 0, 0], [1, 0, 0]], "coupling/turns has two pairs of worker 1 in one turn"),
        ([[0, -1, 1], [-1, 0, 2], [1, 2, 0]], "coupling/turns has numbers"),
    ],
)
def test_turns_that_cannot_be(
    saved: tuple[Arrays, dict[str, Any]], turns: list[list[int]], text: str, tmp_path: Path
) -> None:
    arrays, description = saved
    if description["params"]["coupling"] == "tight":
        with pytest.raises(LapjointError, match=text):
            resume(tmp_path, {**arrays, "coupling/turns": np.array(turns, np.int32)}, description)


VALUES: list[tuple[str, str, Any]] = [
    ("last_step", "step_count", -1),
    ("last_step", "step_count", "20"),
    ("last_step", "replies", []),
    ("last_step", "replies", [1, 2, 3]),
    ("commands", "iterations", 0),
    ("repartition", "wanted_count", 0),
    ("elastic", "least", None),
    ("recovery", "quarantined", [BODIES]),
    ("recovery", "failed_at", [[-1, [1]]]),
]


@pytest.mark.parametrize(("part", "name", "value"), VALUES)
def test_values_that_cannot_be(
    saved: tuple[Arrays, dict[str, Any]], part: str, name: str, value: Any, tmp_path: Path
) -> None:
    arrays, description = saved
    parts = {**description["parts"], part: {**description["parts"][part], name: value}}
    with pytest.raises(LapjointError, match=rf"damaged checkpoint \(missing or wrong .*{part}"):
        resume(tmp_path, arrays, {**description, "parts": parts})
    del parts[part]
    with pytest.raises(LapjointError, match="damaged checkpoint"):
        resume(tmp_path, arrays, {**description, "parts": parts})


def test_an_engine_state_that_is_another_s(saved: tuple[Arrays, dict[str, Any]], tmp_path: Path) -> None:
    """Bytes of a worker's engine: torn, and of bodies that do not exist."""
    arrays, description = saved
    for changed in (arrays["workers/0"][:-8], arrays["workers/0"][:64], np.zeros(500, np.uint8)):
        with pytest.raises(LapjointError, match=r"damaged checkpoint .*workers/0"):
            resume(tmp_path, {**arrays, "workers/0": changed}, description)


def test_native_algorithms_check_ranges_at_their_border() -> None:
    from lapjoint import _algorithms as native

    def bits(value: int) -> NDArray[np.uint64]:
        return np.full((4, 1), value, np.uint64)

    none, one = np.empty(0, np.int32), np.ones(1, np.int32)
    with pytest.raises(ValueError, match="workers that do not exist"):
        native.command_lists(bits(8), bits(1), 3, none, none)
    with pytest.raises(ValueError, match="workers that do not exist"):
        native.command_lists(bits(1), bits(8), 3, none, none)
    with pytest.raises(ValueError, match="bodies to set that do not exist"):
        native.command_lists(bits(1), bits(1), 3, 4 * one, none)
    with pytest.raises(ValueError, match="rows of workers that do not exist"):
        native.command_lists(bits(1), bits(1), 3, none, 3 * one)
    with pytest.raises(ValueError, match="different number of bodies or workers"):
        native.command_lists(bits(1), bits(1)[:3].copy(), 3, none, none)
    with pytest.raises(ValueError, match="one that is not among the 4 bodies"):
        native.build_graph(4, none.reshape(0, 2), [np.array([[0, 4]], np.int32)])
    graph = native.build_graph(4, none.reshape(0, 2), [])
    loads = [np.ones(3, np.int64), np.ones(3, np.int64), np.ones(4, np.int64)]
    with pytest.raises(ValueError, match="workers that do not exist"):
        native.assign_overlap(1, graph[0], graph[1], bits(8), *loads)
    with pytest.raises(ValueError, match="costs of a different number"):
        native.assign_overlap(1, graph[0], graph[1], bits(1), *loads[:2], np.ones(5, np.int64))
    with pytest.raises(ValueError, match="offsets"):
        native.compute_weights(1, graph[0], graph[1], bits(1), one, np.array([0, 2], np.int32), none, np.empty(0))
    with pytest.raises(ValueError, match="offsets beyond the rows"):
        native.blend(np.array([0, 2], np.int32), np.ones(1), np.ones((1, 13)), one, np.ones((4, 13)))


def test_a_worker_that_cannot_restore_its_engine_is_named_in_one_line(
    saved: tuple[Arrays, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole traceback was quoted."""

    def refuse(engine: BulletEngine, state: EngineState) -> None:
        raise ValueError("states that do not belong together")

    monkeypatch.setattr(BulletEngine, "restore", refuse)
    arrays, description = saved
    with pytest.raises(LapjointError) as caught:
        resume(tmp_path, arrays, description)
    expected = r"cannot go on from this checkpoint: .*worker 0 failed: ValueError: states that do not belong together"
    assert re.search(expected, str(caught.value))
    assert "\n" not in str(caught.value)
