"""An engine of one's own, complete: spheres, planes and ball joints, all of them held by damped springs, in NumPy.

docs/engines.md walks through it. `pip install ./examples/spring_engine`, then `lapjoint run bowl.npz --engine
springs:float64` with a scene of spheres and planes.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from lapjoint import Ball, Plane, Sphere
from lapjoint.arrays import rotation
from lapjoint.engines import CONTACT_MARGIN, Contacts, Support
from lapjoint.engines.checked import CheckedEngine

SWEEPS = 10  # so many iterations are one substep
STIFFNESS, DAMPING = 0.1, 0.5  # of a spring, in units of reduced mass over substep^2 and over substep: stable below 1


class SpringEngine(CheckedEngine):
    supports = Support(
        "spring-engine",
        ("float64",),
        shapes=(Sphere, Plane),
        joints=(Ball,),
        features=("groups", "iterations", "exact clearances"),
    )

    def __init__(self, scene, params):
        super().__init__(scene, params)
        bodies, count = scene.bodies, scene.body_count
        # Static bodies come after the others, with no inverse mass; planes have no radius.
        self._radius = np.array([*scene.bounding_radii(), *(getattr(self._static(s), "radius", 0.0) for s in self._s)])
        self._inverse = np.concatenate([1 / bodies.mass, np.zeros(scene.static_count + 1)])  # the last is the WORLD
        moment = np.trace(bodies.inertia, axis1=1, axis2=2) / 3
        self._inverse_moment = np.concatenate([1 / moment, np.zeros(scene.static_count + 1)])
        both = [np.concatenate([getattr(bodies, n), getattr(scene.statics, n)]) for n in ("group", "mask", "friction")]
        self._group, self._mask, self._friction = both
        self._ignored = scene.ignored_pairs @ [len(self._radius), 1]
        self._states = np.zeros((count + scene.static_count + 1, 13))
        self._states[:, 3] = 1.0
        self._states[count:-1, :7] = np.concatenate([scene.statics.position, scene.statics.quaternion], axis=1)
        self._found = Contacts.none()

    @property
    def _s(self):
        return range(self.scene.static_count)

    def _static(self, s):
        return self.scene.shapes[self.scene.statics.shape_id[s]]

    # ---- what CheckedEngine asks for: bodies in and out, states ----------------------------------------------------

    def put_in(self, ids, states):
        self._states[ids] = states

    def take_out(self, ids):
        pass  # nobody looks at a body that is not active

    write = put_in

    def read(self, ids):
        return self._states[ids]

    # ---- contacts --------------------------------------------------------------------------------------------------

    def _near(self):
        """Pairs of bodies no farther apart than the margin, unit normals from a to b, and depths."""
        ids, place, margin = self.active_ids, self._states[:, :3], CONTACT_MARGIN * self.length_unit
        pairs = [np.empty((0, 2), int)]
        if len(ids):
            reach = 2 * self._radius[ids].max() + margin
            pairs.append(ids[cKDTree(place[ids]).query_pairs(reach, output_type="ndarray")])
        pairs += [np.stack([ids, np.full(len(ids), self.scene.body_count + s)], axis=1) for s in self._s]
        a, b = np.concatenate(pairs).T
        way = place[b] - place[a]
        for s in self._s:
            if isinstance(self._static(s), Plane):
                row = self.scene.body_count + s
                up, on = rotation.rotate(self._states[row, 3:7], [0, 0, 1]), b == row
                way[on] = (way[on] @ up)[:, None] * up
        apart = np.linalg.norm(way, axis=1)
        depth = self._radius[a] + self._radius[b] - apart
        meet = (self._group[a] & self._mask[b] != 0) & (self._group[b] & self._mask[a] != 0) & (depth >= -margin)
        meet &= ~np.isin(np.minimum(a, b) * len(self._radius) + np.maximum(a, b), self._ignored)
        normal = way / np.maximum(apart, 1e-300)[:, None]
        return a[meet], b[meet], normal[meet], depth[meet]

    def find(self):
        a, b, _, depth = self._near()
        pairs = np.stack([np.minimum(a, b), np.maximum(a, b)], axis=1)
        static = pairs[:, 1] >= self.scene.body_count
        pairs[static, 1] = self.scene.body_count - 1 - pairs[static, 1]
        self._found = Contacts(pairs.astype(np.int32), np.ones(len(a), np.int32), depth)

    def list_contacts(self):
        return self._found

    def forget(self):
        pass  # springs have no warm-start data

    # ---- time ------------------------------------------------------------------------------------------------------

    def advance(self, forces):
        self.find()
        count = max(1, self.params.sequential.iterations // SWEEPS)
        with np.errstate(all="ignore"):  # a state that is not finite is an error after the step
            for _ in range(count):
                self._substep(self.timestep / count, forces)

    def _substep(self, h, forces):
        ids, states = self.active_ids, self._states
        self.check_finite(ids, states[ids])
        self._push = np.zeros((len(states), 6))
        a, b, normal, depth = self._near()
        arms = self._radius[a, None] * normal, -self._radius[b, None] * normal
        self._pull(h, a, b, arms, np.maximum(depth, 0)[:, None] * normal, depth > 0, normal)
        joints, live = self.scene.joints, self.live_joint_ids
        a, b = joints.body_a[live], joints.body_b[live]  # the WORLD is -1, the last row
        arms = [rotation.rotate(states[i, 3:7], f[live, :3]) for i, f in ((a, joints.frame_a), (b, joints.frame_b))]
        gap = states[a, :3] + arms[0] - states[b, :3] - arms[1]
        self._pull(h, a, b, arms, gap, np.ones(len(a), bool))
        if forces is not None:
            self._push[: len(forces)] += forces
        states[ids, 7:10] += h * (self.scene.gravity + self._push[ids, :3] * self._inverse[ids, None])
        states[ids, 10:13] += h * self._push[ids, 3:] * self._inverse_moment[ids, None]
        states[ids, :3] += h * states[ids, 7:10]
        spin = states[ids, 10:13]
        speed = np.linalg.norm(spin, axis=1)
        turn = rotation.from_axis_angle(np.where(speed[:, None] > 0, spin, [1.0, 0.0, 0.0]), h * speed)
        turned = rotation.multiply(turn, states[ids, 3:7])
        states[ids, 3:7] = turned / np.linalg.norm(turned, axis=1, keepdims=True)

    def _pull(self, h, a, b, arms, gap, on, normal=None):
        """A damped spring from a's arm to b's that closes `gap`; with a normal it only pushes, and rubs."""
        ends = ((a, arms[0]), (b, arms[1]))
        speed = [self._states[i, 7:10] + np.cross(self._states[i, 10:13], arm) for i, arm in ends]
        inverse = sum(self._inverse[i] + self._inverse_moment[i] * (arm * arm).sum(axis=1) for i, arm in ends)
        mass = (on / inverse)[:, None]
        force = -mass * (STIFFNESS / h**2 * gap + DAMPING / h * (speed[0] - speed[1]))
        if normal is not None:
            along = np.minimum((force * normal).sum(axis=1, keepdims=True), 0)
            side = force - (force * normal).sum(axis=1, keepdims=True) * normal
            most = -along * np.sqrt(self._friction[a] * self._friction[b])[:, None]
            slip = np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-300)
            force = along * normal + side * np.minimum(1, most / slip)
        for sign, (i, arm) in zip((1, -1), ends, strict=True):
            np.add.at(self._push, i, sign * np.concatenate([force, np.cross(arm, force)], axis=1))
