"""Locked axes of joints solved directly, all together, and the Schur complement of their matrix for the interface.
Readable, with dense matrices; native/solver/block_cholesky.cpp, native/substeps/direct_joints.cpp and
native/substeps/interface_matrix.cpp do the same sparsely.

Rows J between bodies of mass M have the velocity error e. The impulses d that remove it solve J M^-1 J^T d = e. Loops
of joints make that matrix singular, and rows that contradict each other would get impulses without bound. So rows are
slightly compliant: (J M^-1 J^T + 1/k) d = e with a large stiffness k. In terms of the velocities v that the impulses
cause:

    (M + J^T k J) v = J^T k e,    d = k (e - J v)

The matrix has one 6 x 6 block for each body and each pair of jointed bodies, and is positive definite. Where impulses
d0 are applied already, the error is e - J v0 - d0 / k, and the same equation gives what to add.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

BLOCK = 6
"""Rows of a body's block: its linear and its angular velocity."""


def joint_matrix(mass: Array, rows: Array, stiffness: Array) -> Array:
    """M + J^T k J, the effective mass of the jointed bodies; `rows` is J."""
    return np.asarray(mass + rows.T @ (stiffness[:, None] * rows))


def solve_joints(matrix: Array, rows: Array, stiffness: Array, error: Array) -> tuple[Array, Array]:
    """Impulses that remove the velocity errors of rows, and the changes of bodies' velocities that they cause."""
    velocities = np.asarray(np.linalg.solve(matrix, rows.T @ (stiffness * error)), np.float64)
    return stiffness * (error - rows @ velocities), velocities


def schur_complement(matrix: Array, kept: ArrayLike) -> Array:
    """The Schur complement for the bodies `kept`, all others eliminated: their effective mass, with every body that is
    jointed to them. An engine that has it solves for the interface as if it had the whole structure."""
    count = len(matrix) // BLOCK
    chosen = np.isin(np.arange(count), kept).repeat(BLOCK)
    inner, coupling, outer = (
        matrix[np.ix_(chosen, chosen)],
        matrix[np.ix_(chosen, ~chosen)],
        matrix[~chosen][:, ~chosen],
    )
    return np.asarray(inner - coupling @ np.linalg.solve(outer, coupling.T))
