// Friction of a ball joint, in the matrix of its structure: a torque of a certain size at most, against the turning.
//
// It holds: three hard rows. Or it slips, and its torque lies against the direction d that the joint turns in, which is
// known only with the solution. Newton's method: with a turning of w, the torque T changes by -T (1 - d d^T) / |w|. So
// one row, along d, keeps its bound and is out of the matrix, and the two across d are dampers of T / |w|. The rows are
// turned until d is what they find. A damper of T / |w| in all three directions would come to the same, but by little
// steps where the load is not much more than the friction: 1% more takes hundreds of them.
#pragma once

#include "substeps/direct_row.h"

namespace lapjoint {

class BallFriction {
 public:
  explicit BallFriction(DirectRow* rows) : rows_(rows) {}

  // `last`: its impulse of the last substep about the world's axes, which its rows lie along now; `speed`: how fast the
  // joint turns.
  void begin(const double* last, double speed);
  // A substep begins: dampers for how fast it turned in the last one.
  void begin_substep();
  // After a solution with these velocities of its rows. Whether it is to be solved again, and then in `by` what the
  // impulse of the first row has been changed by. `only_slips`: it may only begin to slip.
  bool change(const double* velocities, bool only_slips, double& by);
  // About the world's axes.
  void impulse(double* out) const;

 private:
  bool slips() const { return rows_[0].is_out(); }
  void slip(const double* velocities, double speed);
  void hold();
  double hard() const;

  DirectRow* rows_;
};

}  // namespace lapjoint
