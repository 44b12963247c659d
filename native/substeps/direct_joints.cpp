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
  double sum = 0;
  for (int k = 0; k < 6; ++k) sum += a[k] * b[k];
  return sum;
}

void add(double factor, const double* a, double* out) {
  for (int k = 0; k < 6; ++k) out[k] += factor * a[k];
}

void add_product(double factor, const double* a, const double* b, double* block) {
  for (int i = 0; i < 6; ++i) add(factor * a[i], b, block + 6 * i);
}

void read(const Lanes& linear, const Lanes& angular, double* out) {
  for (int k = 0; k < 3; ++k) {
    out[k] = linear[k];
    out[3 + k] = angular[k];
  }
}

int locked_rows(const JointDefinition& joint) {
  int count = 0;
  for (int axis = 0; axis < 6; ++axis) count += joint.locked >> axis & 1;
  return count;
}

}  // namespace

// ---- which
// -----------------------------------------------------------------------------------------------------------

std::shared_ptr<BlockCholesky> DirectJoints::matrix_for(int body_count, const Pairs& pairs, long limit) {
  const auto found = matrices_.find({body_count, pairs});
  if (found != matrices_.end()) return found->second;
  auto matrix = std::make_shared<BlockCholesky>();
  if (!matrix->analyse(std::vector<char>(body_count, 0), pairs, limit)) matrix.reset();
  matrices_[{body_count, pairs}] = matrix;
  return matrix;
}

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

  std::map<std::pair<int, Pairs>, std::shared_ptr<BlockCholesky>> used;
  std::vector<int> number(fixed, -1);
  for (const auto& [first, members] : of_group) {
    Structure structure;
    long row_count = 0;
    Pairs pairs;
    for (const int i : members)
      for (const int place : {joints[i].a, joints[i].b})
        if (place < fixed && number[place] < 0) {
          number[place] = 0;
          structure.places.push_back(place);
        }
    std::sort(structure.places.begin(), structure.places.end());
    for (std::size_t k = 0; k < structure.places.size(); ++k) number[structure.places[k]] = static_cast<int>(k);
    for (const int i : members) {
      const JointDefinition& joint = joints[i];
      row_count += locked_rows(joint);
      if (joint.a >= fixed || joint.b >= fixed) continue;
      const auto pair = std::minmax(number[joint.a], number[joint.b]);
      pairs.emplace_back(pair.first, pair.second);
    }
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    for (const int place : structure.places) number[place] = -1;
    const long limit = choice == JointChoice::kDirect ? kAnyWork : kWork * row_count;
    const int body_count = static_cast<int>(structure.places.size());
    structure.matrix = matrix_for(body_count, pairs, limit);
    used[{body_count, pairs}] = structure.matrix;
    if (!structure.matrix) continue;
    // Structures of one pattern share what is known of it, and not the numbers.
    structure.matrix = std::make_shared<BlockCholesky>(*structure.matrix);
    for (const int i : members) {
      joints[i].direct = true;
      structure.joints.push_back(static_cast<int>(joints_.size()));
      joints_.push_back(joints[i]);
    }
    structures_.push_back(std::move(structure));
  }
  matrices_.swap(used);
}

// ---- a step's rows
// -----------------------------------------------------------------------------------------------------

void DirectJoints::prepare(const Bodies& bodies, Real h, int substeps, const std::vector<Real>& impulses) {
  h_ = h;
  substeps_ = substeps;
  failed_ = 0;
  rows_.clear();
  first_row_.assign(joints_.size() + 1, 0);
  std::vector<int> number(bodies.motion.size(), -1);
  for (Structure& structure : structures_) {
    for (std::size_t k = 0; k < structure.places.size(); ++k) number[structure.places[k]] = static_cast<int>(k);
    structure.first_row = static_cast<int>(rows_.size());
    for (const int j : structure.joints) {
      const JointDefinition& joint = joints_[j];
      first_row_[j] = static_cast<int>(rows_.size());
      JointRow made[6];
      const int count = JointSweeps::rows_of(joint, bodies, made);
      int axis = -1;
      for (int k = 0; k < count; ++k) {
        do ++axis;
        while (!(joint.locked >> axis & 1));
        Row& row = rows_.emplace_back();
        row.place_a = joint.a;
        row.place_b = joint.b;
        row.a = number[joint.a];
        row.b = number[joint.b];
        const double root_a = bodies.frame[joint.a].root[0], root_b = bodies.frame[joint.b].root[0];
        for (int i = 0; i < 3; ++i) {
          row.along[i] = made[k].along[i];
          row.own_a[i] = root_a * made[k].along[i];
          row.own_b[i] = -root_b * made[k].along[i];
          row.own_a[3 + i] = made[k].own_a[i];
          row.own_b[3 + i] = -made[k].own_b[i];
        }
        row.error = made[k].error;
        row.curve = 0;
        row.stiffness = kHold / std::max(product(row.own_a, row.own_a) + product(row.own_b, row.own_b), 1e-300);
        row.target = joint.first_impulse + axis;
        row.impulse = double(impulses[row.target]) / substeps;
      }
    }
    structure.row_count = static_cast<int>(rows_.size()) - structure.first_row;
    structure.works = factor(structure);
    failed_ += !structure.works;
    for (const int place : structure.places) number[place] = -1;
  }
  lack_.resize(2 * rows_.size());
}

bool DirectJoints::factor(Structure& structure) {
  BlockCholesky& matrix = *structure.matrix;
  matrix.clear();
  for (int i = 0; i < static_cast<int>(structure.places.size()); ++i)
    for (int k = 0; k < 6; ++k) matrix.block(i, i)[7 * k] = 1;
  for (int r = structure.first_row; r < structure.first_row + structure.row_count; ++r) {
    const Row& row = rows_[r];
    if (row.a >= 0) add_product(row.stiffness, row.own_a, row.own_a, matrix.block(row.a, row.a));
    if (row.b >= 0) add_product(row.stiffness, row.own_b, row.own_b, matrix.block(row.b, row.b));
    if (row.a < 0 || row.b < 0) continue;
    if (matrix.stored(row.a, row.b))
      add_product(row.stiffness, row.own_a, row.own_b, matrix.block(row.a, row.b));
    else
      add_product(row.stiffness, row.own_b, row.own_a, matrix.block(row.b, row.a));
  }
  return matrix.factor();
}

void DirectJoints::warm_start(Bodies& bodies) const {
  for (const Structure& structure : structures_) {
    if (!structure.works) continue;
    for (int r = structure.first_row; r < structure.first_row + structure.row_count; ++r) {
      const Row& row = rows_[r];
      for (const auto& [place, own] : {std::pair(row.place_a, row.own_a), std::pair(row.place_b, row.own_b)})
        for (int k = 0; k < 3; ++k) {
          bodies.motion[place].moved[k] += Real(row.impulse * own[k]);
          bodies.motion[place].turned[k] += Real(row.impulse * own[3 + k]);
        }
    }
  }
}

void DirectJoints::store(std::vector<Real>& impulses) const {
  for (const Row& row : rows_) impulses[row.target] = Real(row.impulse * substeps_);
}

// ---- substeps
// ----------------------------------------------------------------------------------------------------------

// What rotations do to the arms of points beyond the first order: see JointSweeps::update_errors.
void DirectJoints::update_curves(const Bodies& bodies) {
  const auto curve = [&](int place, const Real* local, double sign, double* out) {
    if (place == bodies.fixed()) return;
    const Frame& frame = bodies.frame[place];
    const Motion& motion = bodies.motion[place];
    const Real* axes = bodies.start[place].axes;
    double turn[3], arm[3], once[3], twice[3], square = 0;
    for (int k = 0; k < 3; ++k) {
      turn[k] = 0;
      for (int i = 0; i < 3; ++i) turn[k] += double(motion.turned[i]) * frame.rows[i][k];
      arm[k] = double(axes[3 * k]) * local[0] + double(axes[3 * k + 1]) * local[1] + double(axes[3 * k + 2]) * local[2];
      square += turn[k] * turn[k];
    }
    const auto cross = [](const double* x, const double* y, double* z) {
      for (int k = 0; k < 3; ++k) z[k] = x[(k + 1) % 3] * y[(k + 2) % 3] - x[(k + 2) % 3] * y[(k + 1) % 3];
    };
    cross(turn, arm, once);
    cross(turn, once, twice);
    const double angle = std::sqrt(square);
    const double second = angle > 1e-3 ? (1 - std::cos(angle)) / square : 0.5 - square / 24;
    const double first = angle > 1e-3 ? std::sin(angle) / angle - 1 : -square / 6;
    for (int k = 0; k < 3; ++k) out[k] += sign * (second * twice[k] + first * once[k]);
  };
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    const JointDefinition& joint = joints_[j];
    if (!joint.is_point()) continue;
    double more[3] = {0, 0, 0};
    curve(joint.a, joint.place_a, 1, more);
    curve(joint.b, joint.place_b, -1, more);
    for (int k = 0; k < 3; ++k) rows_[first_row_[j] + k].curve = more[k];
  }
}

void DirectJoints::solve(Bodies& bodies) {
  update_curves(bodies);
  for (Structure& structure : structures_) {
    if (!structure.works) continue;
    const std::size_t size = 6 * structure.places.size();
    const int first = structure.first_row, last = first + structure.row_count;
    const auto velocity = [&](int place, const double* own) {
      double now[6];
      read(bodies.motion[place].linear, bodies.motion[place].angular, now);
      return product(own, now);
    };
    const auto displacement = [&](int place, const double* own) {
      double now[6];
      read(bodies.motion[place].moved, bodies.motion[place].turned, now);
      return product(own, now);
    };
    // Side by side: what velocities lack, and what errors ask for.
    values_.assign(2 * size, 0.0);
    for (int r = first; r < last; ++r) {
      const Row& row = rows_[r];
      double lack = -row.impulse / row.stiffness, error = row.error + row.curve;
      lack -= velocity(row.place_a, row.own_a) + velocity(row.place_b, row.own_b);
      error += displacement(row.place_a, row.own_a) + displacement(row.place_b, row.own_b);
      lack_[2 * r] = lack;
      lack_[2 * r + 1] = -error / h_;
      for (const auto& [number, own] : {std::pair(row.a, row.own_a), std::pair(row.b, row.own_b)}) {
        if (number < 0) continue;
        double* out = &values_[12 * static_cast<std::size_t>(number)];
        for (int k = 0; k < 6; ++k)
          for (int side = 0; side < 2; ++side) out[2 * k + side] += row.stiffness * lack_[2 * r + side] * own[k];
      }
    }
    structure.matrix->solve_two(values_.data());
    double most = 0;
    for (std::size_t i = 0; i < structure.places.size(); ++i) {
      double square = 0;
      for (int k = 0; k < 3; ++k) {
        const double turn = values_[12 * i + 2 * (3 + k) + 1] *
                            std::sqrt(double(bodies.traits[structure.places[i]].inverse_inertia[k]));
        square += turn * turn;
      }
      most = std::max(most, square);
    }
    most = std::sqrt(most) * h_;
    const double share = most > kMostTurn ? kMostTurn / most : 1;
    for (int r = first; r < last; ++r) {
      Row& row = rows_[r];
      double left[2] = {lack_[2 * r], lack_[2 * r + 1]};
      for (const auto& [number, own] : {std::pair(row.a, row.own_a), std::pair(row.b, row.own_b)}) {
        if (number < 0) continue;
        const double* in = &values_[12 * static_cast<std::size_t>(number)];
        for (int k = 0; k < 6; ++k)
          for (int side = 0; side < 2; ++side) left[side] -= own[k] * in[2 * k + side];
      }
      row.impulse += row.stiffness * (left[0] + share * left[1]);
    }
    for (std::size_t i = 0; i < structure.places.size(); ++i) {
      Motion& motion = bodies.motion[structure.places[i]];
      const double* in = &values_[12 * i];
      for (int k = 0; k < 3; ++k) {
        motion.linear[k] += Real(in[2 * k] + share * in[2 * k + 1]);
        motion.angular[k] += Real(in[2 * (3 + k)] + share * in[2 * (3 + k) + 1]);
      }
    }
  }
}

void DirectJoints::relax(Bodies& bodies) {
  for (Structure& structure : structures_) {
    if (!structure.works) continue;
    const int first = structure.first_row, last = first + structure.row_count;
    values_.assign(6 * structure.places.size(), 0.0);
    for (int r = first; r < last; ++r) {
      const Row& row = rows_[r];
      double lack = -row.impulse / row.stiffness;
      for (const auto& [place, own] : {std::pair(row.place_a, row.own_a), std::pair(row.place_b, row.own_b)}) {
        double now[6];
        read(bodies.motion[place].linear, bodies.motion[place].angular, now);
        lack -= product(own, now);
      }
      lack_[r] = lack;
      if (row.a >= 0) add(row.stiffness * lack, row.own_a, &values_[6 * row.a]);
      if (row.b >= 0) add(row.stiffness * lack, row.own_b, &values_[6 * row.b]);
    }
    structure.matrix->solve(values_.data());
    for (int r = first; r < last; ++r) {
      Row& row = rows_[r];
      double left = lack_[r];
      if (row.a >= 0) left -= product(row.own_a, &values_[6 * row.a]);
      if (row.b >= 0) left -= product(row.own_b, &values_[6 * row.b]);
      row.impulse += row.stiffness * left;
    }
    for (std::size_t i = 0; i < structure.places.size(); ++i) {
      Motion& motion = bodies.motion[structure.places[i]];
      for (int k = 0; k < 3; ++k) {
        motion.linear[k] += Real(values_[6 * i + k]);
        motion.angular[k] += Real(values_[6 * i + 3 + k]);
      }
    }
  }
}

}  // namespace lapjoint
