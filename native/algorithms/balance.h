// Algorithms 6 and 7. Twin: src/lapjoint/algorithms/balance.py
#pragma once

#include <vector>

#include "algorithms/graph.h"
#include "algorithms/membership.h"

namespace lapjoint {

enum class Balance { kPrinted, kGuarded, kPruned };

struct BalanceRules {
  int growth_depth = 0;
  Balance mode = Balance::kPruned;
  const bool* jointed = nullptr;  // per body: has it a joint to another?
  int linger = 0;  // a body that came back within so many steps waits as many, free to leave, before it leaves again
  int* must_wait = nullptr;   // per body: how many steps it has to wait still; brought up to date
  int* since_left = nullptr;  // per body: how many steps ago it left a worker, up to `linger`; brought up to date
};

// Returns the bodies that left a worker, ascending.
std::vector<int> balance(const int* contacts, int contact_count, const Graph& graph, Membership& membership,
                         const BalanceRules& rules);

}  // namespace lapjoint
