"""MJCF and URDF files, by MuJoCo's own reader (MjSpec): includes, defaults, attachments and replicas are resolved
there, and what is read here is the model that it compiles. Needs the extra `lapjoint[mujoco]`.

Bodies without joints are one with their parents, as in MuJoCo. Joints stand at zero where the file has the bodies.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import FREE, Ball, Drive, Fixed, Gear, Spring
from .build import joined_masses
from .inside import check_xml_files, line_of_nan
from .mjcf_axes import Axis, direction, one_axis, six_axis
from .mjcf_drives import read_drives
from .mjcf_shapes import Shapes
from .model import WORLD, Array, Collider, Link, LinkJoint, Mass, Model, Motion
from .notes import Notes
from .urdf import Mimic, find_mimics, note_what_is_dropped

FREE_JOINT, BALL, SLIDE, HINGE = range(4)
CONNECT, WELD, JOINT = range(3)
SMALL = 1e-3
"""Share of a body's mass and inertia that a link between two of its joints has, where these cannot be one joint."""
MEMORY = 1 << 28
"""Bytes that MuJoCo may use to compile a model. What it takes by default grows with the square of the number of bodies:
more than there is, of ten thousand."""


def read_mjcf(path: Path, notes: Notes, keyframe: str | int | None = None) -> Model:
    """The model of an MJCF or URDF file. `keyframe` is where it starts, by name or number."""
    try:
        import mujoco  # type: ignore[import-untyped]
    except ImportError:
        raise LapjointError(f"{path}: reading it needs mujoco: pip install 'lapjoint[mujoco]'") from None
    root = check_xml_files(path)
    # MuJoCo would write its warnings into a file where the program runs; some are Python's.
    said: list[str] = []
    heard = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: said.append(str(text)))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            spec = mujoco.MjSpec.from_file(str(path))
            spec.memory = MEMORY
            compiled = spec.compile()
    except Exception as error:  # whatever MuJoCo has against it
        text = " ".join(str(error).split())
        raise LapjointError(f"{path}: {text or type(error).__name__}") from None
    finally:
        mujoco.set_mju_user_warning(heard)
    texts = dict.fromkeys(" ".join(one.split()) for one in (*(str(one.message) for one in caught), *said))
    for text in texts:
        if any(other != text and other.startswith(text) for other in texts):
            continue  # the beginning of another
        if "NaN" in text:
            raise LapjointError(f"{path}: {line_of_nan(root)}has a NaN, expected numbers")
        notes.leave_out("MuJoCo", text)
    note_what_is_dropped(root, notes)
    return _Reader(mujoco, spec, compiled, notes, find_mimics(root, notes)).read(keyframe)


class _Reader:
    def __init__(self, mujoco: Any, spec: Any, model: Any, notes: Notes, mimics: list[Mimic]) -> None:
        self._mujoco, self._spec, self._m, self._notes, self._mimics = mujoco, spec, model, notes, mimics
        data = mujoco.MjData(model)
        data.qpos[:] = model.qpos0
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        self._data = data
        self._off = {
            name.removeprefix("mjDSBL_")
            for name, bit in mujoco.mjtDisableBit.__members__.items()
            if model.opt.disableflags & int(bit)
        }
        self._shapes = Shapes(model, notes)
        self._drives: dict[int, Drive] = {}
        self._coupled: set[tuple[int, int]] = set()
        self._link_of = np.full(model.nbody, WORLD)
        self._model = Model(model.names[: model.names.find(b"\0")].decode() or notes.path.stem)

    def read(self, keyframe: str | int | None) -> Model:
        m, made = self._m, self._model
        start = None if keyframe is None else self._keyframe(keyframe)
        self._disable()
        made.gravity, made.timestep = np.array(m.opt.gravity), float(m.opt.timestep)
        self._refuse_what_is_wrong()
        if "ACTUATION" not in self._off:
            self._drives = read_drives(self._mujoco, m, self._notes, self._where, start)
        self._read_links()
        self._read_joints()
        self._read_equalities()
        self._read_mimics()
        self._read_filters()
        self._read_start(start)
        if not any(link.motion is Motion.MOVING for link in made.links):
            raise self._notes.refuse("", "has no body that moves, expected at least one with a joint")
        return made

    def _where(self, kind: str, number: int) -> str:
        """How messages call an element: its kind, name, and line."""
        name = getattr(self._m, kind)(number).name
        element = getattr(self._spec, kind)(name) if name else None
        line = f" ({element.info})" if element is not None and element.info else ""
        return f"{kind} {name!r}{line}" if name else f"{kind} {number}"

    # ---- what counts -----------------------------------------------------------------------------------------------

    def _disable(self) -> None:
        """What the flags of the file switch off is not there."""
        m = self._m
        if "CONSTRAINT" in self._off:
            self._off |= {"EQUALITY", "FRICTIONLOSS", "LIMIT", "CONTACT"}
        for flag, tables in (
            ("GRAVITY", (m.opt.gravity,)),
            ("EQUALITY", (m.eq_active0,)),
            ("FRICTIONLOSS", (m.dof_frictionloss, m.tendon_frictionloss)),
            ("LIMIT", (m.jnt_limited, m.tendon_limited)),
            ("SPRING", (m.jnt_stiffness, m.tendon_stiffness)),
            ("DAMPER", (m.dof_damping, m.tendon_damping)),
            ("CONTACT", (m.geom_contype, m.geom_conaffinity)),
        ):
            if flag in self._off:
                for table in tables:
                    table[:] = 0

    def _refuse_what_is_wrong(self) -> None:
        """Whatever would move otherwise without it."""
        m, notes = self._m, self._notes
        for count, what in (
            (m.nflex, "flexible bodies (flex)"),
            (m.nplugin, "plug-ins"),
        ):
            if count:
                raise notes.refuse("", f"has {count} {what}, which lapjoint does not have")
        for kind, rows, what in (
            ("body", ~np.isfinite(self._data.xipos).all(axis=1), "its place is not finite, expected numbers"),
            ("geom", ~np.isfinite(self._data.geom_xpos).all(axis=1), "its place is not finite, expected numbers"),
            ("body", m.body_gravcomp != 0, "gravity is compensated (gravcomp), which lapjoint does not have"),
            ("joint", _any(m, "jnt_stiffnesspoly"), "a spring that is not linear, which lapjoint does not have"),
            ("joint", _any(m, "dof_dampingpoly")[m.jnt_dofadr], "damping that is not linear, expected one number"),
        ):
            for number in np.flatnonzero(rows)[:1]:
                raise notes.refuse(self._where(kind, int(number)), what)
        if m.opt.wind.any() and (m.opt.density or m.opt.viscosity):
            raise notes.refuse("option", "has a medium with wind; expected none, or add a force field to the scene")
        if m.opt.density or m.opt.viscosity:
            notes.leave_out("option", "density and viscosity of a medium; add a force field to the scene")
        for number in range(m.ntendon):
            acting = (m.tendon_stiffness, m.tendon_limited, m.tendon_damping, m.tendon_frictionloss)
            moved = (m.actuator_trntype == self._mujoco.mjtTrn.mjTRN_TENDON) & (m.actuator_trnid[:, 0] == number)
            if any(table[number] for table in acting) or moved.any():
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
        bodies_of, masses, first = _by_root(m.body_weldid), self._masses(), len(made.links)
        for number, (root, bodies) in enumerate(bodies_of):
            motion = Motion.KINEMATIC if m.body_mocapid[root] >= 0 else Motion.MOVING
            motion = motion if root else Motion.STATIC
            name = m.body(root).name if root else "world"
            link = Link(name, data.xpos[root].copy(), data.xquat[root].copy(), motion)
            link.where = self._where("body", root) if root else "worldbody"
            if root and len(bodies) > 1:
                self._notes.count("bodies that are one with their parents", len(bodies) - 1)
            if motion is Motion.MOVING:
                link.mass = joined_masses([masses[body] for body in bodies.tolist() if m.body_mass[body] > 0])
                self._add_armature(root, link.mass)
            self._link_of[bodies] = first + number
            made.links.append(link)
        self._read_colliders()

    def _masses(self) -> list[Mass]:
        """Of all bodies, in the frames of those that they are welded to."""
        m, data = self._m, self._data
        back = rotation.to_matrix(rotation.conjugate(data.xquat[m.body_weldid]))
        axes = back @ data.ximat.reshape(-1, 3, 3)
        centres = np.einsum("nij,nj->ni", back, data.xipos - data.xpos[m.body_weldid])
        inertias = (axes * m.body_inertia[:, None, :]) @ axes.transpose(0, 2, 1)
        return [Mass(*row) for row in zip(m.body_mass.tolist(), centres, inertias, strict=True)]

    def _add_armature(self, root: int, mass: Mass) -> None:
        m, first = self._m, int(self._m.body_jntadr[root])
        for joint in range(first, first + int(m.body_jntnum[root])):
            armature, kind = float(m.dof_armature[m.jnt_dofadr[joint]]), int(m.jnt_type[joint])
            if not armature:
                continue
            if kind == HINGE:
                axis = rotation.rotate(rotation.conjugate(self._data.xquat[root]), self._data.xaxis[joint])
                mass.inertia = mass.inertia + armature * np.outer(axis, axis)
            elif kind == BALL:
                mass.inertia = mass.inertia + armature * np.eye(3)
            self._notes.approximate(
                self._where("joint", joint), "armature is inertia of the body that turns (none, if it slides)"
            )

    def _read_colliders(self) -> None:
        """Of all geoms but those that touch nothing. Their labels are the geoms' numbers."""
        m, data, links = self._m, self._data, self._model.links
        pairs = np.isin(np.arange(m.ngeom), self._pairs())
        wanted = (m.geom_contype != 0) | (m.geom_conaffinity != 0) | pairs
        self._notes.count("geoms that are only seen", int(m.ngeom - wanted.sum()))
        roots = m.body_weldid[m.geom_bodyid]
        back = rotation.conjugate(data.xquat[roots])
        turns = rotation.multiply(back, rotation.from_matrix(data.geom_xmat.reshape(-1, 3, 3)))
        places = rotation.rotate(back, data.geom_xpos - data.xpos[roots])
        for geom in np.flatnonzero(wanted).tolist():
            link, where = links[self._link_of[m.geom_bodyid[geom]]], self._where("geom", geom)
            shape, offset = self._shapes.shape(geom, where, link.motion is Motion.MOVING)
            place = places[geom] + rotation.rotate(turns[geom], offset) if offset.any() else places[geom]
            material = self._shapes.material(geom, where)
            link.colliders.append(Collider(shape, place, turns[geom], material, geom, where=where))

    def _pairs(self) -> NDArray[np.int32]:
        """(n, 2) geoms that touch whatever their types."""
        if "CONTACT" in self._off:
            return np.empty((0, 2), np.int32)
        return np.stack([self._m.pair_geom1, self._m.pair_geom2], axis=1)

    # ---- joints --------------------------------------------------------------------------------------------------

    def _read_joints(self) -> None:
        m, along = self._m, rotation.between([1.0, 0.0, 0.0], self._data.xaxis)
        for root in np.unique(m.body_weldid).tolist():
            first, count = int(m.body_jntadr[root]), int(m.body_jntnum[root])
            if root == 0 or count == 0:
                continue
            child, parent = int(self._link_of[root]), int(self._link_of[m.body_parentid[root]])
            if parent != WORLD and self._model.links[parent].motion is Motion.STATIC:
                parent = WORLD
            joints = list(range(first, first + count))
            kinds = [int(m.jnt_type[joint]) for joint in joints]
            if kinds == [FREE_JOINT]:
                self._leave_out_of_free(joints[0])
                continue
            if kinds == [BALL]:
                self._add(self._ball(joints[0]), child, parent, self._data.xanchor[joints[0]], joints[0])
                continue
            if BALL in kinds:
                self._chain(joints, child, parent)
                continue
            axes = [self._axis(joint) for joint in joints]
            if len(axes) == 1:
                self._add(one_axis(axes[0]), child, parent, axes[0].anchor, joints[0], along[joints[0]])
                continue
            together = six_axis(axes)
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

    def _leave_out_of_free(self, joint: int) -> None:
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

    def _axis(self, joint: int) -> Axis:
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
            drive = replace(drive, position=drive.position - zero)
        if stiffness:
            spring = Spring(stiffness, damping, float(m.qpos_spring[place]) - zero)
        elif damping and drive is None:
            drive = Drive(damping=damping)
        elif damping and drive is not None:
            if np.isfinite(drive.max_force):
                self._notes.approximate(self._where("joint", joint), "its damping counts towards its actuator's limit")
            both = drive.damping + damping
            drive = replace(drive, velocity=drive.velocity * drive.damping / both, damping=both)
        return Axis(
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
                along = rotation.between([1.0, 0.0, 0.0], axis.axis)
                self._add(one_axis(axis), outer, inner, axis.anchor, joint, along)
            inner = outer
        self._notes.approximate(
            body.where, f"its {len(joints)} joints do not meet: small links of {SMALL:g} of its mass are between them"
        )

    # ---- equalities, filters, start --------------------------------------------------------------------------------

    def _read_equalities(self) -> None:
        m, notes = self._m, self._notes
        for number in range(m.neq):
            where, kind, values = self._where("equality", number), int(m.eq_type[number]), m.eq_data[number]
            if not m.eq_active0[number]:
                notes.leave_out(where, "an equality that is not active")
            elif kind in (CONNECT, WELD):
                self._hold(number, where)
            elif kind == JOINT:
                if values[0] or values[2:5].any():
                    raise notes.refuse(where, "a relation of two joints that is not a ratio, expected polycoef 0 b")
                self._couple(int(m.eq_obj1id[number]), int(m.eq_obj2id[number]), float(values[1]), where)
            else:
                raise notes.refuse(where, "an equality of tendons or flexes, which lapjoint does not have")

    def _hold(self, number: int, where: str) -> None:
        """A weld or a connection: each end has its own place and turn, and these need not meet at the start."""
        m, data, links, notes = self._m, self._data, self._model.links, self._notes
        kind, values, ends = int(m.eq_type[number]), m.eq_data[number], []
        of_sites = m.eq_objtype[number] == self._mujoco.mjtObj.mjOBJ_SITE
        for side, one in enumerate((int(m.eq_obj1id[number]), int(m.eq_obj2id[number]))):
            body = int(m.site_bodyid[one]) if of_sites else one
            turn = data.xquat[body]
            if of_sites:
                place, turn = data.site_xpos[one], rotation.multiply(turn, m.site_quat[one])
            else:
                # A weld has the point of its second body first, as MuJoCo has it.
                own = values[3 * side : 3 * side + 3] if kind == CONNECT else values[3 - 3 * side : 6 - 3 * side]
                place = data.xpos[body] + rotation.rotate(turn, own)
                turn = rotation.multiply(turn, values[6:10]) if kind == WELD and side == 0 else turn
            ends.append((int(self._link_of[body]), np.array(place), np.array(turn)))
        if ends[0][0] == ends[1][0]:
            raise notes.refuse(where, "joins a body to itself")
        if links[ends[0][0]].motion is not Motion.MOVING:
            ends.reverse()
        (a, anchor, turn), (b, anchor_b, turn_b) = ends
        if links[a].motion is not Motion.MOVING:
            raise notes.refuse(where, "joins nothing that moves")
        if links[b].motion is Motion.KINEMATIC:
            notes.approximate(where, "holds where the mocap body is at the start, and does not follow it")
        b = b if links[b].motion is Motion.MOVING else WORLD
        joint = Ball() if kind == CONNECT else Fixed()
        if kind == CONNECT:
            turn = turn_b = rotation.IDENTITY
        # Unlike a body and its child, what an equality holds together touches.
        self._model.joints.append(LinkJoint(joint, a, b, anchor, turn, anchor_b, turn_b, collide=True, where=where))

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
        gear = Gear(ratio, direction(data.xaxis[one]), direction(data.xaxis[two]))
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
        """Labels are geoms until here; they become signatures of contype and conaffinity. Geoms of pairs have their
        own."""
        m, made, pairs = self._m, self._model, self._pairs()
        alone = np.zeros(m.ngeom, np.int64)
        alone[pairs] = 1 + pairs
        rows = np.stack([m.geom_contype, m.geom_conaffinity, alone], axis=1)
        signatures, label = np.unique(rows, axis=0, return_inverse=True)
        label = label.reshape(-1)
        contype, conaffinity, _ = signatures.T
        touches = (contype[:, None] & conaffinity[None, :]) != 0
        one, other = label[pairs].T
        touches[one, other] = True
        made.may_touch = touches | touches.T
        for link in made.links:
            for collider in link.colliders:
                collider.label = int(label[collider.label])
        for number in range(m.nexclude):
            code = int(m.exclude_signature[number])
            self._exclude(code >> 16, code & 0xFFFF)
        if "FILTERPARENT" not in self._off:
            # MuJoCo keeps parents and children apart, whatever is between them; but not from the world.
            for root in np.unique(m.body_weldid).tolist():
                parent = m.body_weldid[m.body_parentid[root]]
                if root and parent:
                    self._exclude(root, int(parent))
        apart = {tuple(sorted(pair)) for pair in made.ignored}
        for number, pair in enumerate(self._link_of[m.geom_bodyid[pairs]]):
            if tuple(sorted(pair.tolist())) in apart:
                raise self._notes.refuse(self._where("pair", number), "is a pair of two bodies that are kept apart")

    def _exclude(self, one: int, two: int) -> None:
        self._model.ignored.append((int(self._link_of[one]), int(self._link_of[two])))

    def _read_start(self, keyframe: int | None) -> None:
        m, data, made = self._m, self._data, self._model
        if keyframe is None:
            if m.nkey:
                names = ", ".join(repr(m.key(k).name or k) for k in range(m.nkey))
                self._notes.leave_out(f"{m.nkey} keyframes", f"it starts as its bodies are written; there are {names}")
            return
        data.qpos[:], data.qvel[:] = m.key_qpos[keyframe], m.key_qvel[keyframe]
        data.mocap_pos[:] = m.key_mpos[keyframe].reshape(-1, 3)
        data.mocap_quat[:] = m.key_mquat[keyframe].reshape(-1, 4)
        self._mujoco.mj_kinematics(m, data)
        self._mujoco.mj_comPos(m, data)
        self._mujoco.mj_comVel(m, data)
        velocity = np.zeros(6)
        for root in np.unique(m.body_weldid).tolist():
            link = made.links[self._link_of[root]]
            place = data.xpos[root].copy(), data.xquat[root].copy()
            if link.motion is Motion.KINEMATIC:
                link.position, link.quaternion = place
            if link.motion is not Motion.MOVING or link.mass is None:
                continue
            link.start = place
            self._mujoco.mj_objectVelocity(m, data, self._mujoco.mjtObj.mjOBJ_XBODY, root, velocity, 0)
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


def _by_root(roots: NDArray[np.int32]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The bodies of each root, which is the first of them."""
    order = np.argsort(roots, kind="stable")
    firsts = np.flatnonzero(np.diff(roots[order], prepend=-1))
    for bodies in np.split(order, firsts[1:]):
        yield int(roots[bodies[0]]), bodies


def _any(model: Any, name: str) -> NDArray[np.bool_]:
    """Rows of a table with anything in them; none where this version of MuJoCo has no such table."""
    table = getattr(model, name, None)
    rows = model.nv if name.startswith("dof") else model.njnt
    if table is None or not rows:
        return np.zeros(rows, bool)
    return np.asarray(np.asarray(table).reshape(rows, -1).any(axis=1), bool)
