"""Which bodies of joints may touch, whatever joints there are, break and are mended."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lapjoint import Ball, Params, Scene, Sphere, make_engine
from lapjoint.engines import Changes

COUNT = 6
PAIRS = st.lists(st.integers(0, COUNT - 1), min_size=2, max_size=2, unique=True).map(tuple)
JOINTS = st.lists(st.tuples(PAIRS, st.booleans()), max_size=12)


def heap() -> Scene:
    """Spheres that all overlap."""
    scene = Scene("heap", gravity=(0.0, 0.0, 0.0))
    scene.add_bodies(Sphere(1.0), np.random.default_rng(0).uniform(-0.4, 0.4, (COUNT, 3)))
    return scene


@given(JOINTS, st.lists(PAIRS, max_size=4), st.lists(st.sets(st.integers(0, 11)), max_size=4))
def test_bodies_touch_unless_a_joint_or_the_scene_keeps_them_apart(
    joints: list[tuple[tuple[int, int], bool]], ignored: list[tuple[int, int]], broken: list[set[int]]
) -> None:
    """Several joints may hold the same two bodies: the last one that breaks lets them touch."""
    scene = heap()
    for (a, b), collide in joints:
        scene.add_joint(Ball(), a, b, scene.states[a, :3], collide=collide)
    for a, b in ignored:
        scene.ignore([a], [b])
    engine = make_engine(scene, Params())
    engine.activate(np.arange(COUNT), scene.states)
    for now in [set(), *broken]:
        now = {joint for joint in now if joint < len(joints)}
        engine.change(Changes(all_broken=sorted(now)))
        engine.contacts(now=True)
        apart = {tuple(sorted(pair)) for pair in ignored}
        apart |= {tuple(sorted(pair)) for j, (pair, collide) in enumerate(joints) if not collide and j not in now}
        touching = {tuple(sorted(pair)) for pair in engine.contacts().bodies.tolist()}
        assert touching == {(a, b) for a in range(COUNT) for b in range(a + 1, COUNT)} - apart
