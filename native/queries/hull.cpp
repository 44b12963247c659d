// The faces of a convex hull, one point after the other. Points are moved by a ten thousand millionth of the size while
// it is found out who is a corner, so that no four of them are in a plane; faces are those of the points as given, and
// as far out as the farthest of them.
#include <array>
#include <cstdint>
#include <set>
#include <utility>

#include "queries/shape.h"

namespace lapjoint::queries {

namespace {

constexpr double kMove = 1e-10;

struct Face {
  std::array<int, 3> corner;
  Vector normal;
  double offset;
};

Vector unit(const Vector& a) {
  const double length = norm(a);
  return length > 0 ? a * (1 / length) : Vector{0, 0, 1};
}

Face face_of(const std::vector<Vector>& points, int a, int b, int c) {
  const Vector normal = unit(cross(points[b] - points[a], points[c] - points[a]));
  return {{a, b, c}, normal, dot(normal, points[a])};
}

// Four points that are far apart: the farthest from the first, from their line, from their plane.
std::array<int, 4> first_four(const std::vector<Vector>& points) {
  const auto farthest = [&](auto&& away) {
    int best = 0;
    double longest = -1;
    for (int i = 0; i < static_cast<int>(points.size()); ++i)
      if (const double d = away(points[i]); d > longest) longest = d, best = i;
    return best;
  };
  const int a = farthest([&](const Vector& p) { return norm(p - points[0]); });
  const int b = farthest([&](const Vector& p) { return norm(p - points[a]); });
  const Vector line = unit(points[b] - points[a]);
  const int c = farthest([&](const Vector& p) { return norm(cross(p - points[a], line)); });
  const Vector flat = unit(cross(line, points[c] - points[a]));
  const int d = farthest([&](const Vector& p) { return std::abs(dot(p - points[a], flat)); });
  return {a, b, c, d};
}

}  // namespace

void make_hull(const std::vector<Vector>& points, Shape& into) {
  const double size = norm(into.box.high - into.box.low);
  std::vector<Vector> moved = points;
  std::uint64_t random = 0x9E3779B97F4A7C15u;
  for (Vector& p : moved) {
    for (int k = 0; k < 3; ++k) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      p[k] += kMove * size * (static_cast<double>(random >> 11) * 0x1p-53 - 0.5);
    }
  }
  auto [a, b, c, d] = first_four(moved);
  if (dot(cross(moved[b] - moved[a], moved[c] - moved[a]), moved[d] - moved[a]) > 0) std::swap(b, c);
  std::vector<Face> hull = {face_of(moved, a, b, c), face_of(moved, a, c, d), face_of(moved, a, d, b),
                            face_of(moved, b, d, c)};
  std::set<std::pair<int, int>> rim;
  for (int i = 0; i < static_cast<int>(points.size()); ++i) {
    if (i == a || i == b || i == c || i == d) continue;
    rim.clear();
    std::erase_if(hull, [&](const Face& face) {
      if (dot(face.normal, moved[i]) <= face.offset) return false;
      for (int k = 0; k < 3; ++k) {
        const int from = face.corner[k], to = face.corner[(k + 1) % 3];
        if (!rim.erase({to, from})) rim.insert({from, to});
      }
      return true;
    });
    for (const auto& [from, to] : rim) hull.push_back(face_of(moved, from, to, i));
  }

  std::vector<bool> is_corner(points.size(), false);
  for (const Face& face : hull) {
    Shape::Triangle triangle;
    for (int k = 0; k < 3; ++k) {
      triangle.corner[k] = points[face.corner[k]];
      is_corner[face.corner[k]] = true;
    }
    const Vector across = cross(triangle.corner[1] - triangle.corner[0], triangle.corner[2] - triangle.corner[0]);
    // Of points on a line nothing is left but the edge, which other faces have; its normal would be anything.
    if (norm(across) <= 1e-7 * size * size && hull.size() > 4) {
      const Vector e0 = triangle.corner[1] - triangle.corner[0], e1 = triangle.corner[2] - triangle.corner[1],
                   e2 = triangle.corner[0] - triangle.corner[2];
      const double longest = std::sqrt(std::max({dot(e0, e0), dot(e1, e1), dot(e2, e2)}));
      if (norm(across) <= 1e-7 * size * longest) continue;
    }
    triangle.normal = unit(across);
    double offset = -kInfinity;
    for (const Vector& p : points) offset = std::max(offset, dot(triangle.normal, p));
    into.triangles.push_back(triangle);
    into.planes.push_back({triangle.normal, offset});
  }
  for (std::size_t i = 0; i < points.size(); ++i)
    if (is_corner[i]) into.points.push_back(points[i]);
}

}  // namespace lapjoint::queries
