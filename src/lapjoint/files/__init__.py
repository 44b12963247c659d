"""Scenes from other programs' files, and back: MJCF, URDF, USD, glTF.

A reader turns a file into a `Model`, which knows no format; `build_scene` makes a scene of it. What a file has that a
scene cannot have is noted (`Notes`) where that is harmless, and refused where the result would be wrong.
"""

from __future__ import annotations
