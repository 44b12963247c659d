"""Quaternions: the algebra that everything else relies on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lapjoint.arrays import rotation as rot

numbers = st.floats(-10, 10)
vectors = arrays(float, 3, elements=numbers)
directions = vectors.filter(lambda v: np.linalg.norm(v) > 1e-3)


@st.composite
def quaternions(draw: st.DrawFn) -> np.ndarray:
    q = draw(arrays(float, 4, elements=st.floats(-1, 1)).filter(lambda q: np.linalg.norm(q) > 0.1))
    return np.asarray(q / np.linalg.norm(q))


def assert_same_turn(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-9) -> None:
    assert min(np.abs(a - b).max(), np.abs(a + b).max()) < tolerance


@pytest.mark.slow
@given(quaternions(), vectors)
def test_a_quaternion_and_its_matrix_turn_alike(q: np.ndarray, v: np.ndarray) -> None:
    matrix = rot.to_matrix(q)
    np.testing.assert_allclose(rot.rotate(q, v), matrix @ v, atol=1e-9)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(matrix) > 0.999


@given(quaternions(), quaternions(), vectors)
def test_a_product_is_one_turn_after_the_other(a: np.ndarray, b: np.ndarray, v: np.ndarray) -> None:
    np.testing.assert_allclose(rot.rotate(rot.multiply(a, b), v), rot.rotate(a, rot.rotate(b, v)), atol=1e-9)
    np.testing.assert_allclose(rot.to_matrix(rot.multiply(a, b)), rot.to_matrix(a) @ rot.to_matrix(b), atol=1e-12)


@given(quaternions(), vectors)
def test_the_conjugate_turns_back(q: np.ndarray, v: np.ndarray) -> None:
    np.testing.assert_allclose(rot.rotate(rot.conjugate(q), rot.rotate(q, v)), v, atol=1e-9)
    np.testing.assert_allclose(rot.multiply(q, rot.conjugate(q)), rot.IDENTITY, atol=1e-12)


@given(quaternions())
def test_a_matrix_gives_back_its_quaternion(q: np.ndarray) -> None:
    back = rot.from_matrix(rot.to_matrix(q))
    assert_same_turn(back, q)
    assert back[0] >= 0


def test_half_turns_survive_their_matrices() -> None:
    """Where w is zero the usual formula divides by it."""
    half = np.array([[0.0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0.6, 0.8, 0], [0, 0, 0.6, 0.8]])
    for q, back in zip(half, rot.from_matrix(rot.to_matrix(half)), strict=True):
        assert_same_turn(back, q)


@given(directions, directions)
def test_between_is_the_shortest_turn_from_a_to_b(a: np.ndarray, b: np.ndarray) -> None:
    q = rot.between(a, b)
    unit_a, unit_b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    np.testing.assert_allclose(rot.rotate(q, unit_a), unit_b, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(q), 1.0)
    assert abs(2 * np.arccos(np.clip(q[0], -1, 1)) - np.arccos(np.clip(unit_a @ unit_b, -1, 1))) < 1e-5


@given(directions)
def test_between_opposite_directions_is_half_a_turn(a: np.ndarray) -> None:
    q = rot.between(a, -a)
    np.testing.assert_allclose(rot.rotate(q, a), -a, atol=1e-9 * np.linalg.norm(a) + 1e-12)
    assert q[0] == 0.0


@given(directions, st.floats(-3, 3), vectors)
def test_an_axis_stays_where_it_is(axis: np.ndarray, angle: float, v: np.ndarray) -> None:
    q = rot.from_axis_angle(axis, angle)
    np.testing.assert_allclose(rot.rotate(q, axis), axis, atol=1e-9)
    unit = axis / np.linalg.norm(axis)
    level = v - (v @ unit) * unit
    assume(np.linalg.norm(level) > 1e-3)
    turned = rot.rotate(q, level)
    np.testing.assert_allclose(level @ turned, level @ level * np.cos(angle), atol=1e-7)
    np.testing.assert_allclose(np.cross(level, turned) @ unit, level @ level * np.sin(angle), atol=1e-7)


def test_everything_works_in_bulk() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 5, 7, 4))
    a, b = (q / np.linalg.norm(q, axis=-1, keepdims=True) for q in (a, b))
    v, w = rng.normal(size=(2, 5, 7, 3))
    bulk = [
        rot.multiply(a, b),
        rot.rotate(a, v),
        rot.to_matrix(a),
        rot.from_matrix(rot.to_matrix(a)),
        rot.between(v, w),
        rot.from_axis_angle(v, w[..., 0]),
    ]
    for i, j in np.ndindex(5, 7):
        one = [
            rot.multiply(a[i, j], b[i, j]),
            rot.rotate(a[i, j], v[i, j]),
            rot.to_matrix(a[i, j]),
            rot.from_matrix(rot.to_matrix(a[i, j])),
            rot.between(v[i, j], w[i, j]),
            rot.from_axis_angle(v[i, j], w[i, j, 0]),
        ]
        for many, single in zip(bulk, one, strict=True):
            np.testing.assert_allclose(many[i, j], single, atol=1e-14)
    np.testing.assert_array_equal(rot.rotate(a[0, 0], v), rot.rotate(np.broadcast_to(a[0, 0], (5, 7, 4)), v))
