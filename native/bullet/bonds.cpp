#include "bullet/bonds.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lapjoint {

bool BondColumns::breaks(int joint, const double* force, const double* torque) const {
  const auto at = static_cast<std::size_t>(joint);
  const double *of_section = section + 4 * at, *most = strength + 3 * at, *reaches = reach + kDirections * at;
  const double pulled = -force[0] / of_section[0];
  // The stress of bending rises along a direction of the face, from its middle to how far it reaches there. |M| c / I
  // is up to twice too much for a square.
  const double rise[2] = {-torque[2] / of_section[3], torque[1] / of_section[2]};
  const auto reach_of = [&](double y, double z) {
    const double turn = std::atan2(z, y) / (2 * std::numbers::pi) * kDirections + kDirections;
    const int low = static_cast<int>(turn);
    const double first = reaches[low % kDirections];
    return first + (turn - low) * (reaches[(low + 1) % kDirections] - first);
  };
  // Whichever sign it has: what is pulled on one side is pressed on the other.
  const double reached = std::max(reach_of(rise[0], rise[1]), reach_of(-rise[0], -rise[1]));
  const double bent = std::hypot(rise[0], rise[1]) * reached;
  const double sheared = std::hypot(force[1], force[2]) / of_section[0] + std::abs(torque[0]) / of_section[1];
  const double tension = pulled + bent;
  const double principal = tension / 2 + std::sqrt(tension * tension / 4 + sheared * sheared);
  return principal > most[0] || sheared > most[1] || bent - pulled > most[2];
}

}  // namespace lapjoint
