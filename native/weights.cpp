#include "weights.h"

#include "depths.h"

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

void depth_weights(int search_depth, const Graph& graph, const Membership& membership, const int* overlap,
                   int overlap_count, const int* offset, int* worker, double* weight) {
  if (overlap_count == 0) return;
  const Depths depths(graph, membership, search_depth);
  for (int k = 0; k < overlap_count; ++k) {
    int place = offset[k];
    double total = 0;
    membership.workers(overlap[k]).each([&](int w) {
      worker[place] = w;
      weight[place] = depths.of(overlap[k], w);
      total += weight[place++];
    });
    for (int i = offset[k]; i < place; ++i) weight[i] /= total;
  }
}

}  // namespace lapjoint
