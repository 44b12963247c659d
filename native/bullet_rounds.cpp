#include "bullet_rounds.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace lapjoint {

namespace {

void put(const btVector3& value, double unit, double* out) {
  for (int k = 0; k < 3; ++k) out[k] = value[k] * unit;
}

btVector3 get(const double* in, double unit = 1) {
  return {btScalar(in[0] / unit), btScalar(in[1] / unit), btScalar(in[2] / unit)};
}

double product(const std::vector<btScalar>& a, const std::vector<btScalar>& b, const std::vector<btScalar>& weight) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double(a[i]) * double(b[i]) * double(weight[i]);
  return sum;
}

void difference(const std::vector<btScalar>& a, const std::vector<btScalar>& b, std::vector<btScalar>& out) {
  out.resize(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[i] - b[i];
}

}  // namespace

// ---- rows ----------------------------------------------------------------------------------------------------------

void RoundSolver::begin(btCollisionObject** bodies, int body_count, btPersistentManifold** manifolds,
                        int manifold_count, btTypedConstraint** joints, int joint_count,
                        const btContactSolverInfo& info) {
  info_ = &info;
  in_rounds_ = true;
  solveGroupCacheFriendlySetup(bodies, body_count, manifolds, manifold_count, joints, joint_count, info, nullptr);
  in_rounds_ = false;
  collect_rows();
  collect_pushed();
  column_count_ = 0;
  has_last_ = false;
  set_interface({}, 1);
}

// Bullet starts joints from nothing in every step. Here they start from what they were, as contacts do.
void RoundSolver::convertJoints(btTypedConstraint** joints, int joint_count, const btContactSolverInfo& info) {
  OpenSolver::convertJoints(joints, joint_count, info);
  if (!in_rounds_) return;
  joints_.assign(joints, joints + joint_count);
  joint_start_.assign(joint_count + 1, 0);
  for (int i = 0; i < joint_count; ++i) {
    const int count = m_tmpConstraintSizesPool[i].m_numConstraintRows, first = joint_start_[i];
    joint_start_[i + 1] = first + count;
    const std::size_t id = static_cast<std::size_t>(joints[i]->getUserConstraintId());
    if (id >= kept_.size() || kept_[id].count != count) continue;  // other limits hold than before
    for (int k = 0; k < count; ++k) {
      btSolverConstraint& row = m_tmpSolverNonContactConstraintPool[first + k];
      const btScalar impulse = joint_warm_start_ * kept_impulses_[kept_[id].start + k];
      row.m_appliedImpulse = btSimdScalar(std::clamp(impulse, row.m_lowerLimit, row.m_upperLimit));
      apply(row, row.m_appliedImpulse);
    }
  }
}

void RoundSolver::collect_rows() {
  rows_.clear();
  const auto add = [this](btSolverConstraint* first, int count) {
    for (int i = 0; i < count; ++i) rows_.push_back(first + i);
  };
  const auto add_pool = [&](btConstraintArray& pool) {
    if (pool.size()) add(&pool[0], pool.size());
  };
  joint_rows_ = m_tmpSolverNonContactConstraintPool.size();
  contact_rows_ = m_tmpSolverContactConstraintPool.size();
  add_pool(m_tmpSolverNonContactConstraintPool);
  add_pool(m_tmpSolverContactConstraintPool);
  add_pool(m_tmpSolverContactFrictionConstraintPool);
  add(rolling_, rolling_count_);
  weight_.resize(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i)
    weight_[i] = rows_[i]->m_jacDiagABInv > 0 ? 1 / rows_[i]->m_jacDiagABInv : 0;
}

void RoundSolver::apply(const btSolverConstraint& row, btScalar impulse) {
  btSolverBody& a = m_tmpSolverBodyPool[row.m_solverBodyIdA];
  btSolverBody& b = m_tmpSolverBodyPool[row.m_solverBodyIdB];
  a.internalApplyImpulse(row.m_contactNormal1 * a.internalGetInvMass(), row.m_angularComponentA, impulse);
  b.internalApplyImpulse(row.m_contactNormal2 * b.internalGetInvMass(), row.m_angularComponentB, impulse);
}

void RoundSolver::finish(btCollisionObject** bodies, int body_count) {
  forget_all();
  for (std::size_t i = 0; i < joints_.size(); ++i) {
    const int id = joints_[i]->getUserConstraintId();
    for (int k = joint_start_[i]; k < joint_start_[i + 1]; ++k)
      keep_one(id, btScalar(m_tmpSolverNonContactConstraintPool[k].m_appliedImpulse));
  }
  solveGroupCacheFriendlyFinish(bodies, body_count, *info_);
}

// ---- memory --------------------------------------------------------------------------------------------------------

void RoundSolver::keep_one(int joint_id, btScalar impulse) {
  const std::size_t id = static_cast<std::size_t>(joint_id);
  if (kept_.size() <= id) kept_.resize(id + 1);
  if (kept_[id].count == 0) kept_[id].start = static_cast<int>(kept_impulses_.size());
  ++kept_[id].count;
  kept_ids_.push_back(joint_id);
  kept_impulses_.push_back(impulse);
}

void RoundSolver::read_kept(int* joint_ids, btScalar* impulses) const {
  std::copy(kept_ids_.begin(), kept_ids_.end(), joint_ids);
  std::copy(kept_impulses_.begin(), kept_impulses_.end(), impulses);
}

void RoundSolver::keep(const int* joint_ids, const btScalar* impulses, int count) {
  for (int i = 0; i < count; ++i) forget(joint_ids[i]);
  for (int i = 0; i < count; ++i) keep_one(joint_ids[i], impulses[i]);
}

void RoundSolver::forget(int joint_id) {
  const std::size_t id = static_cast<std::size_t>(joint_id);
  if (id >= kept_.size() || kept_[id].count == 0) return;
  const auto [start, count] = kept_[id];
  kept_[id] = {};
  kept_ids_.erase(kept_ids_.begin() + start, kept_ids_.begin() + start + count);
  kept_impulses_.erase(kept_impulses_.begin() + start, kept_impulses_.begin() + start + count);
  for (Kept& other : kept_)
    if (other.start > start) other.start -= count;
}

void RoundSolver::forget_all() {
  kept_.clear();
  kept_ids_.clear();
  kept_impulses_.clear();
}

// ---- exchange ------------------------------------------------------------------------------------------------------

void RoundSolver::set_interface(const std::vector<btRigidBody*>& bodies, double length_unit) {
  length_unit_ = length_unit;
  interface_.clear();
  for (const btRigidBody* body : bodies) interface_.push_back(body->getCompanionId());
  others_.assign(kContribution * bodies.size(), 0.0);
}

void RoundSolver::include(const double* others) {
  for (std::size_t i = 0; i < interface_.size(); ++i) {
    btSolverBody& body = m_tmpSolverBodyPool[interface_[i]];
    double change[kContribution];
    for (int k = 0; k < kContribution; ++k) {
      const std::size_t at = kContribution * i + k;
      change[k] = others[at] - others_[at];
      others_[at] = others[at];
    }
    body.internalGetDeltaLinearVelocity() += get(change, length_unit_);
    body.internalGetDeltaAngularVelocity() += get(change + 3);
    body.internalGetPushVelocity() += get(change + 6, length_unit_);
    body.internalGetTurnVelocity() += get(change + 9);
  }
}

void RoundSolver::contributions(double* own) const {
  for (std::size_t i = 0; i < interface_.size(); ++i) {
    const btSolverBody& body = m_tmpSolverBodyPool[interface_[i]];
    double* out = own + kContribution * i;
    put(body.getDeltaLinearVelocity(), length_unit_, out);
    put(body.getDeltaAngularVelocity(), 1, out + 3);
    put(body.getPushVelocity(), length_unit_, out + 6);
    put(body.getTurnVelocity(), 1, out + 9);
    for (int k = 0; k < kContribution; ++k) out[k] -= others_[kContribution * i + k];
  }
}

// ---- rounds --------------------------------------------------------------------------------------------------------

void RoundSolver::sweep(int count, Products& products) {
  const std::size_t size = rows_.size();
  before_.resize(size);
  impulse_.resize(size);
  for (std::size_t i = 0; i < size; ++i) before_[i] = btScalar(rows_[i]->m_appliedImpulse);
  for (int i = 0; i < count; ++i) {
    sweep_pushed();
    m_leastSquaresResidual = solveSingleIteration(0, nullptr, 0, nullptr, 0, nullptr, 0, *info_, nullptr);
  }
  for (std::size_t i = 0; i < size; ++i) impulse_[i] = btScalar(rows_[i]->m_appliedImpulse);
  remember(products);
}

// r and g of this round, and the differences to the last one as new columns.
void RoundSolver::remember(Products& products) {
  difference(impulse_, before_, change_);
  if (has_last_) {
    static const int limit = std::getenv("LJC") ? std::atoi(std::getenv("LJC")) : 5;
    if (column_count_ == limit) {
      std::rotate(change_columns_, change_columns_ + 1, change_columns_ + column_count_);
      std::rotate(impulse_columns_, impulse_columns_ + 1, impulse_columns_ + column_count_);
      --column_count_;
    }
    difference(change_, last_change_, change_columns_[column_count_]);
    difference(impulse_, last_impulse_, impulse_columns_[column_count_]);
    ++column_count_;
  }
  products = {};
  for (int i = 0; i < column_count_; ++i) {
    for (int j = 0; j <= i; ++j)
      products.columns[i][j] = products.columns[j][i] = product(change_columns_[i], change_columns_[j], weight_);
    products.change[i] = product(change_columns_[i], change_, weight_);
  }
  products.change_squared = product(change_, change_, weight_);
  products.impulse_squared = product(impulse_, impulse_, weight_);
  products.contact_rows = contact_rows_;
  products.joint_rows = joint_rows_;
  products.column_count = column_count_;
  for (std::size_t i = 0; i < rows_.size(); ++i)
    products.largest_change = std::max(products.largest_change, std::abs(double(change_[i])) * double(weight_[i]));
  last_change_.swap(change_);
  last_impulse_.swap(impulse_);
  has_last_ = true;
}

void RoundSolver::advance(Advance how, const double* theta) {
  if (how == Advance::kForget) column_count_ = 0;
  if (how != Advance::kExtrapolate) return;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    double impulse = last_impulse_[i];
    for (int k = 0; k < column_count_; ++k) impulse -= theta[k] * double(impulse_columns_[k][i]);
    rows_[i]->m_appliedImpulse = btSimdScalar(btScalar(impulse));
  }
  project();
  rebuild();
}

// Impulses that rows allow: within a joint's limits, pressing, and within the friction cone's box.
void RoundSolver::project() {
  const auto clamp = [](btSolverConstraint& row, btScalar low, btScalar high) {
    row.m_appliedImpulse = btSimdScalar(std::clamp(btScalar(row.m_appliedImpulse), low, high));
  };
  for (int i = 0; i < joint_rows_ + contact_rows_; ++i)
    clamp(*rows_[i], rows_[i]->m_lowerLimit, rows_[i]->m_upperLimit);
  for (std::size_t i = joint_rows_ + contact_rows_; i < rows_.size(); ++i) {
    const btSolverConstraint& contact = m_tmpSolverContactConstraintPool[rows_[i]->m_frictionIndex];
    const btScalar limit = std::max(btScalar(0), rows_[i]->m_friction * btScalar(contact.m_appliedImpulse));
    clamp(*rows_[i], -limit, limit);
  }
}

// Velocity changes from the impulses; those that resolve penetration stay.
void RoundSolver::rebuild() {
  for (int i = 0; i < m_tmpSolverBodyPool.size(); ++i) {
    m_tmpSolverBodyPool[i].internalGetDeltaLinearVelocity().setZero();
    m_tmpSolverBodyPool[i].internalGetDeltaAngularVelocity().setZero();
  }
  for (const btSolverConstraint* row : rows_) apply(*row, btScalar(row->m_appliedImpulse));
  for (std::size_t i = 0; i < interface_.size(); ++i) {
    btSolverBody& body = m_tmpSolverBodyPool[interface_[i]];
    body.internalGetDeltaLinearVelocity() += get(&others_[kContribution * i], length_unit_);
    body.internalGetDeltaAngularVelocity() += get(&others_[kContribution * i + 3]);
  }
}

}  // namespace lapjoint
