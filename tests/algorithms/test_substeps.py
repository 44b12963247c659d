"""The substep solver: native code against its readable twin, step by step from the native one's own contacts.

Lengths and masses are chosen so that the engine's units are metres and kilograms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lapjoint import (
    WORLD,
    Ball,
    Box,
    ConstantVelocity,
    Engine,
    Material,
    Oscillation,
    Params,
    Plane,
    Rotation,
    Scene,
    Simulation,
    Sphere,
    Units,
    make_engine,
)
from lapjoint.arrays import rotation as rot
from lapjoint.engines import EngineState, join_states
from lapjoint.scene.motions import GivenMotion, Motion
from lapjoint.server.coupling.tight import Tight, own_part
from lapjoint.workers.engine_states import from_bytes, read_states
from reference import substeps as twin
from substep_support import G, started

STATIC_BASE = 1 << 30
SAME_NORMAL = 0.9998
# Columns of EngineState.points; those that a manifold's first point keeps for friction and for twist and rolling.
PLACE_ON_B, NORMAL, DISTANCE, FRICTION, RESTITUTION, IMPULSE = slice(6, 9), slice(12, 15), 21, 22, 25, 26
TANGENTIAL, ANGULAR = [30, 31, 32], [33, 34, 27]


# ---- what an engine starts a step from ---------------------------------------------------------------------------


def read_bodies(scene: Scene, state: EngineState) -> list[twin.Body]:
    bodies = []
    for row, number in zip(state.bodies, state.body_ids, strict=True):
        mass, inertia = scene.bodies.mass[number], np.diag(scene.bodies.inertia[number])
        bodies.append(
            twin.Body(
                position=row[:3].copy(),
                axes=row[3:12].reshape(3, 3).copy(),
                linear=row[12:15].copy(),
                angular=row[15:18].copy(),
                inverse_mass=1 / mass,
                inverse_inertia=1 / inertia,
                force=mass * scene.gravity,
                linear_kept=1 - scene.bodies.linear_damping[number],
                angular_kept=1 - scene.bodies.angular_damping[number],
                gyroscopic=not (inertia == inertia[0]).all(),
            )
        )
    return bodies


def scattered(pair: tuple[int, int], part: tuple[int, int]) -> int:
    """Where a manifold is in the order, from its bodies and their parts, the lower number first."""
    numbers = [STATIC_BASE - 1 - body if body < 0 else body for body in pair]
    if numbers[0] > numbers[1]:
        numbers, part = numbers[::-1], (part[1], part[0])
    bodies, parts = ((x & 0xFFFFFFFF) << 32 | (y & 0xFFFFFFFF) for x, y in (numbers, part))
    return twin.scattered_key(bodies ^ twin.scattered_key(parts))


Names = set[tuple[int, int, int, int, int]]
"""Bodies of contacts, their parts, and which of a manifold's normals."""


def read_surfaces(scene: Scene, step: int) -> dict[int, twin.Surface]:
    """Of static bodies that move, or whose surfaces do, in a step; as -1 - s."""
    surfaces = {}
    for s, velocity in enumerate(scene.statics.surface_velocity):
        if s in scene.motions or velocity.any():
            at_rest = GivenMotion.at_rest([*scene.statics.position[s], *scene.statics.quaternion[s]])
            state = scene.motions.get(s, at_rest).state(step, scene.timestep)
            along, about = (rot.rotate(state[3:7], part) for part in (velocity[:3], velocity[3:]))
            surfaces[-1 - s] = twin.Surface(state[:3], state[7:10], state[10:], along, about)
    return surfaces


def read_contacts(
    scene: Scene, state: EngineState, before: Names | None = None, step: int = 0
) -> tuple[list[twin.Contact], Names]:
    """In the order of their keys, and their names; `before` are those of the last step."""
    surfaces = read_surfaces(scene, step)
    manifolds: list[list[int]] = []
    for point, place in enumerate(state.point_numbers[:, 0]):
        if place == 0:
            manifolds.append([])
        manifolds[-1].append(point)
    arms = np.concatenate([scene.bodies.rolling_friction, scene.statics.rolling_friction[::-1]])
    keyed = []
    names: Names = set()
    for members in manifolds:
        a, b = (int(end) for end in state.point_bodies[members[0]])
        parts = state.point_numbers[members[0], 3:5].tolist()
        key, part = scattered((a, b), tuple(parts)), 0
        while members:  # points with one normal are a contact
            own = [k for k in members if state.points[members[0], NORMAL] @ state.points[k, NORMAL] >= SAME_NORMAL]
            members = [k for k in members if k not in own]
            points, first = state.points[own], state.points[own[0]]
            normal = points[:, NORMAL].sum(axis=0)
            contact = twin.Contact(
                max(a, twin.FIXED),
                max(b, twin.FIXED),
                normal / np.linalg.norm(normal),
                points[:, PLACE_ON_B],
                points[:, DISTANCE],
                first[FRICTION],
                first[RESTITUTION],
                arms[a] + arms[b],
                points[:, IMPULSE],
                first[TANGENTIAL],
                first[ANGULAR],
                is_new=(a, b, *parts, part) not in (before or ()),
                surface=surfaces.get(min(a, b)),
            )
            names.add((a, b, *parts, part))
            keyed.append((key, part, contact))
            part += 1
    return [contact for *_, contact in sorted(keyed, key=lambda item: item[:2])], names


def read_joints(scene: Scene, state: EngineState) -> list[twin.BallJoint]:
    """Ball joints alone, in the order of their keys."""
    table, joints = scene.joints, []
    for number in sorted(range(scene.joint_count), key=twin.scattered_key):
        impulse = state.joint_impulses[state.joint_ids == number][:3]
        ends = int(table.body_a[number]), max(int(table.body_b[number]), twin.FIXED)
        joints.append(twin.BallJoint(*ends, table.frame_a[number, :3], table.frame_b[number, :3], impulse))
    return joints


def starting_state(engine: Engine, scene: Scene, params: dict[str, object]) -> EngineState:
    """The engine's state with the contacts that its next step will find."""
    copy = make_engine(scene, Params.from_options(solver="substeps", precision="float64", **params))
    copy.restore(engine.state())
    copy.contacts(now=True)
    return copy.state()


def differences(scene: Scene, steps: int, **params: object) -> tuple[np.ndarray, int]:
    """For each step the largest difference of a state or of an impulse, and the most contacts of a step."""
    params = {"joints": "swept", "length_unit": 1.0, **params}
    given: dict[str, Any] = {name: params[name] for name in ("substeps", "tolerance", "max_substeps") if name in params}
    settings = twin.Settings(**given)
    engine = started(scene, **params)
    found, most = np.zeros(steps), 0
    for k in range(steps):
        begin = starting_state(engine, scene, params)
        _, names = read_contacts(scene, engine.state())
        bodies, (contacts, _) = read_bodies(scene, begin), read_contacts(scene, begin, names, k)
        joints = read_joints(scene, begin)
        engine.step()
        groups = twin.groups_of_workers(contacts, joints, [0] * scene.body_count, {})
        assert twin.step(bodies, contacts, joints, scene.timestep, settings, groups) == engine.report().substeps
        end = engine.state()
        states = [np.concatenate([b.position, b.axes.ravel(), b.linear, b.angular]) for b in bodies]
        found[k] = np.abs(np.array(states) - end.bodies[:, :18]).max()
        native = np.sort(end.points[:, IMPULSE])
        ours = np.sort(np.concatenate([np.zeros(0), *(contact.impulses for contact in contacts)]))
        assert len(native) == len(ours)
        found[k] = max(found[k], np.abs(native - ours).max(initial=0.0))
        for joint, again in zip(joints, read_joints(scene, end), strict=True):
            found[k] = max(found[k], np.abs(joint.impulse - again.impulse).max())
        most = max(most, len(contacts))
    return found, most


# ---- scenes ------------------------------------------------------------------------------------------------------


def heap(
    seed: int,
    surface: Material,
    count: int = 9,
    motion: Motion | None = None,
    belt: Any = (0, 0, 0),
    heavy: float = 5.0,
) -> Scene:
    """Boxes and balls that fall on each other and on the ground, turned and spinning; some hang together. The ground
    may move, and its surface. Three bodies are heavy."""
    rng = np.random.default_rng(seed)
    scene = Scene(timestep=0.002)
    if motion is None:
        scene.add_static(Plane(), material=surface, surface_velocity=belt)
    else:
        scene.add_kinematic(Plane(), motion=motion, material=surface, surface_velocity=belt)
    places = rng.uniform(-0.5, 0.5, (count, 3)) + [0.0, 0.0, 0.7]
    turns = rng.normal(size=(count, 4))
    scene.add_bodies(
        [Box((0.5, 0.4, 0.3)) if k % 2 else Sphere(0.25) for k in range(count)],
        places,
        turns / np.linalg.norm(turns, axis=1, keepdims=True),
        linear_velocities=rng.normal(size=(count, 3)),
        angular_velocities=3 * rng.normal(size=(count, 3)),
        mass=np.where(np.arange(count) < 3, heavy, 1.0),
        material=surface,
    )
    joined = range(0, count // 2, 2)
    anchors = [(places[k] + places[k + 1]) / 2 for k in joined]
    scene.add_joints(Ball(), joined, [k + 1 for k in joined], anchors)
    scene.add_joint(Ball(), count - 1, WORLD, places[count - 1] + [0.1, 0.0, 0.2])
    return scene


SURFACES = {
    "plain": Material(friction=0.5),
    "smooth": Material(friction=0.0),
    "rolling": Material(friction=0.8, rolling_friction=0.02),
    "bouncing": Material(friction=0.3, restitution=0.6),
    "lossy": Material(friction=0.5, rolling_friction=0.01, restitution=0.3, linear_damping=0.3, angular_damping=0.4),
}


@pytest.mark.slow
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("seed", range(2))
def test_a_heap_moves_as_the_twin_says(seed: int, surface: str) -> None:
    apart, contacts = differences(heap(seed, SURFACES[surface]), 3)
    assert contacts >= 10
    assert apart.max() < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("surface", ["plain", "lossy"])
def test_a_heap_moves_as_the_twin_says_while_it_settles(surface: str) -> None:
    """In every step, also where a row has just closed a gap exactly: it counts as open, whatever rounding does."""
    apart, contacts = differences(heap(4, SURFACES[surface], 12), 30)
    assert contacts > 10
    assert apart.max() < 1e-10


GROUNDS: dict[str, dict[str, Any]] = {
    "lift": {"motion": ConstantVelocity((0.3, -0.2, 1.5), (0.2, 0.3, -0.5))},
    "table": {"motion": Rotation((0.1, 0.2, 1.0), 3.0, about=(1.0, 0.0, 0.0))},
    "shaker": {"motion": Oscillation((0.01, 0.0, 0.02), 20.0, 0.5, angular_amplitude=(0.02, 0.0, 0.0))},
    "belt": {"belt": (2.0, 0.5, 7.0)},
    "disc": {"motion": Rotation((0.0, 0.0, 1.0), -1.0), "belt": (0.0, 0.5, 0.0, 0.3, 0.0, 4.0)},
}


@pytest.mark.slow
@pytest.mark.parametrize("surface", ["rolling", "lossy"])
@pytest.mark.parametrize("ground", GROUNDS)
def test_a_heap_on_a_ground_that_moves_does_as_the_twin_says(ground: str, surface: str) -> None:
    apart, contacts = differences(heap(1, SURFACES[surface], **GROUNDS[ground]), 3)
    assert contacts >= 10
    assert apart.max() < 1e-10


@pytest.mark.slow
def test_a_ground_that_moves_with_a_tolerance() -> None:
    """A step that is solved again begins with the gaps that it began with."""
    scene = heap(3, SURFACES["lossy"], **GROUNDS["lift"])
    apart, _ = differences(scene, 3, tolerance=1e-4, max_substeps=16)
    assert apart.max() < 1e-10


@pytest.mark.parametrize("substeps", [1, 2, 5])
def test_any_number_of_substeps(substeps: int) -> None:
    apart, _ = differences(heap(3, SURFACES["plain"]), 2, substeps=substeps)
    assert apart.max() < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize(("tolerance", "most"), [(0.3, 64), (1e-3, 16), (1e-9, 12)])
def test_more_substeps_for_a_tolerance(tolerance: float, most: int) -> None:
    """Rows, bodies and impulses of tries that did not do are gone, and joints stay as stiff as they were. The first try
    does; the last of some is twice the one before; it is less than that."""
    scene = heap(3, SURFACES["lossy"])
    apart, _ = differences(scene, 3, tolerance=tolerance, max_substeps=most)
    assert apart.max() < 1e-10


def test_a_chain_and_a_stack_are_swept_in_the_same_order() -> None:
    """Long enough that the order matters: swept as they were made, they are centimetres a second apart."""
    scene = Scene(timestep=0.002)
    scene.add_static(Plane())
    scene.add_bodies(Box((0.4, 0.4, 0.4)), [(3.0, 0.0, 0.2 + 0.3999 * k) for k in range(6)], mass=1.0)
    places = np.arange(10)[:, None] * [0.2, 0.0, 0.0] + [0.0, 0.0, 3.0]
    links = scene.add_bodies(Sphere(0.05), places, mass=1.0)
    scene.add_joints(Ball(), links, [WORLD, *links[:-1]], places - [0.1, 0.0, 0.0])
    apart, contacts = differences(scene, 2)
    assert contacts == 6
    assert apart.max() < 1e-10


@pytest.mark.parametrize(("ratio", "sweeps"), [(20.0, 1), (50.0, 2), (100.0, 4)])
def test_a_chain_of_unequal_masses_is_swept_several_times(ratio: float, sweeps: int) -> None:
    """A load at the end of light links. What is heavier still, but part of another structure, is as often swept and
    does not count."""
    scene = Scene(timestep=0.002)
    places = np.arange(6)[:, None] * [0.2, 0.0, 0.0] + [0.0, 0.0, 3.0]
    links = scene.add_bodies(Sphere(0.05), places, mass=[1.0] * 5 + [ratio])
    scene.add_joints(Ball(), links, [WORLD, *links[:-1]], places - [0.1, 0.0, 0.0])
    pair = scene.add_bodies(Sphere(0.05), [(0.0, 3.0, 3.0), (0.2, 3.0, 3.0)], mass=1e3)
    scene.add_joints(Ball(), pair, [WORLD, pair[0]], [(-0.1, 3.0, 3.0), (0.1, 3.0, 3.0)])
    state = started(scene).state()
    assert twin.joint_sweeps(read_joints(scene, state), read_bodies(scene, state)) == sweeps
    apart, _ = differences(scene, 3)
    assert apart.max() < 1e-10


# ---- the twin alone ----------------------------------------------------------------------------------------------


def test_constraints_of_a_colour_share_no_body() -> None:
    rng = np.random.default_rng(1)
    ends = [(int(a), int(b)) for a, b in rng.integers(twin.FIXED, 20, (80, 2)) if a != b]
    order = twin.sweep_order(ends, [0] * len(ends))
    assert sorted(order) == list(range(len(ends)))
    seen: set[int] = set()
    colours = 1
    for i in order:
        movers = {body for body in ends[i] if body != twin.FIXED}
        if seen & movers:
            colours, seen = colours + 1, set()
        seen |= movers
    assert colours < 2 * max(sum(body in pair for pair in ends) for body in range(20))


def test_keys_are_those_of_splitmix() -> None:
    """The first number that the generator of that name gives from the seed 0."""
    assert twin.scattered_key(0) == 0xE220A8397B1DCDAF


def test_a_ball_at_rest_sinks_by_its_load_over_the_stiffness() -> None:
    """C = a / omega^2; with the ground the frequency is twice the share. It starts in the ground: a gap of zero counts
    as open, and stays."""
    timestep, settings = 0.002, twin.Settings()
    start = np.array([0.0, 0.0, -1e-6])
    body = twin.Body(start, np.eye(3), np.zeros(3), np.zeros(3), 1.0, np.full(3, 2.5), np.array([0, 0, -G]))
    body.gyroscopic = False
    impulses, up = np.zeros(1), np.array([0.0, 0.0, 1.0])
    for _ in range(200):
        gap = body.position[2]
        contact = twin.Contact(
            0, twin.FIXED, up, body.position[None] - [0, 0, 0.5], np.array([gap]), 0.5, impulses=impulses
        )
        twin.step([body], [contact], [], timestep, settings)
        impulses = contact.impulses
    omega = 2 * np.pi * 2 * settings.contact_share * settings.substeps / timestep
    assert -body.position[2] == pytest.approx(G / omega**2, rel=1e-6)
    assert impulses[0] == pytest.approx(G * timestep, rel=1e-9)


def test_a_rotation_by_a_vector_is_that_of_the_library() -> None:
    for turn in np.random.default_rng(0).normal(size=(10, 3)):
        angle = float(np.linalg.norm(turn))
        expected = rot.to_matrix(rot.from_axis_angle(turn / angle, angle))
        np.testing.assert_allclose(twin.rotation(turn), expected, atol=1e-12)


# ---- with several workers ----------------------------------------------------------------------------------------


def whole_state(simulation: Simulation) -> EngineState:
    """Of all workers, each body and constraint once."""
    coupling, count = simulation._core.coupling, simulation.params.workers
    assert isinstance(coupling, Tight)
    read = read_states(simulation._core.runtime.step, count, simulation.scene.body_count)
    return join_states([own_part(from_bytes(data), coupling.owner, worker) for worker, data in enumerate(read)])


def turns_of(simulation: Simulation) -> dict[tuple[int, int], int]:
    coupling = simulation._core.coupling
    assert isinstance(coupling, Tight)
    return {(a, b): int(turn) for (a, b), turn in np.ndenumerate(coupling.turns) if a < b}


@pytest.mark.filterwarnings("ignore::lapjoint.PenetrationWarning")
@pytest.mark.parametrize(
    ("seed", "surface", "workers", "heavy"),
    [
        (0, "plain", 2, 5.0),
        (1, "plain", 3, 5.0),
        (0, "lossy", 3, 5.0),
        (1, "bouncing", 4, 5.0),
        (0, "plain", 3, 40.0),
        (1, "plain", 2, 95.0),
    ],
)
def test_workers_sweep_together_what_the_twin_sweeps_in_their_order(
    seed: int, surface: str, workers: int, heavy: float
) -> None:
    """Owners at random. What is between pairs of workers, in turns, then what each has for itself, is one sweep. Where
    masses are unequal, joints between a pair of workers are swept as often as these alone need."""
    scene, settings = heap(seed, SURFACES[surface], heavy=heavy), twin.Settings(substeps=4)
    given: dict[str, object] = {"joints": "swept", "length_unit": 1.0}
    owner = np.random.default_rng(seed).permutation(np.arange(scene.body_count) % workers).astype(np.int32)
    params = Params.from_options(
        workers=workers,
        runtime="inline",
        precision="float64",
        coupling="tight",
        partition=owner,
        repartition=0.0,
        **given,
    )
    one = make_engine(scene, Params.from_options(solver="substeps", precision="float64", **given))
    between = 0
    with Simulation(scene, params) as simulation:
        simulation.step()
        for _ in range(3):
            before = whole_state(simulation)
            one.restore(before)
            _, names = read_contacts(scene, one.state())
            one.contacts(now=True)
            begin = one.state()
            bodies, (contacts, _) = read_bodies(scene, begin), read_contacts(scene, begin, names)
            joints = read_joints(scene, begin)
            simulation.step()
            groups = twin.groups_of_workers(contacts, joints, owner.tolist(), turns_of(simulation))
            assert sum(len(group.contacts) for group in groups) == len(contacts)
            assert sum(len(group.joints) for group in groups) == len(joints)
            between += sum(len(group.contacts) + len(group.joints) for group in groups[: len(turns_of(simulation))])
            twin.step(bodies, contacts, joints, scene.timestep, settings, groups)
            states = np.array([np.concatenate([b.position, b.linear, b.angular]) for b in bodies])
            assert np.abs(states - simulation.states[:, [0, 1, 2, *range(7, 13)]]).max() < 1e-10
    assert between > 10


@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_a_contact_that_comes_within_the_step_is_the_twins(restitution: float) -> None:
    """A fast ball that hits a wall aslant, with friction: place, gap and shift follow from its way."""
    timestep, radius, start, velocity = 1 / 60, 0.5, np.array([-1.5, -0.5, 0.2]), np.array([150.0, 60.0, -20.0])
    scene = Scene("shot", gravity=(0, 0, 0), timestep=timestep)
    surface = Material(friction=0.5, restitution=restitution)
    scene.add_static(Box((0.2, 20, 20)), (0.1, 0, 0), material=surface)
    scene.add_body(Sphere(radius), start, linear_velocity=velocity, mass=2.0, material=surface)
    params = Params(units=Units(length=1.0, mass=1.0), precision="float64")
    engine = make_engine(scene, params)
    engine.activate([0], scene.states)
    engine.step()
    way = velocity * (-radius - start[0]) / velocity[0]
    inertia = scene.bodies.inertia[0]
    ball = twin.Body(start, np.eye(3), velocity.copy(), np.zeros(3), 0.5, 1 / np.diag(inertia), gyroscopic=False)
    place = start + way + (radius, 0, 0)
    contact = twin.Contact(
        0, twin.FIXED, np.array([-1.0, 0, 0]), place[None], np.array([way[0]]), 0.5, restitution, shift=way
    )
    contact.impulses, contact.is_new = np.zeros(1), True
    twin.step([ball], [contact], [], timestep, twin.Settings())
    found = engine.get_states()[0]
    np.testing.assert_allclose(found[:3], ball.position, atol=1e-4)
    np.testing.assert_allclose(found[7:10], ball.linear, atol=1e-2)
    np.testing.assert_allclose(found[10:13], ball.angular, rtol=1e-3, atol=1e-2)
    assert np.abs(ball.angular).max() > 10.0  # friction has turned it about the place where it met the wall
