// Numbers that all workers tell each other within a step.
#pragma once

#include <cstdint>
#include <vector>

#include "exchange/mailboxes.h"

namespace lapjoint {

// Sends all workers the same numbers, and returns those of each, own ones included.
std::vector<std::vector<std::int32_t>> exchange_numbers(Mailboxes& mailboxes, const std::vector<std::int32_t>& own);

}  // namespace lapjoint
