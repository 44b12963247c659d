"""simulation.events: what has happened so far."""

from __future__ import annotations

from ..server.events import Events, find_events
from ..server.step_reports import Table
from ..step_tables.breaks import JointBreaks
from ..step_tables.hits import Hits
from ..step_tables.sensor_events import SensorEvents
from ..step_tables.touches import Touches
from .base import Facet


class SimulationEvents(Facet):
    """What has happened so far, as tables with a row for each event; steps count from 0."""

    _prefix = "events."

    @property
    def all(self) -> Events:
        """Bodies that were made and removed, joints that broke, contacts that hit."""
        return find_events(self._core.scene, self.joint_breaks, self.hits)

    def reported(self, kind: type[Table]) -> Table:
        """All that has been reported of a kind so far, see `lapjoint.step_tables`: in which step (from 0), who or what,
        and what it was."""
        return self._core.reports.all(kind)

    @property
    def joint_breaks(self) -> JointBreaks:
        """Joints that have broken so far: in which step, which, and under what force and torque."""
        return self.reported(JointBreaks)

    @property
    def hits(self) -> Hits:
        """Contacts so far that did as much in a step as one of their bodies wants to have reported."""
        return self.reported(Hits)

    @property
    def touches(self) -> Touches:
        """Touches so far of bodies with `touch_events` or a `hit_speed`: in which step, who, and whether they began to
        touch, ceased to, or hit."""
        return self.reported(Touches)

    @property
    def sensor_events(self) -> SensorEvents:
        """Bodies that have entered sensors so far and left them: in which step, which, and which of both. Those that
        were inside from the start have entered in step 0."""
        return self.reported(SensorEvents)
