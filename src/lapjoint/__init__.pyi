"""lapjoint: one rigid-body scene, simulated by many workers."""

from . import fracture, scenes
from .checkpoint import Checkpoint, CheckpointWriter
from .engines import Contacts, Engine, engine_names, make_engine
from .errors import EngineWarning, LapjointError, PenetrationWarning, SimulationStopped
from .measures.step import Measures
from .params import Params
from .recording import Recording, RecordingWriter
from .scene import (
    FREE,
    LOCKED,
    WORLD,
    Ball,
    Box,
    Breaks,
    Capsule,
    Compound,
    ConstantVelocity,
    ConvexHull,
    Cylinder,
    Distance,
    Drive,
    Fixed,
    Gear,
    Hinge,
    Keyframes,
    Material,
    Motor,
    Oscillation,
    Part,
    Plane,
    Rotation,
    Scene,
    SixAxis,
    Slider,
    Sphere,
    Spring,
    TriangleMesh,
)
from .server.events import Events
from .server.incidents import Incident
from .simulation import Simulation

__version__: str

__all__ = [
    "FREE",
    "LOCKED",
    "WORLD",
    "Ball",
    "Box",
    "Breaks",
    "Capsule",
    "Checkpoint",
    "CheckpointWriter",
    "Compound",
    "ConstantVelocity",
    "Contacts",
    "ConvexHull",
    "Cylinder",
    "Distance",
    "Drive",
    "Engine",
    "EngineWarning",
    "Events",
    "Fixed",
    "Gear",
    "Hinge",
    "Incident",
    "Keyframes",
    "LapjointError",
    "Material",
    "Measures",
    "Motor",
    "Oscillation",
    "Params",
    "Part",
    "PenetrationWarning",
    "Plane",
    "Recording",
    "RecordingWriter",
    "Rotation",
    "Scene",
    "Simulation",
    "SimulationStopped",
    "SixAxis",
    "Slider",
    "Sphere",
    "Spring",
    "TriangleMesh",
    "__version__",
    "engine_names",
    "fracture",
    "make_engine",
    "scenes",
]
