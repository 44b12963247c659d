// Who falls asleep and who wakes. See docs/sleep.md.
//
// An island is bodies that contacts and joints connect. It falls asleep as a whole, in a step whose number is a
// multiple of kSleepEvery, once none of its bodies has moved for some steps. Contacts are those that the step has
// found: until one of them wakes, nothing that is awake touches them. So a step solves what is awake, and knows nothing
// of the rest.
#include "bullet/sleep.h"

#include <algorithm>

#include "assertions.h"
#include "bullet/exchange_numbers.h"
#include "bullet/slot.h"
#include "bullet/world.h"
#include "substeps/union_find.h"

namespace lapjoint {

// ---- waking --------------------------------------------------------------------------------------------------------

// Of what has happened to an island: something that may move it, or nothing but that bodies of it change owners, so
// that it sleeps again as soon as it can.
void BulletWorld::wake(int body, bool stays_still) {
  if (body < 0) return;
  if (!stays_still) still_[body] = 0;
  const int label = island_[body];
  if (label == kAwake) return;
  woken_.push_back(stays_still ? ~label : label);
  wake_island(label, stays_still);
}

void BulletWorld::wake_island(int label, bool stays_still) {
  const auto found = islands_.find(label);
  if (found == islands_.end()) return;
  std::vector<btPersistentManifold*> thawed;
  for (const int id : found->second.bodies) {
    LAPJOINT_ASSERT(island_[id] == label);
    island_[id] = kAwake;
    if (!stays_still) still_[id] = 0;
    frozen_.thaw(id, thawed);
  }
  islands_.erase(found);
  substeps_->thaw(thawed);
  members_changed_ = resting_changed_ = true;
}

void BulletWorld::wake_all() {
  while (!islands_.empty()) {
    woken_.push_back(islands_.begin()->first);
    wake_island(islands_.begin()->first);
  }
  std::fill(still_.begin(), still_.end(), 0);
}

// A step has failed, and perhaps not all workers have come as far in it as this one. All do this.
void BulletWorld::forget_sleep() {
  wake_all();
  woken_.clear();
  touched_.clear();
}

// A ghost that leaves although it sleeps: it is no neighbour of what is awake, and its island sleeps on.
void BulletWorld::forget_sleeper(int ghost) {
  LAPJOINT_ASSERT(is_ghost_[ghost] && island_[ghost] != kAwake);
  const int label = island_[ghost];
  std::vector<btPersistentManifold*> thawed;
  frozen_.thaw(ghost, thawed);
  island_[ghost] = kAwake;
  SleepingIsland& island = islands_.at(label);
  std::erase(island.bodies, ghost);
  island.is_new = resting_changed_ = true;
  if (island.bodies.empty()) islands_.erase(label);
  if (!thawed.empty()) throw std::runtime_error("a ghost leaves what it touches");
}

// Bodies that a static body rested with see it move, or jump: what touches it is to wake.
std::vector<int> BulletWorld::thaw_static(int number) {
  std::vector<int> touched;
  if (frozen_.count_on(kStaticBase + number) == 0) return touched;
  std::vector<btPersistentManifold*> thawed, all;
  for (const auto& [label, island] : islands_) {
    for (const int id : island.bodies) frozen_.thaw(id, kStaticBase + number, thawed);
    if (!thawed.empty()) touched.push_back(label);
    all.insert(all.end(), thawed.begin(), thawed.end());
    thawed.clear();
  }
  substeps_->thaw(all);
  return touched;
}

// Whether a fast body's way comes near another body. Of two workers' bodies no more may count: so near, one is a ghost
// of the other's worker whenever ghosts were chosen; farther away only by chance.
static bool comes_near(const SubstepWorld::FastBody& fast, const btCollisionObject& body) {
  btVector3 low, high;
  body.getCollisionShape()->getAabb(body.getWorldTransform(), low, high);
  const btScalar reach = gContactBreakingThreshold + fast.radius;
  for (int k = 0; k < 3; ++k)
    if (low[k] - reach > std::max(fast.from[k], fast.to[k]) || std::min(fast.from[k], fast.to[k]) > high[k] + reach)
      return false;
  const btVector3 way = fast.to - fast.from, apart = body.getWorldTransform().getOrigin() - fast.from;
  const btScalar square = way.length2();
  const btScalar share = square > 0 ? std::clamp(apart.dot(way) / square, btScalar(0), btScalar(1)) : btScalar(0);
  const btScalar radius = radius_of(static_cast<const btRigidBody&>(body));
  return (apart - share * way).length2() <= (reach + radius) * (reach + radius);
}

void BulletWorld::find_touched(double timestep) {
  if (islands_.empty()) return;
  const auto add = [this](int number) {
    if (number < kStaticBase && island_[number] != kAwake) touched_.push_back(island_[number]);
  };
  btPersistentManifold** manifolds = dispatcher_.getInternalManifoldPointer();
  for (int i = 0; i < dispatcher_.getNumManifolds(); ++i) {
    if (manifolds[i]->getNumContacts() == 0) continue;
    const auto [a, b] = manifold_bodies(*manifolds[i]);
    add(a);
    add(b);
  }
  for (const SubstepWorld::FastBody& fast : substeps_->fast_bodies(btScalar(timestep)))
    for (const btCollisionObject* body : bodies_in_box(broadphase_, fast.low, fast.high)) {
      const int number = body->getBroadphaseHandle()->m_uniqueId;
      if (number >= kStaticBase || island_[number] == kAwake) continue;
      const bool is_one_workers = fast.number >= kStaticBase || worker_of(fast.number) == worker_of(number);
      if (is_one_workers || comes_near(fast, *body)) add(number);
    }
}

// Islands that were woken here, or are to be, wake in all workers.
void BulletWorld::wake_together(Mailboxes* mailboxes) {
  std::vector<std::int32_t> labels(touched_.begin(), touched_.end());
  labels.insert(labels.end(), woken_.begin(), woken_.end());
  touched_.clear();
  woken_.clear();
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  if (mailboxes) {
    const auto of_workers = exchange_numbers(*mailboxes, labels);
    labels.clear();
    for (const std::vector<std::int32_t>& own : of_workers) labels.insert(labels.end(), own.begin(), own.end());
  }
  for (const int label : labels)
    if (label >= 0) wake_island(label);
  for (const int label : labels)
    if (label < 0) wake_island(~label, true);
}

// ---- falling asleep ------------------------------------------------------------------------------------------------

void BulletWorld::count_still() {
  const btScalar speed = btScalar(settings_.sleep_speed), spin = btScalar(settings_.sleep_spin);
  for (const int id : awake()) {
    const btRigidBody& body = slot(id).body;
    const bool is_still =
        body.getLinearVelocity().length2() < speed * speed && body.getAngularVelocity().length2() < spin * spin;
    still_[id] = is_still ? std::min(still_[id] + 1, settings_.sleep_steps) : 0;
    LAPJOINT_ASSERT(still_[id] <= settings_.sleep_steps);
  }
}

// What contacts and joints connect, of bodies that are awake; only what may sleep, as far as this worker knows.
std::vector<BulletWorld::Group> BulletWorld::find_resting_groups() {
  const auto may_sleep = [this](int id) { return is_ghost_[id] || still_[id] >= settings_.sleep_steps; };
  if (before_step_ || !std::any_of(awake().begin(), awake().end(),
                                   [&](int id) { return !is_ghost_[id] && still_[id] >= settings_.sleep_steps; }))
    return {};
  LAPJOINT_ASSERT(!members_changed_ && movers_.size() == awake().size());
  UnionFind groups(movers_.size());
  std::vector<char> moves(movers_.size(), 0), is_held(movers_.size(), 0);
  for (std::size_t i = 0; i < movers_.size(); ++i) moves[i] = !may_sleep(movers_[i]->getUserIndex());
  const auto place = [this](int number) { return slot(number).body.getUserIndex2(); };
  btPersistentManifold** manifolds = dispatcher_.getInternalManifoldPointer();
  for (int i = 0; i < dispatcher_.getNumManifolds(); ++i) {
    if (manifolds[i]->getNumContacts() == 0) continue;
    auto [a, b] = manifold_bodies(*manifolds[i]);
    if (a > b) std::swap(a, b);
    if (island_[a] != kAwake || (b < kStaticBase && island_[b] != kAwake)) continue;
    is_held[place(a)] = 1;
    if (b < kStaticBase)
      groups.unite(place(a), place(b));
    else if (static_moves(b - kStaticBase))
      moves[place(a)] = 1;
  }
  for (const LiveJoint& joint : joints_) {
    const int a = joint_columns_.body_a[joint.id], b = joint_columns_.body_b[joint.id];
    if (island_[a] != kAwake) continue;
    is_held[place(a)] = 1;
    if (b != kWorld) groups.unite(place(a), place(b));
    if (substeps_->is_driven(joint.id)) moves[place(a)] = 1;
  }
  // Nothing that only floats sleeps, unless nothing pulls at it.
  if (world_->getGravity().isZero() && fields_.empty()) std::fill(is_held.begin(), is_held.end(), 1);
  std::vector<Group> found;
  std::vector<int> at(movers_.size(), -1);
  for (std::size_t i = 0; i < movers_.size(); ++i) {
    const int root = groups.find(static_cast<int>(i));
    if (static_cast<int>(i) != root) {
      moves[root] |= moves[i];
      is_held[root] |= is_held[i];
    }
  }
  for (std::size_t i = 0; i < movers_.size(); ++i) {
    const int root = groups.find(static_cast<int>(i)), id = movers_[i]->getUserIndex();
    if (moves[root] || !is_held[root]) continue;
    if (at[root] < 0) {
      at[root] = static_cast<int>(found.size());
      found.emplace_back();
    }
    Group& group = found[at[root]];
    group.bodies.push_back(id);
    if (!is_ghost_[id] && group.label == kAwake) group.label = id;
  }
  std::erase_if(found, [](const Group& group) { return group.label == kAwake; });  // ghosts alone
  return found;
}

// Joins what is one island across workers. Every worker sends the groups that may sleep and have bodies at the
// interface; a group with a ghost sleeps only if the ghost's owner lets that sleep, too.
void BulletWorld::agree_on_groups(Mailboxes& mailboxes, std::vector<Group>& groups) {
  std::vector<char> is_border(is_ghost_.size(), 0);
  for (const NeighbourBodies& neighbour : neighbours_)
    for (const int id : neighbour.border) is_border[id] = 1;
  std::vector<std::int32_t> message;
  std::vector<int> sent;  // numbers of groups
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::vector<std::int32_t> border, ghosts;
    for (const int id : groups[i].bodies) {
      if (is_border[id]) border.push_back(id);
      if (is_ghost_[id]) ghosts.push_back(id);
    }
    if (border.empty() && ghosts.empty()) continue;
    sent.push_back(static_cast<int>(i));
    message.insert(message.end(), {groups[i].label, static_cast<std::int32_t>(border.size()),
                                   static_cast<std::int32_t>(ghosts.size())});
    message.insert(message.end(), border.begin(), border.end());
    message.insert(message.end(), ghosts.begin(), ghosts.end());
  }
  struct Sent {
    int worker, label;
    std::vector<std::int32_t> border, ghosts;
  };
  std::vector<Sent> all;
  std::map<int, int> group_of;  // of each border body that is mentioned
  const auto messages = exchange_numbers(mailboxes, message);
  for (int worker = 0; worker < static_cast<int>(messages.size()); ++worker) {
    const auto* at = messages[worker].data();
    const auto* end = at + messages[worker].size();
    while (at < end) {
      const int border = at[1], ghosts = at[2];
      all.push_back({worker, at[0], {at + 3, at + 3 + border}, {at + 3 + border, at + 3 + border + ghosts}});
      for (const int id : all.back().border) group_of[id] = static_cast<int>(all.size()) - 1;
      at += 3 + border + ghosts;
      LAPJOINT_ASSERT(border >= 0 && ghosts >= 0 && at <= end);
    }
  }
  UnionFind joined(all.size());
  std::vector<char> moves(all.size(), 0);
  std::vector<int> label(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const int ghost : all[i].ghosts) {
      const auto owner = group_of.find(ghost);
      if (owner == group_of.end())
        moves[i] = 1;
      else
        joined.unite(static_cast<int>(i), owner->second);
    }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int root = joined.find(static_cast<int>(i));  // at most i
    moves[root] |= moves[i];
    label[root] = root == static_cast<int>(i) ? all[i].label : std::min(label[root], all[i].label);
  }
  std::size_t next = 0;
  std::vector<Group> alone;  // ghosts whose owners put them to sleep, and that touch nothing here
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int root = joined.find(static_cast<int>(i));
    if (all[i].worker == mailboxes.self()) {
      Group& own = groups[sent[next++]];
      if (moves[root])
        own.bodies.clear();
      else
        own.label = label[root];
    } else if (!moves[root]) {
      Group& others = alone.emplace_back();
      others.label = label[root];
      for (const int id : all[i].border)
        if (is_ghost_[id] && slots_[id]) others.bodies.push_back(id);
    }
  }
  LAPJOINT_ASSERT(next == sent.size());  // every own group has come back
  groups.insert(groups.end(), alone.begin(), alone.end());
}

void BulletWorld::fall_asleep(Mailboxes* mailboxes) {
  std::vector<Group> groups = find_resting_groups();
  if (mailboxes) agree_on_groups(*mailboxes, groups);
  bool any = false;
  for (const Group& group : groups)
    for (const int id : group.bodies) {
      if (island_[id] != kAwake) continue;  // a ghost that is in a group, and was named by its owner
      put_to_sleep(id, group.label);
      any = true;
    }
  if (any) freeze_sleepers();
}

void BulletWorld::put_to_sleep(int id, int label) {
  LAPJOINT_ASSERT(label >= 0 && island_[id] == kAwake);
  btRigidBody& body = slot(id).body;
  const btVector3 none(0, 0, 0);
  body.setLinearVelocity(none);
  body.setAngularVelocity(none);
  body.clearForces();
  body.setUserIndex3(0);
  body.setUserIndex2(-1);
  island_[id] = label;
  unread_.push_back(id);
  SleepingIsland& island = islands_[label];
  island.bodies.insert(std::upper_bound(island.bodies.begin(), island.bodies.end(), id), id);
  island.is_new = true;
}

// Pairs of bodies that sleep, with each other and with what cannot be moved. Not those with a kinematic body that does
// not touch, though it rests in this step: it may have come in the last one, and be found to touch only now.
void BulletWorld::freeze_sleepers() {
  std::vector<btPersistentManifold*> frozen;
  const auto end_rests = [this](const btBroadphaseProxy* proxy) {
    const int number = proxy->m_uniqueId;
    return number < kStaticBase ? island_[number] != kAwake : !static_moves(number - kStaticBase);
  };
  const auto is_kinematic = [this](const btBroadphaseProxy* proxy) {
    return std::ranges::binary_search(kinematic_, proxy->m_uniqueId - kStaticBase, {}, &Kinematic::number);
  };
  const auto rests = [&](const btBroadphasePair& pair) {
    if (!end_rests(pair.m_pProxy0) || !end_rests(pair.m_pProxy1)) return false;
    return (!is_kinematic(pair.m_pProxy0) && !is_kinematic(pair.m_pProxy1)) || FrozenPairs::touches(pair);
  };
  frozen_.freeze(rests, [&](btPersistentManifold& manifold) { frozen.push_back(&manifold); });
  substeps_->freeze(frozen);
  members_changed_ = resting_changed_ = true;
}

// ---- within a step -------------------------------------------------------------------------------------------------

void BulletWorld::find_step_contacts(double timestep, Mailboxes* mailboxes) {
  begin_kinematic_step(timestep);
  world_->find_own_contacts(btScalar(timestep));
  if (settings_.sleep) {
    commit();  // of what has been woken by what moves
    find_touched(timestep);
    wake_together(mailboxes);
    commit();
    if (step_ % kSleepEvery == 0) fall_asleep(mailboxes);
    commit();
    read_resting();
  }
  world_->add_own_forces(btScalar(timestep));
}

// ---- what can be read ----------------------------------------------------------------------------------------------

int BulletWorld::sleeping_count() const {
  int count = 0;
  for (const auto& [label, island] : islands_)
    count += static_cast<int>(
        std::count_if(island.bodies.begin(), island.bodies.end(), [this](int id) { return !is_ghost_[id]; }));
  return count;
}

std::vector<int> BulletWorld::take_moved() {
  std::vector<int> moved;
  const auto is_own = [this](int id) { return slots_[id] && !is_ghost_[id]; };
  std::copy_if(awake().begin(), awake().end(), std::back_inserter(moved), is_own);
  std::sort(unread_.begin(), unread_.end());
  unread_.erase(std::unique(unread_.begin(), unread_.end()), unread_.end());
  for (const int id : unread_)
    if (is_own(id) && island_[id] != kAwake) moved.push_back(id);
  unread_.clear();
  return moved;
}

// Of bodies that sleep: what two workers have is reported by the first of them.
bool BulletWorld::is_resting_reported(int a, int b) const {
  for (const int id : {a, b})
    if (id >= 0 && id < kStaticBase && is_ghost_[id]) return self_ < worker_of(id);
  return true;
}

// Whose body it is; of a ghost that no neighbour has any more: nobody's, which is before all others.
int BulletWorld::worker_of(int id) const {
  if (!is_ghost_[id]) return self_;
  for (const NeighbourBodies& neighbour : neighbours_)
    if (std::binary_search(neighbour.ghosts.begin(), neighbour.ghosts.end(), id)) return neighbour.worker;
  return -1;
}

void BulletWorld::read_island(SleepingIsland& island) {
  island.contacts.clear();
  island.readings = {};
  island.is_new = false;
  StepMeasures& measures = island.readings.measures;
  std::vector<SubstepWorld::LiveJoint> joints;
  std::vector<const btRigidBody*> bodies;
  const auto place = [&](int id) {
    return static_cast<int>(std::lower_bound(island.bodies.begin(), island.bodies.end(), id) - island.bodies.begin());
  };
  LAPJOINT_ASSERT(std::is_sorted(island.bodies.begin(), island.bodies.end()));
  for (const int id : island.bodies) bodies.push_back(&slot(id).body);
  std::vector<ContactKey> keys;  // sorted: in which order pairs were frozen is nobody's business
  for (const int id : island.bodies)
    frozen_.each_contact(id, [&](int other, btPersistentManifold& manifold) {
      if (other < id || !is_resting_reported(id, other)) return;
      const auto [ends, parts] = manifold_key(manifold);
      keys.push_back({ends, parts, &manifold});
    });
  std::sort(keys.begin(), keys.end());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const ContactKey& key = keys[i];
    double depth = -1e30;
    for (int k = 0; k < key.manifold->getNumContacts(); ++k)
      depth = std::max(depth, -static_cast<double>(key.manifold->getContactPoint(k).getDistance()));
    depth *= settings_.length_unit;
    if (i == 0 || keys[i - 1].bodies != key.bodies)
      island.contacts.push_back({scene_number(key.bodies >> 32), scene_number(key.bodies & 0xFFFFFFFFu), 0, depth});
    ContactPair& contact = island.contacts.back();  // a compound touches with several parts: they are one
    contact.point_count += key.manifold->getNumContacts();
    contact.depth = std::max(contact.depth, depth);
    substeps_->read_resting(*key.manifold, island.readings);
  }
  for (const ContactPair& contact : island.contacts) {
    measures.contact_count += 1;
    measures.contact_point_count += contact.point_count;
    measures.penetration_sum += std::max(contact.depth, 0.0);
    measures.penetration_max = std::max(measures.penetration_max, contact.depth);
  }
  for (const int id : island.bodies)
    joint_lists_.each(id, [&](int joint) {
      const int a = joint_columns_.body_a[joint], b = joint_columns_.body_b[joint];
      if (a != id || !joint_live_[joint] || !is_resting_reported(a, b)) return;
      const bool to_world = b == kWorld;
      joints.push_back({joint, place(a), to_world ? static_cast<int>(bodies.size()) : place(b), slot(a).turn,
                        to_world ? btQuaternion::getIdentity() : slot(b).turn});
    });
  if (!joints.empty()) substeps_->read_resting(joints, bodies, btScalar(settings_.timestep), island.readings);
}

void BulletWorld::read_resting() {
  if (!resting_changed_) return;
  RestingReadings all;
  const auto append = [](auto& into, const auto& from) { into.insert(into.end(), from.begin(), from.end()); };
  for (auto& [label, island] : islands_) {
    if (island.is_new) read_island(island);
    const StepMeasures& from = island.readings.measures;
    all.measures.contact_count += from.contact_count;
    all.measures.contact_point_count += from.contact_point_count;
    all.measures.penetration_sum += from.penetration_sum;
    all.measures.penetration_max = std::max(all.measures.penetration_max, from.penetration_max);
    all.measures.joint_gap_sum += from.joint_gap_sum;
    all.measures.joint_gap_max = std::max(all.measures.joint_gap_max, from.joint_gap_max);
    append(all.points, island.readings.points);
    append(all.joints, island.readings.joints);
    append(all.touches, island.readings.touches);
  }
  substeps_->set_resting(std::move(all));
  resting_changed_ = false;
  resting_contacts_are_old_ = true;
}

const std::vector<ContactPair>& BulletWorld::resting_contacts() {
  read_resting();
  if (!resting_contacts_are_old_) return resting_contacts_;
  resting_contacts_.clear();
  for (const auto& [label, island] : islands_)
    resting_contacts_.insert(resting_contacts_.end(), island.contacts.begin(), island.contacts.end());
  std::sort(resting_contacts_.begin(), resting_contacts_.end(), comes_before);
  resting_contacts_are_old_ = false;
  return resting_contacts_;
}

bool BulletWorld::comes_before(const ContactPair& x, const ContactPair& y) {
  const auto second = [](int number) { return number < 0 ? kStaticBase - 1 - number : number; };
  return x.body_a != y.body_a ? x.body_a < y.body_a : second(x.body_b) < second(y.body_b);
}

void BulletWorld::add_frozen_contacts(std::vector<ContactKey>& keys) const {
  if (islands_.empty()) return;
  for (const auto& [label, island] : islands_)
    for (const int id : island.bodies)
      frozen_.each_contact(id, [&](int other, btPersistentManifold& manifold) {
        if (other < id) return;
        const auto [bodies, parts] = manifold_key(manifold);
        keys.push_back({bodies, parts, &manifold});
      });
  std::sort(keys.begin(), keys.end());
}

void BulletWorld::read_sleep(int* islands, int* still) const {
  for (const int id : bodies_) {
    if (is_ghost_[id]) continue;
    *islands++ = island_[id];
    *still++ = still_[id];
  }
}

void BulletWorld::merge_sleep(const int* ids, int count, const int* islands, const int* still) {
  for (int i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] >= body_columns_.count) continue;
    still_[ids[i]] = still[i];
    if (islands[i] == kAwake) continue;
    // Its last owner has woken its island, but may have ended since, and here it may not have been a ghost.
    woken_.push_back(~islands[i]);
    wake_island(islands[i], true);
  }
}

void BulletWorld::restore_sleep(const int* ids, int count, const int* islands, const int* still) {
  for (int i = 0; i < count; ++i) {
    still_[ids[i]] = still[i];
    if (islands[i] != kAwake && settings_.sleep) put_to_sleep(ids[i], islands[i]);
  }
  if (!islands_.empty()) freeze_sleepers();
  commit();
}

}  // namespace lapjoint
