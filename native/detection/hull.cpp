// The faces and edges of a convex hull.
//
// Points are moved by a hundred millionth of the size before the hull is made of triangles, one point after the other:
// then no four of them are in a plane, and no three on a line. Triangles that are in a plane but for a hundred
// thousandth become one face, with the points where they are.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "detection/polyhedron.h"

namespace lapjoint {

namespace {

using Vector = std::array<double, 3>;

constexpr double kMove = 1e-8, kFlat = 1e-5, kThin = 1e-4;

Vector operator-(const Vector& a, const Vector& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
Vector operator+(const Vector& a, const Vector& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
Vector operator*(const Vector& a, double s) { return {a[0] * s, a[1] * s, a[2] * s}; }
double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Vector cross(const Vector& a, const Vector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
double norm(const Vector& a) { return std::sqrt(dot(a, a)); }
Vector unit(const Vector& a) {
  const double length = norm(a);
  return length > 0 ? a * (1 / length) : Vector{0, 0, 1};
}
Vector across(const Vector& a) { return unit(std::abs(a[0]) < 0.6 ? cross(a, {1, 0, 0}) : cross(a, {0, 1, 0})); }

struct Triangle {
  std::array<int, 3> corner;
  Vector normal;
  double offset, area;
};

Triangle make(const std::vector<Vector>& points, int a, int b, int c) {
  const Vector twice = cross(points[b] - points[a], points[c] - points[a]);
  const Vector normal = unit(twice);
  return {{a, b, c}, normal, dot(normal, points[a]), norm(twice) / 2};
}

double size_of(const std::vector<Vector>& points) {
  Vector low = points[0], high = points[0];
  for (const Vector& p : points)
    for (int k = 0; k < 3; ++k) low[k] = std::min(low[k], p[k]), high[k] = std::max(high[k], p[k]);
  return norm(high - low);
}

// Four points that are far apart: the farthest from the first, from their line, from their plane.
std::array<int, 4> first_four(const std::vector<Vector>& points, Vector& flat, double& thickness) {
  const int count = static_cast<int>(points.size());
  const auto farthest = [&](auto&& away) {
    int best = 0;
    double most = -1;
    for (int i = 0; i < count; ++i)
      if (const double d = away(points[i]); d > most) most = d, best = i;
    return best;
  };
  const int a = farthest([&](const Vector& p) { return norm(p - points[0]); });
  const int b = farthest([&](const Vector& p) { return norm(p - points[a]); });
  const Vector line = unit(points[b] - points[a]);
  const int c = farthest([&](const Vector& p) { return norm(cross(p - points[a], line)); });
  flat = cross(line, points[c] - points[a]);
  flat = norm(flat) > kThin * 0.1 * norm(points[b] - points[a]) ? unit(flat) : across(line);
  const int d = farthest([&](const Vector& p) { return std::abs(dot(p - points[a], flat)); });
  thickness = std::abs(dot(points[d] - points[a], flat));
  return {a, b, c, d};
}

std::vector<Triangle> make_triangles(const std::vector<Vector>& points, const std::array<int, 4>& start) {
  auto [a, b, c, d] = start;
  if (dot(cross(points[b] - points[a], points[c] - points[a]), points[d] - points[a]) > 0) std::swap(b, c);
  std::vector<Triangle> hull = {make(points, a, b, c), make(points, a, c, d), make(points, a, d, b),
                                make(points, b, d, c)};
  std::set<std::pair<int, int>> rim;
  for (int i = 0; i < static_cast<int>(points.size()); ++i) {
    if (i == a || i == b || i == c || i == d) continue;
    const auto sees = [&](const Triangle& face) { return dot(face.normal, points[i]) > face.offset; };
    if (std::none_of(hull.begin(), hull.end(), sees)) continue;
    rim.clear();
    std::erase_if(hull, [&](const Triangle& face) {
      if (!sees(face)) return false;
      for (int k = 0; k < 3; ++k) {
        const int from = face.corner[k], to = face.corner[(k + 1) % 3];
        if (!rim.erase({to, from})) rim.insert({from, to});
      }
      return true;
    });
    for (const auto& [from, to] : rim) hull.push_back(make(points, from, to, i));
  }
  return hull;
}

// Which triangles are one face: the number of a face for each.
std::vector<int> merge(const std::vector<Vector>& points, const std::vector<Triangle>& hull,
                       const std::map<std::pair<int, int>, int>& owner, double flat) {
  std::vector<int> order(hull.size()), group(hull.size(), -1), open;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return hull[i].area > hull[j].area; });
  for (const int seed : order) {
    if (group[seed] >= 0) continue;
    const Triangle& base = hull[seed];
    const Vector normal =
        unit(cross(points[base.corner[1]] - points[base.corner[0]], points[base.corner[2]] - points[base.corner[0]]));
    const double offset = dot(normal, points[base.corner[0]]);
    group[seed] = seed;
    open.assign(1, seed);
    while (!open.empty()) {
      const Triangle& at = hull[open.back()];
      open.pop_back();
      for (int k = 0; k < 3; ++k) {
        const auto twin = owner.find({at.corner[(k + 1) % 3], at.corner[k]});
        if (twin == owner.end() || group[twin->second] >= 0) continue;
        const auto& corner = hull[twin->second].corner;
        if (std::any_of(corner.begin(), corner.end(),
                        [&](int i) { return std::abs(dot(normal, points[i]) - offset) > flat; }))
          continue;
        group[twin->second] = seed;
        open.push_back(twin->second);
      }
    }
  }
  return group;
}

// The corners around each face. Corners that only two faces have are on a straight edge, and left out.
std::vector<std::vector<int>> make_loops(const std::vector<Vector>& points, const std::vector<Triangle>& hull,
                                         double flat) {
  std::map<std::pair<int, int>, int> owner;
  for (int i = 0; i < static_cast<int>(hull.size()); ++i)
    for (int k = 0; k < 3; ++k) owner[{hull[i].corner[k], hull[i].corner[(k + 1) % 3]}] = i;
  std::vector<int> group = merge(points, hull, owner, flat);

  std::map<int, std::vector<int>> members;
  for (int i = 0; i < static_cast<int>(hull.size()); ++i) members[group[i]].push_back(i);
  std::vector<std::vector<int>> loops;
  for (const auto& [seed, triangles] : members) {
    std::map<int, int> next;
    std::size_t border = 0;
    for (const int i : triangles) {
      for (int k = 0; k < 3; ++k) {
        const int from = hull[i].corner[k], to = hull[i].corner[(k + 1) % 3];
        const auto twin = owner.find({to, from});
        if (twin != owner.end() && group[twin->second] == seed) continue;
        next[from] = to;
        ++border;
      }
    }
    std::vector<int> loop;
    if (!next.empty()) {
      int at = next.begin()->first;
      do {
        loop.push_back(at);
        const auto step = next.find(at);
        at = step == next.end() ? -1 : step->second;
      } while (at >= 0 && at != loop[0] && loop.size() <= border);
    }
    if (loop.size() == border && border >= 3) {
      loops.push_back(loop);
    } else {  // no ring: the triangles as they are
      for (const int i : triangles) loops.emplace_back(hull[i].corner.begin(), hull[i].corner.end());
    }
  }
  std::vector<int> uses(points.size(), 0);
  for (const auto& loop : loops)
    for (const int i : loop) ++uses[i];
  for (auto& loop : loops) {
    std::vector<int> bends;
    std::copy_if(loop.begin(), loop.end(), std::back_inserter(bends), [&](int i) { return uses[i] > 2; });
    if (bends.size() >= 3) loop.swap(bends);
  }
  return loops;
}

btVector3 rounded(const Vector& v) { return {btScalar(v[0]), btScalar(v[1]), btScalar(v[2])}; }

}  // namespace

Polyhedron Polyhedron::hull(const double* given, int count, double scale) {
  std::vector<Vector> points(count);
  for (int i = 0; i < count; ++i)
    points[i] = {given[3 * i] / scale, given[3 * i + 1] / scale, given[3 * i + 2] / scale};
  const double size = std::max(size_of(points), 1e-9);
  Vector flat;
  double thickness;
  for (int turn = 0; turn < 3; ++turn) {
    first_four(points, flat, thickness);
    if (thickness >= kThin * size) break;
    const std::size_t before = points.size();
    for (std::size_t i = 0; i < before; ++i) {
      points.push_back(points[i] - flat * (kThin * size));
      points[i] = points[i] + flat * (kThin * size);
    }
  }
  std::vector<Vector> moved = points;
  std::uint64_t random = 0x9E3779B97F4A7C15u;
  for (Vector& p : moved) {
    for (double& value : p) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      value += kMove * size * (double(random >> 11) * 0x1p-53 - 0.5);
    }
  }
  const std::vector<Triangle> triangles = make_triangles(moved, first_four(moved, flat, thickness));
  const auto loops = make_loops(points, triangles, kFlat * size);

  Polyhedron made;
  std::vector<int> number(points.size(), -1);
  for (const auto& loop : loops)
    for (const int i : loop) number[i] = 0;
  std::vector<Vector> corners;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (number[i] < 0) continue;
    number[i] = static_cast<int>(corners.size());
    corners.push_back(points[i]);
    made.corners.push_back(rounded(points[i]));
  }
  for (const auto& loop : loops) {
    Vector sum{0, 0, 0};
    for (std::size_t k = 1; k + 1 < loop.size(); ++k)
      sum = sum + cross(points[loop[k]] - points[loop[0]], points[loop[k + 1]] - points[loop[0]]);
    const Vector normal = norm(sum) > 1e-12 * size * size
                              ? unit(sum)
                              : make(moved, loop[0], loop[1], loop[2]).normal;  // a sliver: as it was made
    double offset = -1e300;
    for (const Vector& p : corners) offset = std::max(offset, dot(normal, p));
    made.faces.push_back(
        {rounded(normal), btScalar(offset), static_cast<int>(made.loops.size()), static_cast<int>(loop.size())});
    for (const int i : loop) made.loops.push_back(number[i]);
  }
  made.finish();
  return made;
}

Polyhedron Polyhedron::box(const btVector3& half) {
  Polyhedron made;
  for (int i = 0; i < 8; ++i)
    made.corners.emplace_back(i & 1 ? half.x() : -half.x(), i & 2 ? half.y() : -half.y(), i & 4 ? half.z() : -half.z());
  constexpr int kLoops[6][4] = {{1, 3, 7, 5}, {0, 4, 6, 2}, {2, 6, 7, 3}, {0, 1, 5, 4}, {4, 5, 7, 6}, {0, 2, 3, 1}};
  for (int f = 0; f < 6; ++f) {
    btVector3 normal(0, 0, 0);
    normal[f / 2] = btScalar(f % 2 ? -1 : 1);
    made.faces.push_back({normal, half[f / 2], 4 * f, 4});
    made.loops.insert(made.loops.end(), kLoops[f], kLoops[f] + 4);
  }
  made.finish();
  return made;
}

namespace {

// A disc that faces up (1) or down (-1), so far above or below the origin.
void add_disc(int up, btScalar radius, btScalar away, Polyhedron& into) {
  constexpr int kSides = 24;
  const int first = static_cast<int>(into.corners.size());
  into.faces.push_back({btVector3(0, 0, btScalar(up)), away, first, kSides});
  for (int k = 0; k < kSides; ++k) {
    const btScalar angle = btScalar(up * k) * SIMD_2_PI / kSides;
    into.corners.emplace_back(radius * btCos(angle), radius * btSin(angle), btScalar(up) * away);
    into.loops.push_back(first + k);
  }
}

}  // namespace

Polyhedron Polyhedron::ends(btScalar radius, btScalar half) {
  Polyhedron made;
  add_disc(1, radius, half, made);
  add_disc(-1, radius, half, made);
  made.finish();
  return made;
}

Polyhedron Polyhedron::base(btScalar radius, btScalar below) {
  Polyhedron made;
  add_disc(-1, radius, below, made);
  made.finish();
  return made;
}

void Polyhedron::make_triangle(const btVector3* corner, Polyhedron& into) {
  const btVector3 across = (corner[1] - corner[0]).cross(corner[2] - corner[0]);
  const btVector3 normal = across.length2() > 0 ? across.normalized() : btVector3(0, 0, 1);
  if (into.corners.empty()) {
    into.corners.assign(corner, corner + 3);
    into.faces = {{normal, 0, 0, 3}, {-normal, 0, 3, 3}};
    into.loops = {0, 1, 2, 0, 2, 1};
    into.finish();
  }
  into.edges.resize(3);
  into.centre = (corner[0] + corner[1] + corner[2]) / 3;
  into.faces[0].normal = normal;
  into.faces[0].offset = normal.dot(corner[0]);
  into.faces[1].normal = -normal;
  into.faces[1].offset = -into.faces[0].offset;
  for (int k = 0; k < 3; ++k) {
    const btVector3 edge = corner[(k + 1) % 3] - corner[k];
    const btScalar length = edge.length();
    const btVector3 along = length > 0 ? edge / length : btVector3(0, 0, 0), side = along.cross(normal);
    into.corners[k] = corner[k];
    into.edges[k] = {corner[k], along, normal, -normal, length, k, (k + 1) % 3};
    into.sides[k] = side;
    into.sides[3 + (5 - k) % 3] = side;  // the other face goes round the other way
  }
  for (int i = 0; i < 8; ++i) {
    const btVector3& p = corner[std::min(i, 2)];
    into.x[i] = p.x(), into.y[i] = p.y(), into.z[i] = p.z();
  }
}

void Polyhedron::finish() {
  centre.setValue(0, 0, 0);
  for (const btVector3& p : corners) centre += p;
  centre /= btScalar(corners.size());
  inner = BT_LARGE_FLOAT;
  for (const Face& face : faces) inner = std::min(inner, face.offset - face.normal.dot(centre));
  inner = std::max(inner, btScalar(0));

  std::map<std::pair<int, int>, int> owner;
  std::vector<std::vector<int>> around(corners.size());
  for (int f = 0; f < static_cast<int>(faces.size()); ++f) {
    const Face& face = faces[f];
    for (int k = 0; k < face.count; ++k) {
      const int from = loops[face.first + k], to = loops[face.first + (k + 1) % face.count];
      owner[{from, to}] = f;
      around[from].push_back(f);
      const btVector3 side = (corners[to] - corners[from]).cross(face.normal);
      sides.push_back(side.length2() > 0 ? side.normalized() : btVector3(0, 0, 0));
    }
  }
  for (const auto& [ends, left] : owner) {
    const auto twin = owner.find({ends.second, ends.first});
    if (twin == owner.end() || ends.first > ends.second) continue;
    const btVector3 along = corners[ends.second] - corners[ends.first];
    const btScalar length = along.length();
    if (length > 0)
      edges.push_back({corners[ends.first], along / length, faces[left].normal, faces[twin->second].normal, length,
                       ends.first, ends.second});
  }
  corner_first.assign(1, 0);
  corner_faces.clear();
  for (const auto& list : around) {
    corner_faces.insert(corner_faces.end(), list.begin(), list.end());
    corner_first.push_back(static_cast<int>(corner_faces.size()));
  }
  const std::size_t padded = (corners.size() + 7) / 8 * 8;
  for (auto* list : {&x, &y, &z}) list->resize(padded);
  for (std::size_t i = 0; i < padded; ++i) {
    const btVector3& p = corners[std::min(i, corners.size() - 1)];
    x[i] = p.x(), y[i] = p.y(), z[i] = p.z();
  }
}

btScalar Polyhedron::least_along(const btVector3& direction) const {
  const btScalar dx = direction.x(), dy = direction.y(), dz = direction.z();
  btScalar least[8];
  std::fill(least, least + 8, BT_LARGE_FLOAT);
  for (std::size_t i = 0; i < x.size(); i += 8) {
    for (int k = 0; k < 8; ++k) {
      const btScalar value = dx * x[i + k] + dy * y[i + k] + dz * z[i + k];
      least[k] = value < least[k] ? value : least[k];
    }
  }
  return *std::min_element(least, least + 8);
}

int Polyhedron::corner_along(const btVector3& direction) const {
  const btScalar dx = direction.x(), dy = direction.y(), dz = direction.z();
  int best = 0;
  btScalar least = BT_LARGE_FLOAT;
  for (int i = 0; i < static_cast<int>(corners.size()); ++i) {
    const btScalar value = dx * x[i] + dy * y[i] + dz * z[i];
    if (value < least) least = value, best = i;
  }
  return best;
}

}  // namespace lapjoint
