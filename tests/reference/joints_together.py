"""Joints solved directly, all together: locked axes, rows with bounds, and the Schur complement of their matrix for the
interface. Readable, with dense matrices; native/solver/block_cholesky.cpp, native/substeps/direct_joints.cpp,
native/substeps/active_set.cpp and native/substeps/interface_matrix.cpp do the same sparsely.

Rows J between bodies of mass M have the velocity error e. The impulses d that remove it solve J M^-1 J^T d = e. Loops
of joints make that matrix singular, and rows that contradict each other would get impulses without bound. So rows are
slightly compliant: (J M^-1 J^T + 1/k) d = e with a large stiffness k. In terms of the velocities v that the impulses
cause:

    (M + J^T k J) v = J^T k e,    d = k (e - J v)

The matrix has one 6 x 6 block for each body and each pair of jointed bodies, and is positive definite. Where impulses
d0 are applied already, the error is e - J v0 - d0 / k, and the same equation gives what to add.

A limit only pushes; a motor and friction of one axis do no more than they can; a drive is as soft as its k. Their
impulses have bounds, low <= d <= high, and those that would be beyond one keep it: the others are solved for with them
as given. Which these are is found by block pivoting. The impulses are then those within bounds that make

    1/2 d^T (J M^-1 J^T + 1/k) d - e^T d

least. Kostreva 1978, "Block pivot methods for solving the complementarity problem"; Judice and Pires 1994, "A block
principal pivoting algorithm for large-scale strictly monotone linear complementarity problems".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

BLOCK = 6
"""Rows of a body's block: its linear and its angular velocity."""
SLACK = 1e-7
"""Velocity by which a row may miss what it is to do before it changes places."""
ALL_PASSES, LEAST_PASSES = 8, 16  # in which all rows may change places, then at least in which the worst may
LOW, IN, HIGH = -1, 0, 1
"""Places of a row: at a bound, or in the matrix."""


def joint_matrix(mass: Array, rows: Array, stiffness: Array) -> Array:
    """M + J^T k J, the effective mass of the jointed bodies; `rows` is J."""
    return np.asarray(mass + rows.T @ (stiffness[:, None] * rows))


def solve_joints(matrix: Array, rows: Array, stiffness: Array, error: Array) -> tuple[Array, Array]:
    """Impulses that remove the velocity errors of rows, and the changes of bodies' velocities that they cause."""
    velocities = np.asarray(np.linalg.solve(matrix, rows.T @ (stiffness * error)), np.float64)
    return stiffness * (error - rows @ velocities), velocities


def solve_bounded(
    mass: Array, rows: Array, stiffness: Array, error: Array, low: Array, high: Array, last: Array | None = None
) -> tuple[Array, Array]:
    """Impulses d of rows within bounds, and the changes v of bodies' velocities that they cause.

    Every row ends in one of three places, but for the slack:

        in the matrix      low <= d <= high    and  J v + d/k = e
        at its low bound   d = low             and wants less:  k (e - J v) <= low
        at its high bound  d = high            and wants more:  k (e - J v) >= high

    All rows are in the matrix at first; with impulses from before, those at a bound are there. After each solution all
    rows change places that are in the wrong one. That may go round in circles: from the ninth pass on only the worst
    row does. After as many passes again as rows have bounds, and 16 at least, rows only come to a bound, which comes to
    an end: all impulses are within bounds, but a row at one may want to be back.
    """
    inertia = np.einsum("ij,ji->i", rows, np.linalg.solve(mass, rows.T))
    places = np.full(len(rows), IN)
    if last is not None:
        places[last <= low], places[last >= high] = LOW, HIGH
    last_pass = ALL_PASSES + max(LEAST_PASSES, int((np.isfinite(low) | np.isfinite(high)).sum()))
    for number in range(last_pass + len(rows) + 1):
        is_in, bound = places == IN, np.where(places == LOW, low, high)
        given = np.linalg.solve(mass, rows[~is_in].T @ bound[~is_in])
        own, soft = rows[is_in], stiffness[is_in]
        _, change = solve_joints(joint_matrix(mass, own, soft), own, soft, error[is_in] - own @ given)
        velocities = given + change
        wanted = stiffness * (error - rows @ velocities)
        beyond = np.maximum(wanted - high, low - wanted) * inertia
        back = np.where(places == LOW, wanted - low, high - wanted) / stiffness
        miss = np.where(is_in, beyond, back if number < last_pass else 0.0)
        changing = miss > SLACK
        if not changing.any():
            break
        if ALL_PASSES <= number < last_pass:
            changing = np.arange(len(rows)) == miss.argmax()
        places = np.where(changing, np.where(is_in, np.where(wanted < low, LOW, HIGH), IN), places)
    return np.where(is_in, wanted, bound), velocities


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
