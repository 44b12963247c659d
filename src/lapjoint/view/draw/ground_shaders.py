"""Shaders of what is around the bodies: planes and the background, and the step from canvas to picture."""

from __future__ import annotations

from .shading import BACKGROUND, HEAD, LIGHT, PLACE

PLANE_VERTEX = (
    HEAD
    + PLACE
    + """
uniform mat4 view_projection;
uniform vec3 position;    // of the plane's frame
uniform vec4 quaternion;
uniform vec2 middle;      // of what is drawn, in the plane's frame
uniform float reach;
in vec2 in_corner;
out vec3 place;
out vec2 on_plane;
void main() {
    on_plane = middle + in_corner * reach;
    place = position + turn(quaternion, vec3(on_plane, 0.0));
    gl_Position = view_projection * vec4(place, 1.0);
}
"""
)

PLANE_FRAGMENT = (
    HEAD
    + LIGHT
    + BACKGROUND
    + """
uniform vec3 plane_normal;
uniform vec2 middle;
uniform float reach;
uniform float grid;       // width of a square [m]
uniform float picture_height;
in vec3 place;
in vec2 on_plane;
out vec4 color;

float lines(vec2 at, float width) {  // share of the pixel covered by lines
    vec2 near = abs(fract(at - 0.5) - 0.5);
    vec2 pixel = fwidth(at);
    vec2 cover = clamp((width + pixel - near) / max(pixel, 1e-6), 0.0, 1.0) * clamp(width / pixel * 2.0, 0.0, 1.0);
    cover *= 1.0 - smoothstep(0.15, 0.5, pixel);
    return max(cover.x, cover.y);
}

void main() {
    float away = length(on_plane - middle) / reach;
    float fade = 1.0 - smoothstep(0.15, 0.95, away);
    if (fade <= 0.0) discard;
    vec3 albedo = vec3(0.66, 0.67, 0.685);
    albedo *= 1.0 - 0.10 * lines(on_plane / grid, 0.012);
    vec3 ground = shade(albedo, plane_normal, plane_normal, lit(place, plane_normal), 0.0);
    vec3 behind = background(gl_FragCoord.y / picture_height);
    color = vec4(mix(behind, encode(ground), fade), 0.0);
}
"""
)

SCREEN_VERTEX = (
    HEAD
    + """
in vec2 in_corner;
void main() {
    gl_Position = vec4(in_corner, 1.0, 1.0);  // behind everything
}
"""
)

BACKGROUND_FRAGMENT = (
    HEAD
    + BACKGROUND
    + """
uniform float picture_height;
out vec4 color;
void main() { color = vec4(background(gl_FragCoord.y / picture_height), 0.0); }
"""
)

REDUCE_FRAGMENT = (
    HEAD
    + """
uniform sampler2D canvas;
out vec4 color;
void main() {
    // The mean of 2 x 2 pixels, one bilinear read from where they meet; darker where one body ends and another begins.
    vec2 size = vec2(textureSize(canvas, 0));
    vec2 at = gl_FragCoord.xy * 2.0;
    vec3 mean = texture(canvas, at / size).rgb;
    vec4 low = textureGather(canvas, (at - vec2(0.5)) / size, 3);
    vec4 high = textureGather(canvas, (at + vec2(0.5)) / size, 3);
    // Each reads four tags, counter-clockwise from the top left; they share the pixel in the middle.
    vec4 edges = vec4(notEqual(low, low.yzwx)) + vec4(notEqual(high, high.yzwx));
    color = vec4(mean * (1.0 - 0.09 * dot(min(edges, 2.0), vec4(1.0)) * 0.5), 1.0);
}
"""
)
