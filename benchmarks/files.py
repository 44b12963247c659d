"""How long files of ten thousand bodies take to read, and what of it the libraries take that they are read by.

    python benchmarks/files.py [FILE.csv]

CPU seconds. `library_s` is what MuJoCo (MjSpec and its
compiler), usd-core (opening a stage, its parser of physics) or Python's json take alone; the rest is lapjoint's.
`loose` is bodies without joints, `robots` are chains of ten bodies and nine hinges, `arms` chains of nine on one base.
MuJoCo's times grow with the square of the number of bodies: it is measured with fewer, too.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
from pxr import Usd, UsdPhysics
from tables import Row, show, write_table

from lapjoint import Scene
from lapjoint.files.read import read_with_notes
from lapjoint.view.export.gltf import export_gltf
from lapjoint.view.export.usd import export_usd

BODIES, FEWER = 10_000, 1_000
MJSPEC = mujoco.MjSpec
LIMB = (
    '<body name="{name}" pos="0.2 0 0"><joint axis="0 1 0" range="-1 1" damping="0.1"/>'
    '<geom type="capsule" size="0.05" fromto="0 0 0 0.2 0 0"/>'
)
LINK = (
    '<link name="{name}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    '</inertial><collision><geometry><sphere radius="0.1"/></geometry></collision></link>'
)
HINGE = (
    '<joint name="j{name}" type="revolute"><origin xyz="0.2 0 0"/><parent link="{parent}"/><child link="{name}"/>'
    '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
)


def loose(count: int) -> str:
    """Bodies without joints."""
    return mjcf([""] * count)


def robots(count: int) -> str:
    """Chains of ten bodies."""
    limbs = ("".join(LIMB.format(name=f"b{i}-{k}") for k in range(9)) + "</body>" * 9 for i in range(count // 10))
    return mjcf(list(limbs))


def mjcf(limbs: list[str]) -> str:
    rows = (
        f'<body name="b{i}" pos="{i % 100} {i // 100} 1"><freejoint/><geom size="0.1"/>{inner}</body>'
        for i, inner in enumerate(limbs)
    )
    return f"<mujoco><worldbody><geom type='plane' size='0 0 1'/>{''.join(rows)}</worldbody></mujoco>"


def arms(count: int) -> str:
    """Arms of nine hinges each on one base, which does not move."""
    rows = [LINK.format(name="base")]
    for i in range(count):
        parent = f"b{i - 1}" if i % 9 else "base"
        rows += [LINK.format(name=f"b{i}"), HINGE.format(name=f"b{i}", parent=parent)]
    return f"<robot name='arms'>{''.join(rows)}</robot>"


class TimedSpec:
    """MjSpec, with the CPU time that reading and compiling take."""

    seconds = 0.0

    def __init__(self, spec: Any) -> None:
        object.__setattr__(self, "_spec", spec)

    @classmethod
    def from_file(cls, path: str) -> TimedSpec:
        start = time.process_time()
        made = cls(MJSPEC.from_file(path))
        TimedSpec.seconds += time.process_time() - start
        return made

    def compile(self) -> Any:
        start = time.process_time()
        made = object.__getattribute__(self, "_spec").compile()
        TimedSpec.seconds += time.process_time() - start
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_spec"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_spec"), name, value)


def by_usd(path: Path) -> None:
    stage = Usd.Stage.Open(str(path))
    newer = getattr(UsdPhysics, "UsdPhysicsLoadStageFromPrimRange", None)
    (newer or UsdPhysics.LoadUsdPhysicsFromRange)(stage, ["/"])


def by_json(path: Path) -> None:
    json.loads(path.read_bytes())


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(path: Path, kind: str, library: Callable[[Path], None]) -> Row:
    """Of a file that a library reads at once: what it takes alone is measured apart."""
    scenes: list[Scene] = []
    whole = seconds(lambda: scenes.append(read_with_notes(path)[0]))
    return row_of(path, kind, scenes[-1], seconds(lambda: library(path)), whole)


def measure_mujoco(path: Path, kind: str) -> tuple[Scene, Row]:
    """Of a file that MuJoCo reads: once, with what of it is MuJoCo's."""
    mujoco.MjSpec, TimedSpec.seconds = TimedSpec, 0.0
    try:
        scenes: list[Scene] = []
        whole = seconds(lambda: scenes.append(read_with_notes(path)[0]))
    finally:
        mujoco.MjSpec = MJSPEC
    return scenes[0], row_of(path, kind, scenes[0], TimedSpec.seconds, whole)


def row_of(path: Path, kind: str, scene: Scene, alone: float, whole: float) -> Row:
    return {
        "format": path.suffix[1:],
        "scene": kind,
        "bodies": scene.body_count,
        "joints": scene.joint_count,
        "megabytes": round(path.stat().st_size / 1e6, 1),
        "library_s": round(alone, 2),
        "read_s": round(whole, 2),
        "own_s": round(whole - alone, 2),
    }


def main() -> None:
    rows: list[Row] = []

    def add(row: Row) -> None:
        rows.append(row)
        show(row)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scene.xml"
        for kind, text, ending in (("robots", robots, ".xml"), ("loose", loose, ".xml"), ("arms", arms, ".urdf")):
            for count in (FEWER, BODIES):
                source = path.with_suffix(ending)
                source.write_text(text(count))
                scene, row = measure_mujoco(source, kind)
                add(row)
            if kind == "robots":
                for other, write, library in (
                    (".usda", export_usd, by_usd),
                    (".usdc", export_usd, by_usd),
                    (".gltf", export_gltf, by_json),
                ):
                    add(measure(write(scene, path.with_suffix(other)), kind, library))
    if len(sys.argv) > 1:
        write_table(rows, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
