"""What MuJoCo's reader of URDF leaves out without a word: `mimic`, and elements that are for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree.ElementTree import Element

from .notes import Notes

READ = ("link", "joint", "material", "mujoco")
"""Elements of a robot that are read."""


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: its position is `multiplier` times the other's, and `offset`."""

    joint: str
    other: str
    multiplier: float
    offset: float
    line: int


def find_mimics(root: Element, notes: Notes) -> list[Mimic]:
    """Every joint of a robot that follows another; of other files, none."""
    if root.tag != "robot":
        return []
    found = []
    for joint in root.iter("joint"):
        for mimic in joint.iter("mimic"):
            line = int(mimic.get(":line", "0"))
            try:
                multiplier, offset = float(mimic.get("multiplier", "1")), float(mimic.get("offset", "0"))
            except ValueError:
                raise notes.refuse(f"line {line}", f"mimic has {mimic.attrib}, expected numbers") from None
            found.append(Mimic(joint.get("name", ""), mimic.get("joint", ""), multiplier, offset, line))
    return found


def note_what_is_dropped(root: Element, notes: Notes) -> None:
    """Note elements of a robot that are neither links nor joints; of other files, none."""
    for element in root if root.tag == "robot" else ():
        if element.tag not in READ:
            name = element.get("name") or element.get("reference")
            title = f"{element.tag} {name!r}" if name else element.tag
            notes.leave_out(f"{title} (line {element.get(':line')})", f"{element.tag} elements are for other programs")
