"""Promises about the project as a whole: layers, public names, optional packages, paths in documents."""

from __future__ import annotations

import ast
import graphlib
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
    "Simulation",
    "SimulationStopped",
    "SixAxis",
    "Slider",
    "Sphere",
    "SphereRegion",
    "Spring",
    "TriangleMesh",
    "Wind",
    "__version__",
    "engine_names",
    "fracture",
    "make_engine",
    "scenes",
]

# Folders, and the modules that a user names, from the bottom up: each imports only from those above it in this list.
LAYERS = [
    "errors",
    "forks",
    "interrupts",
    "whole",
    "plug_ins",
    "system",
    "waits",
    "arrays",
    "scene",
    "fracture",
    "scenes",
    "files",
    "params",
    "algorithms",
    "queries",
    "step_tables",
    "engines",
    "workers",
    "server",
    "facets",
    "simulation",
    "measures",
    "recording",
    "checkpoint",
    "trials",
    "run",
    "view",
    "studies",
    "cli",
    "__init__",
]

# The same within a folder, where its members build on each other.
MEMBERS = {
    "workers": [
        *("messages", "codec", "replies", "engine_states", "kept", "readings", "questions", "looks", "start_contacts"),
        *("worker", "runtimes"),
    ],
    "view": ["draw", "page", "export"],
    "studies": ["titles", "step_values", "bench", "peers", "compare", "report", "reproduce"],
}

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
    assert sorted(lapjoint.__all__) == sorted(PUBLIC) == dir(lapjoint)
    # As ruff's RUF022 sorts: constants, classes, the rest.
    assert sorted(PUBLIC, key=lambda name: (not name.isupper(), not name[0].isupper(), name)) == PUBLIC
    assert all(hasattr(lapjoint, name) for name in PUBLIC)
    with pytest.raises(AttributeError, match="module 'lapjoint' has no attribute 'Skene'"):
        lapjoint.Skene  # noqa: B018


def test_type_checkers_find_the_public_names_where_they_are() -> None:
    """The package imports them when they are named, its stub at once."""
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    places = {
        name: f".{node.module}" for node in stub.body if isinstance(node, ast.ImportFrom) for name in names_of(node)
    }
    assert places.pop("scenes") == places.pop("fracture") == ".None"
    assert places == lapjoint._PLACE_OF
    (names,) = (ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign))
    assert names == PUBLIC


def names_of(node: ast.ImportFrom) -> list[str]:
    return [alias.name for alias in node.names]


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


def imports_of(path: Path) -> set[Path]:
    """Files of the package that a file imports when it is imported itself."""

    def resolve(parts: list[str]) -> Path | None:
        base = PACKAGE.joinpath(*parts)
        candidates = (base.with_suffix(".py"), base / "__init__.py")
        return next((file for file in candidates if file.exists()), None)

    found: set[Path] = set()
    waiting: list[ast.stmt] = list(ast.parse(path.read_text()).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If | ast.Try | ast.With):
            waiting += [child for child in ast.walk(node) if isinstance(child, ast.stmt) and child is not node]
        elif isinstance(node, ast.Import):
            assert not any(alias.name.split(".")[0] == "lapjoint" for alias in node.names), path
        elif isinstance(node, ast.ImportFrom):
            assert node.level > 0 or node.module is None or node.module.split(".")[0] != "lapjoint", path
            if node.level == 0:
                continue
            folder = path.parent
            for _ in range(node.level - 1):
                folder = folder.parent
            start = [*folder.relative_to(PACKAGE).parts, *(node.module or "").split(".")]
            start = [part for part in start if part]
            for alias in node.names:
                file = resolve([*start, alias.name]) or resolve(start)
                if file is not None and file != PACKAGE / "__init__.py":
                    found.add(file)
    return found - {path}


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


SOURCES = sorted(PACKAGE.rglob("*.py"))


def test_every_module_has_its_place_in_the_order() -> None:
    assert sorted({layer_of(path) for path in SOURCES}) == sorted(LAYERS)


@pytest.mark.slow
def test_modules_import_only_from_modules_above_them() -> None:
    seen = 0
    for path in SOURCES:
        for other in imports_of(path):
            mine, theirs = layer_of(path), layer_of(other)
            assert LAYERS.index(theirs) <= LAYERS.index(mine), f"{path} imports {other}, which is below it"
            seen += 1
    assert seen > 100


@pytest.mark.parametrize("layer", MEMBERS)
def test_members_of_a_folder_import_only_from_members_above_them(layer: str) -> None:
    def member_of(path: Path) -> str:
        return path.relative_to(PACKAGE / layer).parts[0].removesuffix(".py")

    order = MEMBERS[layer]
    own = [path for path in SOURCES if layer_of(path) == layer and member_of(path) != "__init__"]
    assert {member_of(path) for path in own} == set(order)
    for path in own:
        for other in imports_of(path):
            if layer_of(other) == layer:
                mine, theirs = member_of(path), member_of(other)
                assert order.index(theirs) <= order.index(mine), f"{path} imports {other}, which is below it"


def test_pages_and_exports_do_not_know_each_other() -> None:
    for path in SOURCES:
        if path.is_relative_to(PACKAGE / "view/export"):
            assert not [other for other in imports_of(path) if other.is_relative_to(PACKAGE / "view/page")]


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


@pytest.mark.slow
def test_no_module_imports_itself_through_others() -> None:
    graphlib.TopologicalSorter({path: imports_of(path) for path in SOURCES}).prepare()  # raises CycleError


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


def test_every_path_in_the_architecture_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
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
