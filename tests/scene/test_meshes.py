"""Meshes: shapes from files, and convex parts of concave solids."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapjoint import Compound, ConvexHull, LapjointError, Scene, TriangleMesh
from lapjoint.scene.meshes import decompose, load_compound, load_hull, load_mesh
from lapjoint.scene.shapes import mass_properties

LOADERS = (load_hull, load_mesh, load_compound)
U_OUTLINE = [(0, 0), (3, 0), (3, 2), (2, 2), (2, 1), (1, 1), (1, 2), (0, 2)]
U_TRIANGLES = [(0, 1, 4), (0, 4, 5), (1, 2, 3), (1, 3, 4), (0, 5, 6), (0, 6, 7)]


def u_shape() -> tuple[np.ndarray, np.ndarray]:
    """A U of volume 5: 3 wide, 2 high, 1 thick, with a notch of 1 x 1."""
    count = len(U_OUTLINE)
    vertices = np.array([(x, y, z) for z in (0, 1) for x, y in U_OUTLINE], float)
    triangles = [(c, b, a) for a, b, c in U_TRIANGLES]
    triangles += [(a + count, b + count, c + count) for a, b, c in U_TRIANGLES]
    for i in range(count):
        j = (i + 1) % count
        triangles += [(i, j, j + count), (i, j + count, i + count)]
    return vertices, np.array(triangles, np.int32)


def write_obj(path: Path, vertices: np.ndarray, triangles: np.ndarray) -> Path:
    lines = [f"v {x} {y} {z}" for x, y, z in vertices] + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in triangles]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_stl(path: Path, vertices: np.ndarray, triangles: np.ndarray) -> Path:
    lines = ["solid u"]
    for corners in vertices[triangles]:
        places = [f"vertex {x} {y} {z}" for x, y, z in corners]
        lines += ["facet normal 0 0 0", "outer loop", *places, "endloop", "endfacet"]
    path.write_text("\n".join([*lines, "endsolid u"]) + "\n")
    return path


def test_hull_of_a_file(tmp_path: Path) -> None:
    hull = load_hull(write_obj(tmp_path / "u.obj", *u_shape()))
    assert isinstance(hull, ConvexHull)
    assert mass_properties(hull)[0] == pytest.approx(6.0)
    assert np.allclose(hull.centre, [1.5, 1.0, 0.5])
    assert len(hull.points) == 8  # corners only


def test_scale_is_metres_per_unit(tmp_path: Path) -> None:
    path = write_stl(tmp_path / "u.stl", *u_shape())
    assert mass_properties(load_hull(path, scale=0.1))[0] == pytest.approx(6.0e-3)
    assert np.allclose(load_mesh(path, scale=0.1).vertices.max(axis=0), [0.3, 0.2, 0.1])


def test_static_mesh_of_a_file_has_shared_vertices(tmp_path: Path) -> None:
    """An STL repeats every vertex for every triangle."""
    mesh = load_mesh(write_stl(tmp_path / "u.stl", *u_shape()))
    assert isinstance(mesh, TriangleMesh)
    assert len(mesh.vertices) == 16
    assert len(mesh.triangles) == 28
    Scene().add_static(mesh)


@pytest.mark.slow
def test_compound_of_a_file_has_the_right_mass_and_place(tmp_path: Path) -> None:
    path = write_obj(tmp_path / "u.obj", *u_shape())
    shape = load_compound(path)
    assert isinstance(shape, Compound)
    assert 3 <= len(shape.parts) <= 8
    assert mass_properties(shape)[0] == pytest.approx(5.0, rel=0.03)
    assert np.allclose(shape.centre, [1.5, 0.9, 0.5], atol=0.03)
    assert shape == load_compound(path)  # the same every time
    Scene().add_body(shape, shape.centre)


@pytest.mark.slow
def test_decompose_takes_a_surface_inside_out() -> None:
    vertices, triangles = u_shape()
    assert mass_properties(decompose(vertices, triangles[:, ::-1]))[0] == pytest.approx(5.0, rel=0.03)


@pytest.mark.slow
def test_decompose_into_one_part_is_the_hull() -> None:
    shape = decompose(*u_shape(), max_parts=1)
    assert len(shape.parts) == 1
    assert mass_properties(shape)[0] == pytest.approx(6.0, rel=0.01)


def test_decompose_refuses_an_open_surface() -> None:
    vertices, triangles = u_shape()
    with pytest.raises(LapjointError, match="not closed, 3 edges"):
        decompose(vertices, triangles[1:])


@pytest.mark.parametrize(("option", "value"), [("threshold", 0.0), ("threshold", np.nan), ("max_parts", 0)])
def test_decompose_refuses_wrong_options(option: str, value: float) -> None:
    with pytest.raises(LapjointError, match=option):
        decompose(*u_shape(), **{option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.obj", None, "no such file"),
        ("empty.obj", "", "no triangles"),
        ("empty.stl", "", "no triangles"),
        ("words.obj", "not a mesh\n", "no triangles"),
        ("points.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\n", "no triangles"),
        ("index.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 7\n", "cannot be read"),
        ("kind.nonsense", "x", "cannot be read"),
        ("nan.obj", "v 0 0 0\nv nan 0 0\nv 0 1 0\nf 1 2 3\n", "not finite"),
        ("line.obj", "v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n", "degenerate"),
    ],
)
def test_bad_files_are_named(load: Any, name: str, content: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(LapjointError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("load", [load_hull, load_compound])
def test_flat_file_has_no_volume(load: Any, tmp_path: Path) -> None:
    path = tmp_path / "flat.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n")
    with pytest.raises(LapjointError, match=r"flat\.obj: .*no volume"):
        load(path)
    assert len(load_mesh(path).triangles) == 2  # but a static surface may be flat


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf])
def test_wrong_scale_is_refused(scale: float, tmp_path: Path) -> None:
    with pytest.raises(LapjointError, match="scale"):
        load_mesh(write_obj(tmp_path / "u.obj", *u_shape()), scale)


def test_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LapjointError, match="is a directory"):
        load_mesh(tmp_path)


@pytest.mark.parametrize("package", ["trimesh", "coacd"])
def test_missing_package_names_the_extra(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_obj(tmp_path / "u.obj", *u_shape())
    real = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name == package:
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(LapjointError, match=r"pip install 'lapjoint\[mesh\]'"):
        load_compound(path)
