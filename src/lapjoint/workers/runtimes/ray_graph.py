"""The compiled graph of a step: one message to every actor, one back. It breaks as a whole; then it is compiled
again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ray.dag import InputNode, MultiOutputNode

from .ray_cluster import ray


class GraphBroken(Exception):
    """An actor is gone, or did not answer in time; which one, is not known."""


class StepGraph:
    """Sends and receives through channels that Ray keeps open between this process and the actors."""

    def __init__(self, actors: Sequence[Any]) -> None:
        try:
            with InputNode() as given:
                answers = [actor.step.bind(given[i]) for i, actor in enumerate(actors)]
            self._graph = MultiOutputNode(answers).experimental_compile(_max_inflight_executions=1)
        except Exception as error:
            raise GraphBroken from error
        self._answers: list[Any] = []

    def send(self, messages: Sequence[bytes]) -> None:
        try:
            self._answers = self._graph.execute(*messages)
        except Exception as error:
            raise GraphBroken from error

    def receive(self, limit_s: float) -> list[bytes]:
        try:
            answers = list(ray.get(self._answers, timeout=limit_s))
        except Exception as error:
            raise GraphBroken from error
        self._answers = []
        return answers

    def close(self) -> None:
        """Let go of the channels. Actors that are alive can be called, or compiled into another graph, after it."""
        self._graph.teardown()
        self._answers = []  # not before: answers that were never taken are looked for when they are dropped
