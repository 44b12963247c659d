"""MJCF and URDF files, by MuJoCo's own reader (MjSpec): includes, defaults, attachments and replicas are resolved
there, and what is read here is the model that it compiles. Needs the extra `lapjoint[mujoco]`.

Bodies without joints are one with their parents, as in MuJoCo. Joints stand at zero where the file has the bodies.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import (
    FREE,
    LOCKED,
    Ball,
    Box,
    Capsule,
    ConvexHull,
    Cylinder,
    Drive,
    Ellipsoid,
    Fixed,
    Gear,
    HeightField,
    Hinge,
    Material,
    Plane,
    SixAxis,
    Slider,
    Sphere,
    Spring,
)
from ..scene.shapes import StaticShape, hull_faces
from .build import joined_masses
from .inside import check_xml_files
from .model import WORLD, Array, Collider, Link, LinkJoint, Mass, Model, Motion
from .notes import Notes
from .urdf import Mimic, find_mimics

FREE_JOINT, BALL, SLIDE, HINGE = range(4)
PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)
CONNECT, WELD, JOINT = range(3)
TOGETHER = 1e-6
"""Anchors meet, and axes are at right angles, up to this [m and cosine]."""
SMALL = 1e-3
"""Share of a body's mass and inertia that a link between two of its joints has, where these cannot be one joint."""


def read_mjcf(path: Path, notes: Notes, keyframe: str | int | None = None) -> Model:
    """The model of an MJCF or URDF file. `keyframe` is where it starts, by name or number."""
    try:
        import mujoco  # type: ignore[import-untyped]
    except ImportError:
        raise LapjointError(f"{path}: reading it needs mujoco: pip install 'lapjoint[mujoco]'") from None
    check_xml_files(path)
    # MuJoCo would write its warnings into a file where the program runs.
    heard = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: notes.leave_out("MuJoCo", " ".join(str(text).split())))
    try:
        spec = mujoco.MjSpec.from_file(str(path))
        compiled = spec.compile()
    except Exception as error:  # whatever MuJoCo has against it
        text = " ".join(str(error).split())
        raise LapjointError(f"{path}: {text or type(error).__name__}") from None
    finally:
        mujoco.set_mju_user_warning(heard)
    return _Reader(mujoco, spec, compiled, notes, find_mimics(path)).read(keyframe)


@dataclass
class _Axis:
    """A hinge or slide joint of the file."""

    joint: int
    is_hinge: bool
    anchor: Array
    axis: Array
    limits: tuple[float, float]
    spring: Spring | None
    drive: Drive | None
    friction: float


class _Reader:
    def __init__(self, mujoco: Any, spec: Any, model: Any, notes: Notes, mimics: list[Mimic]) -> None:
        self._mujoco, self._spec, self._m, self._notes, self._mimics = mujoco, spec, model, notes, mimics
        data = mujoco.MjData(model)
        data.qpos[:] = model.qpos0
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        self._data = data
        self._drives: dict[int, Drive] = {}
        self._coupled: set[tuple[int, int]] = set()
        self._link_of = np.full(model.nbody, WORLD)
        self._model = Model(model.names[: model.names.find(b"\0")].decode() or notes.path.stem)

    def read(self, keyframe: str | int | None) -> Model:
        m, made = self._m, self._model
        made.gravity, made.timestep = np.array(m.opt.gravity), float(m.opt.timestep)
        self._refuse_what_is_wrong()
        self._read_actuators()
        self._read_links()
        self._read_joints()
        self._read_equalities()
        self._read_mimics()
        self._read_filters()
        self._read_start(keyframe)
        return made

    # ---- names ---------------------------------------------------------------------------------------------------

    def _where(self, kind: str, number: int) -> str:
        """How messages call an element: its kind, name, and line."""
        name = getattr(self._m, kind)(number).name
        element = getattr(self._spec, kind)(name) if name else None
        line = f" ({element.info})" if element is not None and element.info else ""
        return f"{kind} {name!r}{line}" if name else f"{kind} {number}"

    def _refuse_what_is_wrong(self) -> None:
        """Whatever would move otherwise without it."""
        m, notes = self._m, self._notes
        for count, what in (
            (m.nflex, "flexible bodies (flex)"),
            (m.nplugin, "plug-ins"),
        ):
            if count:
                raise notes.refuse("", f"has {count} {what}, which lapjoint does not have")
        if m.opt.wind.any() and (m.opt.density or m.opt.viscosity):
            raise notes.refuse("option", "has a medium with wind; expected none, or add a force field to the scene")
        if m.opt.density or m.opt.viscosity:
            notes.leave_out("option", "density and viscosity of a medium; add a force field to the scene")
        for number in range(m.ntendon):
            acts = m.tendon_stiffness[number] or m.tendon_limited[number] or m.tendon_damping[number]
            moved = (m.actuator_trntype == self._mujoco.mjtTrn.mjTRN_TENDON) & (m.actuator_trnid[:, 0] == number)
            if acts or moved.any():
                raise notes.refuse(self._where("tendon", number), "a tendon that pulls, which lapjoint does not have")
            notes.leave_out(self._where("tendon", number), "a tendon that does nothing")
        for count, what in (
            (m.nsensor, "sensors"),
            (m.ncam, "cameras"),
            (m.nlight, "lights"),
            (m.nsite, "sites"),
            (m.nskin, "skins"),
        ):
            if count:
                notes.leave_out(f"{count} {what}", "nothing of the motion depends on them")
        if m.npair:
            notes.approximate(f"{m.npair} contact pairs", "touch by the materials of their bodies, not by their own")

    # ---- links ---------------------------------------------------------------------------------------------------

    def _read_links(self) -> None:
        """One link for all bodies that are welded together; what is welded to the world is static."""
        m, data, made = self._m, self._data, self._model
        roots = [int(b) for b in np.unique(m.body_weldid)]
        for root in roots:
            motion = Motion.KINEMATIC if m.body_mocapid[root] >= 0 else Motion.MOVING
            motion = motion if root else Motion.STATIC
            name = m.body(root).name if root else "world"
            link = Link(name, data.xpos[root].copy(), data.xquat[root].copy(), motion)
            link.where = self._where("body", root) if root else "worldbody"
            bodies = np.flatnonzero(m.body_weldid == root)
            if root and len(bodies) > 1:
                self._notes.count("bodies that are one with their parents", len(bodies) - 1)
            if motion is Motion.MOVING:
                link.mass = self._mass(root, bodies)
            for geom in np.flatnonzero(np.isin(m.geom_bodyid, bodies)):
                collider = self._collider(int(geom), link)
                if collider is not None:
                    link.colliders.append(collider)
            self._link_of[bodies] = len(made.links)
            made.links.append(link)
        # What is mocap has children of its own at most by joints; what is static has none.

    def _mass(self, root: int, bodies: NDArray[np.int64]) -> Mass:
        m, data = self._m, self._data
        back = rotation.conjugate(data.xquat[root])
        found = []
        for body in bodies:
            if m.body_mass[body] <= 0:
                continue
            turn = data.ximat[body].reshape(3, 3)
            own = rotation.to_matrix(back) @ turn
            centre = rotation.rotate(back, data.xipos[body] - data.xpos[root])
            found.append(Mass(float(m.body_mass[body]), centre, own @ np.diag(m.body_inertia[body]) @ own.T))
        mass = joined_masses(found)
        first, count = m.body_jntadr[root], m.body_jntnum[root]
        for joint in range(first, first + count):
            armature = float(m.dof_armature[m.jnt_dofadr[joint]])
            if armature and m.jnt_type[joint] == HINGE:
                axis = rotation.rotate(back, data.xaxis[joint])
                mass.inertia = mass.inertia + armature * np.outer(axis, axis)
            elif armature and m.jnt_type[joint] != FREE_JOINT:
                mass.inertia = mass.inertia + (armature * np.eye(3) if m.jnt_type[joint] == BALL else 0.0)
            if armature:
                self._notes.approximate(
                    self._where("joint", joint), "armature is inertia of the body that turns (none, if it slides)"
                )
        return mass

    def _collider(self, geom: int, link: Link) -> Collider | None:
        """The collider of a geom; none of one that touches nothing."""
        m, data = self._m, self._data
        where = self._where("geom", geom)
        in_pair = bool(np.isin(geom, [m.pair_geom1, m.pair_geom2]).any()) if m.npair else False
        if not (m.geom_contype[geom] or m.geom_conaffinity[geom] or in_pair):
            self._notes.count("geoms that are only seen")
            return None
        back = rotation.conjugate(link.quaternion)
        turn = rotation.multiply(back, rotation.from_matrix(data.geom_xmat[geom].reshape(3, 3)))
        place = rotation.rotate(back, data.geom_xpos[geom] - link.position)
        shape, offset = self._shape(geom, where, link)
        slide, _, roll = m.geom_friction[geom]
        material = Material(
            friction=float(slide),
            rolling_friction=float(roll) if m.geom_condim[geom] >= 6 else 0.0,
            friction_combine="maximum",
        )
        return Collider(shape, place + rotation.rotate(turn, offset), turn, material, geom, where=where)

    def _shape(self, geom: int, where: str, link: Link) -> tuple[StaticShape, Array]:
        """A geom's shape, and where its centre is in the geom's frame."""
        m, here = self._m, np.zeros(3)
        kind, size = int(m.geom_type[geom]), m.geom_size[geom]
        if kind == SPHERE:
            return Sphere(size[0]), here
        if kind == CAPSULE:
            return Capsule(size[0], 2 * size[1]), here
        if kind == CYLINDER:
            return Cylinder(size[0], 2 * size[1]), here
        if kind == BOX:
            return Box(tuple(2 * size)), here
        if kind == ELLIPSOID:
            return Ellipsoid(tuple(size)), here
        if kind == PLANE:
            if link.motion is Motion.MOVING:
                raise self._notes.refuse(where, "a plane on a body that moves, expected one that is static")
            if size[0] or size[1]:
                self._notes.approximate(where, "a plane is infinite")
            return Plane(), here
        if kind == MESH:
            mesh = m.geom_dataid[geom]
            first, count = m.mesh_vertadr[mesh], m.mesh_vertnum[mesh]
            hull = ConvexHull(np.array(m.mesh_vert[first : first + count], float))
            corners, _ = hull_faces(hull.points)
            small = ConvexHull(corners)
            return small, hull.centre + small.centre
        if kind == HFIELD:
            return self._height_field(int(m.geom_dataid[geom]), where, link), here
        raise self._notes.refuse(where, "a shape that lapjoint does not have (sdf)")

    def _height_field(self, number: int, where: str, link: Link) -> StaticShape:
        m = self._m
        if link.motion is Motion.MOVING:
            raise self._notes.refuse(where, "a height field on a body that moves, expected one that is static")
        rows, columns, first = int(m.hfield_nrow[number]), int(m.hfield_ncol[number]), int(m.hfield_adr[number])
        x, y, top, _ = m.hfield_size[number]
        heights = np.array(m.hfield_data[first : first + rows * columns], float).reshape(rows, columns) * top
        return HeightField(heights, (2 * x / (columns - 1), 2 * y / (rows - 1)))

    # ---- joints --------------------------------------------------------------------------------------------------

    def _read_joints(self) -> None:
        m = self._m
        for root in np.unique(m.body_weldid):
            first, count = int(m.body_jntadr[root]), int(m.body_jntnum[root])
            if root == 0 or count == 0:
                continue
            child, parent = int(self._link_of[root]), int(self._link_of[m.body_parentid[root]])
            if parent != WORLD and self._model.links[parent].motion is Motion.STATIC:
                parent = WORLD
            joints = list(range(first, first + count))
            kinds = [int(m.jnt_type[joint]) for joint in joints]
            if kinds == [FREE_JOINT]:
                self._refuse_on_free(joints[0])
                continue
            if kinds == [BALL]:
                self._add(self._ball(joints[0]), child, parent, self._data.xanchor[joints[0]], joints[0])
                continue
            if BALL in kinds:
                self._chain(joints, child, parent)
                continue
            axes = [self._axis(joint) for joint in joints]
            if len(axes) == 1:
                joint, turn = _one_axis(axes[0])
                self._add(joint, child, parent, axes[0].anchor, joints[0], turn)
                continue
            together = _six_axis(axes)
            if together is None:
                self._chain(joints, child, parent)
            else:
                joint, turn = together
                self._add(joint, child, parent, axes[-1].anchor, joints[0], turn)

    def _add(self, joint: Any, child: int, parent: int, anchor: Array, number: int, turn: Array | None = None) -> None:
        where, name = self._where("joint", number), self._m.joint(number).name
        added = LinkJoint(joint, child, parent, np.array(anchor), name=name, where=where)
        if turn is not None:
            added.quaternion = turn
        self._model.joints.append(added)

    def _refuse_on_free(self, joint: int) -> None:
        dof = int(self._m.jnt_dofadr[joint])
        if self._m.dof_damping[dof : dof + 6].any() or self._m.dof_frictionloss[dof : dof + 6].any():
            self._notes.leave_out(self._where("joint", joint), "damping and friction of a free joint")

    def _ball(self, joint: int) -> Ball:
        m, where = self._m, self._where("joint", joint)
        dof = int(m.jnt_dofadr[joint])
        if m.jnt_stiffness[joint]:
            raise self._notes.refuse(where, "a ball joint with a spring, which lapjoint does not have")
        if m.dof_damping[dof]:
            self._notes.leave_out(where, "damping of a ball joint")
        swing = float(m.jnt_range[joint, 1]) if m.jnt_limited[joint] else None
        if swing is not None:
            self._notes.approximate(where, "the limit of a ball joint is that of its axis, not of its whole turn")
        return Ball(swing=swing, friction=float(m.dof_frictionloss[dof]))

    def _axis(self, joint: int) -> _Axis:
        m, data = self._m, self._data
        dof, place = int(m.jnt_dofadr[joint]), int(m.jnt_qposadr[joint])
        zero = float(m.qpos0[place])
        limits = FREE
        if m.jnt_limited[joint]:
            low, high = m.jnt_range[joint]
            limits = (float(low) - zero, float(high) - zero)
        stiffness, damping = float(m.jnt_stiffness[joint]), float(m.dof_damping[dof])
        spring, drive = None, self._drives.get(joint)
        if drive is not None:
            drive = Drive(drive.position - zero, drive.velocity, drive.stiffness, drive.damping, drive.max_force)
        if stiffness:
            spring = Spring(stiffness, damping, float(m.qpos_spring[place]) - zero)
        elif damping and drive is None:
            drive = Drive(damping=damping)
        elif damping and drive is not None:
            if np.isfinite(drive.max_force):
                self._notes.approximate(self._where("joint", joint), "its damping counts towards its actuator's limit")
            drive = Drive(
                drive.position,
                drive.velocity * drive.damping / (drive.damping + damping),
                drive.stiffness,
                drive.damping + damping,
                drive.max_force,
            )
        return _Axis(
            joint,
            m.jnt_type[joint] == HINGE,
            data.xanchor[joint].copy(),
            data.xaxis[joint].copy(),
            limits,
            spring,
            drive,
            float(m.dof_frictionloss[dof]),
        )

    def _chain(self, joints: list[int], child: int, parent: int) -> None:
        """Joints that cannot be one, with a small link between each two."""
        made, inner = self._model, parent
        body = made.links[child]
        assert body.mass is not None
        for number, joint in enumerate(joints):
            last = number == len(joints) - 1
            outer = child
            if not last:
                outer = len(made.links)
                mass, anchor = SMALL * body.mass.mass, np.array(self._data.xanchor[joint])
                inertia = SMALL * np.trace(body.mass.inertia) / 3 * np.eye(3)
                link = Link(f"{body.name or 'body'}-{number + 1}", anchor, body.quaternion.copy())
                link.mass, link.where = Mass(mass, np.zeros(3), inertia), body.where
                made.links.append(link)
            if self._m.jnt_type[joint] == BALL:
                self._add(self._ball(joint), outer, inner, self._data.xanchor[joint], joint)
            else:
                axis = self._axis(joint)
                one, turn = _one_axis(axis)
                self._add(one, outer, inner, axis.anchor, joint, turn)
            inner = outer
        self._notes.approximate(
            body.where, f"its {len(joints)} joints do not meet: small links of {SMALL:g} of its mass are between them"
        )

    # ---- actuators -----------------------------------------------------------------------------------------------

    def _read_actuators(self) -> None:
        m, notes, mj = self._m, self._notes, self._mujoco
        for number in range(m.nu):
            where, joint = self._where("actuator", number), int(m.actuator_trnid[number, 0])
            if int(m.actuator_trntype[number]) not in (mj.mjtTrn.mjTRN_JOINT, mj.mjtTrn.mjTRN_JOINTINPARENT):
                notes.leave_out(where, "an actuator that acts on no joint; its force is zero at the start")
                continue
            if m.jnt_type[joint] not in (HINGE, SLIDE) or m.actuator_dyntype[number] != mj.mjtDyn.mjDYN_NONE:
                notes.leave_out(where, "an actuator of a kind that lapjoint has no drive for")
                continue
            gear, control = float(m.actuator_gear[number, 0]), 0.0
            if m.actuator_ctrllimited[number]:
                control = float(np.clip(0.0, *m.actuator_ctrlrange[number]))
            gain, (_, of_length, of_speed) = float(m.actuator_gainprm[number, 0]), m.actuator_biasprm[number, :3]
            stiffness, damping = -float(of_length) * gear**2, -float(of_speed) * gear**2
            if m.actuator_biastype[number] != mj.mjtBias.mjBIAS_AFFINE or (stiffness <= 0 and damping <= 0):
                notes.leave_out(where, "a force that is zero until something controls it: simulation.add_forces")
                continue
            if stiffness < 0 or damping < 0:
                raise notes.refuse(where, "a drive with a negative gain, expected zero or more")
            limit = np.inf
            if m.actuator_forcelimited[number]:
                limit = float(np.abs(m.actuator_forcerange[number]).min()) * abs(gear)
                if m.actuator_forcerange[number].sum():
                    notes.approximate(where, "the smaller end of its force range is its largest force both ways")
            if joint in self._drives:
                raise notes.refuse(where, "a second drive of one joint, expected one")
            push = gain * control * gear
            self._drives[joint] = Drive(
                position=push / stiffness if stiffness else 0.0,
                velocity=0.0 if stiffness else push / damping,
                stiffness=stiffness,
                damping=damping,
                max_force=limit,
            )
            notes.count("drives")

    # ---- equalities, filters, start --------------------------------------------------------------------------------

    def _read_equalities(self) -> None:
        m, data, notes = self._m, self._data, self._notes
        for number in range(m.neq):
            where, kind = self._where("equality", number), int(m.eq_type[number])
            if not m.eq_active0[number]:
                notes.leave_out(where, "an equality that is not active")
                continue
            one, two, values = int(m.eq_obj1id[number]), int(m.eq_obj2id[number]), m.eq_data[number]
            if kind in (CONNECT, WELD):
                if m.eq_objtype[number] == self._mujoco.mjtObj.mjOBJ_SITE:
                    one, two = int(m.site_bodyid[one]), int(m.site_bodyid[two])
                    anchor = data.site_xpos[int(m.eq_obj1id[number])]
                elif kind == CONNECT:
                    anchor = data.xpos[one] + rotation.rotate(data.xquat[one], values[:3])
                else:
                    anchor = data.xpos[two] + rotation.rotate(data.xquat[two], values[:3])
                a, b = self._ends(one, two, where)
                joint = Ball() if kind == CONNECT else Fixed()
                self._model.joints.append(LinkJoint(joint, a, b, np.array(anchor), where=where))
            elif kind == JOINT:
                if values[2:5].any():
                    raise notes.refuse(where, "a relation of two joints that is not linear, expected polycoef a b")
                self._couple(one, two, float(values[1]), where)
            else:
                raise notes.refuse(where, "an equality of tendons or flexes, which lapjoint does not have")

    def _ends(self, one: int, two: int, where: str) -> tuple[int, int]:
        """The links of two bodies, first one that moves."""
        links = [int(self._link_of[one]), int(self._link_of[two])]
        moving = [self._model.links[link].motion is Motion.MOVING for link in links]
        if not any(moving):
            raise self._notes.refuse(where, "joins nothing that moves")
        if links[0] == links[1]:
            raise self._notes.refuse(where, "joins a body to itself")
        if not moving[0]:
            links.reverse()
        first, second = links
        return first, second if all(moving) else WORLD

    def _couple(self, one: int, two: int, ratio: float, where: str) -> None:
        """The turning of one joint is `ratio` times that of another, or it stands still where there is no other."""
        m, data, notes = self._m, self._data, self._notes
        if two < 0 or ratio == 0:
            raise notes.refuse(where, "holds a joint where it is, expected a relation of two joints, or limits")
        if m.jnt_type[one] != HINGE or m.jnt_type[two] != HINGE:
            raise notes.refuse(where, "couples joints that slide; expected two hinges")
        self._coupled.add((one, two))
        ends = [int(self._link_of[m.jnt_bodyid[joint]]) for joint in (one, two)]
        parents = [int(self._link_of[m.body_parentid[m.body_weldid[m.jnt_bodyid[joint]]]]) for joint in (one, two)]
        if any(parent != WORLD and self._model.links[parent].motion is Motion.MOVING for parent in parents):
            notes.approximate(where, "gears do not turn with what their joints are on")
        gear = Gear(ratio, _direction(data.xaxis[one]), _direction(data.xaxis[two]))
        self._model.joints.append(
            LinkJoint(gear, ends[0], ends[1], data.xanchor[one].copy(), where=where, collide=True)
        )

    def _read_mimics(self) -> None:
        names = {self._m.joint(number).name: number for number in range(self._m.njnt)}
        for mimic in self._mimics:
            where = f"joint {mimic.joint!r} (line {mimic.line})"
            for name in (mimic.joint, mimic.other):
                if name not in names:
                    raise self._notes.refuse(where, f"mimic speaks of the joint {name!r}, which does not exist")
            if mimic.offset:
                raise self._notes.refuse(where, f"mimic has an offset of {mimic.offset:g}, expected none")
            if (names[mimic.joint], names[mimic.other]) not in self._coupled:  # as MuJoCo 4 has it
                self._couple(names[mimic.joint], names[mimic.other], mimic.multiplier, where)

    def _read_filters(self) -> None:
        """Labels are geoms until here; they become signatures of contype and conaffinity."""
        m, made = self._m, self._model
        bits = np.stack([m.geom_contype, m.geom_conaffinity], axis=1)
        signatures, label = np.unique(bits, axis=0, return_inverse=True)
        label = label.reshape(-1)
        contype, conaffinity = signatures[:, 0], signatures[:, 1]
        touches = (contype[:, None] & conaffinity[None, :]) != 0
        made.may_touch = touches | touches.T
        for link in made.links:
            for collider in link.colliders:
                collider.label = int(label[collider.label])
        for number in range(m.nexclude):
            code = int(m.exclude_signature[number])
            self._exclude(code >> 16, code & 0xFFFF)
        # MuJoCo keeps parents and children apart, whatever is between them; but not from the world.
        for root in np.unique(m.body_weldid):
            parent = m.body_weldid[m.body_parentid[root]]
            if root and parent:
                self._exclude(int(root), int(parent))

    def _exclude(self, one: int, two: int) -> None:
        self._model.ignored.append((int(self._link_of[one]), int(self._link_of[two])))

    def _read_start(self, keyframe: str | int | None) -> None:
        m, data, made = self._m, self._data, self._model
        if keyframe is None:
            if m.nkey:
                names = ", ".join(repr(m.key(k).name or k) for k in range(m.nkey))
                self._notes.leave_out(f"{m.nkey} keyframes", f"it starts as its bodies are written; there are {names}")
            return
        number = self._keyframe(keyframe)
        data.qpos[:], data.qvel[:] = m.key_qpos[number], m.key_qvel[number]
        self._mujoco.mj_kinematics(m, data)
        self._mujoco.mj_comPos(m, data)
        self._mujoco.mj_comVel(m, data)
        velocity = np.zeros(6)
        for root in np.unique(m.body_weldid):
            link = made.links[self._link_of[root]]
            if link.motion is not Motion.MOVING or link.mass is None:
                continue
            link.start = (data.xpos[root].copy(), data.xquat[root].copy())
            self._mujoco.mj_objectVelocity(m, data, self._mujoco.mjtObj.mjOBJ_XBODY, int(root), velocity, 0)
            link.angular_velocity = velocity[:3].copy()
            arm = rotation.rotate(data.xquat[root], link.mass.centre)
            link.linear_velocity = velocity[3:] + np.cross(velocity[:3], arm)
        self._notes.count("keyframes")

    def _keyframe(self, keyframe: str | int) -> int:
        names = [self._m.key(number).name for number in range(self._m.nkey)]
        if keyframe in names:
            return names.index(str(keyframe))
        if str(keyframe).isdigit() and int(keyframe) < len(names):
            return int(keyframe)
        known = ", ".join(name or str(number) for number, name in enumerate(names)) or "none"
        raise self._notes.refuse("", f"has no keyframe {keyframe!r}; it has {known}")


def _one_axis(axis: _Axis) -> tuple[Hinge | Slider | SixAxis, Array]:
    """A hinge or a slider; with a spring, a six-axis joint with one free axis."""
    turn = rotation.between([1.0, 0.0, 0.0], axis.axis)
    if axis.spring is None:
        kind = Hinge if axis.is_hinge else Slider
        return kind(_direction(axis.axis), axis.limits, drive=axis.drive, friction=axis.friction), turn
    return _six_axis_of({3 if axis.is_hinge else 0: axis}), turn


def _direction(axis: Array) -> tuple[float, float, float]:
    x, y, z = (float(one) for one in axis)
    return x, y, z


def _six_axis_of(axes: dict[int, _Axis]) -> SixAxis:
    limits = [axes[k].limits if k in axes else LOCKED for k in range(6)]
    return SixAxis(
        linear=tuple(limits[:3]),
        angular=tuple(limits[3:]),
        springs={k: one.spring for k, one in axes.items() if one.spring is not None},
        drives={k: one.drive for k, one in axes.items() if one.drive is not None},
        frictions={k: one.friction for k, one in axes.items() if one.friction},
    )


def _six_axis(axes: list[_Axis]) -> tuple[SixAxis, Array] | None:
    """One joint in place of several, and its frame, where slides come before hinges, hinges have one anchor, and all
    axes are along three directions at right angles. A six-axis joint turns about z, then y, then x: the first hinge of
    the file is z."""
    slides = [one for one in axes if not one.is_hinge]
    hinges = [one for one in axes if one.is_hinge]
    if axes != slides + hinges or len(slides) > 3 or len(hinges) > 3:
        return None
    if any(np.abs(one.anchor - hinges[0].anchor).max() > TOGETHER for one in hinges):
        return None
    frame: dict[int, Array] = {}  # directions by axis: x 0, y 1, z 2
    taken: dict[int, _Axis] = {}
    for place, one in zip((2, 1, 0), hinges, strict=False):
        frame[place], taken[3 + place] = one.axis, one
    for one in slides:
        along = [k for k, axis in frame.items() if abs(abs(axis @ one.axis) - 1) < TOGETHER]
        place = along[0] if along else next((k for k in (0, 1, 2) if k not in frame), -1)
        if place < 0 or place in taken:
            return None
        if along and frame[place] @ one.axis < 0:
            one = _turned(one)
        frame.setdefault(place, one.axis)
        taken[place] = one
    directions = list(frame.items())
    for i, (_, a) in enumerate(directions):
        if any(abs(a @ b) > TOGETHER for _, b in directions[i + 1 :]):
            return None
    if len(frame) == 2:
        (missing,) = {0, 1, 2} - frame.keys()
        frame[missing] = np.cross(frame[(missing + 1) % 3], frame[(missing + 2) % 3])
    elif len(frame) == 1:
        turn = rotation.to_matrix(rotation.between([1.0, 0.0, 0.0], next(iter(frame.values()))))
        (only,) = frame
        frame = {(only + k) % 3: turn[:, k] for k in range(3)}
    x, y, z = (frame[k] for k in range(3))
    if np.cross(x, y) @ z < 0:  # left-handed: x the other way round
        x = -x
        for place in (0, 3):
            if place in taken:
                taken[place] = _turned(taken[place])
    return _six_axis_of(taken), rotation.from_matrix(np.stack([x, y, z], axis=1))


def _turned(one: _Axis) -> _Axis:
    """The same along the opposite axis."""
    low, high = one.limits
    spring, drive = one.spring, one.drive
    if spring is not None:
        spring = Spring(spring.stiffness, spring.damping, -spring.rest)
    if drive is not None:
        drive = Drive(-drive.position, -drive.velocity, drive.stiffness, drive.damping, drive.max_force)
    return _Axis(one.joint, one.is_hinge, one.anchor, -one.axis, (-high, -low), spring, drive, one.friction)
