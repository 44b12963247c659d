// Six numbers at once: a row of a 6 x 6 block.
#pragma once

#include <algorithm>

// Compiled twice, for processors with registers of 32 bytes too; which one runs is decided when the program starts.
// Numbers come out the same: nothing is added up in another order, and nothing is fused.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define LAPJOINT_WIDER __attribute__((target_clones("avx2", "default")))
#define LAPJOINT_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define LAPJOINT_WIDER
#define LAPJOINT_ALWAYS_INLINE inline
#endif

namespace lapjoint {

#if defined(__GNUC__)
// A row of a block, in two registers.
struct BlockRow {
  using Four = double __attribute__((vector_size(32), aligned(8), may_alias));
  using Two = double __attribute__((vector_size(16), aligned(8), may_alias));
  Four first;
  Two last;

  LAPJOINT_ALWAYS_INLINE void read(const double* from) {
    first = *reinterpret_cast<const Four*>(from);
    last = *reinterpret_cast<const Two*>(from + 4);
  }
  LAPJOINT_ALWAYS_INLINE void write(double* into) const {
    *reinterpret_cast<Four*>(into) = first;
    *reinterpret_cast<Two*>(into + 4) = last;
  }
  LAPJOINT_ALWAYS_INLINE void subtract(double factor, const BlockRow& other) {
    first -= factor * other.first;
    last -= factor * other.last;
  }
  LAPJOINT_ALWAYS_INLINE void add(double factor, const BlockRow& other) {
    first += factor * other.first;
    last += factor * other.last;
  }
  LAPJOINT_ALWAYS_INLINE void multiply(double factor) {
    first *= factor;
    last *= factor;
  }
  LAPJOINT_ALWAYS_INLINE void add_product(const BlockRow& a, const BlockRow& b) {
    first += a.first * b.first;
    last += a.last * b.last;
  }
  LAPJOINT_ALWAYS_INLINE double sum() const {
    return ((first[0] + first[1]) + (first[2] + first[3])) + (last[0] + last[1]);
  }
};
#else
struct BlockRow {
  double at[6];

  void read(const double* from) { std::copy(from, from + 6, at); }
  void write(double* into) const { std::copy(at, at + 6, into); }
  void subtract(double factor, const BlockRow& other) {
    for (int i = 0; i < 6; ++i) at[i] -= factor * other.at[i];
  }
  void add(double factor, const BlockRow& other) {
    for (int i = 0; i < 6; ++i) at[i] += factor * other.at[i];
  }
  void multiply(double factor) {
    for (double& one : at) one *= factor;
  }
  void add_product(const BlockRow& a, const BlockRow& b) {
    for (int i = 0; i < 6; ++i) at[i] += a.at[i] * b.at[i];
  }
  double sum() const { return ((at[0] + at[1]) + (at[2] + at[3])) + (at[4] + at[5]); }
};
#endif

}  // namespace lapjoint
