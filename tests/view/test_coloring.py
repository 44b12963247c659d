"""Colour modes: what each says, and what it needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lapjoint import LapjointError
from lapjoint.view import MODES, blend_colors, body_colors, label_colors, legend, worker_colors
from lapjoint.view.draw.coloring import contact_counts, fastest_of

WEIGHTS = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.25, 0.75, 0.0], [0.2, 0.3, 0.5]])


def states_with_speeds(speeds: list[float]) -> np.ndarray:
    states = np.zeros((len(speeds), 13))
    states[:, 3] = 1.0
    states[:, 8] = speeds
    return states


def test_worker_colours_are_plain_with_one_worker_and_mixed_in_the_overlap() -> None:
    colors = body_colors("worker", weights=WEIGHTS)
    assert np.array_equal(colors[:2], worker_colors(3)[[0, 2]])
    assert np.allclose(colors, blend_colors(WEIGHTS), atol=2e-3)


def test_overlap_colours_count_workers() -> None:
    colors = body_colors("overlap", weights=WEIGHTS)
    entries = legend("overlap", workers=3)
    assert [entry.text for entry in entries] == ["1 worker", "2 workers", "3 workers"]
    assert np.allclose(colors, [entries[k].color for k in (0, 0, 1, 2)])
    assert np.ptp(colors[0]) < 0.1  # one worker is grey
    assert np.array_equal(body_colors("overlap", weights=WEIGHTS > 0), colors)  # a membership does as well
    many = body_colors("overlap", weights=np.ones((1, 9)))
    assert np.array_equal(many, body_colors("overlap", weights=np.ones((1, 5))))


def test_label_colours_are_those_of_pictures() -> None:
    assert np.array_equal(body_colors("label", labels=[4, 2, 4]), label_colors([4, 2, 4]))


def test_speed_goes_from_dark_to_bright() -> None:
    colors = body_colors("speed", states=states_with_speeds([0, 0.5, 2, 8, 8, 20]), fastest=8.0)
    brightness = colors.sum(axis=1)
    assert (np.diff(brightness[:4]) > 0.1).all()
    assert np.array_equal(colors[3], colors[5])  # faster than the fastest looks like it
    entries = legend("speed", fastest=8.0)
    assert (entries[0].text, entries[-1].text) == ("0 m/s", "8 m/s")
    assert np.allclose(colors[[0, 3]], [entries[0].color, entries[-1].color])


def test_one_body_that_flies_away_does_not_darken_the_others() -> None:
    assert fastest_of([1.0] * 400 + [1000.0]) == 1.0
    assert fastest_of([]) == 1.0


def test_contacts_count_both_ends_but_no_static_body() -> None:
    contacts = [[0, 1], [1, 2], [1, -1], [3, -2]]
    assert contact_counts(contacts, 5).tolist() == [1, 3, 1, 1, 0]
    colors = body_colors("contacts", contacts=contacts, states=np.zeros((5, 13)))
    assert np.array_equal(colors[0], colors[3])
    assert colors[4].sum() > colors[0].sum() > colors[1].sum()


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_works_without_bodies_and_explains_itself(mode: str) -> None:
    nothing: dict[str, Any] = {
        "labels": np.empty(0, int),
        "weights": np.empty((0, 2)),
        "states": np.empty((0, 13)),
        "contacts": np.empty((0, 2), int),
        "interface": np.empty(0, int),
    }
    assert body_colors(mode, **nothing).shape == (0, 3)
    entries = legend(mode, workers=2, labels=[1, 5])
    assert len(entries) >= 2
    assert len({entry.color for entry in entries}) == len(entries)


def test_wrong_modes_and_missing_tables_are_refused() -> None:
    with pytest.raises(LapjointError, match="no colour mode 'wrker', expected worker, overlap"):
        body_colors("wrker")
    for mode, missing in (("worker", "weights"), ("label", "labels"), ("speed", "states"), ("contacts", "contacts")):
        with pytest.raises(LapjointError, match=f"colour mode {mode} needs {missing}"):
            body_colors(mode)
