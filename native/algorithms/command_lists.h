// What changes for each worker before a step. Twin: src/lapjoint/algorithms/command_lists.py
#pragma once

#include <vector>

#include "algorithms/membership.h"

namespace lapjoint {

// Worker w's values: value[start[w]] to value[start[w + 1] - 1].
struct ByWorker {
  std::vector<int> start, value;
};

struct CommandLists {
  ByWorker activate, deactivate;  // bodies that the worker has now and had not (`known`), or the other way round
  ByWorker reset;                 // of the bodies to reset, those that the worker had and has
  ByWorker slot;                  // places in `worker`, the workers of all overlap bodies, where it stands
};

CommandLists command_lists(const Membership& membership, const Word* known, int worker_count, const int* reset,
                           int reset_count, const int* worker, int slot_count);

}  // namespace lapjoint
