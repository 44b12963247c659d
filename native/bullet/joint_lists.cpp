#include "bullet/joint_lists.h"

#include "assertions.h"

namespace lapjoint {

void JointLists::set_joints(int body_count, const JointColumns& joints) {
  joints_ = joints;
  first_end_.resize(body_count, -1);
  counts_.resize(body_count, 0);
  const int first = static_cast<int>(is_broken_.size());
  LAPJOINT_ASSERT(joints.count >= first);  // tables grow
  next_end_.resize(2 * joints.count, -1);
  is_broken_.resize(joints.count, 0);
  const auto add_end = [&](int end, int body) {
    if (body == kWorld) return;
    next_end_[end] = std::exchange(first_end_[body], end);
    ++counts_[body];
  };
  for (int j = first; j < joints.count; ++j) {
    add_end(2 * j, joints.body_a[j]);
    add_end(2 * j + 1, joints.body_b[j]);
  }
}

bool JointLists::keep_apart(int body_a, int body_b) const {
  LAPJOINT_ASSERT(body_a >= 0 && body_b >= 0 && std::max(body_a, body_b) < static_cast<int>(counts_.size()));
  if (counts_[body_a] > counts_[body_b]) std::swap(body_a, body_b);  // some have thousands
  for (int end = first_end_[body_a]; end >= 0; end = next_end_[end]) {
    const int joint = end / 2, other = end % 2 ? joints_.body_a[joint] : joints_.body_b[joint];
    if (other == body_b && !joints_.collide[joint] && !is_broken_[joint]) return true;
  }
  return false;
}

}  // namespace lapjoint
