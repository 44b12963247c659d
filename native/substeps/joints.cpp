#include "substeps/joints.h"

#include <cstring>

#include "assertions.h"
#include "substeps/drive_response.h"
#include "substeps/stance.h"
#include "substeps/union_find.h"

namespace lapjoint {

namespace {

constexpr Real kFar = Real(1e30);
constexpr int kMostSweeps = 8;
constexpr double kMostTurn = 0.04;  // rad that corrections may turn a body by in a step

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

// What a row gives way by for an impulse, with its joint's locked axes held. A row is reduced by them: what it is to do
// to the bodies is what it does together with the answer of the locked axes, whose velocities it leaves alone. A sweep
// of rows that are reduced comes to the joint's solution at once. With the row as it is, the next joint would see
// bodies before the locked axes have answered: many times what the row does in the end, and beyond a mass ratio of a
// few it swings up.
class HeldRows {
 public:
  HeldRows(const JointDefinition& joint, const Bodies& bodies)
      : root_a_(bodies.frame[joint.a].root[0]), root_b_(bodies.frame[joint.b].root[0]) {
    const Stance stance(joint, bodies);
    has_lost_axis_ = stance.has_lost_axis(joint);
    for (int locked = 0; locked < 6; ++locked) {
      if (!(joint.locked >> locked & 1)) continue;
      JointRow row;
      stance.put_locked(joint, bodies, locked, row);
      const auto [whole, left] = reduce(row);
      LAPJOINT_ASSERT(!(left > whole * (1 + 1e-6)));  // nothing is added by what is taken away
      if (!(left > 1e-9 * whole)) continue;
      for (int k = 0; k < 6; ++k) of_locked_[count_][k] = -of_last_[k];
      of_locked_[count_][locked] = 1;
      locked_[locked] = row;
      reach_[count_] = 1 / left;
      ++count_;
    }
  }

  bool has_lost_axis() const { return has_lost_axis_; }

  // The row itself. `shares`: what the locked axes have of its impulse, with the opposite sign. Its square.
  double take_from(JointRow& row, Real* shares) {
    reduce(row);
    for (int axis = 0; axis < 6; ++axis) {
      shares[axis] = Real(of_last_[axis]);
      if (of_last_[axis] == 0) continue;
      for (int k = 0; k < 3; ++k) {
        row.along[k] -= Real(of_last_[axis] * double(locked_[axis].along[k]));
        row.own_a[k] -= Real(of_last_[axis] * double(locked_[axis].own_a[k]));
        row.own_b[k] -= Real(of_last_[axis] * double(locked_[axis].own_b[k]));
      }
    }
    return product(last(), last());
  }

  // Gram and Schmidt: a row without what the locked ones hold. Its square before and after.
  std::pair<double, double> reduce(const JointRow& row) {
    double* own = rows_[count_];
    for (int k = 0; k < 3; ++k) {
      own[k] = root_a_ * row.along[k];
      own[3 + k] = row.own_a[k];
      own[6 + k] = -root_b_ * row.along[k];
      own[9 + k] = -row.own_b[k];
    }
    const double whole = product(own, own);
    std::fill(of_last_, of_last_ + 6, 0.0);
    for (int i = 0; i < count_; ++i) {
      const double share = product(own, rows_[i]) * reach_[i];
      for (int at = 0; at < 12; ++at) own[at] -= share * rows_[i][at];
      for (int k = 0; k < 6; ++k) of_last_[k] += share * of_locked_[i][k];
    }
    return {whole, product(own, own)};
  }

  const double* last() const { return rows_[count_]; }

  static double product(const double* a, const double* b) {
    double sum = 0;
    for (int at = 0; at < 12; ++at) sum += a[at] * b[at];
    return sum;
  }

 private:
  double root_a_, root_b_;
  double rows_[7][12], reach_[6];
  JointRow locked_[6];
  double of_locked_[6][6], of_last_[6];  // what each has of the locked rows
  int count_ = 0;
  bool has_lost_axis_ = false;
};

}  // namespace

int JointSweeps::rows_of(const JointDefinition& joint, const Bodies& bodies, JointRow* rows) {
  const Stance stance(joint, bodies);
  int count = 0;
  for (int axis = 0; axis < 6; ++axis)
    if (joint.locked >> axis & 1) stance.put_locked(joint, bodies, axis, rows[count++]);
  return count;
}

JointRow JointSweeps::row_about(const JointDefinition& joint, const double* direction, const Bodies& bodies) {
  JointRow row{};
  const Vector about{direction[0], direction[1], direction[2]};
  put_own(bodies.frame[joint.a], about, row.own_a);
  put_own(bodies.frame[joint.b], about, row.own_b);
  return row;
}

JointRow JointSweeps::row_of_axis(const JointDefinition& joint, const AxisDefinition& axis, const Bodies& bodies) {
  JointRow row{};
  if (axis.kind == AxisDefinition::kDrag) {  // about the world's axes
    double direction[3] = {0, 0, 0};
    direction[axis.axis - 3] = 1;
    return row_about(joint, direction, bodies);
  }
  Stance(joint, bodies).put_free(joint, bodies, axis.axis, row);
  for (int k = 0; k < 3; ++k) {
    row.along[k] *= axis.sign();
    row.own_a[k] *= axis.sign();
    row.own_b[k] *= axis.sign();
  }
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

void JointSweeps::define(std::vector<JointDefinition> joints, const std::vector<AxisDefinition>& axes, int fixed) {
  for (const JointDefinition& joint : joints) {
    LAPJOINT_ASSERT(joint.a >= 0 && joint.b >= 0 && joint.a <= fixed && joint.b <= fixed && joint.a != joint.b);
    LAPJOINT_ASSERT(joint.first_axis + joint.axis_count <= static_cast<int>(axes.size()));
  }
  joints_ = std::move(joints);
  axes_ = &axes;
  kept_.assign(joints_.size(), 0);
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

  // Joints that are swept, by the structure that they are part of.
  UnionFind groups(fixed);
  const auto is_swept = [](const JointDefinition& joint) { return joint.ties && !joint.direct; };
  for (const JointDefinition& joint : joints_)
    if (is_swept(joint) && joint.a < fixed && joint.b < fixed) groups.unite(joint.a, joint.b);
  std::vector<int> at(fixed, -1);
  masses_.clear();
  masses_of_.assign(joints_.size(), -1);
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    const JointDefinition& joint = joints_[j];
    if (!is_swept(joint)) continue;
    int& found = at[groups.find(joint.a < fixed ? joint.a : joint.b)];
    if (found < 0) found = static_cast<int>(masses_.size()), masses_.emplace_back();
    masses_of_[j] = found;
    masses_[found].has_axes |= joint.axis_count > 0;
    ++masses_[found].joint_count;
  }

  // A joint's axes one after the other: each in a turn of its own.
  std::vector<ConstraintEnds> axis_ends;
  std::vector<Axis> all_axes;
  reads_last_ = false;
  for (const auto& [key, i] : order) {
    for (int k = 0; k < joints_[i].axis_count; ++k) {
      const AxisDefinition& definition = axes[joints_[i].first_axis + k];
      if (definition.kind == AxisDefinition::kDrag) continue;
      if (joints_[i].direct && definition.ties() && !definition.counted) continue;
      reads_last_ |= definition.kind == AxisDefinition::kSpring || definition.kind == AxisDefinition::kDrive;
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

  collect([&](const JointDefinition& joint) {
    return !joint.direct && joint.axis_count > 0 && axes[joint.first_axis].kind == AxisDefinition::kDrag;
  });
  drag_shares_.assign(18 * colours.members().size(), 0);
  for (std::vector<int>& at : lane_at_) at.assign(joints_.size(), -1);
  const std::vector<int>* lanes_of[3] = {&turn_lanes_, &slide_lanes_, &point_lanes_};
  for (int k = 0; k < 3; ++k)
    for (std::size_t i = 0; i < lanes_of[k]->size(); ++i)
      if ((*lanes_of[k])[i] >= 0) lane_at_[k][(*lanes_of[k])[i]] = static_cast<int>(i);
  drags_.resize(colours.group_count());
  drag_lanes_.assign(colours.members().size(), -1);
  for (std::size_t i = 0; i < drag_lanes_.size(); ++i)
    if (colours.members()[i] != Colours::kEmpty) drag_lanes_[i] = joint_of[colours.members()[i]];
  row_count_ += 3 * static_cast<long>(joint_of.size());
}

// ---- a step's rows -------------------------------------------------------------------------------------------------

void JointSweeps::prepare(const Bodies& bodies, const JointSettings& settings, const std::vector<Real>& impulses) {
  settings_ = settings;
  sweep_count_ = find_sweep_count(bodies);
  for (const JointDefinition& joint : joints_)
    LAPJOINT_ASSERT(joint.kept_place() + joint.keeps <= static_cast<int>(impulses.size()));
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
  // Angles come back no faster than those of structures that are solved at once.
  for (Block& block : turns_) block.most = all(Real(kMostTurn) * per_substep / settings.h);
  for (Block& block : slides_) block.most = all(kFar);
  for (Block& block : points_) block.most = all(kFar);
  prepare_points(bodies);
  prepare_blocks(turns_, turn_lanes_, 3, bodies);
  prepare_blocks(slides_, slide_lanes_, 0, bodies);
  load(points_, point_lanes_, 0);
  load(turns_, turn_lanes_, 3);
  load(slides_, slide_lanes_, 0);
  for (std::size_t j = 0; j < joints_.size(); ++j)
    if (joints_[j].keeps) kept_[j] = impulses[joints_[j].kept_place()];
  prepare_axes(bodies);
  prepare_drags(bodies, impulses);
  for (std::size_t i = 0; i < axis_rows_.size(); ++i)
    for (int lane = 0; lane < kLanes; ++lane) {
      const Axis& axis = axis_lanes_[kLanes * i + lane];
      if (axis.joint < 0) continue;
      const JointDefinition& joint = joints_[axis.joint];
      if (axis.is_direct) continue;
      axis_rows_[i].impulse[lane] = impulses[joint.first_impulse + 6 + axis.axis - joint.first_axis] * per_substep;
    }
  // What locked axes have of the impulses of rows that are reduced comes with these.
  each_share([&](int joint, int axis, Real share, Real impulse) {
    if (Real* own = block_impulse(joint, axis)) *own += share * impulse;
  });
}

template <typename Visit>
void JointSweeps::each_share(Visit&& visit) const {
  const auto of_row = [&](int joint, const Real* shares, Real impulse) {
    if (impulse == 0) return;
    for (int axis = 0; axis < 6; ++axis)
      if (shares[axis] != 0) visit(joint, axis, shares[axis], impulse);
  };
  for (std::size_t i = 0; i < axis_lanes_.size(); ++i)
    if (axis_lanes_[i].is_reduced)
      of_row(axis_lanes_[i].joint, axis_lanes_[i].shares, axis_rows_[i / kLanes].impulse[i % kLanes]);
  for (std::size_t i = 0; i < drag_lanes_.size(); ++i)
    for (int k = 0; drag_lanes_[i] >= 0 && k < 3; ++k)
      of_row(drag_lanes_[i], &drag_shares_[18 * i + 6 * k], drags_[i / kLanes].impulse[k][i % kLanes]);
}

Real* JointSweeps::block_impulse(int joint, int axis) {
  const int kind = axis >= 3 ? 0 : joints_[joint].is_point() ? 2 : 1;
  const int at = lane_at_[kind][joint];
  std::vector<Block>* blocks[3] = {&turns_, &slides_, &points_};
  return at < 0 ? nullptr : &(*blocks[kind])[at / kLanes].impulse[axis % 3][at % kLanes];
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
      if (axis.joint < 0 || axis.is_direct) continue;
      const JointDefinition& joint = joints_[axis.joint];
      visit(joint.first_impulse + 6 + axis.axis - joint.first_axis, axis_rows_[i].impulse[lane]);
    }
  for (std::size_t i = 0; i < drag_lanes_.size(); ++i)
    for (int k = 0; drag_lanes_[i] >= 0 && k < 3; ++k)
      visit(joints_[drag_lanes_[i]].first_impulse + 6 + k, drags_[i / kLanes].impulse[k][i % kLanes]);
}

void JointSweeps::store(std::vector<Real>& impulses) const {
  const Real in_step = Real(settings_.substeps);
  each_impulse([&](int place, Real impulse) { impulses[place] = impulse * in_step; });
  each_share([&](int joint, int axis, Real share, Real impulse) {
    impulses[joints_[joint].first_impulse + axis] -= share * impulse * in_step;
  });
  for (std::size_t j = 0; j < joints_.size(); ++j)
    if (joints_[j].keeps) impulses[joints_[j].kept_place()] = kept_[j];
}

void JointSweeps::add_impulses(std::vector<Real>& sums) const {
  each_impulse([&](int place, Real impulse) { sums[place] += impulse; });
  each_share([&](int joint, int axis, Real share, Real impulse) {
    sums[joints_[joint].first_impulse + axis] -= share * impulse;
  });
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
  put_inverse(block);
}

// For where bodies are. An arm across which a light body turns easily has another direction soon: with the inverse of a
// moment before, an update would go too far, by as much as the body is easier to turn than to move.
LAPJOINT_INLINE void JointSweeps::put_inverse(Block& block) {
  const Lanes zero = all(0), straight = block.root_a * block.root_a + block.root_b * block.root_b;
  Lanes k[6];
  int at = 0;
  for (int r = 0; r < 3; ++r)
    for (int c = r; c < 3; ++c, ++at)
      k[at] = (block.is_point ? (r == c ? straight : zero) : straight * lapjoint::dot(block.along[r], block.along[c])) +
              lapjoint::dot(block.own_a[r], block.own_a[c]) + lapjoint::dot(block.own_b[r], block.own_b[c]);
  invert(k, block.inverse);
}

void JointSweeps::prepare_points(const Bodies& bodies) {
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
    put_inverse(block);
  }
}

void JointSweeps::put_axis_row(AxisRow& out, int lane, Axis& own, const Bodies& bodies) {
  const JointDefinition& joint = joints_[own.joint];
  const AxisDefinition& axis = (*axes_)[own.axis];
  JointRow row = row_of_axis(joint, axis, bodies);
  const Real sign = axis.sign();
  if (!joint.direct) {
    own.is_reduced = joint.locked != 0;
    double inertia;
    if (own.is_reduced) {
      HeldRows held(joint, bodies);
      inertia = held.take_from(row, own.shares);
      // A limit that pushes before the axis is there throws its bodies about.
      if (axis.is_limit() && held.has_lost_axis()) inertia = 0;
    } else {
      const double root_a = bodies.frame[joint.a].root[0], root_b = bodies.frame[joint.b].root[0];
      inertia = 0;
      for (int k = 0; k < 3; ++k)
        inertia += (root_a * root_a + root_b * root_b) * row.along[k] * row.along[k] + row.own_a[k] * row.own_a[k] +
                   row.own_b[k] * row.own_b[k];
    }
    out.response[lane] = inertia > 1e-12 ? Real(1 / inertia) : 0;
  }
  put(row.along, out.along, lane);
  put(row.own_a, out.own_a, lane);
  put(row.own_b, out.own_b, lane);
  if (axis.counted) {
    double half_turns = kept_[own.joint];
    const double angle = angle_of(row.error, half_turns);
    kept_[own.joint] = Real(half_turns);
    out.error[lane] = axis.kind == AxisDefinition::kMotor ? 0 : Real(double(sign) * (angle - double(axis.value)));
    return;
  }
  if (axis.axis == AxisDefinition::kGear) {
    for (int k = 0; k < 3; ++k) {
      own.turned_a[k] = bodies.motion[joint.a].turned[k];
      own.turned_b[k] = bodies.motion[joint.b].turned[k];
    }
    out.error[lane] = kept_[own.joint];
    return;
  }
  out.error[lane] = axis.kind == AxisDefinition::kMotor ? 0 : sign * (row.error - axis.value);
}

// Gears: by how much one has turned too far, since the row was made.
void JointSweeps::slip(const AxisRow& row, int lane, Axis& own, const Bodies& bodies) {
  const JointDefinition& joint = joints_[own.joint];
  const Lanes &a = bodies.motion[joint.a].turned, &b = bodies.motion[joint.b].turned;
  const Real of_a[3] = {row.own_a.x[lane], row.own_a.y[lane], row.own_a.z[lane]};
  const Real of_b[3] = {row.own_b.x[lane], row.own_b.y[lane], row.own_b.z[lane]};
  double slipped = kept_[own.joint];
  for (int k = 0; k < 3; ++k)
    slipped += double(of_a[k]) * (double(a[k]) - double(own.turned_a[k])) -
               double(of_b[k]) * (double(b[k]) - double(own.turned_b[k]));
  kept_[own.joint] = Real(slipped);
}

void JointSweeps::row_of(const JointDefinition& joint, int axis, const Bodies& bodies, JointRow& row) {
  Stance(joint, bodies).put_free(joint, bodies, axis, row);
}

// Half turns are those next to it, and of a quarter more both give the same angle: they need not be the same in all
// workers.
double JointSweeps::angle_of(double angle, double& half_turns) {
  const double counted = counted_angle(angle, half_turns);
  half_turns = std::round(counted / std::numbers::pi);
  return counted;
}

double JointSweeps::inertia_of(const JointDefinition& joint, const AxisDefinition& axis, const Bodies& bodies) {
  HeldRows rows(joint, bodies);
  JointRow row;
  Stance(joint, bodies).put_free(joint, bodies, axis.axis, row);
  const auto [whole, left] = rows.reduce(row);
  // The next axis on a body sees what a drive does to it before the locked ones have answered. Stiff as drives are,
  // they would throw it to and fro between them: an arm of six drives flies apart. With what the body alone gives way
  // by, an update never goes too far.
  if (axis.kind == AxisDefinition::kDrive && joint.shares) return whole;
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
      const AxisDefinition& axis = (*axes_)[own.axis];
      out.a[lane] = joint.a;
      out.b[lane] = joint.b;
      out.root_a[lane] = bodies.frame[joint.a].root[0];
      out.root_b[lane] = bodies.frame[joint.b].root[0];
      put_axis_row(out, lane, own, bodies);
      double inertia = out.response[lane] > 0 ? 1 / double(out.response[lane]) : 0;
      if (joint.direct) {
        inertia = inertia_of(joint, axis, bodies);
        out.response[lane] = inertia > 0 ? Real(1 / inertia) : 0;
      }
      switch (axis.kind) {
        case AxisDefinition::kMotor:
        case AxisDefinition::kDrive:
          out.low[lane] = std::max(-axis.force * h, -kFar);
          out.high[lane] = std::min(axis.force * h, kFar);
          break;
        case AxisDefinition::kSpring:
        case AxisDefinition::kEqual:
          out.low[lane] = -kFar;
          [[fallthrough]];
        default:
          out.high[lane] = kFar;
      }
      own.is_direct = joint.direct && axis.is_solved_at_once();
      if (axis.kind == AxisDefinition::kSpring)
        own.response = DriveResponse::of_spring(axis.stiffness, axis.damping, inertia, h);
      if (axis.kind == AxisDefinition::kDrive) {
        own.response = DriveResponse::of_drive(axis.stiffness, axis.damping, inertia, h, axis.is_angular());
        own.is_direct = joint.direct && !own.response.is_exact;
      }
    }
  }
}

void JointSweeps::prepare_drags(const Bodies& bodies, const std::vector<Real>& impulses) {
  const Lanes zero = all(0);
  const Real per_substep = 1 / Real(settings_.substeps);
  for (std::size_t i = 0; i < drags_.size(); ++i) {
    Drag& out = drags_[i];
    out.most = zero;
    for (int k = 0; k < 3; ++k) {
      out.along[k] = out.own_a[k] = out.own_b[k] = {zero, zero, zero};
      out.impulse[k] = zero;
    }
    out.root_a = out.root_b = zero;
    for (int lane = 0; lane < kLanes; ++lane) {
      const int number = drag_lanes_[kLanes * i + lane];
      out.a[lane] = out.b[lane] = bodies.fixed();
      if (number < 0) continue;
      const JointDefinition& joint = joints_[number];
      out.a[lane] = joint.a;
      out.b[lane] = joint.b;
      out.root_a[lane] = bodies.frame[joint.a].root[0];
      out.root_b[lane] = bodies.frame[joint.b].root[0];
      out.most[lane] = std::min((*axes_)[joint.first_axis].force * settings_.h, kFar);
      put_drag_rows(out, lane, number, bodies);
      for (int k = 0; k < 3; ++k) out.impulse[k][lane] = impulses[joint.first_impulse + 6 + k] * per_substep;
    }
    put_drag_inverse(out);
  }
}

void JointSweeps::put_drag_rows(Drag& out, int lane, int number, const Bodies& bodies) {
  const JointDefinition& joint = joints_[number];
  const std::size_t at = static_cast<std::size_t>(&out - drags_.data()) * kLanes + static_cast<std::size_t>(lane);
  HeldRows rows(joint, bodies);
  const Vector world[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  for (int k = 0; k < 3; ++k) {
    JointRow row{};
    put_own(bodies.frame[joint.a], world[k], row.own_a);
    put_own(bodies.frame[joint.b], world[k], row.own_b);
    rows.take_from(row, &drag_shares_[18 * at + 6 * static_cast<std::size_t>(k)]);
    put(row.along, out.along[k], lane);
    put(row.own_a, out.own_a[k], lane);
    put(row.own_b, out.own_b[k], lane);
  }
}

void JointSweeps::put_drag_inverse(Drag& drag) {
  const Lanes straight = drag.root_a * drag.root_a + drag.root_b * drag.root_b;
  Lanes matrix[6];
  int at = 0;
  for (int r = 0; r < 3; ++r)
    for (int c = r; c < 3; ++c, ++at)
      matrix[at] = straight * lapjoint::dot(drag.along[r], drag.along[c]) +
                   lapjoint::dot(drag.own_a[r], drag.own_a[c]) + lapjoint::dot(drag.own_b[r], drag.own_b[c]);
  invert(matrix, drag.inverse);
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
        put_inverse(blocks[i]);
      });
  };
  turn_blocks(turns_, turn_lanes_, 3);
  turn_blocks(slides_, slide_lanes_, 0);
  for (std::size_t i = 0; i < axis_rows_.size(); ++i) {
    AxisRow& row = axis_rows_[i];
    const Lanes3 own_a = row.own_a, own_b = row.own_b, along = row.along;
    for (int lane = 0; lane < kLanes; ++lane) {
      Axis& own = axis_lanes_[kLanes * i + lane];
      if (own.joint < 0) continue;
      if ((*axes_)[own.axis].axis == AxisDefinition::kGear) slip(row, lane, own, bodies);
      put_axis_row(row, lane, own, bodies);
    }
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
  for (std::size_t i = 0; i < drags_.size(); ++i) {
    Drag& drag = drags_[i];
    Lanes3 own_a[3], own_b[3], along[3];
    for (int k = 0; k < 3; ++k) own_a[k] = drag.own_a[k], own_b[k] = drag.own_b[k], along[k] = drag.along[k];
    for (int lane = 0; lane < kLanes; ++lane)
      if (drag_lanes_[kLanes * i + lane] >= 0) put_drag_rows(drag, lane, drag_lanes_[kLanes * i + lane], bodies);
    put_drag_inverse(drag);
    Lanes3 turn_a = gather<&Bodies::Twist::angular>(more, drag.a),
           turn_b = gather<&Bodies::Twist::angular>(more, drag.b);
    Lanes3 linear_a = gather<&Bodies::Twist::linear>(more, drag.a),
           linear_b = gather<&Bodies::Twist::linear>(more, drag.b);
    for (int k = 0; k < 3; ++k) {
      add(drag.impulse[k], drag.own_a[k] - own_a[k], turn_a);
      add(-drag.impulse[k], drag.own_b[k] - own_b[k], turn_b);
      add(drag.impulse[k] * drag.root_a, drag.along[k] - along[k], linear_a);
      add(-drag.impulse[k] * drag.root_b, drag.along[k] - along[k], linear_b);
    }
    scatter<&Bodies::Twist::angular>(turn_a, more, drag.a);
    scatter<&Bodies::Twist::angular>(turn_b, more, drag.b);
    scatter<&Bodies::Twist::linear>(linear_a, more, drag.a);
    scatter<&Bodies::Twist::linear>(linear_b, more, drag.b);
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
  const Lanes none = all(0);
  for (const Drag& drag : drags_) {
    Lanes3 along{none, none, none};
    for (int k = 0; k < 3; ++k) add(drag.impulse[k], drag.along[k], along);
    apply(drag.a, drag.b, drag.root_a, drag.root_b, along, drag.own_a, drag.own_b, drag.impulse, 3);
  }
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
      if (own.joint < 0 || own.is_direct) continue;  // nothing changes it
      const AxisDefinition& axis = (*axes_)[own.axis];
      const Real response = row.response[lane], error = row.error[lane];
      Real kept = 1, mass = response, extra = 0;
      if (axis.kind == AxisDefinition::kMotor) {
        extra = -response * axis.value;
      } else if (axis.kind == AxisDefinition::kSpring) {
        if constexpr (!kBias) continue;  // as it was before bodies moved
        // What else changes its velocity counts half, as if it came in the middle of the substep: so it gives way to a
        // load as far as it should.
        const Real half = (1 - own.response.kept_share) / 2;
        kept = half;
        mass = half * response;
        extra = response * (half * before[lane] + own.response.rate * error);
      } else if (axis.kind == AxisDefinition::kDrive) {
        if constexpr (!kBias) continue;
        const DriveResponse& drive = own.response;
        const Real back = std::clamp(drive.rate * error, -drive.most, drive.most);
        kept = 1 - drive.load_share;
        mass = kept * response;
        extra = response * ((drive.load_share - drive.kept_share) * before[lane] + back - drive.gain * axis.velocity);
      } else if (axis.kind == AxisDefinition::kEqual) {
        if constexpr (kBias) {
          kept = 1 - settings_.soft.impulse_scale;
          mass = response * settings_.soft.mass_scale;
          extra = mass * settings_.soft.rate * error;
        }
      } else if (error > 0) {
        extra = response * error / h;
      } else if constexpr (kBias) {
        kept = 1 - settings_.soft.impulse_scale;
        mass = response * settings_.soft.mass_scale;
        // What the load on it has pushed it in by is no error to be slow about.
        const Real yielded = mass > 0 ? settings_.soft.impulse_scale * row.impulse[lane] / mass : 0;
        extra = mass * std::max(settings_.soft.rate * error, -(settings_.push_speed + yielded));
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

// Of all torques that are not too large, the one that stops its bodies against each other.
Real JointSweeps::sweep_drags(Bodies& bodies) {
  Motion* motion = bodies.motion.data();
  Lanes worst = all(0);
  for (Drag& drag : drags_) {
    Lanes3 linear_a = gather<&Motion::linear>(motion, drag.a), linear_b = gather<&Motion::linear>(motion, drag.b);
    Lanes3 turn_a = gather<&Motion::angular>(motion, drag.a), turn_b = gather<&Motion::angular>(motion, drag.b);
    const Lanes3 apart = drag.root_a * linear_a - drag.root_b * linear_b;
    Lanes speed[3];
    for (int k = 0; k < 3; ++k)
      speed[k] = lapjoint::dot(drag.along[k], apart) + lapjoint::dot(drag.own_a[k], turn_a) -
                 lapjoint::dot(drag.own_b[k], turn_b);
    const Lanes3 wanted = times(drag.inverse, {speed[0], speed[1], speed[2]});
    const Lanes3 asked = {drag.impulse[0] - wanted.x, drag.impulse[1] - wanted.y, drag.impulse[2] - wanted.z};
    const Lanes length = root(lapjoint::dot(asked, asked));
    const Lanes share = lesser(drag.most * inverse_or_zero(length), all(1));
    const Lanes3 after = share * asked;
    const Lanes change[3] = {after.x - drag.impulse[0], after.y - drag.impulse[1], after.z - drag.impulse[2]};
    drag.impulse[0] = after.x;
    drag.impulse[1] = after.y;
    drag.impulse[2] = after.z;
    for (int k = 0; k < 3; ++k) {
      add(change[k] * drag.root_a, drag.along[k], linear_a);
      add(-change[k] * drag.root_b, drag.along[k], linear_b);
      add(change[k], drag.own_a[k], turn_a);
      add(-change[k], drag.own_b[k], turn_b);
      worst = greater(worst, where_positive(drag.most - length, absolute(speed[k]), all(0)));
    }
    scatter<&Motion::linear>(linear_a, motion, drag.a);
    scatter<&Motion::linear>(linear_b, motion, drag.b);
    scatter<&Motion::angular>(turn_a, motion, drag.a);
    scatter<&Motion::angular>(turn_b, motion, drag.b);
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
      const auto back = [&](const Lanes& error) {
        return lesser(greater(rate * error, all(-1) * block.most), block.most);
      };
      const Lanes3 wanted = {speed.x + back(block.error[0]), speed.y + back(block.error[1]),
                             speed.z + back(block.error[2])};
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
  Real worst = std::max(sweep_axes(bodies), sweep_drags(bodies));
  worst = std::max(worst, sweep_blocks<kBias>(turns_, bodies));
  worst = std::max(worst, sweep_blocks<kBias>(slides_, bodies));
  return std::max(worst, sweep_blocks<kBias>(points_, bodies));
}

void JointSweeps::solve(Bodies& bodies) {
  for (int sweep = 0; sweep < sweep_count_; ++sweep) this->sweep<true>(bodies);
}

Real JointSweeps::relax(Bodies& bodies) {
  Real worst = 0;
  for (int sweep = 0; sweep < sweep_count_; ++sweep) worst = this->sweep<false>(bodies);
  return worst;
}

// Impulses come to what a heavy body at the end of light ones needs only as fast as the light ones' masses let them. A
// limit or motor has to come to it within the substep, else it gives back what it should have taken; and what it takes
// too much of a body that hits it, before the next joint has answered, is not given back later.
int JointSweeps::find_sweep_count(const Bodies& bodies) {
  for (Masses& masses : masses_) masses.most_root = masses.least_root = 0;
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    if (masses_of_[j] < 0) continue;
    Masses& masses = masses_[masses_of_[j]];
    for (const int place : {joints_[j].a, joints_[j].b}) {
      const Real root = bodies.frame[place].root[0];
      if (!(root > 0)) continue;
      masses.most_root = std::max(masses.most_root, root);
      masses.least_root = masses.least_root > 0 ? std::min(masses.least_root, root) : root;
    }
  }
  int most = 1;
  for (const Masses& masses : masses_) {
    const Real root = masses.least_root > 0 ? masses.most_root / masses.least_root : 1;
    const Real least = masses.joint_count > 1 ? 2 : 1;
    const int count = masses.has_axes    ? static_cast<int>(std::round(std::clamp(root, least, Real(kMostSweeps))))
                      : root * root > 90 ? 4
                      : root * root > 25 ? 2
                                         : 1;
    most = std::max(most, count);
  }
  return most;
}

}  // namespace lapjoint
