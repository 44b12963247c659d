#include "bullet/motions.h"

#include <algorithm>
#include <cmath>

namespace lapjoint {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kNearlyEqual = 1 - 1e-9;  // cosine between quaternions from which slerp is a straight line
constexpr int kRow = 8;                    // numbers of a keyframe: time, position, quaternion

void multiply(const double* a, const double* b, double* out) {
  const double product[4] = {
      a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
      a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]};
  std::copy(product, product + 4, out);
}

void normalize(double* q) {
  const double length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  for (int k = 0; k < 4; ++k) q[k] /= length;
}

// The rotation by a vector, times a share.
void turn_by(const double* vector, double share, double* out) {
  const double angle = std::sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2]);
  const double half = 0.5 * angle * share, scale = angle > 0 ? std::sin(half) / angle : 0;
  out[0] = std::cos(half);
  for (int k = 0; k < 3; ++k) out[1 + k] = scale * vector[k];
}

void slerp(const double* a, const double* b, double share, double* out) {
  double cosine = 0;
  for (int k = 0; k < 4; ++k) cosine += a[k] * b[k];
  const double sign = cosine < 0 ? -1 : 1;
  cosine *= sign;
  double of_a = 1 - share, of_b = share;
  if (cosine < kNearlyEqual) {
    const double angle = std::acos(cosine), sine = std::sin(angle);
    of_a = std::sin((1 - share) * angle) / sine;
    of_b = std::sin(share * angle) / sine;
  }
  for (int k = 0; k < 4; ++k) out[k] = of_a * a[k] + sign * of_b * b[k];
  normalize(out);
}

// `values`: whether they repeat, then rows of keyframes.
Place between_keyframes(const std::vector<double>& values, double time) {
  const double* rows = values.data() + 1;
  const int count = static_cast<int>(values.size() - 1) / kRow;
  const double first = rows[0], last = rows[kRow * (count - 1)];
  if (values[0] != 0 && last > first) {
    time = std::fmod(time - first, last - first);
    time = first + (time < 0 ? time + (last - first) : time);
  }
  int next = 0, end = count;  // the first keyframe after this time
  while (next < end) {
    const int middle = (next + end) / 2;
    if (rows[kRow * middle] <= time)
      next = middle + 1;
    else
      end = middle;
  }
  const double* after = rows + kRow * std::min(next, count - 1);
  const double* before = rows + kRow * std::max(next - 1, 0);
  const double span = after[0] - before[0], share = span > 0 ? (time - before[0]) / span : 0;
  Place place;
  for (int k = 0; k < 3; ++k) place.position[k] = before[1 + k] + share * (after[1 + k] - before[1 + k]);
  slerp(before + 4, after + 4, share, place.quaternion);
  return place;
}

}  // namespace

void rotate(const double* q, const double* v, double* out) {
  const double t[3] = {2 * (q[2] * v[2] - q[3] * v[1]), 2 * (q[3] * v[0] - q[1] * v[2]),
                       2 * (q[1] * v[1] - q[2] * v[0])};
  const double turned[3] = {v[0] + q[0] * t[0] + q[2] * t[2] - q[3] * t[1],
                            v[1] + q[0] * t[1] + q[3] * t[0] - q[1] * t[2],
                            v[2] + q[0] * t[2] + q[1] * t[1] - q[2] * t[0]};
  std::copy(turned, turned + 3, out);
}

Place GivenMotion::at(std::int64_t step, double timestep) const {
  const double time = static_cast<double>(step - start) * timestep;
  Place place = base;
  const double* v = values.data();
  double turn[4];
  if (kind == kConstantVelocity) {  // linear, angular
    for (int k = 0; k < 3; ++k) place.position[k] += v[k] * time;
    turn_by(v + 3, time, turn);
    multiply(turn, base.quaternion, place.quaternion);
  } else if (kind == kRotation) {  // axis, rate, and a point unless it is the body's own
    turn_by(v, v[3] * time, turn);
    multiply(turn, base.quaternion, place.quaternion);
    if (values.size() > 4) {
      double arm[3];
      for (int k = 0; k < 3; ++k) arm[k] = base.position[k] - v[4 + k];
      rotate(turn, arm, arm);
      for (int k = 0; k < 3; ++k) place.position[k] = v[4 + k] + arm[k];
    }
  } else if (kind == kOscillation) {  // amplitude, angular amplitude, frequency, phase
    const double share = std::sin(2 * kPi * v[6] * time + v[7]) - std::sin(v[7]);
    for (int k = 0; k < 3; ++k) place.position[k] += v[k] * share;
    turn_by(v + 3, share, turn);
    multiply(turn, base.quaternion, place.quaternion);
  } else if (kind == kKeyframes) {
    place = between_keyframes(values, time);
  }
  return place;
}

void velocity_between(const Place& from, const Place& to, double duration, double* linear, double* angular) {
  const double* q = from.quaternion;
  const double back[4] = {q[0], -q[1], -q[2], -q[3]};
  double turn[4];
  multiply(to.quaternion, back, turn);
  const double sine = std::sqrt(turn[1] * turn[1] + turn[2] * turn[2] + turn[3] * turn[3]);
  const double sign = turn[0] < 0 ? -1 : 1, angle = 2 * std::atan2(sine, sign * turn[0]);
  for (int k = 0; k < 3; ++k) {
    linear[k] = (to.position[k] - from.position[k]) / duration;
    angular[k] = sine > 0 ? sign * turn[1 + k] / sine * angle / duration : 0;
  }
}

}  // namespace lapjoint
