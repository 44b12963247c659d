// Whether two shapes have a point in common. Two convex ones: the algorithm of Gilbert, Johnson and Keerthi on their
// cores, which spheres and capsules have a radius around.
#include <array>

#include "queries/shape.h"
#include "queries/triangle.h"

namespace lapjoint::queries {

namespace {

constexpr int kMostTurns = 128;

// A convex set of which only the farthest points are known.
struct Core {
  const Shape* shape;     // or
  const Vector* corners;  // of a triangle
  Place place;
  double radius;

  static Core of(const Shape& shape, const Place& place) {
    const bool round = shape.kind == Shape::kSphere || shape.kind == Shape::kCapsule;
    return {&shape, nullptr, place, round ? shape.radius : 0};
  }

  Vector farthest(const Vector& direction) const {
    if (corners) {
      int best = 0;
      for (int k = 1; k < 3; ++k)
        if (dot(corners[k], direction) > dot(corners[best], direction)) best = k;
      return corners[best];
    }
    return place.to_world(farthest_of_shape(place.turn_back(direction)));
  }

  Vector farthest_of_shape(const Vector& d) const {
    const double up = std::copysign(shape->half, d.z);
    switch (shape->kind) {
      case Shape::kSphere:
        return {};
      case Shape::kBox:
        return {std::copysign(shape->edges.x, d.x), std::copysign(shape->edges.y, d.y),
                std::copysign(shape->edges.z, d.z)};
      case Shape::kCapsule:
        return {0, 0, up};
      case Shape::kCylinder: {
        const double length = std::hypot(d.x, d.y);
        return length > 0 ? Vector{shape->radius * d.x / length, shape->radius * d.y / length, up} : Vector{0, 0, up};
      }
      case Shape::kEllipsoid: {
        const Vector& r = shape->edges;
        const Vector along{r.x * d.x, r.y * d.y, r.z * d.z};
        const double length = norm(along);
        if (!(length > 0)) return {r.x, 0, 0};
        return Vector{r.x * along.x, r.y * along.y, r.z * along.z} * (1 / length);
      }
      case Shape::kCone: {
        const double length = std::hypot(d.x, d.y);
        if (shape->tip * d.z > shape->low * d.z + shape->radius * length) return {0, 0, shape->tip};
        if (!(length > 0)) return {0, 0, shape->low};
        return {shape->radius * d.x / length, shape->radius * d.y / length, shape->low};
      }
      default: {
        int best = 0;
        double most_along = -kInfinity;
        for (std::size_t i = 0; i < shape->points.size(); ++i)
          if (const double along = dot(shape->points[i], d); along > most_along) most_along = along, best = int(i);
        return shape->points[best];
      }
    }
  }
};

// Up to four points of the difference of two sets, and the point of their hull that is nearest to the origin.
struct Simplex {
  std::array<Vector, 4> point;
  int count = 0;

  bool has(const Vector& p) const {
    for (int i = 0; i < count; ++i)
      if (point[i].x == p.x && point[i].y == p.y && point[i].z == p.z) return true;
    return false;
  }

  // That point; of the others, only those that it is made of are kept. `inside`: the origin is in a tetrahedron.
  Vector reduce(bool& inside) {
    inside = false;
    if (count == 1) return point[0];
    if (count == 2) return of_segment();
    if (count == 3) return of_triangle({point[0], point[1], point[2]});
    return of_tetrahedron(inside);
  }

  Vector of_segment() {
    const Vector ab = point[1] - point[0];
    const double along = -dot(point[0], ab), length2 = dot(ab, ab);
    if (along <= 0 || length2 == 0) {
      count = 1;
      return point[0];
    }
    if (along >= length2) {
      point[0] = point[1], count = 1;
      return point[0];
    }
    return point[0] + ab * (along / length2);
  }

  Vector of_triangle(const std::array<Vector, 3>& corner) {
    double share[3];
    const Vector found = nearest_of_triangle(corner.data(), {}, share);
    count = 0;
    for (int k = 0; k < 3; ++k)
      if (share[k] > 0) point[count++] = corner[k];
    return found;
  }

  Vector of_tetrahedron(bool& inside) {
    const std::array<Vector, 4> p = point;
    constexpr int kFaces[4][4] = {{0, 1, 2, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {1, 3, 2, 0}};
    Vector best;
    double least2 = kInfinity;
    int face = -1;
    inside = true;
    for (int f = 0; f < 4; ++f) {
      const auto [a, b, c, d] = kFaces[f];
      const Vector normal = cross(p[b] - p[a], p[c] - p[a]);
      const double origin = -dot(normal, p[a]), other = dot(normal, p[d] - p[a]);
      // Behind this face, with the fourth point; a flat tetrahedron has no inside.
      if (other != 0 && (origin > 0) == (other > 0) && origin != 0) continue;
      inside = inside && origin == 0 && other != 0;
      const Vector corner[3] = {p[a], p[b], p[c]};
      const Vector found = nearest_of_triangle(corner, {});
      if (const double away = dot(found, found); away < least2) least2 = away, best = found, face = f;
    }
    if (face < 0 || inside) {
      inside = true;
      return {};
    }
    return of_triangle({p[kFaces[face][0]], p[kFaces[face][1]], p[kFaces[face][2]]});
  }
};

bool cores_overlap(const Core& a, const Core& b) {
  const double radius = a.radius + b.radius;
  const auto difference = [&](const Vector& direction) { return a.farthest(direction) - b.farthest(-direction); };
  Simplex simplex;
  Vector nearest = difference(b.place.origin - a.place.origin);
  simplex.point[simplex.count++] = nearest;
  double before = kInfinity;
  for (int turn = 0; turn < kMostTurns; ++turn) {
    const double away2 = dot(nearest, nearest);
    if (away2 <= radius * radius || away2 == 0) return true;
    if (away2 >= before) return false;  // as near as the numbers allow
    before = away2;
    const Vector next = difference(-nearest);
    const double along = dot(nearest, next);
    // All of the difference is at least so far away.
    if (along > 0 && along * along > radius * radius * away2) return false;
    if (away2 - along <= 1e-15 * away2 || simplex.has(next)) return false;
    simplex.point[simplex.count++] = next;
    bool inside;
    nearest = simplex.reduce(inside);
    if (inside) return true;
  }
  return false;
}

bool convex_overlap(const Shape& a, const Place& at_a, const Shape& b, const Place& at_b) {
  if (a.kind == Shape::kSphere) return nearest(b, at_b.to_local(at_a.origin)).distance <= a.radius;
  if (b.kind == Shape::kSphere) return nearest(a, at_a.to_local(at_b.origin)).distance <= b.radius;
  // Seen from the first, so that a place far from the origin costs no digits.
  return cores_overlap(Core::of(a, {}), Core::of(b, at_a.seen(at_b)));
}

// The least height of a convex shape over a plane.
bool below_plane(const Shape& a, const Place& seen) {
  const Core core = Core::of(a, seen);
  return core.farthest({0, 0, -1}).z <= core.radius;
}

bool meets_mesh(const Shape& a, const Place& seen, const Shape& mesh) {
  bool found = false;
  const Core core = Core::of(a, seen);
  mesh.tree.within(a.box_at(seen), [&](int i) {
    if (found) return;
    const Vector* corner = mesh.triangles[i].corner;
    if (a.kind == Shape::kSphere) {
      const Vector out = nearest_of_triangle(corner, seen.origin) - seen.origin;
      found = dot(out, out) <= a.radius * a.radius;
      return;
    }
    Place middle;
    middle.origin = (corner[0] + corner[1] + corner[2]) * (1.0 / 3);
    found = cores_overlap(core, {nullptr, corner, middle, 0});
  });
  return found;
}

}  // namespace

bool overlap(const Shape& a, const Place& at_a, const Shape& b, const Place& at_b) {
  if (!a.is_convex() && (b.is_convex() || a.kind != Shape::kCompound)) return overlap(b, at_b, a, at_a);
  if (a.kind == Shape::kCompound) {
    bool found = false;
    const Box box = b.is_bounded() ? b.box_at(at_a.seen(at_b))
                                   : Box{{-kInfinity, -kInfinity, -kInfinity}, {kInfinity, kInfinity, kInfinity}};
    a.tree.within(box, [&](int i) { found = found || overlap(*a.parts[i].shape, at_a * a.parts[i].place, b, at_b); });
    return found;
  }
  if (b.kind == Shape::kPlane) return below_plane(a, at_b.seen(at_a));
  if (b.kind == Shape::kMesh) return meets_mesh(a, at_b.seen(at_a), b);
  if (b.kind == Shape::kCompound) {
    bool found = false;
    b.tree.within(a.box_at(at_b.seen(at_a)),
                  [&](int i) { found = found || overlap(a, at_a, *b.parts[i].shape, at_b * b.parts[i].place); });
    return found;
  }
  return convex_overlap(a, at_a, b, at_b);
}

}  // namespace lapjoint::queries
