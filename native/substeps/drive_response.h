// How a spring or a drive, alone on its axis, goes on within a substep.
#pragma once

#include "substeps/lanes.h"

namespace lapjoint {

struct DriveResponse {
  // Whether substeps show it, alone with its bodies.
  bool is_exact = false;
  // After a substep its velocity is `kept_share` of what it was, less `rate` times how far it is out, and `gain` times
  // the velocity it should have; and `load_share` of what others have changed. An exact one is its own oscillator. Any
  // other is implicit, and no stiffer than its bodies alone allow: what is, is better solved with its structure
  // (substeps/direct_joints.h).
  Real kept_share = 0, rate = 0, gain = 0, load_share = 0;
  Real most = 0;                            // velocity that it may have for being out
  static constexpr double kMostTurn = 0.1;  // rad that it may turn bodies by in a substep for that

  // `inertia`: by how much an impulse changes the axis' velocity.
  static DriveResponse of_spring(double stiffness, double damping, double inertia, double h);
  static DriveResponse of_drive(double stiffness, double damping, double inertia, double h, bool is_angular);
};

}  // namespace lapjoint
