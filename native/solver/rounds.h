// A step in rounds: rows are set up, swept, extrapolated and finished by calls of their own, so that engines can
// exchange in between (docs/coupling.md).
//
// A body at an interface has rows in two engines. What each engine's impulses make of its velocity is its contribution;
// the body moves by the sum of both. An engine sweeps from that sum and sends its own share of it.
#pragma once

#include <vector>

#include "exchange/exchange.h"
#include "solver/locked.h"
#include "solver/open_solver.h"

namespace lapjoint {

class RoundSolver : public OpenSolver {
 public:
  // `joint_warm_start` is the share of a joint's impulses of the last step that it starts from. Plain sweeps are
  // Bullet's, to the last bit; else friction ends where contact does, and an engine answers what it received last.
  // Joints together: rows without limits are solved at once (solver/locked.h) instead of one by one.
  RoundSolver(btScalar joint_warm_start, bool plain, bool joints_together)
      : joint_warm_start_(joint_warm_start), plain_(plain), joints_together_(joints_together) {}

  // One where the joints of this engine were left to sweeps.
  int fallback_count() const override { return joints_together_ && locked_.fell_back(); }
  void begin(btCollisionObject** bodies, int body_count, btPersistentManifold** manifolds, int manifold_count,
             btTypedConstraint** joints, int joint_count, const btContactSolverInfo& info);
  // A contribution is in units of which linear ones are so many metres long.
  void set_interface(const std::vector<btRigidBody*>& bodies, double length_unit);
  // In place of finish. Bullet empties its pools only at a step's end, and would add the next step's rows to these.
  void abandon();
  int interface_count() const { return static_cast<int>(interface_.size()); }
  // Before the first sweep, if at all; bodies are places in the interface. The effective mass of interface bodies in
  // this engine (the Schur complement of its mass matrix with joints), and that in the other engines.
  std::vector<MassBlock> interface_masses(const std::vector<int>& places);
  void add_interface_masses(std::vector<MassBlock> masses);
  // What other engines contribute to the interface bodies from now on.
  void include(const double* others);
  void extrapolate(Advance how, const double* theta);
  // Up to `count` sweeps over all rows, fewer once they change nothing; and what they changed.
  void sweep(int count, Products& products);
  void contributions(double* own) const;
  // Velocities are final. With `answers`, after one more sweep, for what was included last.
  void finish(btCollisionObject** bodies, int body_count, bool answers);

  // Impulses of the last step, one after the other, each with its joint, for joints whose bodies migrate to another
  // engine.
  int cached_count() const { return static_cast<int>(cached_impulses_.size()); }
  void read_cached(int* joint_ids, btScalar* impulses) const;
  // Let joints start from these, in place of what the cache has.
  void cache(const int* joint_ids, const btScalar* impulses, int count);
  void drop_cached(int joint_id);
  void clear_cache();

 protected:
  void convertJoints(btTypedConstraint** joints, int joint_count, const btContactSolverInfo& info) override;

 private:
  void collect_rows();
  void cache_one(int joint_id, btScalar impulse);
  void prepare(const std::vector<int>& kept);
  void apply(const btSolverConstraint& row, btScalar impulse);
  void read_impulses(std::vector<double>& impulses) const;
  void rebuild();
  bool release_friction();  // whether there was any
  void project();

  btScalar joint_warm_start_;
  bool plain_, joints_together_;
  double length_unit_ = 1;
  bool in_rounds_ = false, prepared_ = false, unanswered_ = false;
  const btContactSolverInfo* info_ = nullptr;
  std::vector<btTypedConstraint*> joints_;
  std::vector<int> joint_start_;           // first row of each of the joints
  std::vector<btSolverConstraint*> rows_;  // joints, contacts, friction, rolling friction
  int joint_rows_ = 0, contact_rows_ = 0;  // of these
  int swept_joint_rows_ = 0;               // of all of the joints' rows
  std::vector<int> interface_;             // solver bodies
  std::vector<double> others_;
  std::vector<MassBlock> masses_;  // of other engines, by solver body
  LockedRows locked_;
  History history_;
  std::vector<double> before_, after_;  // impulses of a round
  // Of the last step, by joint number: where its impulses lie, and how many.
  struct Cached {
    int start = 0, count = 0;
  };
  std::vector<Cached> cached_;
  std::vector<int> cached_ids_;
  std::vector<btScalar> cached_impulses_;
};

}  // namespace lapjoint
