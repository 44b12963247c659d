"""What workers measure of every step that they take by themselves: the same as looking after each one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lapjoint import (
    WORLD,
    Ball,
    Box,
    Compound,
    Hinge,
    LapjointError,
    Params,
    Part,
    Plane,
    Scene,
    Simulation,
    SixAxis,
    Slider,
    Sphere,
    Spring,
    scenes,
)
from lapjoint.engines import STEP_MEASURES, make_engine
from lapjoint.measures import joint_gaps
from lapjoint.measures.step import ALWAYS, Measures
from lapjoint.recording import Recording, RecordingWriter
from lapjoint.recording.layout import PROFILE_ARRAYS
from lapjoint.run import run

COUNT = 18
JOINTS = [
    Ball(),
    Hinge(axis=(0.0, 1.0, 0.0)),
    Slider(axis=(0.0, 0.6, 0.8), limits=(-0.02, 0.01)),
    SixAxis(linear=((0.0, 0.0), (-0.1, 0.02), (-1.0, 1.0)), springs={2: Spring(200.0, 5.0)}, axis=(0.6, 0.0, 0.8)),
]


def heap(seed: int) -> Scene:
    """On the ground: spheres, boxes, and compounds that touch with several parts; some of them jointed."""
    rng = np.random.default_rng(seed)
    scene = Scene(name="heap")
    scene.add_static(Plane())
    cross = Compound((Part(Box((0.4, 0.08, 0.08))), Part(Box((0.08, 0.4, 0.08)))))
    shapes = [Sphere(0.2), Box((0.2, 0.3, 0.15)), cross]
    at = np.array([(0.4 * (k % 3), 0.4 * (k // 3 % 2), 0.3 + 0.4 * (k // 6)) for k in range(COUNT)])
    turn = rng.normal(size=(COUNT, 4))
    kinds = [shapes[k] for k in rng.integers(3, size=COUNT)]
    scene.add_bodies(kinds, at, turn / np.linalg.norm(turn, axis=1, keepdims=True))
    for a in rng.choice(COUNT - 6, 6, replace=False).tolist():
        b = WORLD if a % 5 == 0 else a + 6
        scene.add_joint(JOINTS[rng.integers(len(JOINTS))], a, b, (at[a] + at[b]) / 2 if b != WORLD else at[a])
    return scene


def expected(simulation: Simulation, before: NDArray[np.float64]) -> dict[str, float]:
    """What a step has, from what its contacts and the states before it are."""
    contacts, gaps = simulation.contacts.pairs(), joint_gaps(simulation.scene, before)
    return {
        "contact_count": len(contacts),
        "contact_point_count": contacts.point_count.sum(),
        "penetration_sum": contacts.depth[contacts.depth > 0].sum(),
        "penetration_max": contacts.penetration,
        "joint_gap_sum": gaps.sum(),
        "joint_gap_max": gaps.max(initial=0.0),
        "residual": max(reply.residual for reply in simulation.replies),
        "substeps": max(reply.substeps for reply in simulation.replies),
        "exchanges": simulation.profile.exchanges,
        "sent_bytes": simulation.profile.exchange_bytes,
    }


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from(["float32", "float64"]))
def test_a_series_has_what_a_look_at_every_step_finds(seed: int, workers: int, precision: str) -> None:
    scene = heap(seed)
    owners = np.random.default_rng(seed).permutation(np.arange(COUNT) % workers)
    params = Params(workers=workers, runtime="inline", partition=owners, repartition=0, precision=precision)
    rows = []
    with Simulation(scene, params) as simulation:
        for _ in range(12):
            before = simulation.states
            simulation.step()
            rows.append(expected(simulation, before))
    with Simulation(scene, params) as simulation:
        done, most = 0, 0
        while done < len(rows):
            done += (taken := simulation.step_at_once(len(rows) - done))
            most = max(most, taken)
            series = simulation.profile.series
            assert series is not None
            assert len(series) == taken
            assert series.worker_residual.shape == (taken, workers)
            for name in STEP_MEASURES:
                found = getattr(series, name)
                assert found == pytest.approx([row[name] for row in rows[done - taken : done]], rel=1e-5, abs=1e-6), (
                    name
                )
        assert done == len(rows)
        assert most > 1, "nothing was taken at once"


def test_an_engine_without_substeps_measures_nothing() -> None:
    scene = heap(1)
    engine = make_engine(scene, Params(solver="sequential").resolved(scene))
    engine.activate(range(COUNT), scene.states)
    engine.step(3)
    assert engine.report().measures.shape == (0, len(STEP_MEASURES))


def test_with_blend_workers_do_not_count_for_each_other() -> None:
    """Bodies have several workers, so what each has measured does not add up."""
    with Simulation(heap(2), Params(workers=2, runtime="inline", coupling="blend")) as simulation:
        simulation.step()
        assert simulation.profile.series is None
        assert simulation.profile.contact_count == len(simulation.contacts.pairs())


# ---- a run ---------------------------------------------------------------------------------------------------------

TIMES = {"steps_per_second", "real_time_factor", "phases_ms", "byte_count_mean"}
"""Of a summary, what is not the same; so is whatever has ms in its name."""
LAST = {"worker_contact_count_mean", "interface_count_mean", "cut_share_mean", "worker_body_count_mean"}
"""Counted in the last of the steps that are taken at once, and so are means over others."""


def taken_at_once(simulation: Simulation, log: list[int]) -> None:
    """Note how many steps are taken each time, without being a callback, which has them taken one by one."""
    step_at_once = simulation.step_at_once

    def noted(most: int) -> int:
        log.append(step_at_once(most))
        return log[-1]

    simulation.step_at_once = noted  # type: ignore[method-assign]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_is_measured_alike_in_steps_at_once_and_one_by_one(tmp_path: Path, workers: int) -> None:
    scene, steps = scenes.build("chain-net", 60), 60
    found: list[dict[str, Any]] = []
    recordings = []
    for at_once in (True, False):
        log: list[int] = []
        with Simulation(scene, Params(workers=workers, runtime="inline")) as simulation:
            if not at_once:
                simulation.on_step(lambda _: None)
            taken_at_once(simulation, log)
            place = tmp_path / str(at_once)
            found.append(run(simulation, steps, record=place, record_every=20).to_dict())
            recordings.append(Recording(place))
        assert sum(log) == steps
        assert (max(log) > 5) == at_once
        ends = np.cumsum(log).tolist()
        assert {20, 40, 60} <= set(ends), "a frame needs the state after its step"
    one, other = found
    for name in one.keys() - TIMES - LAST:
        if "ms" not in name.split("_"):
            same = (
                pytest.approx(other[name], rel=1e-4, abs=1e-6) if isinstance(one[name], float | list) else other[name]
            )
            assert one[name] == same, name
    first, second = recordings
    for name in ("step_count", "residual", "substeps", "divided"):
        assert name in PROFILE_ARRAYS
        assert first.profile[name][:] == pytest.approx(second.profile[name][:]), name
    for name in ALWAYS:
        assert first.measures[name][:] == pytest.approx(second.measures[name][:], rel=1e-4, abs=1e-6), name
    assert np.array_equal(first.read("states", 0, 3), second.read("states", 0, 3))


def test_whoever_asks_for_more_has_every_step_looked_at() -> None:
    log: list[int] = []
    with Simulation(heap(3), Params(workers=2, runtime="inline")) as simulation:
        taken_at_once(simulation, log)
        run(simulation, 10, measure="kinetic_energy")
        assert not Measures(simulation, ALWAYS).need_every_state
    assert log == [1] * 10


def test_a_recording_takes_no_more_steps_at_once_than_there_are_to_its_next_frame(tmp_path: Path) -> None:
    with Simulation(heap(4), Params(runtime="inline")) as simulation:
        measures = Measures(simulation, ALWAYS)
        with RecordingWriter(tmp_path / "run", simulation, every=4, measures=measures.counts) as writer:
            simulation.step()
            writer.add(simulation, measures.after_step(simulation))
            assert writer.most_steps == 3
            simulation.step_at_once(5)
            with pytest.raises(LapjointError, match="5 steps are added, expected 3 at most"):
                writer.add_steps(simulation, measures.after_steps(simulation))
