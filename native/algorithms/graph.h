// The constraint graph as neighbour lists. Twin: src/lapjoint/algorithms/graph.py
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lapjoint {

// Neighbours of body b, ascending: neighbor[start[b]] to neighbor[start[b + 1] - 1].
struct Graph {
  int body_count = 0;
  const int* start = nullptr;
  const int* neighbor = nullptr;
};

struct GraphArrays {
  std::vector<int> start, neighbor;
  std::vector<int> edges, contacts;  // all edges, and those with a contact: pairs a < b, ascending
};

// From pairs of bodies in any order, with repetitions; `contacts` are several lists, whose pairs with a static body
// (a negative number) are left out. A body that does not exist, or is joined to itself, is an std::invalid_argument.
GraphArrays build_graph(int body_count, std::span<const int> joints, const std::vector<std::span<const int>>& contacts);

// Breadth-first search: nearest first, ascending among neighbours. One object serves many searches.
class Search {
 public:
  explicit Search(const Graph& graph) : graph_(graph) {}

  // Calls visit(body, geodesic) for every body within `depth` edges of root, root included; stops when it returns
  // false.
  template <typename Visit>
  void within(int root, int depth, Visit&& visit) {
    if (seen_.empty()) seen_.resize(graph_.body_count);
    if (++stamp_ == 0) {
      seen_.assign(seen_.size(), 0);
      stamp_ = 1;
    }
    queue_.clear();
    queue_.push_back(root);
    seen_[root] = stamp_;
    if (!visit(root, 0)) return;
    std::size_t begin = 0;
    for (int distance = 1; distance <= depth && begin < queue_.size(); ++distance) {
      const std::size_t end = queue_.size();
      for (; begin < end; ++begin) {
        const int body = queue_[begin];
        for (int k = graph_.start[body]; k < graph_.start[body + 1]; ++k) {
          const int near = graph_.neighbor[k];
          if (seen_[near] == stamp_) continue;
          seen_[near] = stamp_;
          queue_.push_back(near);
          if (!visit(near, distance)) return;
        }
      }
    }
  }

 private:
  Graph graph_;
  std::vector<std::uint32_t> seen_;
  std::vector<int> queue_;
  std::uint32_t stamp_ = 0;
};

}  // namespace lapjoint
