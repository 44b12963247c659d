// Which of some numbers belong together. Each set goes by its lowest number.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "assertions.h"

namespace lapjoint {

class UnionFind {
 public:
  explicit UnionFind(std::size_t count) : parents_(count) { std::iota(parents_.begin(), parents_.end(), 0); }
  int find(int one) {
    LAPJOINT_ASSERT(one >= 0 && one < static_cast<int>(parents_.size()));
    while (parents_[one] != one) one = parents_[one] = parents_[parents_[one]];
    return one;
  }
  void unite(int a, int b) {
    a = find(a), b = find(b);
    parents_[std::max(a, b)] = std::min(a, b);
    LAPJOINT_ASSERT(parents_[a] <= a && parents_[b] <= b);  // a set goes by its lowest number
  }

 private:
  std::vector<int> parents_;
};

}  // namespace lapjoint
