// A world's state beyond the states of its bodies, so that another can go on from there bit for bit.
//
// States are quaternions at the border and matrices inside, and a contact point carries over from step to step where it
// is and how hard it pressed. So do joints that are warm started; others start from zero in every step. Nothing else
// does: the order of things depends on their numbers alone (bullet/order.h).
#include <BulletCollision/CollisionDispatch/btCompoundCompoundCollisionAlgorithm.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "assertions.h"
#include "bullet/slot.h"
#include "bullet/world.h"

namespace lapjoint {

namespace {

// Bullet keeps to itself which algorithm is for which two parts of two compounds; an explicit instantiation may ask.
template <auto Member>
struct Open {
  friend btHashedSimplePairCache* part_pairs(btCompoundCompoundCollisionAlgorithm& algorithm) {
    return algorithm.*Member;
  }
};
btHashedSimplePairCache* part_pairs(btCompoundCompoundCollisionAlgorithm& algorithm);
template struct Open<&btCompoundCompoundCollisionAlgorithm::m_childCollisionAlgorithmCache>;

// The same for the parts of one compound.
template <auto Member>
struct OpenParts {
  friend btAlignedObjectArray<btCollisionAlgorithm*>& part_algorithms(btCompoundCollisionAlgorithm& algorithm) {
    return algorithm.*Member;
  }
};
btAlignedObjectArray<btCollisionAlgorithm*>& part_algorithms(btCompoundCollisionAlgorithm& algorithm);
template struct OpenParts<&btCompoundCollisionAlgorithm::m_childCollisionAlgorithms>;

// A body, or one part of its compound, as Bullet's narrow phase takes it.
struct Wrapped {
  const btCollisionShape* shape;
  btTransform place;
  btCollisionObjectWrapper whole, part;

  Wrapped(const btCollisionObject& object, int index)
      : shape(object.getCollisionShape()),
        place(object.getWorldTransform()),
        whole(nullptr, shape, &object, object.getWorldTransform(), -1, -1),
        part(shape->isCompound() ? &whole : nullptr, part_shape(index), &object, place, -1, index) {
    if (shape->isCompound()) place *= static_cast<const btCompoundShape*>(shape)->getChildTransform(index);
  }
  const btCollisionShape* part_shape(int index) const {
    return shape->isCompound() ? static_cast<const btCompoundShape*>(shape)->getChildShape(index) : shape;
  }
};

// Makes the algorithm for two parts. Bullet makes one where boxes in the frame of the compound overlap, but drops it
// only where those in the world's frame no longer do: between the two, points stay that it would not look for anew.
btCollisionAlgorithm* make_algorithm(btDispatcher& dispatcher, const btDispatcherInfo& info, const Wrapped& first,
                                     const Wrapped& second) {
  btCollisionAlgorithm* made =
      dispatcher.findAlgorithm(&first.part, &second.part, nullptr, BT_CONTACT_POINT_ALGORITHMS);
  btManifoldResult result(&first.part, &second.part);
  made->processCollision(&first.part, &second.part, info, &result);  // some have no manifold before
  return made;
}

// Calls visit(value) for each whole number of a contact point but its place in its manifold, in the columns' order.
template <typename Point, typename Visit>
void each_number(Point& point, Visit&& visit) {
  for (auto* value : {&point.m_partId0, &point.m_partId1, &point.m_index0, &point.m_index1, &point.m_contactPointFlags,
                      &point.m_lifeTime})
    visit(*value);
}

// The same for all its other numbers.
template <typename Point, typename Visit>
void each_value(Point& point, Visit&& visit) {
  for (auto* vector : {&point.m_localPointA, &point.m_localPointB, &point.m_positionWorldOnB, &point.m_positionWorldOnA,
                       &point.m_normalWorldOnB, &point.m_lateralFrictionDir1, &point.m_lateralFrictionDir2})
    for (int k = 0; k < 3; ++k) visit((*vector)[k]);
  for (auto* value :
       {&point.m_distance1, &point.m_combinedFriction, &point.m_combinedRollingFriction,
        &point.m_combinedSpinningFriction, &point.m_combinedRestitution, &point.m_appliedImpulse, &point.m_prevRHS,
        &point.m_appliedImpulseLateral1, &point.m_appliedImpulseLateral2, &point.m_contactMotion1,
        &point.m_contactMotion2, &point.m_contactCFM, &point.m_contactERP, &point.m_frictionCFM})
    visit(*value);
}

bool has_part(const btCollisionObject& object, int index) {
  const auto& shape = *static_cast<const btCompoundShape*>(object.getCollisionShape());
  return index >= 0 && index < shape.getNumChildShapes();
}

[[noreturn]] void throw_misplaced(int body_a, int body_b) {
  throw std::invalid_argument("contact points of bodies " + std::to_string(body_a) + " and " + std::to_string(body_b) +
                              " are not in their places");
}

int number_of(const btCollisionObject* object) {
  const int id = object->getBroadphaseHandle()->m_uniqueId;
  return id >= kStaticBase ? -1 - (id - kStaticBase) : id;
}

}  // namespace

int BulletWorld::cached_point_count() {
  commit();
  if (substeps_) substeps_->save_to_points(dispatcher_);
  collect_contacts(dispatcher_, contact_keys_);
  add_frozen_contacts(contact_keys_);
  contacts_solved_ = false;
  int count = 0;
  for (const ContactKey& key : contact_keys_) count += key.manifold->getNumContacts();
  for (const CachedManifold& one : waiting_) count += static_cast<int>(one.numbers.size()) / kPointNumbers;
  return count;
}

void BulletWorld::read_state(btScalar* bodies, bool* prepared, int* point_bodies, int* point_numbers,
                             btScalar* points) {
  for (const int id : bodies_) {
    if (is_ghost_[id]) continue;
    const btRigidBody& body = slot(id).body;
    const btTransform& place = body.getWorldTransform();
    const btVector3 rows[] = {place.getOrigin(),   place.getBasis()[0],      place.getBasis()[1],
                              place.getBasis()[2], body.getLinearVelocity(), body.getAngularVelocity()};
    for (const btVector3& row : rows)
      for (int k = 0; k < 3; ++k) *bodies++ = row[k];
    *prepared++ = world_->has_prepared() && OrderedWorld::is_prepared(body);
    bodies = std::fill_n(bodies, 2, btScalar(0));  // Bullet's own sleep, once
  }
  for (const ContactKey& key : contact_keys_) {
    for (int k = 0; k < key.manifold->getNumContacts(); ++k) {
      const btManifoldPoint& point = key.manifold->getContactPoint(k);
      *point_bodies++ = number_of(key.manifold->getBody0());
      *point_bodies++ = number_of(key.manifold->getBody1());
      *point_numbers++ = k;
      each_number(point, [&](int value) { *point_numbers++ = value; });
      each_value(point, [&](btScalar value) { *points++ = value; });
    }
  }
  for (const CachedManifold& one : waiting_) {
    for (std::size_t k = 0; k < one.numbers.size() / kPointNumbers; ++k)
      point_bodies = std::copy(one.bodies.begin(), one.bodies.end(), point_bodies);
    point_numbers = std::copy(one.numbers.begin(), one.numbers.end(), point_numbers);
    points = std::copy(one.points.begin(), one.points.end(), points);
  }
}

btCollisionObject* BulletWorld::object(int number) const {
  const int s = -1 - number;
  if (number < 0) return s < static_cast<int>(statics_.size()) ? statics_[s].body.get() : nullptr;
  return number < body_columns_.count && slots_[number] ? &slots_[number]->body : nullptr;
}

// Where the points of a manifold belong that begins with these numbers; null where no pair may touch.
btPersistentManifold* BulletWorld::manifold_of(const int* bodies, const int* numbers) {
  btCollisionObject *first = object(bodies[0]), *second = object(bodies[1]);
  if (bodies[0] == bodies[1] || (bodies[0] < 0 && bodies[1] < 0))
    throw std::invalid_argument("a contact point of bodies " + std::to_string(bodies[0]) + " and " +
                                std::to_string(bodies[1]) + ", which cannot touch");
  if (!first || !second)
    throw std::invalid_argument("a contact point of bodies " + std::to_string(bodies[0]) + " and " +
                                std::to_string(bodies[1]) + " that are not both active");
  const int index0 = numbers[3], index1 = numbers[4];
  btBroadphaseProxy *p = first->getBroadphaseHandle(), *q = second->getBroadphaseHandle();
  btBroadphasePair* pair = pairs_.findPair(p, q);
  if (!pair) pair = pairs_.addOverlappingPair(p, q);
  if (!pair) return nullptr;
  if (!pair->m_algorithm) dispatcher_.getNearCallback()(*pair, dispatcher_, world_->getDispatchInfo());
  btCollisionAlgorithm* algorithm = pair->m_algorithm;
  if (auto* both = dynamic_cast<btCompoundCompoundCollisionAlgorithm*>(algorithm)) {
    if (!has_part(*first, index0) || !has_part(*second, index1)) return nullptr;
    btSimplePair* parts = part_pairs(*both)->findPair(index0, index1);
    if (!parts) {
      parts = part_pairs(*both)->addOverlappingPair(index0, index1);
      parts->m_userPointer =
          make_algorithm(dispatcher_, world_->getDispatchInfo(), Wrapped(*first, index0), Wrapped(*second, index1));
    }
    algorithm = static_cast<btCollisionAlgorithm*>(parts->m_userPointer);
  } else if (auto* one = dynamic_cast<btCompoundCollisionAlgorithm*>(algorithm)) {
    const bool is_first = first->getCollisionShape()->isCompound();
    const btCollisionObject &compound = is_first ? *first : *second, &other = is_first ? *second : *first;
    const int part = is_first ? index0 : index1;
    if (!has_part(compound, part)) return nullptr;
    btCollisionAlgorithm*& of_part = part_algorithms(*one)[part];
    if (!of_part)
      of_part = make_algorithm(dispatcher_, world_->getDispatchInfo(), Wrapped(compound, part), Wrapped(other, -1));
    algorithm = of_part;
  }
  if (!algorithm) return nullptr;
  if (auto* owner = dynamic_cast<ManifoldOwner*>(algorithm)) return &owner->manifold();
  btManifoldArray manifolds;
  algorithm->getAllContactManifolds(manifolds);
  return manifolds.size() == 1 ? manifolds[0] : nullptr;
}

void BulletWorld::restore(const int* ids, int count, const btScalar* bodies, const bool* prepared, int point_count,
                          const int* point_bodies, const int* point_numbers, const btScalar* points) {
  wake_all();
  woken_.clear();
  if (substeps_) substeps_->forget_contacts();
  leave(bodies_);
  neighbours_.clear();
  LAPJOINT_ASSERT(bodies_.empty() && joints_.empty() && islands_.empty());
  waiting_.clear();
  ghosts_are_due_ = true;
  const std::vector<int> sorted = require_new(ids, count);
  for (int i = 0; i < count; ++i) {
    slots_[ids[i]] = make_body(ids[i]);
    btRigidBody& body = slots_[ids[i]]->body;
    const btScalar* row = bodies + kBodyValues * static_cast<std::size_t>(i);
    const auto vector = [&](int k) { return btVector3(row[3 * k], row[3 * k + 1], row[3 * k + 2]); };
    btTransform place;
    place.setOrigin(vector(0));
    for (int k = 0; k < 3; ++k) place.getBasis()[k] = vector(1 + k);
    body.setLinearVelocity(vector(4));
    body.setAngularVelocity(vector(5));
    body.setCenterOfMassTransform(place);
  }
  enter(ids, count, sorted);
  commit();
  contacts_solved_ = false;
  world_->find_all();
  for (int i = 0; i < dispatcher_.getNumManifolds(); ++i) dispatcher_.getManifoldByIndexInternal(i)->clearManifold();

  merge_contact_cache(point_count, point_bodies, point_numbers, points);
  if (substeps_) {
    substeps_->forget_joints();
    substeps_->forget_kept();
  }

  std::vector<btRigidBody*> done;
  for (int i = 0; i < count; ++i) {
    btRigidBody& body = slot(ids[i]).body;
    if (prepared[i]) done.push_back(&body);
  }
  if (!done.empty()) world_->set_prepared(done);
}

void BulletWorld::merge_contact_cache(int point_count, const int* point_bodies, const int* point_numbers,
                                      const btScalar* points) {
  std::vector<CachedManifold> given;
  for (int i = 0; i < point_count; ++i, point_bodies += 2, point_numbers += kPointNumbers, points += kPointValues) {
    if (point_numbers[0] == 0) given.push_back({{point_bodies[0], point_bodies[1]}, {}, {}});
    if (given.empty() || given.back().bodies[0] != point_bodies[0] || given.back().bodies[1] != point_bodies[1])
      throw_misplaced(point_bodies[0], point_bodies[1]);
    CachedManifold& into = given.back();
    into.numbers.insert(into.numbers.end(), point_numbers, point_numbers + kPointNumbers);
    into.points.insert(into.points.end(), points, points + kPointValues);
  }
  for (const CachedManifold& one : given)
    for (const int id : one.bodies)
      if (id >= 0 && id < body_columns_.count) wake(id, true);
  if (settings_.has_neighbours) {
    // Some may be of bodies that are ghosts soon. Where there are neighbours, who is one is about to change.
    const auto is_here = [this](const CachedManifold& one) { return object(one.bodies[0]) && object(one.bodies[1]); };
    // Of a ghost that stays one, what is here is what its owner has.
    if (!neighbours_.empty())
      std::erase_if(given, [&](const CachedManifold& one) { return is_here(one) && has_points(one.bodies); });
    const auto first = neighbours_.empty() ? std::stable_partition(given.begin(), given.end(), is_here) : given.begin();
    waiting_.insert(waiting_.end(), std::make_move_iterator(first), std::make_move_iterator(given.end()));
    given.erase(first, given.end());
    if (!neighbours_.empty()) return;
  }
  merge_manifolds(given);
}

// Whether the contact cache has any of these two.
bool BulletWorld::has_points(const std::array<int, 2>& bodies) {
  btBroadphasePair* pair =
      pairs_.findPair(object(bodies[0])->getBroadphaseHandle(), object(bodies[1])->getBroadphaseHandle());
  if (!pair || !pair->m_algorithm) return false;
  btManifoldArray manifolds;
  pair->m_algorithm->getAllContactManifolds(manifolds);
  for (int i = 0; i < manifolds.size(); ++i)
    if (manifolds[i]->getNumContacts() > 0) return true;
  return false;
}

void BulletWorld::merge_manifolds(const std::vector<CachedManifold>& given) {
  commit();
  contacts_solved_ = false;
  if (substeps_) substeps_->save_to_points(dispatcher_);
  std::vector<btPersistentManifold*> of_sleepers;  // which have arrived asleep, and are about to be frozen
  for (const CachedManifold& from : given) {
    btPersistentManifold* manifold = manifold_of(from.bodies.data(), from.numbers.data());
    if (!manifold) continue;
    manifold->clearManifold();
    const int count = static_cast<int>(from.numbers.size()) / kPointNumbers;
    for (int i = 0; i < count; ++i) {
      const int* number = from.numbers.data() + kPointNumbers * i;
      const btScalar* value = from.points.data() + kPointValues * i;
      const int place = *number++;
      if (place != i || place >= MANIFOLD_CACHE_SIZE || number_of(manifold->getBody0()) != from.bodies[0])
        throw_misplaced(from.bodies[0], from.bodies[1]);
      btManifoldPoint point(btVector3(0, 0, 0), btVector3(0, 0, 0), btVector3(0, 0, 0), 0);
      each_number(point, [&](int& into) { into = *number++; });
      each_value(point, [&](btScalar& into) { into = *value++; });
      manifold->setNumContacts(place + 1);
      manifold->getContactPoint(place) = point;
    }
    if (std::any_of(from.bodies.begin(), from.bodies.end(),
                    [this](int id) { return id >= 0 && island_[id] != kAwake; }))
      of_sleepers.push_back(manifold);
  }
  if (!substeps_) return;
  substeps_->load_from_points(dispatcher_);
  substeps_->thaw(of_sleepers);
}

void BulletWorld::read_drive_targets(int* axes, double* targets) const {
  if (!substeps_) return;
  for (const auto& [axis, target] : substeps_->drive_targets()) {
    *axes++ = axis;
    targets = std::copy(target.begin(), target.end(), targets);
  }
}

int BulletWorld::joint_impulse_count() const { return substeps_ ? substeps_->joint_impulse_count(cached_joints()) : 0; }

void BulletWorld::read_joint_impulses(int* joint_ids, btScalar* impulses) const {
  if (substeps_) substeps_->read_joint_impulses(cached_joints(), joint_ids, impulses);
}

void BulletWorld::merge_joint_cache(const int* joint_ids, const btScalar* impulses, int count) {
  for (int i = 0; i < count; ++i)
    if (joint_ids[i] < 0 || joint_ids[i] >= joint_columns_.count)
      throw std::invalid_argument("joint " + std::to_string(joint_ids[i]) + " does not exist");
  if (substeps_) substeps_->set_joint_impulses(joint_ids, impulses, count);
}

}  // namespace lapjoint
