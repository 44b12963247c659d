"""Copies: the states of workers' own bodies after each command to step, for workers that share no memory with the
server. If one is lost, or if all take a step again, the bodies' states of before the step are here.

A worker writes them into memory that it shares with its host: the last two, so that one is whole whatever becomes of
the worker. The host sends the last one to a host on another machine, its neighbour, and answers the server only when
the neighbour has it (neighbour.py). So no machine that is lost takes states with it, and none of them goes through the
server. Where there is no neighbour, the server itself has all states sent.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ..codec import to_buffers
from ..messages import OwnStates
from .shared import SharedMemory

HEAD = struct.Struct("<qQ")
"""In front of a copy: the number of the command, 0 where there is no whole copy; how many bytes follow."""


class Copies:
    """Of one worker: two blocks of memory that it shares with its host. It writes them by turns."""

    def __init__(self, blocks: Sequence[SharedMemory]) -> None:
        self.blocks = list(blocks)

    @staticmethod
    def empty() -> Copies:
        return Copies([SharedMemory(HEAD.size), SharedMemory(HEAD.size)])

    def write(self, copy: OwnStates) -> None:
        """In place of the older one."""
        block = min(self.blocks, key=_number)
        parts = to_buffers(copy)
        size = sum(map(len, parts))
        if HEAD.size + size > block.size:
            block.grow(HEAD.size + size + size // 4)
        HEAD.pack_into(block.map, 0, 0, size)
        room, place = memoryview(block.map), HEAD.size
        for part in parts:
            room[place : place + len(part)] = part
            place += len(part)
        HEAD.pack_into(block.map, 0, copy.number, size)

    @property
    def number(self) -> int:
        """Of the command that the last copy is of; 0 where there is none."""
        return max(map(_number, self.blocks))

    def find(self, number: int) -> memoryview | None:
        """The bytes of the copy of the command of this number; None if there is none."""
        found = [block for block in self.blocks if _number(block) == number > 0]
        if not found:
            return None
        (block,) = found
        block.look_again()
        _, size = HEAD.unpack_from(block.map)
        return memoryview(block.map)[HEAD.size : HEAD.size + size]

    def close(self) -> None:
        for block in self.blocks:
            block.close()


def _number(block: SharedMemory) -> int:
    number: int = HEAD.unpack_from(block.map)[0]
    return number
