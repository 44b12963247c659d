// Algorithm 4. Twin: src/lapjoint/algorithms/blend.py
#pragma once

namespace lapjoint {

// Blends rows offset[k] to offset[k + 1] - 1 of worker_states into row body[k] of states.
void blend(int overlap_count, const int* offset, const double* weight, const double* worker_states, const int* body,
           double* states);

}  // namespace lapjoint
