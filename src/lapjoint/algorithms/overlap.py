"""Algorithms 2 and 3: put the bodies on both sides of an interface edge into both workers, and grow from there."""

from __future__ import annotations

from collections.abc import Iterable

from .graph import ConstraintGraph
from .membership import Membership


def assign_overlap(growth_depth: int, graph: ConstraintGraph, membership: Membership) -> None:
    """Algorithm 2, AssignToOverlapSet, over all edges of the graph of joints, starting from a partition.

    As printed, line 4 asks for W_A and W_B as earlier edges have left them, and Algorithm 3 passes over bodies that
    are in O already. Then the result depends on the order of the edges; the growth from one interface hides the next
    one; and where three partitions meet, a joint can be left without a worker. Here an interface edge is one whose
    bodies have different workers in the partition, and every one of them counts in full, in whatever order.
    """
    workers = [membership.workers(body) for body in range(graph.body_count)]
    for a, b in graph.edges.tolist():
        if workers[a] != workers[b]:  # line 4
            both = workers[a] | workers[b]
            grow_overlap(a, growth_depth, both, graph, membership)  # lines 5 and 6
            grow_overlap(b, growth_depth, both, graph, membership)  # lines 7 and 8


def grow_overlap(
    root: int, growth_depth: int, workers: Iterable[int], graph: ConstraintGraph, membership: Membership
) -> None:
    """Algorithm 3, GrowOverlap: bodies within the growth depth of `root`, itself included, join `workers`."""
    for body in graph.within(root, growth_depth):  # line 2
        membership.activate(workers, body)  # line 5
