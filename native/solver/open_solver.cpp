#include "solver/open_solver.h"

#include <algorithm>

namespace lapjoint {

namespace {

btVector3 velocity_at(const btCollisionObject* object, const btVector3& point) {
  const btRigidBody* body = btRigidBody::upcast(object);
  return body->getVelocityInLocalPoint(point - body->getWorldTransform().getOrigin());
}

}  // namespace

// Bullet sees a contact a little before it happens and lets the body use up the gap within the step, or a little after
// and pushes it out. It adds the bounce to that speed: with short steps a body hardly bounces, or bounces too high.
// Here a point has no restitution until the step in which it would touch, and then bounces as if there were no gap.
void OpenSolver::prepare_bounce(const btPersistentManifold& manifold, btManifoldPoint& point,
                                const btContactSolverInfo& info) {
  const btVector3 velocity = velocity_at(manifold.getBody0(), point.getPositionWorldOnA()) -
                             velocity_at(manifold.getBody1(), point.getPositionWorldOnB());
  const btScalar approach = -point.m_normalWorldOnB.dot(velocity);
  bounces_.push_back({&point, point.getDistance(), point.m_combinedRestitution});
  if (approach * info.m_timeStep < point.getDistance())
    point.m_combinedRestitution = 0;
  else if (approach > info.m_restitutionVelocityThreshold)
    point.setDistance(0);
}

void OpenSolver::convertContacts(btPersistentManifold** manifolds, int count, const btContactSolverInfo& info) {
  bounces_.clear();
  for (int i = 0; i < count; ++i) {
    btPersistentManifold& manifold = *manifolds[i];
    // Lever arms add up; Bullet would scale them by the friction.
    btScalar arm = manifold.getBody0()->getRollingFriction() + manifold.getBody1()->getRollingFriction();
    if (surface_hook_) surface_hook_(manifold, arm);
    for (int k = 0; k < manifold.getNumContacts(); ++k) {
      btManifoldPoint& point = manifold.getContactPoint(k);
      point.m_combinedRollingFriction = arm;
      if (point.m_combinedRestitution > 0) prepare_bounce(manifold, point, info);
    }
  }
  btSequentialImpulseConstraintSolver::convertContacts(manifolds, count, info);
  for (const Bounce& bounce : bounces_) {
    bounce.point->setDistance(bounce.distance);
    bounce.point->m_combinedRestitution = bounce.restitution;
  }
  // Bullet solves rolling friction as if no contact pressed with more than one unit of impulse: ours to solve.
  // The rows stay where they are; Bullet only finds none.
  btConstraintArray& rows = m_tmpSolverContactRollingFrictionConstraintPool;
  rolling_count_ = rows.size();
  rolling_ = rolling_count_ ? &rows[0] : nullptr;
  rows.resizeNoInitialize(0);
}

btScalar OpenSolver::solveSingleIteration(int iteration, btCollisionObject** bodies, int body_count,
                                          btPersistentManifold** manifolds, int manifold_count,
                                          btTypedConstraint** joints, int joint_count, const btContactSolverInfo& info,
                                          btIDebugDraw* drawer) {
  btScalar worst = btSequentialImpulseConstraintSolver::solveSingleIteration(
      iteration, bodies, body_count, manifolds, manifold_count, joints, joint_count, info, drawer);
  for (int i = 0; i < rolling_count_; ++i) {
    btSolverConstraint& row = rolling_[i];
    const btScalar pressure = m_tmpSolverContactConstraintPool[row.m_frictionIndex].m_appliedImpulse;
    if (row.m_friction <= 0 || pressure <= 0) continue;
    row.m_upperLimit = row.m_friction * pressure;
    row.m_lowerLimit = -row.m_upperLimit;
    const btScalar residual = resolveSingleConstraintRowGeneric(m_tmpSolverBodyPool[row.m_solverBodyIdA],
                                                                m_tmpSolverBodyPool[row.m_solverBodyIdB], row);
    worst = std::max(worst, residual * residual);
  }
  return worst;
}

void OpenSolver::collect_pushed() {
  pushed_.clear();
  for (int i = 0; i < m_tmpSolverContactConstraintPool.size(); ++i)
    if (m_tmpSolverContactConstraintPool[m_orderTmpConstraintPool[i]].m_rhsPenetration)
      pushed_.push_back(m_orderTmpConstraintPool[i]);
}

btScalar OpenSolver::sweep_pushed() {
  btScalar worst = 0;
  for (const int i : pushed_) {
    const btSolverConstraint& row = m_tmpSolverContactConstraintPool[i];
    const btScalar residual = resolveSplitPenetrationImpulse(m_tmpSolverBodyPool[row.m_solverBodyIdA],
                                                             m_tmpSolverBodyPool[row.m_solverBodyIdB], row);
    worst = std::max(worst, residual * residual);
  }
  return worst;
}

void OpenSolver::solveGroupCacheFriendlySplitImpulseIterations(btCollisionObject**, int, btPersistentManifold**, int,
                                                               btTypedConstraint**, int,
                                                               const btContactSolverInfo& info, btIDebugDraw*) {
  if (!info.m_splitImpulse) return;
  collect_pushed();
  for (int iteration = 0; iteration < info.m_numIterations; ++iteration)
    if (sweep_pushed() <= info.m_leastSquaresResidualThreshold) break;
}

}  // namespace lapjoint
