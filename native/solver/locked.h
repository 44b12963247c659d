// Joint rows without limits, solved together. Sweeps go row by row, and what happens at one end of a structure takes
// many of them to reach the other; one sparse factorization per step answers for the whole structure at once.
//
// Rows J between bodies of mass M need the velocities e; the impulses d that give them solve J M^-1 J^T d = e. Loops of
// joints make that singular, and what rows contradict each other about would become impulses without bound. So rows are
// a little soft: (J M^-1 J^T + C) d = e, with C a millionth of what a row alone has on the diagonal. It is solved by
// way of the velocities: the matrix M + J^T C^-1 J has one 6 x 6 block for each body and each pair of jointed bodies,
// and is positive definite.
//
// Once rows have been solved, what others do to the bodies needs no rows: a change of velocity that the impulses p make
// becomes (M + J^T C^-1 J)^-1 p with all that joints hold. So sweeps of contacts are answered body by body, and rows
// get their impulses at the end.
//
// The Schur complement of the matrix on a few bodies is their effective mass: theirs, together with all that joints
// hold to them. With it, an engine that has only rows between such bodies can answer for structures that others have.
#pragma once

#include <btBulletDynamicsCommon.h>

#include <utility>
#include <vector>

#include "solver/block_cholesky.h"

namespace lapjoint {

// Of a body, or the inverse: a number for what is along, a matrix for what turns.
struct BodyMass {
  double linear, angular[9];
};

class LockedRows {
 public:
  using Bodies = btAlignedObjectArray<btSolverBody>;

  void clear();
  bool empty() const { return rows_.empty(); }
  // Whether rows that could have been taken in the last `prepare` were left to sweeps.
  bool fell_back() const { return fell_back_; }
  // Whether a joint's row was taken.
  static bool has(const btSolverConstraint& row) { return row.m_overrideNumSolverIterations == 0; }
  // Takes the rows that have no limits out of Bullet's sweeps; takes none if the factorization fails or is more work
  // than sweeps are. `masses` are effective masses that others sent; a body without has its own. `interface` are bodies
  // that others have rows with, `kept` those whose interface masses are sent. Bodies are solver bodies.
  void prepare(btAlignedObjectArray<btSolverConstraint>& rows, const Bodies& bodies,
               const std::vector<MassBlock>& masses, const std::vector<int>& interface, const std::vector<int>& kept);
  std::size_t interface_mass_count() const { return rows_.empty() ? 0 : matrix_.kept_count(); }
  std::vector<MassBlock> interface_masses() const;

  // Whether rows have their impulses after every solve, and not only once they are settled: so where all bodies are at
  // the interface, as the server's are, and others receive them before the step's end.
  bool are_current() const { return current_; }
  // Where others have joints of bodies, `mark` comes before other rows are swept: what those did since is then answered
  // for, too, and velocities become what they will be once the others have answered.
  void mark(const Bodies& bodies);
  // False if nothing had changed since the last one.
  bool solve(Bodies& bodies);
  // Rows get their impulses, and bodies the velocities that these make.
  void settle(Bodies& bodies);
  // Add what is due to these rows to velocities that are made of other rows' impulses only.
  void add_joint_velocities(Bodies& bodies) const;
  // Of a row's velocity, largest of all that solves had to give since the last call of `begin_round` [length units/s].
  void begin_round();
  double largest_lack() const;

 private:
  struct Row {
    btSolverConstraint* row;
    int a, b;  // rows of the matrix; -1: cannot move
    double along_a[6], along_b[6];
    double velocity;   // that is asked for
    double stiffness;  // C^-1: an impulse of so much is as good as a velocity of one
  };
  void collect(btAlignedObjectArray<btSolverConstraint>& rows, const Bodies& bodies);
  int number(int body, const Bodies& bodies);
  bool factor(const Bodies& bodies, const std::vector<MassBlock>& masses);
  void solve_rows();
  void take_impulses();
  void solve_all(Bodies& bodies);
  bool respond(Bodies& bodies);
  void take_marked(Bodies& bodies);
  void write(Bodies& bodies, std::size_t i);

  std::vector<Row> rows_;
  std::vector<int> number_;                 // solver body -> row of the matrix
  std::vector<int> bodies_;                 // and back
  std::vector<std::pair<int, int>> pairs_;  // pairs and kept rows that the matrix was analysed for
  std::vector<char> kept_;
  BlockCholesky matrix_;
  bool is_too_much_ = false;  // to factor
  bool fell_back_ = false;
  bool current_ = false, jointed_elsewhere_ = false;
  bool solved_ = false;  // all rows, in this step
  double solved_lack_ = 0;
  std::vector<BodyMass> mass_, inverse_;
  std::vector<double> lack_;
  // Six numbers for each body.
  std::vector<double> velocities_, impulses_;
  std::vector<double> start_;             // velocities at the mark, or when all rows were solved
  std::vector<double> joint_velocities_;  // then, of these due to the rows
  std::vector<double> pushed_;            // by others since
  std::vector<double> answer_;            // velocities now
  std::vector<double> seen_;              // the same, in the engine's precision
  std::vector<double> changed_;           // by others in this round
};

}  // namespace lapjoint
