#include "substeps/direct_joints.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "solver/block_row.h"

namespace lapjoint {

namespace {

constexpr double kHold = 1e6;       // how stiff a row is, against what it needs alone
constexpr double kMostTurn = 0.04;  // rad that corrections may turn a body by in a step
// Products of blocks that a factorization may take for each row, unless it is asked for: a product is about as much as
// ten updates of a row.
constexpr long kWork = 12;
constexpr long kAnyWork = 1'000'000'000;

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

void DirectJoints::choose(std::vector<JointDefinition>& joints, JointChoice choice, const std::vector<char>& is_cut,
                          int fixed) {
  joints_.clear();
  structures_.clear();
  rows_.clear();
  for (JointDefinition& joint : joints) joint.direct = false;
  if (choice == JointChoice::kSwept) return;
  // Bodies that joints tie together, through bodies that can move.
  std::vector<int> group(fixed);
  std::iota(group.begin(), group.end(), 0);
  const auto find = [&](int place) {
    while (group[place] != place) place = group[place] = group[group[place]];
    return place;
  };
  for (const JointDefinition& joint : joints)
    if (joint.locked && joint.a < fixed && joint.b < fixed) {
      const int a = find(joint.a), b = find(joint.b);
      group[std::max(a, b)] = std::min(a, b);
    }
  std::map<int, std::vector<int>> of_group;
  for (std::size_t i = 0; i < joints.size(); ++i)
    if (joints[i].locked)
      of_group[find(joints[i].a < fixed ? joints[i].a : joints[i].b)].push_back(static_cast<int>(i));
  used_.clear();
  const auto is_whole = [&](const std::vector<int>& members) {
    return std::none_of(members.begin(), members.end(),
                        [&](int i) { return is_cut[joints[i].a] || is_cut[joints[i].b]; });
  };
  for (const auto& [first, members] : of_group)
    if (is_whole(members)) choose_structure(joints, members, choice, fixed);
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

  const std::pair<int, Pairs> key(body_count, std::move(pairs));
  auto known = patterns_.find(key);
  if (known == patterns_.end()) {
    auto pattern = std::make_shared<BlockCholesky>();
    const long limit = choice == JointChoice::kDirect ? kAnyWork : kWork * row_count;
    if (!pattern->analyse(std::vector<char>(body_count, 0), key.second, limit)) pattern.reset();
    known = patterns_.emplace(key, std::move(pattern)).first;
  }
  used_.insert(*known);
  if (!known->second) return;
  structure.matrix = std::make_unique<BlockCholesky>(*known->second);
  for (std::size_t k = 0; k < members.size(); ++k) {
    Link& link = structure.links[k];
    link.joint = static_cast<int>(joints_.size());
    joints[members[k]].direct = true;
    joints_.push_back(joints[members[k]]);
    const JointDefinition& joint = joints_.back();
    link.is_point = joint.is_point();
    link.first_row = static_cast<int>(rows_.size());
    for (int axis = 0; axis < 6; ++axis)
      if (joint.locked >> axis & 1) {
        rows_.emplace_back();
        rows_.back().target = joint.first_impulse + axis;
      }
    link.row_count = static_cast<int>(rows_.size()) - link.first_row;
    if (link.a != body_count) link.of_a = structure.matrix->block(link.a, link.a);
    if (link.b != body_count) link.of_b = structure.matrix->block(link.b, link.b);
    if (!link.of_a || !link.of_b) continue;
    link.b_first = !structure.matrix->stored(link.a, link.b);
    link.of_both = link.b_first ? structure.matrix->block(link.b, link.a) : structure.matrix->block(link.a, link.b);
  }
  structures_.push_back(std::move(structure));
}

// ---- a step's rows
// -----------------------------------------------------------------------------------------------------

void DirectJoints::prepare(Bodies& bodies, Real h, int substeps, const std::vector<Real>& impulses) {
  h_ = h;
  substeps_ = substeps;
  failed_ = 0;
  for (Structure& structure : structures_) {
    for (const Link& link : structure.links) {
      for (int k = 0; k < link.row_count; ++k) {
        Row& row = rows_[link.first_row + k];
        row.impulse = 0;
        std::fill(row.own_a, row.own_a + 6, 0.0);
        std::fill(row.own_b, row.own_b + 6, 0.0);
      }
      put_rows(link, bodies);
      for (int k = 0; k < link.row_count; ++k) {
        Row& row = rows_[link.first_row + k];
        row.stiffness = kHold / std::max(product(row.own_a, row.own_a) + product(row.own_b, row.own_b), 1e-300);
        row.impulse = double(impulses[row.target]) / substeps;
      }
    }
    structure.works = factor(structure);
    failed_ += !structure.works;
  }
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
  JointRow made[6];
  JointSweeps::rows_of(joint, bodies, made);
  for (int k = link.is_point ? 3 : 0; k < link.row_count; ++k) {
    Row& row = rows_[link.first_row + k];
    for (int side = 0; side < 2; ++side) {
      const double sign = side == 0 ? 1 : -1, root = sign * frames[side]->root[0];
      const Real* own = side == 0 ? made[k].own_a : made[k].own_b;
      const double along[3] = {root * made[k].along[0], root * made[k].along[1], root * made[k].along[2]};
      const double about[3] = {sign * own[0], sign * own[1], sign * own[2]};
      put_all(row, side, along, about);
    }
    row.error = made[k].error;
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
  BlockCholesky& matrix = *structure.matrix;
  matrix.clear();
  for (int i = 0; i < static_cast<int>(structure.places.size()); ++i)
    for (int k = 0; k < 6; ++k) matrix.block(i, i)[7 * k] = 1;
  for (const Link& link : structure.links) {
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
      if (link.of_a) add_product(row.stiffness, row.own_a, row.own_a, link.of_a);
      if (link.of_b) add_product(row.stiffness, row.own_b, row.own_b, link.of_b);
      if (!link.of_both) continue;
      if (link.b_first)
        add_product(row.stiffness, row.own_b, row.own_a, link.of_both);
      else
        add_product(row.stiffness, row.own_a, row.own_b, link.of_both);
    }
  }
  return matrix.factor();
}

void DirectJoints::warm_start(Bodies& bodies) const {
  for (const Structure& structure : structures_) {
    if (!structure.works) continue;
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
}

void DirectJoints::store(std::vector<Real>& impulses) const {
  for (const Row& row : rows_) impulses[row.target] = Real(row.impulse * substeps_);
}

// ---- substeps
// ----------------------------------------------------------------------------------------------------------

void DirectJoints::turn(Bodies& bodies) {
  for (Structure& structure : structures_) {
    if (!structure.works) continue;
    for (const Link& link : structure.links) put_rows(link, bodies);
    structure.works = factor(structure);
    failed_ += !structure.works;
  }
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
  const double per_h = -1 / double(h_), most_turn = kMostTurn / substeps_;
  for (Structure& structure : structures_) {
    if (!structure.works) continue;
    const std::size_t count = structure.places.size();
    read_velocities(structure, bodies);
    // Side by side: what velocities lack, and what errors ask for.
    values_.assign(12 * (count + 1), 0.0);
    for (const Link& link : structure.links) {
      double *at_a = &values_[12 * link.a], *at_b = &values_[12 * link.b];
      for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
        Row& row = rows_[r];
        row.lack = -row.impulse / row.stiffness - product(row.own_a, &velocity_[6 * link.a]) -
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
    for (std::size_t i = 0; i < count; ++i)
      for (int k = 0; k < 6; ++k) values_[6 * i + k] = values_[12 * i + k] + share * values_[12 * i + 6 + k];
    std::fill(values_.begin() + static_cast<std::ptrdiff_t>(6 * count), values_.end(), 0.0);
    for (const Link& link : structure.links)
      for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
        Row& row = rows_[r];
        row.impulse +=
            row.stiffness * (row.lack + share * per_h * row.error - product(row.own_a, &values_[6 * link.a]) -
                             product(row.own_b, &values_[6 * link.b]));
      }
    write_velocities(structure, bodies);
  }
}

void DirectJoints::relax(Bodies& bodies) {
  for (const Structure& structure : structures_) {
    if (!structure.works) continue;
    const std::size_t count = structure.places.size();
    read_velocities(structure, bodies);
    values_.assign(6 * (count + 1), 0.0);
    for (const Link& link : structure.links) {
      double *at_a = &values_[6 * link.a], *at_b = &values_[6 * link.b];
      for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
        Row& row = rows_[r];
        row.lack = -row.impulse / row.stiffness - product(row.own_a, &velocity_[6 * link.a]) -
                   product(row.own_b, &velocity_[6 * link.b]);
        add(row.stiffness * row.lack, row.own_a, at_a);
        add(row.stiffness * row.lack, row.own_b, at_b);
      }
    }
    std::fill(values_.end() - 6, values_.end(), 0.0);
    structure.matrix->solve_one(values_.data());
    for (const Link& link : structure.links)
      for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
        Row& row = rows_[r];
        row.impulse += row.stiffness *
                       (row.lack - product(row.own_a, &values_[6 * link.a]) - product(row.own_b, &values_[6 * link.b]));
      }
    write_velocities(structure, bodies);
  }
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

}  // namespace lapjoint
