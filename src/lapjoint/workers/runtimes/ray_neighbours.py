"""The ways of workers to each other, for steps that they take together.

Those that share the server's memory find each other's messages there. Of any other two, the one with the lower number
listens, and the other connects with the token that it was given through Ray (ray_link.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ...errors import WorkerError
from .placement import Node
from .ray_actor import RayActor
from .ray_cluster import last_line, ray
from .ray_link import CONNECT_S


def link_actors(actors: Sequence[RayActor], fresh: Collection[int], address: Callable[[Node], str]) -> None:
    """Let fresh workers and all others reach each other; `address` is where those of a node listen. A WorkerError, if
    that fails. One that was there before and does not answer has failed, and is left out."""
    linking = _Linking(actors, fresh)
    there, count = linking.there, len(actors)
    callers = {
        actor: [other.index for other in there() if other.index > actor.index and linking.needs_socket(actor, other)]
        for actor in there()
    }
    tickets = linking.ask(
        {
            actor: actor.handle.listen.remote(count, list(fresh), address(actor.node), indices)
            for actor, indices in callers.items()
        }
    )
    connected = linking.ask(
        {
            actor: actor.handle.connect_to.remote(
                count, {host.index: found[actor.index] for host, found in tickets.items() if actor.index in found}
            )
            for actor in there()
        }
    )
    errors = [f"worker {actor.index} cannot reach {error}" for actor, error in connected.items() if error]
    # Whatever has happened, nobody listens after it. Who connects has done so by now.
    missing = linking.ask(
        {actor: actor.handle.let_in.remote(count, CONNECT_S if not errors else 0.0) for actor in there()}
    )
    gone = {actor.index for actor in actors if actor.failure}
    errors += [
        f"worker {index} did not connect to worker {actor.index}"
        for actor, indices in missing.items()
        for index in indices
        if index not in gone
    ]
    if errors or linking.errors:
        raise WorkerError([*linking.errors, *errors][0])


class _Linking:
    """Asks workers, and keeps who fails meanwhile."""

    def __init__(self, actors: Sequence[RayActor], fresh: Collection[int]) -> None:
        self._actors, self._fresh = actors, fresh
        self.errors: list[str] = []
        """Of fresh workers."""

    def there(self) -> list[RayActor]:
        return [actor for actor in self._actors if actor.failure is None]

    def needs_socket(self, one: RayActor, other: RayActor) -> bool:
        """Whether these two get a new connection."""
        is_new = one.index in self._fresh or other.index in self._fresh
        return is_new and not (one.is_shared and other.is_shared)

    def ask(self, calls: Mapping[RayActor, Any]) -> dict[RayActor, Any]:
        """The answers of all that give one."""
        end, answers = time.monotonic() + 2 * CONNECT_S, {}
        for actor, call in calls.items():
            try:
                answers[actor] = ray.get(call, timeout=max(0.0, end - time.monotonic()))
            except ray.exceptions.RayError as error:
                is_late = isinstance(error, ray.exceptions.GetTimeoutError)
                actor.fail("hung" if is_late else "gone", last_line(error))
                if actor.index in self._fresh:
                    where = f"worker {actor.index} on {actor.node.address}"
                    self.errors.append(f"{where} cannot be connected to others: {last_line(error)}")
        return answers
