"""The example engine as an installed plug-in, without installing it: its metadata and its module on the path."""

from __future__ import annotations

import sys
import tempfile
import tomllib
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent / "examples" / "spring_engine"


def register_example() -> tempfile.TemporaryDirectory[str]:
    """Make the entry points of the example's pyproject.toml known, here and in workers. They last as long as what is
    returned."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    folder = tempfile.TemporaryDirectory(prefix="lapjoint-plug-in-")
    name, version = project["name"].replace("-", "_"), project["version"]
    info = Path(folder.name) / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n")
    lines = [
        f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in of.items()) for group, of in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    sys.path += [str(EXAMPLE), folder.name]
    return folder
