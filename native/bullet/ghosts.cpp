// Who shares which bodies with which worker, chosen by the workers themselves, within a step.
//
// A body is a ghost in another worker if the boxes and the spheres around it and around one of that worker's bodies
// meet, or if a joint ties the two. They have room for a contact and for how far bodies may move before ghosts are
// chosen anew. Two workers send each other the bodies that may be concerned, and look for the same pairs among the same
// numbers, so both know who is a ghost where. What a step computes does not depend on when ghosts were chosen: every
// contact and every joint between two workers has its bodies in both.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "assertions.h"
#include "bullet/slot.h"
#include "bullet/world.h"

namespace lapjoint {

namespace {

// How far a body may move until ghosts are chosen anew: in length units, at least and at most, and in between as far as
// it moves in some steps. More: more ghosts, chosen less often.
constexpr btScalar kReach = btScalar(0.05), kMostReach = btScalar(0.5), kStepsAhead = 6;
// How much farther than its sides the corner of a cube is from its middle.
constexpr btScalar kCorner = btScalar(0.733);

btScalar reach_of(const btRigidBody& body, double timestep) {
  const btScalar speed =
      body.getLinearVelocity().length() + btScalar(radius_of(body)) * body.getAngularVelocity().length();
  return std::clamp(kStepsAhead * btScalar(timestep) * speed, kReach, kMostReach);
}

struct Box {
  Real low[3], high[3];

  static Box none() {
    Box box;
    std::fill(box.low, box.low + 3, std::numeric_limits<Real>::infinity());
    std::fill(box.high, box.high + 3, -std::numeric_limits<Real>::infinity());
    return box;
  }
  void include(const Box& other) {
    for (int k = 0; k < 3; ++k) {
      low[k] = std::min(low[k], other.low[k]);
      high[k] = std::max(high[k], other.high[k]);
    }
  }
  bool meets(const Box& other) const {
    for (int k = 0; k < 3; ++k)
      if (!(low[k] <= other.high[k] && other.low[k] <= high[k])) return false;
    return true;
  }
};

// The first message, to all workers: a box around all own bodies, and the numbers of those that are jointed to others'.
struct Outline {
  Box box;
  std::int32_t jointed_count;
};

// What an own body takes up.
struct Extent {
  std::int32_t id, island;
  Box box;
  Real radius;  // of the sphere, about its position
};

// The second, to workers that may share bodies: a number, and as many of these.
struct NearBody : Extent {
  BodyState state;

  bool meets(const NearBody& other) const {
    Real square = 0;
    for (int k = 0; k < 3; ++k)
      square += (state.position[k] - other.state.position[k]) * (state.position[k] - other.state.position[k]);
    const Real reach = radius + other.radius;
    return box.meets(other.box) && square <= reach * reach;
  }
};

// Calls visit(i, k) for every i of the first and k of the second list that meet.
template <typename Visit>
void each_meeting(const std::vector<NearBody>& first, const std::vector<NearBody>& second, Visit&& visit) {
  Box all = Box::none();
  for (const NearBody& one : first) all.include(one.box);
  for (const NearBody& one : second) all.include(one.box);
  int axis = 0;
  for (int k = 1; k < 3; ++k)
    if (all.high[k] - all.low[k] > all.high[axis] - all.low[axis]) axis = k;
  const auto sorted = [axis](const std::vector<NearBody>& boxes) {
    std::vector<int> order(boxes.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](int i, int k) { return boxes[i].box.low[axis] < boxes[k].box.low[axis]; });
    return order;
  };
  const std::vector<int> a = sorted(first), b = sorted(second);
  std::size_t i = 0, k = 0;
  while (i < a.size() && k < b.size()) {  // the box that begins first meets those that begin before it ends
    const NearBody &next_a = first[a[i]], &next_b = second[b[k]];
    if (next_a.box.low[axis] <= next_b.box.low[axis]) {
      for (std::size_t m = k; m < b.size() && second[b[m]].box.low[axis] <= next_a.box.high[axis]; ++m)
        if (next_a.meets(second[b[m]])) visit(a[i], b[m]);
      ++i;
    } else {
      for (std::size_t m = i; m < a.size() && first[a[m]].box.low[axis] <= next_b.box.high[axis]; ++m)
        if (next_b.meets(first[a[m]])) visit(a[m], b[k]);
      ++k;
    }
  }
}

// By their numbers, each once.
[[maybe_unused]] bool ascends(const std::vector<NearBody>& bodies) {
  return std::adjacent_find(bodies.begin(), bodies.end(),
                            [](const NearBody& x, const NearBody& y) { return x.id >= y.id; }) == bodies.end();
}

std::vector<int> numbers_of(const std::vector<NearBody>& candidates, const std::vector<char>& marked) {
  std::vector<int> ids;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (marked[i]) ids.push_back(candidates[i].id);
  return ids;
}

}  // namespace

std::size_t ghost_message_bytes() { return sizeof(NearBody); }

void BulletWorld::choose_ghosts(Mailboxes& mailboxes, double timestep) {
  const int self = mailboxes.self(), worker_count = mailboxes.worker_count();
  const auto is_own = [this](int id) { return slots_[id] && !is_ghost_[id]; };
  LAPJOINT_ASSERT(static_cast<int>(turns_.size()) == worker_count && self == self_);
  std::vector<Extent> own;
  std::vector<std::int32_t> jointed;
  Outline outline{Box::none(), 0};
  std::vector<SubstepWorld::Reach> reaches;
  own.reserve(bodies_.size());
  reaches.reserve(bodies_.size());
  std::vector<const btRigidBody*> watched;
  for (const int id : bodies_) {
    if (is_ghost_[id]) continue;
    Extent& one = own.emplace_back();
    const btRigidBody& body = slot(id).body;
    SubstepWorld::Reach& reach = reaches.emplace_back();
    reach.any_way = reach_of(body, timestep);
    btScalar room = gContactBreakingThreshold + reach.any_way;
    btVector3 low, high;
    body.getCollisionShape()->getAabb(body.getWorldTransform(), low, high);
    btVector3 low_way = body.getWorldTransform().getOrigin(), high_way = low_way;
    one.radius = radius_of(body) + room;
    if (const auto way = substeps_->fast_way(body, btScalar(timestep))) {
      // A box around the steps that come, and room for any turn.
      const btVector3 ahead = kStepsAhead * *way, wider = btVector3(room, room, room);
      const btVector3 position = low_way;
      low_way.setMin(position + ahead);
      high_way.setMax(position + ahead);
      low_way -= wider;
      high_way += wider;
      const btScalar radius = radius_of(body) + gContactBreakingThreshold;
      low = low_way - btVector3(radius, radius, radius);
      high = high_way + btVector3(radius, radius, radius);
      one.radius += ahead.length() + kCorner * room;
      room = 0;
    }
    one.id = id;
    one.island = island_[id];
    watched.push_back(&body);
    for (int k = 0; k < 3; ++k) {
      one.box.low[k] = low[k] - room;
      one.box.high[k] = high[k] + room;
      reach.low[k] = low_way[k];
      reach.high[k] = high_way[k];
    }
    outline.box.include(one.box);
    bool is_jointed = false;
    joint_lists_.each(id, [&](int joint) {
      const int other = other_end(joint, id);
      is_jointed |= !joint_lists_.is_broken(joint) && other != kWorld && !is_own(other);
    });
    if (is_jointed) jointed.push_back(id);
  }
  outline.jointed_count = static_cast<std::int32_t>(jointed.size());

  // To all, where this worker is.
  for (int worker = 0; worker < worker_count; ++worker) {
    if (worker == self) continue;
    auto* out = static_cast<std::byte*>(mailboxes.outgoing(worker));
    std::memcpy(out, &outline, sizeof outline);
    std::memcpy(out + sizeof outline, jointed.data(), jointed.size() * sizeof(std::int32_t));
    mailboxes.send(worker, sizeof outline + jointed.size() * sizeof(std::int32_t));
  }
  std::vector<Outline> outlines(worker_count);
  std::vector<std::vector<std::int32_t>> jointed_there(worker_count);
  for (int worker = 0; worker < worker_count; ++worker) {
    if (worker == self) continue;
    const auto* in = static_cast<const std::byte*>(mailboxes.receive_any(worker));
    std::memcpy(&outlines[worker], in, sizeof(Outline));
    jointed_there[worker].resize(outlines[worker].jointed_count);
    std::memcpy(jointed_there[worker].data(), in + sizeof(Outline),
                jointed_there[worker].size() * sizeof(std::int32_t));
  }

  // To those that are near or jointed, bodies that may be ghosts there.
  struct Pair {
    int worker;
    std::vector<NearBody> mine, theirs;
    std::vector<std::array<int, 2>> joints;  // own body, the other's
  };
  std::vector<Pair> pairs;
  for (int worker = 0; worker < worker_count; ++worker) {
    if (worker == self) continue;
    Pair pair;
    pair.worker = worker;
    const std::vector<std::int32_t>& there = jointed_there[worker];  // ascending
    LAPJOINT_ASSERT(std::is_sorted(there.begin(), there.end()));
    for (const int id : jointed)
      joint_lists_.each(id, [&](int joint) {
        const int other = other_end(joint, id);
        if (!joint_lists_.is_broken(joint) && std::binary_search(there.begin(), there.end(), other))
          pair.joints.push_back({id, other});
      });
    if (pair.joints.empty() && !outline.box.meets(outlines[worker].box)) continue;
    std::size_t next = 0;  // joints are in the order of own bodies
    for (const Extent& one : own) {
      const bool is_jointed = next < pair.joints.size() && pair.joints[next][0] == one.id;
      while (next < pair.joints.size() && pair.joints[next][0] == one.id) ++next;
      if (is_jointed || one.box.meets(outlines[worker].box)) pair.mine.push_back({one, state_of(slot(one.id).body)});
    }
    auto* out = static_cast<std::byte*>(mailboxes.outgoing(worker));
    const std::int64_t count = static_cast<std::int64_t>(pair.mine.size());
    std::memcpy(out, &count, sizeof count);
    std::memcpy(out + sizeof count, pair.mine.data(), pair.mine.size() * sizeof(NearBody));
    mailboxes.send(worker, sizeof count + pair.mine.size() * sizeof(NearBody));
    pairs.push_back(std::move(pair));
  }
  std::vector<NeighbourBodies> chosen;
  std::vector<Arriving> arriving;
  for (Pair& pair : pairs) {
    const auto* in = static_cast<const std::byte*>(mailboxes.receive_any(pair.worker));
    std::int64_t count;
    std::memcpy(&count, in, sizeof count);
    pair.theirs.resize(static_cast<std::size_t>(count));
    std::memcpy(pair.theirs.data(), in + sizeof count, pair.theirs.size() * sizeof(NearBody));
    LAPJOINT_ASSERT(ascends(pair.mine) && ascends(pair.theirs));
    std::vector<char> is_border(pair.mine.size(), 0), is_ghost(pair.theirs.size(), 0);
    each_meeting(pair.mine, pair.theirs, [&](int i, int k) { is_border[i] = is_ghost[k] = 1; });
    const auto place = [](const std::vector<NearBody>& of, int id) {
      return std::lower_bound(of.begin(), of.end(), id, [](const NearBody& x, int y) { return x.id < y; }) - of.begin();
    };
    for (const auto& [mine, theirs] : pair.joints)
      is_border[place(pair.mine, mine)] = is_ghost[place(pair.theirs, theirs)] = 1;
    NeighbourBodies found{pair.worker, turns_[pair.worker], numbers_of(pair.mine, is_border),
                          numbers_of(pair.theirs, is_ghost)};
    LAPJOINT_ASSERT(found.border.empty() == found.ghosts.empty());  // what meets is two
    if (found.border.empty()) continue;
    for (std::size_t k = 0; k < pair.theirs.size(); ++k)
      if (is_ghost[k] && !slots_[pair.theirs[k].id])
        arriving.push_back({pair.theirs[k].id, pair.theirs[k].island, pair.theirs[k].state});
    chosen.push_back(std::move(found));
  }
  set_ghosts(std::move(chosen), arriving);
  substeps_->watch_bodies(watched, reaches);
  ghosts_are_due_ = false;
  mailboxes.count_from_here();  // so that all steps have the same number of exchanges
}

void BulletWorld::set_ghosts(std::vector<NeighbourBodies> chosen, const std::vector<Arriving>& arriving) {
  const bool some_sleep =
      std::any_of(arriving.begin(), arriving.end(), [](const Arriving& one) { return one.island != kAwake; });
  if (chosen != neighbours_) {
    std::vector<char> stays(is_ghost_.size(), 0);
    for (const NeighbourBodies& neighbour : chosen)
      for (const int id : neighbour.ghosts) stays[id] = 1;
    std::vector<int> gone, entering;
    for (const int id : bodies_)
      if (is_ghost_[id] && !stays[id]) gone.push_back(id);
    leave(gone);
    for (const auto& [id, island, state] : arriving) {
      if (slots_[id]) throw std::runtime_error("body " + std::to_string(id) + " has two owners");
      is_ghost_[id] = 1;
      slots_[id] = make_body(id);
      lapjoint::place_body(slot(id).body, state);
      if (island != kAwake) put_to_sleep(id, island);
      entering.push_back(id);
    }
    std::sort(entering.begin(), entering.end());
    enter(entering.data(), static_cast<int>(entering.size()), entering);
    neighbours_ = std::move(chosen);
    members_changed_ = true;
    for (const NeighbourBodies& neighbour : neighbours_) {
      for (const int id : neighbour.border) LAPJOINT_ASSERT(slots_[id] && !is_ghost_[id]);
      for (const int id : neighbour.ghosts) LAPJOINT_ASSERT(slots_[id] && is_ghost_[id]);
    }
  }
  members_changed_ |= ghosts_are_stale_;
  ghosts_are_stale_ = false;
  commit();
  // Some arrive asleep: what is between them and others that sleep is frozen with what has waited for them.
  if (waiting_.empty()) {
    if (some_sleep) freeze_sleepers();
    return;
  }
  std::erase_if(waiting_,
                [this](const CachedManifold& one) { return !object(one.bodies[0]) || !object(one.bodies[1]); });
  merge_manifolds(waiting_);
  waiting_.clear();
  if (!islands_.empty()) freeze_sleepers();
}

int BulletWorld::other_end(int joint, int body) const {
  const int a = joint_columns_.body_a[joint];
  return a == body ? joint_columns_.body_b[joint] : a;
}

}  // namespace lapjoint
