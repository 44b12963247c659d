// Velocities found directly instead of by sweeps: joints by a Cholesky factorization, contacts, friction and limits as
// a linear complementarity problem, by Dantzig's algorithm, which Bullet has.
#pragma once

#include <BulletDynamics/MLCPSolvers/btDantzigLCP.h>

#include <memory>
#include <string>
#include <vector>

#include "solver/open_solver.h"

namespace lapjoint {

// Rows are those of the sequential solver, in its order, with its restitution, friction and rolling friction. Groups of
// bodies that no row connects are solved one by one. A group that has too many rows with bounds, or that the algorithm
// fails at, is swept as by the sequential solver. Deep penetration (split impulse) is resolved by sweeps always.
class DirectSolver : public OpenSolver {
 public:
  explicit DirectSolver(int row_limit) : row_limit_(row_limit) {}

  void begin_step() override;
  int fallback_count() const override { return fallback_count_; }

 protected:
  btScalar solveGroupCacheFriendlyIterations(btCollisionObject** bodies, int body_count,
                                             btPersistentManifold** manifolds, int manifold_count,
                                             btTypedConstraint** joints, int joint_count,
                                             const btContactSolverInfo& info, btIDebugDraw* drawer) override;

 private:
  struct Row {
    btSolverConstraint* constraint;
    int presses;  // number of the contact row whose impulse bounds this one; -1: its bounds are its own
  };

  void collect_rows();
  void find_groups();
  int group_of(int body);
  bool is_free(const Row& row) const;
  bool solve_group(const std::vector<int>& rows);
  void assemble();
  bool factorize();
  bool solve_bounded();
  void set_bounds();
  bool solve_once();
  bool is_solution() const;
  void substitute_back();
  void apply();
  double& a(int i, int j) { return matrix_[static_cast<std::size_t>(i) * rows_.size() + j]; }

  int row_limit_;
  int fallback_count_ = 0;

  std::vector<Row> all_;
  std::vector<int> parent_;               // of solver bodies, for groups
  std::vector<std::vector<int>> groups_;  // rows of each, in order

  // One group: rows without bounds first, then `bounded_` rows with bounds.
  std::vector<int> rows_, place_;  // numbers in `all_`; of each row, where it is in `rows_`
  int free_ = 0, bounded_ = 0;
  std::vector<double> matrix_, rhs_, impulse_;
  std::vector<int> first_;                      // column of each row's first number that is not zero
  std::vector<std::vector<int>> rows_of_body_;  // by solver body, scratch
  std::vector<btScalar> lcp_, lcp_rhs_, low_, high_, x_, w_, scale_;  // of the bounded rows, scaled to a diagonal of 1
  btDantzigScratchMemory scratch_;
};

// By name: sequential, or dantzig, which takes on at most so many rows with bounds at once.
std::unique_ptr<OpenSolver> make_solver(const std::string& name, int row_limit);

}  // namespace lapjoint
