// Symmetric positive definite matrix of 6 x 6 blocks, factored sparsely: one block row per body, one block per pair of
// bodies that something ties together. It knows no engine.
#pragma once

#include <utility>
#include <vector>

namespace lapjoint {

class BlockCholesky {
 public:
  static constexpr int kSide = 6, kBlock = kSide * kSide;

  // The pattern: pairs of different rows that have a block. Chooses the order of elimination: rows that are `kept` come
  // last, else fewest neighbours first, ties to the lowest row. False if a factorization would take more products of
  // blocks than `limit`: then there is nothing to factor.
  bool analyse(const std::vector<char>& kept, const std::vector<std::pair<int, int>>& pairs, long limit);

  // So many products are little work for a structure whose joints have so many rows: one is about as much as ten
  // updates of a row.
  static constexpr long little_work(long joint_rows) { return 12 * joint_rows; }

  void clear();
  // Row-major block (row, column), to be added to; of a pair, `block(a, b)` and `block(b, a)` are each other's
  // transpose and only the one that `stored(a, b)` is true for exists.
  bool stored(int row, int column) const { return place_[row] <= place_[column]; }
  double* block(int row, int column);
  // False if the matrix is not positive definite.
  bool factor();
  // The same for all rows but those that are kept.
  bool factor_others();
  // In place, 6 numbers a row; of two right sides, each row has 6 of the one and 6 of the other.
  void solve_one(double* values) const;
  void solve_two(double* values) const;
  // The two halves of it for all rows but those that are kept, for one or two right sides: what the kept rows' right
  // sides become, and the others' values once the kept ones' are there. After `factor_others`.
  void eliminate(double* values, int sides) const;
  void substitute(double* values, int sides) const;
  bool is_kept(int row) const { return place_[row] >= kept_from_; }

  // Blocks of what is left for the kept rows.
  std::size_t kept_count() const {
    return static_cast<std::size_t>(row_count_ - kept_from_ + start_[row_count_] - start_[kept_from_]);
  }
  // What is left of the matrix for the kept rows once all others are eliminated: calls
  // visit(row, column, block), each pair once.
  template <class Visit>
  void each_kept(Visit&& visit) const {
    for (int at = kept_from_; at < row_count_; ++at) {
      visit(row_at_[at], row_at_[at], &kept_diagonal_[kBlock * (at - kept_from_)]);
      for (int i = start_[at]; i < start_[at + 1]; ++i)
        visit(row_at_[at], row_at_[later_[i]], &kept_upper_[kBlock * (i - start_[kept_from_])]);
    }
  }

 private:
  bool factor_until(int end);
  template <int kSides>
  void go_forward(double* values, int end) const;
  template <int kSides>
  void go_back(double* values, int end) const;
  template <int kSides>
  void solve_sides(double* values) const;

  int row_count_ = 0, kept_from_ = 0;
  std::vector<int> place_;    // row -> when it is eliminated
  std::vector<int> row_at_;   // and back
  std::vector<int> start_;    // of each row's blocks right of the diagonal, by place
  std::vector<int> later_;    // their columns, by place, ascending
  std::vector<int> targets_;  // of the products of a row's blocks: the block right of the diagonal, or -1 - place
  std::vector<double> diagonal_, upper_, kept_diagonal_, kept_upper_;
};

}  // namespace lapjoint
