#include "measures/state_rows.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace lapjoint {

namespace {

constexpr std::uint64_t kExponent = 0x7FF0000000000000;  // all ones in what is not finite, and only there

}  // namespace

void copy_rows(const double* from, double* to, int width, const int* rows, std::size_t count) {
  for (std::size_t i = 0; i < count;) {
    std::size_t end = i + 1;  // of a run of rows that follow each other
    while (end < count && rows[end] == rows[end - 1] + 1) ++end;
    const std::size_t place = static_cast<std::size_t>(rows[i]) * width;
    std::memcpy(to + place, from + place, (end - i) * width * sizeof(double));
    i = end;
  }
}

std::vector<int> find_not_finite(const double* table, int width, const int* rows, std::size_t count) {
  std::vector<int> found;
  for (std::size_t i = 0; i < count; ++i) {
    const double* row = table + static_cast<std::size_t>(rows[i]) * width;
    bool finite = true;  // without a jump, so that several numbers are looked at at once
    for (int k = 0; k < width; ++k) finite &= (std::bit_cast<std::uint64_t>(row[k]) & kExponent) != kExponent;
    if (!finite) found.push_back(rows[i]);
  }
  return found;
}

}  // namespace lapjoint
