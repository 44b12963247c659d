#include "substeps/joint_wrenches.h"

#include <utility>

#include "assertions.h"

namespace lapjoint {

namespace {

void cross(const double* a, const double* b, double* out) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

template <typename Number>
void turn(const double* axes, const Number* local, double* out) {
  for (int k = 0; k < 3; ++k) out[k] = axes[3 * k] * local[0] + axes[3 * k + 1] * local[1] + axes[3 * k + 2] * local[2];
}

}  // namespace

void JointWrenches::define(std::vector<JointDefinition> joints, const std::vector<AxisDefinition>& axes) {
  joints_ = std::move(joints);
  axes_ = axes;
  clear();
}

void JointWrenches::clear() { sums_.assign(joints_.size(), {}); }

void JointWrenches::add(const Bodies& bodies, const std::vector<Real>& impulses) {
  for (std::size_t i = 0; i < joints_.size(); ++i) {
    const JointDefinition& joint = joints_[i];
    LAPJOINT_ASSERT(joint.first_impulse + 6 + joint.axis_count <= static_cast<int>(impulses.size()));
    const Real* rows = &impulses[joint.first_impulse];
    double force[3] = {0, 0, 0}, own[3] = {0, 0, 0};
    const auto add_row = [&](const JointRow& row, double impulse) {
      for (int k = 0; k < 3; ++k) {
        force[k] += impulse * row.along[k];
        own[k] += impulse * row.own_a[k];
      }
    };
    JointRow made[6];
    JointSweeps::rows_of(joint, bodies, made);
    int count = 0;
    for (int axis = 0; axis < 6; ++axis)
      if (joint.locked >> axis & 1) add_row(made[count++], rows[axis]);
    for (int k = 0; k < joint.axis_count; ++k)
      add_row(JointSweeps::row_of_axis(joint, axes_[joint.first_axis + k], bodies), rows[6 + k]);

    // Out of the body's own coordinates: the rows of its frame are principal axes, each times a factor.
    const Frame& frame = bodies.frame[joint.a];
    double torque[3] = {0, 0, 0};
    for (int k = 0; k < 3; ++k) {
      const double row[3] = {frame.rows[k][0], frame.rows[k][1], frame.rows[k][2]};
      const double square = row[0] * row[0] + row[1] * row[1] + row[2] * row[2];
      for (int j = 0; square > 0 && j < 3; ++j) torque[j] += own[k] / square * row[j];
    }
    double arm[3], moment[3];
    turn(bodies.pose[joint.a].axes, joint.place_a, arm);
    cross(arm, force, moment);
    for (int k = 0; k < 3; ++k) torque[k] -= moment[k];

    for (int axis = 0; axis < 3; ++axis) {
      const double local[3] = {joint.axes_b[axis], joint.axes_b[3 + axis], joint.axes_b[6 + axis]};
      double direction[3];
      turn(bodies.pose[joint.b].axes, local, direction);
      for (int k = 0; k < 3; ++k) {
        sums_[i][axis] += direction[k] * force[k];
        sums_[i][3 + axis] += direction[k] * torque[k];
      }
    }
  }
}

}  // namespace lapjoint
