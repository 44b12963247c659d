"""Pictures: what is drawn, where, in which colour, and what is refused."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lapjoint import (
    Box,
    Capsule,
    Compound,
    ConvexHull,
    Cylinder,
    LapjointError,
    Part,
    Plane,
    Scene,
    Sphere,
    TriangleMesh,
)
from lapjoint.scenes import chain_mail
from lapjoint.view import Camera, Renderer, blend_colors, label_colors, picture, worker_colors
from lapjoint.view.draw.batch import Batch
from lapjoint.view.draw.colors import PALETTE
from lapjoint.view.draw.simplify import simplify
from lapjoint.view.draw.surface import Surface
from lapjoint.view.draw.tessellate import compound, model_of

SIZE = (160, 90)
RED = (0.9, 0.1, 0.1)
TURN = (np.cos(np.pi / 4), np.sin(np.pi / 4), 0.0, 0.0)  # a quarter about x


def ring(pieces: int = 16, sides: int = 10) -> Compound:
    """A torus of radius 1 and thickness 0.6, of convex pieces that touch."""
    around, across = (2 * np.pi * np.arange(n) / n for n in (pieces, sides))
    reach = 1 + 0.3 * np.cos(across)
    cuts = [np.stack([reach * np.cos(a), reach * np.sin(a), 0.3 * np.sin(across)], axis=1) for a in around]
    hulls = [ConvexHull(np.concatenate([cuts[i - 1], cuts[i]])) for i in range(pieces)]
    return Compound(tuple(Part(hull, tuple(hull.centre)) for hull in hulls))


CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
SHAPES = {
    "sphere": Sphere(1.0),
    "box": Box((2.0, 2.0, 2.0)),
    "capsule": Capsule(0.7, 1.0),
    "cylinder": Cylinder(1.0, 2.0),
    "hull": ConvexHull(CORNERS),
    "compound": Compound((Part(Box((2.0, 1.0, 1.0))), Part(Sphere(0.8), (0.0, 0.0, 0.5)))),
}


def one_ball() -> Scene:
    scene = Scene("one ball")
    scene.add_body(Sphere(1.0), (0.0, 0.0, 1.0), name="ball")
    scene.camera = ((0.0, -8.0, 1.0), (0.0, 0.0, 1.0))
    return scene


def frame(scene: Scene, **options: Any) -> np.ndarray:
    with Renderer(scene, SIZE) as renderer:
        return renderer.draw(**options).astype(int)


def reds(pixels: np.ndarray) -> np.ndarray:
    """Which pixels are clearly red."""
    return (pixels[..., 0] > 1.6 * pixels[..., 1]) & (pixels[..., 0] > 1.6 * pixels[..., 2])


# ---- what is drawn ---------------------------------------------------------------------------------------------------


def test_picture_writes_a_png_that_is_not_blank(tmp_path: Path) -> None:
    path = picture(one_ball(), tmp_path / "ball.png", size=SIZE)
    with Image.open(path) as image:
        assert image.size == SIZE
        assert len(np.unique(np.asarray(image).reshape(-1, 3), axis=0)) > 50


def test_body_is_where_it_projects_in_its_colour() -> None:
    hit = reds(frame(one_ball(), colors=RED))
    rows, columns = np.nonzero(hit)
    assert abs(rows.mean() - 44.5) < 0.6
    assert abs(columns.mean() - 79.5) < 0.6
    # Radius 1 at a distance of 8 with a field of view of 45 degrees: the sphere's outline has this radius in pixels.
    radius = np.tan(np.arcsin(1 / 8)) / np.tan(np.radians(22.5)) * 45
    assert np.sqrt(hit.sum() / np.pi) == pytest.approx(radius, rel=0.03)


def test_small_and_large_spheres_look_alike() -> None:
    """A sphere is a disc when small and triangles when large: the same picture at two sizes."""
    with Renderer(one_ball(), (64, 36)) as renderer:
        small = renderer.draw(colors=RED).astype(float)
    with Renderer(one_ball(), (640, 360)) as renderer:
        large = renderer.draw(colors=RED).astype(float)
    reduced = large.reshape(36, 10, 64, 10, 3).mean(axis=(1, 3))
    inside = reds(small) & reds(reduced)
    assert inside.sum() > 30
    assert np.abs(small - reduced)[inside].mean() < 6


def test_states_move_bodies() -> None:
    scene = one_ball()
    states = scene.states.copy()
    states[0, 0] = 2.0
    columns = np.nonzero(reds(frame(scene, states=states, colors=RED)))[1]
    assert columns.mean() > 100


@pytest.mark.parametrize("name", SHAPES)
def test_every_moving_shape_is_drawn(name: str) -> None:
    scene = Scene(name)
    scene.add_body(SHAPES[name])
    scene.camera = ((3.0, -7.0, 3.0), (0.0, 0.0, 0.0))
    hit = reds(frame(scene, colors=RED))
    assert 300 < hit.sum() < 3000
    assert hit[44:46, 79:81].all()


def test_static_bodies_are_grey() -> None:
    scene = Scene("static")
    scene.add_static(Box((2.0, 2.0, 2.0)))
    scene.add_static(TriangleMesh([[3.0, 0.0, -1.0], [5.0, 0.0, -1.0], [4.0, 0.0, 1.0]], [[0, 1, 2]]), (0.0, 0.0, 0.0))
    scene.camera = ((0.0, -12.0, 0.0), (0.0, 0.0, 0.0))
    front = frame(scene)
    scene.camera = ((0.0, 12.0, 0.0), (0.0, 0.0, 0.0))
    back = frame(scene)
    for pixel in (front[45, 80], front[48, 116], back[48, 43]):  # a mesh is seen from both sides
        assert np.ptp(pixel) < 20
        assert 60 < pixel.mean() < 215


def test_shadow_darkens_the_ground() -> None:
    scene = Scene("shadow")
    scene.add_static(Plane())
    scene.camera = ((0.0, -10.0, 8.0), (0.0, 0.0, 0.0))
    empty = frame(scene)
    scene.add_body(Box((1.0, 1.0, 1.0)), (0.0, 0.0, 2.5))
    seen = frame(scene, colors=RED)
    darker = (seen.sum(axis=2) < 0.85 * empty.sum(axis=2)) & (np.ptp(seen, axis=2) < 40)
    assert 40 < darker.sum() < 2000
    # The light is above the camera's left shoulder, so the shadow falls to the right, behind the body.
    assert np.nonzero(darker)[1].mean() > np.nonzero(reds(seen))[1].mean()
    # A large open ground shows no shadow of its own.
    assert np.abs(seen - empty)[-20:, :40].max() <= 2


def test_ground_fades_into_the_background() -> None:
    scene = Scene("ground")
    scene.add_static(Plane())
    scene.camera = ((0.0, -10.0, 3.0), (0.0, 0.0, 0.0))
    steps = np.abs(np.diff(frame(scene)[:, 70].sum(axis=1)))
    assert steps.max() < 40


def test_plane_is_not_seen_from_below() -> None:
    scene = Scene("below")
    scene.add_static(Plane(), (0.0, 0.0, 1.0))
    scene.add_body(Sphere(1.0), (0.0, 0.0, 3.0))
    scene.camera = ((0.0, -8.0, -1.0), (0.0, 0.0, 3.0))
    assert reds(frame(scene, colors=RED))[45, 80]
    scene.camera = ((0.0, -8.0, 3.0), (0.0, 0.0, -3.0))  # from above it hides what is below it
    states = scene.states.copy()
    states[0, 2] = -3.0
    assert not reds(frame(scene, states=states, colors=RED)).any()


def test_two_colours_of_two_labels() -> None:
    scene = Scene("labels")
    scene.add_bodies(Sphere(1.0), [[-2.0, 0.0, 0.0], [2.0, 0.0, 0.0]], labels=[7, 9])
    scene.camera = ((0.0, -10.0, 0.0), (0.0, 0.0, 0.0))
    pixels = frame(scene)
    left, right = pixels[45, 58], pixels[45, 101]
    assert left[2] > left[0] + 30  # the palette's blue
    assert right[0] > right[2] + 30  # and red


def test_camera_has_all_bodies_in_the_picture() -> None:
    scene = Scene("framing")
    rng = np.random.default_rng(0)
    scene.add_bodies(Sphere(0.3), rng.uniform(-5, 5, (200, 3)) * [4, 1, 1] + [100.0, 50.0, 0.0])
    hit = reds(frame(scene, colors=RED))
    assert hit.any()
    assert not np.concatenate([hit[0], hit[-1], hit[:, 0], hit[:, -1]]).any()
    assert np.ptp(np.nonzero(hit)[1]) > 100  # and fills it


def test_far_from_the_origin_nothing_changes() -> None:
    near, far = one_ball(), Scene("far")
    shift = np.array([1234567.89, -7654321.01, 0.0])
    far.add_body(Sphere(1.0), shift + [0.0, 0.0, 1.0])
    far.camera = (tuple(shift + [0.0, -8.0, 1.0]), tuple(shift + [0.0, 0.0, 1.0]))
    assert np.abs(frame(near) - frame(far)).max() <= 8


def test_renderer_draws_many_frames_and_many_renderers_live_together() -> None:
    scene = one_ball()
    with Renderer(scene, SIZE) as one, Renderer(scene, SIZE) as two:
        first = one.draw()
        two.draw(colors=RED)
        assert np.array_equal(first, one.draw())
        assert np.array_equal(one.draw(colors=RED), two.draw(colors=RED))
    with pytest.raises(LapjointError, match="closed"):
        one.draw()


def test_empty_scene_is_a_background() -> None:
    pixels = frame(Scene("empty"))
    assert pixels.min() > 150


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_states_that_are_not_finite_name_the_body(tmp_path: Path) -> None:
    scene = one_ball()
    states = scene.states.copy()
    states[0, 1] = np.nan
    with pytest.raises(LapjointError, match=r"body 0 \('ball'\).*not finite"):
        picture(scene, tmp_path / "a.png", states)
    states = scene.states.copy()
    states[0, 3:7] = 0.0
    with pytest.raises(LapjointError, match="quaternion is zero"):
        picture(scene, tmp_path / "a.png", states)
    with pytest.raises(LapjointError, match=r"expected \(1, 13\)"):
        picture(scene, tmp_path / "a.png", scene.states[:, :7])
    assert not list(tmp_path.iterdir())


def test_paths_are_checked_first(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "a.jpg", "ends in .png"),
        (tmp_path / "a", "ends in .png"),
        (tmp_path / "no" / "a.png", "there is no directory"),
        (tmp_path / "d.png", "is a directory"),
    ):
        (tmp_path / "d.png").mkdir(exist_ok=True)
        with pytest.raises(LapjointError, match=message):
            picture(one_ball(), path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": (0, 10)}, "expected 1 to"),
        ({"size": 7}, "expected \\(width, height\\)"),
        ({"colors": [[1.0, 0.0]]}, "expected \\(1, 3\\)"),
        ({"colors": [255, 0, 0]}, "from 0 to 1"),
        ({"camera": ((0, 0, 0), (0, 0, 0))}, "two places"),
        ({"camera": ((0, 0), (0, 0, 0))}, "eye is"),
        ({"camera": 3}, "expected \\(eye, target\\)"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(LapjointError, match=message):
        picture(one_ball(), tmp_path / "a.png", **options)


@pytest.mark.parametrize("package", ["moderngl", "PIL"])
def test_missing_package_names_the_extra(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name == package:
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(LapjointError, match=r"pip install 'lapjoint\[picture\]'"):
        picture(one_ball(), tmp_path / "a.png")


def test_missing_egl_names_the_system_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**options: Any) -> Any:
        raise RuntimeError("libEGL.so not found")

    monkeypatch.setattr("moderngl.create_context", broken)
    with pytest.raises(LapjointError, match=r"libEGL.so not found.*libegl1 libgl1-mesa-dri"):
        Renderer(one_ball(), SIZE)


# ---- surfaces --------------------------------------------------------------------------------------------------------


def volume(surface: Surface) -> float:
    a, b, c = (surface.vertices[surface.triangles[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)


def area(surface: Surface) -> float:
    a, b, c = (surface.vertices[surface.triangles[:, k]] for k in range(3))
    return float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("sphere", 4 / 3 * np.pi), ("box", 8.0), ("cylinder", 2 * np.pi), ("hull", 8.0)],
)
def test_surfaces_enclose_the_shape(name: str, expected: float) -> None:
    """A positive volume also says that all triangles are counter-clockwise from outside."""
    model = model_of(SHAPES[name])
    assert volume(model.levels[-1]) * np.prod(model.scale) == pytest.approx(expected, rel=0.01)


def test_capsule_encloses_its_volume() -> None:
    model = model_of(Capsule(0.7, 1.0))
    expected = np.pi * 0.7**2 + 4 / 3 * np.pi * 0.7**3
    assert volume(model.levels[-1]) * np.prod(model.scale) == pytest.approx(expected, rel=0.01)


def test_spheres_of_all_sizes_share_one_model() -> None:
    assert model_of(Sphere(1.0)).key == model_of(Sphere(2.0)).key
    assert model_of(Sphere(1.0)).levels[1] is model_of(Sphere(2.0)).levels[1]


def test_ring_of_pieces_is_one_smooth_surface() -> None:
    surface = compound(ring(16, 10))
    assert len(surface.triangles) == 2 * 16 * 10  # no triangle between two pieces is left
    assert len(surface.vertices) == 16 * 10  # one normal per vertex: no seam, no edge
    # Close to the torus's own normals.
    flat = surface.vertices * [1, 1, 0]
    middle = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    true = (surface.vertices - middle) / 0.3
    assert np.einsum("ij,ij->i", true, surface.normals).min() > 0.97


def test_box_has_sharp_edges() -> None:
    normals = model_of(Box((1.0, 1.0, 1.0))).levels[0].normals
    assert np.allclose(np.sort(np.abs(normals), axis=1), [0, 0, 1])


def test_simplified_ring_keeps_its_form() -> None:
    whole = compound(ring(24, 12))
    ((few, error),) = simplify(whole, (len(whole.triangles) // 4,))
    assert len(few.triangles) <= len(whole.triangles) // 4
    assert 0 < error < 0.05
    assert volume(few) == pytest.approx(volume(whole), rel=0.05)


def test_simplified_ring_of_capsules_has_no_holes() -> None:
    """Its parts end within each other: they shrank away from there, down to less than half of the surface."""
    whole = compound(chain_mail.ring())
    counts = tuple(len(whole.triangles) // by for by in (3, 8, 20, 50))
    levels = simplify(whole, counts)
    assert len(levels) == len(counts)
    for few, _ in levels:
        assert area(few) == pytest.approx(area(whole), rel=0.1)


def test_large_bodies_get_finer_surfaces() -> None:
    scene = Scene("levels")
    scene.add_bodies(Sphere(1.0), np.zeros((4, 3)))
    scene.add_bodies(ring(16, 10), np.zeros((700, 3)), TURN)
    batch = Batch(scene)
    counts = {}
    for pixels in (2.0, 500.0):
        draws = batch.draws(scene.bodies.position, scene.bodies.quaternion, np.zeros((704, 3)), np.full(704, pixels))
        commands = np.concatenate(list(draws.seen.values()))
        assert commands[:, 1].sum() == len(draws.rows) == 704
        counts[pixels] = commands[np.argsort(commands[:, 1]), 0] // 3
    assert counts[2.0][0] == 2  # a disc for each sphere
    assert counts[500.0][0] > 3000
    assert counts[2.0][1] <= 40
    assert counts[500.0][1] == 2 * 16 * 10


# ---- colours ---------------------------------------------------------------------------------------------------------


def test_label_colours_follow_the_order_of_labels() -> None:
    assert np.array_equal(label_colors([5, -1, 5, 30]), PALETTE[[1, 0, 1, 2]])


@pytest.mark.parametrize("count", [1, 10, 11, 40, 200])
def test_worker_colours_are_distinct_and_valid(count: int) -> None:
    colors = worker_colors(count)
    assert colors.shape == (count, 3)
    assert colors.min() >= 0
    assert colors.max() <= 1
    assert len(np.unique(colors.round(6), axis=0)) == count


def test_neighbours_in_a_long_ramp_differ() -> None:
    colors = worker_colors(100)
    assert np.abs(np.diff(colors, axis=0)).max(axis=1).min() > 0.08


def test_blends_of_one_worker_are_its_colour_and_others_lie_between() -> None:
    palette = worker_colors(3)
    assert np.allclose(blend_colors(np.eye(3), palette), palette, atol=2e-3)
    halves = blend_colors([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    assert np.abs(halves[1] - palette[1]).sum() < np.abs(halves[0] - palette[1]).sum()
    assert np.ptp(halves, axis=1).min() > 0.15  # not grey


@pytest.mark.parametrize(
    ("weights", "message"),
    [([[0.5, 0.4]], "body 0: weights sum to 0.9"), ([[np.nan, 1.0]], "not a number"), ([0.5], "expected \\(bodies")],
)
def test_wrong_weights_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(LapjointError, match=message):
        blend_colors(weights)


def test_camera_is_public_and_checked() -> None:
    assert Camera((0.0, -5.0, 0.0), (0.0, 0.0, 0.0)).distance == 5.0
    with pytest.raises(LapjointError, match="fov"):
        Camera((0.0, -5.0, 0.0), (0.0, 0.0, 0.0), fov=0.0)
