#include "substeps/direct_joints.h"

#include <algorithm>
#include <cmath>

#include "solver/block_row.h"
#include "substeps/union_find.h"

namespace lapjoint {

namespace {

constexpr double kHold = 1e6;       // how stiff a row is, against what it needs alone
constexpr double kMostTurn = 0.04;  // rad that corrections may turn a body by in a step

double product(const double* a, const double* b) {
  return (a[0] * b[0] + a[2] * b[2] + a[4] * b[4]) + (a[1] * b[1] + a[3] * b[3] + a[5] * b[5]);
}

void add(double factor, const double* a, double* out) {
  for (int k = 0; k < 6; ++k) out[k] += factor * a[k];
}

void add_product(double factor, const double* a, const double* b, double* block) {
  for (int i = 0; i < 6; ++i) add(factor * a[i], b, block + 6 * i);
}

int locked_rows(const JointDefinition& joint) {
  int count = 0;
  for (int axis = 0; axis < 6; ++axis) count += joint.locked >> axis & 1;
  return count;
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
    if (joint.locked && joint.a < fixed && joint.b < fixed) groups.unite(joint.a, joint.b);
  std::map<int, std::vector<int>> of_group;
  for (std::size_t i = 0; i < joints.size(); ++i)
    if (joints[i].locked)
      of_group[groups.find(joints[i].a < fixed ? joints[i].a : joints[i].b)].push_back(static_cast<int>(i));
  used_.clear();
  const auto of_structure = [&](const std::vector<int>& members) {
    for (const int i : members)
      for (const int place : {joints[i].a, joints[i].b})
        if (choices[place] != choice) return choices[place];
    return choice;
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
  from.direct = true;
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
    if ((*axes_)[joint.first_axis + k].kind == AxisDefinition::kDrive) {
      rows_.emplace_back();
      rows_.back().axis = joint.first_axis + k;
      rows_.back().target = joint.first_impulse + 6 + k;
    }
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
  const auto body_of = [fixed](const JointDefinition& joint) { return joint.a < fixed ? joint.a : joint.b; };
  const auto has_label = [&](const JointDefinition& joint) {
    return joint.locked && !joint.direct && std::binary_search(wanted.begin(), wanted.end(), labels[body_of(joint)]);
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
}

// ---- a step's rows
// -----------------------------------------------------------------------------------------------------

void DirectJoints::prepare(Bodies& bodies, Real h, int substeps, const std::vector<Real>& impulses,
                           Mailboxes* mailboxes) {
  h_ = h;
  substeps_ = substeps;
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
      row.inertia = JointSweeps::inertia_of(joint, axis, bodies);
      row.is_swept = DriveResponse::of_drive(axis.stiffness, axis.damping, row.inertia, h_, axis.is_angular()).is_exact;
      row.is_held = false;
      row.half_turns = axis.counted ? double(impulses[joint.kept_place()]) : 0;
    }
    put_rows(link, bodies);
    for (int k = 0; k < link.row_count; ++k) {
      Row& row = rows_[link.first_row + k];
      if (row.is_drive()) {
        row.impulse = row.is_swept ? 0 : double(impulses[row.target]) / substeps_;
        continue;
      }
      row.stiffness = kHold / std::max(product(row.own_a, row.own_a) + product(row.own_b, row.own_b), 1e-300);
      row.impulse = double(impulses[row.target]) / substeps_;
    }
    put_drives(link, bodies);
  }
}

// What drives do where they are, once their rows are there.
void DirectJoints::put_drives(const Link& link, Bodies& bodies) {
  const JointDefinition& joint = joints_[link.joint];
  for (int k = link.locked_count; k < link.row_count; ++k) {
    Row& row = rows_[link.first_row + k];
    if (row.is_swept) continue;
    const AxisDefinition& axis = (*axes_)[row.axis];
    const double h = h_, most = double(axis.force) * h;
    row.stiffness = h * (h * double(axis.stiffness) + double(axis.damping));
    row.next_pull = h * double(axis.stiffness) * row.error;
    if (axis.is_angular()) {  // no faster than what bodies hold keeps up with, besides what holds a load
      const double reach = DriveResponse::kMostTurn / h * (row.stiffness + 1 / row.inertia);
      row.next_pull = std::clamp(row.next_pull, -row.impulse - reach, -row.impulse + reach);
    }
    row.next_pull -= h * double(axis.damping) * double(axis.velocity);
    row.error = 0;  // it is no gap
    if (!row.is_held) continue;
    double speed = 0;
    for (int i = 0; i < 3; ++i)
      speed += row.own_a[i] * double(bodies.motion[joint.a].linear[i]) +
               row.own_a[3 + i] * double(bodies.motion[joint.a].angular[i]) +
               row.own_b[i] * double(bodies.motion[joint.b].linear[i]) +
               row.own_b[3 + i] * double(bodies.motion[joint.b].angular[i]);
    const double wanted = -row.stiffness * speed - row.next_pull;
    row.is_held = std::abs(wanted) >= most && (wanted > 0) == (row.impulse > 0);
  }
}

// Drives pull for where they are as the substep begins, also once bodies have moved.
void DirectJoints::begin_drives(const Structure& structure) {
  for (const Link& link : structure.links)
    for (int r = link.first_row + link.locked_count; r < link.first_row + link.row_count; ++r)
      rows_[r].pull = rows_[r].next_pull;
}

// Of a solution that is there but for the impulses: drives that would do more than they can do as much as they can from
// now on. Whether there are any: without their rows it is another one.
bool DirectJoints::hold_drives(const Structure& structure, Bodies& bodies) {
  bool found = false;
  for (const Link& link : structure.links) {
    const JointDefinition& joint = joints_[link.joint];
    for (int r = link.first_row + link.locked_count; r < link.first_row + link.row_count; ++r) {
      Row& row = rows_[r];
      if (row.is_out()) continue;
      const double most = double((*axes_)[row.axis].force) * double(h_);
      const double before = &structure == &shared_ ? 0 : row.impulse;  // see set_impulses
      const double impulse = before + row.stiffness * (row.lack - product(row.own_a, &values_[6 * link.a]) -
                                                       product(row.own_b, &values_[6 * link.b]));
      if (!(std::abs(impulse) > most)) continue;
      const double change = std::copysign(most, impulse) - row.impulse;
      for (int k = 0; k < 3; ++k) {
        bodies.motion[joint.a].linear[k] += Real(change * row.own_a[k]);
        bodies.motion[joint.a].angular[k] += Real(change * row.own_a[3 + k]);
        bodies.motion[joint.b].linear[k] += Real(change * row.own_b[k]);
        bodies.motion[joint.b].angular[k] += Real(change * row.own_b[3 + k]);
      }
      row.impulse += change;
      row.is_held = found = true;
    }
  }
  return found;
}

// Rows for where bodies are. What their impulses do to the bodies changes with them.
void DirectJoints::put_rows(const Link& link, Bodies& bodies) {
  const JointDefinition& joint = joints_[link.joint];
  const Frame* frames[2] = {&bodies.frame[joint.a], &bodies.frame[joint.b]};
  Bodies::Twist* more[2] = {&bodies.turned_impulses[joint.a], &bodies.turned_impulses[joint.b]};
  const auto put_all = [&](Row& row, int side, const double* along, const double* about) {
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
  JointRow made[6 + 6];
  JointSweeps::rows_of(joint, bodies, made);
  for (int k = link.locked_count; k < link.row_count; ++k) {
    Row& row = rows_[link.first_row + k];
    const AxisDefinition& axis = (*axes_)[row.axis];
    JointSweeps::row_of(joint, axis.axis, bodies, made[k]);
    const double place = made[k].error;
    row.error = (axis.counted ? JointSweeps::angle_of(place, row.half_turns) : place) - double(axis.value);
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
    if (!row.is_drive()) row.error = made[k].error;
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

void DirectJoints::store(std::vector<Real>& impulses) const {
  for (const Row& row : rows_)
    if (!row.is_swept) impulses[row.target] = Real(row.impulse * substeps_);
}

void DirectJoints::add_impulses(std::vector<Real>& sums) const {
  for (const Row& row : rows_) sums[row.target] += Real(row.impulse);
}

// ---- substeps
// ----------------------------------------------------------------------------------------------------------

void DirectJoints::turn(Bodies& bodies) {
  for (Structure& structure : structures_) {
    if (!structure.works) continue;
    for (const Link& link : structure.links) {
      put_rows(link, bodies);
      put_drives(link, bodies);
    }
    structure.works = factor(structure);
    failed_ += !structure.works;
  }
  if (!interface_.takes_part() || !mailboxes_ || !shared_.works) return;
  for (const Link& link : shared_.links) {
    put_rows(link, bodies);
    put_drives(link, bodies);
  }
  factor_shared(false);
}

void DirectJoints::read_velocities(const Structure& structure, const Bodies& bodies) {
  const std::size_t count = structure.places.size();
  velocity_.assign(6 * (count + 1), 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    const Motion& motion = bodies.motion[structure.places[i]];
    for (int k = 0; k < 3; ++k) {
      velocity_[6 * i + k] = motion.linear[k];
      velocity_[6 * i + 3 + k] = motion.angular[k];
    }
  }
}

void DirectJoints::solve(Bodies& bodies) {
  take_back(bodies);  // where it is not the first sweep of a substep
  if (interface_.takes_part() && mailboxes_ && shared_.works) {
    begin_drives(shared_);
    solve_shared(bodies);
  }
  for (Structure& structure : structures_) {
    begin_drives(structure);
    while (structure.works && !solve(structure, bodies)) refactor(structure);
  }
}

void DirectJoints::refactor(Structure& structure) {
  structure.works = factor(structure);
  failed_ += !structure.works;
}

// Whether it did: some drives may have come to do as much as they can instead.
bool DirectJoints::solve(Structure& structure, Bodies& bodies) {
  const double per_h = -1 / double(h_), most_turn = kMostTurn / substeps_;
  {
    const std::size_t count = structure.places.size();
    read_velocities(structure, bodies);
    // Side by side: what velocities lack, and what errors ask for.
    values_.assign(12 * (count + 1), 0.0);
    for (const Link& link : structure.links) {
      double *at_a = &values_[12 * link.a], *at_b = &values_[12 * link.b];
      for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
        Row& row = rows_[r];
        if (row.is_out()) continue;
        row.lack = -(row.impulse + row.pull) / row.stiffness - product(row.own_a, &velocity_[6 * link.a]) -
                   product(row.own_b, &velocity_[6 * link.b]);
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
    const double share = most > most_turn ? most_turn / most : 1;
    const bool is_far = share < 1;
    if (is_far) structure.pushed.assign(6 * (count + 1), 0.0);
    for (std::size_t i = 0; i < count; ++i)
      for (int k = 0; k < 6; ++k) {
        const double asked = values_[12 * i + 6 + k];
        if (is_far) structure.pushed[6 * i + k] = share * asked;
        values_[6 * i + k] = values_[12 * i + k] + (is_far ? 0 : asked);
      }
    std::fill(values_.begin() + static_cast<std::ptrdiff_t>(6 * count), values_.end(), 0.0);
    if (hold_drives(structure, bodies)) {
      structure.pushed.clear();
      return false;
    }
    for (const Link& link : structure.links)
      for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
        Row& row = rows_[r];
        if (row.is_out()) continue;
        row.impulse +=
            row.stiffness * (row.lack + (is_far ? 0 : per_h * row.error) - product(row.own_a, &values_[6 * link.a]) -
                             product(row.own_b, &values_[6 * link.b]));
      }
    write_velocities(structure, bodies);
    if (is_far) push(structure, 1, bodies);
  }
  return true;
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
    while (structure.works && !relax(structure, bodies)) refactor(structure);
}

bool DirectJoints::relax(const Structure& structure, Bodies& bodies) {
  {
    const std::size_t count = structure.places.size();
    read_velocities(structure, bodies);
    values_.assign(6 * (count + 1), 0.0);
    for (const Link& link : structure.links) {
      double *at_a = &values_[6 * link.a], *at_b = &values_[6 * link.b];
      for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
        Row& row = rows_[r];
        if (row.is_out()) continue;
        row.lack = -(row.impulse + row.pull) / row.stiffness - product(row.own_a, &velocity_[6 * link.a]) -
                   product(row.own_b, &velocity_[6 * link.b]);
        add(row.stiffness * row.lack, row.own_a, at_a);
        add(row.stiffness * row.lack, row.own_b, at_b);
      }
    }
    std::fill(values_.end() - 6, values_.end(), 0.0);
    structure.matrix->solve_one(values_.data());
    if (hold_drives(structure, bodies)) return false;
    for (const Link& link : structure.links)
      for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
        Row& row = rows_[r];
        if (row.is_out()) continue;
        row.impulse += row.stiffness *
                       (row.lack - product(row.own_a, &values_[6 * link.a]) - product(row.own_b, &values_[6 * link.b]));
      }
    write_velocities(structure, bodies);
  }
  return true;
}

void DirectJoints::write_velocities(const Structure& structure, Bodies& bodies) const {
  for (std::size_t i = 0; i < structure.places.size(); ++i) {
    Motion& motion = bodies.motion[structure.places[i]];
    for (int k = 0; k < 3; ++k) {
      motion.linear[k] += Real(values_[6 * i + k]);
      motion.angular[k] += Real(values_[6 * i + 3 + k]);
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
void DirectJoints::solve_shared(Bodies& bodies) {
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
      rows_[r].lack = rows_[r].is_drive() ? -rows_[r].pull / rows_[r].stiffness : is_far ? 0 : per_h * rows_[r].error;
  }
  if (hold_shared(bodies)) return solve_shared(bodies);
  set_impulses(bodies);
  push(shared_, 1, bodies);
}

// All workers that have a part of a structure take its rows out together, or none does.
bool DirectJoints::hold_shared(Bodies& bodies) {
  if (!limits_drives_) return false;
  std::fill(values_.end() - 6, values_.end(), 0.0);
  if (!interface_.any(*mailboxes_, hold_drives(shared_, bodies))) return false;
  shared_.pushed.clear();
  factor_shared(false);
  return shared_.works;
}

void DirectJoints::relax_shared(Bodies& bodies) {
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
      rows_[r].lack = rows_[r].is_drive() ? -rows_[r].pull / rows_[r].stiffness : 0;
  if (hold_shared(bodies)) return relax_shared(bodies);
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
      double impulse = row.stiffness *
                       (row.lack - product(row.own_a, &values_[6 * link.a]) - product(row.own_b, &values_[6 * link.b]));
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
