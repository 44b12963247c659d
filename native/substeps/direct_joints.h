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
// So is what its joints have on their other axes: limits, motors, friction, distances, as hard rows; drives that are
// too stiff to be followed by sweeps, as rows that are as soft as the drive is, whose impulse is its force at the end
// of the substep. Each has bounds of its impulse: see substeps/active_set.h. Swept beside the matrix, they would
// diverge: what a row does is many times what is left of it once the structure has answered, as soon as masses are
// unequal.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "solver/block_cholesky.h"
#include "substeps/active_set.h"
#include "substeps/ball_friction.h"
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
  // How many rows with bounds structures across workers have: the same in all workers that have a part of any.
  void set_shared_bounds(int count) { shared_.bounded_rows = count; }
  // Whether any structure across workers has bonds, or joints that may break: the same.
  void set_shared_bonds(bool has_bonds, bool may_break) {
    shared_.is_bonded = has_bonds;
    shared_.may_break = may_break;
  }
  // Whether structures across workers may be solved here, by this worker or others.
  void set_asks(bool asks) { asks_ = asks; }

  void prepare(Bodies& bodies, const JointSettings& settings, const std::vector<Real>& impulses, Mailboxes* mailboxes);
  void warm_start(Bodies& bodies) const;
  // Before contacts are swept for the first time in a step: where a joint may have broken after the last one, impulses
  // of the others balance no more, and contacts would hold up against them what is not there. A beam whose end breaks
  // off was thrown away from there at 1.8 m/s.
  void settle(Bodies& bodies);
  void solve(Bodies& bodies);
  void take_back(Bodies& bodies);  // once bodies have moved
  void turn(Bodies& bodies);       // as JointSweeps does
  void relax(Bodies& bodies);
  // Velocities that were changed outside of it are shared out within structures. No row changes its place for it, nor
  // begins the next solution with what it does for it: `read` is called while rows have that as their impulses.
  template <typename Read>
  void share_out(Bodies& bodies, Read&& read) {
    const std::vector<double> before = begin_sharing(bodies);
    read();
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].impulse = before[i];
  }
  void store(std::vector<Real>& impulses);
  void add_impulses(std::vector<Real>& sums);  // as JointSweeps does

  int structure_count() const { return static_cast<int>(structures_.size()); }
  int joint_count() const { return static_cast<int>(joints_.size()); }
  // Structures whose matrix could not be factored in this step: their joints do nothing then, and count as failed.
  int failed_count() const { return failed_; }
  long row_count() const { return static_cast<long>(rows_.size()); }

 private:
  using Row = DirectRow;
  using Link = DirectLink;
  struct Structure {
    std::vector<Link> links;
    std::vector<int> places;  // of its bodies
    std::unique_ptr<BlockCholesky> matrix;
    bool works = true;
    int bounded_rows = 0;
    bool is_bonded = false, has_elastic = false, may_break = false;
    std::vector<Lanes> turned;   // of its bodies, own coordinates, when its rows were made
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
  std::vector<double> begin_sharing(Bodies& bodies);
  void begin_friction(const Link& link, Row* rows, const Bodies& bodies, const std::vector<Real>& impulses);
  void put_rows(const Link& link, Bodies& bodies, bool turns = true);
  void put_elastic(const Link& link);
  static bool has_turned(const Structure& structure, const Bodies& bodies);
  static void note_turns(Structure& structure, const Bodies& bodies);
  void turn_rows(Structure& structure, Bodies& bodies, bool turns);
  void put_other_axes(const Link& link);
  template <typename Visit>
  void each_impulse(Visit&& visit);
  void begin_drives(const Structure& structure);
  void refactor(Structure& structure);
  template <typename Which>
  void solve_those(Bodies& bodies, Which&& which);
  void solve(Structure& structure, Bodies& bodies);
  void relax(Structure& structure, Bodies& bodies);
  bool change_places(Structure& structure, int pass, double share);
  void read_velocities(const Structure& structure, const Bodies& bodies);
  void write_velocities(const Structure& structure, Bodies& bodies) const;

  // Of structures across workers.
  void factor_shared(bool first);
  void solve_interface(int sides);
  void solve_shared(Bodies& bodies, int pass = 0);
  bool change_shared_places(Bodies& bodies, int pass, bool errors);
  void relax_shared(Bodies& bodies, int pass = 0);
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
  bool asks_ = false, keeps_places_ = false;
  // By how much work it may be and how bodies are joined: what is known of it, or nothing where it is more. Kept while
  // it is used.
  using Patterns = std::map<std::tuple<long, int, Pairs>, std::shared_ptr<const BlockCholesky>>;
  Patterns patterns_, used_;
  std::vector<Row> rows_;
  std::vector<JointRow> made_;
  // Six numbers for each body of a structure and one more that stays zero.
  std::vector<double> velocity_, values_;
  std::vector<double> arrived_, total_;  // what rows that came to a bound have changed; velocities with all changes
  ActiveSet active_set_;
  Real h_ = 0;
  double push_speed_ = 0;
  int substeps_ = 1, failed_ = 0;
};

}  // namespace lapjoint
