"""Linking numbers against curves whose linking is known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lapjoint import LapjointError
from lapjoint.arrays import rotation
from lapjoint.scene import linking
from lapjoint.scene.linking import linking_numbers

Array = NDArray[np.float64]


def circle(points: int = 20, *, centre: tuple[float, float, float] = (0.0, 0.0, 0.0), axis: int = 2) -> Array:
    """A circle of radius one about a coordinate axis."""
    angle = np.arange(points) * 2 * np.pi / points
    flat = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    return np.roll(flat, axis - 2, axis=1) + centre


def torus_curves(turns: int, points: int = 120) -> tuple[Array, Array]:
    """Two curves on opposite sides of a torus' tube, which go around the tube `turns` times."""
    angle = np.arange(points) * 2 * np.pi / points
    curves = []
    for side in (1.0, -1.0):
        out = 2 + 0.5 * side * np.cos(turns * angle)
        height = 0.5 * side * np.sin(turns * angle)
        curves.append(np.stack([out * np.cos(angle), out * np.sin(angle), height], axis=1))
    return curves[0], curves[1]


RING, THROUGH, BESIDE = circle(), circle(axis=1, centre=(1, 0, 0)), circle(axis=1, centre=(4, 0, 0))


def test_linked_unlinked_and_turned_round() -> None:
    numbers = linking_numbers([RING, RING, RING], [THROUGH, BESIDE, THROUGH[::-1]])
    assert numbers[1] == 0
    assert abs(numbers[0]) == 1
    assert numbers[2] == -numbers[0]
    assert numbers.dtype == np.int64


def test_order_of_the_two_does_not_matter() -> None:
    assert linking_numbers([RING], [THROUGH]) == linking_numbers([THROUGH], [RING])


@pytest.mark.parametrize("turns", [0, 1, 2, 5, -3])
def test_counts_the_turns(turns: int) -> None:
    a, b = torus_curves(turns)
    assert abs(linking_numbers([a], [b])[0]) == abs(turns)
    assert linking_numbers([a], [b[::-1]]) == -linking_numbers([a], [b])


def test_handedness_changes_with_a_mirror() -> None:
    a, b = torus_curves(2)
    assert linking_numbers([a * [1, 1, -1]], [b * [1, 1, -1]]) == -linking_numbers([a], [b])


def test_curves_may_have_different_numbers_of_points() -> None:
    triangle = np.array([[0.0, -0.5, 0.0], [3.0, -0.5, 1.0], [0.0, 0.5, 2.0]])
    assert abs(linking_numbers([circle(7)], [circle(50, axis=1, centre=(1, 0, 0))])[0]) == 1
    assert linking_numbers([circle(7)], [triangle + [0, 0, 1]])[0] == 0


def test_two_crossings_that_cancel() -> None:
    """A curve that goes through a ring and comes back through it is not linked with it."""
    hairpin = np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0], [0.2, 0.0, 1.0], [0.2, 0.0, -1.0]])
    assert linking_numbers([RING], [hairpin])[0] == 0


def test_rigid_motions_and_scale_change_nothing() -> None:
    rng = np.random.default_rng(3)
    a, b = torus_curves(3)
    turn = rng.normal(size=4)
    turn /= np.linalg.norm(turn)
    moved = [1e-3 * rotation.rotate(turn, curve) + [5.0, -7.0, 2.0] for curve in (a, b)]
    assert linking_numbers([moved[0]], [moved[1]]) == linking_numbers([a], [b])


def test_chunks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(30, 12, 3)), rng.normal(size=(30, 9, 3))
    whole = linking_numbers(a, b)
    assert len(np.unique(whole)) > 2
    monkeypatch.setattr(linking, "CHUNK", 500)
    np.testing.assert_array_equal(linking_numbers(a, b), whole)


def test_no_pairs() -> None:
    assert linking_numbers(np.zeros((0, 5, 3)), np.zeros((0, 4, 3))).shape == (0,)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([RING], [RING[:, :2]], "curves_b has shape"),
        (RING, [RING], "curves_a has shape"),
        ([RING[:2]], [RING], "curves_a has shape"),
        ([RING, RING], [THROUGH], "2 curves a and 1 curves b"),
        ([RING], [THROUGH * np.nan], "pair 0 has no linking number"),
    ],
)
def test_mistakes_are_named(a: Array, b: Array, message: str) -> None:
    with pytest.raises(LapjointError, match=message):
        linking_numbers(a, b)
