// The point of a triangle that is nearest to another (Ericson: Real-Time Collision Detection, 5.1.5).
#pragma once

#include "queries/geometry.h"

namespace lapjoint::queries {

// The shares of its corners in it are written to `share`.
inline Vector nearest_of_triangle(const Vector* corner, const Vector& p, double* share) {
  const Vector &a = corner[0], &b = corner[1], &c = corner[2];
  const auto mix = [&](double u, double v, double w) {
    share[0] = u, share[1] = v, share[2] = w;
    return a * u + b * v + c * w;
  };
  const Vector ab = b - a, ac = c - a, ap = p - a, bp = p - b, cp = p - c;
  const double d1 = dot(ab, ap), d2 = dot(ac, ap);
  if (d1 <= 0 && d2 <= 0) return mix(1, 0, 0);
  const double d3 = dot(ab, bp), d4 = dot(ac, bp);
  if (d3 >= 0 && d4 <= d3) return mix(0, 1, 0);
  const double vc = d1 * d4 - d3 * d2;
  if (vc <= 0 && d1 >= 0 && d3 <= 0 && d1 - d3 > 0) return mix(1 - d1 / (d1 - d3), d1 / (d1 - d3), 0);
  const double d5 = dot(ab, cp), d6 = dot(ac, cp);
  if (d6 >= 0 && d5 <= d6) return mix(0, 0, 1);
  const double vb = d5 * d2 - d1 * d6;
  if (vb <= 0 && d2 >= 0 && d6 <= 0 && d2 - d6 > 0) return mix(1 - d2 / (d2 - d6), 0, d2 / (d2 - d6));
  const double va = d3 * d6 - d5 * d4, from_b = d4 - d3, from_c = d5 - d6;
  if (va <= 0 && from_b >= 0 && from_c >= 0 && from_b + from_c > 0)
    return mix(0, from_c / (from_b + from_c), from_b / (from_b + from_c));
  const double sum = va + vb + vc;
  return mix(va / sum, vb / sum, vc / sum);
}

inline Vector nearest_of_triangle(const Vector* corner, const Vector& p) {
  double share[3];
  return nearest_of_triangle(corner, p, share);
}

}  // namespace lapjoint::queries
