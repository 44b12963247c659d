"""How many workers `auto` takes, and why: from how long a step takes with 1, 2, 3, ... of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GAIN = 0.05
"""Share of a step's time that one more worker has to save. Two trials of the same count differ by less, on a machine
that does nothing else."""
TRIALS_S = 3.0
"""What all trials together may take [s], from the third on; or TRIALS_SHARE of the run, if that is longer."""
TRIALS_SHARE = 0.1
OPEN_S = 60.0
"""How long a run without a last step counts for [s]."""


@dataclass(frozen=True)
class CountChoice:
    """A number of workers and the reason. Names of fields are in backticks there."""

    workers: int
    reason: str


def pays(step_s: Sequence[float]) -> bool:
    """Whether the last number of workers is worth it. `step_s` is what a step takes with 1, 2, 3, ... workers."""
    return len(step_s) < 2 or step_s[-1] <= (1 - GAIN) * step_s[-2]


def choose_count(step_s: Sequence[float], end: str) -> CountChoice:
    """The largest number of workers up to which each one more pays. `step_s` is what a step takes with 1, 2, 3, ...
    workers; `end` says why no more were tried, and is part of the reason where all of these pay."""
    count = next((n for n in range(1, len(step_s)) if not pays(step_s[: n + 1])), len(step_s))
    one, best = step_s[0], step_s[count - 1]
    if count < len(step_s):
        after = step_s[count]
        if count == 1 and after > one:
            return CountChoice(1, f"2 would take {in_ms(after)} ms a step against {in_ms(one)}")
        end = f"{count + 1} would " + ("gain under 5%" if after <= best else f"take {in_ms(after)}")
    against = f" against {in_ms(one)} with 1" if count > 1 else ""
    return CountChoice(count, f"{in_ms(best)} ms a step{against}; {end}")


def is_worth_a_trial(worker_count: int, run_s: float, trial_s: float, spent_s: float) -> bool:
    """Whether to try so many workers, 2 or more. `run_s` is what the run would take with one fewer, `trial_s` what the
    trial may take, `spent_s` what trials have taken so far."""
    if trial_s > run_s / worker_count:  # all that one more saves, at best
        return False
    # A first trial that took seconds is for nothing without a second one.
    return worker_count == 2 or spent_s + trial_s <= max(TRIALS_S, TRIALS_SHARE * run_s)


def in_ms(seconds: float) -> str:
    """A time in milliseconds, with two or three digits."""
    ms = 1e3 * seconds
    return f"{ms:.2f}" if ms < 1 else f"{ms:.1f}" if ms < 100 else f"{ms:.0f}"
