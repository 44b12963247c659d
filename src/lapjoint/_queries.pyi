"""Native queries (native/bindings/queries_module.cpp)."""

# Made by tools/make-stubs.

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

none: int

class Shape:
    pass

def make_shape(
    kind: int,
    size: NDArray[np.float64],
    points: NDArray[np.float64],
    triangles: NDArray[np.int32],
    parts: Sequence[Shape],
    places: NDArray[np.float64],
) -> Shape: ...

class BodyTree:
    def __init__(self) -> None: ...
    def add_shape(self, shape: Shape) -> int: ...
    def set_bodies(
        self,
        numbers: NDArray[np.int32],
        rows: NDArray[np.int32],
        places: NDArray[np.float64],
        shape_id: NDArray[np.int32],
        group: NDArray[np.uint32],
    ) -> None: ...
    @property
    def body_count(self) -> int: ...
    def bounds(self, out: NDArray[np.float64]) -> None: ...
    def cast_closest(
        self,
        origins: NDArray[np.float64],
        directions: NDArray[np.float64],
        reach: NDArray[np.float64],
        mask: int,
        body: NDArray[np.int32],
        distance: NDArray[np.float64],
        normal: NDArray[np.float64],
    ) -> None: ...
    def cast_all(
        self, origins: NDArray[np.float64], directions: NDArray[np.float64], reach: NDArray[np.float64], mask: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]: ...
    def overlapping(self, shape: Shape, places: NDArray[np.float64], mask: int) -> NDArray[np.int32]: ...
    def nearest_bodies(
        self,
        points: NDArray[np.float64],
        reach: NDArray[np.float64],
        mask: int,
        body: NDArray[np.int32],
        distance: NDArray[np.float64],
        point: NDArray[np.float64],
        normal: NDArray[np.float64],
    ) -> None: ...

class Sensors:
    def __init__(self) -> None: ...
    def add(self, shape: Shape, place: NDArray[np.float64], mask: int, on: int) -> int: ...
    def move(self, ids: NDArray[np.int32], bases: NDArray[np.float64], is_there: NDArray[np.bool_]) -> None: ...
    def inside(
        self,
        tree: BodyTree,
        bodies: NDArray[np.int32],
        states: NDArray[np.float64],
        shape_id: NDArray[np.int32],
        group: NDArray[np.uint32],
    ) -> NDArray[np.int32]: ...

def rays_meet(
    origins: NDArray[np.float64],
    directions: NDArray[np.float64],
    reach: NDArray[np.float64],
    box: NDArray[np.float64],
    meets: NDArray[np.bool_],
) -> None: ...
