"""DistributedQueries: what is asked about the scene between two steps, and who answers.

Workers answer for the bodies they have, each body by one of them; the server for static bodies, which are in all
workers, and for bodies that no worker has yet. A worker is asked only about what comes near the bounds of its bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..algorithms.membership import column_of
from ..errors import WorkerError
from ..queries import NO_BODY, BodyTree, ClosestPoints, Overlaps, RayHits, rays_meet
from ..queries.shapes import pack_shape
from ..scene.shapes import MovingShape, bounding_radius
from ..workers.looks import HIT_ANSWER, POINT_ANSWER, RAY_ANSWER, group_mask
from ..workers.questions import Arrays, Question, ask
from ..workers.runtimes import Runtime
from .coupling import StepContext
from .kinematic import KinematicBodies

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]
Answer = TypeVar("Answer")


class DistributedQueries:
    """Answers about the scene as its states are now. Nothing of the next step depends on them."""

    def __init__(self, now: StepContext, runtime: Runtime, kinematic: KinematicBodies) -> None:
        self._now, self._runtime, self._kinematic = now, runtime, kinematic
        self._statics: BodyTree | None = None
        self._statics_step = -1
        self._own = BodyTree(now.scene)
        self._looked_at = -1
        self._bounds: list[Array | None] = []

    # ---- who answers -------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Have everybody look where bodies are, unless nothing has changed since."""
        commands = self._now.commands
        if self._looked_at == commands.change_count:
            return
        alive, known = self._now.scene.alive, commands.known
        counts = np.bitwise_count(known).sum(axis=1)
        answers = self._ask(self._questions(known, alive, counts))
        self._bounds = [None if answer is None else answer["bounds"] for answer in answers]
        self._answer_for(alive & (counts == 0))

    def _answer_for(self, here: Mask) -> None:
        """Have the server answer for these bodies."""
        ids = np.flatnonzero(here).astype(np.int32)
        self._own.set_bodies(ids, self._runtime.states if len(ids) else np.empty((0, 7)))
        self._looked_at = self._now.commands.change_count

    def _answered(self, answer: Callable[[], Answer]) -> Answer:
        """An answer about bodies as they are now. Where memory is shared, the server answers for all of them if a
        worker is gone: the table has its states, and the next step replaces it."""
        try:
            self._look()
            return answer()
        except WorkerError:
            if self._runtime.byte_count is not None:
                raise
            self._bounds = [None] * len(self._bounds)
            self._answer_for(self._now.scene.alive)
            return answer()

    def _questions(self, known: NDArray[np.uint64], alive: Mask, counts: NDArray[np.integer]) -> list[Question | None]:
        """What workers are told when they look: for whom others answer, and who was blended or set since the step."""
        shared = np.flatnonzero((counts > 1) | (~alive & (counts > 0))).astype(np.int32)
        changed = self._now.commands.set_ids
        changed = changed[counts[changed] == 1]
        taken = ~alive[shared]
        questions: list[Question | None] = []
        for worker in range(self._now.params.workers if counts.any() else 0):
            has = column_of(known[shared], worker)
            mine = has & ~taken
            taken |= has
            reset = np.union1d(shared[mine], changed[column_of(known[changed], worker)]).astype(np.int32)
            questions.append(Question("look", {"without": shared[has & ~mine]}, reset))
        return questions

    def _ask(self, questions: Sequence[Question | None]) -> list[Arrays | None]:
        if not any(questions):
            return [None] * len(questions)
        return ask(self._runtime.step, questions, self._now.scene.body_count)

    def _static_tree(self) -> BodyTree:
        step = self._now.step_count if self._kinematic.motions else 0
        if self._statics is None or self._statics_step != step:
            self._statics = self._statics or BodyTree(self._now.scene)
            self._statics.set_statics(self._kinematic.static_poses(step))
            self._statics_step = step
        return self._statics

    def _trees(self, statics: bool) -> list[BodyTree]:
        """What the server answers for."""
        return [self._static_tree(), self._own] if statics else [self._own]

    # ---- rays --------------------------------------------------------------------------------------------------------

    def cast_closest(self, origins: Array, directions: Array, reach: Array, mask: int, statics: bool) -> RayHits:
        return self._answered(lambda: self._cast_closest(origins, directions, reach, mask, statics))

    def _cast_closest(self, origins: Array, directions: Array, reach: Array, mask: int, statics: bool) -> RayHits:
        count = len(origins)
        body, distance, normal = np.full(count, NO_BODY, np.int32), np.full(count, np.inf), np.zeros((count, 3))
        reach = np.array(reach)

        def take(rays: Ids, found: Sequence[NDArray[Any]]) -> None:
            whose, how_far, side = found
            nearer = (how_far < distance[rays]) | ((how_far == distance[rays]) & (whose < body[rays]))
            rays = rays[nearer]
            body[rays], distance[rays], normal[rays] = whose[nearer], how_far[nearer], side[nearer]
            reach[rays] = distance[rays]

        every = np.arange(count, dtype=np.int32)
        for tree in self._trees(statics):
            take(every, tree.cast_closest(origins, directions, reach, mask))
        for rays, answer in self._ask_rays("rays", origins, directions, reach, mask):
            take(rays, [answer[name] for name in RAY_ANSWER])
        return RayHits(every, body, distance, _along(origins, directions, distance), normal)

    def cast_all(self, origins: Array, directions: Array, reach: Array, mask: int, statics: bool) -> RayHits:
        return self._answered(lambda: self._cast_all(origins, directions, reach, mask, statics))

    def _cast_all(self, origins: Array, directions: Array, reach: Array, mask: int, statics: bool) -> RayHits:
        found = [tree.cast_all(origins, directions, reach, mask) for tree in self._trees(statics)]
        for rays, answer in self._ask_rays("all hits", origins, directions, reach, mask):
            ray, *others = (answer[name] for name in HIT_ANSWER)
            found.append((rays[ray], *others))  # type: ignore[arg-type]
        ray, body, distance, normal = (np.concatenate(columns) for columns in zip(*found, strict=True))
        order = np.lexsort((body, distance, ray))
        ray, distance = ray[order], distance[order]
        return RayHits(ray, body[order], distance, _along(origins[ray], directions[ray], distance), normal[order])

    def _ask_rays(
        self, what: str, origins: Array, directions: Array, reach: Array, mask: int
    ) -> list[tuple[Ids, Arrays]]:
        """Rays that each worker was asked about, and its answer."""
        asked = [
            _none_of(rays_meet(origins, directions, reach, box) if box is not None else None) for box in self._bounds
        ]
        questions = [
            None
            if rays is None
            else Question(
                what,
                {
                    "origins": origins[rays],
                    "directions": directions[rays],
                    "reach": reach[rays],
                    "mask": group_mask(mask),
                },
            )
            for rays in asked
        ]
        return _answered(asked, self._ask(questions))

    # ---- shapes and points -------------------------------------------------------------------------------------------

    def overlapping(self, shape: MovingShape, places: Array, mask: int, statics: bool) -> Overlaps:
        return self._answered(lambda: self._overlapping(shape, places, mask, statics))

    def _overlapping(self, shape: MovingShape, places: Array, mask: int, statics: bool) -> Overlaps:
        found = [tree.overlapping(shape, places, mask) for tree in self._trees(statics)]
        radius = bounding_radius(shape)
        asked = [_none_of(_away(places[:, :3], box) <= radius) if box is not None else None for box in self._bounds]
        packed = pack_shape(shape)
        questions = [
            None if rows is None else Question("overlaps", {**packed, "places": places[rows], "mask": group_mask(mask)})
            for rows in asked
        ]
        for rows, answer in _answered(asked, self._ask(questions)):
            query, body = answer["pairs"].T
            found.append(np.stack([rows[query], body], axis=1))
        pairs = np.concatenate(found)
        query, body = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].T.astype(np.int32)
        return Overlaps(query, body)

    def closest_points(self, points: Array, reach: Array, mask: int, statics: bool) -> ClosestPoints:
        return self._answered(lambda: self._closest_points(points, reach, mask, statics))

    def _closest_points(self, points: Array, reach: Array, mask: int, statics: bool) -> ClosestPoints:
        count = len(points)
        body, distance = np.full(count, NO_BODY, np.int32), np.full(count, np.inf)
        point, normal = np.full((count, 3), np.inf), np.zeros((count, 3))

        def take(rows: Ids, found: Sequence[NDArray[Any]]) -> None:
            whose, how_far, where, side = found
            nearer = (how_far < distance[rows]) | ((how_far == distance[rows]) & (whose < body[rows]))
            rows = rows[nearer]
            body[rows], distance[rows] = whose[nearer], how_far[nearer]
            point[rows], normal[rows] = where[nearer], side[nearer]

        every = np.arange(count, dtype=np.int32)
        for tree in self._trees(statics):
            take(every, tree.nearest_bodies(points, np.minimum(reach, distance), mask))
        near = np.minimum(reach, distance)
        asked = [_none_of(_away(points, box) <= near) if box is not None else None for box in self._bounds]
        questions = [
            None
            if rows is None
            else Question("nearest", {"points": points[rows], "reach": near[rows], "mask": group_mask(mask)})
            for rows in asked
        ]
        for rows, answer in _answered(asked, self._ask(questions)):
            take(rows, [answer[name] for name in POINT_ANSWER])
        return ClosestPoints(body, distance, point, normal)


def _none_of(rows: Mask | None) -> Ids | None:
    """The numbers of rows that are true; None where there are none."""
    return None if rows is None or not rows.any() else np.flatnonzero(rows).astype(np.int32)


def _answered(asked: Sequence[Ids | None], answers: Sequence[Arrays | None]) -> list[tuple[Ids, Arrays]]:
    pairs = zip(asked, answers, strict=True)
    return [(rows, answer) for rows, answer in pairs if rows is not None and answer is not None]


def _along(origins: Array, directions: Array, distance: Array) -> Array:
    """Points of rays; infinite where the distance is."""
    points = np.full(origins.shape, np.inf)
    is_hit = np.isfinite(distance)
    points[is_hit] = origins[is_hit] + distance[is_hit, None] * directions[is_hit]
    return points


def _away(points: Array, box: Array) -> Array:
    """How far points are from a box, at least; negative inside it; infinite from one around nothing."""
    out = np.maximum(box[:3] - points, points - box[3:])
    outside = np.linalg.norm(np.maximum(out, 0), axis=1)
    inside = (out <= 0).all(axis=1)
    return np.where(inside, -np.inf, outside * (1 - 1e-12))
