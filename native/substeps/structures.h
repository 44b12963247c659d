// Which bodies of a scene joints tie together, whoever has them, and whether it is little work to solve such a
// structure at once. All workers come to the same answer.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "substeps/colours.h"

namespace lapjoint {

enum class JointChoice { kAuto, kDirect, kSwept };

// Products of blocks that a factorization may take for each row, unless it is asked for: a product is about as much as
// ten updates of a row.
long work_limit(JointChoice choice, long row_count);

class Structures {
 public:
  // Joints of a scene by their bodies' numbers, less than 0 for the world, and the axes that each locks.
  void define(int body_count, std::vector<ConstraintEnds> ends, std::vector<std::uint8_t> locked);
  // So many bodies in all, the new ones without joints.
  void add_bodies(int body_count);
  std::size_t joint_count() const { return ends_.size(); }
  // The lowest body of the structure that a body belongs to.
  int label(int body) const { return label_[body]; }
  // Whether it is little work to solve a structure at once, which has joints between bodies.
  bool fits(int label, JointChoice choice) const;
  // Whether any joint is between bodies.
  bool empty() const { return of_label_.empty(); }

 private:
  std::vector<ConstraintEnds> ends_;
  std::vector<std::uint8_t> locked_;
  std::vector<int> label_;
  std::map<int, std::vector<int>> of_label_;  // joints of each structure, those to the world left out
  std::vector<long> row_counts_;              // of each structure by its label, with those
  mutable std::map<int, bool> known_;
};

}  // namespace lapjoint
