#include "algorithms/depths.h"

namespace lapjoint {

Depths::Depths(const Graph& graph, const Membership& membership, int limit)
    : graph_(graph),
      words_(membership.words),
      limit_(limit),
      was_(membership.bits, membership.bits + static_cast<std::size_t>(membership.body_count) * membership.words),
      start_(graph.body_count + 1) {
  for (int body = 0; body < graph.body_count; ++body)
    start_[body + 1] = start_[body] + membership.worker_count_of(body);
  depth_.assign(start_.back(), limit + 1);
  if (limit < 1) return;
  for (int body = 0; body < graph.body_count; ++body) {
    const Word* own = was(body);
    for (int k = graph.start[body]; k < graph.start[body + 1]; ++k) {
      const Word* other = was(graph.neighbor[k]);
      for (int i = 0; i < words_; ++i) {
        for (Word missing = own[i] & ~other[i]; missing; missing &= missing - 1) {
          const int worker = 64 * i + std::countr_zero(missing);
          int& depth = depth_[slot(body, own, worker)];
          if (depth == 1) continue;
          depth = 1;
          queue_.push_back({body, worker});
        }
      }
    }
  }
  spread(2);
}

void Depths::spread(int depth) {
  for (; depth <= limit_ && !queue_.empty(); ++depth) {
    next_.clear();
    for (const auto& [body, worker] : queue_) {
      for (int k = graph_.start[body]; k < graph_.start[body + 1]; ++k) {
        const int near = graph_.neighbor[k];
        const Word* row = was(near);
        if (!(row[worker / 64] >> (worker % 64) & 1)) continue;
        int& deep = depth_[slot(near, row, worker)];
        if (deep <= depth) continue;
        deep = depth;
        next_.push_back({near, worker});
      }
    }
    queue_.swap(next_);
  }
  queue_.clear();
}

void Depths::leave(int worker, int body) {
  const Word* row = was(body);
  if (!(row[worker / 64] >> (worker % 64) & 1)) return;
  depth_[slot(body, row, worker)] = 0;
  queue_.push_back({body, worker});
  spread(1);
}

}  // namespace lapjoint
