// Rows of tables of states, as src/lapjoint/arrays/rows.py has them.
#pragma once

#include <cstddef>
#include <vector>

namespace lapjoint {

// Copies these rows from one table to the same places of another, both with rows of `width` numbers.
void copy_rows(const double* from, double* to, int width, const int* rows, std::size_t count);

// Of these rows, those with a number that is not finite, in their order.
std::vector<int> find_not_finite(const double* table, int width, const int* rows, std::size_t count);

}  // namespace lapjoint
