"""Where each field of a simulation's state is missed: the living scene and the step after which a run that goes on
without it differs.

`python tests/resume_fields.py` looks for them, and writes tests/data/resume_fields.json. Needed when fields or living
scenes change: the tests of tests/checkpoint/test_resume.py say so. Some minutes.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
import tempfile
import warnings
from pathlib import Path

from lapjoint import LapjointError
from living_scenes import GLUED, LivingScene, living_scene
from resume_support import Readings, Saved, difference, field_names, filled_fields, resume_without, run_and_save

TABLE = Path(__file__).parent / "data" / "resume_fields.json"
SCENES, GLUED_SCENES = 300, 4
EVERY = 5
TRIED = 3
"""Checkpoints of a scene that are tried for a field."""
TIMES = "measured times, which are others in every run"
WORKER_COUNTS = "for numbers of workers by measured times"
QUARANTINE = "compared where bodies are quarantined, in test_checkpoint.py"
NOT_MISSED = {
    "last_step/cpu_s": TIMES,
    "last_step/prepare_cpu_s": TIMES,
    "loads/cpu_ms": TIMES,
    "elastic/least": WORKER_COUNTS,
    "elastic/looks": WORKER_COUNTS,
    "elastic/most": WORKER_COUNTS,
    "recovery/failed_at": "compared where workers fail, in test_recovery.py",
    "recovery/quarantined": QUARANTINE,
    "recovery/surged": "compared where energy comes from nowhere, in test_surges.py",
    "workers/passed_impulses": "compared where contacts are looked for between two steps, in test_contract_state.py",
    "workers/prepared": "what is not prepared is found in the step",
    "workers/joint_bodies": "for other numbers of workers",
    "workers/drive_targets": "the server tells workers that go on",
}
"""Fields without which these runs go on as they would, and why they are kept."""


def run_and_save_some(case: LivingScene, folder: Path) -> tuple[list[Readings], list[Saved]]:
    """With checkpoints of every few steps, and of before and after each change."""
    return run_and_save(case, folder, lambda step: step % EVERY == 0 or step in case.changes)


def is_missed(case: LivingScene, expected: list[Readings], saved: Saved, field: str) -> bool:
    """Whether a run that goes on without the field differs, or is refused."""
    with contextlib.suppress(LapjointError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return difference(case, expected, saved, resume_without(field)) is not None
    return True


def find(scene_count: int) -> tuple[dict[str, list[int]], set[str]]:
    """Fields with the scene and the place of the checkpoint in it, and those of which none was found."""
    found: dict[str, list[int]] = {}
    seen: set[str] = set()
    for number in (*range(GLUED, GLUED + GLUED_SCENES), *range(scene_count)):
        case = living_scene(number)
        with tempfile.TemporaryDirectory() as folder:
            expected, saved = run_and_save_some(case, Path(folder))
            filled = [filled_fields(one.path) for one in saved]
            seen.update(*(field_names(one.path) for one in saved))
            for field in sorted(seen - found.keys() - NOT_MISSED.keys()):
                places = [i for i, fields in enumerate(filled) if field in fields]
                for i in random.Random(number).sample(places, min(TRIED, len(places))):
                    if is_missed(case, expected, saved[i], field):
                        found[field] = [number, i]
                        break
        missing = sorted(seen - found.keys() - NOT_MISSED.keys())
        print(f"scene {number}: {len(found)} of {len(seen)} fields; {', '.join(missing)}", file=sys.stderr, flush=True)
        if not missing and 30 < number < GLUED:
            break
    return found, seen - found.keys()


if __name__ == "__main__":
    found, rest = find(SCENES)
    TABLE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    print("never missed:", ", ".join(sorted(rest)) or "none")
