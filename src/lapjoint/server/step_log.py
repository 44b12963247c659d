"""StepLog: what has been reported of all steps so far: joints that broke, contacts that hit."""

from __future__ import annotations

from typing import Generic, TypeVar

from ..arrays.state import PartState
from ..step_tables import StepTable

Table = TypeVar("Table", bound=StepTable)


class StepLog(Generic[Table]):
    """Rows of one kind of table, in its order."""

    def __init__(self, kind: type[Table]) -> None:
        self._kind = kind
        self._tables: list[Table] = []  # joined when somebody looks: there may be some of every step

    @property
    def all(self) -> Table:
        """`step` is how many steps had been taken before the one of a row."""
        if len(self._tables) != 1:
            self._tables = [self._kind.joined(self._tables)]
        return self._tables[0]

    def add(self, found: Table, step_count: int) -> None:
        """Add what was reported of steps that were taken at once from `step_count` on."""
        if len(found):
            self._tables.append(found.ordered().later(step_count))

    def state(self) -> PartState:
        return PartState(dict(vars(self.all)))

    def restore(self, state: PartState) -> None:
        self._tables = [self._kind(*(state.array(name) for name in vars(self._kind.none())))]
