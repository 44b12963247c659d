#include "solver/locked.h"

#include <algorithm>
#include <cmath>

namespace lapjoint {

namespace {

// How stiff a row is, against what it needs alone. In float32 velocities are known to a ten-millionth; a hundred times
// as stiff, rounding makes impulses that grow from step to step.
constexpr double kHold = sizeof(btScalar) == 8 ? 1e6 : 1e5;
// Solves with which rows are settled: in float64 the rounding of the first shows.
constexpr int kPasses = sizeof(btScalar) == 8 ? 2 : 1;
// Products of blocks, at most: so many a row, as much as 400 sweeps; and a few milliseconds' worth in any case, for the
// server has few rows between bodies that all have to do with each other.
constexpr long kWork = 200, kLeastWork = 100000;

bool has_no_limits(const btSolverConstraint& row) {
  return row.m_lowerLimit <= -SIMD_INFINITY && row.m_upperLimit >= SIMD_INFINITY && row.m_jacDiagABInv > 0;
}

void put(const btVector3& linear, const btVector3& angular, double* out) {
  for (int k = 0; k < 3; ++k) {
    out[k] = linear[k];
    out[3 + k] = angular[k];
  }
}

void read(const btSolverBody& body, double* out) {
  put(body.getDeltaLinearVelocity(), body.getDeltaAngularVelocity(), out);
}

btVector3 get(const double* in) { return {btScalar(in[0]), btScalar(in[1]), btScalar(in[2])}; }

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

// out = mass * in
void multiply(const BodyMass& mass, const double* in, double* out) {
  for (int k = 0; k < 3; ++k) {
    out[k] = mass.linear * in[k];
    const double* row = mass.angular + 3 * k;
    out[3 + k] = row[0] * in[3] + row[1] * in[4] + row[2] * in[5];
  }
}

// Of Bullet's inverses, which an engine moves by, in double: product and inverse are to be each other's.
BodyMass inverse_mass(const btRigidBody& body) {
  BodyMass mass;
  mass.linear = body.getInvMass();
  const btMatrix3x3& angular = body.getInvInertiaTensorWorld();
  for (int k = 0; k < 9; ++k) mass.angular[k] = angular[k / 3][k % 3];
  return mass;
}

BodyMass inverted(const BodyMass& mass) {
  const double* m = mass.angular;
  BodyMass out;
  out.linear = 1 / mass.linear;
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k) {
      const int a = (k + 1) % 3, b = (k + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
      out.angular[3 * i + k] = m[3 * a + c] * m[3 * b + d] - m[3 * a + d] * m[3 * b + c];
    }
  const double determinant = m[0] * out.angular[0] + m[1] * out.angular[3] + m[2] * out.angular[6];
  for (double& number : out.angular) number /= determinant;
  return out;
}

}  // namespace

// ---- matrix --------------------------------------------------------------------------------------------------------

int LockedRows::number(int body, const Bodies& bodies) {
  const btRigidBody* original = bodies[body].m_originalBody;
  if (!original || original->getInvMass() == 0) return -1;
  if (number_[body] < 0) {
    number_[body] = static_cast<int>(bodies_.size());
    bodies_.push_back(body);
  }
  return number_[body];
}

void LockedRows::clear() {
  rows_.clear();
  current_ = jointed_elsewhere_ = solved_ = false;
}

void LockedRows::collect(btAlignedObjectArray<btSolverConstraint>& rows, const Bodies& bodies) {
  rows_.clear();
  bodies_.clear();
  number_.assign(bodies.size(), -1);
  for (int i = 0; i < rows.size(); ++i) {
    btSolverConstraint& row = rows[i];
    if (!has_no_limits(row)) continue;
    Row& own = rows_.emplace_back();
    own.row = &row;
    own.a = number(row.m_solverBodyIdA, bodies);
    own.b = number(row.m_solverBodyIdB, bodies);
    put(row.m_contactNormal1, row.m_relpos1CrossNormal, own.along_a);
    put(row.m_contactNormal2, row.m_relpos2CrossNormal, own.along_b);
    const double alone = row.m_jacDiagABInv;
    own.velocity = double(row.m_rhs) / alone;
    own.stiffness = alone / (1 / kHold + double(row.m_cfm));
  }
}

void LockedRows::prepare(btAlignedObjectArray<btSolverConstraint>& rows, const Bodies& bodies,
                         const std::vector<MassBlock>& masses, const std::vector<int>& interface,
                         const std::vector<int>& kept) {
  clear();
  fell_back_ = false;
  collect(rows, bodies);
  if (rows_.empty()) return;
  jointed_elsewhere_ = !masses.empty();
  std::vector<char> outside(bodies.size(), 1);
  for (const int body : interface) outside[body] = 0;
  current_ =
      jointed_elsewhere_ || std::none_of(bodies_.begin(), bodies_.end(), [&](int body) { return outside[body]; });
  std::vector<std::pair<int, int>> pairs;
  const auto pair = [&](int a, int b) {
    if (a >= 0 && b >= 0 && a != b && (pairs.empty() || pairs.back() != std::pair(a, b))) pairs.emplace_back(a, b);
  };
  for (const Row& row : rows_) pair(row.a, row.b);
  for (const MassBlock& block : masses) {
    const int a = number(block.body_a, bodies), b = number(block.body_b, bodies);
    pair(a, b);
  }
  std::vector<char> keep(bodies_.size(), 0);
  for (const int body : kept)
    if (number_[body] >= 0) keep[number_[body]] = 1;
  if (pairs != pairs_ || keep != kept_) {
    const long limit = std::max(kLeastWork, kWork * static_cast<long>(rows_.size()));
    is_too_much_ = !matrix_.analyse(keep, pairs, limit);
    // Without interface masses to send it may be much less.
    if (is_too_much_ && !kept.empty()) is_too_much_ = !matrix_.analyse(std::vector<char>(keep.size(), 0), pairs, limit);
    pairs_.swap(pairs);
    kept_.swap(keep);
  }
  fell_back_ = is_too_much_ || !factor(bodies, masses);
  if (fell_back_) return clear();
  changed_.assign(velocities_.size(), 0.0);
  solved_lack_ = 0;
  for (const Row& row : rows_) row.row->m_overrideNumSolverIterations = 0;
}

bool LockedRows::factor(const Bodies& bodies, const std::vector<MassBlock>& masses) {
  matrix_.clear();
  std::vector<char> has_given(bodies_.size(), 0);
  for (const MassBlock& block : masses) {
    const int a = number_[block.body_a], b = number_[block.body_b];
    const bool as_is = matrix_.stored(a, b);
    double* out = as_is ? matrix_.block(a, b) : matrix_.block(b, a);
    for (int i = 0; i < 6; ++i)
      for (int k = 0; k < 6; ++k) out[6 * i + k] += block.mass[as_is ? 6 * i + k : 6 * k + i];
    has_given[a] = has_given[b] = 1;
  }
  mass_.resize(bodies_.size());
  inverse_.resize(bodies_.size());
  for (int i = 0; i < static_cast<int>(bodies_.size()); ++i) {
    const btRigidBody& body = *bodies[bodies_[i]].m_originalBody;
    inverse_[i] = inverse_mass(body);
    const BodyMass& mass = mass_[i] = inverted(inverse_[i]);
    if (has_given[i]) continue;
    double* block = matrix_.block(i, i);
    for (int k = 0; k < 3; ++k) {
      block[7 * k] = mass.linear;
      for (int l = 0; l < 3; ++l) block[6 * (3 + k) + 3 + l] = mass.angular[3 * k + l];
    }
  }
  for (const Row& row : rows_) {
    if (row.a >= 0) add_product(row.stiffness, row.along_a, row.along_a, matrix_.block(row.a, row.a));
    if (row.b >= 0) add_product(row.stiffness, row.along_b, row.along_b, matrix_.block(row.b, row.b));
    if (row.a < 0 || row.b < 0) continue;
    if (matrix_.stored(row.a, row.b))
      add_product(row.stiffness, row.along_a, row.along_b, matrix_.block(row.a, row.b));
    else
      add_product(row.stiffness, row.along_b, row.along_a, matrix_.block(row.b, row.a));
  }
  lack_.resize(rows_.size());
  velocities_.resize(6 * bodies_.size());
  return matrix_.factor();
}

std::vector<MassBlock> LockedRows::interface_masses() const {
  std::vector<MassBlock> masses;
  if (rows_.empty()) return masses;
  matrix_.each_kept([&](int a, int b, const double* mass) {
    MassBlock& block = masses.emplace_back();
    block.body_a = bodies_[a];
    block.body_b = bodies_[b];
    std::copy(mass, mass + BlockCholesky::kBlock, block.mass);
  });
  return masses;
}

// ---- solve ---------------------------------------------------------------------------------------------------------

void LockedRows::mark(const Bodies& bodies) {
  if (!jointed_elsewhere_) return;
  start_.resize(velocities_.size());
  for (std::size_t i = 0; i < bodies_.size(); ++i) read(bodies[bodies_[i]], &start_[6 * i]);
}

// Impulses of other rows since the mark, as the velocities show them, which go back to what they were.
void LockedRows::take_marked(Bodies& bodies) {
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    btSolverBody& body = bodies[bodies_[i]];
    const btVector3 linear = get(&start_[6 * i]), angular = get(&start_[6 * i + 3]);
    double change[6];
    put(body.getDeltaLinearVelocity() - linear, body.getDeltaAngularVelocity() - angular, change);
    multiply(mass_[i], change, &impulses_[6 * i]);
    body.internalGetDeltaLinearVelocity() = linear;
    body.internalGetDeltaAngularVelocity() = angular;
  }
}

bool LockedRows::solve(Bodies& bodies) {
  if (solved_ && !current_) return respond(bodies);
  solve_all(bodies);
  return true;
}

// From bodies' velocities and the impulses of others, what rows lack, the impulses that give it, and in place of both
// the velocities that come of them with all masses, and the sums of the impulses.
void LockedRows::solve_rows() {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    double lack = row.velocity - double(btScalar(row.row->m_appliedImpulse)) / row.stiffness;
    if (row.a >= 0) lack -= product(row.along_a, &velocities_[6 * row.a]);
    if (row.b >= 0) lack -= product(row.along_b, &velocities_[6 * row.b]);
    lack_[i] = lack;
    solved_lack_ = std::max(solved_lack_, std::abs(lack));
    if (row.a >= 0) add(row.stiffness * lack, row.along_a, &impulses_[6 * row.a]);
    if (row.b >= 0) add(row.stiffness * lack, row.along_b, &impulses_[6 * row.b]);
  }
  velocities_.swap(impulses_);
  matrix_.solve(velocities_.data());
  std::fill(impulses_.begin(), impulses_.end(), 0.0);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    double lack = lack_[i];
    if (row.a >= 0) lack -= product(row.along_a, &velocities_[6 * row.a]);
    if (row.b >= 0) lack -= product(row.along_b, &velocities_[6 * row.b]);
    const double impulse = row.stiffness * lack;
    row.row->m_appliedImpulse = btSimdScalar(btScalar(double(btScalar(row.row->m_appliedImpulse)) + impulse));
    if (row.a >= 0) add(impulse, row.along_a, &impulses_[6 * row.a]);
    if (row.b >= 0) add(impulse, row.along_b, &impulses_[6 * row.b]);
  }
}

// The velocities that the sums of impulses make of bodies alone: as equal and opposite as rounding lets them be.
void LockedRows::take_impulses() {
  for (std::size_t i = 0; i < bodies_.size(); ++i) multiply(inverse_[i], &impulses_[6 * i], &velocities_[6 * i]);
}

void LockedRows::write(Bodies& bodies, std::size_t i) {
  btSolverBody& body = bodies[bodies_[i]];
  body.internalGetDeltaLinearVelocity() = get(&answer_[6 * i]);
  body.internalGetDeltaAngularVelocity() = get(&answer_[6 * i + 3]);
}

void LockedRows::solve_all(Bodies& bodies) {
  impulses_.assign(velocities_.size(), 0.0);
  if (jointed_elsewhere_) take_marked(bodies);
  for (std::size_t i = 0; i < bodies_.size(); ++i) read(bodies[bodies_[i]], &velocities_[6 * i]);
  answer_ = velocities_;
  solve_rows();
  if (!jointed_elsewhere_) take_impulses();
  for (std::size_t i = 0; i < answer_.size(); ++i) answer_[i] += velocities_[i];
  for (std::size_t i = 0; i < bodies_.size(); ++i) write(bodies, i);
  if (current_) return;
  solved_ = true;
  start_ = seen_ = answer_;
  for (std::size_t i = 0; i < bodies_.size(); ++i) read(bodies[bodies_[i]], &seen_[6 * i]);
  pushed_.assign(answer_.size(), 0.0);
  // All that rows have given in this step, also before it was solved for.
  std::fill(impulses_.begin(), impulses_.end(), 0.0);
  for (const Row& row : rows_) {
    const double impulse = btScalar(row.row->m_appliedImpulse);
    if (row.a >= 0) add(impulse, row.along_a, &impulses_[6 * row.a]);
    if (row.b >= 0) add(impulse, row.along_b, &impulses_[6 * row.b]);
  }
  take_impulses();
  joint_velocities_ = velocities_;
}

bool LockedRows::respond(Bodies& bodies) {
  bool still = true;
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    double change[6];
    read(bodies[bodies_[i]], change);
    for (int k = 0; k < 6; ++k) {
      change[k] -= seen_[6 * i + k];
      pushed_[6 * i + k] += change[k];
      changed_[6 * i + k] += change[k];
      still = still && change[k] == 0;
    }
    multiply(mass_[i], change, &velocities_[6 * i]);
  }
  if (still) return false;
  matrix_.solve(velocities_.data());
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    for (std::size_t k = 6 * i; k < 6 * i + 6; ++k) answer_[k] += velocities_[k];
    write(bodies, i);
    read(bodies[bodies_[i]], &seen_[6 * i]);
  }
  return true;
}

void LockedRows::settle(Bodies& bodies) {
  if (rows_.empty() || !solved_) return;
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    double now[6];
    read(bodies[bodies_[i]], now);
    for (int k = 0; k < 6; ++k) pushed_[6 * i + k] += now[k] - seen_[6 * i + k];
  }
  for (std::size_t i = 0; i < answer_.size(); ++i) answer_[i] = start_[i] + pushed_[i];
  for (int pass = 0; pass < kPasses; ++pass) {
    velocities_ = answer_;
    std::fill(impulses_.begin(), impulses_.end(), 0.0);
    solve_rows();
    take_impulses();
    for (std::size_t i = 0; i < answer_.size(); ++i) answer_[i] += velocities_[i];
  }
  for (std::size_t i = 0; i < bodies_.size(); ++i) write(bodies, i);
  solved_ = false;
}

void LockedRows::add_joint_velocities(Bodies& bodies) const {
  if (rows_.empty() || !solved_) return;
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    double joint[6];
    for (int k = 0; k < 6; ++k) {
      const std::size_t at = 6 * i + k;
      joint[k] = joint_velocities_[at] + (answer_[at] - start_[at] - pushed_[at]);
    }
    bodies[bodies_[i]].internalGetDeltaLinearVelocity() += get(joint);
    bodies[bodies_[i]].internalGetDeltaAngularVelocity() += get(joint + 3);
  }
}

void LockedRows::begin_round() {
  solved_lack_ = 0;
  std::fill(changed_.begin(), changed_.end(), 0.0);
}

double LockedRows::largest_lack() const {
  double largest = solved_lack_;
  for (const Row& row : rows_) {
    double lack = 0;
    if (row.a >= 0) lack += product(row.along_a, &changed_[6 * row.a]);
    if (row.b >= 0) lack += product(row.along_b, &changed_[6 * row.b]);
    largest = std::max(largest, std::abs(lack));
  }
  return largest;
}

}  // namespace lapjoint
