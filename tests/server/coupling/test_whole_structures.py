"""`joints` auto of Params: what is decided for a structure holds for its parts, whichever workers have them."""

from __future__ import annotations

import numpy as np
import pytest

from lapjoint import Ball, Fixed, Params, Scene, Simulation, Sphere, Substeps, scenes


def state_hash(scene: Scene, coupling: str, joints: str, steps: int = 3) -> str:
    params = Params(workers=2, coupling=coupling, runtime="inline", partition="equal", substeps=Substeps(joints=joints))
    with Simulation(scene, params) as simulation:
        simulation.step(steps)
        return simulation.state_hash


def block_with_a_tail() -> Scene:
    """A dense block, which is much work at once, and a long chain that makes it little for the whole."""
    scene, side, links = Scene("block", timestep=0.004), 6, 400
    places = np.indices((side, side, side)).reshape(3, -1).T
    scene.add_bodies(Sphere(0.1), 0.3 * places)
    for step in np.eye(3, dtype=int) @ (side**2, side, 1):
        near = [body for body in range(side**3 - step) if np.abs(places[body + step] - places[body]).sum() == 1]
        scene.add_joints(Ball(), near, np.add(near, step), 0.3 * places[near])
    tail = scene.add_bodies(Sphere(0.1), [(-0.3 * k, 0.0, 0.0) for k in range(1, links)])
    scene.add_joints(Fixed(), [0, *tail[:-1]], tail, [(0.15 - 0.3 * k, 0.0, 0.0) for k in range(1, links)])
    return scene


def test_a_part_of_a_dense_structure_is_swept_as_the_whole() -> None:
    scene = scenes.build("joint-grid", 25)
    assert state_hash(scene, "blend", "auto") == state_hash(scene, "blend", "swept")


@pytest.mark.parametrize("size", [10, 20])
def test_a_part_of_a_narrow_structure_is_solved_at_once_as_the_whole(size: int) -> None:
    scene = scenes.build("joint-grid", size)
    assert state_hash(scene, "blend", "auto") == state_hash(scene, "blend", "direct")


def test_a_dense_part_of_a_structure_that_is_little_work_is_solved_at_once() -> None:
    scene = block_with_a_tail()
    assert state_hash(scene, "blend", "auto") == state_hash(scene, "blend", "direct")
