#include "algorithms/weights.h"

#include <algorithm>
#include <optional>

#include "algorithms/depths.h"

namespace lapjoint {

void compute_weights(int search_depth, const Graph& graph, const Membership& membership, const int* overlap,
                     int overlap_count, const int* offset, int* worker, double* weight) {
  Search search(graph);
  for (int k = 0; k < overlap_count; ++k) {
    const Workers own = membership.workers(overlap[k]);
    int* const workers = worker + offset[k];
    double* const inverse = weight + offset[k];
    int count = 0;
    own.each([&](int w) {
      workers[count] = w;
      inverse[count++] = 0;  // line 2
    });
    int missing = count;
    search.within(overlap[k], search_depth, [&](int near, int geodesic) {
      if (geodesic == 0 || membership.worker_count_of(near) != 1 || !own.contains(membership.row(near))) return true;
      for (int i = 0; i < count; ++i) {
        if (!membership.workers(near).has(workers[i])) continue;
        if (inverse[i] == 0) {          // the nearest counts
          inverse[i] = 1.0 / geodesic;  // line 8
          --missing;
        }
        break;
      }
      return missing > 0;  // line 12
    });
    double total = 0;
    for (int i = 0; i < count; ++i) total += inverse[i];
    for (int i = 0; i < count; ++i) inverse[i] = total > 0 ? inverse[i] / total : 1.0 / count;  // line 14
  }
}

namespace {

// The depth of one body in each of its workers, by a search from it.
void search_depths(int body, const int* workers, int count, int search_depth, const Membership& membership,
                   Search& search, double* depth) {
  std::fill(depth, depth + count, 0);
  int missing = count;
  search.within(body, search_depth, [&](int near, int geodesic) {
    const Word* row = membership.row(near);
    for (int i = 0; i < count; ++i) {
      if (depth[i] != 0 || row[workers[i] / 64] >> (workers[i] % 64) & 1) continue;
      depth[i] = geodesic;
      --missing;
    }
    return missing > 0;
  });
  std::replace(depth, depth + count, 0.0, search_depth + 1.0);
}

}  // namespace

void depth_weights(int search_depth, const Graph& graph, const Membership& membership, const int* overlap,
                   int overlap_count, const int* offset, int* worker, double* weight) {
  // A thin overlap is searched body by body; for a wide one, all depths are found together.
  constexpr int kThin = 5;
  const bool thin = kThin * overlap_count < graph.body_count;
  std::optional<Depths> depths;
  if (!thin) depths.emplace(graph, membership, search_depth);
  Search search(graph);
  for (int k = 0; k < overlap_count; ++k) {
    const int first = offset[k], count = offset[k + 1] - first;
    int place = first;
    membership.workers(overlap[k]).each([&](int w) { worker[place++] = w; });
    if (thin)
      search_depths(overlap[k], worker + first, count, search_depth, membership, search, weight + first);
    else
      for (int i = first; i < first + count; ++i) weight[i] = depths->of(overlap[k], worker[i]);
    double total = 0;
    for (int i = first; i < first + count; ++i) total += weight[i];
    for (int i = first; i < first + count; ++i) weight[i] /= total;
  }
}

}  // namespace lapjoint
