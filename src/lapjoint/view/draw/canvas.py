"""Canvas: the graphics side of a renderer. Owns a context, programs and buffers; turns one frame's arrays into pixels.

A frame is drawn twice as wide and high as asked for and reduced: four full samples per pixel, which a software
renderer does four times as fast as multisampling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import LapjointError
from . import body_shaders, disc_shaders, ground_shaders
from .batch import ROW_SIZE, Batch, Draws
from .context import open_context
from .light import SHADOW_SIZE, ShadowView
from .surface import Kind

Array = NDArray[np.float64]
_BODY_FIELDS = ("3f 4f 3f 4f/i", "in_position", "in_quaternion", "in_scale", "in_color")
_DISC_FIELDS = ("3f 16x 3f 4f/i", "in_position", "in_scale", "in_color")
_SHADOW_FIELDS = ("3f 4f 3f 16x/i", "in_position", "in_quaternion", "in_scale")
_DISC_SHADOW_FIELDS = ("3f 16x 3f 16x/i", "in_position", "in_scale")


@dataclass(frozen=True)
class Frame:
    """What one frame needs besides the bodies; places are relative to the frame's origin."""

    view_projection: Array
    eye: Array
    light: Array
    fill_light: Array
    shadow: ShadowView
    planes: tuple[dict[str, Any], ...]
    """The uniforms of each plane in the picture."""


class Canvas:
    """Draws frames of one batch."""

    def __init__(self, batch: Batch, size: tuple[int, int]) -> None:
        self.size = size
        self._owned: list[Any] = []
        self._context: Any = open_context()
        try:
            with self._context:
                self._make_arrays(batch)
                self._make_targets()
        except BaseException:
            self.close()
            raise

    def draw(self, draws: Draws, frame: Frame) -> NDArray[np.uint8]:
        """The pixels of one frame, (height, width, 3)."""
        with self._context:
            self._upload(draws, frame)
            self._draw_shadows()
            self._draw_picture(frame)
            self._frame.use()
            self._context.enable_only(self._context.NOTHING)
            self._picture.use(0)
            self._reduce_array.render(self._context.TRIANGLE_STRIP)
            raw = self._frame.read(components=3, alignment=1)
        upside_down = np.frombuffer(raw, np.uint8).reshape(self.size[1], self.size[0], 3)
        return np.ascontiguousarray(upside_down[::-1])

    def close(self) -> None:
        """Release the context and everything in it."""
        if self._context is not None:
            with self._context:
                for thing in reversed(self._owned):
                    thing.release()
            self._owned.clear()
            self._context.release()
            self._context = None

    # ---- once ----------------------------------------------------------------------------------------------------

    def _own(self, thing: Any) -> Any:
        self._owned.append(thing)
        return thing

    def _make_arrays(self, batch: Batch) -> None:
        ctx, own = self._context, self._own

        def array(vertex: str, fragment: str, *sources: tuple[Any, ...], indices: Any = None) -> Any:
            program = own(ctx.program(vertex_shader=vertex, fragment_shader=fragment))
            return own(ctx.vertex_array(program, list(sources), index_buffer=indices))

        square = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]], np.float32)
        corners = (own(ctx.buffer(square.tobytes())), "2f", "in_corner")
        self._background_array = array(ground_shaders.SCREEN_VERTEX, ground_shaders.BACKGROUND_FRAGMENT, corners)
        self._reduce_array = array(ground_shaders.SCREEN_VERTEX, ground_shaders.REDUCE_FRAGMENT, corners)
        self._plane_array = array(ground_shaders.PLANE_VERTEX, ground_shaders.PLANE_FRAGMENT, corners)
        self._seen_arrays: dict[Kind, Any] = {}
        self._shadow_arrays: dict[Kind, Any] = {}
        self._row_count = len(batch.models)
        if self._row_count == 0:
            return
        self._rows = own(ctx.buffer(reserve=4 * ROW_SIZE * self._row_count))
        self._commands = own(ctx.buffer(reserve=2 * 20 * batch.surface_count))
        vertices = own(ctx.buffer(batch.vertices.tobytes()))
        indices = own(ctx.buffer(batch.indices.tobytes()))
        surface, outline = (vertices, "3f 3f", "in_vertex", "in_normal"), (vertices, "3f 12x", "in_vertex")
        body = (body_shaders.BODY_VERTEX, body_shaders.BODY_FRAGMENT, surface, (self._rows, *_BODY_FIELDS))
        disc = (disc_shaders.DISC_VERTEX, disc_shaders.DISC_FRAGMENT, outline, (self._rows, *_DISC_FIELDS))
        shadow = (body_shaders.SHADOW_VERTEX, body_shaders.SHADOW_FRAGMENT, outline, (self._rows, *_SHADOW_FIELDS))
        disc_shadow = (disc_shaders.DISC_SHADOW_VERTEX, disc_shaders.DISC_SHADOW_FRAGMENT, outline)
        bodies, shadows = array(*body, indices=indices), array(*shadow, indices=indices)
        discs = array(*disc, indices=indices)
        disc_shadows = array(*disc_shadow, (self._rows, *_DISC_SHADOW_FIELDS), indices=indices)
        self._seen_arrays = {Kind.CLOSED: bodies, Kind.OPEN: bodies, Kind.DISC: discs}
        self._shadow_arrays = {Kind.CLOSED: shadows, Kind.OPEN: shadows, Kind.DISC: disc_shadows}

    def _make_targets(self) -> None:
        ctx, own = self._context, self._own
        double = (2 * self.size[0], 2 * self.size[1])
        largest = int(ctx.info["GL_MAX_TEXTURE_SIZE"])
        if max(double) > largest:
            raise LapjointError(f"size is {self.size}, expected at most {largest // 2} pixels each way")
        self._picture = own(ctx.texture(double, 4))
        self._picture.filter = (ctx.LINEAR, ctx.LINEAR)
        self._picture.repeat_x = self._picture.repeat_y = False
        self._canvas = own(ctx.framebuffer([self._picture], own(ctx.depth_renderbuffer(double))))
        self._frame = own(ctx.framebuffer([own(ctx.renderbuffer(self.size, 3))]))
        self._shadow_map = own(ctx.depth_texture((SHADOW_SIZE, SHADOW_SIZE)))
        self._shadow_map.compare_func = "<="
        self._shadow_map.filter = (ctx.LINEAR, ctx.LINEAR)
        self._shadow_map.repeat_x = self._shadow_map.repeat_y = False
        self._shadow_canvas = own(ctx.framebuffer(depth_attachment=self._shadow_map))
        for array in (self._background_array, self._plane_array):
            array.program["picture_height"].value = float(double[1])

    # ---- per frame -----------------------------------------------------------------------------------------------

    def _upload(self, draws: Draws, frame: Frame) -> None:
        if len(draws.rows):
            self._rows.write(draws.rows)
        self._ranges: list[tuple[Kind, Any, int, int]] = []
        tables, first = [], 0
        for arrays, commands in ((self._shadow_arrays, draws.shadow), (self._seen_arrays, draws.seen)):
            for kind, array in arrays.items():
                self._ranges.append((kind, array, first, len(commands[kind])))
                tables.append(commands[kind])
                first += len(commands[kind])
        if first:
            self._commands.write(np.concatenate(tables))
        uniforms = {
            "view_projection": _columns(frame.view_projection),
            "shadow_matrix": _columns(frame.shadow.lookup),
            "shadow_projection": _columns(frame.shadow.projection),
            "shadow_texel": np.float32(frame.shadow.texel).tobytes(),
            "light": frame.light.astype(np.float32).tobytes(),
            "fill_light": frame.fill_light.astype(np.float32).tobytes(),
            "eye": frame.eye.astype(np.float32).tobytes(),
        }
        for array in (self._plane_array, *self._seen_arrays.values(), *self._shadow_arrays.values()):
            for name in uniforms.keys() & set(array.program):
                array.program[name].write(uniforms[name])

    def _draw_shadows(self) -> None:
        ctx = self._context
        self._shadow_canvas.use()
        self._shadow_canvas.clear(depth=1.0)
        ctx.enable_only(ctx.DEPTH_TEST)
        ctx.polygon_offset = (1.5, 2.0)
        for _, array, first, count in self._ranges[: len(self._shadow_arrays)]:
            if count:
                array.render_indirect(self._commands, count=count, first=first)
        ctx.polygon_offset = (0.0, 0.0)

    def _draw_picture(self, frame: Frame) -> None:
        ctx = self._context
        self._canvas.use()
        self._canvas.clear(depth=1.0)
        self._shadow_map.use(0)
        for kind, array, first, count in self._ranges[len(self._shadow_arrays) :]:
            ctx.enable_only(ctx.DEPTH_TEST | (ctx.CULL_FACE if kind == Kind.CLOSED else ctx.NOTHING))
            if count:
                array.render_indirect(self._commands, count=count, first=first)
        ctx.enable_only(ctx.DEPTH_TEST)
        ctx.polygon_offset = (1.0, 4.0)  # a body's face that lies in the plane is in front of it
        for uniforms in frame.planes:
            for name, value in uniforms.items():
                self._plane_array.program[name].value = value
            self._plane_array.render(ctx.TRIANGLE_STRIP)
        ctx.polygon_offset = (0.0, 0.0)
        ctx.depth_func = "<="
        self._background_array.render(ctx.TRIANGLE_STRIP)
        ctx.depth_func = "<"


def _columns(matrix: Array) -> bytes:
    return np.ascontiguousarray(matrix.T, np.float32).tobytes()
