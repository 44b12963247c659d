"""Every message survives the way through bytes, whatever is in it."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lapjoint.arrays.packing import pack_arrays
from lapjoint.engines import Contacts
from lapjoint.step_tables import TABLES, StepTable
from lapjoint.workers import codec, messages
from lapjoint.workers.messages import (
    MESSAGES,
    RemoteCommand,
    RemoteReply,
    StepCommand,
    StepReply,
    StepTimes,
    WorkerFailure,
)

every_kind = pytest.mark.parametrize("kind", MESSAGES)
ROOM = 100_000
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**60), 2**60),
    "int | None": st.none() | st.integers(0, 10**6),
    "float": st.floats(),
    "bool": st.booleans(),
    "str": st.text(),
    "tuple[int, ...]": st.lists(st.integers(0, 10**6)).map(tuple),
}


@st.composite
def rows(draw: st.DrawFn, kind: type) -> Any:
    count = draw(st.integers(0, 5))
    columns = [(one.metadata["dtype"], (count, *one.metadata["shape"])) for one in fields(kind)]
    return kind(*(draw(arrays.arrays(*column)) for column in columns))


@st.composite
def tables(draw: st.DrawFn) -> tuple[StepTable, ...]:
    """Of some kinds."""
    return tuple(draw(rows(kind)) for kind in draw(st.lists(st.sampled_from(list(TABLES.values())), unique=True)))


@st.composite
def random_messages(draw: st.DrawFn, kind: type) -> Any:
    values = {}
    for field in fields(kind):
        if field.metadata:
            shape = (draw(st.integers(0, 9)), *field.metadata["shape"])
            values[field.name] = draw(arrays.arrays(field.metadata["dtype"], shape))
        elif field.name == "times":
            values[field.name] = draw(random_messages(StepTimes))
        elif field.name == "listed":
            values[field.name] = draw(st.none() | rows(Contacts))
        elif field.name == "tables":
            values[field.name] = draw(tables())
        elif str(field.type) in VALUES:
            values[field.name] = draw(VALUES[str(field.type)])
        else:  # another message
            kinds = [inner for inner in MESSAGES if inner.__name__ in str(field.type).split(" | ")]
            assert kinds, field
            values[field.name] = draw(st.none() | st.sampled_from(kinds).flatmap(random_messages))
    return kind(**values)


def equal(a: Any, b: Any) -> bool:
    if isinstance(b, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())  # NaN and -0 too
    if isinstance(b, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    if is_dataclass(b):
        return type(a) is type(b) and all(equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(b))
    return type(a) is type(b) and repr(a) == repr(b)


@pytest.mark.slow
@every_kind
@settings(max_examples=20)
@given(data=st.data(), spare=st.integers(0, 40), dirt=st.integers(0, 255))
def test_there_and_back(kind: type, data: st.DataObject, spare: int, dirt: int) -> None:
    message = data.draw(random_messages(kind))
    size = codec.write(message, memoryview(bytearray(ROOM)))
    memory = bytearray([dirt]) * (size + spare)  # what lies around it does not matter
    buffer = memoryview(memory)
    assert codec.write(message, buffer) == size
    assert memory[size:] == bytearray([dirt]) * spare
    received = codec.read(buffer)
    assert equal(received, message)
    buffer[:] = bytes(len(buffer))  # the next message; the one received is a copy
    assert equal(received, message)
    assert equal(codec.from_bytes(codec.to_bytes(message)), message)


@pytest.mark.slow
@every_kind
@settings(max_examples=10)
@given(data=st.data())
def test_a_buffer_that_is_too_small(kind: type, data: st.DataObject) -> None:
    message = data.draw(random_messages(kind))
    size = codec.write(message, memoryview(bytearray(ROOM)))
    small = bytearray(size - 1)
    with pytest.raises(ValueError, match=f"a {kind.__name__} of {size} bytes does not fit into {size - 1}"):
        codec.write(message, memoryview(small))
    assert not any(small), "nothing was written"


def test_a_message_that_was_never_filled_has_empty_arrays() -> None:
    for kind in set(MESSAGES) - {WorkerFailure}:
        message = codec.from_bytes(codec.to_bytes(kind()))
        assert equal(message, kind())
        for field in fields(kind):
            if field.metadata:
                assert getattr(message, field.name).shape == (0, *field.metadata["shape"])


def test_all_messages_are_listed() -> None:
    defined = {kind for kind in vars(messages).values() if isinstance(kind, type) and is_dataclass(kind)}
    assert {kind for kind in defined if kind.__module__ == messages.__name__} == set(MESSAGES)


def test_other_types_of_numbers_are_converted() -> None:
    sent = StepCommand(activate=[3, 1], forces=np.ones((2, 6), np.float32))  # type: ignore[arg-type]
    received = codec.from_bytes(codec.to_bytes(sent))
    assert received.activate.tolist() == [3, 1]
    assert received.activate.dtype == np.int32
    assert received.forces.dtype == np.float64


def test_what_is_no_message_is_refused() -> None:
    good = codec.to_bytes(StepReply(Contacts(np.zeros((3, 2), np.int32), np.zeros(3, np.int32), np.zeros(3))))
    for bad in (good[:20], good.replace(b"StepReply", b"StepReplx"), good.replace(b"[3, 2]", b"[2, 3]"), bytes(64)):
        with pytest.raises((ValueError, KeyError, TypeError)):
            codec.from_bytes(bad)


@pytest.mark.parametrize(
    ("number", "width"), [(0.5, 4), (-0.0, 4), (0.1, 8), (1e300, 8), (np.nan, 8), (np.inf, 4)], ids=str
)
def test_states_travel_to_the_last_bit_in_as_few_bytes_as_that_takes(number: float, width: int) -> None:
    rows = np.full((1000, 13), number)
    sent = codec.to_bytes(RemoteReply(states=rows))
    assert 13_000 * width <= len(sent) < 13_000 * width + 400
    assert codec.from_bytes(sent).states.tobytes() == rows.tobytes()


def test_a_message_within_a_message() -> None:
    inner = StepCommand(reset=np.arange(4, dtype=np.int32), iterations=7)
    received = codec.from_bytes(codec.to_bytes(RemoteCommand("all", inner, reset=np.ones((4, 13)))))
    assert equal(received.command, inner)
    assert received.reset.shape == (4, 13)


def test_an_array_of_other_numbers_is_refused() -> None:
    data = b"".join(pack_arrays({"activate": np.ones(3)}, {"message": "StepCommand"}))
    with pytest.raises(ValueError, match="activate of a StepCommand is of type float64, expected int32"):
        codec.from_bytes(data)
