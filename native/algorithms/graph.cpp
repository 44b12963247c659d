#include "algorithms/graph.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace lapjoint {

namespace {

// Lists are short and nearly sorted.
void insertion_sort(int* first, int* last) {
  for (int* i = first + 1; i < last; ++i) {
    const int value = *i;
    int* j = i;
    for (; j > first && j[-1] > value; --j) *j = j[-1];
    *j = value;
  }
}

[[noreturn]] void refuse(int body_count) {
  throw std::invalid_argument("an edge joins a body to itself or to one that is not among the " +
                              std::to_string(body_count) + " bodies");
}

template <typename Visit>
void each_pair(int body_count, std::span<const int> pairs, Visit&& visit) {
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const int a = pairs[i], b = pairs[i + 1];
    if (b < 0 && a >= 0) continue;  // a static body
    if (a < 0 || a >= body_count || b >= body_count || a == b) refuse(body_count);
    visit(a, b);
  }
}

}  // namespace

GraphArrays build_graph(int body_count, std::span<const int> joints,
                        const std::vector<std::span<const int>>& contacts) {
  // Bucket both directions by their first body; in the lowest bit: a joint. Then sort and thin each short list.
  std::vector<int> fill(body_count + 1, 0);
  for (const int body : joints)
    if (body < 0) refuse(body_count);
  const auto count = [&](int a, int b) { ++fill[a], ++fill[b]; };
  each_pair(body_count, joints, count);
  for (const auto& list : contacts) each_pair(body_count, list, count);
  int total = 0;
  for (int& begin : fill) total += std::exchange(begin, total);
  std::vector<int> raw(total);
  each_pair(body_count, joints, [&](int a, int b) {
    raw[fill[a]++] = 2 * b + 1;
    raw[fill[b]++] = 2 * a + 1;
  });
  for (const auto& list : contacts)
    each_pair(body_count, list, [&](int a, int b) {
      raw[fill[a]++] = 2 * b;
      raw[fill[b]++] = 2 * a;
    });
  GraphArrays graph;  // the list of body b ends at fill[b] now
  graph.start.reserve(body_count + 1);
  graph.start.push_back(0);
  graph.neighbor.reserve(raw.size());
  graph.edges.reserve(raw.size());
  graph.contacts.reserve(raw.size());
  int begin = 0;
  for (int body = 0; body < body_count; ++body) {
    const int end = fill[body];
    insertion_sort(raw.data() + begin, raw.data() + end);
    for (int last = -1, i = begin; i < end; ++i) {
      const int near = raw[i] / 2;
      if (near == last) continue;
      last = near;
      graph.neighbor.push_back(near);
      if (body >= near) continue;
      graph.edges.push_back(body), graph.edges.push_back(near);
      // A contact sorts before a joint of the same pair.
      if (!(raw[i] & 1)) graph.contacts.push_back(body), graph.contacts.push_back(near);
    }
    graph.start.push_back(static_cast<int>(graph.neighbor.size()));
    begin = end;
  }
  return graph;
}

}  // namespace lapjoint
