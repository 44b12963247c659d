#include "graph.h"

#include <algorithm>

namespace lapjoint {

GraphArrays build_graph(int body_count, const int* pairs, int pair_count) {
  // Bucket both directions by their first body, then sort and thin each small list.
  std::vector<int> fill(body_count + 1, 0);
  for (int i = 0; i < 2 * pair_count; ++i) ++fill[pairs[i] + 1];
  for (int b = 0; b < body_count; ++b) fill[b + 1] += fill[b];
  std::vector<int> begin = fill, raw(2 * static_cast<std::size_t>(pair_count));
  for (int i = 0; i < pair_count; ++i) {
    const int a = pairs[2 * i], b = pairs[2 * i + 1];
    raw[fill[a]++] = b;
    raw[fill[b]++] = a;
  }
  GraphArrays graph;
  graph.start.reserve(body_count + 1);
  graph.start.push_back(0);
  graph.neighbor.reserve(raw.size());
  for (int body = 0; body < body_count; ++body) {
    const auto first = raw.begin() + begin[body], last = raw.begin() + begin[body + 1];
    std::sort(first, last);
    const auto end = std::unique(first, last);
    for (auto it = first; it != end; ++it) {
      graph.neighbor.push_back(*it);
      if (body < *it) graph.edges.insert(graph.edges.end(), {body, *it});
    }
    graph.start.push_back(static_cast<int>(graph.neighbor.size()));
  }
  return graph;
}

}  // namespace lapjoint
