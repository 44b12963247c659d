"""`lapjoint view` and `lapjoint run --view`, as a user types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lapjoint.cli import app, live
from lapjoint.errors import LapjointError
from view_support import LIMIT_S

COMMAND = [sys.executable, "-c", "from lapjoint.cli import main; main()"]


@contextmanager
def started(*arguments: str, cwd: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command that has printed its address."""
    command = [*COMMAND, *arguments, "--port", "0", "--no-browser"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200"},
    )
    try:
        assert process.stdout is not None
        line = ""
        while not line.startswith("view: "):
            line = process.stdout.readline()
            assert line, "the command ended"
        yield process, line.split()[1]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def is_served(address: str) -> bool:
    with urllib.request.urlopen(address, timeout=LIMIT_S) as answer:
        return answer.status == 200 and b"<html" in answer.read(2000).lower()


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Ctrl-C: exit code, and what was said."""
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=LIMIT_S)
    return process.returncode, told


@pytest.mark.slow
def test_a_run_with_a_view_goes_on_until_ctrl_c_and_sums_up(tmp_path: Path) -> None:
    with started("run", "chain", "--workers", "2", "--view", "--no-wait", cwd=tmp_path) as (process, address):
        assert address.startswith("http://localhost:")
        assert is_served(address)
        code, told = ended(process)
    assert code == 0, told
    assert "40 bodies" in told
    assert "Traceback" not in told


@pytest.mark.slow
def test_a_run_of_so_many_steps_keeps_its_view_until_ctrl_c(tmp_path: Path) -> None:
    with started("run", "chain", "--view", "--no-wait", "--steps", "20", "--json", "run.json", cwd=tmp_path) as (
        process,
        address,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            if "the view stays" in line:
                break
        assert is_served(address)
        code, told = ended(process)
    assert code == 0, told
    summary = json.loads((tmp_path / "run.json").read_text())
    assert (summary["steps"], summary["body_count"], summary["frozen_ids"]) == (20, 40, [])


def test_ctrl_c_that_comes_with_the_word_that_the_view_stays_ends_it_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    class View:
        def stay(self, interrupted: Callable[[], bool]) -> None:
            assert interrupted()

    monkeypatch.setattr(live.console, "print", lambda *_: signal.raise_signal(signal.SIGINT))
    live.LiveRun(View(), no_browser=True).stay()  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_run_waits_for_the_first_page_and_ctrl_c_ends_the_waiting(tmp_path: Path) -> None:
    with started("run", "chain", "--view", "--steps", "20", cwd=tmp_path) as (process, address):
        assert process.stdout is not None
        assert "waiting for the first page to open; --no-wait starts at once" in process.stdout.readline()
        assert is_served(address), "the page's files alone do not start it"
        code, told = ended(process)
    assert code == 130, told
    assert "interrupted after 0 of 20 steps" in told
    assert "Traceback" not in told


@pytest.mark.slow
@pytest.mark.parametrize(("words", "what"), [("view chain", "lapjoint view"), ("run chain --view", "--view")])
def test_without_viser_one_line_names_what_to_install(words: str, what: str) -> None:
    hidden = "import sys; sys.modules['viser'] = None; from lapjoint.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hidden, *words.split()],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [f"error: {what} needs viser: pip install 'lapjoint[view]'"]


@pytest.mark.slow
def test_without_viser_pages_cannot_be_imported_and_the_rest_can() -> None:
    code = """
import sys
sys.modules["viser"] = None
import lapjoint.view
from lapjoint import LapjointError
for _ in range(2):
    try:
        from lapjoint.view.page.live import LiveView
    except LapjointError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines() == ['a view needs viser: pip install "lapjoint[view]"'] * 2, done.stderr


@pytest.mark.slow
def test_a_view_on_another_host_prints_the_token_in_its_address(tmp_path: Path) -> None:
    with started("view", "chain", "--host", "0.0.0.0", cwd=tmp_path) as (process, address):
        place, token = address.split("/?token=")
        assert len(token) >= 30
        assert is_served(address.replace("0.0.0.0", "127.0.0.1"))
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(place.replace("0.0.0.0", "127.0.0.1"), timeout=LIMIT_S)
        code, told = ended(process)
    assert code == 0, told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "chain", "--balls", "3"], "--balls is given without --view"),
        (["run", "chain", "--port", "0"], "--port is given without --view"),
        (["run", "chain", "--no-browser"], "--no-browser is given without --view"),
        (["run", "chain", "--no-wait"], "--no-wait is given without --view"),
        (["run", "chain", "--view", "--balls", "3", "--measure", "all"], "expected --balls 0"),
        (["run", "chain", "--view", "--fps", "0"], "--fps is 0, expected 1 to 120"),
        (["view", "chain", "--fps", "500"], "--fps is 500, expected 1 to 120"),
        (["view", "nothing"], "no scene named 'nothing'"),
        (["view", "."], "not a lapjoint recording"),
        (["view", ".", "--workers", "2"], "--size, --workers and --partition are for scenes"),
        (["view", "chain", "--host", "no.such.host.invalid"], "expected an address of this machine"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, LapjointError)
    assert message in str(result.exception)


@pytest.mark.slow
def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with started("view", "chain", cwd=tmp_path) as (_, address):
        result = CliRunner().invoke(app, ["view", "chain", "--port", address.rsplit(":", 1)[1], "--no-browser"])
    assert isinstance(result.exception, LapjointError)
    assert "expected a free port" in str(result.exception)
