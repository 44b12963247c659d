"""Joints without limits solved at once, and what a structure weighs at a few of its bodies. Readable, with dense
matrices; native/solver/block_cholesky.cpp and native/solver/locked.cpp do the same sparsely.

Rows J between bodies of mass M need the velocities e. The impulses d that give them solve J M^-1 J^T d = e. Loops of
joints make that singular, and what rows contradict each other about would become impulses without bound. So rows are a
little soft: (J M^-1 J^T + 1/k) d = e with a large stiffness k. By way of the velocities v that the impulses make:

    (M + J^T k J) v = J^T k e,    d = k (e - J v)

A matrix of one 6 x 6 block for each body and each pair of jointed bodies, and positive definite. With impulses d0 there
already, rows lack e - J v0 - d0 / k, and the same gives what to add.

Rows that have been solved lack nothing. What others then do to the bodies, a change c of their velocities, makes them
lack - J c, and all in all the bodies' velocities change by

    c - (M + J^T k J)^-1 J^T k J c = (M + J^T k J)^-1 M c

No row is in it: contacts that are swept again and again are answered body by body, and rows get their impulses once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

SIDE = 6
"""Of a block: three directions and three axes."""


def joint_matrix(mass: Array, rows: Array, stiffness: Array) -> Array:
    """M + J^T k J, with a row of `rows` for each row of the joints."""
    return np.asarray(mass + rows.T @ (stiffness[:, None] * rows))


def solve_joints(matrix: Array, rows: Array, stiffness: Array, lack: Array) -> tuple[Array, Array]:
    """Impulses that give rows what they lack, and the velocities of bodies that these make."""
    velocities = np.asarray(np.linalg.solve(matrix, rows.T @ (stiffness * lack)), np.float64)
    return stiffness * (lack - rows @ velocities), velocities


def respond(matrix: Array, mass: Array, change: Array) -> Array:
    """What becomes of a change of bodies' velocities that others make, where rows lacked nothing before."""
    return np.asarray(np.linalg.solve(matrix, mass @ change), np.float64)


def held_mass(matrix: Array, kept: ArrayLike) -> Array:
    """What is left of the matrix for these bodies once all others are eliminated: their mass, with everything that
    joints hold to them. Somebody who knows it can answer for the whole structure."""
    count = len(matrix) // SIDE
    chosen = np.isin(np.arange(count), kept).repeat(SIDE)
    inner, coupling, outer = (
        matrix[np.ix_(chosen, chosen)],
        matrix[np.ix_(chosen, ~chosen)],
        matrix[~chosen][:, ~chosen],
    )
    return np.asarray(inner - coupling @ np.linalg.solve(outer, coupling.T))
