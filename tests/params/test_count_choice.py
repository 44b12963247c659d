"""How many workers auto takes, from times of a step: no clock is looked at here."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapjoint.params.count_choice import (
    GAIN,
    TRIALS_S,
    TRIALS_SHARE,
    choose_count,
    in_ms,
    is_worth_a_trial,
    pays,
)

times = st.lists(st.floats(1e-5, 10.0), min_size=1, max_size=8)
seconds = st.floats(0.0, 1e4)


@pytest.mark.parametrize(
    ("step_ms", "count", "reason"),
    [
        ((15.8, 9.1, 8.9), 2, "9.1 ms a step against 15.8 with 1; 3 would gain under 5%"),
        ((15.8, 9.1, 9.9), 2, "9.1 ms a step against 15.8 with 1; 3 would take 9.9"),
        ((15.8, 9.1), 2, "9.1 ms a step against 15.8 with 1; there are 2 cores"),
        ((300.0, 160.0, 109.6), 3, "110 ms a step against 300 with 1; there are 2 cores"),
        ((0.22, 0.31), 1, "2 would take 0.31 ms a step against 0.22"),
        ((0.22, 0.215), 1, "0.22 ms a step; 2 would gain under 5%"),
        ((0.22, 0.22), 1, "0.22 ms a step; 2 would gain under 5%"),
        ((6.6,), 1, "6.6 ms a step; there are 2 cores"),
    ],
)
def test_the_choice_and_its_reason(step_ms: tuple[float, ...], count: int, reason: str) -> None:
    choice = choose_count([1e-3 * ms for ms in step_ms], "there are 2 cores")
    assert (choice.workers, choice.reason) == (count, reason)


def test_one_more_worker_pays_from_a_gain_of_five_per_cent() -> None:
    assert pays([1.0])
    assert pays([1.0, 1 - GAIN])
    assert not pays([1.0, 1 - GAIN + 1e-9])
    assert pays([1.0, 2.0, 1.8]), "each against the one before"


@given(times)
def test_up_to_the_choice_each_one_more_pays_and_the_next_does_not(step_s: list[float]) -> None:
    choice = choose_count(step_s, "the end")
    count = choice.workers
    assert 1 <= count <= len(step_s)
    assert all(pays(step_s[:n]) for n in range(1, count + 1))
    assert count == len(step_s) or not pays(step_s[: count + 1])
    assert step_s[count - 1] == min(step_s[:count])
    assert (count == len(step_s)) == choice.reason.endswith("; the end")
    assert in_ms(step_s[count - 1]) in choice.reason


@given(times, st.lists(st.floats(1e-5, 10.0), max_size=4))
def test_what_is_tried_after_one_that_does_not_pay_changes_nothing(step_s: list[float], more: list[float]) -> None:
    tried = [*step_s, step_s[-1]]
    assert choose_count([*tried, *more], "the end") == choose_count(tried, "the end")


@given(times, st.integers(-8, 8))
def test_a_machine_that_is_faster_throughout_takes_as_many(step_s: list[float], power: int) -> None:
    assert choose_count([2.0**power * one for one in step_s], "").workers == choose_count(step_s, "").workers


@given(st.integers(2, 100), seconds, seconds, seconds)
def test_trials_are_bounded(count: int, run_s: float, trial_s: float, spent_s: float) -> None:
    if is_worth_a_trial(count, run_s, trial_s, spent_s):
        assert trial_s <= run_s / count
        assert count == 2 or spent_s + trial_s <= max(TRIALS_S, TRIALS_SHARE * run_s)
        assert is_worth_a_trial(count, 2 * run_s, trial_s, spent_s), "more so in a longer run"
        assert is_worth_a_trial(count, run_s, trial_s / 2, spent_s / 2)


def test_a_trial_that_takes_nothing_is_worth_it() -> None:
    assert is_worth_a_trial(2, 1.0, 0.0, 0.0)
    assert not is_worth_a_trial(2, 1.0, 1.0, 0.0)
    assert is_worth_a_trial(2, 100.0, 40.0, 40.0)
    assert not is_worth_a_trial(3, 100.0, 10.0, 10.0)


def test_times_have_two_or_three_digits() -> None:
    assert [in_ms(s) for s in (2.2e-4, 9.08e-3, 0.0158, 0.2814, 1.5)] == ["0.22", "9.1", "15.8", "281", "1500"]
