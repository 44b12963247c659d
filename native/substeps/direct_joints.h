// Locked axes of whole structures, solved at once within every substep.
//
// Sweeps go joint by joint, and what happens at one end of a structure takes many of them to reach the other. Here one
// sparse factorization a step answers for the structure as a whole. Rows are a little soft: loops of joints contradict
// each other in what rounding leaves. In the bodies' own coordinates (substeps/bodies.h) the matrix is I + J^T C^-1 J,
// with a block for each body and each pair of jointed bodies.
//
// Errors are taken back within one substep. The Jacobian is that of the step's beginning: where links would have to
// turn far to close a gap, it promises too much. So the whole correction is scaled until no body turns by more than a
// hundredth of a radian for it.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "solver/block_cholesky.h"
#include "substeps/joints.h"

namespace lapjoint {

enum class JointChoice { kAuto, kDirect, kSwept };

class DirectJoints {
 public:
  // Marks the joints that are solved here. `fixed`: as for JointSweeps.
  void choose(std::vector<JointDefinition>& joints, JointChoice choice, int fixed);
  bool empty() const { return joints_.empty(); }

  void prepare(const Bodies& bodies, Real h, int substeps, const std::vector<Real>& impulses);
  void warm_start(Bodies& bodies) const;
  void solve(Bodies& bodies);
  void relax(Bodies& bodies);
  void store(std::vector<Real>& impulses) const;

  int structure_count() const { return static_cast<int>(structures_.size()); }
  int joint_count() const { return static_cast<int>(joints_.size()); }
  // Structures whose matrix could not be factored in this step: their joints do nothing then, and count as failed.
  int failed_count() const { return failed_; }
  long row_count() const { return static_cast<long>(rows_.size()); }

 private:
  struct Row {
    int a, b;  // rows of the structure's matrix; -1: cannot move
    int place_a, place_b;
    double along[3], own_a[6], own_b[6];  // the last two with the linear part
    double error, curve, stiffness, impulse;
    int target;  // where its impulse is kept
  };
  struct Structure {
    std::vector<int> joints;  // places in joints_
    std::vector<int> places;  // of its bodies
    std::shared_ptr<BlockCholesky> matrix;
    int first_row = 0, row_count = 0;
    bool works = true;
  };
  using Pairs = std::vector<std::pair<int, int>>;

  std::shared_ptr<BlockCholesky> matrix_for(int body_count, const Pairs& pairs, long limit);
  void update_curves(const Bodies& bodies);
  bool factor(Structure& structure);

  std::vector<JointDefinition> joints_;
  std::vector<Structure> structures_;
  std::map<std::pair<int, Pairs>, std::shared_ptr<BlockCholesky>> matrices_;  // null: too much work
  std::vector<Row> rows_;
  std::vector<int> first_row_;  // of each joint
  std::vector<double> lack_, values_;
  Real h_ = 0;
  int substeps_ = 1, failed_ = 0;
};

}  // namespace lapjoint
