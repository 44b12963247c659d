#include "algorithms/grid.h"

#include <algorithm>
#include <bit>

namespace lapjoint {

namespace {

constexpr int kMostCells = 64;

// std::floor is a call on the x86-64 baseline.
int floor_to_int(double x) {
  const int truncated = static_cast<int>(x);
  return truncated - (truncated > x);
}

}  // namespace

Grid::Grid(int body_count, double edge)
    : per_cell_(1 / edge),
      cells_(body_count),
      head_(std::bit_ceil(4 * static_cast<std::size_t>(std::max(body_count, 1))), -1),
      is_in_(body_count),
      is_large_(body_count) {}

void Grid::insert(int body, const float* low, const float* high) {
  Cells now;
  double count = 1;
  for (int i = 0; i < 3; ++i) {
    now[i] = floor_to_int(std::clamp(low[i] * per_cell_, -1e9, 1e9));
    now[3 + i] = floor_to_int(std::clamp(high[i] * per_cell_, -1e9, 1e9));
    count *= 1.0 + now[3 + i] - now[i];
  }
  if (is_in_[body] && !is_large_[body] && now == cells_[body]) return;
  if (is_in_[body]) remove(body);
  cells_[body] = now;
  is_in_[body] = true;
  is_large_[body] = count > kMostCells;
  if (is_large_[body]) {
    large_.push_back(body);
    return;
  }
  each_cell(now, [&](std::uint64_t key, int, int, int) {
    int& head = head_[slot_of(key)];
    int entry = static_cast<int>(entries_.size());
    if (free_.empty()) {
      entries_.emplace_back();
    } else {
      entry = free_.back();
      free_.pop_back();
    }
    entries_[entry] = {key, body, head};
    head = entry;
  });
}

void Grid::clear() {
  std::fill(head_.begin(), head_.end(), -1);
  std::fill(is_in_.begin(), is_in_.end(), 0);
  entries_.clear();
  free_.clear();
  large_.clear();
}

void Grid::remove(int body) {
  if (is_large_[body]) {
    large_.erase(std::find(large_.begin(), large_.end(), body));
    return;
  }
  each_cell(cells_[body], [&](std::uint64_t key, int, int, int) {
    int* link = &head_[slot_of(key)];
    while (entries_[*link].body != body || entries_[*link].cell != key) link = &entries_[*link].next;
    const int entry = *link;
    *link = entries_[entry].next;
    free_.push_back(entry);
  });
}

}  // namespace lapjoint
