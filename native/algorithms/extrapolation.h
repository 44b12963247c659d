// Anderson acceleration of the rounds of a step, over the rows of all engines together: from what rounds made of the
// impulses to inner products, and from the sums of all engines' products to the factors that each engine extrapolates
// with. It knows no engine. Twin: src/lapjoint/algorithms/extrapolation.py
#pragma once

#include <cstddef>
#include <vector>

namespace lapjoint {

constexpr int kColumns = 5;  // rounds that are kept, at most

// Of one engine, or of all: everything is a sum over rows but for what is said to be otherwise. r is what a round
// changed of the impulses, g what it made of them; rows count by their weights, the inverse of what an impulse needs
// to change the row's velocity by one.
struct Products {
  double columns[kColumns][kColumns];  // of the differences of r
  double change[kColumns];             // of the differences of r with r
  double change_squared;               // r with r
  double impulse_squared;              // g with g
  double contact_rows, joint_rows;
  double column_count;    // the same in all engines
  double largest_change;  // of a row's velocity, largest of all [length units/s]

  void add(const Products& other);
};
constexpr int kProductCount = sizeof(Products) / sizeof(double);

enum class Advance { kKeep, kExtrapolate, kForget };  // what to do with the impulses between two rounds

// `last_change` is change_squared of the round before, negative in the first. With few rounds, contacts that hardly
// change are left alone. `theta` gets column_count factors.
Advance choose_advance(const Products& products, double last_change, double regularization, bool few_rounds,
                       double* theta);

// One engine's rounds within a step.
class History {
 public:
  // A new step. Rows of weight 0 are extrapolated with the others and have no influence on how.
  void begin(std::vector<double> weights);
  // A round is over: its r and g. Sets the products but for the row counts.
  void add(const std::vector<double>& before, const std::vector<double>& after, Products& products);
  void forget() { column_count_ = 0; }
  void extrapolate(const double* theta, std::vector<double>& impulses) const;

 private:
  double product(const std::vector<double>& a, const std::vector<double>& b) const;

  std::vector<double> weights_;
  std::size_t first_ = 0;  // row that has a weight
  bool has_last_ = false;
  int column_count_ = 0;
  std::vector<double> change_, last_change_, last_impulse_;
  std::vector<double> change_columns_[kColumns], impulse_columns_[kColumns];  // oldest first
  double columns_[kColumns][kColumns] = {};
};

}  // namespace lapjoint
