"""Shaders of spheres drawn as discs: round to the pixel, for the price of two triangles."""

from __future__ import annotations

from .shading import HEAD, LIGHT

_DISC = """
void disc(vec3 towards, float nearer, float radius) {
    // A square about the circle that the eye sees of a sphere; inside the circle, on_disc is shorter than 1.
    vec3 right = normalize(cross(abs(towards.z) < 0.9 ? vec3(0, 0, 1) : vec3(1, 0, 0), towards));
    on_disc = in_vertex.xy;
    place = in_position + towards * nearer + radius * (right * on_disc.x + cross(towards, right) * on_disc.y);
}
"""

_DISC_IN = """
in vec3 in_vertex;
in vec3 in_position;
in vec3 in_scale;
out vec2 on_disc;
"""

DISC_VERTEX = (
    HEAD
    + _DISC_IN
    + """
uniform mat4 view_projection;
uniform vec3 eye;
in vec4 in_color;  // and tag
out vec3 place;
flat out vec4 ball;  // centre and radius
flat out vec4 paint;
"""
    + _DISC
    + """
void main() {
    // The circle in which lines from the eye touch the sphere: inside the sphere, so what is in front of the one is
    // in front of the other, and no depth has to be computed per pixel.
    float radius = in_scale.x;
    float away = max(length(eye - in_position), 1.001 * radius);
    float share = radius / away;
    disc((eye - in_position) / away, radius * share, radius * sqrt(1.0 - share * share));
    ball = vec4(in_position, radius);
    paint = in_color;
    gl_Position = view_projection * vec4(place, 1.0);
}
"""
)

DISC_FRAGMENT = (
    HEAD
    + LIGHT
    + """
uniform vec3 eye;
in vec3 place;
in vec2 on_disc;
flat in vec4 ball;
flat in vec4 paint;
out vec4 color;
void main() {
    if (dot(on_disc, on_disc) > 1.0) discard;
    vec3 sight = normalize(place - eye);
    vec3 from_ball = eye - ball.xyz;
    float along = dot(from_ball, sight);
    float chord = along * along - dot(from_ball, from_ball) + ball.w * ball.w;
    vec3 n = normalize(from_ball - sight * (along + sqrt(max(chord, 0.0))));
    float facing = dot(n, light);
    float open_share = facing > 0.0 ? lit(ball.xyz + ball.w * n, n) : 0.0;
    color = vec4(encode(shade(paint.rgb, n, -sight, open_share, 0.10)), paint.a);
}
"""
)

DISC_SHADOW_VERTEX = (
    HEAD
    + _DISC_IN
    + """
uniform mat4 shadow_projection;
uniform vec3 light;
vec3 place;
"""
    + _DISC
    + """
void main() {
    disc(light, 0.0, in_scale.x);
    gl_Position = shadow_projection * vec4(place, 1.0);
}
"""
)

DISC_SHADOW_FRAGMENT = (
    HEAD
    + """
in vec2 on_disc;
void main() { if (dot(on_disc, on_disc) > 1.0) discard; }
"""
)
