"""Context: OpenGL without a screen, and a clear error when something for it is missing."""

from __future__ import annotations

import sys
from typing import Any

from ...errors import LapjointError
from ...system.shortage import PICTURE_ROOM, check_room, short_of

NEEDED = 430
"""OpenGL 4.3 draws many surfaces in one call. Mesa's software renderer offers 4.5."""


def open_context() -> Any:
    """A new moderngl context; on Linux through EGL, with a graphics card or without."""
    try:
        import moderngl
    except ImportError:
        raise LapjointError("pictures need moderngl: pip install 'lapjoint[picture]'") from None
    with short_of("pictures"):
        check_room(PICTURE_ROOM)
    backend: dict[str, Any] = {"backend": "egl"} if sys.platform.startswith("linux") else {}
    try:
        return moderngl.create_context(standalone=True, require=NEEDED, **backend)
    except Exception as error:  # glcontext raises bare Exception
        raise LapjointError(
            f"pictures need OpenGL {NEEDED / 100:.1f} through EGL, which did not open ({error}). "
            "On Debian and Ubuntu: apt install libegl1 libgl1-mesa-dri"
        ) from None
