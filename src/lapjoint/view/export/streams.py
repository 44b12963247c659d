"""Streams: tables of whole numbers over time, made small: predicted, folded and cut into bytes that compress well."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
LIMIT = 2**28
"""Numbers stay below, so that sums and differences of them fit into 32 bits."""


@dataclass(frozen=True)
class Stream:
    """Numbers of (component, body, frame) as bytes. `order` 1 stores changes, 2 changes of changes; `planes` is how
    many bytes a number has: all lowest bytes come first, then all second ones, and so on."""

    shape: tuple[int, int, int]
    order: int
    planes: int
    content: bytes

    def to_dict(self) -> dict[str, Any]:
        return {"shape": list(self.shape), "order": self.order, "planes": self.planes}


def pack(values: Whole) -> Stream:
    """Numbers of (frame, body, component) in whichever order compresses better."""
    table = np.clip(values, -LIMIT, LIMIT).transpose(2, 1, 0)
    choices = []
    for order in (1, 2):
        rest = np.diff(table, axis=2, prepend=0)
        if order == 2:
            rest[:, :, 1:] = np.diff(rest[:, :, 1:], axis=2, prepend=0)
        folded = np.where(rest < 0, -2 * rest - 1, 2 * rest).astype("<u4").reshape(-1)  # 0 -1 1 -2 2: 0 1 2 3 4
        planes = 1 if not folded.size else max(1, (int(folded.max()).bit_length() + 7) // 8)
        content = np.ascontiguousarray(folded.view(np.uint8).reshape(-1, 4).T[:planes]).tobytes()
        choices.append(Stream(table.shape, order, planes, content))
    return min(choices, key=lambda stream: len(zlib.compress(stream.content, 1)))


def unpack(stream: Stream) -> Whole:
    """Numbers of (frame, body, component), as the player reads them."""
    planes = np.frombuffer(stream.content, np.uint8).reshape(stream.planes, -1).astype(np.int64)
    folded = sum(plane << 8 * k for k, plane in enumerate(planes))
    rest = np.where(folded & 1, -(folded + 1) // 2, folded // 2).reshape(stream.shape)
    if stream.order == 2:
        rest[:, :, 1:] = np.cumsum(rest[:, :, 1:], axis=2)
    return np.asarray(np.cumsum(rest, axis=2).transpose(2, 1, 0))


def held(values: NDArray[Any], shown: NDArray[np.bool_]) -> NDArray[Any]:
    """Values of (frame, body, ...) in which a body that is not shown has those of when it was last, or is first."""
    frames = np.where(shown, np.arange(len(shown))[:, None], -1)
    last = np.maximum.accumulate(frames, axis=0)
    return np.asarray(values[np.where(last < 0, shown.argmax(axis=0), last), np.arange(shown.shape[1])])


def steady(quaternions: Array) -> Array:
    """Quaternions (frame, body, 4) without the jumps of sign that mean nothing."""
    dots = np.einsum("fbk,fbk->fb", quaternions[1:], quaternions[:-1])
    signs = np.cumprod(np.where(dots < 0, -1.0, 1.0), axis=0)
    return np.concatenate([quaternions[:1], quaternions[1:] * signs[:, :, None]])
