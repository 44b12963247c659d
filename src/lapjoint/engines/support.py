"""What an engine declares: which shapes, joints, precisions and features it has. The rest is refused by name."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ..arrays.columns import Columns
from ..errors import EngineWarning, LapjointError
from ..params import Params
from ..scene import (
    Ball,
    Box,
    Capsule,
    Compound,
    Cone,
    ConvexHull,
    Cylinder,
    Distance,
    Ellipsoid,
    Fixed,
    Gear,
    HeightField,
    Hinge,
    Plane,
    Scene,
    SixAxis,
    Slider,
    Sphere,
    TriangleMesh,
)
from ..scene.bonds import can_break, is_bond
from ..scene.fields import field_title
from ..scene.filters import ALL_GROUPS
from ..scene.joints import KINDS, JointKind, counts_turns
from ..scene.materials import COMBINE_RULES
from ..scene.shapes import StaticShape
from ..step_tables import FEATURES as STEP_TABLES
from ..step_tables import TABLES

ALL_SHAPES = (
    *(Sphere, Box, Capsule, Cylinder, ConvexHull, Ellipsoid, Cone, Compound),
    *(Plane, TriangleMesh, HeightField),
)
SIX_AXES = (Ball, Hinge, Slider, Fixed, SixAxis)
ALL_JOINTS = (*SIX_AXES, Distance, Gear)
JOINT_FEATURES = (
    "limits",
    "motors",
    "springs",
    "breaks",
    "drives",  # with targets: Changes.drive_targets
    "joint friction",
    "ball limits",  # swing and twist
    "counted angles",  # limits and targets beyond half a turn
)
OF_SUBSTEPS = ("breaks", "drives", "joint friction", "ball limits", "counted angles")
"""Features of joints that, of Bullet's solvers, only that in substeps has."""
FEATURES = (
    *JOINT_FEATURES,
    *STEP_TABLES,  # what StepReport.tables has, where scenes or parameters ask for it
    "joint forces",  # ReadingEngine: Params.keep_forces keeps what joints did in a step
    "contact impulses",  # and what contacts did
    "sensors",  # Changes.senses: who enters sensors is found in every step of many that are taken at once
    "groups",  # groups and masks
    "part groups",  # groups and masks of parts of compounds
    "part materials",  # materials of parts of compounds
    "combine rules",  # of friction and restitution, other than the geometric mean
    "fields",  # force fields of the scene
    "kinematic bodies",  # static bodies that move, or whose surfaces do: Changes.motions
    "restitution",
    "rolling friction",
    "sleep",  # Params.sleep leaves bodies at rest alone
    "iterations",  # fewer or more of them give another result; else they are a limit at most
    "residual",  # StepReport.residual has it
    "warm start",  # contacts start from their last impulses, and Changes.forgets_contacts drops these
    "contact cache",  # Engine.state has all that the next step depends on, not states alone
    "added bodies",  # Changes.grown: a running scene gets more bodies and joints
    "direct solvers",  # Params.solver dantzig, StepReport.fallback_count
    "exact clearances",  # Engine.clearances is 0 only where a step would find a contact
)
LEFT_OUT = ("restitution", "rolling friction")
"""What an engine may leave out of a scene; it is a warning then. All else is refused."""


@dataclass(frozen=True)
class Support:
    """What an engine can do. `lapjoint engines` shows it, runs are checked against it, the contract suite asks it."""

    package: str
    """The distribution that brings it; its version is the engine's."""
    precisions: tuple[str, ...]
    shapes: tuple[type, ...] = ALL_SHAPES
    joints: tuple[type, ...] = SIX_AXES
    features: tuple[str, ...] = FEATURES
    couplings: tuple[str, ...] = ("blend",)
    version: str | None = None
    """Where it is not that of the package."""
    extra: str | None = None
    """lapjoint's extra that installs the package."""

    def __post_init__(self) -> None:
        for feature in self.features:
            if feature not in FEATURES:
                raise LapjointError(f"no feature named {feature!r}; known features: {', '.join(FEATURES)}")

    def has_shape(self, shape: StaticShape) -> bool:
        """Parts of a compound included."""
        inner = [part.shape for part in shape.parts] if isinstance(shape, Compound) else []
        return all(isinstance(one, self.shapes) for one in (shape, *inner))


def check_support(name: str, support: Support, scene: Scene, params: Params) -> None:
    """Refuse a scene or parameters that the engine has no means for; the error names the body or the joint."""
    _check_params(name, support, params)
    for title, shape_ids in (("body", scene.bodies.shape_id), ("static body", scene.statics.shape_id)):
        for shape_id in np.unique(shape_ids):
            shape = scene.shapes[shape_id]
            if not support.has_shape(shape):
                first = int(np.flatnonzero(shape_ids == shape_id)[0])
                raise LapjointError(
                    f"scene {scene.name!r}: {title} {first} is a {_shape_title(shape)}, which the engine {name} does "
                    f"not have; it has {', '.join(one.__name__ for one in support.shapes)}"
                )
    kinds = [KINDS[joint] for joint in support.joints]
    used = dict(joint_features(scene))
    for joint in np.flatnonzero(~np.isin(scene.joints.kind, kinds)):
        title = joint_title(scene, int(joint))
        known = ", ".join(one.__name__ for one in support.joints) or "none"
        raise LapjointError(f"{title}, which the engine {name} does not have; it has {known}")
    for feature in JOINT_FEATURES:
        if feature in used and feature not in support.features:
            raise LapjointError(
                f"{joint_title(scene, used[feature])} with {feature}, which the engine {name} does not have"
            )
    check_reports(scene, params, support.features, f"which the engine {name} does not have")
    if "kinematic bodies" not in support.features:
        check_nothing_moves(scene, f"the engine {name} does not have")
    if "fields" not in support.features:
        check_no_fields(scene, f"the engine {name} does not have")
    if has_groups(scene) and "groups" not in support.features:
        raise LapjointError(f"scene {scene.name!r} has groups and masks, which the engine {name} does not have")
    for feature, what in surface_features(scene):
        if feature not in support.features:
            raise LapjointError(f"scene {scene.name!r}: {what}, which the engine {name} does not have")


def _check_params(name: str, support: Support, params: Params) -> None:
    if params.precision not in support.precisions:
        has = " and ".join(support.precisions)
        raise LapjointError(
            f"precision is {params.precision}, and the engine {name} computes in {has}: "
            f"--engine {name}:{support.precisions[0]}"
        )
    if params.coupling != "auto" and params.coupling not in support.couplings:
        raise LapjointError(
            f"coupling is {params.coupling}, which the engine {name} does not have; it has "
            f"{', '.join(support.couplings)}"
        )
    if params.sleep and "sleep" not in support.features:
        raise LapjointError(f"sleep is on, which the engine {name} does not have")
    for feature in ("joint forces", "contact impulses"):
        if params.keep_forces and feature not in support.features:
            raise LapjointError(f"keep_forces is on, and the engine {name} has no {feature}")
    if params.solver != "sequential" and "direct solvers" not in support.features:
        raise LapjointError(f"solver is {params.solver}, which the engine {name} does not have; it has its own")


def warn_of_left_out(name: str, support: Support, scene: Scene) -> None:
    """Warn of what the engine leaves out of this scene."""
    for feature in LEFT_OUT:
        column = feature.replace(" ", "_")
        count = sum(_count_with(scene, table, column) for table in (scene.bodies, scene.statics))
        if count and feature not in support.features:
            warnings.warn(
                f"scene {scene.name!r}: the engine {name} has no {feature}; that of {count} bodies is left out",
                EngineWarning,
                stacklevel=4,
            )


def joint_features(scene: Scene) -> Iterator[tuple[str, int]]:
    """Features that joints of a scene use, each with the first joint that does."""
    joints = scene.joints
    limited = (joints.lower < joints.upper) & (np.isfinite(joints.lower) | np.isfinite(joints.upper))
    breaks = can_break(joints)[:, None]
    is_ball, driven = joints.kind == JointKind.BALL, joints.drive_max_force > 0
    tables = (
        limited & ~is_ball[:, None],
        joints.motor_max_force > 0,
        joints.spring_stiffness > 0,
        breaks,
        driven,
        joints.friction > 0,
        limited & is_ball[:, None],
        (counts_turns(joints) & ~driven.any(axis=1)).reshape(-1, 1),
    )
    for feature, table in zip(JOINT_FEATURES, tables, strict=True):
        using = np.flatnonzero(table.any(axis=1))
        if len(using):
            yield feature, int(using[0])


def check_joints_of_solver(scene: Scene, solver: str) -> None:
    """Refuse joints that, of Bullet's solvers, only that in substeps has."""
    what = f"which only the solver substeps has, and solver is {solver}"
    known = [KINDS[joint] for joint in SIX_AXES]
    for joint in np.flatnonzero(~np.isin(scene.joints.kind, known)):
        raise LapjointError(f"{joint_title(scene, int(joint))}, {what}")
    used = dict(joint_features(scene))
    for feature in OF_SUBSTEPS:
        if feature in used:
            how = "that breaks" if feature == "breaks" else f"with {feature}"
            raise LapjointError(f"{joint_title(scene, used[feature])} {how}, {what}")


def check_bonds_are_direct(scene: Scene, joints: str) -> None:
    """Refuse bonds where joints are swept: their loads are what a solution of the whole structure has."""
    for joint in np.flatnonzero(is_bond(scene.joints)) if joints == "swept" else ():
        raise LapjointError(f"{joint_title(scene, int(joint))}, a bond, and joints is swept, expected auto or direct")


def check_reports(scene: Scene, params: Params, features: Iterable[str], what: str) -> None:
    """Refuse what is to be reported of single steps by a feature that is not among these, `what` is why."""
    for kind in TABLES.values():
        if kind.feature not in (None, *features) and (asked := kind.asked_by(scene, params)) is not None:
            raise LapjointError(f"{asked}, {what}")


def check_nothing_moves(scene: Scene, what: str) -> None:
    """Refuse a scene with kinematic bodies or moving surfaces, which `what`."""
    for number in scene.kinematic_ids:
        raise LapjointError(f"scene {scene.name!r}: static body {number} is kinematic, which {what}")
    for number in np.flatnonzero(scene.statics.surface_velocity.any(axis=1)):
        raise LapjointError(f"scene {scene.name!r}: static body {number} has a surface velocity, which {what}")


def _count_with(scene: Scene, table: Columns, column: str) -> int:
    """Rows of a table with a surface, their own or a part's, of which this is not 0."""
    some = getattr(table, column) > 0
    for shape_id, compound in _compounds(scene):
        if any(part.material is not None and getattr(part.material, column) > 0 for part in compound.parts):
            some |= table.shape_id == shape_id
    return int(some.sum())


def _compounds(scene: Scene) -> Iterator[tuple[int, Compound]]:
    """Compounds whose parts have something of their own, by their numbers."""
    for shape_id, shape in enumerate(scene.shapes):
        if isinstance(shape, Compound) and (shape.has_surfaces or shape.has_filters):
            yield shape_id, shape


def surface_features(scene: Scene) -> Iterator[tuple[str, str]]:
    """Features that bodies' surfaces and filters use, each with what the first body that does has."""
    for title, table in (("body", scene.bodies), ("static body", scene.statics)):
        for shape_id, compound in _compounds(scene):
            for row in np.flatnonzero(table.shape_id == shape_id)[:1]:
                if compound.has_filters:
                    yield "part groups", f"{title} {row} has parts with groups or masks of their own"
                if compound.has_surfaces:
                    yield "part materials", f"{title} {row} has parts with materials of their own"
        for rule in ("friction_combine", "restitution_combine"):
            for row in np.flatnonzero(getattr(table, rule))[:1]:
                name = COMBINE_RULES[getattr(table, rule)[row]]
                yield "combine rules", f"{title} {row} has the {rule} {name!r}"
    for _, compound in _compounds(scene):
        if any(one.material and one.material.has_rules for one in compound.parts):
            yield "combine rules", "a part's material has a combine rule"


def check_no_fields(scene: Scene, what: str) -> None:
    """Refuse a scene with force fields, which `what`."""
    for number, one in enumerate(scene.fields):
        raise LapjointError(f"scene {scene.name!r} has {field_title(number, one)}, which {what}")


def has_groups(scene: Scene) -> bool:
    """Whether some bodies, or parts of them, are kept apart by groups and masks."""
    tables = (scene.bodies, scene.statics)
    return any(compound.has_filters for _, compound in _compounds(scene)) or any(
        (table.group != 1).any() or (table.mask != ALL_GROUPS).any() for table in tables
    )


def joint_title(scene: Scene, joint: int) -> str:
    """How messages call a joint."""
    kind = JointKind(scene.joints.kind[joint]).name.title().replace("_", "")
    return f"scene {scene.name!r}: joint {joint} is a {kind}"


def _shape_title(shape: StaticShape) -> str:
    if not isinstance(shape, Compound):
        return type(shape).__name__
    return "Compound of " + ", ".join(sorted({type(part.shape).__name__ for part in shape.parts}))
