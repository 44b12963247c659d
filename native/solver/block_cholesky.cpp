#include "solver/block_cholesky.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <tuple>

#include "solver/block_row.h"

namespace lapjoint {

namespace {

constexpr int kSide = BlockCholesky::kSide, kBlock = BlockCholesky::kBlock;

// a = l l^T, in place, with the inverse of what l has on its diagonal; what is above it is left as it was.
LAPJOINT_ALWAYS_INLINE bool factor_block(double* a) {
  for (int j = 0; j < kSide; ++j) {
    double square = a[kSide * j + j];
    for (int k = 0; k < j; ++k) square -= a[kSide * j + k] * a[kSide * j + k];
    if (!(square > 0)) return false;
    const double inverse = 1 / std::sqrt(square);
    a[kSide * j + j] = inverse;
    for (int i = j + 1; i < kSide; ++i) {
      double sum = a[kSide * i + j];
      for (int k = 0; k < j; ++k) sum -= a[kSide * i + k] * a[kSide * j + k];
      a[kSide * i + j] = sum * inverse;
    }
  }
  return true;
}

// l x = b, in place.
LAPJOINT_ALWAYS_INLINE void divide_block(const double* l, double* b) {
  BlockRow rows[kSide];
  for (int j = 0; j < kSide; ++j) {
    rows[j].read(b + kSide * j);
    for (int k = 0; k < j; ++k) rows[j].subtract(l[kSide * j + k], rows[k]);
    rows[j].multiply(l[kSide * j + j]);
    rows[j].write(b + kSide * j);
  }
}

// c -= a^T b
LAPJOINT_ALWAYS_INLINE void subtract_product(const double* a, const double* b, double* c) {
  BlockRow rows[kSide];
  for (int k = 0; k < kSide; ++k) rows[k].read(b + kSide * k);
  for (int j = 0; j < kSide; ++j) {
    BlockRow left;
    left.read(c + kSide * j);
    for (int k = 0; k < kSide; ++k) left.subtract(a[kSide * k + j], rows[k]);
    left.write(c + kSide * j);
  }
}

}  // namespace

bool BlockCholesky::analyse(const std::vector<char>& kept, const std::vector<std::pair<int, int>>& pairs, long limit) {
  const int row_count = row_count_ = static_cast<int>(kept.size());
  kept_from_ = static_cast<int>(std::count(kept.begin(), kept.end(), 0));
  std::vector<std::vector<int>> near(row_count);
  for (const auto& [a, b] : pairs) {
    near[a].push_back(b);
    near[b].push_back(a);
  }
  std::set<std::tuple<bool, std::size_t, int>> waiting;
  const auto key = [&](int row) { return std::tuple(kept[row] != 0, near[row].size(), row); };
  for (int row = 0; row < row_count; ++row) {
    std::sort(near[row].begin(), near[row].end());
    near[row].erase(std::unique(near[row].begin(), near[row].end()), near[row].end());
    waiting.insert(key(row));
  }
  place_.assign(row_count, 0);
  row_at_.clear();
  std::vector<int> joined;
  long work = 0;
  while (!waiting.empty()) {
    const int row = std::get<2>(*waiting.begin());
    waiting.erase(waiting.begin());
    const long below = static_cast<long>(near[row].size());
    if ((work += below * (below + 1) / 2) > limit) return false;
    place_[row] = static_cast<int>(row_at_.size());
    row_at_.push_back(row);
    for (const int other : near[row]) {
      waiting.erase(key(other));
      joined.clear();
      std::set_union(near[other].begin(), near[other].end(), near[row].begin(), near[row].end(),
                     std::back_inserter(joined));
      joined.erase(std::remove_if(joined.begin(), joined.end(), [&](int i) { return i == row || i == other; }),
                   joined.end());
      near[other] = joined;
      waiting.insert(key(other));
    }
  }

  start_.assign(1, 0);
  later_.clear();
  for (const int row : row_at_) {
    for (const int other : near[row]) later_.push_back(place_[other]);
    std::sort(later_.begin() + start_.back(), later_.end());
    start_.push_back(static_cast<int>(later_.size()));
  }
  targets_.clear();
  for (int at = 0; at < row_count; ++at)
    for (int i = start_[at]; i < start_[at + 1]; ++i)
      for (int k = start_[at]; k <= i; ++k) {
        const int row = later_[i], column = later_[k];
        const auto first = later_.begin() + start_[column], last = later_.begin() + start_[column + 1];
        targets_.push_back(i == k ? -1 - row : static_cast<int>(std::lower_bound(first, last, row) - later_.begin()));
      }
  diagonal_.resize(static_cast<std::size_t>(kBlock) * row_count);
  upper_.resize(kBlock * later_.size());
  return true;
}

void BlockCholesky::clear() {
  std::fill(diagonal_.begin(), diagonal_.end(), 0.0);
  std::fill(upper_.begin(), upper_.end(), 0.0);
}

double* BlockCholesky::block(int row, int column) {
  const int i = place_[row], k = place_[column];
  if (i == k) return &diagonal_[static_cast<std::size_t>(kBlock) * i];
  const auto first = later_.begin() + start_[i], last = later_.begin() + start_[i + 1];
  return &upper_[kBlock * (std::lower_bound(first, last, k) - later_.begin())];
}

bool BlockCholesky::factor() { return factor_until(row_count_); }
bool BlockCholesky::factor_others() { return factor_until(kept_from_); }

LAPJOINT_WIDER bool BlockCholesky::factor_until(int end) {
  const int* target = targets_.data();
  for (int at = 0; at <= end; ++at) {
    if (at == kept_from_) {
      kept_diagonal_.assign(diagonal_.begin() + static_cast<std::ptrdiff_t>(kBlock) * at, diagonal_.end());
      kept_upper_.assign(upper_.begin() + static_cast<std::ptrdiff_t>(kBlock) * start_[at], upper_.end());
    }
    if (at == end) break;
    double* diagonal = &diagonal_[static_cast<std::size_t>(kBlock) * at];
    if (!factor_block(diagonal)) return false;
    for (int i = start_[at]; i < start_[at + 1]; ++i) {
      double* own = &upper_[static_cast<std::size_t>(kBlock) * i];
      divide_block(diagonal, own);
      for (int k = start_[at]; k <= i; ++k, ++target) {
        double* out = *target < 0 ? &diagonal_[static_cast<std::size_t>(kBlock) * (-1 - *target)]
                                  : &upper_[static_cast<std::size_t>(kBlock) * *target];
        subtract_product(&upper_[static_cast<std::size_t>(kBlock) * k], own, out);
      }
    }
  }
  return true;
}

// For as many right sides as there are, of one body after the other.
template <int kSides>
LAPJOINT_ALWAYS_INLINE void BlockCholesky::go_forward(double* values, int end) const {
  constexpr int kSize = kSides * kSide;
  for (int at = 0; at < end; ++at) {
    const double* l = &diagonal_[static_cast<std::size_t>(kBlock) * at];
    double* own = values + kSize * static_cast<std::size_t>(row_at_[at]);
    for (int side = 0; side < kSides; ++side)
      for (int i = 0; i < kSide; ++i) {
        double left = own[kSide * side + i];
        for (int k = 0; k < i; ++k) left -= l[kSide * i + k] * own[kSide * side + k];
        own[kSide * side + i] = left * l[kSide * i + i];
      }
    for (int b = start_[at]; b < start_[at + 1]; ++b) {
      const double* block = &upper_[static_cast<std::size_t>(kBlock) * b];
      double* other = values + kSize * static_cast<std::size_t>(row_at_[later_[b]]);
      BlockRow left[kSides];
      for (int side = 0; side < kSides; ++side) left[side].read(other + kSide * side);
      for (int k = 0; k < kSide; ++k) {
        BlockRow row;
        row.read(block + kSide * k);
        for (int side = 0; side < kSides; ++side) left[side].subtract(own[kSide * side + k], row);
      }
      for (int side = 0; side < kSides; ++side) left[side].write(other + kSide * side);
    }
  }
}

template <int kSides>
LAPJOINT_ALWAYS_INLINE void BlockCholesky::go_back(double* values, int end) const {
  constexpr int kSize = kSides * kSide;
  for (int at = end - 1; at >= 0; --at) {
    const double* l = &diagonal_[static_cast<std::size_t>(kBlock) * at];
    double* own = values + kSize * static_cast<std::size_t>(row_at_[at]);
    for (int side = 0; side < kSides; ++side) {
      BlockRow sums[kSide];
      for (BlockRow& sum : sums) {
        const double zeros[kSide] = {};
        sum.read(zeros);
      }
      for (int b = start_[at]; b < start_[at + 1]; ++b) {
        const double* block = &upper_[static_cast<std::size_t>(kBlock) * b];
        BlockRow other;
        other.read(values + kSize * static_cast<std::size_t>(row_at_[later_[b]]) + kSide * side);
        for (int k = 0; k < kSide; ++k) {
          BlockRow row;
          row.read(block + kSide * k);
          sums[k].add_product(row, other);
        }
      }
      double* mine = own + kSide * side;
      for (int i = kSide - 1; i >= 0; --i) {
        double left = mine[i] - sums[i].sum();
        for (int k = i + 1; k < kSide; ++k) left -= l[kSide * k + i] * mine[k];
        mine[i] = left * l[kSide * i + i];
      }
    }
  }
}

template <int kSides>
LAPJOINT_ALWAYS_INLINE void BlockCholesky::solve_sides(double* values) const {
  go_forward<kSides>(values, row_count_);
  go_back<kSides>(values, row_count_);
}

LAPJOINT_WIDER void BlockCholesky::eliminate(double* values, int sides) const {
  sides == 1 ? go_forward<1>(values, kept_from_) : go_forward<2>(values, kept_from_);
}

LAPJOINT_WIDER void BlockCholesky::substitute(double* values, int sides) const {
  sides == 1 ? go_back<1>(values, kept_from_) : go_back<2>(values, kept_from_);
}

LAPJOINT_WIDER void BlockCholesky::solve_one(double* values) const { solve_sides<1>(values); }
LAPJOINT_WIDER void BlockCholesky::solve_two(double* values) const { solve_sides<2>(values); }

}  // namespace lapjoint
