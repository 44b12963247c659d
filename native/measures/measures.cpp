#include "measures/measures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace lapjoint {

namespace {

constexpr int kStateSize = 13, kTurn = 3, kLinear = 7, kAngular = 10;
constexpr int kFrameSize = 7, kAxes = 6;
using Vector = std::array<double, 3>;
using Quaternion = std::array<double, 4>;  // w, x, y, z

Vector vector_at(const double* from) { return {from[0], from[1], from[2]}; }
Quaternion quaternion_at(const double* from) { return {from[0], from[1], from[2], from[3]}; }
Vector operator+(const Vector& a, const Vector& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
Vector operator-(const Vector& a, const Vector& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
Vector operator*(double s, const Vector& a) { return {s * a[0], s * a[1], s * a[2]}; }
double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Vector cross(const Vector& a, const Vector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

Vector rotate(const Quaternion& q, const Vector& v) {
  const Vector u = {q[1], q[2], q[3]};
  const Vector t = 2.0 * cross(u, v);
  return v + q[0] * t + cross(u, t);
}

// To turn by it is to turn back by q.
Quaternion conjugate(const Quaternion& q) { return {q[0], -q[1], -q[2], -q[3]}; }

}  // namespace

void joint_gaps(const double* states, const JointTable& joints, int count, const int* joint_ids, double* gaps) {
  const Quaternion identity = {1, 0, 0, 0};
  for (int k = 0; k < count; ++k) {
    const std::size_t joint = joint_ids[k];
    const double* a = states + static_cast<std::size_t>(kStateSize) * joints.body_a[joint];
    const double* frame_a = joints.frame_a + kFrameSize * joint;
    const double* frame_b = joints.frame_b + kFrameSize * joint;
    const Vector anchor_a = vector_at(a) + rotate(quaternion_at(a + kTurn), vector_at(frame_a));
    Vector place = {};
    Quaternion turn = identity;
    if (joints.body_b[joint] >= 0) {
      const double* b = states + static_cast<std::size_t>(kStateSize) * joints.body_b[joint];
      place = vector_at(b);
      turn = quaternion_at(b + kTurn);
    }
    const Vector anchor_b = place + rotate(turn, vector_at(frame_b));
    // Where a stands in b's joint frame; what is within the limits is no gap.
    const Vector apart = rotate(conjugate(turn), anchor_a - anchor_b);
    const Vector offset = rotate(conjugate(quaternion_at(frame_b + kTurn)), apart);
    double sum = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const std::size_t cell = kAxes * joint + axis;
      if (joints.spring_stiffness[cell] > 0) continue;
      const double beyond = offset[axis] - std::clamp(offset[axis], joints.lower[cell], joints.upper[cell]);
      sum += beyond * beyond;
    }
    gaps[k] = std::sqrt(sum);
  }
}

void motion(int body_count, const double* states, const double* mass, const double* inertia, double* sums) {
  double energy = 0;
  Vector linear = {}, angular = {};
  for (std::size_t body = 0; body < static_cast<std::size_t>(body_count); ++body) {
    const double* state = states + kStateSize * body;
    const Vector velocity = vector_at(state + kLinear);
    const Vector momentum = mass[body] * velocity;
    // The inertia is known in the body's frame.
    const Quaternion turn = quaternion_at(state + kTurn);
    const Vector spin = rotate(conjugate(turn), vector_at(state + kAngular));
    const double* tensor = inertia + 9 * body;
    const Vector moment = {dot(vector_at(tensor), spin), dot(vector_at(tensor + 3), spin),
                           dot(vector_at(tensor + 6), spin)};
    energy += 0.5 * (dot(momentum, velocity) + dot(moment, spin));
    linear = linear + momentum;
    angular = angular + cross(vector_at(state), momentum) + rotate(turn, moment);
  }
  sums[0] = energy;
  std::copy(linear.begin(), linear.end(), sums + 1);
  std::copy(angular.begin(), angular.end(), sums + 4);
}

}  // namespace lapjoint
