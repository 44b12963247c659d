"""The compiled Bullet of a precision, typed. One module per precision, imported only when an engine of it is made."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol, cast

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


def load_bullet(precision: str) -> BulletModule:
    """The compiled module of a precision."""
    return cast(BulletModule, importlib.import_module(f"lapjoint._bullet_{precision}"))
