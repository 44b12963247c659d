// Points against shapes.
#include <algorithm>

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

// The point of an ellipse's or ellipsoid's surface that is nearest to a point with coordinates of zero or more, of axes
// in descending order (Eberly: Distance from a Point to an Ellipse, an Ellipsoid, or a Hyperellipsoid).
void nearest_of_ellipsoid(const double* e, const double* y, int count, double* x) {
  const int last = count - 1;
  if (y[last] > 0) {
    double r[3], z[3], out = -1, far = 0;
    for (int k = 0; k < count; ++k) {
      r[k] = (e[k] / e[last]) * (e[k] / e[last]);
      z[k] = y[k] / e[k];
      out += z[k] * z[k];
      far += r[k] * z[k] * r[k] * z[k];
    }
    double low = z[last] - 1, high = out < 0 ? 0 : std::sqrt(far) - 1, s = 0;
    for (int i = 0; i < 1100; ++i) {
      s = (low + high) / 2;
      if (s == low || s == high) break;
      double left = -1;
      for (int k = 0; k < count; ++k) left += (r[k] * z[k] / (s + r[k])) * (r[k] * z[k] / (s + r[k]));
      (left > 0 ? low : high) = s;
    }
    for (int k = 0; k < count; ++k) x[k] = r[k] * y[k] / (s + r[k]);
    return;
  }
  if (count == 1) {
    x[0] = e[0];
    return;
  }
  // In the plane of the longer axes: near the middle, the nearest point is above it.
  double left = 1;
  bool is_above = true;
  for (int k = 0; k < last; ++k) {
    const double numerator = e[k] * y[k], denominator = e[k] * e[k] - e[last] * e[last];
    if (numerator == 0 && denominator == 0) {
      x[k] = 0;
    } else if (numerator < denominator) {
      x[k] = numerator / denominator;
      left -= x[k] * x[k];
    } else {
      is_above = false;
    }
  }
  if (is_above && left > 0) {
    for (int k = 0; k < last; ++k) x[k] *= e[k];
    x[last] = e[last] * std::sqrt(left);
    return;
  }
  x[last] = 0;
  nearest_of_ellipsoid(e, y, last, x);
}

Nearest near_ellipsoid(const Shape& shape, const Vector& p) {
  int order[3] = {0, 1, 2};
  const Vector& r = shape.edges;
  std::sort(order, order + 3, [&](int i, int k) { return r[i] > r[k]; });
  double e[3], y[3], x[3], inside = 0;
  for (int k = 0; k < 3; ++k) {
    e[k] = r[order[k]];
    y[k] = std::abs(p[order[k]]);
    inside += (y[k] / e[k]) * (y[k] / e[k]);
  }
  nearest_of_ellipsoid(e, y, 3, x);
  Vector on, out;
  for (int k = 0; k < 3; ++k) {
    on[order[k]] = std::copysign(x[k], p[order[k]]);
    out[order[k]] = on[order[k]] / (e[k] * e[k]);
  }
  const double away = norm(p - on);
  return {inside < 1 ? -away : away, on, out * (1 / norm(out))};
}

Nearest near_cone(const Shape& shape, const Vector& p) {
  const double r = std::hypot(p.x, p.y), length = shape.tip - shape.low, slant = std::hypot(shape.radius, length);
  const Vector radial = r > 0 ? Vector{p.x / r, p.y / r, 0} : Vector{1, 0, 0};
  // In the half plane through the axis: the mantle from the rim to the tip, and the base.
  const double share =
      std::clamp(((shape.radius - r) * shape.radius + (p.z - shape.low) * length) / (slant * slant), 0.0, 1.0);
  const Vector mantle = radial * (shape.radius * (1 - share)) + Vector{0, 0, shape.low + share * length};
  const Vector base = radial * std::min(r, shape.radius) + Vector{0, 0, shape.low};
  const Vector side = radial * (length / slant) + Vector{0, 0, shape.radius / slant}, down{0, 0, -1};
  const bool is_side = norm(p - mantle) <= norm(p - base);
  const Vector &on = is_side ? mantle : base, &normal = is_side ? side : down;
  const bool is_inside = p.z >= shape.low && p.z <= shape.tip && r <= shape.radius * (shape.tip - p.z) / length;
  if (is_inside) return {-norm(p - on), on, normal};
  return outside(p, on, normal);
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
    case Shape::kEllipsoid:
      return near_ellipsoid(shape, p);
    case Shape::kCone:
      return near_cone(shape, p);
    case Shape::kPlane:
      return {p.z, {p.x, p.y, 0}, {0, 0, 1}};
    default:
      return near_mesh(shape, p);
  }
}

}  // namespace lapjoint::queries
