#include "bullet/order.h"

#include <BulletCollision/CollisionDispatch/btCollisionObjectWrapper.h>
#include <BulletCollision/CollisionDispatch/btManifoldResult.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "assertions.h"

namespace lapjoint {

namespace {

int body_number(const btCollisionObject* object) { return object->getBroadphaseHandle()->m_uniqueId; }

constexpr int kAhead = 8;
constexpr btScalar kApart = btScalar(0.5);  // share of the contact threshold: boxes so far apart touch nowhere

inline void prefetch(const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#endif
}

// Boxes as they are now; those of the tree, by which pairs are found, are larger. A box around a moving body reaches as
// far as contacts do.
bool are_apart(const btBroadphaseProxy& a, const btBroadphaseProxy& b) {
  const btScalar room = kApart * gContactBreakingThreshold;
  bool apart = false;
  for (int k = 0; k < 3; ++k) apart |= a.m_aabbMin[k] - b.m_aabbMax[k] > room || b.m_aabbMin[k] - a.m_aabbMax[k] > room;
  return apart;
}

}  // namespace

std::pair<int, int> manifold_bodies(btPersistentManifold& manifold) {
  if (manifold.m_companionIdA == 0) {  // as Bullet makes it
    manifold.m_companionIdA = body_number(manifold.getBody0()) + 1;
    manifold.m_companionIdB = body_number(manifold.getBody1()) + 1;
  }
  return {manifold.m_companionIdA - 1, manifold.m_companionIdB - 1};
}

std::pair<std::uint64_t, std::uint64_t> manifold_key(btPersistentManifold& manifold) {
  auto [id0, id1] = manifold_bodies(manifold);
  LAPJOINT_ASSERT(id0 != id1 && manifold.getNumContacts() > 0);
  const btManifoldPoint& point = manifold.getContactPoint(0);
  int part0 = point.m_index0, part1 = point.m_index1;
  if (id0 > id1) {  // Bullet names the compound first, whatever its number
    std::swap(id0, id1);
    std::swap(part0, part1);
  }
  return {pair_key(id0, id1), pair_key(part0, part1)};
}

std::vector<const btCollisionObject*> bodies_in_box(btBroadphaseInterface& broadphase, const btVector3& low,
                                                    const btVector3& high) {
  struct Meeting : btBroadphaseAabbCallback {
    const btVector3 &low, &high;
    std::vector<const btCollisionObject*> found;
    Meeting(const btVector3& from, const btVector3& to) : low(from), high(to) {}
    bool process(const btBroadphaseProxy* proxy) override {
      const auto* body = static_cast<const btCollisionObject*>(proxy->m_clientObject);
      btVector3 own_low, own_high;
      body->getCollisionShape()->getAabb(body->getWorldTransform(), own_low, own_high);
      const btScalar reach = gContactBreakingThreshold;
      bool meets = true;
      for (int k = 0; k < 3; ++k) meets &= own_low[k] - reach <= high[k] && low[k] <= own_high[k] + reach;
      if (meets) found.push_back(body);
      return true;
    }
  } meeting(low, high);
  broadphase.aabbTest(low, high, meeting);
  return std::move(meeting.found);
}

void collect_contacts(btDispatcher& dispatcher, std::vector<ContactKey>& out) {
  out.clear();
  const int count = dispatcher.getNumManifolds();
  btPersistentManifold** manifolds = dispatcher.getInternalManifoldPointer();
  for (int i = 0; i < count; ++i) {
    btPersistentManifold* manifold = manifolds[i];
    if (manifold->getNumContacts() == 0) continue;
    const auto [bodies, parts] = manifold_key(*manifold);
    out.push_back({bodies, parts, manifold});
  }
  std::sort(out.begin(), out.end());
}

void PairFilter::ignore(int body_a, int body_b) {
  ignored_.insert(pair_key(std::min(body_a, body_b), std::max(body_a, body_b)));
}

bool PairFilter::ignores(int body_a, int body_b) const {
  if (!ignored_.empty() && ignored_.count(pair_key(std::min(body_a, body_b), std::max(body_a, body_b)))) return true;
  return joints_.keep_apart(body_a, body_b);
}

bool PairFilter::needBroadphaseCollision(btBroadphaseProxy* a, btBroadphaseProxy* b) const {
  if (!(a->m_collisionFilterGroup & b->m_collisionFilterMask) ||
      !(b->m_collisionFilterGroup & a->m_collisionFilterMask))
    return false;
  const int low = std::min(a->m_uniqueId, b->m_uniqueId);
  const int high = std::max(a->m_uniqueId, b->m_uniqueId);
  LAPJOINT_ASSERT(low >= 0 && low != high);
  if (low >= kStaticBase) return false;
  if (high >= kStaticBase) return is_own(low, -1);
  return is_own(low, high) && !ignores(low, high);
}

void BatchPairCache::remove_pairs_of(const std::vector<char>& leaving_by_id, btDispatcher& dispatcher) {
  struct Leaving : btOverlapCallback {
    const std::vector<char>& leaving;
    explicit Leaving(const std::vector<char>& flags) : leaving(flags) {}
    bool is_leaving(const btBroadphaseProxy* proxy) const {
      return proxy->m_uniqueId < kStaticBase && leaving[proxy->m_uniqueId];
    }
    bool processOverlap(btBroadphasePair& pair) override {
      return is_leaving(pair.m_pProxy0) || is_leaving(pair.m_pProxy1);
    }
  } leaving(leaving_by_id);
  processAllOverlappingPairs(&leaving, &dispatcher);
}

int& BatchPairCache::head(const btBroadphaseProxy& a, const btBroadphaseProxy& b) {
  const std::uint64_t mixed = pair_key(a.m_uniqueId, b.m_uniqueId) * 0x9E3779B97F4A7C15u;
  return heads_[(mixed >> 32) & (heads_.size() - 1)];
}

// Its place, or none; the first has the lower number, as in all pairs.
int BatchPairCache::find(const btBroadphaseProxy* a, const btBroadphaseProxy* b) {
  if (heads_.empty()) return kNone;
  const btBroadphasePairArray& pairs = getOverlappingPairArray();
  LAPJOINT_ASSERT(a->m_uniqueId < b->m_uniqueId);
  int place = head(*a, *b);
  while (place != kNone && (pairs[place].m_pProxy0 != a || pairs[place].m_pProxy1 != b)) place = next_[place];
  return place;
}

void BatchPairCache::link(int place) {
  const btBroadphasePair& pair = getOverlappingPairArray()[place];
  int& first = head(*pair.m_pProxy0, *pair.m_pProxy1);
  next_[place] = std::exchange(first, place);
}

void BatchPairCache::unlink(int place) {
  const btBroadphasePair& pair = getOverlappingPairArray()[place];
  int* at = &head(*pair.m_pProxy0, *pair.m_pProxy1);
  while (*at != place) {
    LAPJOINT_ASSERT(*at != kNone);  // every pair is in the list of its numbers
    at = &next_[*at];
  }
  *at = next_[place];
}

void BatchPairCache::grow() {
  heads_.assign(std::max<std::size_t>(2 * heads_.size(), 64), kNone);
  LAPJOINT_ASSERT(std::has_single_bit(heads_.size()));  // a mask is its rest
  for (int place = 0; place < static_cast<int>(next_.size()); ++place) link(place);
}

btBroadphasePair* BatchPairCache::addOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b) {
  if (!needsBroadphaseCollision(a, b)) return nullptr;
  if (a->m_uniqueId > b->m_uniqueId) std::swap(a, b);
  btBroadphasePairArray& pairs = getOverlappingPairArray();
  if (const int place = find(a, b); place != kNone) return &pairs[place];
  LAPJOINT_ASSERT(static_cast<int>(next_.size()) == pairs.size());
  if (next_.size() == heads_.size()) grow();
  pairs.push_back(btBroadphasePair(*a, *b));
  next_.push_back(kNone);
  link(pairs.size() - 1);
  return &pairs[pairs.size() - 1];
}

btBroadphasePair* BatchPairCache::findPair(btBroadphaseProxy* a, btBroadphaseProxy* b) {
  if (a->m_uniqueId > b->m_uniqueId) std::swap(a, b);
  const int place = find(a, b);
  return place == kNone ? nullptr : &getOverlappingPairArray()[place];
}

// The last pair takes its place.
void* BatchPairCache::removeOverlappingPair(btBroadphaseProxy* a, btBroadphaseProxy* b, btDispatcher* dispatcher) {
  if (a->m_uniqueId > b->m_uniqueId) std::swap(a, b);
  const int place = find(a, b);
  if (place == kNone) return nullptr;
  btBroadphasePairArray& pairs = getOverlappingPairArray();
  cleanOverlappingPair(pairs[place], dispatcher);
  unlink(place);
  const int last = pairs.size() - 1;
  if (last != place) {
    unlink(last);
    pairs[place] = pairs[last];
    link(place);
  }
  pairs.pop_back();
  next_.pop_back();
  LAPJOINT_ASSERT(static_cast<int>(next_.size()) == pairs.size() && find(a, b) == kNone);
  return nullptr;
}

OrderedWorld::OrderedWorld(btDispatcher* dispatcher, btBroadphaseInterface* broadphase, btConstraintSolver* solver,
                           btCollisionConfiguration* configuration, bool exact)
    : btDiscreteDynamicsWorld(dispatcher, broadphase, solver, configuration), asks_(!exact) {
  setForceUpdateAllAabbs(false);  // static bodies do not move
  // Boxes need not reach where a body will be: contacts are found where it is. So they do not wait for the step.
  getDispatchInfo().m_useContinuous = false;
  getDispatchInfo().m_deterministicOverlappingPairs = false;  // used by Bullet's islands only
}

void OrderedWorld::set_members(const std::vector<btRigidBody*>& statics, const std::vector<btRigidBody*>& bodies,
                               const std::vector<btTypedConstraint*>& joints) {
  m_collisionObjects.resizeNoInitialize(0);
  m_nonStaticRigidBodies.resizeNoInitialize(0);
  m_constraints.resizeNoInitialize(0);
  m_collisionObjects.reserve(static_cast<int>(statics.size() + bodies.size()));
  m_nonStaticRigidBodies.reserve(static_cast<int>(bodies.size()));
  const auto add = [this](btRigidBody* body) {
    body->setWorldArrayIndex(m_collisionObjects.size());
    m_collisionObjects.push_back(body);
  };
  for (btRigidBody* body : statics) add(body);
  for (btRigidBody* body : bodies) {
    add(body);
    m_nonStaticRigidBodies.push_back(body);
  }
  for (btTypedConstraint* joint : joints) m_constraints.push_back(joint);
}

void OrderedWorld::step_once(btScalar timestep) {
  applyGravity();
  if (more_forces_) more_forces_(timestep);
  internalSingleStepSimulation(timestep);
  clearForces();
}

// Narrow phase of the pairs that are wanted.
template <typename Wanted>
void OrderedWorld::find_contacts(Wanted&& wanted) {
  auto& dispatcher = *static_cast<btCollisionDispatcher*>(m_dispatcher1);
  btOverlappingPairCache& cache = *m_broadphasePairCache->getOverlappingPairCache();
  btBroadphasePairArray& pairs = cache.getOverlappingPairArray();
  if (asks_) {
    for (int i = 0; i < pairs.size(); ++i)
      if (wanted(pairs[i])) dispatcher.getNearCallback()(pairs[i], dispatcher, getDispatchInfo());
    return;
  }
  // As Bullet does, without asking whether both bodies sleep or ignore each other. Pairs are in no order: what the
  // next ones need is far away in memory, and under way while this one is looked at.
  const auto object = [](const btBroadphaseProxy* proxy) {
    return static_cast<const btCollisionObject*>(proxy->m_clientObject);
  };
  for (int i = 0; i < pairs.size(); ++i) {
    if (i + kAhead < pairs.size()) {
      const btBroadphasePair& next = pairs[i + kAhead];
      prefetch(next.m_algorithm);
      prefetch(next.m_pProxy0);
      prefetch(next.m_pProxy1);
    }
    if (i + kAhead / 2 < pairs.size()) {
      const btBroadphasePair& next = pairs[i + kAhead / 2];
      prefetch(&object(next.m_pProxy0)->getWorldTransform());
      prefetch(&object(next.m_pProxy1)->getWorldTransform());
    }
    if (!wanted(pairs[i])) continue;
    btBroadphasePair& pair = pairs[i];
    // Most pairs of bodies side by side: they have no algorithm, which would take ten times a pair's memory.
    if (are_apart(*pair.m_pProxy0, *pair.m_pProxy1)) {
      cache.cleanOverlappingPair(pair, &dispatcher);
      continue;
    }
    const btCollisionObject *first = object(pair.m_pProxy0), *second = object(pair.m_pProxy1);
    const btCollisionObjectWrapper a(nullptr, first->getCollisionShape(), first, first->getWorldTransform(), -1, -1);
    const btCollisionObjectWrapper b(nullptr, second->getCollisionShape(), second, second->getWorldTransform(), -1, -1);
    if (!pair.m_algorithm) pair.m_algorithm = dispatcher.findAlgorithm(&a, &b, nullptr, BT_CONTACT_POINT_ALGORITHMS);
    btManifoldResult result(&a, &b);
    pair.m_algorithm->processCollision(&a, &b, getDispatchInfo(), &result);
  }
}

bool OrderedWorld::stays(const btBroadphaseProxy* proxy) {
  const auto* object = static_cast<const btCollisionObject*>(proxy->m_clientObject);
  return object->isStaticObject() || object->getUserIndex3() == kPrepared;
}

void OrderedWorld::prepare(const std::vector<btRigidBody*>& moving, bool keeps_pairs) {
  if (prepared_) return;
  for (int i = 0; i < m_nonStaticRigidBodies.size(); ++i) m_nonStaticRigidBodies[i]->setUserIndex3(kPrepared);
  for (btRigidBody* body : moving) body->setUserIndex3(0);
  for (int i = 0; i < m_nonStaticRigidBodies.size(); ++i)
    if (is_prepared(*m_nonStaticRigidBodies[i])) updateSingleAabb(m_nonStaticRigidBodies[i]);
  keeps_pairs_ = keeps_pairs;
  if (!keeps_pairs_) computeOverlappingPairs();
  find_contacts([](btBroadphasePair& pair) {
    pair.m_internalTmpValue = stays(pair.m_pProxy0) && stays(pair.m_pProxy1) ? kPrepared : 0;
    return pair.m_internalTmpValue == kPrepared;
  });
  prepared_ = true;
}

void OrderedWorld::find_all() {
  prepared_ = false;
  updateAabbs();
  computeOverlappingPairs();
  find_contacts([](const btBroadphasePair&) { return true; });
}

void OrderedWorld::set_prepared(const std::vector<btRigidBody*>& bodies) {
  for (int i = 0; i < m_nonStaticRigidBodies.size(); ++i) m_nonStaticRigidBodies[i]->setUserIndex3(0);
  for (btRigidBody* body : bodies) body->setUserIndex3(kPrepared);
  btBroadphasePairArray& pairs = m_broadphasePairCache->getOverlappingPairCache()->getOverlappingPairArray();
  for (int i = 0; i < pairs.size(); ++i)
    pairs[i].m_internalTmpValue = stays(pairs[i].m_pProxy0) && stays(pairs[i].m_pProxy1) ? kPrepared : 0;
  prepared_ = true;
}

void OrderedWorld::performDiscreteCollisionDetection() {
  if (!prepared_ && asks_) return btDiscreteDynamicsWorld::performDiscreteCollisionDetection();
  if (!prepared_) return find_all();
  for (int i = 0; i < m_nonStaticRigidBodies.size(); ++i)
    if (!is_prepared(*m_nonStaticRigidBodies[i])) updateSingleAabb(m_nonStaticRigidBodies[i]);
  // A box that moves finds its new pairs at once. The tree's own turn, which drops those that are apart, may have been
  // in prepare: with two of them in a step it would take all bodies for resting ones and move them to and fro.
  if (keeps_pairs_) computeOverlappingPairs();
  find_contacts([](const btBroadphasePair& pair) { return pair.m_internalTmpValue != kPrepared; });
  prepared_ = false;
}

void OrderedWorld::solveConstraints(btContactSolverInfo& info) {
  order_contacts();
  if (m_nonStaticRigidBodies.size() == 0) return;
  btConstraintSolver& solver = *m_constraintSolver;
  const int manifold_count = static_cast<int>(manifolds_.size());
  solver.prepareSolve(m_collisionObjects.size(), manifold_count);
  solver.solveGroup(&m_collisionObjects[0], m_collisionObjects.size(), manifolds_.data(), manifold_count,
                    m_constraints.size() ? &m_constraints[0] : nullptr, m_constraints.size(), info, nullptr,
                    m_dispatcher1);
  solver.allSolved(info, nullptr);
}

void OrderedWorld::order_contacts() {
  collect_contacts(*m_dispatcher1, contacts_);
  manifolds_.clear();
  for (const ContactKey& contact : contacts_) manifolds_.push_back(contact.manifold);
}

void OrderedWorld::add_own_forces(btScalar timestep) {
  applyGravity();
  if (more_forces_) more_forces_(timestep);
}

void OrderedWorld::find_own_contacts(btScalar timestep) {
  getDispatchInfo().m_timeStep = timestep;
  getDispatchInfo().m_stepCount = 0;
  performDiscreteCollisionDetection();
}

}  // namespace lapjoint
