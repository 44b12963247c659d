"""The compiled Bullet of a precision, typed. One module per precision, imported only when an engine of it is made."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Protocol, cast

from ..errors import LapjointError

if TYPE_CHECKING:
    from .. import _bullet_float32, _bullet_float64
    from .. import _bullet_float32 as compiled  # the types of both precisions


class BulletModule(Protocol):
    """What the compiled modules of both precisions have."""

    state_columns: tuple[int, int, int]
    """Columns of an engine's state: of a body, and the whole and the other numbers of a contact point."""
    message_bytes: int
    """Of a body in a message between two workers within a step, at most."""
    BodyError: type[compiled.BodyError]
    NotFiniteError: type[compiled.NotFiniteError]
    BulletWorld: type[compiled.BulletWorld]
    MachineLinks: type[compiled.MachineLinks]
    Mailboxes: type[compiled.Mailboxes]
    ShapeDefinition: type[compiled.ShapeDefinition]
    WorldSettings: type[compiled.WorldSettings]


if TYPE_CHECKING:
    _both: tuple[BulletModule, BulletModule] = (_bullet_float32, _bullet_float64)


def check_built(precision: str) -> None:
    """Refuse a precision that this build of lapjoint was made without, as that of `make demo` is."""
    if importlib.util.find_spec(_name(precision)) is None:
        raise LapjointError(f"precision is {precision}, which lapjoint was built without here: `make setup` adds it")


def load_bullet(precision: str) -> BulletModule:
    """The compiled module of a precision."""
    return cast(BulletModule, importlib.import_module(_name(precision)))


def _name(precision: str) -> str:
    return f"lapjoint._bullet_{precision}"
