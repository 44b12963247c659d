"""Shaders of bodies made of triangles: as the eye sees them, and as the light does."""

from __future__ import annotations

from .shading import HEAD, LIGHT, PLACE

BODY_VERTEX = (
    HEAD
    + PLACE
    + """
uniform mat4 view_projection;
in vec3 in_vertex;
in vec3 in_normal;
in vec3 in_position;
in vec4 in_quaternion;
in vec3 in_scale;
in vec4 in_color;  // and tag
out vec3 place;
out vec3 normal;
flat out vec4 paint;
void main() {
    place = in_position + turn(in_quaternion, in_vertex * in_scale);
    normal = turn(in_quaternion, in_normal / in_scale);
    paint = in_color;
    gl_Position = view_projection * vec4(place, 1.0);
}
"""
)

BODY_FRAGMENT = (
    HEAD
    + LIGHT
    + """
uniform vec3 eye;
in vec3 place;
in vec3 normal;
flat in vec4 paint;
out vec4 color;
void main() {
    vec3 n = normalize(normal) * (gl_FrontFacing ? 1.0 : -1.0);
    float facing = dot(n, light);
    float open_share = facing > 0.0 ? lit(place, n) : 0.0;
    color = vec4(encode(shade(paint.rgb, n, normalize(eye - place), open_share, 0.10)), paint.a);
}
"""
)

SHADOW_VERTEX = (
    HEAD
    + PLACE
    + """
uniform mat4 shadow_projection;
in vec3 in_vertex;
in vec3 in_position;
in vec4 in_quaternion;
in vec3 in_scale;
void main() {
    gl_Position = shadow_projection * vec4(in_position + turn(in_quaternion, in_vertex * in_scale), 1.0);
}
"""
)

SHADOW_FRAGMENT = HEAD + "void main() {}\n"
