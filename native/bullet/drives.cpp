// What is on the axes of joints, as the scene's table has it: limits, motors, springs, drives, friction; and what may
// be told of it between two steps.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>

#include "bullet/substeps.h"

namespace lapjoint {

namespace {

// Of a joint's six axes; units of Bullet's world in the scene's.
struct AxisUnits {
  double length, force, stiffness;
  AxisUnits(int axis, double length_unit, double mass_unit) {
    const bool angular = axis >= 3;
    length = angular ? 1 : length_unit;
    force = mass_unit * (angular ? length_unit * length_unit : length_unit);
    stiffness = mass_unit * (angular ? length_unit * length_unit : 1);
  }
};

}  // namespace

// Whether the angle of its only rotation is counted over turns: about its first axis or its last.
bool SubstepWorld::counts_turns(int joint) const {
  if (columns_.kind[joint] != JointColumns::kHinge && columns_.kind[joint] != JointColumns::kSixAxis) return false;
  const int turning = (locked_[joint] >> 3) == 6 ? 3 : (locked_[joint] >> 3) == 3 ? 5 : 0;
  if (turning == 0) return false;
  const int at = 6 * joint + turning;
  const auto is_far = [](double limit) { return !std::isinf(limit) && std::abs(limit) > std::numbers::pi; };
  return columns_.drive_max_force[at] > 0 || is_far(columns_.lower[at]) || is_far(columns_.upper[at]);
}

void SubstepWorld::add_axes(int joint) {
  const JointColumns& joints = columns_;
  const int kind = joints.kind[joint];
  std::uint8_t locked = 0;
  for (int axis = 0; axis < 6; ++axis)
    if (joints.lower[6 * joint + axis] == 0 && joints.upper[6 * joint + axis] == 0)
      locked = static_cast<std::uint8_t>(locked | 1 << axis);
  locked_.push_back(locked);
  const bool counts = counts_turns(joint);
  const auto add = [&](int kind, int axis, double value) -> AxisDefinition& {
    AxisDefinition& made = axes_.emplace_back();
    made.kind = kind;
    made.axis = axis;
    made.value = Real(value);
    made.counted = counts && axis >= 3;
    return made;
  };
  const auto add_limits = [&](int axis, double lower, double upper) {
    if (lower == upper) {
      add(AxisDefinition::kEqual, axis, lower);
      return;
    }
    if (!std::isinf(lower)) add(AxisDefinition::kLower, axis, lower);
    if (!std::isinf(upper)) add(AxisDefinition::kUpper, axis, upper);
  };
  if (kind == JointColumns::kGear) {
    add(AxisDefinition::kEqual, AxisDefinition::kGear, 0);
    return;
  }
  if (kind == JointColumns::kDistance) {
    add_limits(AxisDefinition::kLength, joints.lower[6 * joint] / length_unit_, joints.upper[6 * joint] / length_unit_);
    return;
  }
  if (kind == JointColumns::kBall) {
    const int at = 6 * joint + 3;
    const double force = AxisUnits(3, length_unit_, mass_unit_).force;
    for (int axis = 3; joints.friction[at] > 0 && axis < 6; ++axis)
      add(AxisDefinition::kDrag, axis, 0).force = Real(joints.friction[at] / force);
    if (!std::isinf(joints.lower[at])) add(AxisDefinition::kLower, AxisDefinition::kTwist, joints.lower[at]);
    if (!std::isinf(joints.upper[at])) add(AxisDefinition::kUpper, AxisDefinition::kTwist, joints.upper[at]);
    if (!std::isinf(joints.upper[at + 1])) add(AxisDefinition::kUpper, AxisDefinition::kSwing, joints.upper[at + 1]);
    return;
  }
  for (int axis = 0; axis < 6; ++axis) {
    const int at = 6 * joint + axis;
    if (locked >> axis & 1) continue;
    const AxisUnits unit(axis, length_unit_, mass_unit_);
    if (joints.spring_stiffness[at] > 0) {
      AxisDefinition& spring = add(AxisDefinition::kSpring, axis, joints.spring_rest[at] / unit.length);
      spring.stiffness = Real(joints.spring_stiffness[at] / unit.stiffness);
      spring.damping = Real(joints.spring_damping[at] / unit.stiffness);
    }
    if (joints.drive_max_force[at] > 0) {
      AxisDefinition& drive = add(AxisDefinition::kDrive, axis, joints.drive_position[at] / unit.length);
      drive.velocity = Real(joints.drive_velocity[at] / unit.length);
      drive.stiffness = Real(joints.drive_stiffness[at] / unit.stiffness);
      drive.damping = Real(joints.drive_damping[at] / unit.stiffness);
      drive.force = Real(joints.drive_max_force[at] / unit.force);
    }
    if (joints.motor_max_force[at] > 0)
      add(AxisDefinition::kMotor, axis, joints.motor_velocity[at] / unit.length).force =
          Real(joints.motor_max_force[at] / unit.force);
    if (joints.friction[at] > 0) add(AxisDefinition::kMotor, axis, 0).force = Real(joints.friction[at] / unit.force);
    if (!std::isinf(joints.lower[at])) add(AxisDefinition::kLower, axis, joints.lower[at] / unit.length);
    if (!std::isinf(joints.upper[at])) add(AxisDefinition::kUpper, axis, joints.upper[at] / unit.length);
  }
}

// ---- between two steps ---------------------------------------------------------------------------------------------

std::vector<int> SubstepWorld::set_drive_targets(const int* joint_ids, const int* axes, const double* targets,
                                                 int count) {
  const auto driven = [&](int i) -> AxisDefinition* {
    const int joint = joint_ids[i];
    if (joint < 0 || joint >= columns_.count) return nullptr;
    for (int k = first_axis_[joint]; k < first_axis_[joint + 1]; ++k) {
      AxisDefinition& axis = axes_[k];
      if (axis.axis != axes[i]) continue;
      // A motor comes before the friction of its axis, which is one that stands still.
      const bool is_motor = axis.kind == AxisDefinition::kMotor && columns_.motor_max_force[6 * joint + axis.axis] > 0;
      if (axis.kind == AxisDefinition::kDrive || is_motor) return &axis;
    }
    return nullptr;
  };
  for (int i = 0; i < count; ++i) {
    if (driven(i)) continue;
    throw std::invalid_argument("joint " + std::to_string(joint_ids[i]) + " has no drive on axis " +
                                std::to_string(axes[i]));
  }
  std::vector<int> changed;
  for (int i = 0; i < count; ++i) {
    AxisDefinition& axis = *driven(i);
    targets_[6 * joint_ids[i] + axes[i]] = {targets[2 * i], targets[2 * i + 1]};
    const Real before[2] = {axis.value, axis.velocity};
    const double length = AxisUnits(axis.axis, length_unit_, mass_unit_).length;
    const double position = targets[2 * i] / length, velocity = targets[2 * i + 1] / length;
    axis.value = Real(axis.kind == AxisDefinition::kMotor ? velocity : position);
    if (axis.kind == AxisDefinition::kDrive) axis.velocity = Real(velocity);
    if (axis.value != before[0] || axis.velocity != before[1]) changed.push_back(joint_ids[i]);
  }
  return changed;
}

void SubstepWorld::forget_drive_targets() {
  for (const auto& [at, target] : std::exchange(targets_, {})) {
    const int joint = at / 6, axis = at % 6;
    const bool is_drive = columns_.drive_max_force[at] > 0;
    const double given[2] = {columns_.drive_position[at],
                             is_drive ? columns_.drive_velocity[at] : columns_.motor_velocity[at]};
    set_drive_targets(&joint, &axis, given, 1);
  }
  targets_.clear();
}

bool SubstepWorld::is_driven(int joint) const {
  for (int k = first_axis_[joint]; k < first_axis_[joint + 1]; ++k) {
    const AxisDefinition& axis = axes_[k];
    if (axis.kind == AxisDefinition::kMotor && axis.value != 0) return true;
    if (axis.kind == AxisDefinition::kDrive && axis.velocity != 0) return true;
  }
  return false;
}

void SubstepWorld::forget_kept() {
  for (int id = 0; id < columns_.count; ++id) {
    const int place = first_impulse_[id] + 6 + first_axis_[id + 1] - first_axis_[id];
    if (place < first_impulse_[id + 1]) solver_.joint_impulses[place] = 0;
  }
  for (Counted& one : counted_) one.known = 0;
}

SubstepWorld::Counted* SubstepWorld::find_counted(int joint) {
  const auto found = std::lower_bound(counted_.begin(), counted_.end(), joint,
                                      [](const Counted& one, int wanted) { return one.joint < wanted; });
  return found != counted_.end() && found->joint == joint ? &*found : nullptr;
}

void SubstepWorld::read_half_turns(const int* joint_ids, int count, int* half_turns) const {
  for (int i = 0; i < count; ++i) {
    const Counted* one = const_cast<SubstepWorld*>(this)->find_counted(joint_ids[i]);
    half_turns[i] = one ? static_cast<int>(solver_.joint_impulses[one->place]) : 0;
  }
}

void SubstepWorld::set_half_turns(const int* joint_ids, int count, const int* half_turns) {
  for (int i = 0; i < count; ++i) {
    Counted* one = find_counted(joint_ids[i]);
    if (!one) throw std::invalid_argument("joint " + std::to_string(joint_ids[i]) + " counts no turns");
    solver_.joint_impulses[one->place] = one->known = Real(half_turns[i]);
  }
}

std::vector<HalfTurns> SubstepWorld::take_turned() {
  std::vector<HalfTurns> turned;
  const double step = std::max(0.0, double(measures_.size()) - 1);
  for (Counted& one : counted_) {
    const Real now = solver_.joint_impulses[one.place];
    if (now != one.known) turned.push_back({step, double(one.joint), double(now)});
    one.known = now;
  }
  return turned;
}

}  // namespace lapjoint
