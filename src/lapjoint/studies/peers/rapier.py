"""Rapier: substeps with soft contacts, in float32."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...engines.rapier_mapping import RapierMapping, check_rotations
from ...engines.rapier_states import read_slowly
from ...engines.support import SIX_AXES
from ...params import Params
from ...params.params import typical_length
from ...scene import WORLD, Ellipsoid, Scene
from ...scene.joints import KINDS
from .base import Array, Setting, left_out_notes, missing_shape, refuse_joints, refuse_shapes, refuse_surfaces

LADDER = ((4, False), (8, False), (4, True), (8, True), (16, True))
"""Iterations (substeps), and whether contacts are stiff: springs of 1 / timestep, where the default is 30 Hz, from
contacts found again in every step."""


class RapierPeer:
    """Rigid bodies and impulse joints."""

    name = "rapier"
    package = "rapier3d"
    precision = "float32"
    most_threads = 1024

    @staticmethod
    def check(scene: Scene) -> None:
        refuse_shapes("rapier", scene, lambda shape: missing_shape(shape, Ellipsoid))
        refuse_surfaces("rapier", scene)
        refuse_joints("rapier", scene, [KINDS[joint] for joint in SIX_AXES], limits=True)
        check_rotations("the peer rapier", scene)

    @staticmethod
    def ladder(scene: Scene, params: Params) -> list[Setting]:
        """Substeps of the solver, and the stiffness of contacts."""
        return [
            Setting(f"{n} {'stiff' if stiff else 'iterations'}", 5 * n, {"iterations": n, "stiff": stiff})
            for n, stiff in LADDER
        ]

    @staticmethod
    def unfair(scene: Scene) -> list[str]:
        notes = [
            "its iterations are substeps: fewer of them do more",
            "its contacts are springs: at the default of 30 Hz bodies sink in; it is not tuned for stiff ones",
            "float32; one friction constraint for all points of a contact, where sequential has two a point",
            "its Python interface reads states body by body",
        ]
        return [*notes, *left_out_notes(scene)]

    def __init__(self, scene: Scene, states: Array, params: Params, setting: Setting) -> None:
        rapier3d: Any = import_module(self.package)
        params = params.resolved(scene)
        assert params.timestep is not None
        self._rapier, self._scene = rapier3d, scene
        self._world = world = rapier3d.PhysicsWorld(gravity=tuple(scene.gravity))
        world.set_num_threads(setting.threads)
        options = world.integration_parameters
        options.dt, options.length_unit = params.timestep, typical_length(scene)
        options.num_solver_iterations = setting.values["iterations"]
        if setting.values["stiff"]:
            for name, factor in (("contact_softness", 1.0), ("static_contact_softness", 2.0)):
                ratio = getattr(options, name).damping_ratio
                setattr(options, name, rapier3d.SpringCoefficients(factor / params.timestep, ratio))
            options.contact_recycling = False
        self._mapping = mapping = RapierMapping(rapier3d, scene)
        for s in range(scene.static_count):
            world.add_collider(mapping.static_collider(s))
        self._handles = [
            world.add_body(mapping.body(b, states[b]), [mapping.body_collider(b)]) for b in range(scene.body_count)
        ]
        self._add_joints()
        self._bodies = [world.rigid_bodies[handle] for handle in self._handles]

    def _add_joints(self) -> None:
        scene, mapping, handles = self._scene, self._mapping, self._handles
        insert = self._world.impulse_joints.insert
        world = self._world.rigid_bodies.insert(self._rapier.RigidBody.fixed())
        for j in range(scene.joint_count):
            a, b = int(scene.joints.body_a[j]), int(scene.joints.body_b[j])
            insert(world if b == WORLD else handles[b], handles[a], mapping.joint(j))
        for a, b in mapping.loose_quiet:
            insert(handles[a], handles[b], mapping.nothing())

    # ---- time ----------------------------------------------------------------------------------------------------

    def step(self, count: int = 1) -> None:
        step = self._world.step
        for _ in range(count):
            step()

    def states(self) -> Array:
        return read_slowly(self._bodies)

    def penetration(self) -> float:
        deepest = (pair.find_deepest_contact() for pair in self._world.narrow_phase.contact_pairs())
        return max(0.0, *(-float(contact.dist) for contact in deepest if contact is not None), 0.0)

    def close(self) -> None:
        self._bodies.clear()
        self._world.clear()
