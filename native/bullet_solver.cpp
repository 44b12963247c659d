#include "bullet_solver.h"

#include <algorithm>

namespace lapjoint {

namespace {

btVector3 velocity_at(const btCollisionObject* object, const btVector3& point) {
  const btRigidBody* body = btRigidBody::upcast(object);
  return body->getVelocityInLocalPoint(point - body->getWorldTransform().getOrigin());
}

}  // namespace

// Bullet sees a contact a little before it happens and lets the body use up the gap within the step. It adds the bounce
// to that speed, so a body is braked before it arrives and hardly bounces where steps are short. Here a point has no
// restitution until the step in which it would touch, and then bounces with its full share, as if the gap were closed.
void OpenSolver::prepare_bounce(const btPersistentManifold& manifold, btManifoldPoint& point, btScalar timestep) {
  const btVector3 velocity = velocity_at(manifold.getBody0(), point.getPositionWorldOnA()) -
                             velocity_at(manifold.getBody1(), point.getPositionWorldOnB());
  bounces_.push_back({&point, point.getDistance(), point.m_combinedRestitution});
  const bool touches = -point.m_normalWorldOnB.dot(velocity) * timestep >= point.getDistance();
  if (touches)
    point.setDistance(0);
  else
    point.m_combinedRestitution = 0;
}

void OpenSolver::convertContacts(btPersistentManifold** manifolds, int count, const btContactSolverInfo& info) {
  bounces_.clear();
  for (int i = 0; i < count; ++i) {
    btPersistentManifold& manifold = *manifolds[i];
    // Lever arms add up; Bullet would scale them by the friction.
    const btScalar arm = manifold.getBody0()->getRollingFriction() + manifold.getBody1()->getRollingFriction();
    for (int k = 0; k < manifold.getNumContacts(); ++k) {
      btManifoldPoint& point = manifold.getContactPoint(k);
      point.m_combinedRollingFriction = arm;
      if (point.m_combinedRestitution > 0 && point.getDistance() > 0) prepare_bounce(manifold, point, info.m_timeStep);
    }
  }
  btSequentialImpulseConstraintSolver::convertContacts(manifolds, count, info);
  for (const Bounce& bounce : bounces_) {
    bounce.point->setDistance(bounce.distance);
    bounce.point->m_combinedRestitution = bounce.restitution;
  }
  // Bullet solves rolling friction as if no contact pressed with more than one unit of impulse: ours to solve.
  rolling_.copyFromArray(m_tmpSolverContactRollingFrictionConstraintPool);
  m_tmpSolverContactRollingFrictionConstraintPool.resizeNoInitialize(0);
}

btScalar OpenSolver::solveSingleIteration(int iteration, btCollisionObject** bodies, int body_count,
                                          btPersistentManifold** manifolds, int manifold_count,
                                          btTypedConstraint** joints, int joint_count, const btContactSolverInfo& info,
                                          btIDebugDraw* drawer) {
  btScalar worst = btSequentialImpulseConstraintSolver::solveSingleIteration(
      iteration, bodies, body_count, manifolds, manifold_count, joints, joint_count, info, drawer);
  for (int i = 0; i < rolling_.size(); ++i) {
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

}  // namespace lapjoint
