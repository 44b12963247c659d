"""lapjoint: one rigid-body scene, simulated by many workers."""

from . import fracture, scenes
from .checkpoint import Checkpoint, CheckpointWriter
from .engines import Contacts, Engine, SensorEvents, engine_names, make_engine
from .errors import EngineWarning, LapjointError, PenetrationWarning, SimulationStopped
from .measures.step import Measures
from .params import Params
from .queries import NO_BODY, ClosestPoints, Inside, Overlaps, RayHits
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
    Cone,
    ConstantVelocity,
    ConvexHull,
    Cylinder,
    Ellipsoid,
    Fixed,
    HeightField,
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
    "NO_BODY",
    "WORLD",
    "Ball",
    "Box",
    "Breaks",
    "Capsule",
    "Checkpoint",
    "CheckpointWriter",
    "ClosestPoints",
    "Compound",
    "Cone",
    "ConstantVelocity",
    "Contacts",
    "ConvexHull",
    "Cylinder",
    "Ellipsoid",
    "Engine",
    "EngineWarning",
    "Events",
    "Fixed",
    "HeightField",
    "Hinge",
    "Incident",
    "Inside",
    "Keyframes",
    "LapjointError",
    "Material",
    "Measures",
    "Motor",
    "Oscillation",
    "Overlaps",
    "Params",
    "Part",
    "PenetrationWarning",
    "Plane",
    "RayHits",
    "Recording",
    "RecordingWriter",
    "Rotation",
    "Scene",
    "SensorEvents",
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
