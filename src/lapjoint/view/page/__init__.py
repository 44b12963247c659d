"""Pages in browsers: a running simulation (`live`), a recording or a scene as it starts (`playback`).

Needs the extra `lapjoint[view]`. The check stands here, before any module of the package can import viser.
"""

from __future__ import annotations

from ...errors import LapjointError


def require_viser() -> None:
    """Raise LapjointError, naming the extra to install, if viser is missing."""
    try:
        import viser  # noqa: F401
    except ImportError:
        raise LapjointError('a view needs viser: pip install "lapjoint[view]"') from None


require_viser()
