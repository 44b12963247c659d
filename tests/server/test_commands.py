"""CommandBuilder: what workers are told of a membership, and what a step costs that changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from lapjoint import Scene, Sphere
from lapjoint.algorithms import Membership, load_algorithms
from lapjoint.scene.living import LivingScene
from lapjoint.server.commands import CommandBuilder
from lapjoint.server.weights import OverlapWeights

OVERLAP = np.array([1, 4], np.int32)
WEIGHTS = OverlapWeights(OVERLAP, np.array([0, 2, 4], np.int32), np.array([0, 1, 0, 2], np.int32), np.full(4, 0.5))


def membership() -> Membership:
    """Six bodies on three workers, of which two overlap."""
    made = Membership([0, 0, 1, 1, 2, 2], 3)
    made.activate([1], 1)
    made.activate([0], 4)
    return made


@pytest.fixture(params=["native", "reference"])
def builder(request: pytest.FixtureRequest) -> CommandBuilder:
    scene = Scene("six")
    scene.add_bodies(Sphere(0.5), [(i, 0, 0) for i in range(6)])
    living = LivingScene(scene, lambda: scene.states)
    return CommandBuilder(living, 3, load_algorithms(request.param).command_lists)


def test_a_step_that_changes_nothing_looks_at_no_other_body_than_those_it_resets(builder: CommandBuilder) -> None:
    who, seen = membership(), []
    lists = builder._command_lists

    def count(own: Membership, *others: object) -> object:
        seen.append(own.body_count)
        return lists(own, *others)  # type: ignore[arg-type]

    builder._command_lists = count  # type: ignore[assignment]
    first = builder.build(who, WEIGHTS)
    assert [command.activate.tolist() for command in first] == [[0, 1, 4], [1, 2, 3], [4, 5]]
    known = builder.known
    builder.reset(OVERLAP)
    builder.set_from_table(np.array([5, 0], np.int32))
    second = builder.build(who, WEIGHTS)
    assert seen == [6, 4]
    assert builder.known is known
    assert [command.reset.tolist() for command in second] == [[0, 1, 4], [1], [4, 5]]
    assert all(len(command.activate) == len(command.deactivate) == 0 for command in second)
    assert [command.slot.tolist() for command in second] == [command.slot.tolist() for command in first]


def test_what_a_profile_keeps_stays_when_the_membership_changes(builder: CommandBuilder) -> None:
    who = membership()
    builder.build(who, WEIGHTS)
    known, before = builder.known, builder.known.copy()
    assert builder.knows(who)
    who.deactivate([1], 1)
    assert not builder.knows(who)
    commands = builder.build(who, OverlapWeights.none())
    assert [command.deactivate.tolist() for command in commands] == [[], [1], []]
    assert np.array_equal(known, before)
    assert builder.knows(who)
    builder.validate(who)
    with pytest.raises(ValueError, match="read-only"):
        builder.known[0] = 0


def test_validate_finds_a_change_that_was_not_counted(builder: CommandBuilder) -> None:
    who = membership()
    builder.build(who, WEIGHTS)
    who.bits[3] = 1
    with pytest.raises(AssertionError, match="body 3 has other workers than were known"):
        builder.validate(who)
