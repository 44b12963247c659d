// What joints do to their first bodies in a step: a force and a torque about the anchor, in the frame of the joint on
// the second body. It turns with that body, so substeps are added in it, not in the world.
#pragma once

#include <array>
#include <vector>

#include "substeps/joints.h"

namespace lapjoint {

class JointWrenches {
 public:
  using Wrench = std::array<double, 6>;

  // Of these joints; anew whenever joints or places of bodies change.
  void define(std::vector<JointDefinition> joints, const std::vector<AxisDefinition>& axes);
  bool empty() const { return joints_.empty(); }
  const std::vector<JointDefinition>& joints() const { return joints_; }

  void clear();
  // Adds what rows did in a substep: `impulses` at their places, for where bodies are now (`Bodies::pose`).
  void add(const Bodies& bodies, const std::vector<Real>& impulses);
  // Impulses of all substeps, in the order of joints.
  const std::vector<Wrench>& sums() const { return sums_; }

 private:
  std::vector<JointDefinition> joints_;
  std::vector<AxisDefinition> axes_;
  std::vector<Wrench> sums_;
};

}  // namespace lapjoint
