"""The Rapier engine: substeps with soft contacts, in float32. Its interface takes bodies one by one, and so do we, but
only those that are asked for, and only once."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ..params import Params
from ..scene import Compound, Ellipsoid, HeightField, Scene, Sphere, TriangleMesh
from ..step_tables import FEATURES as STEP_TABLES
from .arguments import pairs_and_states
from .base import CONTACT_MARGIN, Array, Contacts, Ids
from .checked import CheckedEngine
from .rapier_mapping import RapierMapping, check_rotations, spring_of
from .rapier_probe import RapierProbe
from .rapier_states import StateReader
from .support import ALL_SHAPES, FEATURES, OF_SUBSTEPS, Support

SWEEPS = 5
"""A substep of Rapier's costs about as much as so many sweeps of Bullet's: `Sequential.iterations` are sweeps."""
WARM_START = 0.85
"""Share of the last step's contact impulses that the solver starts from, as in Bullet."""

MANY_POINTS = (Compound, TriangleMesh, HeightField)
"""Shapes that a sphere can touch in several points."""
LACKING = {
    *OF_SUBSTEPS,
    *STEP_TABLES,
    *("sensors", "joint forces", "contact impulses", "kinematic bodies"),
    *("rolling friction", "residual", "contact cache", "direct solvers"),
    *("part groups", "part materials", "combine rules", "added bodies", "sleep"),
}
"""Features that it does not have."""


class RapierEngine(CheckedEngine):
    """Rigid bodies and impulse joints, put in and taken out."""

    supports = Support(
        "rapier3d",
        ("float32",),
        shapes=tuple(shape for shape in ALL_SHAPES if shape is not Ellipsoid),
        features=tuple(one for one in FEATURES if one not in LACKING),
        extra="rapier",
    )

    @staticmethod
    def check(scene: Scene, params: Params) -> None:
        check_rotations("the engine rapier", scene)

    def __init__(self, scene: Scene, params: Params) -> None:
        super().__init__(scene, params)
        self._rapier: Any = import_module("rapier3d")
        spring = spring_of(self._rapier, self.params.sequential.joint_erp, self.timestep)
        self._mapping = RapierMapping(self._rapier, scene, spring)
        self._reader = StateReader(self._rapier)
        self._probe: RapierProbe | None = None
        quiet = np.array(self._mapping.loose_quiet, np.int32).reshape(-1, 2)
        self._quiet, self._is_quiet = quiet, np.zeros(len(quiet), bool)
        self._key = np.array([scene.body_count + scene.static_count, 1])  # of a pair, static bodies included
        self._quiet_keys = scene.ignored_pairs @ self._key
        self._is_sphere = np.array([isinstance(scene.shapes[one], Sphere) for one in scene.bodies.shape_id], bool)
        self._kinds = [
            0 if isinstance(one, Sphere) else 2 if isinstance(one, MANY_POINTS) else 1 for one in scene.shapes
        ]
        self._start_world()

    def _start_world(self) -> None:
        rapier, params, scene = self._rapier, self.params, self.scene
        self._world = world = rapier.PhysicsWorld(gravity=tuple(scene.gravity))
        world.set_num_threads(1)
        options = world.integration_parameters
        options.dt, options.length_unit = self.timestep, self.length_unit
        options.normalized_prediction_distance = CONTACT_MARGIN
        options.normalized_max_linear_velocity = 1e30
        options.warmstart_coefficient = WARM_START
        options.contact_recycling = False  # else depths are those of an earlier step
        spring = spring_of(rapier, params.sequential.contact_erp, self.timestep)
        options.contact_softness = options.static_contact_softness = spring
        assert params.sequential.iterations is not None
        self.apply_iterations(params.sequential.iterations)
        self._bodies: dict[int, Any] = {}
        self._handles: dict[int, Any] = {}
        self._ground: Any = None
        self._owner: dict[int, tuple[int, int]] = {}
        """Body or static body (-1 - s), and the kind of its shape, by the index of its collider."""
        for s in range(scene.static_count):
            handle = world.add_collider(self._mapping.static_collider(s))
            self._owner[handle.index] = -1 - s, self._kinds[scene.statics.shape_id[s]]

    def apply_iterations(self, iterations: int) -> None:
        self._world.integration_parameters.num_solver_iterations = max(1, round(iterations / SWEEPS))

    # ---- who is in -----------------------------------------------------------------------------------------------

    def put_in(self, ids: Ids, states: Array) -> None:
        world, mapping = self._world, self._mapping
        shape_ids = self.scene.bodies.shape_id
        for body, state in zip(ids.tolist(), states, strict=True):
            handle = world.add_body(mapping.body(body, state), [mapping.body_collider(body)])
            self._handles[body] = handle
            self._bodies[body] = made = world.rigid_bodies[handle]
            self._owner[made.colliders[0].index] = body, self._kinds[shape_ids[body]]

    def take_out(self, ids: Ids) -> None:
        for body in ids.tolist():
            del self._owner[self._bodies.pop(body).colliders[0].index]
            self._world.remove_body(self._handles.pop(body))  # and its joints
        self._is_quiet = self._quiet_now()

    def join(self, joint_ids: Ids) -> None:
        joints, insert = self.scene.joints, self._world.impulse_joints.insert
        for j in joint_ids.tolist():
            b = int(joints.body_b[j])
            insert(
                self._handles[b] if b >= 0 else self._fixed(),
                self._handles[int(joints.body_a[j])],
                self._mapping.joint(j),
            )
        quiet = self._quiet_now()
        for a, b in self._quiet[quiet & ~self._is_quiet].tolist():
            insert(self._handles[a], self._handles[b], self._mapping.nothing())
        self._is_quiet = quiet

    def _fixed(self) -> Any:
        """A body that stands for the world in joints."""
        if self._ground is None:
            self._ground = self._world.rigid_bodies.insert(self._rapier.RigidBody.fixed())
        return self._ground

    def _quiet_now(self) -> Any:
        return self._is_active[self._quiet].all(axis=1)

    # ---- states --------------------------------------------------------------------------------------------------

    def write(self, ids: Ids, states: Array) -> None:
        bodies = self._bodies
        turned = states[:, [0, 1, 2, 4, 5, 6, 3, 7, 8, 9, 10, 11, 12]].tolist()
        for body, (x, y, z, i, j, k, w, *speed) in zip(ids.tolist(), turned, strict=True):
            one = bodies[body]
            one.position = (x, y, z), (i, j, k, w)
            one.linvel = speed[:3]
            one.angvel = speed[3:]

    def read(self, ids: Ids) -> Array:
        bodies = self._bodies
        return self._reader.read([bodies[body] for body in ids.tolist()])

    # ---- time ----------------------------------------------------------------------------------------------------

    def advance(self, forces: Array | None) -> None:
        pushed = [] if forces is None else np.flatnonzero(forces.any(axis=1)).tolist()
        for body in pushed:
            assert forces is not None
            self._bodies[body].add_force(tuple(forces[body, :3]))
            self._bodies[body].add_torque(tuple(forces[body, 3:]))
        self._world.step()
        for body in pushed:
            self._bodies[body].reset_forces()
            self._bodies[body].reset_torques()
        if not self._world.quarantine.is_empty():
            lost = {(handle.index, handle.generation) for handle in self._world.quarantine.bodies}
            held = ((body, self._handles[body]) for body in sorted(self._handles))
            self._refuse_beyond(np.array([b for b, handle in held if (handle.index, handle.generation) in lost]))

    def find(self) -> None:
        self._world.detect_collisions()

    def list_contacts(self) -> Contacts:
        owner, rows, points = self._owner, [], []
        for pair in self._world.narrow_phase.contact_pairs():
            deepest = pair.find_deepest_contact()
            if deepest is None:
                continue
            a, kind_a = owner[pair.collider1.index]
            b, kind_b = owner[pair.collider2.index]
            rows.append((a, b, deepest.dist))
            # A sphere and what is convex have one point in common.
            points.append(1 if kind_a + kind_b < 2 else sum([len(one.points) for one in pair.manifolds]))
        table = np.array(rows, float).reshape(-1, 3)
        pairs = np.sort(table[:, :2].astype(np.int32), axis=1)
        pairs[pairs[:, 0] < 0] = pairs[pairs[:, 0] < 0, ::-1]
        loud = ~np.isin(pairs @ self._key, self._quiet_keys)  # `detect` knows nothing of joints
        return Contacts(pairs[loud], np.array(points, np.int32)[loud], -table[loud, 2])

    def forget(self) -> None:
        """Rebuild the world, without warm-start data."""
        ids, joint_ids = self.active_ids, self.live_joint_ids
        states = self._table[ids]
        self._start_world()
        self.put_in(ids, states)
        self._is_quiet[:] = False
        self.join(joint_ids)
        self._is_known[:] = False

    def clearances(self, pairs: Any, states: Any) -> Array:
        """By boxes and spheres where bodies are well apart, else by Rapier's own narrow phase, in a world aside."""
        rows, given = pairs_and_states(self.scene, pairs, states)
        found = super().clearances(rows, given)
        near = np.flatnonzero((found == 0) & ~self._is_sphere[rows].all(axis=1))
        if len(near):
            if self._probe is None:
                self._probe = RapierProbe(self._rapier, self._mapping, self.scene, self.length_unit)
            found[near[~self._probe.touch(rows[near], given)]] = np.finfo(float).tiny
        return found
