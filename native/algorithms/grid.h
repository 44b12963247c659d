// A uniform grid over boxes, hashed: bodies come and go one by one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace lapjoint {

class Grid {
 public:
  // Cells of this edge. A box over more cells than a limit is kept apart, and meets every body.
  Grid(int body_count, double edge);

  void insert(int body, const float* low, const float* high);  // takes it out first where it is in
  void clear();
  // Calls meet(other) once for each body whose box has a cell in common with this one's.
  template <typename Meet>
  void each_near(int body, Meet&& meet) const {
    if (is_large_[body]) {
      for (int other = 0; other < static_cast<int>(cells_.size()); ++other)
        if (other != body) meet(other);
      return;
    }
    const Cells& own = cells_[body];
    each_cell(own, [&](std::uint64_t key, int x, int y, int z) {
      for (int e = head_[slot_of(key)]; e >= 0; e = entries_[e].next) {
        const int other = entries_[e].body;
        if (entries_[e].cell != key || other == body) continue;
        // Boxes with several cells in common meet in the first of them only.
        const Cells& c = cells_[other];
        if (std::max(own[0], c[0]) == x && std::max(own[1], c[1]) == y && std::max(own[2], c[2]) == z) meet(other);
      }
    });
    for (const int other : large_) meet(other);
  }

  // Calls visit(bodies, meet) for each place of the hash table that has two bodies or more. meet(i, j) says whether the
  // i-th and the j-th of them have a cell in common here that is the first of all they have in common.
  template <typename Visit>
  void each_bucket(Visit&& visit) const {
    std::vector<int> bodies;
    std::vector<std::uint64_t> keys;
    for (const int first : head_) {
      if (first < 0 || entries_[first].next < 0) continue;
      bodies.clear();
      keys.clear();
      for (int e = first; e >= 0; e = entries_[e].next) {
        bodies.push_back(entries_[e].body);
        keys.push_back(entries_[e].cell);
      }
      visit(bodies, [&](std::size_t i, std::size_t j) {
        if (keys[i] != keys[j]) return false;
        const Cells &p = cells_[bodies[i]], &q = cells_[bodies[j]];
        return key_of(std::max(p[0], q[0]), std::max(p[1], q[1]), std::max(p[2], q[2])) == keys[i];
      });
    }
  }
  const std::vector<int>& large() const { return large_; }  // they are in no bucket

 private:
  using Cells = std::array<int, 6>;  // first and last, x y z
  struct Entry {
    std::uint64_t cell;
    int body;
    int next;
  };

  std::size_t slot_of(std::uint64_t key) const { return (key * 0x9E3779B97F4A7C15ull >> 32) & (head_.size() - 1); }
  static std::uint64_t key_of(int x, int y, int z) {
    constexpr std::uint64_t kBits = 21, kMask = (1u << kBits) - 1;
    return (static_cast<std::uint64_t>(x) & kMask) << (2 * kBits) | (static_cast<std::uint64_t>(y) & kMask) << kBits |
           (static_cast<std::uint64_t>(z) & kMask);
  }
  template <typename Visit>
  static void each_cell(const Cells& c, Visit&& visit) {
    for (int x = c[0]; x <= c[3]; ++x)
      for (int y = c[1]; y <= c[4]; ++y)
        for (int z = c[2]; z <= c[5]; ++z) visit(key_of(x, y, z), x, y, z);
  }
  void remove(int body);

  double per_cell_;  // cells per metre
  std::vector<Cells> cells_;
  std::vector<int> head_;  // by hash of the cell
  std::vector<Entry> entries_;
  std::vector<int> free_;  // entries
  std::vector<int> large_;
  std::vector<char> is_in_, is_large_;
};

}  // namespace lapjoint
