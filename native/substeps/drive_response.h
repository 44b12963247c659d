// How a spring or a drive, alone on its axis, goes on within a substep.
#pragma once

#include "substeps/lanes.h"

namespace lapjoint {

struct DriveResponse {
  // As its own oscillator, exactly: after a substep its velocity is `kept_share` of what it was, less `rate` times how
  // far it is out, and `gain` times the velocity it should have; and `load_share` of what others have changed. Or,
  // where that is too fast for substeps or may be for others that hold the same bodies, implicitly: a constraint as
  // soft as it is.
  bool is_implicit = false;
  Real kept_share = 0, rate = 0, gain = 0;
  Real load_share = 0;      // of an exact one
  Real mass = 0, most = 0;  // of an implicit one: what it may change its velocity by at once, as an impulse

  // `inertia`: by how much an impulse changes the axis' velocity.
  static DriveResponse of_spring(double stiffness, double damping, double inertia, double h);
  static DriveResponse of_drive(double stiffness, double damping, double inertia, double h, bool is_angular);
};

}  // namespace lapjoint
