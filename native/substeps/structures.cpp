#include "substeps/structures.h"

#include <algorithm>
#include <bit>

#include "solver/block_cholesky.h"
#include "substeps/union_find.h"

namespace lapjoint {

long work_limit(JointChoice choice, long row_count) {
  constexpr long kWork = 12, kAnyWork = 1'000'000'000;
  return choice == JointChoice::kDirect ? kAnyWork : kWork * row_count;
}

void Structures::define(int body_count, std::vector<ConstraintEnds> ends, std::vector<std::uint8_t> locked) {
  ends_ = std::move(ends);
  locked_ = std::move(locked);
  UnionFind bodies(body_count);
  for (std::size_t j = 0; j < ends_.size(); ++j)
    if (ends_[j].b >= 0 && locked_[j]) bodies.unite(ends_[j].a, ends_[j].b);
  label_.resize(body_count);
  for (int body = 0; body < body_count; ++body) label_[body] = bodies.find(body);
  of_label_.clear();
  known_.clear();
  row_counts_.assign(body_count, 0);
  for (std::size_t j = 0; j < ends_.size(); ++j) {
    const int label = label_[ends_[j].a];
    row_counts_[label] += std::popcount(locked_[j]);
    if (locked_[j] && ends_[j].b >= 0) of_label_[label].push_back(static_cast<int>(j));
  }
}

void Structures::add_bodies(int body_count) {
  while (static_cast<int>(label_.size()) < body_count) label_.push_back(static_cast<int>(label_.size()));
}

bool Structures::fits(int label, JointChoice choice) const {
  if (choice == JointChoice::kSwept) return false;
  const auto known = known_.find(label);
  if (known != known_.end()) return known->second;
  std::vector<int> bodies;
  std::vector<std::pair<int, int>> pairs;
  for (const int j : of_label_.at(label)) {
    bodies.push_back(ends_[j].a);
    bodies.push_back(ends_[j].b);
  }
  std::sort(bodies.begin(), bodies.end());
  bodies.erase(std::unique(bodies.begin(), bodies.end()), bodies.end());
  const auto row = [&](int body) {
    return static_cast<int>(std::lower_bound(bodies.begin(), bodies.end(), body) - bodies.begin());
  };
  for (const int j : of_label_.at(label)) pairs.emplace_back(row(ends_[j].a), row(ends_[j].b));
  BlockCholesky pattern;
  return known_[label] =
             pattern.analyse(std::vector<char>(bodies.size(), 0), pairs, work_limit(choice, row_counts_[label]));
}

}  // namespace lapjoint
