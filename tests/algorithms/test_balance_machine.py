"""Contacts come and go at random: after every balance, every joint and contact has a worker, and every body has one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from lapjoint.algorithms import Balance, Membership, native, reference
from lapjoint.algorithms.membership import validate_weights
from parallel_support import Case, chain_edges, pairs_array, random_cases, same_membership


class BalanceMachine(RuleBasedStateMachine):
    """A scene as `balance` sees it. Joints stay; contacts appear and end; the growth depth may change between steps."""

    contacts: set[tuple[int, int]]

    @initialize(case=random_cases(most_bodies=16), growth_depth=st.integers(0, 3))
    def start(self, case: Case, growth_depth: int) -> None:
        self.case, self.growth_depth = case, growth_depth
        self.joints = pairs_array(case.joints)
        self.jointed = np.isin(np.arange(case.body_count), self.joints)
        self.contacts = set()
        self.membership = case.membership()
        native.assign_overlap(growth_depth, native.Graph(case.body_count, self.joints), self.membership)

    @rule(data=st.data())
    @precondition(lambda self: self.case.body_count > 1)
    def bodies_meet(self, data: st.DataObject) -> None:
        last = self.case.body_count - 1
        pair = st.tuples(st.integers(0, last - 1), st.integers(1, last)).map(lambda ab: (ab[0], max(ab[1], ab[0] + 1)))
        self.contacts |= data.draw(st.sets(pair, min_size=1, max_size=8))

    @rule(data=st.data())
    @precondition(lambda self: self.contacts)
    def bodies_part(self, data: st.DataObject) -> None:
        self.contacts -= data.draw(st.sets(st.sampled_from(sorted(self.contacts)), min_size=1))

    @rule(growth_depth=st.integers(0, 3))
    def grow_otherwise(self, growth_depth: int) -> None:
        self.growth_depth = growth_depth

    @rule(mode=st.sampled_from([Balance.GUARDED, Balance.PRUNED]), data=st.data(), linger=st.integers(0, 2))
    def step(self, mode: Balance, data: st.DataObject, linger: int) -> None:
        contacts = pairs_array(data.draw(st.permutations(sorted(self.contacts))))
        edges = np.concatenate([self.joints, contacts])
        graph, twin = (module.Graph(self.case.body_count, edges) for module in (native, reference))
        before = self.membership.copy()
        expected = self.membership.copy()
        native.balance(contacts, self.growth_depth, graph, self.membership, mode, self.jointed, linger)
        reference.balance(contacts, self.growth_depth, twin, expected, mode, self.jointed, linger)
        assert same_membership(self.membership, expected)
        self.membership.validate(graph)
        # Bodies of one worker are in it still, whatever they have joined: a body moves in two steps.
        single = before.worker_counts() == 1
        assert np.array_equal(self.membership.bits[single] & before.bits[single], before.bits[single])

        overlap = self.membership.overlap()
        for name in ("compute_weights", "depth_weights"):
            depth = 2 * self.growth_depth + 2
            found = getattr(native, name)(depth, graph, self.membership, overlap)
            weights = getattr(reference, name)(depth, twin, expected, overlap)
            assert all(np.array_equal(a, b) for a, b in zip(found, weights, strict=True))
            validate_weights(found[0], found[2])
        if mode is Balance.PRUNED and linger == 0:
            alone = overlap[np.diff(graph.start)[overlap] == 0]
            assert len(alone) == 0, f"body {alone[0]} touches nothing and has more than one worker"


BalanceMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=25)
TestBalance = pytest.mark.slow(BalanceMachine.TestCase)


def test_as_printed_a_chain_breaks() -> None:
    """The paper's Algorithm 6, lines 20 to 23, takes both middle links out of worker 1, where the next one is alone."""
    joints = chain_edges(4)
    contact = pairs_array([(1, 2)])  # the middle links also touch
    results = {}
    for mode in Balance:
        membership = Membership([0, 0, 1, 1], 2)
        graph = reference.Graph(4, joints)
        reference.assign_overlap(0, graph, membership)
        assert membership.overlap().tolist() == [1, 2]
        reference.balance(contact, 0, graph, membership, mode)
        results[mode] = membership.uncovered(joints).tolist()
    assert results == {Balance.PRINTED: [[2, 3]], Balance.GUARDED: [], Balance.PRUNED: []}


def test_as_printed_contacts_of_a_pile_are_lost() -> None:
    """The same with contacts only, where the next step may find them again: a share of them has no worker."""
    rng, body_count, lost = np.random.default_rng(0), 60, dict.fromkeys(Balance, 0)
    memberships = {mode: Membership(np.arange(body_count) * 4 // body_count, 4) for mode in Balance}
    places = np.arange(body_count) / body_count
    for _ in range(40):
        places = places + rng.normal(scale=0.01, size=body_count)
        near = np.abs(places[:, None] - places) < 0.03
        contacts = np.argwhere(np.triu(near, 1)).astype(np.int32)
        graph = native.Graph(body_count, contacts)
        for mode, membership in memberships.items():
            native.balance(contacts, 0, graph, membership, mode)
            lost[mode] += len(membership.uncovered(contacts))
    assert lost[Balance.PRINTED] > 0
    assert lost[Balance.GUARDED] == lost[Balance.PRUNED] == 0
