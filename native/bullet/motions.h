// Motions of kinematic bodies: where one is in a step. src/lapjoint/scene/motions.py is the readable twin, and has what
// the values of each kind are.
#pragma once

#include <cstdint>
#include <vector>

namespace lapjoint {

// In the scene's numbers: metres, and a quaternion w x y z.
struct Place {
  double position[3] = {0, 0, 0};
  double quaternion[4] = {1, 0, 0, 0};
  bool operator==(const Place&) const = default;
};

struct GivenMotion {
  enum Kind { kRest, kConstantVelocity, kRotation, kOscillation, kKeyframes, kKindCount };

  int kind = kRest;
  std::int64_t start = 0;  // the step from which it counts its time
  Place base;              // where it begins
  std::vector<double> values;

  // Where the body is when so many steps have been taken.
  Place at(std::int64_t step, double timestep) const;
};

// The constant velocity, linear and angular, that leads from one place to another.
void velocity_between(const Place& from, const Place& to, double duration, double* linear, double* angular);

void rotate(const double* quaternion, const double* vector, double* out);

}  // namespace lapjoint
