"""Promises about the site: every public name, page, warning and example has its place, and dead links are found."""

from __future__ import annotations

import ast
import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import lapjoint
from lapjoint import errors
from lapjoint.server.incidents import FAILURES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def test_every_public_name_is_in_the_reference() -> None:
    text = (DOCS / "api.rst").read_text()
    named = set(re.findall(r"^\.\. (?:auto\w+|py:data):: (?:lapjoint\.)?(\w+)", text, re.MULTILINE))
    assert set(lapjoint.__all__) - named == {"__version__"}


def test_every_page_is_in_the_index() -> None:
    listed = set((DOCS / "index.md").read_text().split())
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in [*DOCS.glob("*.md"), *NOTEBOOKS]}
    assert pages - listed == {"index"}


def test_every_warning_and_incident_is_explained() -> None:
    text = (DOCS / "troubleshooting.md").read_text()
    named = {name for name, thing in vars(errors).items() if isinstance(thing, type) and issubclass(thing, Warning)}
    assert len(named) >= 3
    assert {word for word in (*named, *FAILURES) if f"`{word}`" not in text} == set()


def test_examples_are_numbered_short_and_say_what_they_are() -> None:
    numbers = [int(path.stem[:2]) for path in EXAMPLES]
    assert numbers == list(range(1, len(EXAMPLES) + 1))
    for path in EXAMPLES:
        text = path.read_text()
        assert len(text.splitlines()) <= 60, path
        assert ast.get_docstring(ast.parse(text)), path
        assert re.search(r"^\s*assert ", text, re.MULTILINE), f"{path} checks nothing"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_what_they_show(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert cells
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyplot: Any = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": path.stem}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), path.name, "exec"), names)
    assert pyplot.get_fignums()
    pyplot.close("all")


def test_dead_links_are_found(tmp_path: Path) -> None:
    dead_links = runpy.run_path(str(ROOT / "tools" / "make-docs"))["dead_links"]
    (tmp_path / "a.html").write_text('<a href="b.html#here">x</a><img src="no.png"><a href="https://x.org/">y</a>')
    (tmp_path / "b.html").write_text('<p id="here"><a href="a.html">x</a><a href="#gone">x</a></p>')
    assert dead_links(tmp_path) == ["a.html: no.png", "b.html: #gone"]


def test_what_pages_link_to_above_their_folder_is_part_of_the_site() -> None:
    """A link to a file of the repository that is no page of the site ends its build."""
    above = runpy.run_path(str(ROOT / "tools" / "make-docs"))["ABOVE"]
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / name for name in above)]
    linked = {name for page in pages for name in re.findall(r"\]\((?:\.\./)?([A-Z]+\.md)", page.read_text())}
    assert linked <= above.keys()
