"""Attributes of USD prims for what UsdPhysics has no word for: written by the export, read back here.

A file of another program has none of them, and one that has them opens elsewhere, without what they mean.
"""

from __future__ import annotations

from . import axes
from .axes import OWN_COLUMNS

SPACE = "lapjoint:"

# Of the physics scene.
NAME = SPACE + "name"
TIMESTEP = SPACE + "timestep"
ITERATIONS = SPACE + "iterations"
GROWTH_DEPTH = SPACE + "growthDepth"
SEARCH_DEPTH = SPACE + "searchDepth"
CAMERA = SPACE + "camera"

# Of bodies, of static and of kinematic ones. Every one of them has its kind, and what is below it is one body.
KIND = SPACE + "kind"
LABEL = SPACE + "label"
HIT_IMPULSE = SPACE + "hitImpulse"
HIT_SPEED = SPACE + "hitSpeed"
TOUCH_EVENTS = SPACE + "touchEvents"
LINEAR_DAMPING = SPACE + "linearDamping"
ANGULAR_DAMPING = SPACE + "angularDamping"
SURFACE_VELOCITY = SPACE + "surfaceVelocity"
MOTION_KIND = SPACE + "motionKind"
MOTION_VALUES = SPACE + "motionValues"
MOTION_START = SPACE + "motionStart"
MOTION_BASE = SPACE + "motionBase"

ON = SPACE + "on"
"""A relationship: what a sensor is on."""

# Of colliders: the shape that a mesh stands for.
SHAPE = SPACE + "shape"
RADII = SPACE + "radii"
HEIGHTS = SPACE + "heights"
COLUMNS = SPACE + "columns"
SPACING = SPACE + "spacing"
RELATIVE_DENSITY = SPACE + "relativeDensity"

# Of materials and collision groups.
ROLLING_FRICTION = SPACE + "rollingFriction"
FRICTION_COMBINE = SPACE + "frictionCombine"
RESTITUTION_COMBINE = SPACE + "restitutionCombine"
GROUP = SPACE + "group"
MASK = SPACE + "mask"

# Of joints.
GEAR_RATIO = SPACE + "gearRatio"
TWIST = SPACE + "twist"
OF_AXES = {column: SPACE + name for column, name in OWN_COLUMNS.items()}
DRIVEN = SPACE + axes.DRIVEN
