#include "substeps/ball_friction.h"

#include <algorithm>
#include <cmath>

#include "assertions.h"

namespace lapjoint {

namespace {

constexpr double kAcross = 0.03;    // share by which the direction may be off: 5e-4 of the torque
constexpr double kRounding = 1e-6;  // of a kept impulse: it was as large as it may be
constexpr double kLeastSpeed = 1e-12;

double length(const double* v) { return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); }

}  // namespace

double BallFriction::hard() const {
  return DirectRow::hard_stiffness(std::max({rows_[0].inertia, rows_[1].inertia, rows_[2].inertia}));
}

void BallFriction::hold() {
  const double stiffness = hard();
  for (int k = 0; k < 3; ++k) {
    rows_[k].stiffness = stiffness;
    rows_[k].place = DirectRow::kIn;
  }
}

// Turns the rows so that the first lies along the velocity.
void BallFriction::slip(const double* velocities, double speed) {
  const double size = length(velocities);
  LAPJOINT_ASSERT(size > 0);  // without a direction there is none to slip along
  double turn[3][3];          // new rows, by the old ones
  for (int k = 0; k < 3; ++k) turn[0][k] = velocities[k] / size;
  const double* d = turn[0];
  const int least = std::abs(d[0]) <= std::abs(d[1]) && std::abs(d[0]) <= std::abs(d[2]) ? 0
                    : std::abs(d[1]) <= std::abs(d[2])                                   ? 1
                                                                                         : 2;
  for (int k = 0; k < 3; ++k) turn[1][k] = (k == least) - d[least] * d[k];
  const double across = length(turn[1]);
  for (int k = 0; k < 3; ++k) turn[1][k] /= across;
  for (int k = 0; k < 3; ++k)
    turn[2][k] = d[(k + 1) % 3] * turn[1][(k + 2) % 3] - d[(k + 2) % 3] * turn[1][(k + 1) % 3];

  LAPJOINT_ASSERT(!(std::abs(turn[0][0] * turn[1][0] + turn[0][1] * turn[1][1] + turn[0][2] * turn[1][2]) > 1e-9));
  const DirectRow old[3] = {rows_[0], rows_[1], rows_[2]};
  for (int k = 0; k < 3; ++k) {
    DirectRow& row = rows_[k];
    row.impulse = 0;
    std::fill(row.own_a, row.own_a + 6, 0.0);
    std::fill(row.own_b, row.own_b + 6, 0.0);
    std::fill(row.about, row.about + 3, 0.0);
    for (int i = 0; i < 3; ++i) {
      row.impulse += turn[k][i] * old[i].impulse;
      for (int at = 0; at < 6; ++at) {
        row.own_a[at] += turn[k][i] * old[i].own_a[at];
        row.own_b[at] += turn[k][i] * old[i].own_b[at];
      }
      for (int at = 0; at < 3; ++at) row.about[at] += turn[k][i] * old[i].about[at];
    }
    row.inertia = row_product(row.own_a, row.own_a) + row_product(row.own_b, row.own_b);
    row.speed = speed;
    row.place = DirectRow::kIn;
  }
  rows_[0].place = DirectRow::kLow;
  begin_substep();
}

void BallFriction::begin(const double* last, double speed) {
  for (int k = 0; k < 3; ++k) {
    rows_[k].impulse = last[k];
    rows_[k].speed = speed;
  }
  hold();
  const double most = rows_[0].high;
  if (!(length(last) > 0) || length(last) < most * (1 - kRounding)) return;
  const double against[3] = {-last[0], -last[1], -last[2]};
  slip(against, speed);
  rows_[0].impulse = rows_[0].bound();
}

void BallFriction::begin_substep() {
  if (!slips()) return;
  const double stiffness = std::min(rows_[0].high / std::max(rows_[0].speed, kLeastSpeed), hard());
  rows_[1].stiffness = rows_[2].stiffness = stiffness;
}

bool BallFriction::change(const double* velocities, bool only_slips, double& by) {
  const double most = rows_[0].high, speed = length(velocities);
  by = 0;
  if (!slips()) {
    const double beyond = (rows_[0].stiffness * speed - most) * std::max(rows_[0].inertia, rows_[1].inertia);
    if (!(beyond > kVelocitySlack)) return false;
    slip(velocities, beyond);
  } else {
    for (int k = 0; k < 3; ++k) rows_[k].speed = speed;
    if (only_slips) return false;
    if (!(velocities[0] > 0)) {  // it has come to its end
      hold();
      return true;
    }
    if (std::hypot(velocities[1], velocities[2]) <= kAcross * velocities[0]) return false;
    slip(velocities, speed);
  }
  by = rows_[0].bound() - rows_[0].impulse;
  rows_[0].impulse = rows_[0].bound();
  return true;
}

void BallFriction::impulse(double* out) const {
  for (int i = 0; i < 3; ++i) {
    out[i] = 0;
    for (int k = 0; k < 3; ++k) out[i] += rows_[k].impulse * rows_[k].about[i];
  }
}

}  // namespace lapjoint
