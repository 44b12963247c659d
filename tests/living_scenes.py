"""Random scenes that live: joints of all kinds, drives, sensors, fields, kinematic bodies, sleep, and bodies, joints
and workers that come and go while they run. A number makes one, always the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lapjoint import (
    WORLD,
    Attractor,
    Ball,
    Box,
    BoxRegion,
    Breaks,
    Capsule,
    Compound,
    Cone,
    ConstantVelocity,
    ConvexHull,
    Cylinder,
    Distance,
    Drag,
    Drive,
    Fixed,
    Gear,
    Hinge,
    LapjointError,
    Material,
    Motor,
    Oscillation,
    Params,
    Part,
    Plane,
    Rotation,
    Scene,
    Simulation,
    SixAxis,
    Slider,
    Sphere,
    Spring,
    Wind,
    fracture,
)

Change = Callable[[Simulation], object]
"""What a user does between two steps."""
LINK = 0.32
GLUED = 1000
"""From this number on, scenes have something that is glued or bonded too. Others are as they were before there was
glue: tests/data/resume_fields.json says where a field of theirs is missed."""
WEDGE = [(-0.2, -0.2, -0.1), (0.2, -0.2, -0.1), (0.2, 0.2, -0.1), (-0.2, 0.2, -0.1), (0.0, 0.1, 0.2), (0.1, -0.1, 0.2)]


@dataclass
class LivingScene:
    """A scene, how it is simulated, and what is done to it before which steps."""

    scene: Scene
    params: dict[str, Any]
    changes: dict[int, list[tuple[str, Change]]]
    step_count: int

    def start(self, **other: Any) -> Simulation:
        return Simulation(self.scene, Params.from_options(**{"runtime": "inline", **self.params, **other}))


def living_scene(number: int, **wanted: Any) -> LivingScene:
    """The scene of this number; `wanted` are parameters in place of random ones."""
    r = random.Random(number)
    plain = r.random() < 0.08  # for solvers of the paper, which have less
    scene = Scene(f"living-{number}", timestep=r.choice([0.002, 0.005, 1 / 120, 1 / 60]))
    scene.add_static(Plane())
    if r.random() < 0.4:
        scene.add_static(Box((4, 0.2, 1)), (0, 3, 0.5))
    kinematic = _add_kinematic(scene, r) if r.random() < 0.6 and not plain else None
    _add_loose(scene, r, plain)
    _add_chain(scene, r, plain)
    if r.random() < 0.3 and not plain:
        _add_gears(scene, r)
    _add_sensors_and_fields(scene, r)
    is_bonded = number >= GLUED and not plain
    if is_bonded:
        _add_glued(scene, random.Random(-number))
    params = _params(scene, r, plain) | wanted
    if is_bonded and params.get("joints") == "swept":
        del params["joints"]
    step_count = r.randint(60, 100)
    changes: dict[int, list[tuple[str, Change]]] = {}
    step = 0
    while (step := step + r.randint(1, 25)) < step_count - 10:
        name = r.choice(list(CHANGES))
        changes.setdefault(step, []).append((name, _change(name, r.randrange(1 << 30), kinematic)))
    return LivingScene(scene, params, changes, step_count)


# ---- what is there from the start ----------------------------------------------------------------------------------


def _add_kinematic(scene: Scene, r: random.Random) -> int:
    return scene.add_kinematic(Box((0.5, 2, 0.6)), (-2.2, 0, 0.35), motion=_motion(r))


def _motion(r: random.Random) -> Any:
    return r.choice(
        [
            None,
            ConstantVelocity((r.uniform(0.1, 1.0), 0, 0)),
            Oscillation((r.uniform(0.1, 0.4), 0, 0), frequency=2.0),
            Rotation((0, 0, 1), rate=r.uniform(-2, 2)),
        ]
    )


def _shapes(r: random.Random) -> list[Any]:
    legs = [Part(Box((0.1, 0.3, 0.1)), (x, 0, -0.1)) for x in (-0.15, 0.15)]
    table = Compound([*legs, Part(Box((0.4, 0.3, 0.1)))])
    return r.sample(
        [Sphere(0.2), Box((0.4, 0.3, 0.3)), Capsule(0.12, 0.3), Cylinder(0.2, 0.4), Cone(0.2, 0.4), table]
        + [ConvexHull(WEDGE)],
        r.randint(1, 4),
    )


def _reports(r: random.Random, plain: bool) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if plain:
        return options
    if r.random() < 0.5:
        options["touch_events"] = True
    if r.random() < 0.3:
        options["hit_impulse"] = 0.05
    if r.random() < 0.3:
        options["hit_speed"] = 0.2
    return options


def _add_loose(scene: Scene, r: random.Random, plain: bool) -> None:
    """A heap, piles, or bodies that fly at each other."""
    shapes, spread = _shapes(r), r.choice([0.42, 0.5, 0.7])
    fastest = r.choice([0.0, 0.0, 2.0, 40.0])
    material = Material(
        friction=r.uniform(0, 1), restitution=r.choice([0, 0, 0.5]), rolling_friction=r.choice([0, 0.01])
    )
    for i in range(r.randint(6, 40)):
        place = [spread * (i % 4) - 1, spread * (i // 4 % 4) - 1, 0.25 + 0.45 * (i // 16)]
        place = [x + r.uniform(-0.03, 0.03) for x in place]
        options = _reports(r, plain)
        if fastest and r.random() < 0.3:
            options["linear_velocity"] = [r.uniform(-fastest, fastest) for _ in range(3)]
        if r.random() < 0.3:
            options["mass"] = 10 ** r.uniform(-1, 2)
        scene.add_body(r.choice(shapes), place, label=r.randint(0, 3), material=material, **options)


def _joints(r: random.Random, plain: bool) -> list[Any]:
    drive = Drive(position=r.uniform(-4, 4), stiffness=50.0, damping=5.0, max_force=r.choice([3.0, 50.0]))
    axis = r.choice([(0, 1, 0), (1, 0, 0)])
    if plain:
        return [Hinge(axis), Hinge(axis, limits=(-0.2, 0.3), motor=Motor(2.0, 5.0)), Slider((1, 0, 0)), Ball(), Fixed()]
    return [
        Hinge(axis, friction=0.1),
        Hinge(axis, drive=drive),
        Hinge(axis, limits=(-0.2, 0.3)),
        Hinge(axis, limits=(-8, 8), motor=Motor(r.uniform(-9, 9), 30.0)),
        Ball(),
        Ball(swing=0.4, twist=(-0.3, 0.3), friction=0.05),
        Slider((1, 0, 0), limits=(-0.05, 0.1), friction=0.2),
        Slider((1, 0, 0), drive=Drive(position=0.1, stiffness=200.0, damping=10.0)),
        Fixed(),
        Fixed(breaks=Breaks(force=r.uniform(2, 60), torque=r.uniform(0.5, 20))),
        SixAxis(angular=((-1, 1), (-0.5, 0.5), (0, 0)), springs={3: Spring(5.0, 0.1)}, frictions={4: 0.02}),
        SixAxis(linear=((-0.1, 0.1), (0, 0), (0, 0)), motors={0: Motor(0.2, 5.0)}),
        Distance(upper=0.4),
        Distance(length=0.3, breaks=Breaks(force=r.uniform(5, 50))),
    ]


def _add_chain(scene: Scene, r: random.Random, plain: bool) -> None:
    """Links one after the other, from the world or loose, now and then closed to a ring or branching."""
    links: list[int] = []
    height = r.choice([0.3, 1.0, 2.0])
    material = Material(restitution=r.choice([0.0, 0.3]))
    for i in range(r.randint(0, 9)):
        mass = 10 ** r.uniform(-0.7, 0.7)
        place = (1.6 + LINK * i, r.choice([0, 0, 0.02]), height)
        links.append(
            scene.add_body(
                Box((0.3, 0.1, 0.1)), place, mass=mass, label=i // 3, material=material, **_reports(r, plain)
            )
        )
        if i == 0 and r.random() < 0.5:
            continue  # it falls as a whole
        joint, to = r.choice(_joints(r, plain)), WORLD if i == 0 else r.choice(links[:-1][-2:])
        more = {"anchor_b": (place[0] - LINK, 0, height)} if isinstance(joint, Distance) else {}
        scene.add_joint(joint, links[-1], to, (place[0] - LINK / 2, 0, height), **more)


def _add_gears(scene: Scene, r: random.Random) -> None:
    wheels = [scene.add_body(Cylinder(0.2, 0.1), (0.45 * i, -2.5, 1), label=i) for i in range(2)]
    turned = Motor(4.0, 20.0) if r.random() < 0.5 else None
    for i, wheel in enumerate(wheels):
        scene.add_joint(Hinge((0, 0, 1), motor=turned if i == 0 else None), wheel, WORLD, (0.45 * i, -2.5, 1))
    scene.add_joint(Gear(-1.5, (0, 0, 1), (0, 0, 1)), wheels[0], wheels[1], (0.2, -2.5, 1))


def _add_glued(scene: Scene, r: random.Random) -> None:
    """A wall of pieces, or a block that becomes one; a ball flies at it, or it falls."""
    shape = Box(r.choice([(1.0, 0.3, 0.8), (0.5, 0.5, 1.0)]))
    pieces = fracture.cut(shape, fracture.seeds_uniform(shape, r.randint(4, 14), r.randrange(100)))
    place = (r.uniform(-0.2, 0.2), 5.0, r.choice([0.4, 0.4, 1.5]) + shape.size[2] / 2 - 0.4)
    options = {
        "strength": 10 ** r.uniform(4, 6.5),
        "load_time": r.choice([0.0, 1 / 60, 1 / 60, 0.05]),
        "young": r.choice([None, None, 1e8]),
        "position": place,
    }
    if r.random() < 0.5:
        fracture.add_pieces(scene, pieces, **options)
    else:
        fracture.add_glued(scene, pieces, impulse=10 ** r.uniform(0, 2.5), **options)
    scene.add_body(Sphere(0.15), (0.0, 4.2, 0.6), mass=40.0, linear_velocity=(0.0, r.choice([0.0, 5.0, 15.0]), 0.0))


def _add_sensors_and_fields(scene: Scene, r: random.Random) -> None:
    if r.random() < 0.4:
        scene.add_sensor(Box((1, 1, 1)), (0, 0, 0.5))
    if r.random() < 0.2:
        scene.add_sensor(Sphere(0.6), (0, 0, 0), body=0)
    if r.random() < 0.3:
        scene.add_field(Drag(linear=r.uniform(0, 1)))
    if r.random() < 0.2:
        scene.add_field(Wind((1.0, 0, 0), drag=0.5, region=BoxRegion((-1, -1, 0), (1, 1, 2))))
    if r.random() < 0.1:
        scene.add_field(Attractor((0, 0, 1), 2.0, core=0.5))


def _params(scene: Scene, r: random.Random, plain: bool) -> dict[str, Any]:
    workers = r.choice([1, 2, 2, 3, 4])
    coupling = "blend" if plain else r.choice(["tight", "tight", "tight", "blend"])
    params: dict[str, Any] = {"workers": workers, "coupling": coupling if workers > 1 or plain else "tight"}
    if params["coupling"] == "blend":
        params["growth_depth"] = r.choice([0, 1, 3])
    elif r.random() < 0.55 and not plain:
        params |= {"sleep": True, "sleep_after": r.choice([0.05, 0.1]), "sleep_speed": 0.2, "sleep_spin": 1.0}
    if plain:
        direct = {"solver": "dantzig", "solver_rows": r.choice([5, 300])}
        params |= r.choice([{"solver": "sequential", "iterations": r.randint(10, 50)}, direct])
    else:
        params |= {"tolerance": 0.001} if r.random() < 0.2 else {}
        params |= {"substeps": r.choice([1 if scene.timestep < 0.01 else 2, 2, 8])} if r.random() < 0.3 else {}
        params |= {"joints": r.choice(["direct", "swept"])} if r.random() < 0.4 else {}
        params |= {"slide_speed": 0.05}
    params |= {"precision": "float64"} if r.random() < 0.25 else {}
    params |= {"keep_forces": True} if r.random() < 0.4 and params.get("solver") is None else {}
    params |= {"quarantine": True} if r.random() < 0.15 else {}
    params |= {"repartition": 0} if workers > 1 and r.random() < 0.3 else {}
    params |= {"load": "bodies"} if workers > 1 and r.random() < 0.15 else {}
    return params


# ---- what is done to it ----------------------------------------------------------------------------------------------


def _change(name: str, seed: int, kinematic: int | None) -> Change:
    """What is not possible as the scene is then is left out: it is so in every run of the same scene."""

    def change(simulation: Simulation) -> None:
        CHANGES[name](simulation, random.Random(seed), kinematic)

    return change


def _is_plain(simulation: Simulation) -> bool:
    return simulation.params.solver != "substeps"


def _alive(simulation: Simulation) -> list[int]:
    return [int(body) for body in np.flatnonzero(simulation.alive)]


def _joint_ids(simulation: Simulation) -> list[int]:
    return [int(joint) for joint in np.flatnonzero(simulation.scene.joint_alive)]


def _add_bodies(simulation: Simulation, r: random.Random, kinematic: int | None) -> None:
    places = [(r.uniform(-1, 1), r.uniform(-1, 1), 1.2 + 0.7 * i) for i in range(r.randint(1, 4))]
    simulation.bodies.add(r.choice([Sphere(0.2), Box((0.3, 0.3, 0.3))]), places, **_reports(r, _is_plain(simulation)))


def _add_chain_of_two(simulation: Simulation, r: random.Random, kinematic: int | None) -> None:
    plain = _is_plain(simulation)
    places = [(-1 + LINK * i, 1.9, 1.5) for i in range(2)]
    links = [simulation.bodies.add_one(Box((0.3, 0.1, 0.1)), place, **_reports(r, plain)) for place in places]
    joint = r.choice([joint for joint in _joints(r, plain) if not isinstance(joint, Distance)])
    simulation.joints.add_one(joint, links[1], links[0], (-1 + LINK / 2, 1.9, 1.5))


def _remove_bodies(simulation: Simulation, r: random.Random, kinematic: int | None) -> None:
    alive = _alive(simulation)
    if len(alive) > 8:
        simulation.bodies.remove(r.sample(alive, r.randint(1, 3)))


def _add_forces(simulation: Simulation, r: random.Random, kinematic: int | None) -> None:
    bodies = r.sample(_alive(simulation), 2)
    simulation.bodies.add_forces(bodies, [[r.uniform(-50, 50) for _ in range(3)] for _ in bodies])


def _freeze(simulation: Simulation, r: random.Random, kinematic: int | None) -> None:
    simulation.bodies.freeze(r.sample(_alive(simulation), 1))


def _release(simulation: Simulation, r: random.Random, kinematic: int | None) -> None:
    simulation.bodies.release(simulation.bodies.frozen_ids[:1])


def _set_states(simulation: Simulation, r: random.Random, kinematic: int | None) -> None:
    bodies = r.sample(_alive(simulation), r.randint(1, 2))
    states = simulation.states_of(bodies)
    states[:, 2] += r.choice([0.0, 0.5])
    states[:, 7:10] = (0, r.uniform(-1, 1), 1)
    simulation.set_states(bodies, states)


def _set_drives(simulation: Simulation, r: random.Random, kinematic: int | None) -> None:
    axes = simulation.scene.joints
    driven = [j for j in _joint_ids(simulation) if (axes.drive_max_force[j] > 0).sum() == 1]
    if driven:
        simulation.joints.set_targets(driven, positions=[r.uniform(-5, 5) for _ in driven])


def _set_motion(simulation: Simulation, r: random.Random, kinematic: int | None) -> None:
    if kinematic is not None:
        simulation.kinematic.set_motion([kinematic], _motion(r))


def _move(simulation: Simulation, r: random.Random, kinematic: int | None) -> None:
    if kinematic is not None:
        simulation.kinematic.move_to([kinematic], simulation.kinematic.states[0, :3] + [r.uniform(0, 0.02), 0, 0])


def _remove_joints(simulation: Simulation, r: random.Random, kinematic: int | None) -> None:
    joints = _joint_ids(simulation)
    if joints:
        simulation.joints.remove([r.choice(joints)])


def _add_joint(simulation: Simulation, r: random.Random, kinematic: int | None) -> None:
    a, b = r.sample(_alive(simulation), 2)
    places = simulation.states_of([a, b])[:, :3]
    if np.linalg.norm(places[0] - places[1]) < 2 and not _is_plain(simulation):
        simulation.joints.add_one(Distance(upper=2.5), a, b, places[0], anchor_b=places[1])


def _set_workers(simulation: Simulation, r: random.Random, kinematic: int | None) -> None:
    simulation.workers.set_count(r.randint(1, 4))


def _repartition(simulation: Simulation, r: random.Random, kinematic: int | None) -> None:
    if simulation.workers.membership.worker_count == 1:
        return
    count = simulation.params.workers
    partition = np.arange(simulation.scene.body_count) % count
    partition[_alive(simulation)] = np.arange(len(_alive(simulation))) % count
    try:
        simulation.workers.repartition(partition)
    except LapjointError:  # another number of workers was asked for, and takes effect in the next step
        return


def _set_options(simulation: Simulation, r: random.Random, kinematic: int | None) -> None:
    if simulation.params.solver == "sequential":
        simulation.workers.set_iterations(r.randint(5, 40))
    elif simulation.params.coupling == "blend":
        simulation.workers.set_growth_depth(r.randint(0, 4))


CHANGES: dict[str, Callable[[Simulation, random.Random, int | None], None]] = {
    "add bodies": _add_bodies,
    "add a chain": _add_chain_of_two,
    "remove bodies": _remove_bodies,
    "add forces": _add_forces,
    "freeze": _freeze,
    "release": _release,
    "set states": _set_states,
    "set drives": _set_drives,
    "set a motion": _set_motion,
    "move": _move,
    "remove a joint": _remove_joints,
    "add a joint": _add_joint,
    "set workers": _set_workers,
    "repartition": _repartition,
    "set options": _set_options,
}
