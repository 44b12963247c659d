#include "substeps/direct_joints.h"

#include <algorithm>
#include <cmath>

#include "assertions.h"
#include "solver/block_row.h"
#include "substeps/union_find.h"

namespace lapjoint {

namespace {

constexpr double kMostTurn = 0.04;  // rad that corrections may turn a body by in a step
constexpr double kEndless = 1e30;   // a bound that is none
// rad: bonded bodies that turned by less since their rows were made keep these, and the factored matrix with them. What
// stands still is factored once a step, and not once more in every substep.
constexpr double kLeastTurn = 1e-5;

void add(double factor, const double* a, double* out) {
  for (int k = 0; k < 6; ++k) out[k] += factor * a[k];
}

void add_product(double factor, const double* a, const double* b, double* block) {
  for (int i = 0; i < 6; ++i) add(factor * a[i], b, block + 6 * i);
}

int locked_rows(const JointDefinition& joint) {
  int count = 0;
  for (int axis = 0; axis < 6; ++axis) count += joint.locked >> axis & 1;
  return std::max(count, 1);
}

}  // namespace

// ---- which
// -----------------------------------------------------------------------------------------------------------

void DirectJoints::choose(std::vector<JointDefinition>& joints, const std::vector<AxisDefinition>& axes,
                          JointChoice choice, const std::vector<JointChoice>& choices, int fixed) {
  axes_ = &axes;
  joints_.clear();
  structures_.clear();
  rows_.clear();
  for (JointDefinition& joint : joints) joint.direct = false;
  if (choice == JointChoice::kSwept) return;
  // Bodies that joints tie together, through bodies that can move.
  UnionFind groups(fixed);
  for (const JointDefinition& joint : joints)
    if (joint.ties && joint.a < fixed && joint.b < fixed) groups.unite(joint.a, joint.b);
  std::map<int, std::vector<int>> of_group;
  for (std::size_t i = 0; i < joints.size(); ++i)
    if (joints[i].ties)
      of_group[groups.find(joints[i].a < fixed ? joints[i].a : joints[i].b)].push_back(static_cast<int>(i));
  used_.clear();
  const auto of_structure = [&](const std::vector<int>& members) {
    bool is_bonded = false;
    for (const int i : members) {
      for (const int place : {joints[i].a, joints[i].b})
        if (choices[place] != choice) return choices[place];
      is_bonded |= joints[i].bond != JointDefinition::kNoBond;
    }
    return is_bonded ? JointChoice::kDirect : choice;
  };
  for (const auto& [first, members] : of_group)
    if (const JointChoice own = of_structure(members); own != JointChoice::kSwept)
      choose_structure(joints, members, own, fixed);
  patterns_.swap(used_);
}

void DirectJoints::choose_structure(std::vector<JointDefinition>& joints, const std::vector<int>& members,
                                    JointChoice choice, int fixed) {
  Structure structure;
  for (const int i : members)
    for (const int place : {joints[i].a, joints[i].b})
      if (place < fixed) structure.places.push_back(place);
  std::sort(structure.places.begin(), structure.places.end());
  structure.places.erase(std::unique(structure.places.begin(), structure.places.end()), structure.places.end());
  const int body_count = static_cast<int>(structure.places.size());
  const auto number = [&](int place) {
    if (place >= fixed) return body_count;
    return static_cast<int>(std::lower_bound(structure.places.begin(), structure.places.end(), place) -
                            structure.places.begin());
  };
  long row_count = 0;
  Pairs pairs;
  for (const int i : members) {
    row_count += locked_rows(joints[i]);
    Link& link = structure.links.emplace_back();
    link.a = number(joints[i].a);
    link.b = number(joints[i].b);
    if (link.a != body_count && link.b != body_count)
      pairs.emplace_back(std::min(link.a, link.b), std::max(link.a, link.b));
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());

  const long limit = work_limit(choice, row_count);
  const std::tuple key(limit, body_count, std::move(pairs));
  auto known = patterns_.find(key);
  if (known == patterns_.end()) {
    auto pattern = std::make_shared<BlockCholesky>();
    if (!pattern->analyse(std::vector<char>(body_count, 0), std::get<Pairs>(key), limit)) pattern.reset();
    known = patterns_.emplace(key, std::move(pattern)).first;
  }
  used_.insert(*known);
  if (!known->second) return;
  structure.matrix = std::make_unique<BlockCholesky>(*known->second);
  std::vector<Link> ends;
  ends.swap(structure.links);
  for (std::size_t k = 0; k < members.size(); ++k) add_link(structure, joints[members[k]], ends[k]);
  structures_.push_back(std::move(structure));
}

// `ends` has the rows of the joint's bodies, and whether it is put into the matrix.
void DirectJoints::add_link(Structure& structure, JointDefinition& from, const Link& ends) {
  const int body_count = static_cast<int>(structure.places.size());
  Link& link = structure.links.emplace_back(ends);
  link.joint = static_cast<int>(joints_.size());
  LAPJOINT_ASSERT(link.a <= body_count && link.b <= body_count && link.a != link.b);  // the last is what cannot move
  from.direct = true;
  if (&structure != &shared_) {
    structure.is_bonded |= from.bond != JointDefinition::kNoBond;
    structure.may_break |= from.may_break;
  }
  structure.has_elastic |= from.bond == JointDefinition::kElastic;
  joints_.push_back(from);
  const JointDefinition& joint = joints_.back();
  link.is_point = joint.is_point();
  link.first_row = static_cast<int>(rows_.size());
  for (int axis = 0; axis < 6; ++axis)
    if (joint.locked >> axis & 1) {
      rows_.emplace_back();
      rows_.back().target = joint.first_impulse + axis;
    }
  link.locked_count = static_cast<int>(rows_.size()) - link.first_row;
  for (int k = 0; k < joint.axis_count; ++k)
    if (const AxisDefinition& axis = (*axes_)[joint.first_axis + k]; axis.is_solved_at_once()) {
      Row& row = rows_.emplace_back();
      row.axis = joint.first_axis + k;
      row.target = joint.first_impulse + 6 + k;
      row.kind = axis.kind == AxisDefinition::kDrive  ? Row::kDrive
                 : axis.kind == AxisDefinition::kDrag ? Row::kFriction
                                                      : Row::kBounded;
    }
  LAPJOINT_ASSERT(link.locked_count <= 6 && (!link.is_point || link.locked_count >= 3));
  link.row_count = static_cast<int>(rows_.size()) - link.first_row;
  if (!link.is_own) return;
  if (link.a != body_count) link.of_a = structure.matrix->block(link.a, link.a);
  if (link.b != body_count) link.of_b = structure.matrix->block(link.b, link.b);
  if (!link.of_a || !link.of_b) return;
  link.b_first = !structure.matrix->stored(link.a, link.b);
  link.of_both = link.b_first ? structure.matrix->block(link.b, link.a) : structure.matrix->block(link.a, link.b);
}

void DirectJoints::choose_shared(std::vector<JointDefinition>& own, std::vector<std::vector<JointDefinition>>& between,
                                 const std::vector<char>& is_first, const std::vector<char>& is_ghost,
                                 const std::vector<int>& bodies, const std::vector<int>& labels,
                                 const std::vector<int>& wanted) {
  shared_ = {};
  part_ = {};
  kept_.clear();
  is_ghost_.clear();
  shared_labels_.clear();
  const int fixed = static_cast<int>(bodies.size());
  LAPJOINT_ASSERT(labels.size() == bodies.size() && is_ghost.size() == bodies.size() &&
                  is_first.size() == between.size());
  LAPJOINT_ASSERT(std::is_sorted(wanted.begin(), wanted.end()));
  const auto body_of = [fixed](const JointDefinition& joint) { return joint.a < fixed ? joint.a : joint.b; };
  const auto has_label = [&](const JointDefinition& joint) {
    return joint.ties && !joint.direct && std::binary_search(wanted.begin(), wanted.end(), labels[body_of(joint)]);
  };
  std::vector<int>& places = shared_.places;
  std::vector<char> is_kept(fixed, 0), is_tied(fixed, 0);
  for (const auto& joints : between)
    for (const JointDefinition& joint : joints)
      if (has_label(joint))
        for (const int place : {joint.a, joint.b}) places.push_back(place), is_kept[place] = 1;
  if (places.empty()) return;
  // What joints that have broken tied to other workers' parts is nobody's but this worker's, and is not solved here.
  UnionFind groups(fixed);
  for (const JointDefinition& joint : own)
    if (has_label(joint) && joint.a < fixed && joint.b < fixed) groups.unite(joint.a, joint.b);
  for (const int place : places) is_tied[groups.find(place)] = 1;
  const auto is_wanted = [&](const JointDefinition& joint) {
    return has_label(joint) && is_tied[groups.find(body_of(joint))];
  };
  for (const JointDefinition& joint : own) {
    if (!is_wanted(joint)) continue;
    for (const int place : {joint.a, joint.b})
      if (place < fixed) places.push_back(place);
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  const int body_count = static_cast<int>(places.size());
  const auto ends_of = [&](const JointDefinition& joint, bool assembles) {
    const auto number = [&](int place) {
      if (place >= fixed) return body_count;
      return static_cast<int>(std::lower_bound(places.begin(), places.end(), place) - places.begin());
    };
    Link ends{};
    ends.a = number(joint.a);
    ends.b = number(joint.b);
    ends.is_own = assembles;
    return ends;
  };
  std::vector<char> kept;
  for (const int place : places) kept.push_back(is_kept[place]);
  Pairs pairs;
  const auto add_pair = [&](const Link& ends) {
    if (ends.a != body_count && ends.b != body_count) pairs.emplace_back(ends.a, ends.b);
  };
  for (const JointDefinition& joint : own)
    if (is_wanted(joint)) add_pair(ends_of(joint, true));
  for (std::size_t n = 0; n < between.size(); ++n)
    for (const JointDefinition& joint : between[n])
      if (is_wanted(joint) && is_first[n]) add_pair(ends_of(joint, true));
  shared_.matrix = std::make_unique<BlockCholesky>();
  shared_.matrix->analyse(kept, pairs, work_limit(JointChoice::kDirect, 0));
  for (JointDefinition& joint : own)
    if (is_wanted(joint)) {
      const Link ends = ends_of(joint, true);
      add_link(shared_, joint, ends);
    }
  for (std::size_t n = 0; n < between.size(); ++n)
    for (JointDefinition& joint : between[n])
      if (is_wanted(joint)) {
        const Link ends = ends_of(joint, is_first[n] != 0);
        add_link(shared_, joint, ends);
      }
  for (int i = 0; i < body_count; ++i) {
    shared_labels_.push_back(labels[places[i]]);
    is_ghost_.push_back(is_ghost[places[i]]);
    if (!kept[i]) continue;
    kept_.push_back(i);
    part_.bodies.push_back(bodies[places[i]]);
    part_.labels.push_back(labels[places[i]]);
  }
  std::vector<int> at(body_count, -1);
  for (std::size_t k = 0; k < kept_.size(); ++k) at[kept_[k]] = static_cast<int>(k);
  shared_.matrix->each_kept([&](int row, int column, const double*) { part_.pairs.push_back({at[row], at[column]}); });
  for (const BlockPlace& pair : part_.pairs) LAPJOINT_ASSERT(pair.row >= 0 && pair.column >= 0);  // kept ones alone
}

// ---- a step's rows
// -----------------------------------------------------------------------------------------------------

void DirectJoints::prepare(Bodies& bodies, const JointSettings& settings, const std::vector<Real>& impulses,
                           Mailboxes* mailboxes) {
  h_ = settings.h;
  substeps_ = settings.substeps;
  push_speed_ = settings.push_speed;
  failed_ = 0;
  mailboxes_ = mailboxes;
  shared_.pushed.clear();
  for (Structure& structure : structures_) {
    structure.pushed.clear();
    prepare_rows(structure, bodies, impulses);
    structure.works = factor(structure);
    failed_ += !structure.works;
  }
  if (!mailboxes || !asks_) return;
  prepare_rows(shared_, bodies, impulses);
  factor_shared(true);
}

void DirectJoints::prepare_rows(Structure& structure, Bodies& bodies, const std::vector<Real>& impulses) {
  if (&structure != &shared_) structure.bounded_rows = 0;
  for (const Link& link : structure.links) {
    for (int k = 0; k < link.row_count; ++k) {
      Row& row = rows_[link.first_row + k];
      row.impulse = 0;
      std::fill(row.own_a, row.own_a + 6, 0.0);
      std::fill(row.own_b, row.own_b + 6, 0.0);
    }
    const JointDefinition& joint = joints_[link.joint];
    for (int k = link.locked_count; k < link.row_count; ++k) {
      Row& row = rows_[link.first_row + k];
      const AxisDefinition& axis = (*axes_)[row.axis];
      row.half_turns = axis.counted ? double(impulses[joint.kept_place()]) : 0;
      const double most = double(axis.force) * double(h_);
      row.low = axis.is_limit() ? 0 : axis.kind == AxisDefinition::kEqual ? -kEndless : -most;
      row.high = axis.is_limit() || axis.kind == AxisDefinition::kEqual ? kEndless : most;
      row.place = Row::kIn;
      if (row.kind == Row::kFriction)
        for (int i = 0; i < 3; ++i) row.about[i] = i == axis.axis - 3;
      if (row.kind == Row::kDrive) {
        row.inertia = JointSweeps::inertia_of(joint, axis, bodies);
        const auto response = DriveResponse::of_drive(axis.stiffness, axis.damping, row.inertia, h_, axis.is_angular());
        if (response.is_exact) row.place = Row::kSwept;
      }
      if (&structure != &shared_ && row.place != Row::kSwept)
        structure.bounded_rows += row.low > -kEndless || row.high < kEndless;
    }
    put_rows(link, bodies);
    for (int k = 0; k < link.row_count; ++k) {
      Row& row = rows_[link.first_row + k];
      if (row.kind != Row::kDrive) {
        row.inertia = row_product(row.own_a, row.own_a) + row_product(row.own_b, row.own_b);
        row.stiffness = Row::hard_stiffness(row.inertia);
      }
      if (joint.bond != JointDefinition::kNoBond) row.stiffness = joint.bond_stiffness[std::max(k - 2, 0)];
      if (row.place == Row::kSwept) continue;
      const double last = double(impulses[row.target]) / substeps_;
      if (row.kind == Row::kLocked) {
        row.impulse = last;
        continue;
      }
      if (row.kind == Row::kBounded || row.kind == Row::kDrive) {
        row.begin(last);
        continue;
      }
      begin_friction(link, &row, bodies, impulses);
      k += 2;
    }
    if (joint.bond == JointDefinition::kElastic)
      for (int k = 0; k < link.locked_count; ++k)
        rows_[link.first_row + k].stiffness *= double(h_) * (double(h_) + joint.bond_damping_time);
    put_other_axes(link);
    if (structure.has_elastic) put_elastic(link);
    // An impact before the first solution is shared out with these: those of the last step are no part of the state.
    for (int r = link.first_row; r < link.first_row + link.row_count; ++r) rows_[r].pull = rows_[r].next_pull;
  }
  if (structure.is_bonded) note_turns(structure, bodies);
}

// Elastic bonds are springs: what they do for where they are is no gap that is to be closed.
void DirectJoints::put_elastic(const Link& link) {
  const JointDefinition& joint = joints_[link.joint];
  if (joint.bond != JointDefinition::kElastic) return;
  for (int k = 0; k < link.locked_count; ++k) {
    Row& row = rows_[link.first_row + k];
    row.next_pull = double(h_) * joint.bond_stiffness[std::max(k - 2, 0)] * row.error;
    row.error = 0;
  }
}

void DirectJoints::note_turns(Structure& structure, const Bodies& bodies) {
  structure.turned.clear();
  for (const int place : structure.places) structure.turned.push_back(bodies.motion[place].turned);
}

bool DirectJoints::has_turned(const Structure& structure, const Bodies& bodies) {
  LAPJOINT_ASSERT(structure.turned.size() == structure.places.size());
  double most = 0;
  for (std::size_t i = 0; i < structure.places.size(); ++i) {
    const int place = structure.places[i];
    const Lanes turned = bodies.motion[place].turned - structure.turned[i];
    const Real* inverse_inertia = bodies.traits[place].inverse_inertia;
    double square = 0;
    for (int k = 0; k < 3; ++k) square += double(turned[k]) * double(turned[k]) * double(inverse_inertia[k]);
    most = std::max(most, square);
  }
  return most > kLeastTurn * kLeastTurn;
}

void DirectJoints::begin_friction(const Link& link, Row* rows, const Bodies& bodies,
                                  const std::vector<Real>& impulses) {
  const JointDefinition& joint = joints_[link.joint];
  double of_ends[2][6], last[3], square = 0;
  for (int side = 0; side < 2; ++side) {
    const Motion& motion = bodies.motion[side == 0 ? joint.a : joint.b];
    for (int i = 0; i < 3; ++i) of_ends[side][i] = motion.linear[i], of_ends[side][3 + i] = motion.angular[i];
  }
  for (int k = 0; k < 3; ++k) {
    Row& row = rows[k];
    row.inertia = row_product(row.own_a, row.own_a) + row_product(row.own_b, row.own_b);
    const double speed = row.velocity(of_ends[0], of_ends[1]);
    square += speed * speed;
    last[k] = double(impulses[row.target]) / substeps_;
  }
  BallFriction(rows).begin(last, std::sqrt(square));
}

// What rows of axes that are not locked do where they are, once they are there.
void DirectJoints::put_other_axes(const Link& link) {
  const double h = h_;
  for (int k = link.locked_count; k < link.row_count; ++k) {
    Row& row = rows_[link.first_row + k];
    if (row.place == Row::kSwept) continue;
    const AxisDefinition& axis = (*axes_)[row.axis];
    if (row.kind == Row::kFriction) {
      for (int i = 0; i < 3; ++i) rows_[link.first_row + k + i].error = 0;
      BallFriction(&row).begin_substep();
      k += 2;
    } else if (row.kind == Row::kDrive) {
      row.stiffness = h * (h * double(axis.stiffness) + double(axis.damping));
      row.next_pull = h * double(axis.stiffness) * row.error;
      if (axis.is_angular()) {  // no faster than what bodies hold keeps up with, besides what holds a load
        const double reach = DriveResponse::kMostTurn / h * (row.stiffness + 1 / row.inertia);
        row.next_pull = std::clamp(row.next_pull, -row.impulse - reach, -row.impulse + reach);
      }
      row.next_pull -= h * double(axis.damping) * double(axis.velocity);
      row.error = 0;               // it is no gap
    } else if (axis.is_limit()) {  // what is left of the way to it may be gone within the substep
      row.pull = row.next_pull = row.stiffness * std::max(row.error, 0.0) / h;
      row.error = std::clamp(row.error, -push_speed_ * h, 0.0);
    } else if (axis.kind == AxisDefinition::kMotor) {
      row.pull = row.next_pull = -row.stiffness * double(axis.value);
      row.error = 0;
    }
  }
}

// Drives pull for where they are as the substep begins, also once bodies have moved.
void DirectJoints::begin_drives(const Structure& structure) {
  for (const Link& link : structure.links) {
    const bool is_elastic = structure.has_elastic && joints_[link.joint].bond == JointDefinition::kElastic;
    for (int r = link.first_row + (is_elastic ? 0 : link.locked_count); r < link.first_row + link.row_count; ++r)
      rows_[r].pull = rows_[r].next_pull;
  }
}

// Rows for where bodies are. What their impulses do to the bodies changes with them. Unless it `turns`: then only
// errors are new.
void DirectJoints::put_rows(const Link& link, Bodies& bodies, bool turns) {
  const JointDefinition& joint = joints_[link.joint];
  const Frame* frames[2] = {&bodies.frame[joint.a], &bodies.frame[joint.b]};
  Bodies::Twist* more[2] = {&bodies.turned_impulses[joint.a], &bodies.turned_impulses[joint.b]};
  const auto put_all = [&](Row& row, int side, const double* along, const double* about) {
    if (!turns) return;
    double* own = side == 0 ? row.own_a : row.own_b;
    for (int i = 0; i < 3; ++i) {
      more[side]->linear[i] += Real(row.impulse * (along[i] - own[i]));
      more[side]->angular[i] += Real(row.impulse * (about[i] - own[3 + i]));
      own[i] = along[i];
      own[3 + i] = about[i];
    }
  };
  if (link.is_point) {
    const Pose* poses[2] = {&bodies.pose[joint.a], &bodies.pose[joint.b]};
    double arms[2][3];
    for (int side = 0; side < 2; ++side) {
      const Real* local = side == 0 ? joint.place_a : joint.place_b;
      for (int k = 0; k < 3; ++k) {
        const double* row = poses[side]->axes + 3 * k;
        arms[side][k] = row[0] * local[0] + row[1] * local[1] + row[2] * local[2];
      }
      const double* arm = arms[side];
      const double crossed[3][3] = {{0, arm[2], -arm[1]}, {-arm[2], 0, arm[0]}, {arm[1], -arm[0], 0}};  // arm x axis
      const double sign = side == 0 ? 1 : -1;
      double turn[3][3];
      for (int i = 0; i < 3; ++i)
        for (int c = 0; c < 3; ++c) turn[i][c] = sign * frames[side]->rows[i][c];
      for (int k = 0; k < 3; ++k) {
        double along[3] = {0, 0, 0}, about[3];
        along[k] = sign * frames[side]->root[0];
        for (int i = 0; i < 3; ++i)
          about[i] = turn[i][0] * crossed[k][0] + turn[i][1] * crossed[k][1] + turn[i][2] * crossed[k][2];
        put_all(rows_[link.first_row + k], side, along, about);
      }
    }
    for (int k = 0; k < 3; ++k)
      rows_[link.first_row + k].error = (poses[0]->position[k] - poses[1]->position[k]) + (arms[0][k] - arms[1][k]);
    if (link.row_count == 3) return;
  }
  std::vector<JointRow>& made = made_;
  made.resize(link.row_count + 6);
  JointSweeps::rows_of(joint, bodies, made.data());
  for (int k = link.locked_count; k < link.row_count; ++k) {
    Row& row = rows_[link.first_row + k];
    const AxisDefinition& axis = (*axes_)[row.axis];
    made[k] = row.kind == Row::kFriction ? JointSweeps::row_about(joint, row.about, bodies)
                                         : JointSweeps::row_of_axis(joint, axis, bodies);
    const double place = made[k].error;
    row.error = double(axis.sign()) *
                ((axis.counted ? JointSweeps::angle_of(place, row.half_turns) : place) - double(axis.value));
  }
  for (int k = link.is_point ? 3 : 0; k < link.row_count; ++k) {
    Row& row = rows_[link.first_row + k];
    for (int side = 0; side < 2; ++side) {
      const double sign = side == 0 ? 1 : -1, root = sign * frames[side]->root[0];
      const Real* own = side == 0 ? made[k].own_a : made[k].own_b;
      const double along[3] = {root * made[k].along[0], root * made[k].along[1], root * made[k].along[2]};
      const double about[3] = {sign * own[0], sign * own[1], sign * own[2]};
      put_all(row, side, along, about);
    }
    if (row.kind == Row::kLocked) row.error = made[k].error;
  }
}

// Three rows of a point, each with one number along: block += own^T stiffness other.
void DirectJoints::add_point(const Row* rows, double (Row::*own)[6], double (Row::*other)[6], double* block) {
  BlockRow others[3];
  for (int k = 0; k < 3; ++k) others[k].read(rows[k].*other);
  for (int i = 0; i < 6; ++i) {
    BlockRow sum;
    sum.read(block + 6 * i);
    if (i < 3)
      sum.add(rows[i].stiffness * (rows[i].*own)[i], others[i]);
    else
      for (int k = 0; k < 3; ++k) sum.add(rows[k].stiffness * (rows[k].*own)[i], others[k]);
    sum.write(block + 6 * i);
  }
}

bool DirectJoints::factor(Structure& structure) {
  assemble(structure);
  return structure.matrix->factor();
}

void DirectJoints::assemble(Structure& structure) {
  BlockCholesky& matrix = *structure.matrix;
  matrix.clear();
  for (int i = 0; i < static_cast<int>(structure.places.size()); ++i) {
    if (&structure == &shared_ && is_ghost_[i]) continue;  // it is in its own worker's
    for (int k = 0; k < 6; ++k) matrix.block(i, i)[7 * k] = 1;
  }
  for (const Link& link : structure.links) {
    if (!link.is_own) continue;
    const Row* rows = &rows_[link.first_row];
    int first = 0;
    if (link.is_point) {
      if (link.of_a) add_point(rows, &Row::own_a, &Row::own_a, link.of_a);
      if (link.of_b) add_point(rows, &Row::own_b, &Row::own_b, link.of_b);
      if (link.of_both)
        link.b_first ? add_point(rows, &Row::own_b, &Row::own_a, link.of_both)
                     : add_point(rows, &Row::own_a, &Row::own_b, link.of_both);
      first = 3;
    }
    for (int k = first; k < link.row_count; ++k) {
      const Row& row = rows[k];
      if (row.is_out()) continue;
      if (link.of_a) add_product(row.stiffness, row.own_a, row.own_a, link.of_a);
      if (link.of_b) add_product(row.stiffness, row.own_b, row.own_b, link.of_b);
      if (!link.of_both) continue;
      if (link.b_first)
        add_product(row.stiffness, row.own_b, row.own_a, link.of_both);
      else
        add_product(row.stiffness, row.own_a, row.own_b, link.of_both);
    }
  }
}

void DirectJoints::warm_start(Bodies& bodies) const {
  for (const Structure& structure : structures_) warm_start(structure, bodies);
  if (mailboxes_) warm_start(shared_, bodies);
}

void DirectJoints::warm_start(const Structure& structure, Bodies& bodies) const {
  if (!structure.works) return;
  for (const Link& link : structure.links) {
    const JointDefinition& joint = joints_[link.joint];
    for (int r = link.first_row; r < link.first_row + link.row_count; ++r)
      for (int k = 0; k < 3; ++k) {
        const Row& row = rows_[r];
        bodies.motion[joint.a].moved[k] += Real(row.impulse * row.own_a[k]);
        bodies.motion[joint.a].turned[k] += Real(row.impulse * row.own_a[3 + k]);
        bodies.motion[joint.b].moved[k] += Real(row.impulse * row.own_b[k]);
        bodies.motion[joint.b].turned[k] += Real(row.impulse * row.own_b[3 + k]);
      }
  }
}

template <typename Visit>
void DirectJoints::each_impulse(Visit&& visit) {
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    Row& row = rows_[r];
    if (row.place == Row::kSwept) continue;
    if (row.kind != Row::kFriction) {
      visit(row.target, row.impulse);
      continue;
    }
    LAPJOINT_ASSERT(r + 2 < rows_.size() && rows_[r + 2].kind == Row::kFriction);  // in threes
    double about[3];
    BallFriction(&row).impulse(about);
    for (int k = 0; k < 3; ++k) visit(rows_[r + k].target, about[k]);
    r += 2;
  }
}

void DirectJoints::store(std::vector<Real>& impulses) {
  each_impulse([&](int target, double impulse) { impulses[target] = Real(impulse * substeps_); });
}

void DirectJoints::add_impulses(std::vector<Real>& sums) {
  each_impulse([&](int target, double impulse) { sums[target] += Real(impulse); });
}

// ---- substeps
// ----------------------------------------------------------------------------------------------------------

void DirectJoints::turn(Bodies& bodies) {
  for (Structure& structure : structures_) {
    if (!structure.works) continue;
    const bool turns = !structure.is_bonded || structure.bounded_rows > 0 || has_turned(structure, bodies);
    turn_rows(structure, bodies, turns);
    if (!turns) continue;
    structure.works = factor(structure);
    failed_ += !structure.works;
  }
  if (!interface_.takes_part() || !mailboxes_ || !shared_.works) return;
  bool turns = true;  // the same in all workers that have a part of one
  if (shared_.is_bonded && shared_.bounded_rows == 0) turns = interface_.any(*mailboxes_, has_turned(shared_, bodies));
  turn_rows(shared_, bodies, turns);
  if (turns) factor_shared(false);
}

void DirectJoints::turn_rows(Structure& structure, Bodies& bodies, bool turns) {
  for (const Link& link : structure.links) {
    put_rows(link, bodies, turns);
    put_other_axes(link);
    if (structure.has_elastic) put_elastic(link);
  }
  if (structure.is_bonded && turns) note_turns(structure, bodies);
}

void DirectJoints::read_velocities(const Structure& structure, const Bodies& bodies) {
  const std::size_t count = structure.places.size();
  velocity_.assign(6 * (count + 1), 0.0);
  arrived_.assign(6 * (count + 1), 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    const Motion& motion = bodies.motion[structure.places[i]];
    for (int k = 0; k < 3; ++k) {
      velocity_[6 * i + k] = motion.linear[k];
      velocity_[6 * i + 3 + k] = motion.angular[k];
    }
  }
}

template <typename Which>
void DirectJoints::solve_those(Bodies& bodies, Which&& which) {
  if (interface_.takes_part() && mailboxes_ && shared_.works && which(shared_)) {
    begin_drives(shared_);
    solve_shared(bodies);
  }
  for (Structure& structure : structures_) {
    if (!which(structure)) continue;
    begin_drives(structure);
    if (structure.works) solve(structure, bodies);
  }
}

void DirectJoints::settle(Bodies& bodies) {
  solve_those(bodies, [](const Structure& structure) { return structure.may_break; });
}

void DirectJoints::solve(Bodies& bodies) {
  take_back(bodies);  // where it is not the first sweep of a substep
  solve_those(bodies, [](const Structure&) { return true; });
}

void DirectJoints::refactor(Structure& structure) {
  structure.works = factor(structure);
  failed_ += !structure.works;
}

// Whether rows have changed places, and it is to be solved again.
bool DirectJoints::change_places(Structure& structure, int pass, double share) {
  if (keeps_places_) return false;
  const auto of_link = [share](const Link&) { return share; };
  if (!active_set_.change(structure.links, rows_, total_, h_,
                          ActiveSet::Pass::of_one_worker(pass, structure.bounded_rows), of_link))
    return false;
  for (const ActiveSet::Arrival& arrival : active_set_.arrivals())
    for (std::vector<double>* into : {&velocity_, &arrived_}) {
      add(arrival.by, arrival.row->own_a, &(*into)[6 * arrival.link->a]);
      add(arrival.by, arrival.row->own_b, &(*into)[6 * arrival.link->b]);
    }
  std::fill(velocity_.end() - 6, velocity_.end(), 0.0);
  refactor(structure);
  return structure.works;
}

void DirectJoints::solve(Structure& structure, Bodies& bodies) {
  const double per_h = -1 / double(h_), most_turn = kMostTurn / substeps_;
  const std::size_t count = structure.places.size();
  read_velocities(structure, bodies);
  double share = 1;
  bool is_far = false;
  for (int pass = 0;; ++pass) {
    // Side by side: what velocities lack, and what errors ask for.
    values_.assign(12 * (count + 1), 0.0);
    for (const Link& link : structure.links) {
      double *at_a = &values_[12 * link.a], *at_b = &values_[12 * link.b];
      for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
        Row& row = rows_[r];
        if (row.is_out()) continue;
        row.lack =
            -(row.impulse + row.pull) / row.stiffness - row.velocity(&velocity_[6 * link.a], &velocity_[6 * link.b]);
        const double lack = row.stiffness * row.lack, wanted = row.stiffness * per_h * row.error;
        for (int k = 0; k < 6; ++k) {
          at_a[k] += lack * row.own_a[k];
          at_a[6 + k] += wanted * row.own_a[k];
          at_b[k] += lack * row.own_b[k];
          at_b[6 + k] += wanted * row.own_b[k];
        }
      }
    }
    std::fill(values_.end() - 12, values_.end(), 0.0);
    structure.matrix->solve_two(values_.data());
    double most = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Real* inverse_inertia = bodies.traits[structure.places[i]].inverse_inertia;
      double square = 0;
      for (int k = 0; k < 3; ++k) {
        const double turn = values_[12 * i + 6 + 3 + k];
        square += turn * turn * double(inverse_inertia[k]);
      }
      most = std::max(most, square);
    }
    most = std::sqrt(most) * double(h_);
    share = most > most_turn ? most_turn / most : 1;
    is_far = share < 1;
    structure.pushed.clear();
    if (is_far) structure.pushed.assign(6 * (count + 1), 0.0);
    if (structure.bounded_rows > 0) total_.assign(6 * (count + 1), 0.0);
    for (std::size_t i = 0; i < count; ++i)
      for (int k = 0; k < 6; ++k) {
        const double asked = values_[12 * i + 6 + k];
        if (is_far) structure.pushed[6 * i + k] = share * asked;
        values_[6 * i + k] = values_[12 * i + k] + (is_far ? 0 : asked);
        if (structure.bounded_rows > 0)
          total_[6 * i + k] = velocity_[6 * i + k] + values_[6 * i + k] + (is_far ? share * asked : 0);
      }
    std::fill(values_.begin() + static_cast<std::ptrdiff_t>(6 * count), values_.end(), 0.0);
    if (structure.bounded_rows == 0 || !change_places(structure, pass, share)) break;
  }
  if (!structure.works) {
    structure.pushed.clear();
    std::fill(values_.begin(), values_.end(), 0.0);
  } else {
    for (const Link& link : structure.links)
      for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
        Row& row = rows_[r];
        if (row.is_out()) continue;
        row.impulse += row.stiffness * (row.lack + (is_far ? 0 : per_h * row.error) -
                                        row.velocity(&values_[6 * link.a], &values_[6 * link.b]));
      }
  }
  write_velocities(structure, bodies);
  if (!structure.pushed.empty()) push(structure, 1, bodies);
}

// What large errors ask for is for moving alone: taken back, it leaves no speed. The relaxing sweep would leave some,
// for rows have turned by then. That is as it should be for small errors, which come of the turning itself: with what
// is left of them, velocities turn as bodies do.
void DirectJoints::take_back(Bodies& bodies) {
  const auto from = [&](Structure& structure) {
    if (!structure.pushed.empty()) push(structure, -1, bodies);
    structure.pushed.clear();
  };
  for (Structure& structure : structures_) from(structure);
  from(shared_);
}

void DirectJoints::push(const Structure& structure, double sign, Bodies& bodies) const {
  for (std::size_t i = 0; i < structure.places.size(); ++i) {
    Motion& motion = bodies.motion[structure.places[i]];
    for (int k = 0; k < 3; ++k) {
      motion.linear[k] += Real(sign * structure.pushed[6 * i + k]);
      motion.angular[k] += Real(sign * structure.pushed[6 * i + 3 + k]);
    }
  }
}

void DirectJoints::relax(Bodies& bodies) {
  if (interface_.takes_part() && mailboxes_ && shared_.works) relax_shared(bodies);
  for (Structure& structure : structures_)
    if (structure.works) relax(structure, bodies);
}

std::vector<double> DirectJoints::begin_sharing(Bodies& bodies) {
  LAPJOINT_ASSERT(!keeps_places_);
  std::vector<double> before;
  for (const Row& row : rows_) before.push_back(row.impulse);
  keeps_places_ = true;
  relax(bodies);
  keeps_places_ = false;
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].impulse -= before[i];
  return before;
}

void DirectJoints::relax(Structure& structure, Bodies& bodies) {
  const std::size_t count = structure.places.size();
  read_velocities(structure, bodies);
  for (int pass = 0;; ++pass) {
    values_.assign(6 * (count + 1), 0.0);
    for (const Link& link : structure.links) {
      double *at_a = &values_[6 * link.a], *at_b = &values_[6 * link.b];
      for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
        Row& row = rows_[r];
        if (row.is_out()) continue;
        row.lack =
            -(row.impulse + row.pull) / row.stiffness - row.velocity(&velocity_[6 * link.a], &velocity_[6 * link.b]);
        add(row.stiffness * row.lack, row.own_a, at_a);
        add(row.stiffness * row.lack, row.own_b, at_b);
      }
    }
    std::fill(values_.end() - 6, values_.end(), 0.0);
    structure.matrix->solve_one(values_.data());
    if (structure.bounded_rows == 0) break;
    total_.resize(values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i) total_[i] = velocity_[i] + values_[i];
    if (!change_places(structure, pass, 0)) break;
  }
  if (!structure.works)
    std::fill(values_.begin(), values_.end(), 0.0);
  else
    for (const Link& link : structure.links)
      for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
        Row& row = rows_[r];
        if (row.is_out()) continue;
        row.impulse += row.stiffness * (row.lack - row.velocity(&values_[6 * link.a], &values_[6 * link.b]));
      }
  write_velocities(structure, bodies);
}

void DirectJoints::write_velocities(const Structure& structure, Bodies& bodies) const {
  for (std::size_t i = 0; i < structure.places.size(); ++i) {
    Motion& motion = bodies.motion[structure.places[i]];
    for (int k = 0; k < 3; ++k) {
      motion.linear[k] += Real(arrived_[6 * i + k] + values_[6 * i + k]);
      motion.angular[k] += Real(arrived_[6 * i + 3 + k] + values_[6 * i + 3 + k]);
    }
  }
}

// ---- across workers ------------------------------------------------------------------------------------------------

void DirectJoints::factor_shared(bool first) {
  part_.works = true;
  part_.blocks.clear();
  if (shared_.matrix) {
    assemble(shared_);
    part_.works = shared_.matrix->factor_others();
    shared_.matrix->each_kept([&](int, int, const double* block) {
      part_.blocks.insert(part_.blocks.end(), block, block + BlockCholesky::kBlock);
    });
  }
  if (first)
    interface_.exchange_pattern(*mailboxes_, part_);
  else
    interface_.exchange_blocks(*mailboxes_, part_);
  if (!interface_.takes_part()) return;
  shared_.works = interface_.factor(part_);
  failed_ += !shared_.works;
}

// Values of all bodies of the structures, from right sides.
void DirectJoints::solve_interface(int sides) {
  const std::size_t each = static_cast<std::size_t>(6 * sides);
  shared_.matrix->eliminate(values_.data(), sides);
  kept_values_.resize(each * kept_.size());
  for (std::size_t k = 0; k < kept_.size(); ++k) std::copy_n(&values_[each * kept_[k]], each, &kept_values_[each * k]);
  interface_.solve(*mailboxes_, kept_values_.data(), sides);
  for (std::size_t k = 0; k < kept_.size(); ++k) std::copy_n(&kept_values_[each * k], each, &values_[each * kept_[k]]);
  shared_.matrix->substitute(values_.data(), sides);
}

// Asks for new velocities, not for what changes: so no worker needs those of another's bodies.
void DirectJoints::solve_shared(Bodies& bodies, int pass) {
  const double per_h = -1 / double(h_), most_turn = kMostTurn / substeps_;
  const std::size_t count = shared_.places.size();
  values_.assign(12 * (count + 1), 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    if (is_ghost_[i]) continue;
    const Motion& motion = bodies.motion[shared_.places[i]];
    for (int k = 0; k < 3; ++k) {
      values_[12 * i + k] = motion.linear[k];
      values_[12 * i + 3 + k] = motion.angular[k];
    }
  }
  for (const Link& link : shared_.links) {
    if (!link.is_own) continue;
    double *at_a = &values_[12 * link.a], *at_b = &values_[12 * link.b];
    for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
      const Row& row = rows_[r];
      if (row.is_out()) continue;
      const double wanted = row.stiffness * per_h * row.error, taken = row.impulse + row.pull;
      for (int k = 0; k < 6; ++k) {
        at_a[k] -= taken * row.own_a[k];
        at_a[6 + k] += wanted * row.own_a[k];
        at_b[k] -= taken * row.own_b[k];
        at_b[6 + k] += wanted * row.own_b[k];
      }
    }
  }
  std::fill(values_.end() - 12, values_.end(), 0.0);
  solve_interface(2);
  const std::vector<int>& labels = interface_.labels();
  const auto label_at = [&](std::size_t i) {
    LAPJOINT_ASSERT(std::binary_search(labels.begin(), labels.end(), shared_labels_[i]));
    return static_cast<std::size_t>(std::lower_bound(labels.begin(), labels.end(), shared_labels_[i]) - labels.begin());
  };
  most_.assign(labels.size(), 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    if (is_ghost_[i]) continue;
    const Real* inverse_inertia = bodies.traits[shared_.places[i]].inverse_inertia;
    double square = 0;
    for (int k = 0; k < 3; ++k) {
      const double turn = values_[12 * i + 6 + 3 + k];
      square += turn * turn * double(inverse_inertia[k]);
    }
    most_[label_at(i)] = std::max(most_[label_at(i)], square);
  }
  interface_.largest(*mailboxes_, most_);
  for (double& most : most_) {
    most = std::sqrt(most) * double(h_);
    most = most > most_turn ? most_turn / most : 1;  // the share of the correction
  }
  shared_.pushed.assign(6 * (count + 1), 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    const double share = most_[label_at(i)];
    for (int k = 0; k < 6; ++k) {
      const double asked = values_[12 * i + 6 + k];
      shared_.pushed[6 * i + k] = share < 1 ? share * asked : 0;
      values_[6 * i + k] = values_[12 * i + k] + (share < 1 ? 0 : asked);
    }
  }
  values_.resize(6 * (count + 1));
  for (const Link& link : shared_.links) {
    const bool is_far = most_[label_at(link.a < static_cast<int>(count) ? link.a : link.b)] < 1;
    for (int r = link.first_row; r < link.first_row + link.row_count; ++r)
      rows_[r].lack = -rows_[r].pull / rows_[r].stiffness + (is_far ? 0 : per_h * rows_[r].error);
  }
  if (change_shared_places(bodies, pass, true)) return solve_shared(bodies, pass + 1);
  if (!shared_.works) return;
  set_impulses(bodies);
  push(shared_, 1, bodies);
}

// All workers that have a part of a structure change places of its rows together, or none does.
bool DirectJoints::change_shared_places(Bodies& bodies, int pass, bool errors) {
  if (shared_.bounded_rows == 0 || keeps_places_) return false;
  const std::size_t count = shared_.places.size();
  total_.assign(6 * (count + 1), 0.0);
  for (std::size_t i = 0; i < 6 * count; ++i) total_[i] = values_[i] + (errors ? shared_.pushed[i] : 0);
  const std::vector<int>& labels = interface_.labels();
  const auto share = [&](const Link& link) {
    if (!errors) return 0.0;
    const int label = shared_labels_[link.a < static_cast<int>(count) ? link.a : link.b];
    return most_[static_cast<std::size_t>(std::lower_bound(labels.begin(), labels.end(), label) - labels.begin())];
  };
  const bool found = active_set_.change(shared_.links, rows_, total_, h_,
                                        ActiveSet::Pass::of_several(pass, shared_.bounded_rows), share);
  for (const ActiveSet::Arrival& arrival : active_set_.arrivals()) {
    const JointDefinition& joint = joints_[arrival.link->joint];
    for (int k = 0; k < 3; ++k) {
      bodies.motion[joint.a].linear[k] += Real(arrival.by * arrival.row->own_a[k]);
      bodies.motion[joint.a].angular[k] += Real(arrival.by * arrival.row->own_a[3 + k]);
      bodies.motion[joint.b].linear[k] += Real(arrival.by * arrival.row->own_b[k]);
      bodies.motion[joint.b].angular[k] += Real(arrival.by * arrival.row->own_b[3 + k]);
    }
  }
  if (!interface_.any(*mailboxes_, found)) return false;
  shared_.pushed.clear();
  factor_shared(false);
  return shared_.works;
}

void DirectJoints::relax_shared(Bodies& bodies, int pass) {
  const std::size_t count = shared_.places.size();
  values_.assign(6 * (count + 1), 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    if (is_ghost_[i]) continue;
    const Motion& motion = bodies.motion[shared_.places[i]];
    for (int k = 0; k < 3; ++k) {
      values_[6 * i + k] = motion.linear[k];
      values_[6 * i + 3 + k] = motion.angular[k];
    }
  }
  for (const Link& link : shared_.links) {
    if (!link.is_own) continue;
    for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
      if (rows_[r].is_out()) continue;
      const double taken = rows_[r].impulse + rows_[r].pull;
      add(-taken, rows_[r].own_a, &values_[6 * link.a]);
      add(-taken, rows_[r].own_b, &values_[6 * link.b]);
    }
  }
  std::fill(values_.end() - 6, values_.end(), 0.0);
  solve_interface(1);
  for (const Link& link : shared_.links)
    for (int r = link.first_row; r < link.first_row + link.row_count; ++r)
      rows_[r].lack = -rows_[r].pull / rows_[r].stiffness;
  if (change_shared_places(bodies, pass, false)) return relax_shared(bodies, pass + 1);
  if (!shared_.works) return;
  set_impulses(bodies);
}

// From the velocities that were solved for, and those that rows are to have. Bodies' own are changed by impulses, not
// set to these: what one worker's body gains, another's loses, however the solution is rounded.
void DirectJoints::set_impulses(Bodies& bodies) {
  const std::size_t count = shared_.places.size();
  std::fill(values_.end() - 6, values_.end(), 0.0);
  changes_.assign(6 * (count + 1), 0.0);
  for (const Link& link : shared_.links)
    for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
      Row& row = rows_[r];
      if (row.is_out()) continue;
      double impulse = row.stiffness * (row.lack - row.velocity(&values_[6 * link.a], &values_[6 * link.b]));
      add(impulse - row.impulse, row.own_a, &changes_[6 * link.a]);
      add(impulse - row.impulse, row.own_b, &changes_[6 * link.b]);
      row.impulse = impulse;
    }
  for (std::size_t i = 0; i < shared_.places.size(); ++i) {
    Motion& motion = bodies.motion[shared_.places[i]];
    for (int k = 0; k < 3; ++k) {
      motion.linear[k] += Real(changes_[6 * i + k]);
      motion.angular[k] += Real(changes_[6 * i + 3 + k]);
    }
  }
}

}  // namespace lapjoint
