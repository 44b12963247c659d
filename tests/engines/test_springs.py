"""Springs that are too fast for the substeps are refused before anything starts."""

from __future__ import annotations

import pytest

from lapjoint import FREE, WORLD, Box, LapjointError, Params, Scene, SixAxis, Spring, Substeps, make_engine


def hung(stiffness: float, damping: float = 0.0) -> Scene:
    scene = Scene("hung")
    body = scene.add_body(Box((0.5, 0.5, 0.5)), (0, 0, 0), mass=2.0)
    joint = SixAxis(linear=(FREE, FREE, FREE), angular=(FREE, FREE, FREE), springs={2: Spring(stiffness, damping)})
    scene.add_joint(joint, body, WORLD, (0, 0, 0))
    return scene


def test_a_spring_that_swings_too_fast_is_refused_with_the_limit() -> None:
    params = Params(timestep=0.002)
    with pytest.raises(LapjointError, match=r"joint 0 is a SixAxis with a spring of 1e\+07 N/m on axis 2.*8e\+06 N/m"):
        make_engine(hung(1e7), params)
    with pytest.raises(LapjointError, match="at least 5 substeps"):
        make_engine(hung(1e7), params)


@pytest.mark.parametrize(("stiffness", "damping", "substeps"), [(7.9e6, 0.0, 4), (1e7, 9e3, 4), (1e7, 0.0, 5)])
def test_slower_more_damped_or_finer_is_taken(stiffness: float, damping: float, substeps: int) -> None:
    make_engine(hung(stiffness, damping), Params(timestep=0.002, substeps=Substeps(substeps)))


def test_the_sequential_solver_takes_any() -> None:
    make_engine(hung(1e9), Params(timestep=0.002, solver="sequential"))
