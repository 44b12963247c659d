#include "algorithms/extrapolation.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lapjoint {

namespace {

constexpr double kGrowth = 4;      // a change that grows by more than this means that the history misleads
constexpr double kFactor = 1e4;    // factors beyond this are made of rounding
constexpr double kResting = 1e-4;  // in contact, a change this small against the impulses, squared, is left alone

// Gaussian elimination with pivoting, in place; a is n x n of a row length of kColumns.
bool solve(double a[kColumns][kColumns], double* b, int n) {
  for (int k = 0; k < n; ++k) {
    int pivot = k;
    for (int i = k + 1; i < n; ++i)
      if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
    if (!(std::abs(a[pivot][k]) > 0)) return false;
    if (pivot != k) {
      std::swap(a[k], a[pivot]);
      std::swap(b[k], b[pivot]);
    }
    for (int i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (int j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (int k = n - 1; k >= 0; --k) {
    for (int j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return true;
}

}  // namespace

void Products::add(const Products& other) {
  for (int i = 0; i < kColumns; ++i) {
    for (int j = 0; j < kColumns; ++j) columns[i][j] += other.columns[i][j];
    change[i] += other.change[i];
  }
  change_squared += other.change_squared;
  impulse_squared += other.impulse_squared;
  contact_rows += other.contact_rows;
  joint_rows += other.joint_rows;
  column_count = other.column_count;
  largest_change = std::max(largest_change, other.largest_change);
}

Advance choose_advance(const Products& products, double last_change, double regularization, bool few_rounds,
                       double* theta) {
  const int count = static_cast<int>(products.column_count);
  if (last_change >= 0 && products.change_squared > kGrowth * last_change) return Advance::kForget;
  if (few_rounds && products.contact_rows > products.joint_rows &&
      products.change_squared < kResting * products.impulse_squared)
    return Advance::kKeep;
  if (count == 0 || products.change_squared == 0) return Advance::kKeep;
  double scale[kColumns], matrix[kColumns][kColumns];
  for (int i = 0; i < count; ++i) {
    const double norm = std::sqrt(products.columns[i][i]);
    scale[i] = norm > 0 ? 1 / norm : 0;
  }
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < count; ++j) matrix[i][j] = products.columns[i][j] * scale[i] * scale[j];
    matrix[i][i] += regularization;
    theta[i] = products.change[i] * scale[i];
  }
  if (!solve(matrix, theta, count)) return Advance::kKeep;
  for (int i = 0; i < count; ++i) theta[i] *= scale[i];
  for (int i = 0; i < count; ++i)
    if (!(std::abs(theta[i]) < kFactor)) return Advance::kForget;
  return Advance::kExtrapolate;
}

void History::begin(std::vector<double> weights) {
  weights_ = std::move(weights);
  first_ = std::find_if(weights_.begin(), weights_.end(), [](double w) { return w > 0; }) - weights_.begin();
  has_last_ = false;
  column_count_ = 0;
}

// Four sums side by side, which a processor can add at once; the same on all.
double History::product(const std::vector<double>& a, const std::vector<double>& b) const {
  double sums[4] = {};
  std::size_t i = first_;
  for (; i + 4 <= a.size(); i += 4)
    for (int k = 0; k < 4; ++k) sums[k] += a[i + k] * b[i + k] * weights_[i + k];
  for (; i < a.size(); ++i) sums[0] += a[i] * b[i] * weights_[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void History::add(const std::vector<double>& before, const std::vector<double>& after, Products& products) {
  const std::size_t size = before.size();
  change_.resize(size);
  for (std::size_t i = 0; i < size; ++i) change_[i] = after[i] - before[i];
  if (has_last_) {
    if (column_count_ == kColumns) {
      std::rotate(change_columns_, change_columns_ + 1, change_columns_ + kColumns);
      std::rotate(impulse_columns_, impulse_columns_ + 1, impulse_columns_ + kColumns);
      for (int i = 1; i < kColumns; ++i)
        for (int j = 1; j < kColumns; ++j) columns_[i - 1][j - 1] = columns_[i][j];
      --column_count_;
    }
    const int newest = column_count_++;
    change_columns_[newest].resize(size);
    impulse_columns_[newest].resize(size);
    for (std::size_t i = 0; i < size; ++i) {
      change_columns_[newest][i] = change_[i] - last_change_[i];
      impulse_columns_[newest][i] = after[i] - last_impulse_[i];
    }
    for (int i = 0; i < column_count_; ++i)
      columns_[i][newest] = columns_[newest][i] = product(change_columns_[i], change_columns_[newest]);
  }
  products = {};
  for (int i = 0; i < column_count_; ++i) {
    std::copy(columns_[i], columns_[i] + column_count_, products.columns[i]);
    products.change[i] = product(change_columns_[i], change_);
  }
  products.change_squared = product(change_, change_);
  products.impulse_squared = product(after, after);
  products.column_count = column_count_;
  for (std::size_t i = 0; i < size; ++i)
    products.largest_change = std::max(products.largest_change, std::abs(change_[i]) * weights_[i]);
  last_change_.swap(change_);
  last_impulse_ = after;
  has_last_ = true;
}

void History::extrapolate(const double* theta, std::vector<double>& impulses) const {
  impulses = last_impulse_;
  for (int k = 0; k < column_count_; ++k)
    for (std::size_t i = 0; i < impulses.size(); ++i) impulses[i] -= theta[k] * impulse_columns_[k][i];
}

}  // namespace lapjoint
