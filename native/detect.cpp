#include "detect.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lapjoint {

namespace {

constexpr int kMostCells = 64;           // a body in more cells than this is compared with all others instead
constexpr double kBodiesPerCell = 1.75;  // edge of a cell, in typical bodies

std::uint64_t cell_key(int x, int y, int z) {
  constexpr std::uint64_t kBits = 21, kMask = (1u << kBits) - 1;
  return (static_cast<std::uint64_t>(x) & kMask) << (2 * kBits) | (static_cast<std::uint64_t>(y) & kMask) << kBits |
         (static_cast<std::uint64_t>(z) & kMask);
}

// std::floor is a call on the x86-64 baseline.
int floor_to_int(double x) {
  const int truncated = static_cast<int>(x);
  return truncated - (truncated > x);
}

std::size_t hash_of(std::uint64_t key, std::size_t mask) { return (key * 0x9E3779B97F4A7C15ull >> 32) & mask; }

}  // namespace

PairFinder::PairFinder(const BodyBounds& bodies, double margin)
    : bodies_(bodies),
      margin_(margin),
      boxes_(bodies.body_count),
      cells_(bodies.body_count),
      head_(std::bit_ceil(4 * static_cast<std::size_t>(std::max(bodies.body_count, 1)))),
      is_large_(bodies.body_count) {
  std::vector<double> extent(bodies.body_count);
  for (int b = 0; b < bodies.body_count; ++b)
    extent[b] = 2 * std::max({bodies.half[3 * b], bodies.half[3 * b + 1], bodies.half[3 * b + 2]}) + 2 * margin;
  double typical = 1;
  if (!extent.empty()) {
    const auto middle = extent.begin() + extent.size() / 2;
    std::nth_element(extent.begin(), middle, extent.end());
    typical = *middle;
  }
  per_cell_ = 1 / (kBodiesPerCell * typical);
}

// The box of every body along the world's axes.
void PairFinder::place(const double* states) {
  for (int b = 0; b < bodies_.body_count; ++b) {
    const double* s = states + 13 * static_cast<std::size_t>(b);
    const double w = s[3], x = s[4], y = s[5], z = s[6];
    const double r[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
                            {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
                            {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}};
    const double* c = bodies_.center + 3 * b;
    const double* h = bodies_.half + 3 * b;
    Box& box = boxes_[b];
    for (int i = 0; i < 3; ++i) {
      const double middle = s[i] + r[i][0] * c[0] + r[i][1] * c[1] + r[i][2] * c[2];
      // No box is wider than the body's sphere.
      const double reach = std::min(std::abs(r[i][0]) * h[0] + std::abs(r[i][1]) * h[1] + std::abs(r[i][2]) * h[2],
                                    bodies_.radius[b] + std::abs(middle - s[i])) +
                           margin_;
      // Rounding to float must not make the box smaller.
      const double slack = 1e-6 * (std::abs(middle) + reach);
      box.low[i] = static_cast<float>(middle - reach - slack);
      box.high[i] = static_cast<float>(middle + reach + slack);
      box.position[i] = static_cast<float>(s[i]);
      cells_[b][i] = floor_to_int(box.low[i] * per_cell_);
      cells_[b][3 + i] = floor_to_int(box.high[i] * per_cell_);
    }
    const double far = std::abs(s[0]) + std::abs(s[1]) + std::abs(s[2]);
    box.radius = static_cast<float>(bodies_.radius[b] + margin_ + 1e-6 * far);
  }
}

template <typename Visit>
void PairFinder::each_cell(int body, Visit&& visit) const {
  const auto& c = cells_[body];
  for (int x = c[0]; x <= c[3]; ++x)
    for (int y = c[1]; y <= c[4]; ++y)
      for (int z = c[2]; z <= c[5]; ++z) visit(cell_key(x, y, z));
}

void PairFinder::insert(int body) {
  const auto& c = cells_[body];
  std::int64_t count = 1;
  for (int i = 0; i < 3; ++i) count *= c[3 + i] - c[i] + 1;
  is_large_[body] = count > kMostCells;
  if (is_large_[body]) {
    large_.push_back(body);
    return;
  }
  each_cell(body, [&](std::uint64_t key) {
    int& head = head_[hash_of(key, head_.size() - 1)];
    entries_.push_back({key, body, head});
    head = static_cast<int>(entries_.size()) - 1;
  });
}

// Adds the pair if it is near and may touch; its bodies share no worker.
void PairFinder::consider(int a, int b, std::vector<Pair>& out) const {
  const Box &p = boxes_[a], &q = boxes_[b];
  float square = 0;
  for (int i = 0; i < 3; ++i) {
    if (p.low[i] > q.high[i] || q.low[i] > p.high[i]) return;
    square += (p.position[i] - q.position[i]) * (p.position[i] - q.position[i]);
  }
  const float reach = p.radius + q.radius;
  if (square > reach * reach) return;
  if (!(bodies_.group[a] & bodies_.mask[b]) || !(bodies_.group[b] & bodies_.mask[a])) return;
  const int low = std::min(a, b), high = std::max(a, b);
  if (bodies_.ignored_count > 0) {
    const std::int64_t key = static_cast<std::int64_t>(low) * bodies_.body_count + high;
    if (std::binary_search(bodies_.ignored, bodies_.ignored + bodies_.ignored_count, key)) return;
  }
  out.push_back({low, high});
}

std::vector<PairFinder::Pair> PairFinder::find(const double* states, const Membership& membership) {
  place(states);
  std::fill(head_.begin(), head_.end(), -1);
  entries_.clear();
  large_.clear();
  for (int b = 0; b < bodies_.body_count; ++b) insert(b);
  std::vector<Pair> out;
  std::vector<Word> common(membership.words);
  struct Member {
    Word workers;  // the first 64
    std::uint64_t cell;
    int body;
  };
  std::vector<Member> bucket;
  for (const int first : head_) {
    if (first < 0 || entries_[first].next < 0) continue;
    // Most buckets lie inside one worker, which sees all their pairs.
    bucket.clear();
    std::copy_n(membership.row(entries_[first].body), membership.words, common.begin());
    for (int i = first; i >= 0; i = entries_[i].next) {
      const Word* row = membership.row(entries_[i].body);
      bucket.push_back({row[0], entries_[i].cell, entries_[i].body});
      for (int k = 0; k < membership.words; ++k) common[k] &= row[k];
    }
    if (std::any_of(common.begin(), common.end(), [](Word word) { return word != 0; })) continue;
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      const Member& a = bucket[i];
      for (std::size_t j = i + 1; j < bucket.size(); ++j) {
        const Member& b = bucket[j];
        if ((a.workers & b.workers) || a.cell != b.cell) continue;
        if (membership.words > 1 && membership.share(a.body, b.body)) continue;
        // Bodies that share several cells meet in the first of them only.
        const auto &p = cells_[a.body], &q = cells_[b.body];
        if (cell_key(std::max(p[0], q[0]), std::max(p[1], q[1]), std::max(p[2], q[2])) == a.cell)
          consider(a.body, b.body, out);
      }
    }
  }
  for (const int a : large_)
    for (int b = 0; b < bodies_.body_count; ++b)
      if (b != a && (!is_large_[b] || a < b) && !membership.share(a, b)) consider(a, b, out);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<PairFinder::Pair> PairFinder::find_again(const int* changed, int count,
                                                     const Membership& membership) const {
  std::vector<Pair> out;
  for (int i = 0; i < count; ++i) {
    const int a = changed[i];
    const auto meet = [&](int b) {
      if (b != a && !membership.share(a, b)) consider(a, b, out);
    };
    if (is_large_[a]) {
      for (int b = 0; b < bodies_.body_count; ++b) meet(b);
      continue;
    }
    each_cell(a, [&](std::uint64_t key) {
      for (int e = head_[hash_of(key, head_.size() - 1)]; e >= 0; e = entries_[e].next)
        if (entries_[e].cell == key) meet(entries_[e].body);
    });
    for (const int b : large_) meet(b);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace lapjoint
