"""Rows of lapjoint and of its peers: medians over complete repetitions. Nothing here measures anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ..bench.rows import BenchRow
from .error import StateError

SHARED = ("scene", "iterations", "substeps", "body_count", "joint_count", "repetitions", "steps", "warmup", "cores")
"""Keys of a benchmark's row that those beside it have too."""


@dataclass(frozen=True)
class Side:
    """Who takes part: lapjoint on some workers, a rung of its own ladder on one, or a setting of a peer."""

    workers: int | None
    peer: str | None = None
    setting: str | None = None
    version: str | None = None
    precision: str | None = None
    threads: int | None = None
    """Of a peer."""

    @property
    def is_benched(self) -> bool:
        """Whether it is lapjoint as the benchmark has it: neither a peer nor a rung of its own ladder."""
        return self.peer is None and self.setting is None


@dataclass(frozen=True)
class SideTurn:
    """One side's steps in one repetition: means over the steps, and the error after the last."""

    step_ms: float
    cpu_ms: float
    read_ms: float
    error: StateError
    own_penetration: float | None


@dataclass(frozen=True)
class ComparedRow:
    """One side on one scene. docs/peers.md explains the keys of `to_dict` that are not those of a BenchRow.

    Times are per step; each number is the median over the repetitions.
    """

    bench: BenchRow
    """The row of lapjoint; for a peer or a rung, that of one worker beside which it was measured."""
    side: Side
    step_ms: float
    """Wall time."""
    cpu_ms: float
    """CPU time of all threads and processes."""
    read_ms: float
    """Wall time of reading all states once, which is not part of a step."""
    error: StateError
    own_penetration_max: float | None
    """By the peer's own contacts."""
    cheapest_for: tuple[int, ...] | None
    """Counts of workers whose error no cheaper setting of this peer stays within."""

    @property
    def params(self) -> dict[str, object]:
        return self.bench.params if self.side.is_benched else {}

    def to_dict(self) -> dict[str, object]:
        """The row of a file: all keys of a BenchRow, null where a peer or a rung has no such thing, and those of a
        comparison."""
        row, side = self.bench.to_dict(), self.side
        if not side.is_benched:
            row = {name: value if name in SHARED else None for name, value in row.items()}
            row |= {"step_ms": self.step_ms, "speedup": self.bench.step_ms / max(self.step_ms, 1e-9)}
            row |= {"workers": side.workers, "params": {}}
            row |= {"engine": side.peer or self.bench.engine, "precision": side.precision or self.bench.precision}
        row |= {
            "peer": side.peer,
            "version": side.version,
            "setting": side.setting,
            "threads": side.threads,
            "cpu_ms": self.cpu_ms,
            "read_ms": self.read_ms,
            "penetration_max": self.error.penetration_max,
            "penetration_sum": self.error.penetration_sum,
            "joint_gap_max": self.error.joint_gap_max,
            "joint_gap_sum": self.error.joint_gap_sum,
            "own_penetration_max": self.own_penetration_max,
            "cheapest_for": None if self.cheapest_for is None else " ".join(map(str, self.cheapest_for)),
        }
        return {name: _plain(value) for name, value in row.items()}


def compared_rows(
    bench_rows: Sequence[BenchRow], repetitions: Sequence[dict[Side, SideTurn]], sides: Sequence[Side]
) -> list[ComparedRow]:
    """Sum up complete repetitions: a row for each side, in their order."""
    if not repetitions:
        return []
    benches = {row.workers: row for row in bench_rows}
    errors, cpu_ms = {}, {}
    for side in sides:
        turns = [turns[side] for turns in repetitions]
        errors[side] = StateError(*(median(column) for column in zip(*(t.error.values for t in turns), strict=True)))
        cpu_ms[side] = median(turn.cpu_ms for turn in turns)
    cheapest: dict[Side, list[int]] = {side: [] for side in sides}
    for ours in sides:
        if not ours.is_benched or ours.workers is None:
            continue
        for peer in {side.peer for side in sides if side.peer is not None}:
            fitting = [side for side in _beside(sides, peer, ours.workers) if errors[side].is_within(errors[ours])]
            if fitting:
                cheapest[min(fitting, key=lambda side: cpu_ms[side])].append(ours.workers)
    rows = []
    for side in sides:
        turns = [turns[side] for turns in repetitions]
        own = [turn.own_penetration for turn in turns if turn.own_penetration is not None]
        rows.append(
            ComparedRow(
                bench=benches[1 if side.workers is None else side.workers],
                side=side,
                step_ms=median(turn.step_ms for turn in turns),
                cpu_ms=cpu_ms[side],
                read_ms=median(turn.read_ms for turn in turns),
                error=errors[side],
                own_penetration_max=median(own) if own else None,
                cheapest_for=None if side.peer is None else tuple(cheapest[side]),
            )
        )
    return rows


def _beside(sides: Sequence[Side], peer: str, workers: int) -> list[Side]:
    """Sides of a peer that have as many threads as there are workers, or as many as they can."""
    of_peer = [(side.threads or 1, side) for side in sides if side.peer == peer]
    most = max(threads for threads, _ in of_peer if threads <= workers)
    return [side for threads, side in of_peer if threads == most]


def _plain(value: object) -> object:
    """Numbers with six digits, null where they are not finite."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
