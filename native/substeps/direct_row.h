// Rows of joints in the matrix of their structure: see substeps/direct_joints.h.
#pragma once

#include <algorithm>

namespace lapjoint {

constexpr double kVelocitySlack = 1e-7;  // by which a row may miss before it changes places: see substeps/active_set.h

inline double row_product(const double* a, const double* b) {
  return (a[0] * b[0] + a[2] * b[2] + a[4] * b[4]) + (a[1] * b[1] + a[3] * b[3] + a[5] * b[5]);
}

// A row of a joint in the matrix of its structure.
struct DirectRow {
  enum Kind {
    kLocked,   // holds all the time
    kBounded,  // as hard, within bounds: a limit, a motor, friction of one axis, a distance
    kDrive,    // as soft as the drive is
    kFriction  // one of three: of a ball joint, see substeps/ball_friction.h
  };
  // In the matrix; at a bound; not solved here.
  enum Place { kIn, kLow, kHigh, kSwept };

  double own_a[6], own_b[6];  // Jacobian: along, about
  double error, stiffness, impulse;
  double lack;                     // what its velocity lacks, or, across workers, is to be
  int target;                      // where its impulse is kept
  int axis = -1;                   // in the list of axes, of one that is not locked
  double pull = 0, next_pull = 0;  // impulse for where it is as a substep begins, this one and the next
  double inertia = 0, half_turns = 0;
  double low = 0, high = 0;  // bounds of its impulse
  // Of friction of a ball joint: the direction about which it is, in the world, and how fast the joint turned last.
  double about[3] = {0, 0, 0}, speed = 0;
  Place place = kIn;
  Kind kind = kLocked;

  bool is_out() const { return place != kIn; }  // of the matrix
  double bound() const { return place == kLow ? low : high; }
  double velocity(const double* of_a, const double* of_b) const {
    return row_product(own_a, of_a) + row_product(own_b, of_b);
  }
  // With which a row gives way by next to nothing, against what it gives way by for an impulse.
  static double hard_stiffness(double inertia) { return 1e6 / std::max(inertia, 1e-30); }
  // Puts it where its impulse was last.
  void begin(double last);
};

// A joint's rows, and the blocks of the matrix that they are part of.
struct DirectLink {
  int joint;
  int a, b;  // rows of the structure's matrix; one past the last: cannot move
  int first_row = 0, row_count = 0;
  int locked_count = 0;  // rows of locked axes, which come first
  double *of_a = nullptr, *of_b = nullptr, *of_both = nullptr;
  bool b_first = false;  // in the block of both
  bool is_point = false;
  bool is_own = true;  // in this worker's matrix
};

}  // namespace lapjoint
