"""Attributes of a simulation: what is read, asked and changed between two steps, by what it is about."""

from .bodies import SimulationBodies
from .contacts import SimulationContacts
from .events import SimulationEvents
from .joints import SimulationJoints
from .kinematic import SimulationKinematic
from .queries import SimulationQueries
from .workers import SimulationWorkers

__all__ = [
    "SimulationBodies",
    "SimulationContacts",
    "SimulationEvents",
    "SimulationJoints",
    "SimulationKinematic",
    "SimulationQueries",
    "SimulationWorkers",
]
