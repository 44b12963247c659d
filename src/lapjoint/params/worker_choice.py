"""Something for all workers and something else for some, from one text: `a`, `a,1=b`, `0=a,1=b`, `a,label:3=b`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..errors import LapjointError

LABEL = "label:"
Value = TypeVar("Value")


@dataclass(frozen=True)
class WorkerChoice(Generic[Value]):
    """What a text chooses: for all workers, for some by number, and for those of a label."""

    option: str
    text: str
    default: Value | None = None
    by_worker: dict[int, Value] = field(default_factory=dict)
    by_label: dict[int, Value] = field(default_factory=dict)

    def of(self, worker: int) -> Value:
        """What a worker has, labels aside."""
        value = self.by_worker.get(worker, self.default)
        if value is None:
            raise LapjointError(f"{self.option} is {self.text!r}: worker {worker} has none")
        return value

    def check_workers(self, count: int) -> None:
        """Refuse a worker that does not exist, and one without anything."""
        for worker in self.by_worker:
            if worker >= count:
                raise LapjointError(
                    f"{self.option} is {self.text!r}: there is no worker {worker}, workers are 0 to {count - 1}"
                )
        for worker in range(count):
            self.of(worker)

    @property
    def values(self) -> list[Value]:
        """All that are named, each once."""
        given = [*([self.default] if self.default else []), *(self.by_worker[w] for w in sorted(self.by_worker))]
        return list(dict.fromkeys([*given, *(self.by_label[one] for one in sorted(self.by_label))]))


def parse_choice(
    option: str, text: str, expected: str, read: Callable[[str], Value | None], labels: bool = False
) -> WorkerChoice[Value]:
    """The choice that a text makes. `read` makes a value of a word, or None of one that is none; `expected` ends
    messages about what is wrong with the text."""
    if not isinstance(text, str):
        raise LapjointError(f"{option} is {text!r}, {expected}")
    default: Value | None = None
    by_worker: dict[int, Value] = {}
    by_label: dict[int, Value] = {}
    for part in text.split(","):
        who, given, word = part.strip().rpartition("=")
        is_label = labels and who.startswith(LABEL)
        number = who.removeprefix(LABEL) if is_label else who
        value = read(word)
        is_number = number.isdecimal() or (is_label and number.removeprefix("-").isdecimal())
        if value is None or (given and not is_number):
            raise LapjointError(f"{option} is {text!r}: cannot read {part.strip()!r}, {expected}")
        place = by_label if is_label else by_worker
        if given and int(number) in place:
            title = "label" if is_label else "worker"
            raise LapjointError(f"{option} is {text!r}: {title} {int(number)} is given two {option}s")
        if given:
            place[int(number)] = value
        elif default is not None:
            raise LapjointError(
                f"{option} is {text!r}: two {option}s for all workers, expected one; others as in 1=name"
            )
        else:
            default = value
    return WorkerChoice(option, text, default, by_worker, by_label)
