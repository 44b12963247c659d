// Anderson acceleration of the rounds of a step, over the rows of all engines together: from the sums of their inner
// products to the factors that each engine extrapolates with. It knows no engine. Twin:
// src/lapjoint/algorithms/extrapolation.py
#pragma once

namespace lapjoint {

constexpr int kColumns = 20;  // rounds that are remembered, at most

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

// `last_change` is change_squared of the round before, negative in the first. `theta` gets column_count factors.
Advance choose_advance(const Products& products, double last_change, double regularization, double* theta);

}  // namespace lapjoint
