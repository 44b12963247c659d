"""Pictures, films and pages of runs in which bodies come and go: only who is there is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from film_support import falling, record_changing
from lapjoint import LapjointError, Params, Recording, Scene, Simulation, Sphere
from lapjoint.cli.last_picture import draw_last_state
from lapjoint.view import Renderer, body_colors, frame_picture, video
from lapjoint.view.draw.cameras import CameraPath, Shot
from lapjoint.view.draw.recorded import Recorded, between_states, fastest_speed, opening_states
from lapjoint.view.draw.stage import Stage

SIZE = (160, 90)
CAMERA = ((0.0, -6.0, 2.0), (0.0, 0.0, 0.7))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record_changing(tmp_path_factory.mktemp("changes") / "run")


def without(scene: Scene, gone: list[int]) -> np.ndarray:
    states = scene.states.copy()
    states[gone] = 0.0
    return states


# ---- pictures --------------------------------------------------------------------------------------------------------


def test_a_body_that_is_not_there_leaves_no_trace() -> None:
    """Nor a shadow: the picture is that of a scene that never had it."""
    whole, less = falling(), Scene("less")
    for s in range(2):
        less.add_static(whole.shapes[whole.statics.shape_id[s]], whole.statics.position[s])
    for b in range(4):
        less.add_body(whole.shapes[whole.bodies.shape_id[b]], whole.bodies.position[b], label=whole.bodies.label[b])
    colors = np.linspace(0.2, 0.9, 18).reshape(6, 3)
    with Renderer(whole, SIZE) as first, Renderer(less, SIZE) as second:
        light = first._key_light, first._fill_light
        second._key_light, second._fill_light = light  # of the camera that has all bodies in the picture
        drawn = first.draw(without(whole, [4, 5]), colors, CAMERA)
        assert np.array_equal(drawn, second.draw(less.states, colors[:4], CAMERA))
        nobody = first.draw(np.zeros((6, 13)), colors, CAMERA)
        assert np.abs(nobody.astype(int) - drawn).max() > 50


def test_a_scene_of_which_nobody_is_left_is_drawn() -> None:
    scene = Scene()
    scene.add_body(Sphere(0.3))
    with Renderer(scene, SIZE) as renderer:
        assert renderer.default_camera(np.zeros((1, 13))) == renderer.default_camera(np.zeros((1, 13)))
        renderer.draw(np.zeros((1, 13)))
        with pytest.raises(LapjointError, match="quaternion is zero"):
            renderer.draw([[1.0, *[0.0] * 12]])


def test_cameras_look_at_who_is_there() -> None:
    scene = falling()
    scene.set_states([5], [[900.0, 0, 0, 1, 0, 0, 0, *[0.0] * 6]])
    scene.set_states([4], [[9.0, 9.0, 0, 1, 0, 0, 0, *[0.0] * 6]])
    stage = Stage(scene)
    places = stage.places(without(scene, [4, 5]))
    assert not stage.focus(places)[[4, 5]].any()
    assert places.shown.tolist() == [True] * 4 + [False] * 2 + [True]
    near = stage.framing_camera([without(scene, [4, 5])], 1.5)
    assert near.distance < stage.framing_camera([scene.states], 1.5).distance


@pytest.mark.slow
def test_pictures_of_frames_and_of_the_last_state(run: Recording, tmp_path: Path) -> None:
    for mode in ("worker", "interface", "label", "speed", "contacts"):
        frame_picture(run, tmp_path / f"{mode}.png", 8, size=SIZE, mode=mode, with_caption=True)
    for coupling in ("tight", "blend"):
        params = Params(workers=2, runtime="inline", coupling=coupling)
        with Simulation(falling(), params) as simulation:
            simulation.step()
            simulation.bodies.remove([1])
            simulation.bodies.add_one(Sphere(0.2), (0, 0, 3))
            draw_last_state(simulation, tmp_path / f"{coupling}.png")
    assert len(list(tmp_path.iterdir())) == 7


def test_a_body_without_a_worker_has_a_colour() -> None:
    weights = np.array([[1.0, 0.0], [0.0, 0.0], [0.4, 0.6]])
    for mode in ("worker", "overlap"):
        assert np.isfinite(body_colors(mode, weights=weights)).all()
    assert np.isfinite(body_colors("interface", weights=weights, interface=[2])).all()
    states = np.zeros((200, 13))
    states[0, [3, 7]] = 1.0, 5.0
    assert np.allclose(body_colors("speed", states=states)[0], body_colors("speed", states=states[:1])[0])


def test_the_highest_speed_is_of_those_who_are_there(run: Recording) -> None:
    speeds = [np.linalg.norm(run.frame(i).states[run.alive(i), 7:10], axis=1) for i in range(len(run))]
    assert fastest_speed(run) == pytest.approx(max(np.percentile(values, 99) for values in speeds))


# ---- films -----------------------------------------------------------------------------------------------------------


def test_bodies_appear_with_a_frame_and_vanish_with_one(run: Recording) -> None:
    """Body 6 is made after 25 steps, body 0 removed after 30; frames are after 5, 10, ... steps of 2 ms."""
    recorded = Recorded(run, "worker")
    assert run.steps.tolist() == list(range(5, 61, 5))
    before, after = (recorded.at(time).states.any(axis=1) for time in (0.0599, 0.06))
    assert (before[6], after[6]) == (False, True)
    between = recorded.at(0.0695)
    assert between.states[0].any()
    assert np.array_equal(between.states[0, :3], run.frame(5).states[0, :3])
    assert not recorded.at(0.07).states[0].any()
    assert np.isfinite(between.colors).all()
    assert np.array_equal(between.colors[0], recorded.frame(5).colors[0])
    moving = recorded.at(0.065).states[2, 2]
    assert run.frame(5).states[2, 2] > moving > run.frame(6).states[2, 2]


def test_between_states_of_which_one_is_missing() -> None:
    here, gone = np.array([[1.0, 2, 3, 1, 0, 0, 0, *[1.0] * 6]]), np.zeros((1, 13))
    assert np.array_equal(between_states(here, gone, 0.7), here)
    assert not between_states(gone, here, 0.7).any()


def test_a_film_of_changes(run: Recording, tmp_path: Path) -> None:
    assert video(run, tmp_path / "a.mp4", size=SIZE, fps=60, shot=Shot("all", follow="later 35")).frame_count == 7


def test_a_camera_follows_a_body_that_comes_and_goes(run: Recording, tmp_path: Path) -> None:
    recorded = Recorded(run, "worker")
    with Renderer(run.scene, SIZE) as renderer:
        late = CameraPath(Shot(follow="later 45"), renderer, recorded)
        first = run.track(run.scene.body_id("later 45"))
        assert late.camera(run.frame(0).states).target == pytest.approx(first[first.any(axis=1)][0, :3])
        early = CameraPath(Shot(follow=0), renderer, recorded)
        early.camera(run.frame(5).states)
        assert early.camera(run.frame(11).states).target == pytest.approx(run.frame(5).states[0, :3])
        assert len(opening_states(run)) == 3


def test_a_body_that_is_in_no_frame_cannot_be_followed(tmp_path: Path) -> None:
    run = record_changing(tmp_path / "r", steps=55, every=50)
    with Renderer(run.scene, SIZE) as renderer, pytest.raises(LapjointError, match=r"follow: body 0 .* is in no frame"):
        CameraPath(Shot(follow=0), renderer, Recorded(run, "worker"))
