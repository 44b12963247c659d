"""Algorithms 2 and 3: put the bodies on both sides of an interface edge into both workers, and grow from there."""

from __future__ import annotations

from collections.abc import Iterable

from .graph import Graph
from .membership import Membership


def assign_overlap(growth_depth: int, graph: Graph, membership: Membership) -> None:
    """Algorithm 2, AssignToOverlapSet, over all edges of the graph of joints.

    Line 4 asks that both bodies have one worker, and different ones. Where three partitions meet, a body that is in
    two workers already can have a neighbour in a third: no worker would hold that joint. Hence the wider condition:
    the two bodies share no worker. For bodies with one worker each it is the same.
    """
    for a, b in graph.edges.tolist():
        workers_a, workers_b = membership.workers(a), membership.workers(b)
        if not workers_a & workers_b:  # line 4
            both = workers_a | workers_b
            membership.activate(workers_b, a)  # line 5
            grow_overlap(a, growth_depth, both, graph, membership)  # line 6
            membership.activate(workers_a, b)  # line 7
            grow_overlap(b, growth_depth, both, graph, membership)  # line 8


def grow_overlap(root: int, growth_depth: int, workers: Iterable[int], graph: Graph, membership: Membership) -> None:
    """Algorithm 3, GrowOverlap: bodies within the growth depth of `root` that are in one worker join `workers`."""
    for body in graph.within(root, growth_depth):  # line 2
        if len(membership.workers(body)) == 1:  # line 4: not in O
            membership.activate(workers, body)  # line 5
