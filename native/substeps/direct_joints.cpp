#include "substeps/direct_joints.h"

#include <cmath>
#include <numeric>

namespace lapjoint {

namespace {

constexpr double kHold = 1e6;       // how stiff a row is, against what it needs alone
constexpr double kMostTurn = 0.01;  // rad that a correction may turn a body by in a substep
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

void DirectJoints::choose(std::vector<JointDefinition>& joints, JointChoice choice, int fixed) {
  joints_.clear();
  structures_.clear();
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
  for (const auto& [first, members] : of_group) choose_structure(joints, members, choice, fixed);
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

void DirectJoints::prepare(const Bodies& bodies, Real h, int substeps, const std::vector<Real>& impulses) {
  h_ = h;
  substeps_ = substeps;
  failed_ = 0;
  rows_.clear();
  for (Structure& structure : structures_) {
    for (Link& link : structure.links) {
      const JointDefinition& joint = joints_[link.joint];
      JointRow made[6];
      link.first_row = static_cast<int>(rows_.size());
      link.row_count = JointSweeps::rows_of(joint, bodies, made);
      const double root_a = bodies.frame[joint.a].root[0], root_b = bodies.frame[joint.b].root[0];
      int axis = -1;
      for (int k = 0; k < link.row_count; ++k) {
        do ++axis;
        while (!(joint.locked >> axis & 1));
        Row& row = rows_.emplace_back();
        for (int i = 0; i < 3; ++i) {
          row.own_a[i] = root_a * made[k].along[i];
          row.own_b[i] = -root_b * made[k].along[i];
          row.own_a[3 + i] = made[k].own_a[i];
          row.own_b[3 + i] = -made[k].own_b[i];
        }
        row.error = made[k].error;
        row.stiffness = kHold / std::max(product(row.own_a, row.own_a) + product(row.own_b, row.own_b), 1e-300);
        row.target = joint.first_impulse + axis;
        row.impulse = double(impulses[row.target]) / substeps;
      }
    }
    structure.works = factor(structure);
    failed_ += !structure.works;
  }
}

bool DirectJoints::factor(Structure& structure) {
  BlockCholesky& matrix = *structure.matrix;
  matrix.clear();
  for (int i = 0; i < static_cast<int>(structure.places.size()); ++i)
    for (int k = 0; k < 6; ++k) matrix.block(i, i)[7 * k] = 1;
  for (const Link& link : structure.links)
    for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
      const Row& row = rows_[r];
      if (link.of_a) add_product(row.stiffness, row.own_a, row.own_a, link.of_a);
      if (link.of_b) add_product(row.stiffness, row.own_b, row.own_b, link.of_b);
      if (!link.of_both) continue;
      if (link.b_first)
        add_product(row.stiffness, row.own_b, row.own_a, link.of_both);
      else
        add_product(row.stiffness, row.own_a, row.own_b, link.of_both);
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

void DirectJoints::read_motion(const Structure& structure, const Bodies& bodies) {
  const std::size_t count = structure.places.size();
  velocity_.assign(6 * (count + 1), 0.0);
  displacement_.assign(6 * (count + 1), 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    const Motion& motion = bodies.motion[structure.places[i]];
    for (int k = 0; k < 3; ++k) {
      velocity_[6 * i + k] = motion.linear[k];
      velocity_[6 * i + 3 + k] = motion.angular[k];
      displacement_[6 * i + k] = motion.moved[k];
      displacement_[6 * i + 3 + k] = motion.turned[k];
    }
  }
}

// What rotations do to the arms of points beyond the first order: see JointSweeps::update_errors.
void DirectJoints::add_curves(const Structure& structure, const Bodies& bodies) {
  const auto curve = [&](int place, const Real* local, double sign, double* out) {
    if (place == bodies.fixed()) return;
    const Frame& frame = bodies.frame[place];
    const Motion& motion = bodies.motion[place];
    const Real* axes = bodies.start[place].axes;
    double turn[3], arm[3], once[3], twice[3], square = 0;
    for (int k = 0; k < 3; ++k) {
      turn[k] = 0;
      for (int i = 0; i < 3; ++i) turn[k] += double(motion.turned[i]) * frame.rows[i][k];
      square += turn[k] * turn[k];
    }
    if (square == 0) return;
    for (int k = 0; k < 3; ++k)
      arm[k] = double(axes[3 * k]) * local[0] + double(axes[3 * k + 1]) * local[1] + double(axes[3 * k + 2]) * local[2];
    const auto cross = [](const double* x, const double* y, double* z) {
      z[0] = x[1] * y[2] - x[2] * y[1];
      z[1] = x[2] * y[0] - x[0] * y[2];
      z[2] = x[0] * y[1] - x[1] * y[0];
    };
    cross(turn, arm, once);
    cross(turn, once, twice);
    // Of the cosine and the sine; four terms are right to a hundred-millionth at a fifth of a radian.
    const double second = 1.0 / 2 - square * (1.0 / 24 - square * (1.0 / 720 - square / 40320));
    const double first = -square * (1.0 / 6 - square * (1.0 / 120 - square / 5040));
    for (int k = 0; k < 3; ++k) out[k] += sign * (second * twice[k] + first * once[k]);
  };
  for (const Link& link : structure.links) {
    const JointDefinition& joint = joints_[link.joint];
    if (!joint.is_point()) continue;
    double more[3] = {0, 0, 0};
    curve(joint.a, joint.place_a, 1, more);
    curve(joint.b, joint.place_b, -1, more);
    for (int k = 0; k < 3; ++k) rows_[link.first_row + k].wanted += more[k];
  }
}

void DirectJoints::solve(Bodies& bodies) {
  const double per_h = -1 / double(h_);
  for (const Structure& structure : structures_) {
    if (!structure.works) continue;
    const std::size_t count = structure.places.size();
    read_motion(structure, bodies);
    for (const Link& link : structure.links)
      for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
        Row& row = rows_[r];
        row.lack = -row.impulse / row.stiffness - product(row.own_a, &velocity_[6 * link.a]) -
                   product(row.own_b, &velocity_[6 * link.b]);
        row.wanted =
            row.error + product(row.own_a, &displacement_[6 * link.a]) + product(row.own_b, &displacement_[6 * link.b]);
      }
    add_curves(structure, bodies);
    // Side by side: what velocities lack, and what errors ask for.
    values_.assign(12 * (count + 1), 0.0);
    for (const Link& link : structure.links) {
      double *at_a = &values_[12 * link.a], *at_b = &values_[12 * link.b];
      for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
        Row& row = rows_[r];
        row.wanted *= per_h;
        const double lack = row.stiffness * row.lack, wanted = row.stiffness * row.wanted;
        for (int k = 0; k < 6; ++k) {
          at_a[2 * k] += lack * row.own_a[k];
          at_a[2 * k + 1] += wanted * row.own_a[k];
          at_b[2 * k] += lack * row.own_b[k];
          at_b[2 * k + 1] += wanted * row.own_b[k];
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
        const double turn = values_[12 * i + 2 * (3 + k) + 1];
        square += turn * turn * double(inverse_inertia[k]);
      }
      most = std::max(most, square);
    }
    most = std::sqrt(most) * double(h_);
    const double share = most > kMostTurn ? kMostTurn / most : 1;
    for (std::size_t i = 0; i < 6 * count; ++i) values_[i] = values_[2 * i] + share * values_[2 * i + 1];
    std::fill(values_.begin() + static_cast<std::ptrdiff_t>(6 * count), values_.end(), 0.0);
    for (const Link& link : structure.links)
      for (int r = link.first_row; r < link.first_row + link.row_count; ++r) {
        Row& row = rows_[r];
        row.impulse += row.stiffness * (row.lack + share * row.wanted - product(row.own_a, &values_[6 * link.a]) -
                                        product(row.own_b, &values_[6 * link.b]));
      }
    write_velocities(structure, bodies);
  }
}

void DirectJoints::relax(Bodies& bodies) {
  for (const Structure& structure : structures_) {
    if (!structure.works) continue;
    const std::size_t count = structure.places.size();
    read_motion(structure, bodies);
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
    structure.matrix->solve(values_.data());
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
