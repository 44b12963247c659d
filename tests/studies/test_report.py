"""Reports: the page, its files, and the command."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lapjoint import LapjointError
from lapjoint.cli import app
from lapjoint.studies.report import file_name, report
from lapjoint.studies.report.contents import LeftOut, Plot, Section, sections
from lapjoint.studies.report.runs import open_material
from lapjoint.studies.report.style import inline_svg
from report_support import record, record_chains, tower, write_bench


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return record_chains(tmp_path_factory.mktemp("chains"))


@pytest.fixture(scope="module")
def bench_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bench(tmp_path_factory.mktemp("bench") / "bench.json")


# ---- the page ----------------------------------------------------------------------------------------------------


class Reader(HTMLParser):
    """Tags that are opened and closed, addresses, and the text."""

    VOID = ("meta", "br", "img", "link")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "xlink:href", "src", "srcset", "data", "action"):
                self.addresses.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: Path) -> Reader:
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, chains: list[Path], bench_file: Path) -> Path:
    return report([*chains, bench_file], tmp_path_factory.mktemp("report") / "out")


@pytest.mark.slow
def test_the_page_needs_nothing_but_itself(page: Path) -> None:
    text = page.read_text()
    assert re.findall(r"https?:|//cdn|@import|url\((?!#)", text) == []
    reader = read(page)
    assert not {"script", "link", "iframe", "img", "object"} & set(reader.tags)
    assert all(address.startswith("#") for address in reader.addresses)
    assert {address[1:] for address in reader.addresses} <= set(reader.ids)
    assert len(set(reader.ids)) == len(reader.ids)


@pytest.mark.slow
def test_every_figure_is_in_the_page_and_in_two_files(page: Path) -> None:
    names = ["step-times", "errors", "growth-depth", "contacts-per-worker", "bodies-per-worker", "phases", "overlap"]
    wanted = {"speedup", "bench-phases", "chain-measures", *(f"chain-{name}" for name in names)}
    files = {path.name for path in page.parent.iterdir()}
    # The hanging chain touches nothing, and its overlap stays as it is.
    wanted -= {"chain-contacts-per-worker"}
    assert files == {"index.html", *(f"{name}.{ending}" for name in wanted for ending in ("png", "svg"))}
    for name in wanted:
        assert (page.parent / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (page.parent / f"{name}.svg").read_text().rstrip().endswith("</svg>")
    assert read(page).tags.count("svg") == len(wanted)


@pytest.mark.slow
def test_what_the_page_says(page: Path) -> None:
    text = read(page).text
    for words in (
        "chain",
        "growth depth",
        "projected",
        "ideal",
        "measured",
        "simulated time [s]",
        "time of a step [ms]",
    ):
        assert words in text
    assert "largest joint gap [mm]" in text
    assert "Contacts per worker is left out. No worker ever had contacts." in text
    assert "Activations is left out. After the first step no body was put into a worker." in text
    assert "own" in text


def test_the_page_follows_the_colours_of_the_reader(page: Path) -> None:
    text = page.read_text()
    assert "prefers-color-scheme: dark" in text
    assert "stroke: var(--ink)" in text
    assert "#24292f" not in text.split("</style>")[1]


@pytest.mark.slow
def test_names_are_escaped_everywhere(tmp_path: Path) -> None:
    name = '<script>alert("1")</script> $x_1 & _a [b]'
    paths = [record(tmp_path / f"_{n}$<i>", tower(name), 3, workers=n) for n in (1, 2)]
    page = report(paths, tmp_path / "out", title="<b>title</b>")
    reader = read(page)
    assert not {"script", "i", "b"} & set(reader.tags)
    assert name in reader.text
    assert "<b>title</b>" in reader.text
    assert "_1$<i>" in reader.text
    assert all(re.fullmatch(r"[a-z0-9.-]+", path.name) for path in page.parent.iterdir())


def test_one_worker_alone_leaves_out_what_needs_more(tmp_path: Path) -> None:
    material = open_material([record(tmp_path / "a", tower(), 4)])
    speed, scene = sections(material)
    assert [type(item) for item in speed.items] == [LeftOut]
    left_out = {item.title: item.reason for item in scene.items if isinstance(item, LeftOut)}
    reason = "No recording has more than one worker."
    assert {title for title, said in left_out.items() if said == reason} == {
        "Contacts per worker",
        "Bodies per worker",
        "Overlap",
        "Activations",
    }
    assert all(said.count(".") == 1 for said in left_out.values())


def test_a_recording_without_steps_is_a_page_without_figures(tmp_path: Path) -> None:
    page = report([record(tmp_path / "a", tower(), 0)], tmp_path / "out")
    assert "svg" not in read(page).tags
    assert [path.name for path in page.parent.iterdir()] == ["index.html"]


def test_files_have_names_of_their_own() -> None:
    taken: set[str] = set()
    plot = Plot("errors", "", "", lambda: None)  # type: ignore[arg-type, return-value]
    names = [file_name(Section("", [], name=name), plot, taken) for name in ("A b", "a/B", "", "日本", "x" * 99)]
    assert names == ["a-b-errors", "a-b-errors-2", "errors", "errors-2", f"{'x' * 40}-errors"]


def test_an_svg_for_a_page_has_no_address_and_no_size_of_its_own() -> None:
    svg = '<?xml?><!DOCTYPE svg PUBLIC "http://x">\n<svg xmlns:xlink="http://y" width="6pt" viewBox="0 0 6 4" xmlns="http://z">'
    assert inline_svg(svg + "<metadata>http://w</metadata><path/></svg>") == '<svg viewBox="0 0 6 4"><path/></svg>'


# ---- the command, and mistakes -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_writes_a_report(tmp_path: Path, bench_file: Path) -> None:
    out = tmp_path / "[out]"
    command = ["report", str(bench_file), "--out", str(out), "--title", "mine"]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0
    assert "[out]/index.html" in result.stdout.replace("\n", "")
    assert "mine" in read(out / "index.html").text


def test_mistakes_name_what_is_wrong(tmp_path: Path, chains: list[Path]) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "text.json").write_text("no json")
    (tmp_path / "run.json").write_text('{"scene": "a run\'s summary"}')
    (tmp_path / "row.json").write_text('[{"scene": "bowl"}]')
    (tmp_path / "word.json").write_text(json.dumps([{"scene": "bowl", "workers": "many"}]))
    out = tmp_path / "out"
    for runs, place, said in (
        ([], out, "nothing to report on"),
        ([chains[0], chains[0].parent / "." / "one"], out, "one is given more than once"),
        ([tmp_path / "gone"], out, "gone: not a lapjoint recording"),
        ([tmp_path / "gone.json"], out, "gone.json: there is no such file"),
        ([tmp_path / "text.json"], out, "text.json: no JSON"),
        ([tmp_path / "run.json"], out, "run.json: no rows of a benchmark"),
        ([tmp_path / "row.json"], out, "row.json: row 0 has no 'workers'"),
        ([tmp_path / "word.json"], out, "word.json: row 0: invalid literal"),
        ([chains[0]], tmp_path / "file", "--out .*file: is a file"),
        ([chains[0]], chains[0], "--out .*one: is a recording"),
        ([chains[0]], tmp_path / "no" / "out", "the directory .*no does not exist"),
    ):
        with pytest.raises(LapjointError, match=said):
            report(runs, place)
        assert not out.exists()
