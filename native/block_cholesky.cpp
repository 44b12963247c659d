#include "block_cholesky.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <tuple>

namespace lapjoint {

namespace {

constexpr int kSide = BlockCholesky::kSide, kBlock = BlockCholesky::kBlock;

// a = l l^T, in place; what is above the diagonal is left as it was.
bool factor_block(double* a) {
  for (int j = 0; j < kSide; ++j) {
    double square = a[kSide * j + j];
    for (int k = 0; k < j; ++k) square -= a[kSide * j + k] * a[kSide * j + k];
    if (!(square > 0)) return false;
    const double root = std::sqrt(square), inverse = 1 / root;
    a[kSide * j + j] = root;
    for (int i = j + 1; i < kSide; ++i) {
      double sum = a[kSide * i + j];
      for (int k = 0; k < j; ++k) sum -= a[kSide * i + k] * a[kSide * j + k];
      a[kSide * i + j] = sum * inverse;
    }
  }
  return true;
}

// x l^T = b: each row of b, in place.
void divide_block(const double* l, double* b) {
  for (int r = 0; r < kSide; ++r, b += kSide)
    for (int j = 0; j < kSide; ++j) {
      double sum = b[j];
      for (int k = 0; k < j; ++k) sum -= b[k] * l[kSide * j + k];
      b[j] = sum / l[kSide * j + j];
    }
}

// c -= a b^T
void subtract_product(const double* a, const double* b, double* c) {
  double turned[kBlock];
  for (int i = 0; i < kSide; ++i)
    for (int j = 0; j < kSide; ++j) turned[kSide * j + i] = b[kSide * i + j];
  for (int i = 0; i < kSide; ++i)
    for (int k = 0; k < kSide; ++k) {
      const double factor = a[kSide * i + k];
      for (int j = 0; j < kSide; ++j) c[kSide * i + j] -= factor * turned[kSide * k + j];
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
  below_.clear();
  for (const int row : row_at_) {
    for (const int other : near[row]) below_.push_back(place_[other]);
    std::sort(below_.begin() + start_.back(), below_.end());
    start_.push_back(static_cast<int>(below_.size()));
  }
  targets_.clear();
  for (int at = 0; at < row_count; ++at)
    for (int i = start_[at]; i < start_[at + 1]; ++i)
      for (int k = start_[at]; k <= i; ++k) {
        const int row = below_[i], column = below_[k];
        const auto first = below_.begin() + start_[column], last = below_.begin() + start_[column + 1];
        targets_.push_back(i == k ? -1 - row : static_cast<int>(std::lower_bound(first, last, row) - below_.begin()));
      }
  diagonal_.resize(static_cast<std::size_t>(kBlock) * row_count);
  lower_.resize(kBlock * below_.size());
  return true;
}

void BlockCholesky::clear() {
  std::fill(diagonal_.begin(), diagonal_.end(), 0.0);
  std::fill(lower_.begin(), lower_.end(), 0.0);
}

double* BlockCholesky::block(int row, int column) {
  const int i = place_[row], k = place_[column];
  if (i == k) return &diagonal_[static_cast<std::size_t>(kBlock) * i];
  const auto first = below_.begin() + start_[k], last = below_.begin() + start_[k + 1];
  return &lower_[kBlock * (std::lower_bound(first, last, i) - below_.begin())];
}

bool BlockCholesky::factor() {
  const int* target = targets_.data();
  for (int at = 0; at < row_count_; ++at) {
    if (at == kept_from_) {
      kept_diagonal_.assign(diagonal_.begin() + static_cast<std::ptrdiff_t>(kBlock) * at, diagonal_.end());
      kept_lower_.assign(lower_.begin() + static_cast<std::ptrdiff_t>(kBlock) * start_[at], lower_.end());
    }
    double* diagonal = &diagonal_[static_cast<std::size_t>(kBlock) * at];
    if (!factor_block(diagonal)) return false;
    for (int i = start_[at]; i < start_[at + 1]; ++i) {
      double* own = &lower_[static_cast<std::size_t>(kBlock) * i];
      divide_block(diagonal, own);
      for (int k = start_[at]; k <= i; ++k, ++target) {
        double* out = *target < 0 ? &diagonal_[static_cast<std::size_t>(kBlock) * (-1 - *target)]
                                  : &lower_[static_cast<std::size_t>(kBlock) * *target];
        subtract_product(own, &lower_[static_cast<std::size_t>(kBlock) * k], out);
      }
    }
  }
  return true;
}

void BlockCholesky::solve(double* values) const {
  for (int at = 0; at < row_count_; ++at) {
    const double* l = &diagonal_[static_cast<std::size_t>(kBlock) * at];
    double* own = values + kSide * row_at_[at];
    for (int i = 0; i < kSide; ++i) {
      for (int k = 0; k < i; ++k) own[i] -= l[kSide * i + k] * own[k];
      own[i] /= l[kSide * i + i];
    }
    for (int b = start_[at]; b < start_[at + 1]; ++b) {
      const double* block = &lower_[static_cast<std::size_t>(kBlock) * b];
      double* other = values + kSide * row_at_[below_[b]];
      for (int i = 0; i < kSide; ++i)
        for (int k = 0; k < kSide; ++k) other[i] -= block[kSide * i + k] * own[k];
    }
  }
  for (int at = row_count_ - 1; at >= 0; --at) {
    const double* l = &diagonal_[static_cast<std::size_t>(kBlock) * at];
    double* own = values + kSide * row_at_[at];
    for (int b = start_[at]; b < start_[at + 1]; ++b) {
      const double* block = &lower_[static_cast<std::size_t>(kBlock) * b];
      const double* other = values + kSide * row_at_[below_[b]];
      for (int i = 0; i < kSide; ++i)
        for (int k = 0; k < kSide; ++k) own[k] -= block[kSide * i + k] * other[i];
    }
    for (int i = kSide - 1; i >= 0; --i) {
      for (int k = i + 1; k < kSide; ++k) own[i] -= l[kSide * k + i] * own[k];
      own[i] /= l[kSide * i + i];
    }
  }
}

}  // namespace lapjoint
