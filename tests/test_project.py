"""Promises about the project as a whole: layers, public names, optional packages, paths in documents."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import lapjoint

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "lapjoint"

PUBLIC = [
    "FREE",
    "LOCKED",
    "NO_BODY",
    "WORLD",
    "AccuracyWarning",
    "Attractor",
    "Ball",
    "Blend",
    "Box",
    "BoxRegion",
    "Breaks",
    "Buoyancy",
    "Capsule",
    "Checkpoint",
    "CheckpointWriter",
    "ClosestPoints",
    "Compound",
    "Cone",
    "ConstantVelocity",
    "Contacts",
    "ConvexHull",
    "Cylinder",
    "Distance",
    "Drag",
    "Drive",
    "Ellipsoid",
    "Engine",
    "EngineWarning",
    "Events",
    "Failures",
    "Field",
    "Fixed",
    "Gear",
    "Gravity",
    "HeightField",
    "Hinge",
    "Incident",
    "Inside",
    "Keyframes",
    "LapjointError",
    "Material",
    "Measures",
    "Motor",
    "Oscillation",
    "Overlaps",
    "Params",
    "Part",
    "PenetrationWarning",
    "Plane",
    "RayHits",
    "Recording",
    "RecordingWriter",
    "Rotation",
    "Scene",
    "SensorEvents",
    "Sequential",
    "Simulation",
    "SimulationStopped",
    "SixAxis",
    "Sleep",
    "Slider",
    "Sphere",
    "SphereRegion",
    "Spring",
    "Substeps",
    "TriangleMesh",
    "Units",
    "Wind",
    "__version__",
    "engine_names",
    "fracture",
    "make_engine",
    "scenes",
]

OPTIONAL = ["moderngl", "glcontext", "PIL", "trimesh", "coacd", "manifold3d", "ray", "viser", "matplotlib"]
OPTIONAL += ["imageio_ffmpeg", "mujoco", "rapier3d", "pxr"]
SLOW_TO_IMPORT = ["zarr", "numcodecs", "pandas"]
SLOW_TO_HELP = ["numpy", "scipy", "lapjoint.params", "lapjoint.scene", "lapjoint.engines"]


def run_python(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- public names ------------------------------------------------------------------------------------------------


def test_public_names_are_pinned_and_sorted() -> None:
    assert sorted(lapjoint.__all__) == sorted(PUBLIC) == sorted([*dir(lapjoint), "__version__"])
    # As ruff's RUF022 sorts: constants, classes, the rest.
    assert sorted(PUBLIC, key=lambda name: (not name.isupper(), not name[0].isupper(), name)) == PUBLIC
    assert all(hasattr(lapjoint, name) for name in PUBLIC)
    with pytest.raises(AttributeError, match="No lapjoint attribute Skene"):
        lapjoint.Skene  # noqa: B018


def test_type_checkers_find_the_public_names() -> None:
    """The package imports what its stub imports; the stub has a list of names too, for type checkers alone."""
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    (names,) = (ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign))
    assert names == PUBLIC


@pytest.mark.slow
def test_a_worker_loads_what_a_worker_needs() -> None:
    """Half of the time in which a process starts was that of modules that no worker uses, and of a hull's mass."""
    code = """
        import os, sys
        from lapjoint import Params, Simulation, scenes
        with Simulation(scenes.build("bowl", 20), Params(workers=1, runtime="process")) as simulation:
            pid = simulation._core.runtime.process_ids[0]
            print(*{line.split("/")[-1].strip() for line in open(f"/proc/{pid}/maps")})
    """
    loaded = run_python(textwrap.dedent(code))
    assert "_bullet_float32" in loaded
    assert not re.search("_qhull|_ckdtree|zarr|_algorithms", loaded), loaded
    loaded = run_python("import sys, lapjoint.workers.runtimes.process_worker; print(*sys.modules)").split()
    too_much = (
        "lapjoint.server",
        "lapjoint.simulation",
        "lapjoint.recording",
        "lapjoint.checkpoint",
        "lapjoint.scenes",
    )
    assert [name for name in loaded if name.startswith(too_much)] == []


def test_the_version_is_that_of_the_metadata() -> None:
    stated = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert stated is not None
    assert importlib.metadata.version("lapjoint") == stated[1]
    assert lapjoint.__version__ == stated[1]


# ---- imports -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("module", ["lapjoint", "lapjoint.cli"])
def test_optional_packages_are_not_imported_before_they_are_needed(module: str) -> None:
    code = "import importlib, json, sys; importlib.import_module(sys.argv[1]); print(json.dumps(list(sys.modules)))"
    loaded = json.loads(run_python(code, module))
    assert module in loaded
    assert not {*OPTIONAL, *SLOW_TO_IMPORT, *SLOW_TO_HELP} & set(loaded)
    assert not [name for name in loaded if name.startswith("lapjoint.view")]


SOURCES = sorted(PACKAGE.rglob("*.py"))


def test_modules_import_only_from_modules_above_them() -> None:
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True, no_logo=True))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_order_of_folders_is_that_of_the_architecture() -> None:
    rows = re.findall(r"^\| (`src/lapjoint/[^|]*)", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    table = [name for row in rows for name in re.findall(r"src/lapjoint/(\w+)[./]", row)]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert table == settings["contracts"][0]["layers"][::-1]


@pytest.mark.slow
def test_no_module_of_lapjoint_is_imported_inside_a_function() -> None:
    hidden = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in SOURCES
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert hidden == []


def test_ray_is_known_to_its_runtime_alone() -> None:
    importing = {
        path.relative_to(PACKAGE).as_posix()
        for path in SOURCES
        if re.search(r"^\s*(import|from) ray\b", path.read_text(), re.MULTILINE)
    }
    assert importing == {"workers/runtimes/ray_cluster.py"}


def test_python_headers_and_bullet_are_each_included_in_one_place() -> None:
    files = [path for path in (ROOT / "native").rglob("*") if path.suffix in (".h", ".cpp")]
    assert len(files) > 40
    for path in files:
        folder, text = path.relative_to(ROOT / "native").parts[0], path.read_text()
        if folder != "bindings":
            assert "Python.h" not in text, path
            assert "nanobind" not in text, path
        knows_bullet = folder == "bullet" or (folder == "solver" and path.stem != "block_cholesky")
        assert knows_bullet or not re.search(r"#include <bt|#include <Bullet", text), path


# ---- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "docs/internals.md", "docs/paper.md"])
def test_every_path_in_the_architecture_exists(page: str) -> None:
    text = (ROOT / page).read_text()
    paths = {word for word in re.findall(r"`([^`\s]+)`", text) if re.fullmatch(r"[\w.-]+(/[\w.-]*)+", word)}
    assert len(paths) > 10
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


# ---- precisions --------------------------------------------------------------------------------------------------

TRACE = """
import sys
import numpy as np
from lapjoint import Params, make_engine, scenes
from lapjoint.measures import state_hash

precisions = sys.argv[1:]
for name in ("plank", "chain"):
    scene = scenes.build(name)
    engines = [make_engine(scene, Params(precision=precision)) for precision in precisions]
    for engine in engines:
        engine.activate(np.arange(scene.body_count), scene.states)
    for _ in range(60):
        for engine in engines:
            engine.step()
    for precision, engine in zip(precisions, engines):
        print(name, precision, state_hash(engine.get_states()), len(engine.contacts()))
"""


@pytest.mark.slow
def test_both_precisions_live_in_one_process_as_if_alone() -> None:
    """They are two builds of the same library; where they shared a static they would corrupt each other."""
    together = run_python(TRACE, "float32", "float64").splitlines()
    alone = [run_python(TRACE, precision).splitlines() for precision in ("float32", "float64")]
    assert sorted(together) == sorted(alone[0] + alone[1])
    assert len({line.split()[2] for line in together}) == 4


# ---- dependencies ------------------------------------------------------------------------------------------------


def test_the_lock_has_every_dependency_in_a_version_that_is_allowed() -> None:
    lines = (ROOT / ".ci" / "lock.txt").read_text().splitlines()
    locked = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    file = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, groups = file["project"], file["dependency-groups"]
    lists = [project["dependencies"], *project["optional-dependencies"].values(), *groups.values()]
    for requirement in [Requirement(need) for needs in lists for need in needs if isinstance(need, str)]:
        if requirement.name != "lapjoint":
            assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), requirement


def test_every_dependency_has_a_floor() -> None:
    """That `make floors` installs."""
    shown = subprocess.run([ROOT / "tools" / "floors", "--show"], capture_output=True, text=True, check=True).stdout
    assert {"numpy==2.0", "numcodecs==0.16.1", "ray==2.10"} <= set(shown.split())
