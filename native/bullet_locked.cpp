#include "bullet_locked.h"

#include <algorithm>
#include <cmath>

namespace lapjoint {

namespace {

// How stiff a row is, against what it needs alone. In float32 velocities are known to a ten-millionth; a hundred times
// as stiff, rounding makes impulses that grow from step to step.
constexpr double kHold = sizeof(btScalar) == 8 ? 1e6 : 1e5;
constexpr long kWork = 200;  // products of blocks a row, at most: as much as 400 sweeps

bool has_no_limits(const btSolverConstraint& row) {
  return row.m_lowerLimit <= -SIMD_INFINITY && row.m_upperLimit >= SIMD_INFINITY && row.m_jacDiagABInv > 0;
}

void put(const btVector3& linear, const btVector3& angular, double* out) {
  for (int k = 0; k < 3; ++k) {
    out[k] = linear[k];
    out[3 + k] = angular[k];
  }
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

btMatrix3x3 inertia(const btRigidBody& body) { return body.getInvInertiaTensorWorld().inverse(); }

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
                         const std::vector<MassBlock>& masses, const std::vector<int>& kept) {
  collect(rows, bodies);
  if (rows_.empty()) return;
  held_elsewhere_ = !masses.empty();
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
    is_too_much_ = !matrix_.analyse(keep, pairs, kWork * static_cast<long>(rows_.size()));
    pairs_.swap(pairs);
    kept_.swap(keep);
  }
  if (is_too_much_ || !factor(bodies, masses)) return rows_.clear();
  for (const Row& row : rows_) row.row->m_overrideNumSolverIterations = 0;
}

bool LockedRows::factor(const Bodies& bodies, const std::vector<MassBlock>& masses) {
  matrix_.clear();
  std::vector<char> held(bodies_.size(), 0);
  for (const MassBlock& block : masses) {
    const int a = number_[block.body_a], b = number_[block.body_b];
    const bool as_is = matrix_.stored(a, b);
    double* out = as_is ? matrix_.block(a, b) : matrix_.block(b, a);
    for (int i = 0; i < 6; ++i)
      for (int k = 0; k < 6; ++k) out[6 * i + k] += block.mass[as_is ? 6 * i + k : 6 * k + i];
    held[a] = held[b] = 1;
  }
  for (int i = 0; i < static_cast<int>(bodies_.size()); ++i) {
    if (held[i]) continue;
    const btRigidBody& body = *bodies[bodies_[i]].m_originalBody;
    const btMatrix3x3 turning = inertia(body);
    double* block = matrix_.block(i, i);
    for (int k = 0; k < 3; ++k) {
      block[7 * k] = 1 / double(body.getInvMass());
      for (int l = 0; l < 3; ++l) block[6 * (3 + k) + 3 + l] = turning[k][l];
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

std::vector<MassBlock> LockedRows::held_masses() const {
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
  if (!held_elsewhere_) return;
  start_.resize(velocities_.size());
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    const btSolverBody& body = bodies[bodies_[i]];
    put(body.getDeltaLinearVelocity(), body.getDeltaAngularVelocity(), &start_[6 * i]);
  }
}

// Impulses of other rows since the mark, as the velocities show them, which go back to what they were.
void LockedRows::take_marked(Bodies& bodies) {
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    btSolverBody& body = bodies[bodies_[i]];
    const btVector3 linear = get(&start_[6 * i]), angular = get(&start_[6 * i + 3]);
    put((body.getDeltaLinearVelocity() - linear) / body.m_originalBody->getInvMass(),
        inertia(*body.m_originalBody) * (body.getDeltaAngularVelocity() - angular), &impulses_[6 * i]);
    body.internalGetDeltaLinearVelocity() = linear;
    body.internalGetDeltaAngularVelocity() = angular;
  }
}

void LockedRows::solve(Bodies& bodies) {
  impulses_.assign(velocities_.size(), 0.0);
  if (held_elsewhere_) take_marked(bodies);
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    const btSolverBody& body = bodies[bodies_[i]];
    put(body.getDeltaLinearVelocity(), body.getDeltaAngularVelocity(), &velocities_[6 * i]);
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    double lack = row.velocity - double(btScalar(row.row->m_appliedImpulse)) / row.stiffness;
    if (row.a >= 0) lack -= product(row.along_a, &velocities_[6 * row.a]);
    if (row.b >= 0) lack -= product(row.along_b, &velocities_[6 * row.b]);
    lack_[i] = lack;
    if (row.a >= 0) add(row.stiffness * lack, row.along_a, &impulses_[6 * row.a]);
    if (row.b >= 0) add(row.stiffness * lack, row.along_b, &impulses_[6 * row.b]);
  }
  velocities_.swap(impulses_);
  matrix_.solve(velocities_.data());

  // The impulses, and from them the velocities: as equal and opposite as rounding lets them be.
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
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    btSolverBody& body = bodies[bodies_[i]];
    const double* in = held_elsewhere_ ? &velocities_[6 * i] : &impulses_[6 * i];
    btVector3 linear = get(in), angular = get(in + 3);
    if (!held_elsewhere_) {
      linear *= body.m_originalBody->getInvMass();
      angular = body.m_originalBody->getInvInertiaTensorWorld() * angular;
    }
    body.internalGetDeltaLinearVelocity() += linear;
    body.internalGetDeltaAngularVelocity() += angular;
  }
}

double LockedRows::largest_lack() const {
  double largest = 0;
  if (!rows_.empty())
    for (const double lack : lack_) largest = std::max(largest, std::abs(lack));
  return largest;
}

}  // namespace lapjoint
