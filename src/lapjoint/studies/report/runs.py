"""What a report is made of: recordings and benchmarks, opened, put in order and named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import LapjointError
from ...params.params import others
from ...recording import Recording
from ..step_values import step_values
from ..titles import count_of
from .bench_file import BenchPoint, read_bench
from .numbers import Array, duplicated_share

# Parameters of coupling, partition, overlap and balancing. With one worker they change nothing.
SHARING = (
    "workers",
    "runtime",
    "coupling",
    "partition",
    "growth_depth",
    "search_depth",
    "detect",
    "balance",
    "load",
    "linger",
    "repartition",
    "weights",
    "algorithms",
    "validate",
)

COUNTED = {"iterations": "iterations", "body_count": "bodies"}


@dataclass
class Run:
    """A recording, with what was measured in every step."""

    recording: Recording
    label: str = ""
    """How legends call it among the runs of its scene."""

    @property
    def scene(self) -> str:
        return self.recording.scene.name

    @property
    def workers(self) -> int:
        return self.recording.worker_count

    @property
    def body_count(self) -> int:
        """That it began with."""
        return self.recording.began_with[0]

    @property
    def joint_count(self) -> int:
        """That it began with."""
        return self.recording.began_with[1]

    @property
    def duplicated_share(self) -> Array:
        """Active bodies of all workers over the bodies that are there, minus one; of each step."""
        return duplicated_share(self.values["worker_body_count"], self.recording.living_counts(self.steps))

    @property
    def group(self) -> tuple[str, int, int]:
        """Runs of one scene are shown together."""
        return self.scene, self.body_count, self.joint_count

    @cached_property
    def params(self) -> dict[str, Any]:
        """Those that its coupling has."""
        found = self.recording.params.options()
        return {name: value for name, value in found.items() if name not in others(found["coupling"])}

    @property
    def is_tight(self) -> bool:
        return self.recording.has_interface

    @cached_property
    def machine(self) -> str:
        machine = self.recording.machine
        return f"{machine.get('cpu', 'unknown')}, {machine.get('core_count', '?')} cores, {machine.get('platform', '')}"

    @cached_property
    def core_count(self) -> int:
        return int(self.recording.machine.get("core_count", 1))

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        return np.asarray(self.recording.profile["step_count"])

    @cached_property
    def time(self) -> Array:
        """Simulated time of every step [s]."""
        return np.asarray(self.steps * self.recording.timestep, float)

    @cached_property
    def values(self) -> dict[str, NDArray[Any]]:
        """What was recorded in every step, by name."""
        return step_values(self.recording)

    @cached_property
    def phases_ms(self) -> dict[str, Array]:
        """Wall time of each phase in every step, by its name [ms]."""
        table = self.recording.profile["phases_ms"]
        return {name: table[:, number] for number, name in enumerate(self.recording.phases)}

    @cached_property
    def timed(self) -> NDArray[np.bool_]:
        """Steps whose time counts: the first one sets the workers up."""
        return np.asarray(self.steps > 1)


@dataclass(frozen=True)
class Material:
    """All that a report was given."""

    runs: list[Run] = field(default_factory=list)
    """Of one scene together, by workers, coupling and growth depth."""
    rows: list[BenchPoint] = field(default_factory=list)

    @property
    def groups(self) -> list[list[Run]]:
        """Runs of each scene."""
        found: dict[object, list[Run]] = {}
        for run in self.runs:
            found.setdefault(run.group, []).append(run)
        return list(found.values())


def open_material(paths: Sequence[str | Path]) -> Material:
    """Open recordings (directories) and files of `lapjoint bench --json`."""
    if len(paths) == 0:
        raise LapjointError("nothing to report on, expected recordings or files of `lapjoint bench --json`")
    seen: set[Path] = set()
    runs: list[Run] = []
    rows: list[BenchPoint] = []
    for path in map(Path, paths):
        if path.resolve() in seen:
            raise LapjointError(f"{path} is given more than once")
        seen.add(path.resolve())
        if path.suffix.lower() == ".json" and not path.is_dir():
            rows += read_bench(path)
        else:
            runs.append(Run(Recording(path)))
    first = [run.group for run in runs]
    runs.sort(key=lambda run: (first.index(run.group), run.workers, run.is_tight, run.params.get("growth_depth") or 0))
    material = Material(runs, rows)
    for group in material.groups:
        name_runs(group)
    return material


def name_runs(runs: Sequence[Run]) -> None:
    """Label runs of one scene: workers, and whatever else is not the same for all."""
    details = [_details(run) for run in runs]
    varied = varied_names(details)
    labels = [
        ", ".join([count_of(run.workers, "worker"), *words_of(found, varied)])
        for run, found in zip(runs, details, strict=True)
    ]
    for run, label in zip(runs, labels, strict=True):
        run.label = label
        if labels.count(label) > 1:
            run.label += f" ({run.recording.path.name})"
    taken = [run.label for run in runs]
    for run in runs:
        if taken.count(run.label) > 1:
            run.label = run.label.replace(f"({run.recording.path.name})", f"({run.recording.path})")


def varied_names(details: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names with more than one value, in their order; who does not have a name does not count."""
    names = list(dict.fromkeys(name for found in details for name in found))
    return [name for name in names if len({repr(found[name]) for found in details if name in found}) > 1]


def words_of(details: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """As in `growth depth 3` and `20 iterations`."""
    return [
        f"{plain(details[name])} {COUNTED[name]}"
        if name in COUNTED
        else f"{name.replace('_', ' ')} {plain(details[name])}"
        for name in names
        if name in details
    ]


def plain(value: Any) -> str:
    """A value as people write it."""
    if value is None:
        return "default"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def scene_title(run: Run, runs: Iterable[Run]) -> str:
    """A scene's name, with its counts where the same name has several."""
    if len({other.group for other in runs if other.scene == run.scene}) == 1:
        return run.scene
    return f"{run.scene} ({count_of(run.body_count, 'body', 'bodies')}, {count_of(run.joint_count, 'joint')})"


def _details(run: Run) -> dict[str, Any]:
    """What may distinguish runs of a scene, besides the number of workers."""
    # How a scene is partitioned changes nothing with one worker, and would only make its label longer.
    left_out = SHARING if run.workers == 1 else ("workers",)
    return {name: value for name, value in run.params.items() if name not in left_out} | {"machine": run.machine}
