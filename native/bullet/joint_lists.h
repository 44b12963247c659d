// The joints of each body: who holds whom, and which of them are broken.
#pragma once

#include <utility>
#include <vector>

#include "bullet/joints.h"

namespace lapjoint {

class JointLists {
 public:
  // The table again, with more joints than before or with as many.
  void set_joints(int body_count, const JointColumns& joints);
  // Of one body, the newest first.
  template <typename Visit>
  void each(int body, Visit&& visit) const {
    for (int end = first_end_[body]; end >= 0; end = next_end_[end]) visit(end / 2);
  }
  bool is_broken(int joint) const { return is_broken_[joint]; }
  void set_broken(int joint, bool broken) { is_broken_[joint] = broken; }
  // Whether two bodies may not touch, for a joint between them that is not broken.
  bool keep_apart(int body_a, int body_b) const;

 private:
  JointColumns joints_;
  // An end is twice the joint's number, and one more for its body b.
  std::vector<int> first_end_, next_end_;
  std::vector<int> counts_;  // of ends, by body
  std::vector<char> is_broken_;
};

}  // namespace lapjoint
