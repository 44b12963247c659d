"""The compiled Bullet in float64 (native/bindings/bullet_module.cpp): the same names as in float32."""

from ._bullet_float32 import *  # noqa: F403
