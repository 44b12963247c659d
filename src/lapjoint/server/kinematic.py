"""KinematicBodies: how static bodies move that do, as the scene has it or as they were told since."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.checks import as_rows, integer_rows, unit_quaternions
from ..arrays.state import PartState
from ..errors import LapjointError
from ..params import Params
from ..scene import STATE_SIZE, Scene
from ..scene.motions import GivenMotion, Keyframes, Motion, pack_motions, unpack_motions
from ..workers.messages import Motions

Array = NDArray[np.float64]

MOST_NUMBERS = 100_000
"""Of all motions that are not the scene's: they travel in one message."""
OF_MOTION = 12
"""Numbers of one besides its values."""


class KinematicBodies:
    """Where kinematic bodies are follows from the number of steps and from what they were told."""

    def __init__(self, scene: Scene, params: Params) -> None:
        assert params.timestep is not None
        self._scene, self._timestep = scene, params.timestep
        self.changed: dict[int, GivenMotion] = {}
        """Motions that are not the scene's."""

    @property
    def motions(self) -> dict[int, GivenMotion]:
        """Of all kinematic bodies."""
        return self._scene.motions | self.changed

    def message(self) -> Motions:
        """What workers have to know besides the scene."""
        return Motions(**pack_motions(self.changed))

    def states(self, step_count: int) -> Array:
        """Of all kinematic bodies, ascending, (n, 13)."""
        motions = self.motions
        rows = [motions[number].state(step_count, self._timestep) for number in sorted(motions)]
        return np.array(rows).reshape(-1, STATE_SIZE)

    def static_poses(self, step_count: int) -> Array:
        """Of all static bodies, (static_count, 7)."""
        poses = np.concatenate([self._scene.statics.position, self._scene.statics.quaternion], axis=1)
        for number, motion in self.motions.items():
            poses[number] = motion.pose(step_count, self._timestep)
        return poses

    def set_motion(self, static_ids: ArrayLike, motion: Motion | None, step_count: int) -> None:
        ids = self._checked_ids(static_ids, "kinematic.set_motion")
        poses = self.static_poses(step_count)
        self._change({s: GivenMotion.of(motion, _title("kinematic.set_motion", s), poses[s], step_count) for s in ids})

    def move_to(
        self, static_ids: ArrayLike, positions: ArrayLike, quaternions: ArrayLike | None, step_count: int
    ) -> None:
        ids = self._checked_ids(static_ids, "kinematic.move_to")
        before = self.static_poses(step_count)[ids]
        places = as_rows("position", positions, len(ids), (3,), lambda row: _title("kinematic.move_to", ids[row]))
        turns = before[:, 3:]
        if quaternions is not None:
            turns = unit_quaternions(quaternions, len(ids), lambda row: _title("kinematic.move_to", ids[row]))
        times = 0.0, self._timestep
        moved = {}
        for s, pose, place, turn in zip(ids, before, places, turns, strict=True):
            there = Keyframes(times, np.stack([pose[:3], place]), np.stack([pose[3:], turn]))
            moved[s] = GivenMotion.of(there, _title("kinematic.move_to", s), pose, step_count)
        self._change(moved)

    def _change(self, motions: dict[int, GivenMotion]) -> None:
        changed = self.changed | motions
        count = sum(OF_MOTION + len(motion.values) for motion in changed.values())
        if count > MOST_NUMBERS:
            raise LapjointError(
                f"motions that are set while a simulation runs have {count} numbers, expected {MOST_NUMBERS} at most: "
                "long ones belong into the scene"
            )
        self.changed = changed

    def _checked_ids(self, static_ids: ArrayLike, what: str) -> list[int]:
        ids = integer_rows("static body", static_ids, np.size(static_ids), what).tolist()
        for number in ids:
            if number not in self._scene.motions:
                known = ", ".join(map(str, self._scene.kinematic_ids[:20])) or "none"
                raise LapjointError(f"{what}: static body {number} is not kinematic; those that are: {known}")
        return [int(number) for number in ids]

    # ---- state -------------------------------------------------------------------------------------------------------

    def state(self) -> PartState:
        return PartState(pack_motions(self.changed))

    def restore(self, state: PartState) -> None:
        self.changed = unpack_motions(state.arrays)
        for number in self.changed.keys() - self._scene.motions.keys():
            raise ValueError(f"kinematic/ids has {number}, which is not kinematic")


def _title(what: str, number: int) -> str:
    return f"{what}: static body {number}"
