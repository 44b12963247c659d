// Which of some numbers belong together. Each set goes by its lowest number.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

namespace lapjoint {

class UnionFind {
 public:
  explicit UnionFind(std::size_t count) : parents_(count) { std::iota(parents_.begin(), parents_.end(), 0); }
  int find(int one) {
    while (parents_[one] != one) one = parents_[one] = parents_[parents_[one]];
    return one;
  }
  void unite(int a, int b) {
    a = find(a), b = find(b);
    parents_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<int> parents_;
};

}  // namespace lapjoint
