"""Which engine each worker has, from one text: `rapier`, `bullet:float64`, `bullet,1=rapier`, `0=bullet,1=rapier`."""

from __future__ import annotations

from dataclasses import dataclass

from .worker_choice import WorkerChoice, parse_choice

EXPECTED = "expected engines as in rapier, bullet:float64 or bullet,1=rapier"
PRECISIONS = ("float32", "float64")


@dataclass(frozen=True)
class EngineChoice:
    """An engine and a precision (None: that of the run) for all workers, and others for some."""

    choice: WorkerChoice[tuple[str, str | None]]

    @staticmethod
    def parse(text: str) -> EngineChoice:
        """The choice that a text makes. What is wrong with the text is an error here; what exists is not known here."""
        return EngineChoice(parse_choice("engine", text, EXPECTED, _read))

    @property
    def default(self) -> tuple[str, str | None] | None:
        return self.choice.default

    @property
    def by_worker(self) -> dict[int, tuple[str, str | None]]:
        return self.choice.by_worker

    @property
    def names(self) -> list[str]:
        """Engines that are named, each once."""
        return list(dict.fromkeys(name for name, _ in self.choice.values))

    def of(self, worker: int, precision: str) -> tuple[str, str]:
        """Engine and precision of a worker; `precision` is the run's."""
        name, own = self.choice.of(worker)
        return name, own or precision

    def check_workers(self, count: int) -> None:
        """Refuse an engine for a worker that does not exist, and a worker without one."""
        self.choice.check_workers(count)


def _read(word: str) -> tuple[str, str | None] | None:
    name, with_precision, precision = word.partition(":")
    if not name or (with_precision and precision not in PRECISIONS):
        return None
    return name, precision or None
