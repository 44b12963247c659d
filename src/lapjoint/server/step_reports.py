"""StepReports: what has been reported of all steps so far, of each kind of table that is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..arrays.columns import Columns
from ..arrays.state import Stateful
from ..errors import LapjointError
from ..step_tables import KEPT, StepTable
from ..step_tables.touches import Touches, TouchReports
from .step_log import StepLog
from .touches import TouchLog

Table = TypeVar("Table", bound=StepTable)


class StepReports:
    """Logs by kind. Some kinds are made of what workers report by logs of their own; `elsewhere` returns those that
    other parts of a simulation keep."""

    def __init__(self, elsewhere: dict[type[StepTable], Callable[[], StepTable]]) -> None:
        self._elsewhere = elsewhere
        self.touches = TouchLog()
        self._logs: dict[type[StepTable], StepLog[Any]] = {
            kind: StepLog(kind) for kind in KEPT if kind not in (Touches, *elsewhere)
        }

    def add(self, found: Sequence[StepTable], bodies: Columns, step_count: int) -> None:
        """Add what was reported of steps that were taken at once from `step_count` on."""
        for table in found:
            if type(table) in self._logs:
                self._logs[type(table)].add(table, step_count)
        touching = next((table for table in found if isinstance(table, TouchReports)), None)
        if touching is not None or self.touches.is_any:  # who is not reported touches no more
            self.touches.add(touching or TouchReports.none(), bodies, step_count)

    def all(self, kind: type[Table]) -> Table:
        """All rows so far; `step` is how many steps had been taken before the one of a row."""
        found: Any
        if kind is Touches:
            found = self.touches.all
        elif kind in self._elsewhere:
            found = self._elsewhere[kind]()
        elif kind in self._logs:
            found = self._logs[kind].all
        else:
            known = ", ".join(one.__name__ for one in KEPT)
            raise LapjointError(f"reported: {kind!r} is kept nowhere, expected {known}")
        return found  # type: ignore[no-any-return]

    def parts(self) -> dict[str, Stateful]:
        """Its state, by the names of the kinds."""
        return {**{kind.name: log for kind, log in self._logs.items()}, Touches.name: self.touches}
