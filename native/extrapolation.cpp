#include "extrapolation.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lapjoint {

namespace {

constexpr double kGrowth = 4;      // a change that grows by more than this means that the history misleads
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

Advance choose_advance(const Products& products, double last_change, double regularization, double* theta) {
  const int count = static_cast<int>(products.column_count);
  if (last_change >= 0 && products.change_squared > kGrowth * last_change) return Advance::kForget;
  if (products.contact_rows > products.joint_rows && products.change_squared < kResting * products.impulse_squared)
    return Advance::kKeep;
  if (count == 0) return Advance::kKeep;
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
    if (!std::isfinite(theta[i])) return Advance::kForget;
  return Advance::kExtrapolate;
}

}  // namespace lapjoint
