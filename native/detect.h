// Pairs of bodies that no worker sees together, found on the server over a uniform grid.
// Twin: src/lapjoint/algorithms/near_pairs.py
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "membership.h"

namespace lapjoint {

// What never changes about the bodies.
struct BodyBounds {
  int body_count = 0;
  const double* center = nullptr;  // x 3, of each body's box, in its own frame [m]
  const double* half = nullptr;    // x 3, half edges of that box [m]
  const double* radius = nullptr;  // of each body's sphere about its position [m]
  const std::uint32_t* group = nullptr;
  const std::uint32_t* mask = nullptr;
  const std::int64_t* ignored = nullptr;  // a * body_count + b with a < b, ascending
  int ignored_count = 0;
};

// Two bodies are near when their boxes along the world's axes and their spheres, each wider by `margin`, overlap.
class PairFinder {
 public:
  using Pair = std::array<int, 2>;

  PairFinder(const BodyBounds& bodies, double margin);

  // All near pairs a < b that share no worker, ascending.
  std::vector<Pair> find(const double* states, const Membership& membership);

  // Of the pairs near at the last find: those that share no worker now and have one of these bodies, ascending.
  std::vector<Pair> find_again(const int* changed, int count, const Membership& membership) const;

 private:
  struct Box {
    float low[3], high[3];
    float position[3], radius;
  };
  struct Entry {
    std::uint64_t cell;
    int body;
    int next;
  };

  void place(const double* states);
  void insert(int body);
  template <typename Visit>
  void each_cell(int body, Visit&& visit) const;
  void consider(int a, int b, std::vector<Pair>& out) const;

  BodyBounds bodies_;
  double margin_;
  double per_cell_;  // cells per metre
  std::vector<Box> boxes_;
  std::vector<std::array<int, 6>> cells_;  // first and last cell of each body, x y z
  std::vector<int> head_;                  // by hash of the cell
  std::vector<Entry> entries_;
  std::vector<int> large_;
  std::vector<char> is_large_;
};

}  // namespace lapjoint
