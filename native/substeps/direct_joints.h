// Locked axes of whole structures, solved at once within every substep.
//
// Sweeps go joint by joint, and what happens at one end of a structure takes many of them to reach the other. Here one
// sparse factorization a step answers for the structure as a whole. Rows are a little soft: loops of joints contradict
// each other in what rounding leaves. In the bodies' own coordinates (substeps/bodies.h) the matrix is I + J^T C^-1 J,
// with a block for each body and each pair of jointed bodies.
//
// Bodies turn from substep to substep, and rows and matrix with them: a matrix of another moment would answer with
// impulses as wrong as rows are stiff. Errors are taken back within one substep; where links would have to turn far to
// close a gap, even the right matrix promises too much, and the whole correction is scaled until no body turns far.
//
// A structure across workers is solved by all that have a part of it: each eliminates the bodies that only it has
// joints of, and what is left is solved by each of them alike (substeps/interface_matrix.h). Joints between two workers
// have their rows in both; the first of the two puts them into the matrix.
//
// So are drives of its joints that are too stiff to be followed by sweeps: rows as soft as the drive is, whose impulse
// is its force at the end of the substep. One that would do more than it can is held at its largest force, and its row
// is out of the matrix, until it would do less.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "solver/block_cholesky.h"
#include "substeps/interface_matrix.h"
#include "substeps/joints.h"
#include "substeps/structures.h"

namespace lapjoint {

class DirectJoints {
 public:
  // Marks the joints that are solved here. `choices`: by place, where something has been decided for the structure that
  // its body is part of, else `choice`. `fixed`: as for JointSweeps. `axes` are read in every step: see JointSweeps.
  void choose(std::vector<JointDefinition>& joints, const std::vector<AxisDefinition>& axes, JointChoice choice,
              const std::vector<JointChoice>& choices, int fixed);
  // After it: marks those of structures across workers with these labels. `between` are the joints with each neighbour,
  // `is_first` says whether this worker is the first of the two; ghosts, bodies' numbers and labels are by place.
  void choose_shared(std::vector<JointDefinition>& own, std::vector<std::vector<JointDefinition>>& between,
                     const std::vector<char>& is_first, const std::vector<char>& is_ghost,
                     const std::vector<int>& bodies, const std::vector<int>& labels, const std::vector<int>& wanted);
  // Whether this worker has nothing to do here, nor to ask the others for.
  bool empty() const { return joints_.empty() && !asks_; }
  // Whether any drive of the scene has a largest force.
  void set_limits_drives(bool limits) { limits_drives_ = limits; }
  // Whether structures across workers may be solved here, by this worker or others.
  void set_asks(bool asks) { asks_ = asks; }

  void prepare(Bodies& bodies, Real h, int substeps, const std::vector<Real>& impulses, Mailboxes* mailboxes);
  void warm_start(Bodies& bodies) const;
  void solve(Bodies& bodies);
  void take_back(Bodies& bodies);  // once bodies have moved
  void turn(Bodies& bodies);       // as JointSweeps does
  void relax(Bodies& bodies);
  void store(std::vector<Real>& impulses) const;
  void add_impulses(std::vector<Real>& sums) const;  // as JointSweeps does

  int structure_count() const { return static_cast<int>(structures_.size()); }
  int joint_count() const { return static_cast<int>(joints_.size()); }
  // Structures whose matrix could not be factored in this step: their joints do nothing then, and count as failed.
  int failed_count() const { return failed_; }
  long row_count() const { return static_cast<long>(rows_.size()); }

 private:
  struct Row {
    double own_a[6], own_b[6];  // Jacobian: along, about
    double error, stiffness, impulse;
    double lack;                     // what its velocity lacks, or, across workers, is to be
    int target;                      // where its impulse is kept
    int axis = -1;                   // of a drive, in the list of axes
    double pull = 0, next_pull = 0;  // of a drive: impulse for where it is as a substep begins, this one and the next
    double inertia = 0, half_turns = 0;
    bool is_swept = false, is_held = false;  // not solved here; at its largest force

    bool is_drive() const { return axis >= 0; }
    bool is_out() const { return is_swept || is_held; }  // of the matrix
  };
  // A joint's rows, and the blocks of the matrix that they are part of.
  struct Link {
    int joint;
    int a, b;  // rows of the structure's matrix; one past the last: cannot move
    int first_row = 0, row_count = 0;
    int locked_count = 0;  // rows of locked axes, which come first
    double *of_a = nullptr, *of_b = nullptr, *of_both = nullptr;
    bool b_first = false;  // in the block of both
    bool is_point = false;
    bool is_own = true;  // in this worker's matrix
  };
  struct Structure {
    std::vector<Link> links;
    std::vector<int> places;  // of its bodies
    std::unique_ptr<BlockCholesky> matrix;
    bool works = true;
    std::vector<double> pushed;  // what errors ask of its bodies' velocities, for as long as they move
  };
  using Pairs = std::vector<std::pair<int, int>>;

  void choose_structure(std::vector<JointDefinition>& joints, const std::vector<int>& members, JointChoice choice,
                        int fixed);
  void add_link(Structure& structure, JointDefinition& joint, const Link& ends);
  void prepare_rows(Structure& structure, Bodies& bodies, const std::vector<Real>& impulses);
  void assemble(Structure& structure);
  bool factor(Structure& structure);
  static void add_point(const Row* rows, double (Row::*own)[6], double (Row::*other)[6], double* block);
  void put_rows(const Link& link, Bodies& bodies);
  void put_drives(const Link& link, Bodies& bodies);
  bool hold_drives(const Structure& structure, Bodies& bodies);
  void begin_drives(const Structure& structure);
  void refactor(Structure& structure);
  bool solve(Structure& structure, Bodies& bodies);
  bool relax(const Structure& structure, Bodies& bodies);
  void read_velocities(const Structure& structure, const Bodies& bodies);
  void write_velocities(const Structure& structure, Bodies& bodies) const;

  // Of structures across workers.
  void factor_shared(bool first);
  void solve_interface(int sides);
  void solve_shared(Bodies& bodies);
  bool hold_shared(Bodies& bodies);
  void relax_shared(Bodies& bodies);
  void set_impulses(Bodies& bodies);
  void push(const Structure& structure, double sign, Bodies& bodies) const;
  void warm_start(const Structure& structure, Bodies& bodies) const;

  const std::vector<AxisDefinition>* axes_ = nullptr;
  std::vector<JointDefinition> joints_;
  std::vector<Structure> structures_;
  Structure shared_;                // all of them
  std::vector<char> is_ghost_;      // of its bodies
  std::vector<int> shared_labels_;  // of its bodies
  std::vector<int> kept_;           // rows of its matrix that are in the interface
  InterfaceMatrix interface_;
  InterfaceMatrix::Part part_;
  std::vector<double> kept_values_, changes_, most_;
  Mailboxes* mailboxes_ = nullptr;
  bool asks_ = false, limits_drives_ = false;
  // By how much work it may be and how bodies are joined: what is known of it, or nothing where it is more. Kept while
  // it is used.
  using Patterns = std::map<std::tuple<long, int, Pairs>, std::shared_ptr<const BlockCholesky>>;
  Patterns patterns_, used_;
  std::vector<Row> rows_;
  // Six numbers for each body of a structure and one more that stays zero.
  std::vector<double> velocity_, values_;
  Real h_ = 0;
  int substeps_ = 1, failed_ = 0;
};

}  // namespace lapjoint
