// How far two bodies are from a contact, active or not, at any states.
#include <BulletCollision/CollisionDispatch/btCollisionObjectWrapper.h>
#include <BulletCollision/CollisionDispatch/btManifoldResult.h>
#include <BulletCollision/CollisionShapes/btCompoundShape.h>
#include <BulletCollision/CollisionShapes/btSphereShape.h>
#include <BulletCollision/NarrowPhaseCollision/btGjkPairDetector.h>
#include <BulletCollision/NarrowPhaseCollision/btPointCollector.h>
#include <BulletCollision/NarrowPhaseCollision/btVoronoiSimplexSolver.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "bullet/frames.h"
#include "bullet/world.h"

namespace lapjoint {

namespace {

btScalar distance(const btConvexShape& a, const btTransform& at_a, const btConvexShape& b, const btTransform& at_b) {
  if (a.getShapeType() == SPHERE_SHAPE_PROXYTYPE && b.getShapeType() == SPHERE_SHAPE_PROXYTYPE) {
    const btScalar radii =
        static_cast<const btSphereShape&>(a).getRadius() + static_cast<const btSphereShape&>(b).getRadius();
    return std::max((at_a.getOrigin() - at_b.getOrigin()).length() - radii, btScalar(0));
  }
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

struct PlacedPart {
  const btConvexShape* shape;
  btTransform at;
  btVector3 low, high;
};

std::vector<PlacedPart> parts_of(const btCollisionObject& object) {
  std::vector<PlacedPart> parts;
  each_part(*object.getCollisionShape(), object.getWorldTransform(),
            [&](const btConvexShape& shape, const btTransform& at) {
              PlacedPart part{&shape, at, {}, {}};
              shape.getAabb(at, part.low, part.high);
              parts.push_back(part);
            });
  return parts;
}

btScalar distance(const btCollisionObject& a, const btCollisionObject& b) {
  struct Candidate {
    btScalar apart;  // their boxes
    const PlacedPart *p, *q;
  };
  const std::vector<PlacedPart> parts_a = parts_of(a), parts_b = parts_of(b);
  std::vector<Candidate> candidates;
  for (const PlacedPart& p : parts_a) {
    for (const PlacedPart& q : parts_b) {
      btVector3 apart = p.low - q.high;
      apart.setMax(q.low - p.high);
      candidates.push_back({apart[apart.maxAxis()], &p, &q});
    }
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& x, const Candidate& y) { return x.apart < y.apart; });
  btScalar least = BT_LARGE_FLOAT;
  for (const auto& [apart, p, q] : candidates) {
    if (apart >= least) break;
    least = std::min(least, distance(*p->shape, p->at, *q->shape, q->at));
  }
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

bool BulletWorld::meet_ahead(const int* pair, const double* states, btCollisionObject* objects) {
  if (!substeps_ || settings_.timestep == 0) return false;
  const btScalar timestep = btScalar(settings_.timestep);
  const auto velocity = [&](int side) { return states + kStateSize * static_cast<std::size_t>(pair[side]) + 7; };
  const auto angular = [&](int side) {
    const double* w = velocity(side) + 3;
    return btVector3(btScalar(w[0]), btScalar(w[1]), btScalar(w[2]));
  };
  const auto radius = [&](int side) {
    btVector3 middle;
    btScalar found;
    objects[side].getCollisionShape()->getBoundingSphere(middle, found);
    return found + middle.length();
  };
  bool fast = false;
  for (int side = 0; side < 2; ++side) {
    objects[side].setCcdSweptSphereRadius(shapes_.thickness(body_columns_.shape_id[pair[side]]));
    fast |= is_fast(thickness_of(objects[side]), length(velocity(side)), angular(side), radius(side), timestep);
  }
  if (!fast) return false;
  const auto way = [&](int side) {
    return way_of(objects[side], pair[side], length(velocity(side)), angular(side), world_->getGravity(), radius(side),
                  1, timestep, settings_.substeps);
  };
  const int first = pair[0] < pair[1] ? 0 : 1;
  return ahead_->meet(way(first), way(1 - first));
}

void BulletWorld::clearances(const int* pairs, int count, const double* states, double* clearance) {
  // Closest points are found to about a part in a thousand; a contact begins at the breaking threshold.
  constexpr btScalar kSure = btScalar(0.99), kSlack = btScalar(0.004);
  constexpr double kLeast = std::numeric_limits<double>::min();
  btCollisionObject objects[2];
  btManifoldArray manifolds;
  const auto sphere = [](const btCollisionObject& object) {
    const btCollisionShape* shape = object.getCollisionShape();
    return shape->getShapeType() == SPHERE_SHAPE_PROXYTYPE ? static_cast<const btSphereShape*>(shape) : nullptr;
  };
  for (int i = 0; i < count; ++i) {
    for (int side = 0; side < 2; ++side) {
      const int id = pairs[2 * i + side];
      const double* state = states + kStateSize * static_cast<std::size_t>(id);
      const Probe& body = probe(id);
      const btQuaternion turn = quaternion(state + 3) * body.turn;
      objects[side].setUserIndex(id);
      objects[side].setCollisionShape(body.shape);
      objects[side].setWorldTransform(btTransform(turn.normalized(), length(state)));
    }
    clearance[i] = 0;
    if (meet_ahead(pairs + 2 * i, states, objects)) continue;
    if (const btSphereShape *p = sphere(objects[0]), *q = sphere(objects[1]); p && q) {
      // As the algorithm for two spheres decides, to the last bit.
      const btVector3 apart = objects[0].getWorldTransform().getOrigin() - objects[1].getWorldTransform().getOrigin();
      const btScalar distance = apart.length(), radii = p->getRadius() + q->getRadius();
      const auto threshold = [](const btSphereShape* of) {
        return of->getContactBreakingThreshold(gContactBreakingThreshold);
      };
      const btScalar reach =
          settings_.exact_shapes ? std::min({threshold(p), threshold(q), gContactBreakingThreshold}) : btScalar(0);
      const btScalar gap = distance - radii - reach;
      const bool apart_enough = settings_.exact_shapes ? distance - radii > reach : distance > radii;
      clearance[i] = apart_enough ? std::max(double(gap) * (kSure * settings_.length_unit), kLeast) : 0;
      continue;
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
    clearance[i] = std::max(double(far) * settings_.length_unit, kLeast);
  }
}

}  // namespace lapjoint
