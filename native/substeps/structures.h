// Which bodies of a scene joints tie together, whoever has them, and whether it is little work to solve such a
// structure at once. All workers come to the same answer.
#pragma once

#include <map>
#include <vector>

#include "substeps/colours.h"

namespace lapjoint {

enum class JointChoice { kAuto, kDirect, kSwept };

// Products of blocks that a factorization may take.
long work_limit(JointChoice choice, long row_count);

// A joint of a scene, by its bodies' numbers, less than 0 for the world.
struct Tie {
  ConstraintEnds ends;
  int row_count;     // that hold its bodies, all the time or at times; 0: it does not tie them
  int bounded_rows;  // that may come to a bound of their impulse
  bool is_bond;      // whose load is what a solution of the whole structure has, and no sweeps
  bool welds;        // see JointDefinition
  bool may_break;    // the same
};

class Structures {
 public:
  void define(int body_count, std::vector<Tie> ties);
  // So many bodies in all, the new ones without joints.
  void add_bodies(int body_count);
  std::size_t joint_count() const { return ties_.size(); }
  // The lowest body of the structure that a body belongs to.
  int label(int body) const { return label_[body]; }
  // Whether it is little work to solve a structure at once, which has joints between bodies.
  bool fits(int label, JointChoice choice) const;
  // Of a structure.
  int bounded_rows(int label) const { return bounded_rows_[label]; }
  bool is_bonded(int label) const { return is_bonded_[label] != 0; }
  bool may_break(int label) const { return may_break_[label] != 0; }
  // Whether any joint is a weld.
  bool has_welds() const { return has_welds_; }
  // Whether any joint is between bodies.
  bool empty() const { return of_label_.empty(); }

 private:
  std::vector<Tie> ties_;
  std::vector<int> label_;
  std::map<int, std::vector<int>> of_label_;  // joints of each structure, those to the world left out
  // Of each structure by its label, with those.
  std::vector<long> row_counts_;
  std::vector<int> bounded_rows_;
  std::vector<char> is_bonded_, may_break_;
  bool has_welds_ = false;
  mutable std::map<int, bool> known_;
};

}  // namespace lapjoint
