// Vectors, rotations and boxes in double precision, for what is asked of a scene. They know no engine.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace lapjoint::queries {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Vector {
  double x = 0, y = 0, z = 0;
  double operator[](int k) const { return k == 0 ? x : k == 1 ? y : z; }
  double& operator[](int k) { return k == 0 ? x : k == 1 ? y : z; }
};

inline Vector vector(const double* xyz) { return {xyz[0], xyz[1], xyz[2]}; }
inline Vector operator+(const Vector& a, const Vector& b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
inline Vector operator-(const Vector& a, const Vector& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
inline Vector operator-(const Vector& a) { return {-a.x, -a.y, -a.z}; }
inline Vector operator*(const Vector& a, double s) { return {a.x * s, a.y * s, a.z * s}; }
inline double dot(const Vector& a, const Vector& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline Vector cross(const Vector& a, const Vector& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
inline double norm(const Vector& a) { return std::sqrt(dot(a, a)); }
inline Vector least(const Vector& a, const Vector& b) {
  return {std::min(a.x, b.x), std::min(a.y, b.y), std::min(a.z, b.z)};
}
inline Vector most(const Vector& a, const Vector& b) {
  return {std::max(a.x, b.x), std::max(a.y, b.y), std::max(a.z, b.z)};
}
inline Vector absolute(const Vector& a) { return {std::abs(a.x), std::abs(a.y), std::abs(a.z)}; }

// Where something is: its frame's axes, as columns, and its origin.
struct Place {
  Vector column[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  Vector origin;

  // Position and quaternion w x y z, which is a rotation but for its length.
  static Place of(const double* place) {
    double w = place[3], x = place[4], y = place[5], z = place[6];
    const double scale = 1 / std::sqrt(w * w + x * x + y * y + z * z);
    w *= scale, x *= scale, y *= scale, z *= scale;
    return {{{1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)},
             {2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)},
             {2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)}},
            vector(place)};
  }

  Vector turn(const Vector& v) const { return column[0] * v.x + column[1] * v.y + column[2] * v.z; }
  Vector turn_back(const Vector& v) const { return {dot(column[0], v), dot(column[1], v), dot(column[2], v)}; }
  Vector to_world(const Vector& v) const { return turn(v) + origin; }
  Vector to_local(const Vector& v) const { return turn_back(v - origin); }
  // Half edges of the box around a turned one.
  Vector reach(const Vector& half) const {
    return absolute(column[0]) * half.x + absolute(column[1]) * half.y + absolute(column[2]) * half.z;
  }
  Place operator*(const Place& inner) const {
    return {{turn(inner.column[0]), turn(inner.column[1]), turn(inner.column[2])}, to_world(inner.origin)};
  }
  // Where `other` is, seen from here.
  Place seen(const Place& other) const {
    return {{turn_back(other.column[0]), turn_back(other.column[1]), turn_back(other.column[2])},
            to_local(other.origin)};
  }
};

struct Box {
  Vector low{kInfinity, kInfinity, kInfinity}, high{-kInfinity, -kInfinity, -kInfinity};

  static Box around(const Vector& centre, const Vector& half) { return {centre - half, centre + half}; }
  void add(const Vector& p) { low = least(low, p), high = most(high, p); }
  void add(const Box& other) { low = least(low, other.low), high = most(high, other.high); }
  Vector centre() const { return (low + high) * 0.5; }
  Vector half() const { return (high - low) * 0.5; }
  bool meets(const Box& b) const {
    return low.x <= b.high.x && b.low.x <= high.x && low.y <= b.high.y && b.low.y <= high.y && low.z <= b.high.z &&
           b.low.z <= high.z;
  }
  // Half of the surface.
  double area() const {
    const Vector e = high - low;
    return e.x * e.y + e.y * e.z + e.z * e.x;
  }
  // Squared distance of a point, 0 inside.
  double distance2(const Vector& p) const {
    const Vector out = most(most(low - p, p - high), Vector{});
    return dot(out, out);
  }
  // A little larger, so that what rounding moves across a side is still inside.
  Box widened() const {
    const Vector room = (absolute(low) + absolute(high)) * 1e-12 + Vector{1e-15, 1e-15, 1e-15};
    return {low - room, high + room};
  }
};

// A ray: where it begins, its direction, of length one, and the reciprocals of that.
struct Ray {
  Vector origin, direction, inverse;
  double slack;  // of distances along it, by rounding

  Ray(const Vector& from, const Vector& along)
      : origin(from),
        direction(along),
        inverse{1 / along.x, 1 / along.y, 1 / along.z},
        slack(1e-14 * (std::abs(from.x) + std::abs(from.y) + std::abs(from.z))) {}

  // Whether it meets a box before it is `reach` long; `enter` is where, 0 from inside. Where it runs in the plane of a
  // side, 0 times infinity is not a number, which is neither less nor more, and changes nothing.
  bool meets(const Box& box, double reach, double& enter) const {
    double first = 0, last = reach;
    for (int k = 0; k < 3; ++k) {
      const double a = (box.low[k] - origin[k]) * inverse[k], b = (box.high[k] - origin[k]) * inverse[k];
      first = std::max(first, std::min(a, b));
      last = std::min(last, std::max(a, b));
    }
    enter = first;
    return first <= last + slack;
  }
};

}  // namespace lapjoint::queries
