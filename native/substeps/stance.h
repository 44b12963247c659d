// Where a joint stands, and its rows there.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "substeps/joints.h"

namespace lapjoint {

constexpr double kSteep = 0.1;  // cosine of the middle angle, at least: beyond, the outer two cannot be told apart
constexpr double kNear = 0.866, kNear3 = 2.732;  // cosine of 30 degrees, and the trace of a rotation by them
constexpr double kOpposed = 1e-3;  // one and the cosine of a swing, at least: beyond, a twist cannot be told

struct Vector {
  double x, y, z;
};

inline Vector operator-(const Vector& a, const Vector& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
inline Vector operator+(const Vector& a, const Vector& b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
inline Vector operator*(double a, const Vector& b) { return {a * b.x, a * b.y, a * b.z}; }
inline double dot(const Vector& a, const Vector& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline Vector cross(const Vector& a, const Vector& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <typename Number>
Vector vector(const Number* from) {
  return {double(from[0]), double(from[1]), double(from[2])};
}
inline Vector column(const Real* matrix, int k) {
  return {double(matrix[k]), double(matrix[3 + k]), double(matrix[6 + k])};
}
inline Vector times(const double* matrix, const Vector& v) {
  return {matrix[0] * v.x + matrix[1] * v.y + matrix[2] * v.z, matrix[3] * v.x + matrix[4] * v.y + matrix[5] * v.z,
          matrix[6] * v.x + matrix[7] * v.y + matrix[8] * v.z};
}

// Into a body's own coordinates.
inline void put_own(const Frame& frame, const Vector& world, Real* out) {
  for (int k = 0; k < 3; ++k)
    out[k] = Real(frame.rows[k][0] * world.x + frame.rows[k][1] * world.y + frame.rows[k][2] * world.z);
}

// Where a joint stands: anchors, and the axes of both frames.
struct Stance {
  const Pose &a, &b;
  Vector anchor_a, anchor_b, axes_a[3]{}, axes_b[3]{};

  Stance(const JointDefinition& joint, const Bodies& bodies) : a(bodies.pose[joint.a]), b(bodies.pose[joint.b]) {
    anchor_a = vector(a.position) + times(a.axes, vector(joint.place_a));
    anchor_b = vector(b.position) + times(b.axes, vector(joint.place_b));
    if (joint.locked == 7 && joint.axis_count == 0) return;  // a ball
    for (int k = 0; k < 3; ++k) {
      axes_a[k] = times(a.axes, column(joint.axes_a, k));
      axes_b[k] = times(b.axes, column(joint.axes_b, k));
    }
  }

  // Row along an axis, of a relative to b. A point has the world's axes and its own anchors; else forces act where a's
  // anchor is.
  void put_along(const JointDefinition& joint, const Bodies& bodies, int axis, bool of_point, JointRow& row) const {
    const Vector world[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    const Vector& direction = of_point ? world[axis] : axes_b[axis];
    row.along[0] = Real(direction.x);
    row.along[1] = Real(direction.y);
    row.along[2] = Real(direction.z);
    put_own(bodies.frame[joint.a], cross(anchor_a - vector(a.position), direction), row.own_a);
    put_own(bodies.frame[joint.b], cross((of_point ? anchor_b : anchor_a) - vector(b.position), direction), row.own_b);
    row.error = Real(dot(direction, anchor_a - anchor_b));
  }

  void put_about(const JointDefinition& joint, const Bodies& bodies, const Vector& direction, double error,
                 JointRow& row) const {
    row.along[0] = row.along[1] = row.along[2] = 0;
    put_own(bodies.frame[joint.a], direction, row.own_a);
    put_own(bodies.frame[joint.b], direction, row.own_b);
    row.error = Real(error);
  }

  // Row of a locked axis. Locked angles hold two axes, one of each frame, at right angles; which two depends on what is
  // free, so that this is possible however far it turns.
  void put_locked(const JointDefinition& joint, const Bodies& bodies, int axis, JointRow& row) const {
    if (axis < 3) return put_along(joint, bodies, axis, joint.is_point(), row);
    const Vector *x = axes_a, *y = axes_b;
    if (put_far(joint, bodies, axis, row)) return;
    if (axis == 3) return put_across(joint, bodies, x[1], y[2], 1, x[0], row);
    if (axis == 4) return put_across(joint, bodies, y[2], x[0], -1, y[1], row);
    if ((joint.locked >> 3) == 5) return put_across(joint, bodies, y[0], x[1], -1, x[2], row);
    put_across(joint, bodies, x[0], y[1], 1, x[2], row);
  }

  // Whether the axis that bodies share points elsewhere in each: angles about it say little.
  bool has_lost_axis(const JointDefinition& joint) const {
    const int locked = joint.locked >> 3, free = locked == 6 ? 0 : locked == 5 ? 1 : locked == 3 ? 2 : -1;
    return free >= 0 && dot(axes_a[free], axes_b[free]) < kNear;
  }

  // Row of a locked angle where two or three are locked and frames are far apart, as they may be when a scene begins:
  // right angles say nothing where axes are parallel, and hold at half a turn too. The rotation vector from b's frame,
  // or its axis, to a's, along axes that are at right angles. Whether it is so.
  bool put_far(const JointDefinition& joint, const Bodies& bodies, int axis, JointRow& row) const {
    const Vector *x = axes_a, *y = axes_b;
    const int locked = joint.locked >> 3;
    if (locked == 7) {
      const double trace = dot(x[0], y[0]) + dot(x[1], y[1]) + dot(x[2], y[2]);
      if (trace > kNear3) return false;
      Vector turn = cross(y[0], x[0]) + cross(y[1], x[1]) + cross(y[2], x[2]);  // twice the sine, along the axis
      const double length = std::sqrt(dot(turn, turn)), angle = std::atan2(length, trace - 1);
      if (length > 1e-6) {
        turn = (angle / length) * turn;
      } else {  // half a turn: about the axis that most of it stays with
        int most = 0;
        for (int k = 1; k < 3; ++k)
          if (dot(x[k], y[k]) > dot(x[most], y[most])) most = k;
        Vector middle = x[most] + y[most];
        turn = (angle / std::sqrt(std::max(dot(middle, middle), 1e-12))) * middle;
      }
      put_about(joint, bodies, y[axis - 3], dot(turn, y[axis - 3]), row);
      return true;
    }
    const int free = locked == 6 ? 0 : locked == 5 ? 1 : locked == 3 ? 2 : -1;
    if (free < 0) return false;
    const double cosine = dot(x[free], y[free]);
    if (cosine > kNear) return false;
    const Vector* across = free == 2 ? x : y;
    Vector turn = cross(y[free], x[free]);
    const double length = std::sqrt(dot(turn, turn)), angle = std::atan2(length, cosine);
    turn = length > 1e-6 ? (angle / length) * turn : angle * across[free == 0 ? 1 : 0];
    put_about(joint, bodies, across[axis - 3], dot(turn, across[axis - 3]), row);
    return true;
  }

  // Row that holds two axes at right angles. Far from there it is the angle itself, so that it goes on to tell how far:
  // the cosine's change ends where the axes are parallel, about `beyond` in place of what is across both.
  void put_across(const JointDefinition& joint, const Bodies& bodies, const Vector& one, const Vector& other,
                  double sign, const Vector& beyond, JointRow& row) const {
    const Vector across = cross(one, other);
    const double cosine = dot(one, other);
    if (cosine * cosine < 0.25) return put_about(joint, bodies, across, sign * cosine, row);
    const double length = std::sqrt(dot(across, across));
    put_about(joint, bodies, length > 1e-4 ? (1 / length) * across : beyond, sign * std::atan2(cosine, length), row);
  }

  // Row of an axis that is free, limited or driven. Angles: a's frame in b's is a turn about z after one about y after
  // one about x.
  void put_free(const JointDefinition& joint, const Bodies& bodies, int axis, JointRow& row) const {
    if (axis >= 6) return put_of_pair(joint, bodies, axis, row);
    if (axis < 3) return put_along(joint, bodies, axis, false, row);
    const Vector *x = axes_a, *y = axes_b;
    Vector middle = cross(y[2], x[0]);
    const double length = std::sqrt(dot(middle, middle));
    middle = length > 1e-6 ? (1 / length) * middle : y[1];
    // Each direction is across the other two, so that it tells one angle's change alone.
    const double steep = 1 / std::max(length, kSteep);
    if (axis == 3)
      put_about(joint, bodies, steep * cross(middle, y[2]), std::atan2(dot(y[2], x[1]), dot(y[2], x[2])), row);
    else if (axis == 4)
      put_about(joint, bodies, middle, std::asin(std::clamp(-dot(y[2], x[0]), -1.0, 1.0)), row);
    else
      put_about(joint, bodies, steep * cross(x[0], middle), std::atan2(dot(y[1], x[0]), dot(y[0], x[0])), row);
  }

  // Rows that are no axis of the joint's frame: see AxisDefinition.
  void put_of_pair(const JointDefinition& joint, const Bodies& bodies, int axis, JointRow& row) const {
    const Vector *x = axes_a, *y = axes_b;
    if (axis == AxisDefinition::kLength) {
      Vector direction = anchor_a - anchor_b;
      const double length = std::sqrt(dot(direction, direction));
      direction = length > 1e-12 ? (1 / length) * direction : Vector{0, 0, 1};
      row.along[0] = Real(direction.x);
      row.along[1] = Real(direction.y);
      row.along[2] = Real(direction.z);
      put_own(bodies.frame[joint.a], cross(anchor_a - vector(a.position), direction), row.own_a);
      put_own(bodies.frame[joint.b], cross(anchor_b - vector(b.position), direction), row.own_b);
      row.error = Real(length);
    } else if (axis == AxisDefinition::kSwing) {
      const Vector across = cross(y[0], x[0]);
      const double length = std::sqrt(dot(across, across));
      put_about(joint, bodies, length > 1e-9 ? (1 / length) * across : y[1], std::atan2(length, dot(x[0], y[0])), row);
    } else if (axis == AxisDefinition::kTwist) {
      // What is left once the shortest turn has brought a's axis to b's.
      const double share = 1 / std::max(1 + dot(x[0], y[0]), kOpposed);
      const Vector middle = share * (x[0] + y[0]);
      const Vector left = x[1] - dot(y[0], x[1]) * middle;
      put_about(joint, bodies, middle, std::atan2(dot(left, y[2]), dot(left, y[1])), row);
    } else {
      row.along[0] = row.along[1] = row.along[2] = 0;
      put_own(bodies.frame[joint.a], x[0], row.own_a);
      put_own(bodies.frame[joint.b], double(joint.ratio) * y[0], row.own_b);
      row.error = 0;
    }
  }
};

// An angle that is known up to whole turns, as the one nearest to so many half turns. Neighbouring half turns that it
// is as near to give the same to the last bit.
inline double counted_angle(double angle, double half_turns) {
  const double turn = 2 * std::numbers::pi;
  return angle + turn * std::round((half_turns * std::numbers::pi - angle) / turn);
}

}  // namespace lapjoint
