#include "solver/rounds.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lapjoint {

namespace {

void put(const btVector3& value, double unit, double* out) {
  for (int k = 0; k < 3; ++k) out[k] = value[k] * unit;
}

btVector3 get(const double* in, double unit = 1) {
  return {btScalar(in[0] / unit), btScalar(in[1] / unit), btScalar(in[2] / unit)};
}

}  // namespace

// ---- rows ----------------------------------------------------------------------------------------------------------

void RoundSolver::begin(btCollisionObject** bodies, int body_count, btPersistentManifold** manifolds,
                        int manifold_count, btTypedConstraint** joints, int joint_count,
                        const btContactSolverInfo& info) {
  abandon();  // whatever a step left that was never finished
  info_ = &info;
  in_rounds_ = true;
  solveGroupCacheFriendlySetup(bodies, body_count, manifolds, manifold_count, joints, joint_count, info, nullptr);
  in_rounds_ = false;
  collect_pushed();
  set_interface({}, 1);
}

void RoundSolver::abandon() {
  for (btConstraintArray* pool :
       {&m_tmpSolverNonContactConstraintPool, &m_tmpSolverContactConstraintPool,
        &m_tmpSolverContactFrictionConstraintPool, &m_tmpSolverContactRollingFrictionConstraintPool})
    pool->resizeNoInitialize(0);
  m_tmpSolverBodyPool.resizeNoInitialize(0);
  rows_.clear();
  joints_.clear();
  joint_start_.assign(1, 0);
  joint_rows_ = contact_rows_ = swept_joint_rows_ = rolling_count_ = 0;
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
    if (id >= cached_.size() || cached_[id].count != count) continue;  // other limits hold than before
    for (int k = 0; k < count; ++k) {
      btSolverConstraint& row = m_tmpSolverNonContactConstraintPool[first + k];
      const btScalar impulse = joint_warm_start_ * cached_impulses_[cached_[id].start + k];
      row.m_appliedImpulse = btSimdScalar(std::clamp(impulse, row.m_lowerLimit, row.m_upperLimit));
      apply(row, row.m_appliedImpulse);
    }
  }
}

// Rows whose impulses rounds compare and extrapolate. Rows that are solved at once answer whatever these have become,
// and are left out unless other engines receive them.
void RoundSolver::collect_rows() {
  rows_.clear();
  swept_joint_rows_ = 0;
  btConstraintArray& joints = m_tmpSolverNonContactConstraintPool;
  for (int i = 0; i < joints.size(); ++i) {
    const bool locked = !locked_.empty() && LockedRows::has(joints[i]);
    if (!locked || locked_.are_current()) rows_.push_back(&joints[i]);
    if (!locked) m_orderNonContactConstraintPool[swept_joint_rows_++] = i;
  }
  joint_rows_ = static_cast<int>(rows_.size());
  contact_rows_ = m_tmpSolverContactConstraintPool.size();
  const auto add = [this](btSolverConstraint* first, int count) {
    for (int i = 0; i < count; ++i) rows_.push_back(first + i);
  };
  for (btConstraintArray* pool : {&m_tmpSolverContactConstraintPool, &m_tmpSolverContactFrictionConstraintPool})
    if (pool->size()) add(&(*pool)[0], pool->size());
  add(rolling_, rolling_count_);
}

void RoundSolver::prepare(const std::vector<int>& kept) {
  if (joints_together_)
    locked_.prepare(m_tmpSolverNonContactConstraintPool, m_tmpSolverBodyPool, masses_, interface_, kept);
  collect_rows();
  // Rows that are solved at once have zero weight in the extrapolation, unless others have structures whose interface
  // masses nobody sent: then such rows need rounds as contacts do.
  const bool have_weight = masses_.empty() && kept.empty();
  std::vector<double> weights(rows_.size(), 0.0);
  for (int i = 0; i < static_cast<int>(rows_.size()); ++i) {
    const bool locked = i < joint_rows_ && LockedRows::has(*rows_[i]);
    if ((!locked || have_weight) && rows_[i]->m_jacDiagABInv > 0) weights[i] = 1 / double(rows_[i]->m_jacDiagABInv);
  }
  history_.begin(std::move(weights));
  prepared_ = true;
}

void RoundSolver::apply(const btSolverConstraint& row, btScalar impulse) {
  btSolverBody& a = m_tmpSolverBodyPool[row.m_solverBodyIdA];
  btSolverBody& b = m_tmpSolverBodyPool[row.m_solverBodyIdB];
  a.internalApplyImpulse(row.m_contactNormal1 * a.internalGetInvMass(), row.m_angularComponentA, impulse);
  b.internalApplyImpulse(row.m_contactNormal2 * b.internalGetInvMass(), row.m_angularComponentB, impulse);
}

void RoundSolver::finish(btCollisionObject** bodies, int body_count, bool answers) {
  Products products;
  if (answers && !plain_ && !interface_.empty()) sweep(1, products);
  locked_.settle(m_tmpSolverBodyPool);
  clear_cache();
  for (std::size_t i = 0; i < joints_.size() && joint_warm_start_ > 0; ++i) {
    const int id = joints_[i]->getUserConstraintId();
    for (int k = joint_start_[i]; k < joint_start_[i + 1]; ++k)
      cache_one(id, btScalar(m_tmpSolverNonContactConstraintPool[k].m_appliedImpulse));
  }
  solveGroupCacheFriendlyFinish(bodies, body_count, *info_);
}

// ---- warm-start data of joints -------------------------------------------------------------------------------------

void RoundSolver::cache_one(int joint_id, btScalar impulse) {
  const std::size_t id = static_cast<std::size_t>(joint_id);
  if (cached_.size() <= id) cached_.resize(id + 1);
  if (cached_[id].count == 0) cached_[id].start = static_cast<int>(cached_impulses_.size());
  ++cached_[id].count;
  cached_ids_.push_back(joint_id);
  cached_impulses_.push_back(impulse);
}

void RoundSolver::read_cached(int* joint_ids, btScalar* impulses) const {
  std::copy(cached_ids_.begin(), cached_ids_.end(), joint_ids);
  std::copy(cached_impulses_.begin(), cached_impulses_.end(), impulses);
}

void RoundSolver::cache(const int* joint_ids, const btScalar* impulses, int count) {
  if (!(joint_warm_start_ > 0)) return;
  for (int i = 0; i < count; ++i) drop_cached(joint_ids[i]);
  for (int i = 0; i < count; ++i) cache_one(joint_ids[i], impulses[i]);
}

void RoundSolver::drop_cached(int joint_id) {
  const std::size_t id = static_cast<std::size_t>(joint_id);
  if (id >= cached_.size() || cached_[id].count == 0) return;
  const auto [start, count] = cached_[id];
  cached_[id] = {};
  cached_ids_.erase(cached_ids_.begin() + start, cached_ids_.begin() + start + count);
  cached_impulses_.erase(cached_impulses_.begin() + start, cached_impulses_.begin() + start + count);
  for (Cached& other : cached_)
    if (other.start > start) other.start -= count;
}

void RoundSolver::clear_cache() {
  cached_.clear();
  cached_ids_.clear();
  cached_impulses_.clear();
}

// ---- exchange ------------------------------------------------------------------------------------------------------

void RoundSolver::set_interface(const std::vector<btRigidBody*>& bodies, double length_unit) {
  length_unit_ = length_unit;
  interface_.clear();
  for (const btRigidBody* body : bodies) interface_.push_back(body->getCompanionId());
  others_.assign(kContribution * bodies.size(), 0.0);
  masses_.clear();
  locked_.clear();
  prepared_ = unanswered_ = false;
}

std::vector<MassBlock> RoundSolver::interface_masses(const std::vector<int>& places) {
  std::vector<int> kept, place(m_tmpSolverBodyPool.size(), -1);
  for (const int i : places) {
    kept.push_back(interface_[i]);
    place[interface_[i]] = i;
  }
  prepare(kept);
  if (locked_.interface_mass_count() > kMostMasses) return {};
  std::vector<MassBlock> masses = locked_.interface_masses();
  for (MassBlock& block : masses) {
    block.body_a = place[block.body_a];
    block.body_b = place[block.body_b];
  }
  return masses;
}

void RoundSolver::add_interface_masses(std::vector<MassBlock> masses) {
  masses_ = std::move(masses);
  for (MassBlock& block : masses_) {
    block.body_a = interface_[block.body_a];
    block.body_b = interface_[block.body_b];
  }
}

void RoundSolver::include(const double* others) {
  unanswered_ = true;
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

void RoundSolver::read_impulses(std::vector<double>& impulses) const {
  impulses.resize(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) impulses[i] = btScalar(rows_[i]->m_appliedImpulse);
}

void RoundSolver::sweep(int count, Products& products) {
  if (!prepared_) prepare({});
  read_impulses(before_);
  locked_.begin_round();
  // Joints are re-solved before contacts are swept: a push reaches all that they hold first.
  if (unanswered_ && !locked_.empty() && masses_.empty()) locked_.solve(m_tmpSolverBodyPool);
  unanswered_ = false;
  // Bullet is to pass over rows that are solved at once: it would look at each of them in every sweep. The others are
  // where they were, beyond the size that it sees; it would complain of that only if it were built to be debugged.
  btConstraintArray& joints = m_tmpSolverNonContactConstraintPool;
  const int joint_rows = joints.size();
  joints.resizeNoInitialize(swept_joint_rows_);
  btScalar pushed = 0;
  for (int i = 0; i < count; ++i) {
    const btScalar push = sweep_pushed();
    pushed = std::max(pushed, push);
    bool still = push == 0;
    if (!locked_.empty()) locked_.mark(m_tmpSolverBodyPool);
    m_leastSquaresResidual = solveSingleIteration(0, nullptr, 0, nullptr, 0, nullptr, 0, *info_, nullptr);
    still = still && m_leastSquaresResidual == 0;
    if (!plain_ && release_friction()) still = false;
    if (!locked_.empty() && locked_.solve(m_tmpSolverBodyPool)) still = false;
    if (still && !plain_) break;  // nor would any other sweep change anything
  }
  joints.resizeNoInitialize(joint_rows);
  if (!locked_.empty() && !masses_.empty()) rebuild();  // velocities had the answers of others in them
  read_impulses(after_);
  history_.add(before_, after_, products);
  products.contact_rows = contact_rows_;
  products.joint_rows = joint_rows;
  products.largest_change = std::max(products.largest_change, locked_.largest_lack());
  // A round that only pushed bodies apart has changed something, too.
  if (products.largest_change == 0) products.largest_change = std::sqrt(double(pushed));
}

// Bullet leaves friction as it was where a contact does not press any more.
bool RoundSolver::release_friction() {
  bool released = false;
  for (std::size_t i = joint_rows_ + contact_rows_; i < rows_.size(); ++i) {
    btSolverConstraint& row = *rows_[i];
    const btScalar impulse = row.m_appliedImpulse;
    if (impulse == 0 || btScalar(m_tmpSolverContactConstraintPool[row.m_frictionIndex].m_appliedImpulse) > 0) continue;
    row.m_appliedImpulse = btSimdScalar(btScalar(0));
    apply(row, -impulse);
    released = true;
  }
  return released;
}

void RoundSolver::extrapolate(Advance how, const double* theta) {
  if (how == Advance::kForget) history_.forget();
  if (how != Advance::kExtrapolate) return;
  history_.extrapolate(theta, after_);
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i]->m_appliedImpulse = btSimdScalar(btScalar(after_[i]));
  project();
  rebuild();
  unanswered_ = true;
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
  if (!locked_.are_current()) locked_.add_joint_velocities(m_tmpSolverBodyPool);
  for (std::size_t i = 0; i < interface_.size(); ++i) {
    btSolverBody& body = m_tmpSolverBodyPool[interface_[i]];
    body.internalGetDeltaLinearVelocity() += get(&others_[kContribution * i], length_unit_);
    body.internalGetDeltaAngularVelocity() += get(&others_[kContribution * i + 3]);
  }
}

}  // namespace lapjoint
