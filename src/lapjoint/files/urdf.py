"""What MuJoCo's reader of URDF leaves out without a word: `mimic`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import LapjointError
from .inside import parse_xml


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: its position is `multiplier` times the other's, and `offset`."""

    joint: str
    other: str
    multiplier: float
    offset: float
    line: int


def find_mimics(path: Path) -> list[Mimic]:
    """Every joint of a URDF file that follows another; of other files, none."""
    root = parse_xml(path)
    if root.tag != "robot":
        return []
    found = []
    for joint in root.iter("joint"):
        for mimic in joint.iter("mimic"):
            line = int(mimic.get(":line", "0"))
            try:
                multiplier, offset = float(mimic.get("multiplier", "1")), float(mimic.get("offset", "0"))
            except ValueError:
                raise LapjointError(f"{path}: line {line}: mimic has {mimic.attrib}, expected numbers") from None
            found.append(Mimic(joint.get("name", ""), mimic.get("joint", ""), multiplier, offset, line))
    return found
