// Algorithm 5. Twin: src/lapjoint/algorithms/weights.py
#pragma once

#include <vector>

#include "algorithms/graph.h"
#include "algorithms/membership.h"

namespace lapjoint {

// Fills worker and weight for each overlap body: entries offset[k] to offset[k + 1] - 1, workers ascending.
void compute_weights(int search_depth, const Graph& graph, const Membership& membership, const int* overlap,
                     int overlap_count, const int* offset, int* worker, double* weight);

// The same by depth: the geodesic to the nearest body that a worker does not have.
void depth_weights(int search_depth, const Graph& graph, const Membership& membership, const int* overlap,
                   int overlap_count, const int* offset, int* worker, double* weight);

}  // namespace lapjoint
