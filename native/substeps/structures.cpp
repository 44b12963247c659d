#include "substeps/structures.h"

#include <algorithm>

#include "assertions.h"
#include "solver/block_cholesky.h"
#include "substeps/union_find.h"

namespace lapjoint {

long work_limit(JointChoice choice, long row_count) {
  constexpr long kAnyWork = 1'000'000'000;
  return choice == JointChoice::kDirect ? kAnyWork : BlockCholesky::little_work(row_count);
}

void Structures::define(int body_count, std::vector<Tie> ties) {
  ties_ = std::move(ties);
  UnionFind bodies(body_count);
  for (const Tie& tie : ties_)
    LAPJOINT_ASSERT(tie.ends.a >= 0 && tie.ends.a < body_count && tie.ends.b < body_count && tie.row_count >= 0);
  for (const Tie& tie : ties_)
    if (tie.ends.b >= 0 && tie.row_count > 0) bodies.unite(tie.ends.a, tie.ends.b);
  label_.resize(body_count);
  for (int body = 0; body < body_count; ++body) label_[body] = bodies.find(body);
  of_label_.clear();
  known_.clear();
  row_counts_.assign(body_count, 0);
  bounded_rows_.assign(body_count, 0);
  is_bonded_.assign(body_count, 0);
  may_break_.assign(body_count, 0);
  has_welds_ = false;
  for (std::size_t j = 0; j < ties_.size(); ++j) {
    const int label = label_[ties_[j].ends.a];
    row_counts_[label] += ties_[j].row_count;
    bounded_rows_[label] += ties_[j].bounded_rows;
    is_bonded_[label] |= static_cast<char>(ties_[j].is_bond);
    may_break_[label] |= static_cast<char>(ties_[j].may_break);
    has_welds_ |= ties_[j].welds;
    if (ties_[j].row_count > 0 && ties_[j].ends.b >= 0) of_label_[label].push_back(static_cast<int>(j));
  }
}

void Structures::add_bodies(int body_count) {
  LAPJOINT_ASSERT(body_count >= static_cast<int>(label_.size()));  // numbers of bodies are never used again
  while (static_cast<int>(label_.size()) < body_count) label_.push_back(static_cast<int>(label_.size()));
  row_counts_.resize(body_count, 0);
  bounded_rows_.resize(body_count, 0);
  is_bonded_.resize(body_count, 0);
  may_break_.resize(body_count, 0);
}

bool Structures::fits(int label, JointChoice choice) const {
  if (choice == JointChoice::kSwept) return false;
  const auto known = known_.find(label);
  if (known != known_.end()) return known->second;
  std::vector<int> bodies;
  std::vector<std::pair<int, int>> pairs;
  for (const int j : of_label_.at(label)) {
    bodies.push_back(ties_[j].ends.a);
    bodies.push_back(ties_[j].ends.b);
  }
  std::sort(bodies.begin(), bodies.end());
  bodies.erase(std::unique(bodies.begin(), bodies.end()), bodies.end());
  const auto row = [&](int body) {
    return static_cast<int>(std::lower_bound(bodies.begin(), bodies.end(), body) - bodies.begin());
  };
  for (const int j : of_label_.at(label)) pairs.emplace_back(row(ties_[j].ends.a), row(ties_[j].ends.b));
  if (is_bonded(label)) choice = JointChoice::kDirect;
  BlockCholesky pattern;
  return known_[label] =
             pattern.analyse(std::vector<char>(bodies.size(), 0), pairs, work_limit(choice, row_counts_[label]));
}

}  // namespace lapjoint
