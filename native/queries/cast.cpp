// Rays against shapes.
#include "queries/shape.h"

namespace lapjoint::queries {

namespace {

// The part of a ray that is inside a convex shape, while it is found out side by side.
struct Clip {
  double enter = -kInfinity, leave = kInfinity;
  Vector normal;

  // The ray is inside from `in` to `out`; `side` is the normal where it enters.
  void cut(double in, double out, const Vector& side) {
    if (in > enter) enter = in, normal = side;
    leave = std::min(leave, out);
  }

  bool hit(const Ray& ray, double reach, Hit& hit) const {
    if (!(enter <= leave) || leave < 0 || enter > reach) return false;
    if (enter >= 0) {
      hit = {enter, normal};
      return true;
    }
    if (leave == 0) return false;  // it leaves from the surface
    hit = {0, -ray.direction};
    return true;
  }
};

bool cast_sphere(const Vector& centre, double radius, const Ray& ray, double reach, Hit& hit) {
  const Vector from = ray.origin - centre;
  const double along = dot(from, ray.direction);
  // From the point nearest to the centre, which keeps its digits where the sphere is far away.
  const Vector aside = from - ray.direction * along;
  const double left = radius * radius - dot(aside, aside);
  if (left < 0) return false;
  const double half = std::sqrt(left);
  Clip clip;
  clip.enter = -along - half, clip.leave = -along + half;
  clip.normal = (from + ray.direction * clip.enter) * (1 / radius);
  return clip.hit(ray, reach, hit);
}

bool cast_box(const Shape& shape, const Ray& ray, double reach, Hit& hit) {
  Clip clip;
  for (int k = 0; k < 3; ++k) {
    const double o = ray.origin[k], d = ray.direction[k], h = shape.edges[k];
    if (d == 0) {
      if (std::abs(o) > h) return false;
      continue;
    }
    Vector side;
    side[k] = d < 0 ? 1 : -1;
    clip.cut((-std::copysign(h, d) - o) / d, (std::copysign(h, d) - o) / d, side);
  }
  return clip.hit(ray, reach, hit);
}

// The endless tube about z. False: the ray never comes into it.
bool clip_tube(double radius, const Ray& ray, Clip& clip) {
  const Vector &o = ray.origin, &d = ray.direction;
  const double a = d.x * d.x + d.y * d.y;
  if (a == 0) return o.x * o.x + o.y * o.y <= radius * radius;
  const double moment = o.x * d.y - o.y * d.x, left = radius * radius * a - moment * moment;
  if (left < 0) return false;
  const double middle = -(o.x * d.x + o.y * d.y) / a, half = std::sqrt(left) / a, in = middle - half;
  clip.cut(in, middle + half, Vector{o.x + in * d.x, o.y + in * d.y, 0} * (1 / radius));
  return true;
}

bool cast_cylinder(const Shape& shape, const Ray& ray, double reach, Hit& hit) {
  Clip clip;
  if (!clip_tube(shape.radius, ray, clip)) return false;
  const double o = ray.origin.z, d = ray.direction.z;
  if (d == 0) {
    if (std::abs(o) > shape.half) return false;
  } else {
    clip.cut((-std::copysign(shape.half, d) - o) / d, (std::copysign(shape.half, d) - o) / d,
             {0, 0, d < 0 ? 1.0 : -1.0});
  }
  return clip.hit(ray, reach, hit);
}

bool cast_capsule(const Shape& shape, const Ray& ray, double reach, Hit& hit) {
  bool found = false;
  const auto take = [&](const Hit& one) {
    if (!found || one.distance < hit.distance) hit = one;
    found = true;
  };
  Hit one;
  Clip tube;
  if (clip_tube(shape.radius, ray, tube)) {
    const Vector &o = ray.origin, &d = ray.direction;
    const double at = std::max(tube.enter, 0.0);
    if (tube.enter != -kInfinity && std::abs(o.z + at * d.z) <= shape.half && tube.hit(ray, reach, one)) take(one);
    // Between its ends and along it.
    if (tube.enter == -kInfinity && std::abs(o.z) <= shape.half && o.x * o.x + o.y * o.y < shape.radius * shape.radius)
      take({0, -d});
  }
  for (const double end : {-shape.half, shape.half})
    if (cast_sphere({0, 0, end}, shape.radius, ray, reach, one)) take(one);
  return found;
}

bool cast_ellipsoid(const Shape& shape, const Ray& ray, double reach, Hit& hit) {
  const Vector &r = shape.edges, &o = ray.origin, &d = ray.direction;
  // As a ball of radius 1; distances along the ray stay what they are.
  const Vector from{o.x / r.x, o.y / r.y, o.z / r.z}, way{d.x / r.x, d.y / r.y, d.z / r.z};
  const double square = dot(way, way), along = dot(from, way) / square;
  const Vector aside = from - way * along;
  const double left = 1 - dot(aside, aside);
  if (left < 0) return false;
  const double half = std::sqrt(left / square);
  Clip clip;
  clip.enter = -along - half, clip.leave = -along + half;
  const Vector at = from + way * clip.enter, out{at.x / r.x, at.y / r.y, at.z / r.z};
  clip.normal = out * (1 / norm(out));
  return clip.hit(ray, reach, hit);
}

bool cast_cone(const Shape& shape, const Ray& ray, double reach, Hit& hit) {
  const Vector &o = ray.origin, &d = ray.direction;
  Clip clip;
  // Between its base and its tip.
  if (d.z == 0) {
    if (o.z < shape.low || o.z > shape.tip) return false;
  } else {
    const double base = (shape.low - o.z) / d.z, tip = (shape.tip - o.z) / d.z;
    clip.cut(std::min(base, tip), std::max(base, tip), {0, 0, d.z < 0 ? 1.0 : -1.0});
  }
  // Inside of the mantle: x^2 + y^2 <= (slope (tip - z))^2. The mantle goes on above the tip, upside down.
  const double slope = shape.radius / (shape.tip - shape.low), below = shape.tip - o.z;
  const double a = d.x * d.x + d.y * d.y - slope * slope * d.z * d.z;
  const double b = o.x * d.x + o.y * d.y + slope * slope * below * d.z;
  const double c = o.x * o.x + o.y * o.y - slope * slope * below * below;
  const auto normal_at = [&](double t) {
    const double x = o.x + t * d.x, y = o.y + t * d.y, r = std::hypot(x, y), length = std::hypot(1.0, slope);
    return r > 0 ? Vector{x / r / length, y / r / length, slope / length} : Vector{0, 0, 1};
  };
  const auto is_own = [&](double t) { return below - t * d.z >= 0; };
  if (a == 0) {
    if (b == 0) {
      if (c > 0) return false;
    } else if (b > 0) {
      clip.cut(-kInfinity, -c / (2 * b), {});
    } else {
      clip.cut(-c / (2 * b), kInfinity, normal_at(-c / (2 * b)));
    }
    return clip.hit(ray, reach, hit);
  }
  const double left = b * b - a * c;
  if (left < 0) return a < 0 && clip.hit(ray, reach, hit);
  // The two roots without a difference of equals.
  const double sum = -(b + std::copysign(std::sqrt(left), b));
  double first = sum / a, second = sum == 0 ? 0 : c / sum;
  if (first > second) std::swap(first, second);
  if (a > 0) {
    clip.cut(first, second, normal_at(first));
  } else if (is_own(first) && !(is_own(second) && first + second < 0)) {
    clip.cut(-kInfinity, first, {});
  } else {
    clip.cut(second, kInfinity, normal_at(second));
  }
  return clip.hit(ray, reach, hit);
}

bool cast_hull(const Shape& shape, const Ray& ray, double reach, Hit& hit) {
  Clip clip;
  for (const Shape::Plane& plane : shape.planes) {
    const double towards = dot(plane.normal, ray.direction), above = dot(plane.normal, ray.origin) - plane.offset;
    if (towards == 0) {
      if (above > 0) return false;
    } else if (towards < 0) {
      clip.cut(-above / towards, kInfinity, plane.normal);
    } else {
      clip.cut(-kInfinity, -above / towards, {});
    }
  }
  return clip.hit(ray, reach, hit);
}

bool cast_plane(const Ray& ray, double reach, Hit& hit) {
  const double o = ray.origin.z, d = ray.direction.z;
  if (o < 0 || (o == 0 && d == 0)) {
    hit = {0, -ray.direction};
    return true;
  }
  if (d >= 0) return false;
  hit = {-o / d, {0, 0, 1}};
  return hit.distance <= reach;
}

// The part of what is seen along a ray that does not depend on the triangle (Woop, Benthin and Wald: Watertight
// Ray/Triangle Intersection). Two triangles with a common edge leave nothing between them.
struct Shear {
  int x, y, z;
  double sx, sy, sz;

  explicit Shear(const Vector& d) {
    const Vector size = absolute(d);
    z = size.x >= size.y && size.x >= size.z ? 0 : size.y >= size.z ? 1 : 2;
    x = (z + 1) % 3, y = (z + 2) % 3;
    sx = d[x] / d[z], sy = d[y] / d[z], sz = 1 / d[z];
  }

  bool meets(const Shape::Triangle& triangle, const Vector& origin, double& distance) const {
    double u[3], v[3], w[3];
    for (int k = 0; k < 3; ++k) {
      const Vector p = triangle.corner[k] - origin;
      u[k] = p[x] - sx * p[z], v[k] = p[y] - sy * p[z], w[k] = sz * p[z];
    }
    const double a = u[2] * v[1] - v[2] * u[1], b = u[0] * v[2] - v[0] * u[2], c = u[1] * v[0] - v[1] * u[0];
    if ((a < 0 || b < 0 || c < 0) && (a > 0 || b > 0 || c > 0)) return false;
    const double sum = a + b + c;
    if (sum == 0) return false;
    distance = (a * w[0] + b * w[1] + c * w[2]) / sum;
    return distance >= 0;
  }
};

bool cast_mesh(const Shape& shape, const Ray& ray, double reach, Hit& hit) {
  const Shear shear(ray.direction);
  int found = -1;
  shape.tree.along(ray, reach, [&](int i, double longest) {
    double at;
    if (!shear.meets(shape.triangles[i], ray.origin, at) || at > longest) return longest;
    if (found < 0 || at < hit.distance || i < found) found = i, hit.distance = at;
    return at;
  });
  if (found < 0) return false;
  const Vector& normal = shape.triangles[found].normal;
  hit.normal = dot(normal, ray.direction) > 0 ? -normal : normal;
  return true;
}

bool cast_compound(const Shape& shape, const Ray& ray, double reach, Hit& hit) {
  int found = -1;
  shape.tree.along(ray, reach, [&](int i, double longest) {
    const Shape::Part& part = shape.parts[i];
    Hit one;
    const Ray seen(part.place.to_local(ray.origin), part.place.turn_back(ray.direction));
    if (!cast(*part.shape, seen, longest, one)) return longest;
    if (found >= 0 && one.distance == hit.distance && i > found) return longest;
    found = i, hit = {one.distance, part.place.turn(one.normal)};
    return one.distance;
  });
  return found >= 0;
}

}  // namespace

bool cast(const Shape& shape, const Ray& ray, double reach, Hit& hit) {
  switch (shape.kind) {
    case Shape::kSphere:
      return cast_sphere({}, shape.radius, ray, reach, hit);
    case Shape::kBox:
      return cast_box(shape, ray, reach, hit);
    case Shape::kCapsule:
      return cast_capsule(shape, ray, reach, hit);
    case Shape::kCylinder:
      return cast_cylinder(shape, ray, reach, hit);
    case Shape::kHull:
      return cast_hull(shape, ray, reach, hit);
    case Shape::kCompound:
      return cast_compound(shape, ray, reach, hit);
    case Shape::kEllipsoid:
      return cast_ellipsoid(shape, ray, reach, hit);
    case Shape::kCone:
      return cast_cone(shape, ray, reach, hit);
    case Shape::kPlane:
      return cast_plane(ray, reach, hit);
    default:
      return cast_mesh(shape, ray, reach, hit);
  }
}

}  // namespace lapjoint::queries
