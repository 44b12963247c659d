#include "substeps/active_set.h"

#include <cstdint>

#include "assertions.h"
#include "substeps/ball_friction.h"

namespace lapjoint {

namespace {

// Passes in which all rows may change; and at least so many in which some may, before they may only come to a bound. A
// chain of 60 links whose limits are all hit at once takes up to 57.
constexpr int kAllPasses = 8, kLeastPasses = 16;
constexpr double kRounding = 1e-6;  // of a kept impulse: it was at its bound

}  // namespace

void DirectRow::begin(double last) {
  LAPJOINT_ASSERT(low <= high);
  place = kIn;
  impulse = std::clamp(last, low, high);
  if (impulse <= low * (1 - kRounding)) place = kLow;
  if (impulse >= high * (1 - kRounding)) place = kHigh;
  if (place != kIn) impulse = bound();
}

ActiveSet::Pass ActiveSet::Pass::of_one_worker(int number, int bounded_rows) {
  const int end = kAllPasses + std::max(kLeastPasses, bounded_rows);
  return {number < kAllPasses ? Change::kAll : number < end ? Change::kWorst : Change::kToBounds, number};
}

ActiveSet::Pass ActiveSet::Pass::of_several(int number, int bounded_rows) {
  const int end = kAllPasses + std::max(2 * kLeastPasses, bounded_rows);
  return {number < kAllPasses ? Change::kAll : number < end ? Change::kQuarter : Change::kToBounds, number};
}

void ActiveSet::begin(const std::vector<double>& velocities) {
  velocities_ = &velocities;
  arrivals_.clear();
  found_ = false;
  worst_ = nullptr;
  worst_miss_ = 0;
}

double ActiveSet::velocity_of(const DirectLink& link, const DirectRow& row) const {
  return row.velocity(&(*velocities_)[6 * link.a], &(*velocities_)[6 * link.b]);
}

void ActiveSet::turn_over(const DirectLink& link, DirectRow& row, double wanted) {
  if (row.is_out()) {
    row.place = DirectRow::kIn;
    return;
  }
  LAPJOINT_ASSERT(row.kind != DirectRow::kLocked && (wanted < row.low || wanted > row.high));
  row.place = wanted < row.low ? DirectRow::kLow : DirectRow::kHigh;
  arrivals_.push_back({&link, &row, row.bound() - row.impulse});
  row.impulse = row.bound();
}

void ActiveSet::look_at(const DirectLink& link, std::vector<DirectRow>& rows, double share_per_h, Pass pass) {
  LAPJOINT_ASSERT(link.locked_count <= link.row_count &&
                  link.first_row + link.row_count <= static_cast<int>(rows.size()));
  for (int r = link.first_row + link.locked_count; r < link.first_row + link.row_count; ++r) {
    DirectRow& row = rows[r];
    if (row.place == DirectRow::kSwept) continue;
    if (row.kind == DirectRow::kFriction) {
      found_ |= look_at_friction(link, &row, pass);
      r += 2;
      continue;
    }
    // In the matrix, the impulse that it has with this solution; else the one that it would have.
    const double wanted = -row.pull - row.stiffness * (share_per_h * row.error + velocity_of(link, row));
    double miss;  // as a velocity
    if (row.place == DirectRow::kIn)
      miss = std::max(wanted - row.high, row.low - wanted) * row.inertia;
    else
      miss = (row.place == DirectRow::kLow ? wanted - row.low : row.high - wanted) / row.stiffness;
    if (!(miss > kVelocitySlack) || (pass.change == Change::kToBounds && row.is_out())) continue;
    found_ = true;
    if (pass.change == Change::kWorst) {
      if (miss > worst_miss_) worst_miss_ = miss, worst_wanted_ = wanted, worst_ = &row, worst_link_ = &link;
      continue;
    }
    const auto quarter = static_cast<std::uint32_t>(row.target) * 2654435761u >> 30;
    if (pass.change == Change::kQuarter && quarter != (static_cast<std::uint32_t>(pass.number) & 3)) continue;
    turn_over(link, row, wanted);
  }
}

bool ActiveSet::look_at_friction(const DirectLink& link, DirectRow* rows, Pass pass) {
  double velocities[3], by;
  for (int k = 0; k < 3; ++k) velocities[k] = velocity_of(link, rows[k]);
  if (!BallFriction(rows).change(velocities, pass.change == Change::kToBounds, by)) return false;
  if (by != 0) arrivals_.push_back({&link, rows, by});
  return true;
}

bool ActiveSet::end() {
  if (worst_) turn_over(*worst_link_, *worst_, worst_wanted_);
  return found_;
}

}  // namespace lapjoint
