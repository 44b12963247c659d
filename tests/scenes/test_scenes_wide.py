"""Walls and chain mail, which grow over the ground: counts, labels, a start without penetration, and that they hold."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lapjoint import LapjointError, Params, Scene, make_engine, scenes
from lapjoint.arrays import rotation
from lapjoint.scene.linking import linking_numbers
from lapjoint.scenes import chain_mail, walls

Array = NDArray[np.float64]
NAMES = ("walls", "chain-mail")


@pytest.mark.parametrize(("name", "bodies", "statics"), [("walls", 9911, 1), ("chain-mail", 4970, 10)])
def test_counts(name: str, bodies: int, statics: int) -> None:
    scene = scenes.build(name)
    assert (scene.name, scene.body_count, scene.static_count, scene.joint_count) == (name, bodies, statics, 0)


@pytest.mark.parametrize("name", NAMES)
def test_size_is_about_how_many_bodies(name: str) -> None:
    for size in (400, 3000, 20_000):
        assert scenes.build(name, size).body_count == pytest.approx(size, rel=0.05)
    assert scenes.build(name, 400) == scenes.build(name, 400, seed=7)
    with pytest.raises(LapjointError, match=f"{name}: size is 3, expected at least"):
        scenes.build(name, 3)


@pytest.mark.parametrize("name", NAMES)
def test_labels_are_64_compact_blocks(name: str) -> None:
    scene = scenes.build(name, 20_000)
    labels, places = scene.bodies.label, scene.bodies.position[:, :2]
    assert len(np.unique(labels)) == 64
    side = np.ptp(places, axis=0).max()
    for label in range(0, 64, 7):
        assert np.ptp(places[labels == label], axis=0).max() < side / 6
    # Eight consecutive ones make a block again: an eighth of the ground, not a strip through it.
    assert np.ptp(places[labels < 8], axis=0).max() < 0.6 * side


@pytest.mark.parametrize("name", NAMES)
def test_nothing_penetrates_at_the_start(name: str) -> None:
    scene = scenes.build(name, 400)
    engine = make_engine(scene, Params())
    engine.activate(np.arange(scene.body_count), scene.states)
    engine.contacts(now=True)
    assert engine.contacts().penetration < 1e-4


def stepped(scene: Scene, steps: int) -> Array:
    engine = make_engine(scene, Params())
    ids = np.arange(scene.body_count)
    engine.activate(ids, scene.states)
    engine.step(steps)
    return engine.get_states(ids)


@pytest.mark.slow
def test_walls_stand_but_where_a_ball_hits_them() -> None:
    scene = scenes.build("walls", 800)
    states = stepped(scene, 200)
    moved = np.linalg.norm(states[:, :3] - scene.states[:, :3], axis=1)
    walls_count, columns = walls.field_shape(800)
    bricks = walls_count * columns * walls.COURSES
    assert (walls_count, scene.body_count - bricks) == (3, 3)
    speed = states[bricks:, 8]
    assert (speed < 0.5 * walls.SPEED).all()  # all three balls have hit
    low = scene.states[:bricks, 2] < walls.HEIGHT
    assert moved[:bricks].max() > 0.1
    assert moved[:bricks][low].max() < 0.01


@pytest.mark.slow
def test_rings_of_chain_mail_stay_linked_while_it_drapes() -> None:
    scene = scenes.build("chain-mail", 150)
    rows, columns = chain_mail.rows_and_columns(150)
    row = np.round(scene.states[:, 1] / chain_mail.ROW_PITCH + (rows - 1) / 2).astype(int)
    apart = np.abs(scene.states[:, None, 0] - scene.states[None, :, 0])
    a, b = np.nonzero((row[:, None] + 1 == row[None, :]) & (apart < 0.6 * chain_mail.PITCH))
    assert len(a) == (rows - 1) * (2 * columns - 1)
    states = stepped(scene, 150)
    assert np.ptp(states[:, 2]) > 0.1  # it hangs over a post
    for moment in (scene.states, states):
        lines = center_lines(moment)
        assert (np.abs(linking_numbers(lines[a], lines[b])) == 1).all()


def center_lines(states: Array) -> Array:
    angles = np.arange(20) * np.pi / 10
    circle = chain_mail.RADIUS * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    return states[:, None, :3] + rotation.rotate(states[:, None, 3:7], circle)
