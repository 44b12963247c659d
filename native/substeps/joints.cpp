#include "substeps/joints.h"

#include <cstring>

namespace lapjoint {

namespace {

constexpr double kSteep = 0.1;  // cosine of the middle angle, at least: beyond, the outer two cannot be told apart
constexpr Real kFar = Real(1e30);
constexpr double kFastest = 1;  // of a spring: its frequency times the substep

struct Vector {
  double x, y, z;
};

Vector operator-(const Vector& a, const Vector& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
Vector operator+(const Vector& a, const Vector& b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
Vector operator*(double a, const Vector& b) { return {a * b.x, a * b.y, a * b.z}; }
double dot(const Vector& a, const Vector& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
Vector cross(const Vector& a, const Vector& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <typename Number>
Vector vector(const Number* from) {
  return {double(from[0]), double(from[1]), double(from[2])};
}
Vector column(const Real* matrix, int k) { return {double(matrix[k]), double(matrix[3 + k]), double(matrix[6 + k])}; }
Vector times(const double* matrix, const Vector& v) {
  return {matrix[0] * v.x + matrix[1] * v.y + matrix[2] * v.z, matrix[3] * v.x + matrix[4] * v.y + matrix[5] * v.z,
          matrix[6] * v.x + matrix[7] * v.y + matrix[8] * v.z};
}

// Into a body's own coordinates.
void put_own(const Frame& frame, const Vector& world, Real* out) {
  for (int k = 0; k < 3; ++k)
    out[k] = Real(frame.rows[k][0] * world.x + frame.rows[k][1] * world.y + frame.rows[k][2] * world.z);
}

// Where a joint stands: anchors, and the axes of both frames.
struct Stance {
  const Pose &a, &b;
  Vector anchor_a, anchor_b, axes_a[3], axes_b[3];

  Stance(const JointDefinition& joint, const Bodies& bodies) : a(bodies.pose[joint.a]), b(bodies.pose[joint.b]) {
    anchor_a = vector(a.position) + times(a.axes, vector(joint.place_a));
    anchor_b = vector(b.position) + times(b.axes, vector(joint.place_b));
    if (joint.locked == 7 && joint.axis_count == 0) return;  // a ball
    for (int k = 0; k < 3; ++k) {
      axes_a[k] = times(a.axes, column(joint.axes_a, k));
      axes_b[k] = times(b.axes, column(joint.axes_b, k));
    }
  }

  // Row along an axis, of a relative to b. A point has the world's axes and its own anchors; else forces act where a's
  // anchor is.
  void put_along(const JointDefinition& joint, const Bodies& bodies, int axis, bool of_point, JointRow& row) const {
    const Vector world[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    const Vector& direction = of_point ? world[axis] : axes_b[axis];
    row.along[0] = Real(direction.x);
    row.along[1] = Real(direction.y);
    row.along[2] = Real(direction.z);
    put_own(bodies.frame[joint.a], cross(anchor_a - vector(a.position), direction), row.own_a);
    put_own(bodies.frame[joint.b], cross((of_point ? anchor_b : anchor_a) - vector(b.position), direction), row.own_b);
    row.error = Real(dot(direction, anchor_a - anchor_b));
  }

  void put_about(const JointDefinition& joint, const Bodies& bodies, const Vector& direction, double error,
                 JointRow& row) const {
    row.along[0] = row.along[1] = row.along[2] = 0;
    put_own(bodies.frame[joint.a], direction, row.own_a);
    put_own(bodies.frame[joint.b], direction, row.own_b);
    row.error = Real(error);
  }

  // Row of a locked axis. Locked angles hold two axes, one of each frame, at right angles; which two depends on what is
  // free, so that this is possible however far it turns.
  void put_locked(const JointDefinition& joint, const Bodies& bodies, int axis, JointRow& row) const {
    if (axis < 3) return put_along(joint, bodies, axis, joint.is_point(), row);
    const Vector *x = axes_a, *y = axes_b;
    if (axis == 3) return put_about(joint, bodies, cross(x[1], y[2]), dot(x[1], y[2]), row);
    if (axis == 4) return put_about(joint, bodies, cross(y[2], x[0]), -dot(y[2], x[0]), row);
    if ((joint.locked >> 3) == 5) return put_about(joint, bodies, cross(y[0], x[1]), -dot(y[0], x[1]), row);
    put_about(joint, bodies, cross(x[0], y[1]), dot(x[0], y[1]), row);
  }

  // Row of an axis that is free, limited or driven. Angles: a's frame in b's is a turn about z after one about y after
  // one about x.
  void put_free(const JointDefinition& joint, const Bodies& bodies, int axis, JointRow& row) const {
    if (axis < 3) return put_along(joint, bodies, axis, false, row);
    const Vector *x = axes_a, *y = axes_b;
    Vector middle = cross(y[2], x[0]);
    const double length = std::sqrt(dot(middle, middle));
    middle = length > 1e-6 ? (1 / length) * middle : y[1];
    // Each direction is across the other two, so that it tells one angle's change alone.
    const double steep = 1 / std::max(length, kSteep);
    if (axis == 3)
      put_about(joint, bodies, steep * cross(middle, y[2]), std::atan2(dot(y[2], x[1]), dot(y[2], x[2])), row);
    else if (axis == 4)
      put_about(joint, bodies, middle, std::asin(std::clamp(-dot(y[2], x[0]), -1.0, 1.0)), row);
    else
      put_about(joint, bodies, steep * cross(x[0], middle), std::atan2(dot(y[1], x[0]), dot(y[0], x[0])), row);
  }
};

void put(const Real* from, Lanes3& into, int lane) {
  into.x[lane] = from[0];
  into.y[lane] = from[1];
  into.z[lane] = from[2];
}

Lanes inverse_or_zero(Lanes value) { return where_positive(value, all(1) / greater(value, all(Real(1e-30))), all(0)); }

// Inverse of a symmetric matrix: xx xy xz yy yz zz. A row of zeros has none.
void invert(const Lanes* k, Lanes* out) {
  const Lanes one = all(1);
  const Lanes xx = where_positive(k[0], k[0], one), yy = where_positive(k[3], k[3], one),
              zz = where_positive(k[5], k[5], one);
  const Lanes xy = k[1], xz = k[2], yz = k[4];
  out[0] = yy * zz - yz * yz;
  out[1] = xz * yz - xy * zz;
  out[2] = xy * yz - xz * yy;
  out[3] = xx * zz - xz * xz;
  out[4] = xy * xz - xx * yz;
  out[5] = xx * yy - xy * xy;
  const Lanes inverse = inverse_or_zero(xx * out[0] + xy * out[1] + xz * out[2]);
  for (int i = 0; i < 6; ++i) out[i] = out[i] * inverse;
}

LAPJOINT_INLINE Lanes3 times(const Lanes* m, const Lanes3& v) {
  return {m[0] * v.x + m[1] * v.y + m[2] * v.z, m[1] * v.x + m[3] * v.y + m[4] * v.z,
          m[2] * v.x + m[4] * v.y + m[5] * v.z};
}

}  // namespace

int JointSweeps::rows_of(const JointDefinition& joint, const Bodies& bodies, JointRow* rows) {
  const Stance stance(joint, bodies);
  int count = 0;
  for (int axis = 0; axis < 6; ++axis)
    if (joint.locked >> axis & 1) stance.put_locked(joint, bodies, axis, rows[count++]);
  return count;
}

JointRow JointSweeps::row_of_axis(const JointDefinition& joint, const AxisDefinition& axis, const Bodies& bodies) {
  JointRow row;
  Stance(joint, bodies).put_free(joint, bodies, axis.axis, row);
  const Real sign = axis.kind == AxisDefinition::kUpper ? -1 : 1;  // an upper limit is a lower one of the opposite
  for (int k = 0; k < 3; ++k) {
    row.along[k] *= sign;
    row.own_a[k] *= sign;
    row.own_b[k] *= sign;
  }
  row.error = axis.kind == AxisDefinition::kMotor ? 0 : sign * (row.error - axis.value);
  return row;
}

// ---- what there is -------------------------------------------------------------------------------------------------

// Blocks of the groups that joints were put in.
void JointSweeps::define_blocks(const Colours& colours, const std::vector<int>& joint_of, bool is_point,
                                std::vector<Block>& blocks, std::vector<int>& lanes) {
  blocks.resize(colours.group_count());
  for (Block& block : blocks) block.is_point = is_point;
  lanes.assign(colours.members().size(), -1);
  for (std::size_t i = 0; i < lanes.size(); ++i)
    if (colours.members()[i] != Colours::kEmpty) lanes[i] = joint_of[colours.members()[i]];
}

void JointSweeps::define(std::vector<JointDefinition> joints, std::vector<AxisDefinition> axes, int fixed) {
  joints_ = std::move(joints);
  axes_ = std::move(axes);
  // Scattered: see Colours.
  std::vector<std::pair<std::uint64_t, int>> order;
  for (std::size_t i = 0; i < joints_.size(); ++i)
    order.emplace_back(scattered_key(static_cast<std::uint64_t>(joints_[i].id)), static_cast<int>(i));
  std::sort(order.begin(), order.end());

  Colours colours;
  std::vector<ConstraintEnds> ends;
  std::vector<int> joint_of;
  const auto collect = [&](auto&& wanted) {
    ends.clear();
    joint_of.clear();
    for (const auto& [key, i] : order) {
      if (!wanted(joints_[i])) continue;
      ends.push_back({joints_[i].a, joints_[i].b});
      joint_of.push_back(i);
    }
    colours.group(ends, std::vector<std::uint8_t>(ends.size(), 0), fixed);
  };
  collect([](const JointDefinition& joint) { return !joint.direct && (joint.locked >> 3) != 0; });
  define_blocks(colours, joint_of, false, turns_, turn_lanes_);
  collect([](const JointDefinition& joint) { return !joint.direct && (joint.locked & 7) != 0 && !joint.is_point(); });
  define_blocks(colours, joint_of, false, slides_, slide_lanes_);
  collect([](const JointDefinition& joint) { return !joint.direct && joint.is_point(); });
  define_blocks(colours, joint_of, true, points_, point_lanes_);

  row_count_ = 0;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    Block& block = points_[i];
    block.place_a = block.place_b = {all(0), all(0), all(0)};
    for (int lane = 0; lane < kLanes; ++lane) {
      const int joint = point_lanes_[kLanes * i + lane];
      block.a[lane] = joint < 0 ? fixed : joints_[joint].a;
      block.b[lane] = joint < 0 ? fixed : joints_[joint].b;
      if (joint < 0) continue;
      put(joints_[joint].place_a, block.place_a, lane);
      put(joints_[joint].place_b, block.place_b, lane);
    }
  }
  for (const JointDefinition& joint : joints_)
    for (int axis = 0; axis < 6; ++axis) row_count_ += !joint.direct && (joint.locked >> axis & 1);

  // A joint's axes one after the other: each in a turn of its own.
  std::vector<ConstraintEnds> axis_ends;
  std::vector<Axis> all_axes;
  for (const auto& [key, i] : order) {
    for (int k = 0; k < joints_[i].axis_count; ++k) {
      axis_ends.push_back({joints_[i].a, joints_[i].b});
      Axis axis;
      axis.joint = i;
      axis.axis = joints_[i].first_axis + k;
      all_axes.push_back(axis);
    }
  }
  colours.group(axis_ends, std::vector<std::uint8_t>(axis_ends.size(), 0), fixed);
  axis_rows_.resize(colours.group_count());
  axis_lanes_.assign(colours.members().size(), {});
  for (std::size_t i = 0; i < axis_lanes_.size(); ++i)
    if (colours.members()[i] != Colours::kEmpty) axis_lanes_[i] = all_axes[colours.members()[i]];
  row_count_ += static_cast<long>(all_axes.size());
}

// ---- a step's rows -------------------------------------------------------------------------------------------------

void JointSweeps::prepare(const Bodies& bodies, const JointSettings& settings, const std::vector<Real>& impulses) {
  settings_ = settings;
  const Real per_substep = 1 / Real(settings.substeps);
  const auto load = [&](std::vector<Block>& blocks, const std::vector<int>& lanes, int first_axis) {
    for (std::size_t i = 0; i < blocks.size(); ++i)
      for (int lane = 0; lane < kLanes; ++lane) {
        const int joint = lanes[kLanes * i + lane];
        for (int k = 0; k < 3; ++k)
          blocks[i].impulse[k][lane] =
              joint < 0 ? 0 : impulses[joints_[joint].first_impulse + first_axis + k] * per_substep;
      }
  };
  prepare_points(bodies);
  prepare_blocks(turns_, turn_lanes_, 3, bodies);
  prepare_blocks(slides_, slide_lanes_, 0, bodies);
  load(points_, point_lanes_, 0);
  load(turns_, turn_lanes_, 3);
  load(slides_, slide_lanes_, 0);
  prepare_axes(bodies);
  for (std::size_t i = 0; i < axis_rows_.size(); ++i)
    for (int lane = 0; lane < kLanes; ++lane) {
      const Axis& axis = axis_lanes_[kLanes * i + lane];
      if (axis.joint < 0) continue;
      const JointDefinition& joint = joints_[axis.joint];
      axis_rows_[i].impulse[lane] = impulses[joint.first_impulse + 6 + axis.axis - joint.first_axis] * per_substep;
    }
}

template <typename Visit>
void JointSweeps::each_impulse(Visit&& visit) const {
  const auto of_blocks = [&](const std::vector<Block>& blocks, const std::vector<int>& lanes, int first_axis) {
    for (std::size_t i = 0; i < blocks.size(); ++i)
      for (int lane = 0; lane < kLanes; ++lane) {
        const int joint = lanes[kLanes * i + lane];
        if (joint < 0) continue;
        for (int k = 0; k < 3; ++k) visit(joints_[joint].first_impulse + first_axis + k, blocks[i].impulse[k][lane]);
      }
  };
  of_blocks(points_, point_lanes_, 0);
  of_blocks(turns_, turn_lanes_, 3);
  of_blocks(slides_, slide_lanes_, 0);
  for (std::size_t i = 0; i < axis_rows_.size(); ++i)
    for (int lane = 0; lane < kLanes; ++lane) {
      const Axis& axis = axis_lanes_[kLanes * i + lane];
      if (axis.joint < 0) continue;
      const JointDefinition& joint = joints_[axis.joint];
      visit(joint.first_impulse + 6 + axis.axis - joint.first_axis, axis_rows_[i].impulse[lane]);
    }
}

void JointSweeps::store(std::vector<Real>& impulses) const {
  const Real in_step = Real(settings_.substeps);
  each_impulse([&](int place, Real impulse) { impulses[place] = impulse * in_step; });
}

void JointSweeps::add_impulses(std::vector<Real>& sums) const {
  each_impulse([&](int place, Real impulse) { sums[place] += impulse; });
}

// Of four points, for where their bodies are: arms turn with them, exactly.
LAPJOINT_INLINE void JointSweeps::turn_points(Block& block, const Bodies& bodies) {
  const Motion* motion = bodies.motion.data();
  const Frames frame_a = gather_frames(bodies.frame.data(), block.a);
  const Frames frame_b = gather_frames(bodies.frame.data(), block.b);
  const auto turned = [](const Lanes3& turn, const Lanes3& arm) {
    const Lanes square = lapjoint::dot(turn, turn);
    const Lanes3 once = lapjoint::cross(turn, arm);
    const Lanes first = all(1) - square * (all(Real(1.0 / 6)) - square * all(Real(1.0 / 120)));
    const Lanes second = all(Real(1.0 / 2)) - square * (all(Real(1.0 / 24)) - square * all(Real(1.0 / 720)));
    return first * once + second * lapjoint::cross(turn, once);
  };
  const Lanes3 more_a = turned(frame_a.world(gather<&Motion::turned>(motion, block.a)), block.arm_a);
  const Lanes3 more_b = turned(frame_b.world(gather<&Motion::turned>(motion, block.b)), block.arm_b);
  // What is small is added up first.
  const Lanes3 moved =
      block.root_a * gather<&Motion::moved>(motion, block.a) - block.root_b * gather<&Motion::moved>(motion, block.b);
  const Lanes3 apart = block.apart + (moved + (more_a - more_b));
  block.error[0] = apart.x;
  block.error[1] = apart.y;
  block.error[2] = apart.z;
  const Lanes zero = all(0);
  const auto fill = [&](const Frames& frame, const Lanes3& arm, Lanes3* own) {
    own[0] = frame.own({zero, arm.z, -arm.y});
    own[1] = frame.own({-arm.z, zero, arm.x});
    own[2] = frame.own({arm.y, -arm.x, zero});
  };
  fill(frame_a, block.arm_a + more_a, block.own_a);
  fill(frame_b, block.arm_b + more_b, block.own_b);
}

void JointSweeps::prepare_points(const Bodies& bodies) {
  const Lanes zero = all(0);
  for (Block& block : points_) {
    const auto turned = [&](const int* places, const Lanes3& local) {
      Lanes m[9];
      for (int lane = 0; lane < kLanes; ++lane)
        for (int k = 0; k < 9; ++k) m[k][lane] = bodies.start[places[lane]].axes[k];
      return Lanes3{m[0] * local.x + m[1] * local.y + m[2] * local.z, m[3] * local.x + m[4] * local.y + m[5] * local.z,
                    m[6] * local.x + m[7] * local.y + m[8] * local.z};
    };
    block.arm_a = turned(block.a, block.place_a);
    block.arm_b = turned(block.b, block.place_b);
    Lanes3 between;
    for (int lane = 0; lane < kLanes; ++lane) {
      const Real *a = bodies.start[block.a[lane]].position, *b = bodies.start[block.b[lane]].position;
      between.x[lane] = a[0] - b[0];
      between.y[lane] = a[1] - b[1];
      between.z[lane] = a[2] - b[2];
      block.root_a[lane] = bodies.frame[block.a[lane]].root[0];
      block.root_b[lane] = bodies.frame[block.b[lane]].root[0];
    }
    block.apart = between + (block.arm_a - block.arm_b);
    turn_points(block, bodies);
    const Lanes straight = block.root_a * block.root_a + block.root_b * block.root_b;
    Lanes k[6];
    int at = 0;
    for (int i = 0; i < 3; ++i)
      for (int j = i; j < 3; ++j, ++at)
        k[at] = (i == j ? straight : zero) + lapjoint::dot(block.own_a[i], block.own_a[j]) +
                lapjoint::dot(block.own_b[i], block.own_b[j]);
    invert(k, block.inverse);
  }
}

void JointSweeps::put_block_rows(Block& block, int lane, int number, int first_axis, const Bodies& bodies) const {
  const JointDefinition& joint = joints_[number];
  const Stance stance(joint, bodies);
  for (int k = 0; k < 3; ++k) {
    if (!(joint.locked >> (first_axis + k) & 1)) continue;
    JointRow row;
    stance.put_locked(joint, bodies, first_axis + k, row);
    put(row.along, block.along[k], lane);
    put(row.own_a, block.own_a[k], lane);
    put(row.own_b, block.own_b[k], lane);
    block.error[k][lane] = row.error;
  }
}

void JointSweeps::prepare_blocks(std::vector<Block>& blocks, const std::vector<int>& lanes, int first_axis,
                                 const Bodies& bodies) {
  const Lanes zero = all(0);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Block& block = blocks[i];
    for (int k = 0; k < 3; ++k) {
      block.along[k] = block.own_a[k] = block.own_b[k] = {zero, zero, zero};
      block.error[k] = zero;
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      const int number = lanes[kLanes * i + lane];
      block.a[lane] = number < 0 ? bodies.fixed() : joints_[number].a;
      block.b[lane] = number < 0 ? bodies.fixed() : joints_[number].b;
      if (number >= 0) put_block_rows(block, lane, number, first_axis, bodies);
      block.root_a[lane] = bodies.frame[block.a[lane]].root[0];
      block.root_b[lane] = bodies.frame[block.b[lane]].root[0];
    }
    const Lanes straight = block.root_a * block.root_a + block.root_b * block.root_b;
    Lanes k[6];
    int at = 0;
    for (int r = 0; r < 3; ++r)
      for (int c = r; c < 3; ++c, ++at)
        k[at] = straight * lapjoint::dot(block.along[r], block.along[c]) +
                lapjoint::dot(block.own_a[r], block.own_a[c]) + lapjoint::dot(block.own_b[r], block.own_b[c]);
    invert(k, block.inverse);
  }
}

void JointSweeps::put_axis_row(AxisRow& out, int lane, const Axis& own, const Bodies& bodies) const {
  const JointRow row = row_of_axis(joints_[own.joint], axes_[own.axis], bodies);
  put(row.along, out.along, lane);
  put(row.own_a, out.own_a, lane);
  put(row.own_b, out.own_b, lane);
  out.error[lane] = row.error;
}

// What an axis gives way by for an impulse, with its joint's locked axes held: they answer after it, and would take
// back most of what it does to the bodies alone.
double JointSweeps::held_inertia(const JointDefinition& joint, int axis, const Bodies& bodies) const {
  const Stance stance(joint, bodies);
  const double root_a = bodies.frame[joint.a].root[0], root_b = bodies.frame[joint.b].root[0];
  double rows[6][12], reach[6];
  int count = 0;
  const auto put_row = [&](const JointRow& row) {
    for (int k = 0; k < 3; ++k) {
      rows[count][k] = root_a * row.along[k];
      rows[count][3 + k] = row.own_a[k];
      rows[count][6 + k] = -root_b * row.along[k];
      rows[count][9 + k] = -row.own_b[k];
    }
  };
  const auto product = [&](int i, int k) {
    double sum = 0;
    for (int at = 0; at < 12; ++at) sum += rows[i][at] * rows[k][at];
    return sum;
  };
  // Gram and Schmidt: each locked row without what those before it hold, then the axis without all of them.
  const auto reduce = [&] {
    const double whole = product(count, count);
    for (int i = 0; i < count; ++i) {
      const double share = product(count, i) * reach[i];
      for (int at = 0; at < 12; ++at) rows[count][at] -= share * rows[i][at];
    }
    return std::pair(whole, product(count, count));
  };
  for (int locked = 0; locked < 6; ++locked) {
    if (!(joint.locked >> locked & 1)) continue;
    JointRow row;
    stance.put_locked(joint, bodies, locked, row);
    put_row(row);
    const auto [whole, left] = reduce();
    if (!(left > 1e-9 * whole)) continue;
    reach[count] = 1 / left;
    ++count;
  }
  JointRow row;
  stance.put_free(joint, bodies, axis, row);
  put_row(row);
  const auto [whole, left] = reduce();
  return std::max(left, 1e-6 * whole);
}

void JointSweeps::prepare_axes(const Bodies& bodies) {
  const Lanes zero = all(0);
  const Real h = settings_.h;
  for (std::size_t i = 0; i < axis_rows_.size(); ++i) {
    AxisRow& out = axis_rows_[i];
    out.along = out.own_a = out.own_b = {zero, zero, zero};
    out.error = out.response = out.impulse = out.low = out.high = out.kept = out.mass = out.extra = zero;
    out.root_a = out.root_b = zero;
    for (int lane = 0; lane < kLanes; ++lane) {
      Axis& own = axis_lanes_[kLanes * i + lane];
      out.a[lane] = out.b[lane] = bodies.fixed();
      if (own.joint < 0) continue;
      const JointDefinition& joint = joints_[own.joint];
      const AxisDefinition& axis = axes_[own.axis];
      out.a[lane] = joint.a;
      out.b[lane] = joint.b;
      out.root_a[lane] = bodies.frame[joint.a].root[0];
      out.root_b[lane] = bodies.frame[joint.b].root[0];
      put_axis_row(out, lane, own, bodies);
      const double inertia = held_inertia(joint, axis.axis, bodies);
      out.response[lane] = inertia > 0 ? Real(1 / inertia) : 0;
      out.low[lane] = axis.kind == AxisDefinition::kMotor    ? -axis.force * h
                      : axis.kind == AxisDefinition::kSpring ? -kFar
                                                             : 0;
      out.high[lane] = axis.kind == AxisDefinition::kMotor ? axis.force * h : kFar;
      if (axis.kind == AxisDefinition::kSpring) {
        // The row alone is an oscillator. Its velocity after a substep is kept_share of what it was, less rate times
        // how far it is out: so chosen that the two together have the oscillator's own frequency and decay. What else
        // changes its velocity counts half, as if it came in the middle of the substep: so it gives way to a load as
        // far as it should.
        const double square = double(axis.stiffness) * inertia, decay = 0.5 * double(axis.damping) * inertia;
        const double omega_h = std::sqrt(square) * h;
        const double under = square - decay * decay;
        if (omega_h <= kFastest || under <= 0) {
          const double left = std::exp(-2 * decay * h), root = std::sqrt(std::abs(under)) * h;
          const double trace = 2 * std::exp(-decay * h) * (under > 0 ? std::cos(root) : std::cosh(root));
          own.kept_share = Real(left);
          own.rate = Real((1 + left - trace) / h);
        } else {  // too fast to be seen
          const double scale = 1 / (1 + 2 * decay * h + square * h * h);
          own.kept_share = Real(scale);
          own.rate = Real(square * h * scale);
        }
      }
    }
  }
}

void JointSweeps::turn(Bodies& bodies) {
  Bodies::Twist* more = bodies.turned_impulses.data();
  // The difference that turning makes to what impulses do to bodies.
  const auto turn_block = [&](Block& block, auto&& put_rows) {
    Lanes3 own_a[3], own_b[3], along[3];
    for (int k = 0; k < 3; ++k) {
      own_a[k] = block.own_a[k];
      own_b[k] = block.own_b[k];
      along[k] = block.along[k];
    }
    put_rows();
    Lanes3 turn_a = gather<&Bodies::Twist::angular>(more, block.a),
           turn_b = gather<&Bodies::Twist::angular>(more, block.b);
    for (int k = 0; k < 3; ++k) {
      add(block.impulse[k], block.own_a[k] - own_a[k], turn_a);
      add(-block.impulse[k], block.own_b[k] - own_b[k], turn_b);
    }
    scatter<&Bodies::Twist::angular>(turn_a, more, block.a);
    scatter<&Bodies::Twist::angular>(turn_b, more, block.b);
    if (block.is_point) return;
    Lanes3 push{all(0), all(0), all(0)};
    for (int k = 0; k < 3; ++k) add(block.impulse[k], block.along[k] - along[k], push);
    Lanes3 linear_a = gather<&Bodies::Twist::linear>(more, block.a),
           linear_b = gather<&Bodies::Twist::linear>(more, block.b);
    add(block.root_a, push, linear_a);
    add(-block.root_b, push, linear_b);
    scatter<&Bodies::Twist::linear>(linear_a, more, block.a);
    scatter<&Bodies::Twist::linear>(linear_b, more, block.b);
  };
  for (Block& block : points_) turn_block(block, [&] { turn_points(block, bodies); });
  const auto turn_blocks = [&](std::vector<Block>& blocks, const std::vector<int>& lanes, int first_axis) {
    for (std::size_t i = 0; i < blocks.size(); ++i)
      turn_block(blocks[i], [&] {
        for (int lane = 0; lane < kLanes; ++lane)
          if (lanes[kLanes * i + lane] >= 0)
            put_block_rows(blocks[i], lane, lanes[kLanes * i + lane], first_axis, bodies);
      });
  };
  turn_blocks(turns_, turn_lanes_, 3);
  turn_blocks(slides_, slide_lanes_, 0);
  for (std::size_t i = 0; i < axis_rows_.size(); ++i) {
    AxisRow& row = axis_rows_[i];
    const Lanes3 own_a = row.own_a, own_b = row.own_b, along = row.along;
    for (int lane = 0; lane < kLanes; ++lane)
      if (axis_lanes_[kLanes * i + lane].joint >= 0) put_axis_row(row, lane, axis_lanes_[kLanes * i + lane], bodies);
    Lanes3 turn_a = gather<&Bodies::Twist::angular>(more, row.a), turn_b = gather<&Bodies::Twist::angular>(more, row.b);
    Lanes3 linear_a = gather<&Bodies::Twist::linear>(more, row.a),
           linear_b = gather<&Bodies::Twist::linear>(more, row.b);
    add(row.impulse, row.own_a - own_a, turn_a);
    add(-row.impulse, row.own_b - own_b, turn_b);
    add(row.impulse * row.root_a, row.along - along, linear_a);
    add(-row.impulse * row.root_b, row.along - along, linear_b);
    scatter<&Bodies::Twist::angular>(turn_a, more, row.a);
    scatter<&Bodies::Twist::angular>(turn_b, more, row.b);
    scatter<&Bodies::Twist::linear>(linear_a, more, row.a);
    scatter<&Bodies::Twist::linear>(linear_b, more, row.b);
  }
}

void JointSweeps::warm_start(Bodies& bodies) const {
  Motion* motion = bodies.motion.data();
  const auto apply = [&](const int* a, const int* b, Lanes root_a, Lanes root_b, const Lanes3& along,
                         const Lanes3* own_a, const Lanes3* own_b, const Lanes* impulse, int count) {
    Lanes3 linear_a = gather<&Motion::moved>(motion, a), linear_b = gather<&Motion::moved>(motion, b);
    Lanes3 turn_a = gather<&Motion::turned>(motion, a), turn_b = gather<&Motion::turned>(motion, b);
    add(root_a, along, linear_a);
    add(-root_b, along, linear_b);
    for (int k = 0; k < count; ++k) {
      add(impulse[k], own_a[k], turn_a);
      add(-impulse[k], own_b[k], turn_b);
    }
    scatter<&Motion::moved>(linear_a, motion, a);
    scatter<&Motion::moved>(linear_b, motion, b);
    scatter<&Motion::turned>(turn_a, motion, a);
    scatter<&Motion::turned>(turn_b, motion, b);
  };
  for (const AxisRow& row : axis_rows_)
    apply(row.a, row.b, row.root_a, row.root_b, row.impulse * row.along, &row.own_a, &row.own_b, &row.impulse, 1);
  for (const std::vector<Block>* blocks : {&turns_, &slides_, &points_}) {
    for (const Block& block : *blocks) {
      Lanes3 along{block.impulse[0], block.impulse[1], block.impulse[2]};
      if (!block.is_point) {
        along = block.impulse[0] * block.along[0];
        add(block.impulse[1], block.along[1], along);
        add(block.impulse[2], block.along[2], along);
      }
      apply(block.a, block.b, block.root_a, block.root_b, along, block.own_a, block.own_b, block.impulse, 3);
    }
  }
}

// ---- sweeps --------------------------------------------------------------------------------------------------------

// Coefficients of axes for a sweep.
template <bool kBias>
void JointSweeps::update_axes(const Bodies& bodies) {
  const Real h = settings_.h;
  for (std::size_t i = 0; i < axis_rows_.size(); ++i) {
    AxisRow& row = axis_rows_[i];
    Lanes before = all(0);
    if constexpr (kBias) {
      const Bodies::Twist* last = bodies.last.data();
      const Lanes3 apart = row.root_a * gather<&Bodies::Twist::linear>(last, row.a) -
                           row.root_b * gather<&Bodies::Twist::linear>(last, row.b);
      before = lapjoint::dot(row.along, apart) +
               lapjoint::dot(row.own_a, gather<&Bodies::Twist::angular>(last, row.a)) -
               lapjoint::dot(row.own_b, gather<&Bodies::Twist::angular>(last, row.b));
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      const Axis& own = axis_lanes_[kLanes * i + lane];
      if (own.joint < 0) continue;
      const AxisDefinition& axis = axes_[own.axis];
      const Real response = row.response[lane], error = row.error[lane];
      Real kept = 1, mass = response, extra = 0;
      if (axis.kind == AxisDefinition::kMotor) {
        extra = -response * axis.value;
      } else if (axis.kind == AxisDefinition::kSpring) {
        if constexpr (!kBias) continue;  // as it was before bodies moved
        const Real half = (1 - own.kept_share) / 2;
        kept = half;
        mass = half * response;
        extra = response * (half * before[lane] + own.rate * error);
      } else if (error > 0) {
        extra = response * error / h;
      } else if constexpr (kBias) {
        kept = 1 - settings_.soft.impulse_scale;
        mass = response * settings_.soft.mass_scale;
        extra = mass * std::max(settings_.soft.rate * error, -settings_.push_speed);
      }
      row.kept[lane] = kept;
      row.mass[lane] = mass;
      row.extra[lane] = extra;
    }
  }
}

Real JointSweeps::sweep_axes(Bodies& bodies) {
  Motion* motion = bodies.motion.data();
  Lanes worst = all(0);
  for (AxisRow& row : axis_rows_) {
    Lanes3 linear_a = gather<&Motion::linear>(motion, row.a), linear_b = gather<&Motion::linear>(motion, row.b);
    Lanes3 turn_a = gather<&Motion::angular>(motion, row.a), turn_b = gather<&Motion::angular>(motion, row.b);
    const Lanes speed = lapjoint::dot(row.along, row.root_a * linear_a - row.root_b * linear_b) +
                        lapjoint::dot(row.own_a, turn_a) - lapjoint::dot(row.own_b, turn_b);
    const Lanes after = lesser(greater(row.kept * row.impulse - row.mass * speed - row.extra, row.low), row.high);
    const Lanes change = after - row.impulse;
    row.impulse = after;
    worst = greater(worst, absolute(change) * inverse_or_zero(row.response));
    add(change * row.root_a, row.along, linear_a);
    add(-change * row.root_b, row.along, linear_b);
    add(change, row.own_a, turn_a);
    add(-change, row.own_b, turn_b);
    scatter<&Motion::linear>(linear_a, motion, row.a);
    scatter<&Motion::linear>(linear_b, motion, row.b);
    scatter<&Motion::angular>(turn_a, motion, row.a);
    scatter<&Motion::angular>(turn_b, motion, row.b);
  }
  return largest(worst);
}

template <bool kBias>
Real JointSweeps::sweep_blocks(std::vector<Block>& blocks, Bodies& bodies) {
  Motion* motion = bodies.motion.data();
  const Lanes rate = all(settings_.soft.rate), mass_scale = all(settings_.soft.mass_scale),
              impulse_scale = all(settings_.soft.impulse_scale);
  Lanes worst = all(0);
  for (Block& block : blocks) {
    Lanes3 linear_a = gather<&Motion::linear>(motion, block.a), linear_b = gather<&Motion::linear>(motion, block.b);
    Lanes3 turn_a = gather<&Motion::angular>(motion, block.a), turn_b = gather<&Motion::angular>(motion, block.b);
    const Lanes3 apart = block.root_a * linear_a - block.root_b * linear_b;
    Lanes3 speed = apart;
    if (!block.is_point)
      speed = {lapjoint::dot(block.along[0], apart), lapjoint::dot(block.along[1], apart),
               lapjoint::dot(block.along[2], apart)};
    speed.x += lapjoint::dot(block.own_a[0], turn_a) - lapjoint::dot(block.own_b[0], turn_b);
    speed.y += lapjoint::dot(block.own_a[1], turn_a) - lapjoint::dot(block.own_b[1], turn_b);
    speed.z += lapjoint::dot(block.own_a[2], turn_a) - lapjoint::dot(block.own_b[2], turn_b);
    Lanes3 change;
    if constexpr (kBias) {
      const Lanes3 wanted = {speed.x + rate * block.error[0], speed.y + rate * block.error[1],
                             speed.z + rate * block.error[2]};
      change = times(block.inverse, wanted);
      change = {-mass_scale * change.x - impulse_scale * block.impulse[0],
                -mass_scale * change.y - impulse_scale * block.impulse[1],
                -mass_scale * change.z - impulse_scale * block.impulse[2]};
    } else {
      change = all(-1) * times(block.inverse, speed);
      worst = greater(worst, greater(absolute(speed.x), greater(absolute(speed.y), absolute(speed.z))));
    }
    block.impulse[0] += change.x;
    block.impulse[1] += change.y;
    block.impulse[2] += change.z;
    Lanes3 along = change;
    if (!block.is_point) {
      along = change.x * block.along[0];
      add(change.y, block.along[1], along);
      add(change.z, block.along[2], along);
    }
    add(block.root_a, along, linear_a);
    add(-block.root_b, along, linear_b);
    const Lanes parts[3] = {change.x, change.y, change.z};
    for (int k = 0; k < 3; ++k) {
      add(parts[k], block.own_a[k], turn_a);
      add(-parts[k], block.own_b[k], turn_b);
    }
    scatter<&Motion::linear>(linear_a, motion, block.a);
    scatter<&Motion::linear>(linear_b, motion, block.b);
    scatter<&Motion::angular>(turn_a, motion, block.a);
    scatter<&Motion::angular>(turn_b, motion, block.b);
  }
  return largest(worst);
}

// What may give way comes first, what holds last.
template <bool kBias>
Real JointSweeps::sweep(Bodies& bodies) {
  if (!axis_rows_.empty()) update_axes<kBias>(bodies);
  Real worst = sweep_axes(bodies);
  worst = std::max(worst, sweep_blocks<kBias>(turns_, bodies));
  worst = std::max(worst, sweep_blocks<kBias>(slides_, bodies));
  return std::max(worst, sweep_blocks<kBias>(points_, bodies));
}

void JointSweeps::solve(Bodies& bodies) { sweep<true>(bodies); }
Real JointSweeps::relax(Bodies& bodies) { return sweep<false>(bodies); }

}  // namespace lapjoint
