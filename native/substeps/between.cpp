#include "substeps/between.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "assertions.h"

namespace lapjoint {

namespace {

Lanes square_of(const Motion& motion) {
  return motion.linear * motion.linear + motion.angular * motion.angular + motion.moved * motion.moved +
         motion.turned * motion.turned;
}

// Bodies at these places, one after the other.
template <typename One>
One* put_each(const std::vector<int>& places, const std::vector<One>& from, void* into) {
  auto* out = static_cast<One*>(into);
  for (const int place : places) *out++ = from[place];
  return out;
}

template <typename One>
void take_each(const std::vector<int>& places, const void* from, std::vector<One>& into) {
  const auto* in = static_cast<const One*>(from);
  for (const int place : places) into[place] = *in++;
}

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
    LAPJOINT_ASSERT(std::is_sorted(neighbours_[n].border.begin(), neighbours_[n].border.end()));
    LAPJOINT_ASSERT(std::is_sorted(neighbours_[n].ghosts.begin(), neighbours_[n].ghosts.end()));
    for (std::size_t before = 0; before < n; ++before)  // in a turn a worker has one pair
      LAPJOINT_ASSERT(neighbours_[before].worker < neighbours_[n].worker &&
                      neighbours_[before].turn != neighbours_[n].turn);
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
    LAPJOINT_ASSERT(neighbour.border.size() * sizeof(BodyState) <= mailboxes_->room());
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
    for (const int number : contact_orders[n]) {
      own.fresh += contacts[number].is_new;
      own.bouncing_between += contacts[number].restitution > 0;
    }
    own.all += static_cast<long>(contact_orders[n].size());
  }
  Counts sum = own;
  exchange_with_all(own, [&](const Counts& theirs) {
    sum.fresh += theirs.fresh;
    sum.all += theirs.all;
    sum.bouncing_between += theirs.bouncing_between;
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

std::size_t Between::motion_bytes(With with) {
  return sizeof(Motion) + (with == With::kLast     ? sizeof(Bodies::Twist)
                           : with == With::kComing ? sizeof(Bodies::Coming)
                                                   : 0);
}

void Between::send_motion(const Neighbour& neighbour, const Bodies& bodies, With with) {
  const std::vector<int>& places = neighbour.border;
  if (!std::all_of(places.begin(), places.end(), [&](int place) { return is_finite(bodies.motion[place]); }))
    throw MotionNotFinite();  // nothing like it is to reach bodies that had no part in it
  LAPJOINT_ASSERT(places.size() * motion_bytes(with) <= mailboxes_->room());
  LAPJOINT_ASSERT(with != With::kLast || bodies.last.size() == bodies.motion.size());  // there where there are joints
  void* rest = put_each(places, bodies.motion, mailboxes_->outgoing(neighbour.worker));
  if (with == With::kLast) put_each(places, bodies.last, rest);
  if (with == With::kComing) put_each(places, bodies.coming, rest);
  mailboxes_->send(neighbour.worker, places.size() * motion_bytes(with));
}

void Between::receive_motion(const Neighbour& neighbour, Bodies& bodies, With with) {
  const std::vector<int>& places = neighbour.ghosts;
  const auto* in =
      static_cast<const Motion*>(mailboxes_->receive(neighbour.worker, places.size() * motion_bytes(with)));
  take_each(places, in, bodies.motion);
  const void* rest = in + places.size();
  if (with == With::kLast) take_each(places, rest, bodies.last);
  if (with == With::kComing) take_each(places, rest, bodies.coming);
}

template <typename Wanted, typename Reads, typename Sweep>
void Between::take_turns(Bodies& bodies, Wanted&& wanted, Reads&& with, Sweep&& sweep) {
  if (mailboxes_) mailboxes_->meet();
  for (int turn = 0; turn < turn_count_; ++turn) {
    const auto is_due = [&](std::size_t n) { return neighbours_[n].turn == turn && wanted(rows_[n]); };
    for (std::size_t n = 0; n < neighbours_.size(); ++n)
      if (is_due(n)) send_motion(neighbours_[n], bodies, with(rows_[n]));
    for (std::size_t n = 0; n < neighbours_.size(); ++n) {
      if (!is_due(n)) continue;
      receive_motion(neighbours_[n], bodies, with(rows_[n]));
      sweep(rows_[n], neighbours_[n]);
    }
  }
}

// ---- a step --------------------------------------------------------------------------------------------------------

void Between::colour(const std::vector<Contact>& contacts, int fixed) {
  for (std::size_t n = 0; n < rows_.size(); ++n) rows_[n].contacts.colour(contacts, contact_orders[n], fixed);
}

const std::vector<Backed>& Between::backed(const Rows& rows) const {
  return backing_->between(static_cast<std::size_t>(&rows - rows_.data()));
}

void Between::prepare(const std::vector<Contact>& contacts, Bodies& bodies, const ContactSettings& of_contacts,
                      const JointSettings& of_joints, const std::vector<Real>& joint_impulses) {
  for (Rows& rows : rows_) {
    {
      const AsBacked as(backed(rows), bodies, AsBacked::Also::kFrames);
      rows.contacts.prepare(contacts, bodies, of_contacts);
    }
    if (!rows.joints.empty()) rows.joints.prepare(bodies, of_joints, joint_impulses);
  }
}

void Between::warm_start(Bodies& bodies) const {
  for (const Rows& rows : rows_) {
    rows.joints.warm_start(bodies);
    const AsBacked as(backed(rows), bodies);
    rows.contacts.warm_start(bodies);
  }
}

void Between::solve(Bodies& bodies) {
  take_turns(
      bodies, [](const Rows&) { return true; },
      [](const Rows& rows) { return rows.joints.reads_last() ? With::kLast : With::kNothing; },
      [&](Rows& rows, const Neighbour&) {
        rows.joints.solve(bodies);
        const AsBacked as(backed(rows), bodies);
        rows.contacts.solve(bodies);
      });
}

Real Between::relax(Bodies& bodies, bool moved, bool poses) {
  Real residual = 0;
  take_turns(
      bodies, [](const Rows&) { return true; }, [](const Rows&) { return With::kNothing; },
      [&](Rows& rows, const Neighbour& neighbour) {
        if (moved && poses)
          for (const int place : neighbour.ghosts) bodies.find_pose(place);
        if (moved) rows.joints.turn(bodies);
        residual = std::max(residual, rows.joints.relax(bodies));
        const AsBacked as(backed(rows), bodies);
        residual = std::max(residual, rows.contacts.relax(bodies));
      });
  return residual;
}

Real Between::largest_overlap(Bodies& bodies) const {
  Real deepest = 0;
  for (const Rows& rows : rows_) {
    const AsBacked as(backed(rows), bodies);
    deepest = std::max(deepest, rows.contacts.largest_overlap(bodies));
  }
  return deepest;
}

bool Between::impact(Bodies& bodies, bool first) {
  bool any = false;
  take_turns(
      bodies, [](const Rows& rows) { return rows.contacts.bounces(); },
      [&](const Rows&) { return first ? With::kComing : With::kNothing; },
      [&](Rows& rows, const Neighbour&) {
        const AsBacked as(backed(rows), bodies, AsBacked::Also::kComing);
        rows.contacts.look_at_all();
        any |= rows.contacts.impact(bodies);
      });
  return any;
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

void Between::add_impacts(std::vector<PointImpulses>& sums) const {
  for (const Rows& rows : rows_) rows.contacts.add_impacts(sums);
}

void Between::add_impacts(std::vector<FrictionImpulses>& sums) const {
  for (const Rows& rows : rows_) rows.contacts.add_impacts(sums);
}

}  // namespace lapjoint
