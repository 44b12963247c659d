// How far two bodies are from a contact, active or not, at any states.
#include <BulletCollision/CollisionDispatch/btCollisionObjectWrapper.h>
#include <BulletCollision/CollisionDispatch/btManifoldResult.h>
#include <BulletCollision/CollisionShapes/btCompoundShape.h>
#include <BulletCollision/NarrowPhaseCollision/btGjkPairDetector.h>
#include <BulletCollision/NarrowPhaseCollision/btPointCollector.h>
#include <BulletCollision/NarrowPhaseCollision/btVoronoiSimplexSolver.h>

#include <algorithm>
#include <limits>

#include "bullet_frames.h"
#include "bullet_world.h"

namespace lapjoint {

namespace {

btScalar distance(const btConvexShape& a, const btTransform& at_a, const btConvexShape& b, const btTransform& at_b) {
  btVoronoiSimplexSolver simplex;
  btGjkPairDetector detector(&a, &b, &simplex, nullptr);  // without a depth solver: 0 where they touch
  btDiscreteCollisionDetectorInterface::ClosestPointInput input;
  input.m_transformA = at_a;
  input.m_transformB = at_b;
  btPointCollector nearest;
  detector.getClosestPoints(input, nearest, nullptr);
  return nearest.m_hasResult ? std::max(nearest.m_distance, btScalar(0)) : btScalar(0);
}

// Calls visit(convex part, its transform).
template <typename Visit>
void each_part(const btCollisionShape& shape, const btTransform& at, Visit&& visit) {
  if (!shape.isCompound()) return visit(static_cast<const btConvexShape&>(shape), at);
  const auto& compound = static_cast<const btCompoundShape&>(shape);
  for (int i = 0; i < compound.getNumChildShapes(); ++i)
    each_part(*compound.getChildShape(i), at * compound.getChildTransform(i), visit);
}

btScalar distance(const btCollisionObject& a, const btCollisionObject& b) {
  btScalar least = BT_LARGE_FLOAT;
  each_part(*a.getCollisionShape(), a.getWorldTransform(), [&](const btConvexShape& p, const btTransform& at_p) {
    btVector3 low_p, high_p, low_q, high_q;
    p.getAabb(at_p, low_p, high_p);
    each_part(*b.getCollisionShape(), b.getWorldTransform(), [&](const btConvexShape& q, const btTransform& at_q) {
      q.getAabb(at_q, low_q, high_q);
      btVector3 apart = low_p - high_q;
      apart.setMax(low_q - high_p);
      if (apart[apart.maxAxis()] < least) least = std::min(least, distance(p, at_p, q, at_q));
    });
  });
  return least;
}

}  // namespace

const BulletWorld::Probe& BulletWorld::probe(int id) {
  const auto found = probes_.find(id);
  if (found != probes_.end()) return found->second;
  btVector3 moments;
  Probe made;
  const double unit = settings_.mass_unit * settings_.length_unit * settings_.length_unit;
  principal_axes(body_columns_.inertia + 9 * id, unit, moments, made.turn);  // as for a body: the same shape
  made.shape = shapes_.acquire(body_columns_.shape_id[id], made.turn);
  return probes_.emplace(id, made).first->second;
}

void BulletWorld::clearances(const int* pairs, int count, const double* states, double* clearance) {
  // Closest points are found to about a part in a thousand; a contact begins at the breaking threshold.
  constexpr btScalar kSure = btScalar(0.99), kSlack = btScalar(0.004);
  btCollisionObject objects[2];
  btManifoldArray manifolds;
  for (int i = 0; i < count; ++i) {
    for (int side = 0; side < 2; ++side) {
      const int id = pairs[2 * i + side];
      const double* state = states + kStateSize * static_cast<std::size_t>(id);
      const Probe& body = probe(id);
      const btQuaternion turn = quaternion(state + 3) * body.turn;
      objects[side].setCollisionShape(body.shape);
      objects[side].setWorldTransform(btTransform(turn.normalized(), length(state)));
    }
    const btCollisionObjectWrapper a(nullptr, objects[0].getCollisionShape(), &objects[0],
                                     objects[0].getWorldTransform(), -1, -1);
    const btCollisionObjectWrapper b(nullptr, objects[1].getCollisionShape(), &objects[1],
                                     objects[1].getWorldTransform(), -1, -1);
    btCollisionAlgorithm* algorithm = dispatcher_.findAlgorithm(&a, &b, nullptr, BT_CONTACT_POINT_ALGORITHMS);
    btManifoldResult result(&a, &b);
    algorithm->processCollision(&a, &b, world_->getDispatchInfo(), &result);
    manifolds.resize(0);
    algorithm->getAllContactManifolds(manifolds);
    bool touch = false;
    for (int k = 0; k < manifolds.size(); ++k) touch |= manifolds[k]->getNumContacts() > 0;
    algorithm->~btCollisionAlgorithm();
    dispatcher_.freeCollisionAlgorithm(algorithm);
    clearance[i] = 0;
    if (touch) continue;
    const btScalar far = kSure * distance(objects[0], objects[1]) - gContactBreakingThreshold - kSlack;
    clearance[i] = std::max(double(far) * settings_.length_unit, std::numeric_limits<double>::min());
  }
}

}  // namespace lapjoint
