"""Scenes are found by name; a name that is nearly right is answered with the one that was meant."""

from __future__ import annotations

import pytest

from lapjoint import LapjointError, scenes


@pytest.mark.parametrize(
    ("wrong", "meant"), [("bowel", "bowl"), ("two_way_bridge", "two-way-bridge"), ("Building", "building")]
)
def test_a_name_that_is_nearly_right_is_answered_with_the_one_meant(wrong: str, meant: str) -> None:
    with pytest.raises(
        LapjointError, match=rf"no scene named '{wrong}' \(did you mean '{meant}'\?\); known scenes: chain"
    ):
        scenes.build(wrong)


def test_a_name_like_none_is_answered_with_all() -> None:
    with pytest.raises(LapjointError, match="no scene named 'xyz'; known scenes: chain, bridge"):
        scenes.build("xyz")
