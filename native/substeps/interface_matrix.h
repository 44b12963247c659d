// What is left of structures across workers once each worker has eliminated the bodies that only it has rows of: a
// matrix for the bodies at both ends of joints between workers. Workers send each other their parts of it; all of them
// add up and solve the same, to the last bit.
#pragma once

#include <vector>

#include "exchange/mailboxes.h"
#include "solver/block_cholesky.h"

namespace lapjoint {

struct BlockPlace {
  int row, column;
  bool operator==(const BlockPlace&) const = default;
};

class InterfaceMatrix {
 public:
  // This worker's part: its bodies by number, the structure of each, and blocks by places in that list.
  struct Part {
    std::vector<int> bodies, labels;
    std::vector<BlockPlace> pairs;
    std::vector<double> blocks;  // 36 for each pair
    bool works = true;
  };

  // All workers at once, those without a part too. Afterwards `is_needed` is the same for all of them.
  void exchange_pattern(Mailboxes& mailboxes, const Part& own);
  bool is_needed() const { return !bodies_.empty(); }
  bool takes_part() const { return takes_part_; }
  // Of those that have a part: with other blocks.
  void exchange_blocks(Mailboxes& mailboxes, const Part& own);
  // False if the matrix cannot be solved: for all workers alike.
  bool factor(const Part& own);
  // Right sides for the bodies of the own part in, their values out; 6 for each body and side.
  void solve(Mailboxes& mailboxes, double* values, int sides);
  // Of each structure of the own part, the largest of all workers' values.
  void largest(Mailboxes& mailboxes, std::vector<double>& of_labels);
  // Whether any worker that takes part says so.
  bool any(Mailboxes& mailboxes, bool own);
  // Structures of the own part, ascending.
  const std::vector<int>& labels() const { return own_labels_; }

 private:
  template <typename Visit>
  void each_other(Mailboxes& mailboxes, Visit&& visit) const;

  // Of each worker; the own one without blocks.
  struct Known {
    std::vector<int> bodies, labels;
    std::vector<BlockPlace> pairs;
    std::vector<double> blocks;
    bool works = true;
    std::vector<int> rows;       // of its bodies in the matrix
    std::vector<int> label_set;  // ascending
  };
  std::vector<Known> parts_;
  std::vector<int> bodies_, own_labels_;
  BlockCholesky matrix_;
  std::vector<double> values_;
  int self_ = 0;
  bool takes_part_ = false;
};

}  // namespace lapjoint
