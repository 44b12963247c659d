"""Tight coupling in recordings, colours, captions, pages and reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lapjoint import LapjointError, Params, Recording, RecordingWriter, Scene, Simulation, Substeps, scenes
from lapjoint.cli import app
from lapjoint.run import run
from lapjoint.studies.compare import compare
from lapjoint.studies.report.contents import LeftOut, Plot, sections
from lapjoint.studies.report.runs import open_material
from lapjoint.studies.report.tables import results, run_origins
from lapjoint.studies.step_values import step_values
from lapjoint.view.draw.coloring import PALE, body_colors, legend, modes_of
from lapjoint.view.draw.colors import worker_colors
from lapjoint.view.draw.picture import frame_picture
from lapjoint.view.draw.recorded import Recorded
from lapjoint.view.export.export import export
from lapjoint.view.page.describe import body_text
from lapjoint.view.page.playback import Playback
from lapjoint.view.page.snapshot import exchange_line, of_recording, of_simulation
from lapjoint.view.page.tints import Tints
from recording_support import balls, made
from view_support import live_view, wait_until

STEPS = 12


def record(path: Path, scene: Scene, **params: Any) -> Recording:
    given = {"workers": 2, "runtime": "inline", "joints": "swept", **params}
    with Simulation(scene, Params.from_options(**given)) as simulation:
        run(simulation, STEPS, record=path, record_every=3, record_contacts=True)
    return Recording(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tight")


@pytest.fixture(scope="module")
def tight(folder: Path) -> Recording:
    return record(folder / "tight", scenes.build("chain"))


@pytest.fixture(scope="module")
def exchanges(tight: Recording) -> int:
    """Of every step: the workers are the same two throughout."""
    (found,) = set(tight.profile["exchanges"].tolist())
    assert found > 4, "several in each of four substeps"
    return int(found)


@pytest.fixture(scope="module")
def blend(folder: Path) -> Recording:
    return record(folder / "blend", scenes.build("chain"), growth_depth=1)


# ---- recordings --------------------------------------------------------------------------------------------------


def test_a_recording_has_exchanges_and_the_interface(tight: Recording, exchanges: int) -> None:
    assert tight.has_interface
    assert tight.params.coupling == "tight"
    assert tight.profile["exchanges"].tolist() == [exchanges] * STEPS
    assert tight.profile["interface_count"].tolist() == [2] * STEPS
    assert (tight.profile["residual"] > 0).all()
    assert (tight.profile["cut_share"] > 0).all()
    with Simulation(scenes.build("chain"), tight.params) as simulation:
        simulation.step(STEPS)
        assert tight.interface(-1).tolist() == simulation.workers.interface.tolist()
        assert len(simulation.workers.interface) == 2
    assert tight.membership(-1).sum() == tight.body_count, "every body has one worker"


def test_interfaces_of_every_frame_come_back(tmp_path: Path) -> None:
    scene, rng = balls(9), np.random.default_rng(3)
    steps = []
    for number in range(70):
        step = made(scene, number + 1, seed=number)
        step.params = Params(coupling="tight")
        step.interface = np.flatnonzero(rng.random(9) < 0.3).astype(np.int32)
        step.profile.exchanges, step.profile.cut_share = number, 0.25
        steps.append(step)
    with RecordingWriter(tmp_path / "run", steps[0], contacts=True) as writer:
        for step in steps:
            writer.add(step)
    recording = Recording(tmp_path / "run")
    assert [recording.interface(i).tolist() for i in range(70)] == [step.interface.tolist() for step in steps]
    assert recording.profile["exchanges"].tolist() == list(range(70))
    assert len(recording.contacts(69)) == len(steps[69].profile.contacts)
    with pytest.raises(LapjointError, match="no frame 70"):
        recording.interface(70)


def test_blend_has_no_interface(blend: Recording) -> None:
    assert not blend.has_interface
    assert len(blend.interface(0)) == 0
    assert not (blend.path / "interface_body").exists()
    assert not {"exchanges", "interface_count", "cut_share"} & step_values(blend).keys()


# ---- colours -----------------------------------------------------------------------------------------------------


def test_interface_bodies_have_their_workers_colour_and_others_a_pale_one() -> None:
    weights = np.eye(3)[[0, 0, 1, 2, 2]]
    colors = body_colors("interface", weights=weights, interface=[1, 2])
    palette = worker_colors(3)
    np.testing.assert_allclose(colors[1], palette[0])
    np.testing.assert_allclose(colors[2], palette[1])
    for body, worker in ((0, 0), (3, 2), (4, 2)):
        assert np.ptp(colors[body]) < 0.6 * np.ptp(palette[worker]), "inside is pale"
    assert 0.5 < PALE < 1
    assert [entry.text for entry in legend("interface", workers=2)] == [
        "worker 0, interface",
        "worker 1, interface",
        "paler: inside",
    ]


def test_modes_follow_the_coupling(tight: Recording, blend: Recording) -> None:
    assert "interface" not in modes_of("blend")
    assert "overlap" not in modes_of("tight")
    assert "contacts" not in modes_of("tight", has_contacts=False)
    colors = Recorded(tight, "interface").frame(-1).colors
    full = Recorded(tight, "worker").frame(-1).colors
    same = np.flatnonzero((colors == full).all(axis=1))
    assert same.tolist() == tight.interface(-1).tolist()
    with pytest.raises(LapjointError, match="coupling tight, which has no overlap; colour mode interface"):
        Recorded(tight, "overlap")
    with pytest.raises(LapjointError, match="coupling blend, which has no interface; colour mode overlap"):
        Recorded(blend, "interface")


def test_captions_name_exchanges_and_residual(
    tight: Recording, blend: Recording, exchanges: int, tmp_path: Path
) -> None:
    recorded = Recorded(tight)
    last = float(tight.profile["residual"][-1])
    assert recorded.exchanges_at(STEPS * tight.timestep) == f"{exchanges} exchanges, residual {last:.1e} m/s"
    first = float(tight.profile["residual"][0])
    assert recorded.exchanges_at(0.0) == f"{exchanges} exchanges, residual {first:.1e} m/s"
    assert Recorded(blend).exchanges_at(0.0) == ""
    with_caption = frame_picture(tight, tmp_path / "a.png", mode="interface", with_caption=True, size=(480, 270))
    assert with_caption.stat().st_size > 1000


def test_a_page_that_plays_by_itself_has_the_interface(tight: Recording, tmp_path: Path) -> None:
    export(tight, tmp_path / "page.html", mode="interface")
    page = (tmp_path / "page.html").read_text()
    assert '"interface"' in page
    assert '"overlap"' not in page


# ---- pages -------------------------------------------------------------------------------------------------------


def test_snapshots_have_exchanges_and_interface(tight: Recording, exchanges: int) -> None:
    with Simulation(scenes.build("chain"), tight.params) as simulation:
        simulation.step(STEPS)
        live = of_simulation(simulation)
    assert (live.exchanges, live.interface.tolist()) == (exchanges, tight.interface(-1).tolist())
    assert exchange_line(live) == f"\n\n{exchanges} exchanges, residual {live.residual:.1e} m/s, 2 interface bodies"
    recorded = of_recording(tight, tight.frame_count - 1)
    assert recorded.interface.tolist() == live.interface.tolist()
    inside = next(body for body in range(tight.body_count) if body not in live.interface)
    assert "at the interface" in body_text(live, int(live.interface[0]))
    assert "inside" in body_text(live, inside)
    tints = Tints(2)
    colors = tints.colors("interface", live, np.empty(0, np.int32))
    np.testing.assert_allclose(colors, Recorded(tight, "interface").frame(-1).colors)


def test_playback_tells_exchanges_and_residual(
    tight: Recording, blend: Recording, exchanges: int, tmp_path: Path
) -> None:
    with Playback(tight, port=0, folder=tmp_path) as shown:
        snapshot = shown._snapshot(tight.frame_count - 1)
        assert snapshot.exchanges == exchanges
        assert snapshot.residual == tight.profile["residual"][-1]
        assert f"{exchanges} exchanges, residual" in shown.page.status(snapshot)
        assert shown.page.coupling == "tight"
    with Playback(blend, port=0, folder=tmp_path) as shown:
        assert "exchanges" not in shown.page.status(shown._snapshot(0))


def test_a_live_view_tells_exchanges_and_residual() -> None:
    params = Params(workers=2, coupling="tight", runtime="inline", substeps=Substeps(joints="swept"))
    with live_view(scenes.build("chain"), params) as view:
        view.steering.speed = None
        seen: list[int] = []
        view.simulation.on_step(lambda simulation: seen.append(simulation.profile.exchanges))
        wait_until(lambda: seen, "a step")
        shown = replace(view.page.snapshot, exchanges=seen[0])
        assert f"{seen[0]} exchanges, residual" in view.page.status(shown)


# ---- reports -----------------------------------------------------------------------------------------------------


def test_blend_and_tight_are_compared(tight: Recording, blend: Recording, exchanges: int) -> None:
    found = compare(blend, tight)
    assert (found.a_coupling, found.b_coupling) == ("blend", "tight")
    (value,) = (value for value in found.values if value.name == "exchanges")
    assert (value.a_mean, value.b_mean) == (None, exchanges)
    result = CliRunner().invoke(app, ["compare", str(blend.path), str(tight.path)], catch_exceptions=False)
    assert "A: blend (blend), B: tight (tight)" in result.stdout


def test_a_report_of_both_has_overlap_of_one_and_exchanges_of_the_other(
    tight: Recording, blend: Recording, exchanges: int
) -> None:
    material = open_material([tight.path, blend.path])
    assert [run.label for run in material.runs] == ["2 workers, coupling blend", "2 workers, coupling tight"]
    items = {item.title: item for section in sections(material) for item in section.items}
    assert isinstance(items["Overlap"], Plot)
    (table,) = (section.table for section in sections(material) if section.table is not None)
    rows = [dict(zip(table.headings, row, strict=True)) for row in table.rows]
    assert [row["exchanges per step: mean / most"] for row in rows] == ["-", f"{exchanges} / {exchanges}"]
    assert [row["interface bodies"] for row in rows] == ["-", "2"]
    assert rows[1]["overlap bodies"] == "-"
    origins = [
        dict(zip(run_origins(material.runs).headings, row, strict=True)) for row in run_origins(material.runs).rows
    ]
    assert [row["coupling"] for row in origins] == ["blend", "tight"]
    assert origins[1]["growth depth"] == "-"
    assert all("joints swept" in row["other parameters"] for row in origins)
    shown = items["Exchanges and interface"]
    assert isinstance(shown, Plot)
    drawn = shown.draw()
    assert [ax.get_ylabel() for ax in drawn.axes] == [
        "exchanges",
        "residual [m/s]",
        "interface bodies",
        "constraints between workers [%]",
    ]


def test_a_report_of_tight_runs_alone_says_why_there_is_no_overlap(tight: Recording, folder: Path) -> None:
    single = record(folder / "single", scenes.build("chain"), coupling="tight", workers=1)
    material = open_material([single.path, tight.path])
    items = {item.title: item for section in sections(material) for item in section.items}
    assert items["Overlap"] == LeftOut("Overlap", "Tight coupling has no overlap.")
    assert isinstance(items["Speed-up over workers"], Plot), "one worker is the base"
    assert results(material.runs, [{}, {}]).rows[0][0].startswith("1 worker")
