"""Plug-ins as if they were installed: their metadata and their modules on the path."""

from __future__ import annotations

import sys
import tempfile
import tomllib
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent / "examples" / "spring_engine"


def write_metadata(project_file: Path, folder: Path) -> None:
    """Write what an installation of a project would write, with its entry points, into a folder that is on the path."""
    project = tomllib.loads(project_file.read_text())["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n")
    lines = [
        f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in of.items()) for group, of in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def register_example() -> tempfile.TemporaryDirectory[str]:
    """Make the entry points of the example's pyproject.toml known, here and in workers. They last as long as what is
    returned."""
    folder = tempfile.TemporaryDirectory(prefix="lapjoint-plug-in-")
    write_metadata(EXAMPLE / "pyproject.toml", Path(folder.name))
    sys.path += [str(EXAMPLE), folder.name]
    return folder
