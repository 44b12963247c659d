#include "algorithms/blend.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lapjoint {

void blend(int overlap_count, const int* offset, const double* weight, const double* worker_states, const int* body,
           double* states) {
  constexpr int kSize = 13, kTurn = 3;
  for (int k = 0; k < overlap_count; ++k) {
    double sum[kSize] = {};
    const double* first = worker_states + static_cast<std::size_t>(kSize) * offset[k];
    for (int i = offset[k]; i < offset[k + 1]; ++i) {  // line 3
      const double* state = worker_states + static_cast<std::size_t>(kSize) * i;
      double dot = 0;
      for (int c = kTurn; c < kTurn + 4; ++c) dot += state[c] * first[c];
      const double turn_weight = dot >= 0 ? weight[i] : -weight[i];  // lines 7 to 9
      for (int c = 0; c < kSize; ++c) sum[c] += (c >= kTurn && c < kTurn + 4 ? turn_weight : weight[i]) * state[c];
    }
    double norm = 0;
    for (int c = kTurn; c < kTurn + 4; ++c) norm += sum[c] * sum[c];
    norm = std::sqrt(norm);
    for (int c = kTurn; c < kTurn + 4; ++c) sum[c] /= norm;  // line 12
    std::copy(sum, sum + kSize, states + static_cast<std::size_t>(kSize) * body[k]);
  }
}

}  // namespace lapjoint
