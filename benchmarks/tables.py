"""Rows of benchmarks on the screen and in files."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


def show(row: Row) -> None:
    """Print a row, each value after its key."""
    print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)


def write_table(rows: Sequence[Row], file: Path) -> None:
    """Write rows as CSV. All have the keys of the first, which are the headings."""
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def append_row(row: Row, file: Path) -> None:
    """Append a row to a CSV file, below the headings."""
    with file.open("a", newline="") as opened:
        writer = csv.DictWriter(opened, list(row))
        if opened.tell() == 0:
            writer.writeheader()
        writer.writerow(row)
