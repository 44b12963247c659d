"""Checkpoint: what a file holds, and the simulation that goes on from it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..arrays.state import unflatten
from ..errors import LapjointError, PenetrationWarning, WorkerError, shortened
from ..params import Params
from ..recording.origin import versions
from ..scene import Scene
from ..scene.field_functions import FieldFunction
from ..scene.living import STEPS, Life
from ..scene.serialize import scene_from_bytes
from ..server.saved_state import OF_RUNTIME
from ..simulation import Simulation
from .check import check_description, check_parts
from .layout import checkpoint_files, read_checkpoint

FIXED = ("engine", "precision", "units", "timestep", "coupling", "partition", "solver")
"""Parameters that cannot change from one step to the next."""


def newest_checkpoint(path: Path) -> Path:
    """A checkpoint's file, or the newest one in a directory."""
    if not path.is_dir():
        return path
    files = checkpoint_files(path)
    if not files:
        raise LapjointError(f"{path}: there is no checkpoint in this directory")
    return files[-1]


class Checkpoint:
    """A checkpoint, or the newest one in a directory.

    >>> with Checkpoint("run.checkpoints").resume(workers=8) as simulation:
    ...     simulation.step(1000)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = newest_checkpoint(Path(path))
        try:
            within = None if self.path == Path(path) else self.path.parent
            self._arrays, description = read_checkpoint(self.path, within)
        except LapjointError as error:
            older = [file for file in checkpoint_files(Path(path)) if file != self.path] if Path(path).is_dir() else []
            if not older:
                raise
            raise LapjointError(f"{error}; the one before it is {older[-1]}") from None
        try:
            self._parts = unflatten(self._arrays, description["parts"])
            self.params = Params.from_options(**description["params"])
            self.step_count: int = description["step_count"]
            self._began_with: list[int] = description["began_with"]
            self.end: int | None = description["end"]
            """The step to which the run was to go, where that is known."""
            self.every: int = description["every"]
            """Steps from one checkpoint to the next in the run that wrote it; 0: none."""
            self.keep: int = description["keep"]
            self.versions: dict[str, str] = description["versions"]
            """Of what wrote it."""
            check_description(self.step_count, self.end, self.every, self.keep, self.versions)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> LapjointError:
        return LapjointError(f"{self.path}: damaged checkpoint (missing or wrong {shortened(error)})")

    def scene(self) -> Scene:
        return scene_from_bytes(Scene, self._arrays["scene"].tobytes(), str(self.path))

    def resume(self, *, functions: Mapping[str, FieldFunction] | None = None, **changed: Any) -> Simulation:
        """The simulation, to go on. With as many workers, wherever they live, it goes on bit for bit as if it had never
        stopped; with another number the scene is repartitioned. `functions` are those of fields, by name, which a file
        has not. `changed` are other parameters than those it had, as Params has them: of a class in it all change."""
        for name in changed:
            if name in FIXED:
                raise LapjointError(f"{name} cannot change when a run goes on, it stays {getattr(self.params, name)!r}")
        if changed.get("runtime", self.params.runtime) != self.params.runtime:
            changed = dict.fromkeys(OF_RUNTIME) | changed
        params = replace(self.params, **changed)
        self.params.check_worker_count(params.workers)
        self._warn_of_other_versions()
        scene = self.scene()
        scene.give_functions(functions or {})
        try:
            check_parts(self._parts, scene, self.params.workers, self.params.coupling)
            life = self._life(scene)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise self._damaged(error) from None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PenetrationWarning)  # that was at the start
            simulation = Simulation(scene, replace(params, partition="equal"), life=life)
        try:
            simulation.restore(self._parts, self.params)
        except WorkerError as error:
            simulation.close()
            raise LapjointError(f"{self.path}: the run cannot go on from this checkpoint: {shortened(error)}") from None
        except (KeyError, TypeError, IndexError, ValueError) as error:
            simulation.close()
            raise self._damaged(error) from None
        except BaseException:
            simulation.close()
            raise
        simulation.resumed_from = {"checkpoint": str(self.path.absolute()), "step_count": self.step_count}
        return simulation

    def _life(self, scene: Scene) -> Life:
        """What has become of the scene."""
        began_with = tuple(self._began_with)
        if len(began_with) != 3 or not all(0 <= a <= b for a, b in zip(began_with, scene.extent, strict=True)):
            raise ValueError(f"began_with is {began_with}, expected at most {scene.extent}")
        steps = {name: self._parts["life"].array(name) for name in STEPS}
        return Life(began_with, self._parts["table"].array("states"), **steps)

    def _warn_of_other_versions(self) -> None:
        now = versions(self.params.engine)
        for name in ("lapjoint", "engine"):
            if self.versions[name] != now[name]:
                warnings.warn(
                    f"{self.path}: written with {name} {self.versions[name]}, this is {now[name]}: the run may not go "
                    "on bit for bit",
                    stacklevel=3,
                )
