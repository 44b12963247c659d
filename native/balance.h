// Algorithms 6 and 7. Twin: src/lapjoint/algorithms/balance.py
#pragma once

#include <vector>

#include "graph.h"
#include "membership.h"

namespace lapjoint {

enum class Balance { kPrinted, kGuarded, kPruned };

// `jointed` says of every body whether it has a joint to another. Returns the bodies that left a worker, ascending.
std::vector<int> balance(const int* contacts, int contact_count, int growth_depth, const Graph& graph,
                         Membership& membership, Balance mode, const bool* jointed);

}  // namespace lapjoint
