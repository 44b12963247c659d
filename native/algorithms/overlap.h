// Algorithms 2 and 3. Twin: src/lapjoint/algorithms/overlap.py
#pragma once

#include "algorithms/graph.h"
#include "algorithms/membership.h"

namespace lapjoint {

void assign_overlap(int growth_depth, const Graph& graph, Membership& membership);
void grow_overlap(int root, int growth_depth, const Workers& workers, Search& search, Membership& membership);

}  // namespace lapjoint
