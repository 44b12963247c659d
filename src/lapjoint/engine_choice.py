"""Which engine each worker has, from one text: `rapier`, `bullet:float64`, `bullet,1=rapier`, `0=bullet,1=rapier`."""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import LapjointError

EXPECTED = "expected engines as in rapier, bullet:float64 or bullet,1=rapier"
PRECISIONS = ("float32", "float64")


@dataclass(frozen=True)
class EngineChoice:
    """An engine and a precision (None: that of the run) for all workers, and others for some."""

    text: str
    default: tuple[str, str | None] | None = None
    by_worker: dict[int, tuple[str, str | None]] = field(default_factory=dict)

    @staticmethod
    def parse(text: str) -> EngineChoice:
        """The choice that a text makes. What is wrong with the text is an error here; what exists is not known here."""
        if not isinstance(text, str):
            raise LapjointError(f"engine is {text!r}, {EXPECTED}")
        default: tuple[str, str | None] | None = None
        by_worker: dict[int, tuple[str, str | None]] = {}
        for part in text.split(","):
            worker, given, engine = part.strip().rpartition("=")
            name, with_precision, precision = engine.partition(":")
            if not name or (given and not worker.isdecimal()) or (with_precision and precision not in PRECISIONS):
                raise LapjointError(f"engine is {text!r}: cannot read {part.strip()!r}, {EXPECTED}")
            one = (name, precision or None)
            if given and int(worker) in by_worker:
                raise LapjointError(f"engine is {text!r}: worker {int(worker)} is given two engines")
            if given:
                by_worker[int(worker)] = one
            elif default is not None:
                raise LapjointError(
                    f"engine is {text!r}: two engines for all workers, expected one; others as in 1=name"
                )
            else:
                default = one
        return EngineChoice(text, default, by_worker)

    @property
    def names(self) -> list[str]:
        """Engines that are named, each once."""
        given = [*([self.default] if self.default else []), *(self.by_worker[w] for w in sorted(self.by_worker))]
        return list(dict.fromkeys(name for name, _ in given))

    def of(self, worker: int, precision: str) -> tuple[str, str]:
        """Engine and precision of a worker; `precision` is the run's."""
        one = self.by_worker.get(worker, self.default)
        if one is None:
            raise LapjointError(f"engine is {self.text!r}: worker {worker} has none")
        return one[0], one[1] or precision

    def check_workers(self, count: int) -> None:
        """Refuse an engine for a worker that does not exist, and a worker without one."""
        for worker in self.by_worker:
            if worker >= count:
                raise LapjointError(
                    f"engine is {self.text!r}: there is no worker {worker}, workers are 0 to {count - 1}"
                )
        for worker in range(count):
            self.of(worker, PRECISIONS[0])
