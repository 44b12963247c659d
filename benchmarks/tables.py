"""What benchmarks measured, in a file."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def write_table(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Rows as CSV. All have the keys of the first, which are the headings."""
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
