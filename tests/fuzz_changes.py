"""What fuzzing changes: values of a description, numbers of arrays, bytes of what is written in the end.

A change is a kind and three numbers, which say where and what, modulo whatever there is. So any list of them is a case,
a short list is a simple case, and a case is a line of JSON.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Change = tuple[str, int, int, int]


@dataclass
class Content:
    """Of a file or a message: a description in JSON, and named arrays."""

    description: Any
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


def _deep(depth: int = 300) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


VALUES: list[Callable[[], Any]] = [
    *(lambda value=value: value for value in (None, True, False, 0, 1, -1, 2, 7, 100, 255, 65536, 0.5, -0.0, 1e-300)),
    *(lambda value=value: value for value in (2**31 - 1, -(2**31), 2**31, 2**63 - 1, 2**63, 2**64, 10**30, 1e308)),
    *(lambda value=value: value for value in (float("nan"), float("inf"), -float("inf"))),
    *(lambda value=value: value for value in ("", "x", "..", "../../etc/passwd", "\0", "ü" * 40, "0", "bullet", "Box")),
    *(lambda value=value: copy.deepcopy(value) for value in ([], {}, [0], [1.0, 2.0, 3.0], {"": 0}, [[]], [None] * 13)),
    lambda: "x" * 100_000,
    lambda: [0] * 10_000,
    _deep,
]
NUMBERS = [0, 1, -1, 2, 3, 5, 100, 255, 256, 2**15, 2**16, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**64 - 1]
NUMBERS += [0.5, -0.5, 1e-30, 1e-300, 1e30, 1e38, 1e300, float("nan"), float("inf"), -float("inf")]  # type: ignore[list-item]
TYPES = ["u1", "i1", "i2", "u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", ">f8", ">i4", "?"]


def changed(content: Content, changes: Sequence[Change]) -> Content:
    """The content with all changes but those of bytes."""
    root = {"": copy.deepcopy(content.description)}
    arrays = dict(content.arrays)
    for kind, where, what, more in changes:
        if kind in OF_DESCRIPTION:
            nodes = list(_nodes(root))
            if nodes:
                holder, key = nodes[where % len(nodes)]
                OF_DESCRIPTION[kind](holder, key, what, nodes)
        elif kind in OF_ARRAYS and arrays:
            name = sorted(arrays)[where % len(arrays)]
            OF_ARRAYS[kind](arrays, name, what, more)
    return Content(root.get(""), arrays)


def changed_bytes(data: bytes, changes: Sequence[Change]) -> bytes:
    """Bytes with the changes that are of bytes."""
    for kind, where, what, more in changes:
        place = (where * 4099 + more) % (len(data) + 1)
        if kind == "flip" and place < len(data):
            data = data[:place] + bytes([data[place] ^ (1 << what % 8)]) + data[place + 1 :]
        elif kind == "cut":
            data = data[:place]
        elif kind == "insert":
            data = data[:place] + what.to_bytes(4, "little") * (1 + more % 64) + data[place:]
        elif kind == "overwrite":
            piece = [b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f", what.to_bytes(8, "little")][more % 4]
            data = data[:place] + piece + data[place + len(piece) :]
        elif kind == "take out":
            data = data[:place] + data[place + 1 + what % 200 :]
    return data


def _nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """All places in a tree: what holds them, and under which key."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(entries)[:2000]:
        yield value, key
        if isinstance(inner, dict | list) and len(inner) < 2000:
            yield from _nodes_below(inner)


def _nodes_below(value: Any) -> Iterator[tuple[Any, Any]]:
    try:
        yield from list(_nodes(value))
    except RecursionError:  # of a value that was put in
        return


def _set(holder: Any, key: Any, what: int, _: Any) -> None:
    holder[key] = VALUES[what % len(VALUES)]()


def _shift(holder: Any, key: Any, what: int, _: Any) -> None:
    """A number becomes another that is near it; what is none stays."""
    if isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
        holder[key] += (what % 9) - 4


def _drop(holder: Any, key: Any, what: int, _: Any) -> None:
    del holder[key]


def _copy(holder: Any, key: Any, what: int, nodes: Any) -> None:
    other, name = nodes[what % len(nodes)]
    holder[key] = copy.deepcopy(other[name])


def _rename(holder: Any, key: Any, what: int, _: Any) -> None:
    if isinstance(holder, dict) and key != "":
        holder[f"{key}{what % 3}"] = holder.pop(key)


OF_DESCRIPTION = {"set": _set, "shift": _shift, "drop": _drop, "copy": _copy, "rename": _rename}


def _element(arrays: dict[str, NDArray[Any]], name: str, what: int, more: int) -> None:
    array = arrays[name] = arrays[name].copy()
    if array.size:
        with np.errstate(all="ignore"):
            number = np.array(NUMBERS[more % len(NUMBERS)])
            array.reshape(-1)[what % array.size] = number.astype(array.dtype, casting="unsafe")


def _nudge(arrays: dict[str, NDArray[Any]], name: str, what: int, more: int) -> None:
    array = arrays[name] = arrays[name].copy()
    if array.size and array.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            array.reshape(-1)[what % array.size] += array.dtype.type(1 + more % 3)


def _fill(arrays: dict[str, NDArray[Any]], name: str, what: int, more: int) -> None:
    with np.errstate(all="ignore"):
        number = np.array(NUMBERS[more % len(NUMBERS)]).astype(arrays[name].dtype, casting="unsafe")
    arrays[name] = np.full_like(arrays[name], number)


def _rows(arrays: dict[str, NDArray[Any]], name: str, what: int, more: int) -> None:
    array = arrays[name]
    if array.ndim == 0:
        return
    kept = more % (len(array) + 1)
    ways = [array[:0], array[:kept], array[kept:], np.concatenate([array, array[:1]]), np.repeat(array, 3, axis=0)]
    arrays[name] = [*ways, array[::-1], np.roll(array, 1, axis=0)][what % 7]


def _shape(arrays: dict[str, NDArray[Any]], name: str, what: int, more: int) -> None:
    array = arrays[name]
    ways = [array.reshape(-1), array[..., None], array[None], array.reshape(-1, 1), array.T]
    ways += [array.reshape(0, 7) if array.size == 0 else array.reshape(-1)[0]]
    arrays[name] = np.asarray(ways[what % len(ways)])


def _type(arrays: dict[str, NDArray[Any]], name: str, what: int, more: int) -> None:
    with np.errstate(all="ignore"):
        arrays[name] = arrays[name].astype(TYPES[what % len(TYPES)])


def _lose(arrays: dict[str, NDArray[Any]], name: str, what: int, more: int) -> None:
    del arrays[name]


def _swap(arrays: dict[str, NDArray[Any]], name: str, what: int, more: int) -> None:
    other = sorted(arrays)[what % len(arrays)]
    arrays[name], arrays[other] = arrays[other], arrays[name]


OF_ARRAYS = {
    "element": _element,
    "nudge": _nudge,
    "fill": _fill,
    "rows": _rows,
    "shape": _shape,
    "type": _type,
    "lose": _lose,
    "swap": _swap,
}
OF_BYTES = ("flip", "cut", "insert", "overwrite", "take out")
