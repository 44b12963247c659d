// Points against shapes.
#include "queries/shape.h"
#include "queries/triangle.h"

namespace lapjoint::queries {

namespace {

// Around a point of the shape's middle, at `radius`; `upright` is the normal where the point is in that middle.
Nearest around(const Vector& middle, double radius, const Vector& point, const Vector& upright) {
  const Vector out = point - middle;
  const double length = norm(out);
  const Vector normal = length > 0 ? out * (1 / length) : upright;
  return {length - radius, middle + normal * radius, normal};
}

// From a point outside to the nearest one of the surface.
Nearest outside(const Vector& point, const Vector& on, const Vector& normal_where_it_touches) {
  const Vector out = point - on;
  const double length = norm(out);
  return {length, on, length > 0 ? out * (1 / length) : normal_where_it_touches};
}

Nearest near_box(const Shape& shape, const Vector& p) {
  const Vector& h = shape.edges;
  int axis = 0;
  for (int k = 1; k < 3; ++k)
    if (std::abs(p[k]) - h[k] > std::abs(p[axis]) - h[axis]) axis = k;
  Vector normal;
  normal[axis] = p[axis] < 0 ? -1 : 1;
  const double out = std::abs(p[axis]) - h[axis];
  if (out <= 0) {
    Vector on = p;
    on[axis] = normal[axis] * h[axis];
    return {out, on, normal};
  }
  return outside(p, least(most(p, -h), h), normal);
}

Nearest near_cylinder(const Shape& shape, const Vector& p) {
  const double r = std::hypot(p.x, p.y), side = r - shape.radius, end = std::abs(p.z) - shape.half;
  const Vector radial = r > 0 ? Vector{p.x / r, p.y / r, 0} : Vector{1, 0, 0};
  const Vector up{0, 0, p.z < 0 ? -1.0 : 1.0};
  if (side <= 0 && end <= 0) {
    if (side >= end) return {side, Vector{0, 0, p.z} + radial * shape.radius, radial};
    return {end, Vector{p.x, p.y, 0} + up * shape.half, up};
  }
  const Vector on = radial * std::min(r, shape.radius) + up * std::min(std::abs(p.z), shape.half);
  return outside(p, on, side >= end ? radial : up);
}

Nearest near_hull(const Shape& shape, const Vector& p) {
  int best = 0;
  double out = -kInfinity;
  for (std::size_t i = 0; i < shape.planes.size(); ++i) {
    const double above = dot(shape.planes[i].normal, p) - shape.planes[i].offset;
    if (above > out) out = above, best = static_cast<int>(i);
  }
  const Vector& normal = shape.planes[best].normal;
  if (out <= 0) return {out, p - normal * out, normal};
  Vector on;
  double least2 = kInfinity;
  for (const Shape::Triangle& triangle : shape.triangles) {
    const Vector q = nearest_of_triangle(triangle.corner, p);
    const double away = dot(p - q, p - q);
    if (away < least2) least2 = away, on = q;
  }
  return outside(p, on, normal);
}

Nearest near_mesh(const Shape& shape, const Vector& p) {
  Nearest found{kInfinity, {}, {}};
  int best = -1;
  shape.tree.near(p, kInfinity, [&](int i, double distance) {
    const Nearest one = outside(p, nearest_of_triangle(shape.triangles[i].corner, p), shape.triangles[i].normal);
    if (one.distance < found.distance || (one.distance == found.distance && i < best)) found = one, best = i;
    return std::min(distance, one.distance);
  });
  return found;
}

Nearest near_compound(const Shape& shape, const Vector& p) {
  Nearest found{kInfinity, {}, {}};
  int best = -1;
  shape.tree.near(p, kInfinity, [&](int i, double distance) {
    const Shape::Part& part = shape.parts[i];
    const Nearest one = nearest(*part.shape, part.place.to_local(p));
    if (one.distance < found.distance || (one.distance == found.distance && i < best)) {
      best = i;
      found = {one.distance, part.place.to_world(one.point), part.place.turn(one.normal)};
    }
    return std::min(distance, one.distance);
  });
  return found;
}

}  // namespace

Nearest nearest(const Shape& shape, const Vector& p) {
  switch (shape.kind) {
    case Shape::kSphere:
      return around({}, shape.radius, p, {0, 0, 1});
    case Shape::kBox:
      return near_box(shape, p);
    case Shape::kCapsule:
      return around({0, 0, std::clamp(p.z, -shape.half, shape.half)}, shape.radius, p, {1, 0, 0});
    case Shape::kCylinder:
      return near_cylinder(shape, p);
    case Shape::kHull:
      return near_hull(shape, p);
    case Shape::kCompound:
      return near_compound(shape, p);
    case Shape::kPlane:
      return {p.z, {p.x, p.y, 0}, {0, 0, 1}};
    default:
      return near_mesh(shape, p);
  }
}

}  // namespace lapjoint::queries
