"""The bare engine, and PyBullet beside it on the same states in the same run.

Every scene runs for 500 steps; from where it then is, CPU milliseconds per step are measured with 10, 50 and 1000
iterations in both precisions, best of several repetitions, interleaved. PyBullet (pip install pybullet==3.2.7)
simulates the bowl and the bridge from the same states.

    python benchmarks/engine.py [SCENE...] [--csv FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from tables import write_table

from lapjoint import Params, Scene, make_engine, scenes
from lapjoint.engines import Engine
from lapjoint.scene import WORLD, Box, Compound, Sphere
from lapjoint.scene.joints import JointKind

ITERATIONS = (10, 50, 1000)
PRECISIONS = ("float32", "float64")
WARM_UP_STEPS = 5
PEER_SHAPES = (Sphere, Box, Compound)


def cpu_ms(step: Callable[[], None], budget_s: float, least: int = 3, most: int = 20) -> float:
    """Best CPU time of a step."""
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < least or (len(times) < most and time.perf_counter() - start < budget_s):
        before = time.process_time()
        step()
        times.append(1e3 * (time.process_time() - before))
    return min(times)


def start(scene: Scene, states: np.ndarray, params: Params) -> Engine:
    engine = make_engine(scene, params)
    engine.activate(np.arange(scene.body_count), states)
    engine.step(WARM_UP_STEPS)
    return engine


def settle(scene: Scene, steps: int) -> tuple[np.ndarray, float, float]:
    """States after `steps`, and the mean contacts and contact points on the way."""
    engine = make_engine(scene, Params(solver="sequential"))
    engine.activate(np.arange(scene.body_count), scene.states)
    pairs = points = 0
    for _ in range(steps):
        engine.step()
        contacts = engine.contacts()
        pairs += len(contacts)
        points += int(contacts.point_count.sum())
    return engine.get_states(), pairs / steps, points / steps


class PyBulletWorld:
    """The same scene in PyBullet: spheres, boxes, compounds of boxes, ball and fixed joints make bowl and bridges."""

    def __init__(self, scene: Scene, states: np.ndarray, iterations: int) -> None:
        import pybullet

        self.p, self.client = pybullet, pybullet.connect(pybullet.DIRECT)
        p, at = pybullet, {"physicsClientId": self.client}
        p.setGravity(*scene.gravity, **at)
        p.setPhysicsEngineParameter(
            fixedTimeStep=scene.timestep,
            numSolverIterations=iterations,
            numSubSteps=1,
            solverResidualThreshold=0.0,
            **at,
        )
        shapes = {}
        for i, shape in enumerate(scene.shapes):
            if isinstance(shape, Sphere):
                shapes[i] = p.createCollisionShape(p.GEOM_SPHERE, radius=shape.radius, **at)
            elif isinstance(shape, Box):
                shapes[i] = p.createCollisionShape(p.GEOM_BOX, halfExtents=[s / 2 for s in shape.size], **at)
            elif isinstance(shape, Compound) and all(isinstance(part.shape, Box) for part in shape.parts):
                turns = [(x, y, z, w) for w, x, y, z in (part.quaternion for part in shape.parts)]
                shapes[i] = p.createCollisionShapeArray(
                    shapeTypes=[p.GEOM_BOX] * len(shape.parts),
                    halfExtents=[[s / 2 for s in part.shape.size] for part in shape.parts],
                    collisionFramePositions=[part.position for part in shape.parts],
                    collisionFrameOrientations=turns,
                    **at,
                )
        statics, bodies, joints = scene.statics, scene.bodies, scene.joints
        for s in range(scene.static_count):
            if int(statics.shape_id[s]) in shapes:
                w, x, y, z = statics.quaternion[s]
                p.createMultiBody(0, shapes[int(statics.shape_id[s])], -1, statics.position[s], (x, y, z, w), **at)
            else:
                p.createMultiBody(0, p.createCollisionShape(p.GEOM_PLANE, **at), -1, statics.position[s], **at)
        self.ids = []
        for b in range(scene.body_count):
            w, x, y, z = states[b, 3:7]
            body = p.createMultiBody(
                bodies.mass[b],
                shapes[int(bodies.shape_id[b])],
                -1,
                states[b, :3],
                (x, y, z, w),
                useMaximalCoordinates=int(scene.joint_count == 0),  # there is no fixed joint between maximal bodies
                **at,
            )
            p.resetBaseVelocity(body, states[b, 7:10], states[b, 10:13], **at)
            p.changeDynamics(
                body, -1, lateralFriction=float(np.sqrt(bodies.friction[b])), linearDamping=0, angularDamping=0, **at
            )
            self.ids.append(body)
        kinds = {JointKind.BALL: p.JOINT_POINT2POINT, JointKind.FIXED: p.JOINT_FIXED}
        for j in range(scene.joint_count):
            a, b, frame_a, frame_b = joints.body_a[j], joints.body_b[j], joints.frame_a[j], joints.frame_b[j]
            child = self.ids[b] if b != WORLD else -1
            turns = [(x, y, z, w) for w, x, y, z in (frame_a[3:], frame_b[3:])]
            kind = kinds[JointKind(joints.kind[j])]
            p.createConstraint(self.ids[a], -1, child, -1, kind, (0, 0, 0), frame_a[:3], frame_b[:3], *turns, **at)
            if child >= 0 and not joints.collide[j]:
                p.setCollisionFilterPair(self.ids[a], child, -1, -1, 0, **at)

    def step(self) -> None:
        self.p.stepSimulation(physicsClientId=self.client)

    def read_and_write(self) -> None:
        for body in self.ids:
            place = self.p.getBasePositionAndOrientation(body, physicsClientId=self.client)
            speed = self.p.getBaseVelocity(body, physicsClientId=self.client)
            self.p.resetBasePositionAndOrientation(body, *place, physicsClientId=self.client)
            self.p.resetBaseVelocity(body, *speed, physicsClientId=self.client)

    def close(self) -> None:
        self.p.disconnect(self.client)


def measure(name: str, peer: bool) -> list[dict[str, object]]:
    scene = scenes.build(name)
    states, pairs, points = settle(scene, 500)
    rows = []
    base = {
        "scene": name,
        "body_count": scene.body_count,
        "joint_count": scene.joint_count,
        "contact_count_mean": round(pairs, 1),
        "contact_point_count_mean": round(points, 1),
    }
    for iterations in ITERATIONS:
        budget = 2.0
        runs: dict[str, Callable[[], None]] = {}
        for precision in PRECISIONS:
            runs[precision] = start(scene, states, Params(precision=precision, iterations=iterations)).step
        one_direction = replace(Params(iterations=iterations), friction_directions=1)
        runs["float32, 1 friction direction"] = start(scene, states, one_direction).step
        world = None
        if peer and all(isinstance(scene.shapes[i], PEER_SHAPES) for i in np.unique(scene.bodies.shape_id)):
            world = PyBulletWorld(scene, states, iterations)
            for _ in range(WARM_UP_STEPS):
                world.step()
            runs["pybullet 3.2.7"] = world.step
        best = {what: min(cpu_ms(step, budget / 3, 2) for _ in range(2)) for what, step in runs.items()}
        for what, ms in best.items():
            rows.append({**base, "engine": what, "iterations": iterations, "step_cpu_ms": round(ms, 3)})
            print(f"{name:16} {what:30} {iterations:5} iterations {ms:9.2f} ms", flush=True)
        if world is not None:
            if iterations == ITERATIONS[0]:
                rows += bulk_rows(base, scene, states, world)
            world.close()
    return rows


def bulk_rows(
    base: dict[str, object], scene: Scene, states: np.ndarray, world: PyBulletWorld
) -> list[dict[str, object]]:
    """Reading and writing all states once."""
    engine, ids, table = (
        start(scene, states, Params(solver="sequential")),
        np.arange(scene.body_count, dtype=np.int32),
        states.copy(),
    )

    def ours() -> None:
        engine.get_states(ids, out=table)
        engine.set_states(ids, table)

    rows = []
    for what, call in (("float32", ours), ("pybullet 3.2.7", world.read_and_write)):
        ms = cpu_ms(call, 1.0, 3, 50)
        print(f"{base['scene']:16} {what:30} read and write all states {ms:9.3f} ms", flush=True)
        rows.append(
            {**base, "engine": what + ", read and write all states", "iterations": 0, "step_cpu_ms": round(ms, 4)}
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", nargs="*", default=scenes.names())
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--no-peer", action="store_true", help="without PyBullet")
    arguments = parser.parse_args()
    rows = [row for name in arguments.scene for row in measure(name, not arguments.no_peer)]
    if arguments.csv:
        write_table(rows, arguments.csv)


if __name__ == "__main__":
    main()
