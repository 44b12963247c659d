"""What the paper states in its section 6: parameters, Table 2, and which scenes its figures show."""

from __future__ import annotations

from dataclasses import dataclass

TIMESTEP = 0.002
"""s"""
ITERATIONS = 1000
COUNTS = (1, 2, 3, 4, 5, 6, 7, 8)
"""Workers of Figure 10."""


@dataclass(frozen=True)
class PaperScene:
    """A row of Table 2, and the growth depth that the text gives."""

    name: str
    title: str
    body_count: int
    joint_count: int
    contact_count: int
    """Average over the whole simulation. The paper does not say whether pairs or points are counted."""
    speedup: float
    workers: int
    """The count with the best speed-up."""
    growth_depth: int


TABLE_2 = (
    PaperScene("bowl", "Bowl", 5040, 0, 7022, 4.10, 7, 0),
    PaperScene("building", "Building", 2408, 0, 20471, 3.27, 8, 0),
    PaperScene("chain-net", "Chain Net", 3724, 0, 76305, 5.37, 6, 3),
    PaperScene("four-way-bridge", "Four-way Bridge", 1691, 3712, 8924, 2.86, 3, 6),
    PaperScene("two-way-bridge", "Two-way Bridge", 1798, 3180, 3890, 5.03, 8, 6),
)
SCENES = {scene.name: scene for scene in TABLE_2}

RESIDUAL_SCENES = ("building", "chain-net")
"""Whose residual Figure 12 shows; of the jointed scenes it shows the joint gaps."""
JOINTED_SCENES = ("four-way-bridge", "two-way-bridge")
CONTACT_SCENES = ("bowl", "building", "chain-net")
"""Of Figure 13, and those whose step times Figure 11 smooths."""
BODY_SCENES = ("building",)
"""Of Figure 14."""
