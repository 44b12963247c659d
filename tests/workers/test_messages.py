"""Every message survives the way through a buffer, whatever is in it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lapjoint.workers.messages import MESSAGES, StepCommand, StepReply, pack, unpack

every_kind = pytest.mark.parametrize("kind", MESSAGES)


@st.composite
def random_messages(draw: st.DrawFn, kind: type) -> Any:
    values = {}
    for field in fields(kind):
        shape = (draw(st.integers(0, 9)), *field.metadata["shape"])
        values[field.name] = draw(arrays.arrays(field.metadata["dtype"], shape))
    return kind(**values)


def equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and all(
        getattr(a, field.name).dtype == getattr(b, field.name).dtype
        and getattr(a, field.name).shape == getattr(b, field.name).shape
        and getattr(a, field.name).tobytes() == getattr(b, field.name).tobytes()  # NaN and -0 too
        for field in fields(a)
    )


@every_kind
@given(data=st.data(), spare=st.integers(0, 40), dirt=st.integers(0, 255))
def test_there_and_back(kind: type, data: st.DataObject, spare: int, dirt: int) -> None:
    message = data.draw(random_messages(kind))
    size = pack(message, memoryview(bytearray(10_000)))
    memory = bytearray([dirt]) * (size + spare)  # what lies around it does not matter
    buffer = memoryview(memory)
    assert pack(message, buffer) == size
    assert memory[size:] == bytearray([dirt]) * spare
    received = unpack(kind, buffer)
    assert equal(received, message)
    buffer[:] = bytes(len(buffer))  # the next message; the one received is a copy
    assert equal(received, message)


@every_kind
@given(data=st.data())
def test_a_buffer_that_is_too_small(kind: type, data: st.DataObject) -> None:
    message = data.draw(random_messages(kind))
    size = pack(message, memoryview(bytearray(10_000)))
    small = bytearray(size - 1)
    with pytest.raises(ValueError, match=f"a {kind.__name__} of {size} bytes does not fit into {size - 1}"):
        pack(message, memoryview(small))
    assert not any(small), "nothing was written"


@every_kind
def test_an_empty_message(kind: type) -> None:
    buffer = memoryview(bytearray(1000))
    assert pack(kind(), buffer) == 8 * len(fields(kind))
    assert equal(unpack(kind, buffer), kind())
    for field in fields(kind):
        assert getattr(kind(), field.name).shape == (0, *field.metadata["shape"])


def test_all_messages_are_listed() -> None:
    assert set(MESSAGES) == {StepCommand, StepReply}


def test_other_types_of_numbers_are_converted() -> None:
    buffer = memoryview(bytearray(1000))
    pack(StepCommand(activate=[3, 1], forces=np.ones((2, 6), np.float32)), buffer)  # type: ignore[arg-type]
    received = unpack(StepCommand, buffer)
    assert received.activate.tolist() == [3, 1]
    assert received.activate.dtype == np.int32
    assert received.forces.dtype == np.float64
