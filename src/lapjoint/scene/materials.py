"""Material: how a body's surface and motion lose energy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..arrays.checks import is_finite
from ..errors import LapjointError

CombineRule = Literal["geometric", "average", "minimum", "multiply", "maximum"]
COMBINE_RULES: tuple[CombineRule, ...] = ("geometric", "average", "minimum", "multiply", "maximum")
"""How a contact makes one coefficient of its two surfaces'. Where the two name different rules, the later one holds."""


@dataclass(frozen=True)
class Material:
    """How a body's surface and motion lose energy. A contact takes the geometric mean of its two bodies' friction and
    of their restitution, unless one of them has another rule."""

    friction: float = 0.5
    """Coulomb coefficient."""
    restitution: float = 0.0
    """Share of the approach velocity that comes back, 0 to 1."""
    rolling_friction: float = 0.0
    """Lever arm of the rolling resistance [m]; a contact adds up its two bodies'."""
    linear_damping: float = 0.0
    """Share of the linear velocity lost per second, 0 to 1."""
    angular_damping: float = 0.0
    """Share of the angular velocity lost per second, 0 to 1."""
    friction_combine: CombineRule = "geometric"
    """How a contact combines the friction of its two surfaces. Of two rules the one holds that is later in geometric,
    average, minimum, multiply, maximum."""
    restitution_combine: CombineRule = "geometric"
    """The same for restitution."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name.endswith("_combine"):
                if value not in COMBINE_RULES:
                    raise LapjointError(f"Material: {name} is {value!r}, expected one of {', '.join(COMBINE_RULES)}")
                continue
            top = np.inf if "friction" in name else 1.0
            if not (is_finite(value) and 0 <= value <= top):
                raise LapjointError(f"Material: {name} is {value}, expected a number from 0 to {top}")

    @property
    def has_rules(self) -> bool:
        """Whether a rule is not the default."""
        return any(rule != COMBINE_RULES[0] for rule in (self.friction_combine, self.restitution_combine))

    def surface(self) -> dict[str, float]:
        """What a contact asks for, as columns of tables: rules by their place in COMBINE_RULES."""
        return {
            "friction": self.friction,
            "restitution": self.restitution,
            "rolling_friction": self.rolling_friction,
            "friction_combine": COMBINE_RULES.index(self.friction_combine),
            "restitution_combine": COMBINE_RULES.index(self.restitution_combine),
        }

    def columns(self) -> dict[str, Any]:
        """All of it, as columns of a scene's bodies."""
        damping = {"linear_damping": self.linear_damping, "angular_damping": self.angular_damping}
        return {**self.surface(), **damping}


def surface_of(material: Material | None, title: str) -> Material:
    """The material, or the default one where none is given."""
    if material is not None and not isinstance(material, Material):
        raise LapjointError(f"{title}: material is {material!r}, expected a Material")
    return material or Material()


def part_material(material: Material | None) -> None:
    """Refuse what is no material of a part: its damping would be nobody's."""
    if material is None:
        return
    if not isinstance(material, Material):
        raise LapjointError(f"Compound: a part's material is {material!r}, expected a Material")
    if material.linear_damping or material.angular_damping:
        raise LapjointError("Compound: a part's material has damping, which only a body as a whole has")
