// Bullet's solver, with the residual of its last sweep open to be read, and with restitution and rolling friction that
// do what a material says at every timestep and mass.
#pragma once

#include <btBulletDynamicsCommon.h>

#include <functional>
#include <utility>
#include <vector>

namespace lapjoint {

class OpenSolver : public btSequentialImpulseConstraintSolver {
 public:
  btScalar residual_squared() const { return m_leastSquaresResidual; }
  virtual void begin_step() { m_leastSquaresResidual = 0; }
  // Called for every manifold with the lever arm of its rolling friction; may change that, and the surface of its
  // points. None: the bodies' own surfaces.
  using SurfaceHook = std::function<void(btPersistentManifold&, btScalar&)>;
  void set_surface_hook(SurfaceHook hook) { surface_hook_ = std::move(hook); }
  // Groups of bodies in the last step that a direct solver left to sweeps.
  virtual int fallback_count() const { return 0; }

 protected:
  btSolverConstraint* rolling_ = nullptr;  // rolling friction, three rows a point
  int rolling_count_ = 0;

  void convertContacts(btPersistentManifold** manifolds, int count, const btContactSolverInfo& info) override;
  btScalar solveSingleIteration(int iteration, btCollisionObject** bodies, int body_count,
                                btPersistentManifold** manifolds, int manifold_count, btTypedConstraint** joints,
                                int joint_count, const btContactSolverInfo& info, btIDebugDraw* drawer) override;
  // Bullet goes through all contacts in every sweep here, though few are pushed apart.
  void solveGroupCacheFriendlySplitImpulseIterations(btCollisionObject** bodies, int body_count,
                                                     btPersistentManifold** manifolds, int manifold_count,
                                                     btTypedConstraint** joints, int joint_count,
                                                     const btContactSolverInfo& info, btIDebugDraw* drawer) override;

  void collect_pushed();
  btScalar sweep_pushed();  // the largest change, squared

 private:
  struct Bounce {
    btManifoldPoint* point;
    btScalar distance, restitution;
  };
  void prepare_bounce(const btPersistentManifold& manifold, btManifoldPoint& point, const btContactSolverInfo& info);

  SurfaceHook surface_hook_;
  std::vector<int> pushed_;      // rows of contacts that are pushed apart
  std::vector<Bounce> bounces_;  // points that were changed for one call, as they were
};

}  // namespace lapjoint
