"""Materials as prims, bound for physics."""

from __future__ import annotations

from ....files import usd_words as words
from ....scene import Material
from .layer import Prim, Types, add_prim, put


def add_material(parent: Prim, name: str, material: Material) -> Prim:
    """A material; damping is of bodies."""
    prim = add_prim(parent, name, "Material", ["PhysicsMaterialAPI"])
    put(prim, "physics:staticFriction", Types.Float, float(material.friction))
    put(prim, "physics:dynamicFriction", Types.Float, float(material.friction))
    put(prim, "physics:restitution", Types.Float, float(material.restitution))
    if material.rolling_friction:
        put(prim, words.ROLLING_FRICTION, Types.Double, float(material.rolling_friction), uniform=True)
    for name, rule in (
        (words.FRICTION_COMBINE, material.friction_combine),
        (words.RESTITUTION_COMBINE, material.restitution_combine),
    ):
        put(prim, name, Types.Token, rule, uniform=True)
    return prim
