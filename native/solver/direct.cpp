#include "solver/direct.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace lapjoint {

namespace {

constexpr double kUnbounded = 1e9;    // limits beyond this are none
constexpr int kFrictionRounds = 8;    // a friction's bound depends on a pressure that depends on frictions
constexpr double kSameBounds = 0.01;  // bounds that change by less, over the largest, are settled
constexpr double kAccepted = 1e-3;    // largest error of a solution, over the largest number on the right side

constexpr int kMostFreeRows = 6000;  // the matrix has their square of numbers

// Rows may say the same twice: four corners of a box, joints in a closed loop. A little softness tells them apart.
constexpr double kFreeSoftness = 1e-9;
constexpr double kBoundedSoftness = sizeof(btScalar) == 8 ? 1e-9 : 1e-5;

double dot(const double* x, const double* y, int count) {
  double sum[4] = {0, 0, 0, 0};
  int k = 0;
  for (; k + 4 <= count; k += 4)
    for (int lane = 0; lane < 4; ++lane) sum[lane] += x[k + lane] * y[k + lane];
  for (; k < count; ++k) sum[0] += x[k] * y[k];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

bool moves(const btSolverBody& body) { return body.internalGetInvMass().length2() > 0; }

// What an impulse of one along row `from` does to the speed along row `to`, through one body of both.
double response(const btSolverConstraint& to, bool to_a, const btSolverConstraint& from, bool from_a,
                const btVector3& inverse_mass) {
  const btVector3& line = to_a ? to.m_contactNormal1 : to.m_contactNormal2;
  const btVector3& turn = to_a ? to.m_relpos1CrossNormal : to.m_relpos2CrossNormal;
  const btVector3& push = from_a ? from.m_contactNormal1 : from.m_contactNormal2;
  const btVector3& spin = from_a ? from.m_angularComponentA : from.m_angularComponentB;
  double sum = 0;
  for (int k = 0; k < 3; ++k)
    sum += double(line[k]) * double(push[k]) * double(inverse_mass[k]) + double(turn[k]) * double(spin[k]);
  return sum;
}

}  // namespace

std::unique_ptr<OpenSolver> make_solver(const std::string& name, int row_limit) {
  if (name == "sequential") return std::make_unique<OpenSolver>();
  if (name == "dantzig") return std::make_unique<DirectSolver>(row_limit);
  throw std::invalid_argument("no solver named " + name);
}

void DirectSolver::begin_step() {
  OpenSolver::begin_step();
  fallback_count_ = 0;
}

btScalar DirectSolver::solveGroupCacheFriendlyIterations(btCollisionObject** bodies, int body_count,
                                                         btPersistentManifold** manifolds, int manifold_count,
                                                         btTypedConstraint** joints, int joint_count,
                                                         const btContactSolverInfo& info, btIDebugDraw* drawer) {
  collect_rows();
  find_groups();
  int failed = 0;
  for (const std::vector<int>& group : groups_) failed += !solve_group(group);
  fallback_count_ += failed;
  // One sweep over what is solved changes it by the residual, and so measures it.
  if (!failed) {
    solveGroupCacheFriendlySplitImpulseIterations(bodies, body_count, manifolds, manifold_count, joints, joint_count,
                                                  info, drawer);
    m_leastSquaresResidual =
        solveSingleIteration(0, bodies, body_count, manifolds, manifold_count, joints, joint_count, info, drawer);
    return 0;
  }
  return OpenSolver::solveGroupCacheFriendlyIterations(bodies, body_count, manifolds, manifold_count, joints,
                                                       joint_count, info, drawer);
}

// ---- rows and groups -----------------------------------------------------------------------------------------------

void DirectSolver::collect_rows() {
  all_.clear();
  const auto add = [this](btSolverConstraint& constraint, int presses) {
    if (constraint.m_jacDiagABInv > 0) all_.push_back({&constraint, presses});
  };
  for (int i = 0; i < m_tmpSolverNonContactConstraintPool.size(); ++i) add(m_tmpSolverNonContactConstraintPool[i], -1);
  std::vector<int> contact_row(m_tmpSolverContactConstraintPool.size(), -1);
  for (int i = 0; i < m_tmpSolverContactConstraintPool.size(); ++i) {
    const std::size_t before = all_.size();
    add(m_tmpSolverContactConstraintPool[i], -1);
    if (all_.size() > before) contact_row[i] = static_cast<int>(before);
  }
  const auto add_friction = [&](btSolverConstraint& constraint) {
    const int row = contact_row[constraint.m_frictionIndex];
    if (row >= 0 && constraint.m_friction > 0) add(constraint, row);
  };
  for (int i = 0; i < m_tmpSolverContactFrictionConstraintPool.size(); ++i)
    add_friction(m_tmpSolverContactFrictionConstraintPool[i]);
  for (int i = 0; i < rolling_count_; ++i) add_friction(rolling_[i]);
}

int DirectSolver::group_of(int body) {
  while (parent_[body] != body) body = parent_[body] = parent_[parent_[body]];
  return body;
}

void DirectSolver::find_groups() {
  const int body_count = m_tmpSolverBodyPool.size();
  parent_.resize(body_count);
  for (int i = 0; i < body_count; ++i) parent_[i] = i;
  const auto one_that_moves = [this](const Row& row) {
    const int a = row.constraint->m_solverBodyIdA;
    return moves(m_tmpSolverBodyPool[a]) ? a : row.constraint->m_solverBodyIdB;
  };
  for (const Row& row : all_) {
    const int a = row.constraint->m_solverBodyIdA, b = row.constraint->m_solverBodyIdB;
    if (moves(m_tmpSolverBodyPool[a]) && moves(m_tmpSolverBodyPool[b]))
      parent_[std::max(group_of(a), group_of(b))] = std::min(group_of(a), group_of(b));
  }
  std::vector<int> number(body_count, -1);
  groups_.clear();
  for (std::size_t i = 0; i < all_.size(); ++i) {
    int& group = number[group_of(one_that_moves(all_[i]))];
    if (group < 0) {
      group = static_cast<int>(groups_.size());
      groups_.emplace_back();
    }
    groups_[group].push_back(static_cast<int>(i));
  }
}

bool DirectSolver::is_free(const Row& row) const {
  return row.presses < 0 && row.constraint->m_lowerLimit < -kUnbounded && row.constraint->m_upperLimit > kUnbounded;
}

bool DirectSolver::solve_group(const std::vector<int>& rows) {
  rows_ = rows;
  const auto middle = std::stable_partition(rows_.begin(), rows_.end(), [this](int i) { return is_free(all_[i]); });
  free_ = static_cast<int>(middle - rows_.begin());
  bounded_ = static_cast<int>(rows_.end() - middle);
  if (bounded_ > row_limit_ || free_ > kMostFreeRows) return false;
  place_.resize(all_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) place_[rows_[i]] = static_cast<int>(i);
  assemble();
  if (!factorize() || !solve_bounded()) return false;
  substitute_back();
  for (const double impulse : impulse_)
    if (!std::isfinite(impulse)) return false;
  apply();
  return true;
}

// The lower half of the matrix: how much each row's impulse changes the speed along each other row.
void DirectSolver::assemble() {
  const int count = static_cast<int>(rows_.size());
  matrix_.assign(static_cast<std::size_t>(count) * count, 0.0);
  rhs_.resize(count);
  impulse_.assign(count, 0.0);
  first_.resize(count);
  rows_of_body_.resize(m_tmpSolverBodyPool.size());
  for (int i = 0; i < count; ++i) {
    const btSolverConstraint& row = *all_[rows_[i]].constraint;
    const double diagonal = 1.0 / double(row.m_jacDiagABInv);
    rhs_[i] = double(row.m_rhs) * diagonal;
    first_[i] = i;
    for (const bool is_a : {true, false}) {
      const int body = is_a ? row.m_solverBodyIdA : row.m_solverBodyIdB;
      if (!moves(m_tmpSolverBodyPool[body])) continue;
      const btVector3& inverse_mass = m_tmpSolverBodyPool[body].internalGetInvMass();
      std::vector<int>& others = rows_of_body_[body];
      if (is_a || row.m_solverBodyIdA != row.m_solverBodyIdB) others.push_back(i);
      for (const int j : others) {
        const btSolverConstraint& other = *all_[rows_[j]].constraint;
        a(i, j) += response(row, is_a, other, other.m_solverBodyIdA == body, inverse_mass);
        first_[i] = std::min(first_[i], j);
      }
    }
    a(i, i) += double(row.m_cfm) * diagonal;
    a(i, i) *= 1 + (i < free_ ? kFreeSoftness : kBoundedSoftness);
  }
  for (const int i : rows_) {
    rows_of_body_[all_[i].constraint->m_solverBodyIdA].clear();
    rows_of_body_[all_[i].constraint->m_solverBodyIdB].clear();
  }
}

// ---- rows without bounds -------------------------------------------------------------------------------------------

// Cholesky's factors of the free rows, and what is left of the bounded ones. Numbers before a row's first one stay
// zero: along a chain every row has only a few, and the work grows with its length.
bool DirectSolver::factorize() {
  const int count = static_cast<int>(rows_.size());
  for (int i = 0; i < count; ++i) {
    double* row = &a(i, 0);
    for (int j = first_[i]; j < std::min(i, free_); ++j) {
      const int from = std::max(first_[i], first_[j]);
      const double* other = &a(j, 0);
      row[j] = (row[j] - dot(row + from, other + from, j - from)) / other[j];
    }
    const int end = std::min(i, free_), from = std::min(first_[i], end);
    if (i < free_) {
      const double left = row[i] - dot(row + from, row + from, end - from);
      if (!(left > row[i] * 1e-13)) return false;
      row[i] = std::sqrt(left);
      rhs_[i] = (rhs_[i] - dot(row + from, rhs_.data() + from, end - from)) / row[i];
    } else {
      rhs_[i] -= dot(row + from, rhs_.data() + from, end - from);
      for (int j = free_; j <= i; ++j) {
        const int start = std::max(from, std::min(first_[j], end));
        row[j] -= dot(row + start, &a(j, 0) + start, end - start);
      }
    }
  }
  return true;
}

void DirectSolver::substitute_back() {
  for (int p = 0; p < bounded_; ++p) {
    const double impulse = impulse_[free_ + p] = double(x_[p]) * double(scale_[p]);
    const double* row = &a(free_ + p, 0);
    for (int k = 0; k < free_; ++k) rhs_[k] -= row[k] * impulse;
  }
  for (int i = free_ - 1; i >= 0; --i) {
    const double* row = &a(i, 0);
    const double impulse = impulse_[i] = rhs_[i] / row[i];
    for (int k = first_[i]; k < i; ++k) rhs_[k] -= row[k] * impulse;
  }
}

void DirectSolver::apply() {
  for (const int i : rows_) {
    for (const int body : {all_[i].constraint->m_solverBodyIdA, all_[i].constraint->m_solverBodyIdB}) {
      m_tmpSolverBodyPool[body].internalGetDeltaLinearVelocity().setZero();
      m_tmpSolverBodyPool[body].internalGetDeltaAngularVelocity().setZero();
    }
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    btSolverConstraint& row = *all_[rows_[i]].constraint;
    row.m_appliedImpulse = btScalar(impulse_[i]);
    btSolverBody& body_a = m_tmpSolverBodyPool[row.m_solverBodyIdA];
    btSolverBody& body_b = m_tmpSolverBodyPool[row.m_solverBodyIdB];
    body_a.internalApplyImpulse(row.m_contactNormal1 * body_a.internalGetInvMass(), row.m_angularComponentA,
                                row.m_appliedImpulse);
    body_b.internalApplyImpulse(row.m_contactNormal2 * body_b.internalGetInvMass(), row.m_angularComponentB,
                                row.m_appliedImpulse);
  }
}

// ---- rows with bounds ----------------------------------------------------------------------------------------------

bool DirectSolver::solve_bounded() {
  const int n = bounded_;
  for (std::vector<btScalar>* one : {&lcp_rhs_, &low_, &high_, &x_, &w_, &scale_}) one->assign(n, 0);
  if (n == 0) return true;
  for (int p = 0; p < n; ++p) {
    const double diagonal = a(free_ + p, free_ + p);
    if (!(diagonal > 0)) return false;
    scale_[p] = btScalar(1 / std::sqrt(diagonal));
    lcp_rhs_[p] = btScalar(rhs_[free_ + p]) * scale_[p];
    // The last step's pressure bounds friction at first.
    const Row& row = all_[rows_[free_ + p]];
    const auto* point = static_cast<const btManifoldPoint*>(row.constraint->m_originalContactPoint);
    const bool is_contact = row.presses < 0 && point && row.constraint->m_upperLimit > kUnbounded;
    x_[p] = is_contact ? point->m_appliedImpulse / scale_[p] : btScalar(0);
  }
  lcp_.resize(static_cast<std::size_t>(n) * n);
  for (int p = 0; p < n; ++p)
    for (int q = 0; q <= p; ++q)
      lcp_[p * n + q] = lcp_[q * n + p] = btScalar(a(free_ + p, free_ + q) * double(scale_[p]) * double(scale_[q]));
  set_bounds();
  for (int round = 0; round < kFrictionRounds; ++round) {
    if (!solve_once() || !is_solution()) return false;
    const std::vector<btScalar> before = high_;
    set_bounds();
    btScalar largest = 0, change = 0;
    for (int p = 0; p < n; ++p) {
      if (all_[rows_[free_ + p]].presses < 0) continue;
      largest = std::max(largest, high_[p]);
      change = std::max(change, std::abs(high_[p] - before[p]));
    }
    if (change <= btScalar(kSameBounds) * largest) break;
  }
  return true;
}

void DirectSolver::set_bounds() {
  for (int p = 0; p < bounded_; ++p) {
    const Row& row = all_[rows_[free_ + p]];
    if (row.presses >= 0) {
      const int q = place_[row.presses] - free_;
      high_[p] = row.constraint->m_friction * std::max(x_[q], btScalar(0)) * scale_[q] / scale_[p];
      low_[p] = -high_[p];
    } else {
      const btScalar low = row.constraint->m_lowerLimit, high = row.constraint->m_upperLimit;
      low_[p] = low < -kUnbounded ? -BT_INFINITY : low / scale_[p];
      high_[p] = high > kUnbounded ? BT_INFINITY : high / scale_[p];
    }
  }
}

bool DirectSolver::solve_once() {
  std::vector<btScalar> matrix = lcp_, rhs = lcp_rhs_, low = low_, high = high_;  // it works in place
  std::fill(x_.begin(), x_.end(), btScalar(0));
  return btSolveDantzigLCP(bounded_, matrix.data(), x_.data(), rhs.data(), w_.data(), 0, low.data(), high.data(),
                           nullptr, scratch_);
}

// An impulse is between its bounds and its row at rest, or at a bound and the row pulls further.
bool DirectSolver::is_solution() const {
  double largest = 0, worst = 0;
  for (int p = 0; p < bounded_; ++p) {
    double speed = -double(lcp_rhs_[p]);
    for (int q = 0; q < bounded_; ++q)
      speed += double(lcp_[static_cast<std::size_t>(p) * bounded_ + q]) * double(x_[q]);
    const double better = std::clamp(double(x_[p]) - speed, double(low_[p]), double(high_[p]));
    worst = std::max(worst, std::abs(better - double(x_[p])));
    largest = std::max(largest, std::abs(double(lcp_rhs_[p])));
    if (!std::isfinite(speed)) return false;
  }
  return worst <= kAccepted * largest;
}

}  // namespace lapjoint
