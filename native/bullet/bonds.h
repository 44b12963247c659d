// Bonds of the scene's joints: how stiff their rows are, and whether a load breaks them.
#pragma once

#include <cstddef>

namespace lapjoint {

// Columns of the joint table, in the units of scene/bonds.py. The joint's frame is that of the face: x along its
// normal.
struct BondColumns {
  static constexpr int kDirections = 16;

  const double* stiffness = nullptr;     // count x 4
  const bool* is_elastic = nullptr;      // count
  const double* damping_time = nullptr;  // count [s]
  const double* section = nullptr;       // count x 4
  const double* reach = nullptr;         // count x kDirections [m]
  const double* strength = nullptr;      // count x 3 [N/m^2]
  const double* load_time = nullptr;     // count [s]

  bool has(int joint) const { return section[4 * static_cast<std::size_t>(joint)] > 0; }
  bool is_rigid(int joint) const { return has(joint) && !is_elastic[joint]; }
  // Whether its load is smoothed: then it is kept from step to step.
  bool keeps_load(int joint) const { return has(joint) && load_time[joint] > 0; }
  // Whether a face breaks. A force [N] on what is on the far side of it, first along its normal, then twice across; and
  // a torque [N m] about its normal, y and z.
  bool breaks(int joint, const double* force, const double* torque) const;
};

}  // namespace lapjoint
