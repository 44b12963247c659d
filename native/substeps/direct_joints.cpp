#include "substeps/direct_joints.h"

#include <cmath>
#include <numeric>

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

// `only`: the one of the first three numbers that is not zero, or -1 where all may be.
void add_product(double factor, const double* a, const double* b, int only, double* block) {
  if (only < 0) {
    for (int i = 0; i < 6; ++i) add(factor * a[i], b, block + 6 * i);
    return;
  }
  double scaled[6];
  for (int i = 0; i < 6; ++i) scaled[i] = factor * a[i];
  for (int k = 3; k < 6; ++k) block[6 * only + k] += scaled[only] * b[k];
  block[7 * only] += scaled[only] * b[only];
  for (int i = 3; i < 6; ++i) {
    double* row = block + 6 * i;
    row[only] += scaled[i] * b[only];
    for (int k = 3; k < 6; ++k) row[k] += scaled[i] * b[k];
  }
}

void cross(const double* x, const double* y, double* out) {
  out[0] = x[1] * y[2] - x[2] * y[1];
  out[1] = x[2] * y[0] - x[0] * y[2];
  out[2] = x[0] * y[1] - x[1] * y[0];
}

// How far the end of an arm has moved as its body turned.
void turn_arm(const Frame& frame, const Lanes& turned, const double* arm, double* out) {
  double turn[3], once[3], twice[3], square = 0;
  for (int k = 0; k < 3; ++k) {
    turn[k] = double(turned[0]) * frame.rows[0][k] + double(turned[1]) * frame.rows[1][k] +
              double(turned[2]) * frame.rows[2][k];
    square += turn[k] * turn[k];
  }
  cross(turn, arm, once);
  cross(turn, once, twice);
  // Sine and cosine as series: right to a hundred-millionth at a fifth of a radian.
  const double first = 1 - square * (1.0 / 6 - square * (1.0 / 120 - square / 5040));
  const double second = 1.0 / 2 - square * (1.0 / 24 - square * (1.0 / 720 - square / 40320));
  for (int k = 0; k < 3; ++k) out[k] = first * once[k] + second * twice[k];
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
      link.is_point = joint.is_point();
      const BodyState &a = bodies.start[joint.a], &b = bodies.start[joint.b];
      for (int k = 0; k < 3; ++k) {
        const auto arm = [&](const BodyState& body, const Real* local) {
          const Real* row = body.axes + 3 * k;
          return double(row[0]) * local[0] + double(row[1]) * local[1] + double(row[2]) * local[2];
        };
        link.arm_a[k] = arm(a, joint.place_a);
        link.arm_b[k] = arm(b, joint.place_b);
        link.apart[k] = (double(a.position[k]) - b.position[k]) + (link.arm_a[k] - link.arm_b[k]);
      }
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
    for (int k = 0; k < link.row_count; ++k) {
      const Row& row = rows_[link.first_row + k];
      const int only = link.is_point && k < 3 ? k : -1;
      if (link.of_a) add_product(row.stiffness, row.own_a, row.own_a, only, link.of_a);
      if (link.of_b) add_product(row.stiffness, row.own_b, row.own_b, only, link.of_b);
      if (!link.of_both) continue;
      if (link.b_first)
        add_product(row.stiffness, row.own_b, row.own_a, only, link.of_both);
      else
        add_product(row.stiffness, row.own_a, row.own_b, only, link.of_both);
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
    for (const Link& link : structure.links) {
      if (link.is_point) turn_point(link, bodies);
      if (!link.is_point || link.row_count > 3) turn_others(link, bodies);
    }
    structure.works = factor(structure);
    failed_ += !structure.works;
  }
}

void DirectJoints::turn_point(const Link& link, Bodies& bodies) {
  const JointDefinition& joint = joints_[link.joint];
  double error[3] = {link.apart[0], link.apart[1], link.apart[2]};
  const auto turn = [&](int place, const double* start, double sign, auto own) {
    const Frame& frame = bodies.frame[place];
    const Motion& motion = bodies.motion[place];
    const double root = frame.root[0];
    double more[3], arm[3];
    turn_arm(frame, motion.turned, start, more);
    for (int k = 0; k < 3; ++k) {
      arm[k] = start[k] + more[k];
      error[k] += sign * (root * motion.moved[k] + more[k]);
    }
    const double about[3][3] = {{0, arm[2], -arm[1]}, {-arm[2], 0, arm[0]}, {arm[1], -arm[0], 0}};  // arm x axis
    Lanes& turned_impulse = bodies.turned_impulses[place].angular;
    for (int i = 0; i < 3; ++i) {
      const double row[3] = {frame.rows[i][0], frame.rows[i][1], frame.rows[i][2]};
      double more_impulse = 0;
      for (int k = 0; k < 3; ++k) {
        Row& of = rows_[link.first_row + k];
        double& was = (of.*own)[3 + i];
        const double is = sign * (row[0] * about[k][0] + row[1] * about[k][1] + row[2] * about[k][2]);
        more_impulse += of.impulse * (is - was);
        was = is;
      }
      turned_impulse[i] += Real(more_impulse);
    }
  };
  turn(joint.a, link.arm_a, 1, &Row::own_a);
  turn(joint.b, link.arm_b, -1, &Row::own_b);
  for (int k = 0; k < 3; ++k) rows_[link.first_row + k].error = error[k];
}

// Rows that are not a point's three.
void DirectJoints::turn_others(const Link& link, Bodies& bodies) {
  const JointDefinition& joint = joints_[link.joint];
  JointRow made[6];
  JointSweeps::rows_of(joint, bodies, made);
  const double root_a = bodies.frame[joint.a].root[0], root_b = bodies.frame[joint.b].root[0];
  for (int k = link.is_point ? 3 : 0; k < link.row_count; ++k) {
    Row& row = rows_[link.first_row + k];
    const auto put = [&](int place, double root, double sign, const Real* made_own, double* own) {
      Bodies::Twist& more = bodies.turned_impulses[place];
      for (int i = 0; i < 3; ++i) {
        const double along = sign * root * made[k].along[i], about = sign * made_own[i];
        more.linear[i] += Real(row.impulse * (along - own[i]));
        more.angular[i] += Real(row.impulse * (about - own[3 + i]));
        own[i] = along;
        own[3 + i] = about;
      }
    };
    put(joint.a, root_a, 1, made[k].own_a, row.own_a);
    put(joint.b, root_b, -1, made[k].own_b, row.own_b);
    row.error = made[k].error;
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
    const double share = most > most_turn ? most_turn / most : 1;
    for (std::size_t i = 0; i < 6 * count; ++i) values_[i] = values_[2 * i] + share * values_[2 * i + 1];
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
