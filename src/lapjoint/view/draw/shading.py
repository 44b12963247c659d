"""Shading: the GLSL functions that all programs share. Light is computed in linear colours."""

from __future__ import annotations

HEAD = "#version 430 core\n"

PLACE = """
vec3 turn(vec4 q, vec3 v) {  // q: w x y z
    vec3 t = 2.0 * cross(q.yzw, v);
    return v + q.x * t + cross(q.yzw, t);
}
"""

LIGHT = """
uniform sampler2DShadow shadow_map;
uniform mat4 shadow_matrix;
uniform vec3 light;         // direction to the key light
uniform vec3 fill_light;    // direction to a weak one without shadows, from the other side
uniform float shadow_texel; // its size in the world [m]

float lit(vec3 place, vec3 normal) {
    // Moving the point along its normal keeps a surface from shadowing itself.
    float slope = clamp(1.0 - dot(normal, light), 0.0, 1.0);
    vec3 p = (shadow_matrix * vec4(place + normal * shadow_texel * (0.8 + 2.2 * slope), 1.0)).xyz;
    vec2 border = abs(p.xy - 0.5);
    if (max(border.x, border.y) > 0.499) return 1.0;
    p.z = min(p.z, 1.0);  // behind all that is in the map; not every renderer clamps it
    vec2 t = 1.0 / vec2(textureSize(shadow_map, 0));
    float sum = 0.0;
    sum += texture(shadow_map, vec3(p.xy + t * vec2(-1.3, -0.5), p.z));
    sum += texture(shadow_map, vec3(p.xy + t * vec2(0.5, -1.3), p.z));
    sum += texture(shadow_map, vec3(p.xy + t * vec2(1.3, 0.5), p.z));
    sum += texture(shadow_map, vec3(p.xy + t * vec2(-0.5, 1.3), p.z));
    return sum * 0.25;
}

vec3 shade(vec3 albedo, vec3 normal, vec3 to_eye, float open_share, float gloss) {
    float key = max(dot(normal, light), 0.0) * open_share;
    float fill = max(dot(normal, fill_light), 0.0);
    vec3 ambient = mix(vec3(0.22, 0.205, 0.20), vec3(0.39, 0.42, 0.47), 0.5 + 0.5 * normal.z);
    vec3 color = albedo * (vec3(0.88, 0.85, 0.80) * key + 0.20 * fill + ambient);
    float glint = pow(max(dot(normal, normalize(light + to_eye)), 0.0), 48.0);
    return color + gloss * glint * open_share;
}

vec3 encode(vec3 c) {  // linear to sRGB, with a soft shoulder near white
    c = mix(c, 1.0 - exp(-(c - 0.7) / 0.3) * 0.3, step(0.7, c));
    return mix(12.92 * c, 1.055 * pow(max(c, 0.0), vec3(1.0 / 2.4)) - 0.055, step(0.0031308, c));
}
"""

BACKGROUND = """
vec3 background(float height) {  // 0 at the bottom of the picture, 1 at the top
    return mix(vec3(0.955, 0.957, 0.960), vec3(0.80, 0.855, 0.915), smoothstep(0.25, 1.15, height));
}
"""
