// How deep bodies lie in their workers: the geodesic to the nearest body that a worker does not have.
#pragma once

#include <vector>

#include "algorithms/graph.h"
#include "algorithms/membership.h"

namespace lapjoint {

class Depths {
 public:
  // One search inwards from the rims of all workers together, as far as `limit` edges.
  Depths(const Graph& graph, const Membership& membership, int limit);

  // limit + 1 where it is deeper; 0 if the worker does not have the body, or did not when the depths were found.
  int of(int body, int worker) const {
    const Word* row = was(body);
    if (!(row[worker / 64] >> (worker % 64) & 1)) return 0;
    return depth_[slot(body, row, worker)];
  }

  // The body has left the worker: its neighbours there lie less deep now.
  void leave(int worker, int body);

 private:
  const Word* was(int body) const { return was_.data() + static_cast<std::size_t>(body) * words_; }
  int slot(int body, const Word* row, int worker) const {
    int place = start_[body];
    for (int i = 0; i < worker / 64; ++i) place += std::popcount(row[i]);
    return place + std::popcount(row[worker / 64] & ((Word{1} << (worker % 64)) - 1));
  }
  struct Reached {
    int body, worker;
  };
  void spread(int depth);  // from the bodies in queue_, whose neighbours have at most this depth

  Graph graph_;
  int words_, limit_;
  std::vector<Word> was_;  // the membership that the slots are for
  std::vector<int> start_, depth_;
  std::vector<Reached> queue_, next_;
};

}  // namespace lapjoint
