#include "substeps/between.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace lapjoint {

namespace {

Lanes square_of(const Motion& motion) {
  return motion.linear * motion.linear + motion.angular * motion.angular + motion.moved * motion.moved +
         motion.turned * motion.turned;
}

// Of a body, in a message.
std::size_t motion_bytes(bool last) { return sizeof(Motion) + (last ? sizeof(Bodies::Twist) : 0); }

}  // namespace

void Between::define(std::vector<Neighbour> neighbours, std::vector<std::vector<JointDefinition>> joints,
                     const std::vector<AxisDefinition>& axes, int fixed) {
  neighbours_ = std::move(neighbours);
  rows_.resize(neighbours_.size());
  contact_orders.resize(neighbours_.size());
  turn_count_ = 0;
  for (std::size_t n = 0; n < neighbours_.size(); ++n) {
    rows_[n].joints.define(std::move(joints[n]), axes, fixed);
    turn_count_ = std::max(turn_count_, neighbours_[n].turn + 1);
  }
}

bool Between::needs_poses() const {
  return std::any_of(rows_.begin(), rows_.end(), [](const Rows& rows) { return rows.joints.needs_poses(); });
}

long Between::row_count() const {
  long count = 0;
  for (const Rows& rows : rows_) count += rows.contacts.row_count() + rows.joints.row_count();
  return count;
}

// ---- messages ------------------------------------------------------------------------------------------------------

void Between::exchange_states(std::vector<BodyState>& states) {
  mailboxes_->meet();
  for (const Neighbour& neighbour : neighbours_) {
    auto* out = static_cast<BodyState*>(mailboxes_->outgoing(neighbour.worker));
    for (const int place : neighbour.border) *out++ = states[place];
    mailboxes_->send(neighbour.worker, neighbour.border.size() * sizeof(BodyState));
  }
  for (const Neighbour& neighbour : neighbours_) {
    const std::size_t size = neighbour.ghosts.size() * sizeof(BodyState);
    const auto* in = static_cast<const BodyState*>(mailboxes_->receive(neighbour.worker, size));
    for (const int place : neighbour.ghosts) states[place] = *in++;
  }
}

template <typename Value, typename Visit>
void Between::exchange_with_all(const Value& own, Visit&& visit) {
  const int self = mailboxes_->self();
  for (int worker = 0; worker < mailboxes_->worker_count(); ++worker) {
    if (worker == self) continue;
    std::memcpy(mailboxes_->outgoing(worker), &own, sizeof own);
    mailboxes_->send(worker, sizeof own);
  }
  for (int worker = 0; worker < mailboxes_->worker_count(); ++worker) {
    if (worker == self) continue;
    Value theirs;
    std::memcpy(&theirs, mailboxes_->receive(worker, sizeof theirs), sizeof theirs);
    visit(theirs);
  }
}

Between::Counts Between::sum_over_workers(Counts own, const std::vector<Contact>& contacts) {
  if (!mailboxes_) return own;
  mailboxes_->meet();
  const int self = mailboxes_->self();
  for (std::size_t n = 0; n < neighbours_.size(); ++n) {
    if (neighbours_[n].worker < self) continue;  // which counts them
    for (const int number : contact_orders[n]) own.fresh += contacts[number].is_new;
    own.all += static_cast<long>(contact_orders[n].size());
  }
  Counts sum = own;
  exchange_with_all(own, [&](const Counts& theirs) {
    sum.fresh += theirs.fresh;
    sum.all += theirs.all;
  });
  return sum;
}

Real Between::largest_over_workers(Real own) {
  if (!mailboxes_) return own;
  Real found = own;
  exchange_with_all(own, [&](Real theirs) { found = std::max(found, theirs); });
  return found;
}

bool Between::is_finite(const Motion& motion) {
  const Lanes squares = square_of(motion);
  return std::isfinite(squares[0] + squares[1] + squares[2]);
}

void Between::send_motion(const Neighbour& neighbour, const Bodies& bodies, bool last) {
  auto* out = static_cast<Motion*>(mailboxes_->outgoing(neighbour.worker));
  bool finite = true;
  for (const int place : neighbour.border) {
    *out++ = bodies.motion[place];
    finite &= is_finite(bodies.motion[place]);
  }
  if (!finite) throw MotionNotFinite();  // nothing like it is to reach bodies that had no part in it
  auto* out_last = reinterpret_cast<Bodies::Twist*>(out);
  if (last)
    for (const int place : neighbour.border) *out_last++ = bodies.last[place];
  mailboxes_->send(neighbour.worker, neighbour.border.size() * motion_bytes(last));
}

void Between::receive_motion(const Neighbour& neighbour, Bodies& bodies, bool last) {
  const std::size_t size = neighbour.ghosts.size() * motion_bytes(last);
  const auto* in = static_cast<const Motion*>(mailboxes_->receive(neighbour.worker, size));
  for (const int place : neighbour.ghosts) bodies.motion[place] = *in++;
  const auto* in_last = reinterpret_cast<const Bodies::Twist*>(in);
  if (last)
    for (const int place : neighbour.ghosts) bodies.last[place] = *in_last++;
}

template <typename Wanted, typename Sweep>
void Between::take_turns(Bodies& bodies, bool last, Wanted&& wanted, Sweep&& sweep) {
  if (mailboxes_) mailboxes_->meet();
  for (int turn = 0; turn < turn_count_; ++turn) {
    const auto is_due = [&](std::size_t n) { return neighbours_[n].turn == turn && wanted(rows_[n]); };
    const auto reads_last = [&](std::size_t n) { return last && rows_[n].joints.reads_last(); };
    for (std::size_t n = 0; n < neighbours_.size(); ++n)
      if (is_due(n)) send_motion(neighbours_[n], bodies, reads_last(n));
    for (std::size_t n = 0; n < neighbours_.size(); ++n) {
      if (!is_due(n)) continue;
      receive_motion(neighbours_[n], bodies, reads_last(n));
      sweep(rows_[n], neighbours_[n]);
    }
  }
}

// ---- a step --------------------------------------------------------------------------------------------------------

void Between::colour(const std::vector<Contact>& contacts, int fixed) {
  for (std::size_t n = 0; n < rows_.size(); ++n) rows_[n].contacts.colour(contacts, contact_orders[n], fixed);
}

void Between::prepare(const std::vector<Contact>& contacts, const Bodies& bodies, const ContactSettings& of_contacts,
                      const JointSettings& of_joints, const std::vector<Real>& joint_impulses) {
  for (Rows& rows : rows_) {
    rows.contacts.prepare(contacts, bodies, of_contacts);
    if (!rows.joints.empty()) rows.joints.prepare(bodies, of_joints, joint_impulses);
  }
}

void Between::warm_start(Bodies& bodies) const {
  for (const Rows& rows : rows_) {
    rows.joints.warm_start(bodies);
    rows.contacts.warm_start(bodies);
  }
}

void Between::solve(Bodies& bodies) {
  take_turns(
      bodies, true, [](const Rows&) { return true; },
      [&](Rows& rows, const Neighbour&) {
        rows.joints.solve(bodies);
        rows.contacts.solve(bodies);
      });
}

Real Between::relax(Bodies& bodies, bool moved, bool poses) {
  Real residual = 0;
  take_turns(
      bodies, false, [](const Rows&) { return true; },
      [&](Rows& rows, const Neighbour& neighbour) {
        if (moved && poses)
          for (const int place : neighbour.ghosts) bodies.find_pose(place);
        if (moved) rows.joints.turn(bodies);
        residual = std::max(residual, rows.joints.relax(bodies));
        residual = std::max(residual, rows.contacts.relax(bodies));
      });
  return residual;
}

Real Between::largest_overlap(const Bodies& bodies) const {
  Real deepest = 0;
  for (const Rows& rows : rows_) deepest = std::max(deepest, rows.contacts.largest_overlap(bodies));
  return deepest;
}

void Between::bounce(Bodies& bodies) {
  take_turns(
      bodies, false, [](const Rows& rows) { return rows.contacts.bounces(); },
      [&](Rows& rows, const Neighbour&) { rows.contacts.bounce(bodies); });
}

void Between::store(std::vector<Contact>& contacts, std::vector<Real>& joint_impulses) const {
  for (const Rows& rows : rows_) {
    rows.contacts.store(contacts);
    rows.joints.store(joint_impulses);
  }
}

void Between::add_impulses(std::vector<Real>& sums) const {
  for (const Rows& rows : rows_) rows.joints.add_impulses(sums);
}

void Between::add_impulses(std::vector<PointImpulses>& sums) const {
  for (const Rows& rows : rows_) rows.contacts.add_impulses(sums);
}

void Between::add_impulses(std::vector<FrictionImpulses>& sums) const {
  for (const Rows& rows : rows_) rows.contacts.add_impulses(sums);
}

}  // namespace lapjoint
